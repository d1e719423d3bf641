//! The memory budget: how much of it is for what, before the work.
//!
//! In: the limit, what the machine and the control groups have free, what the opened traces hold. Out: the bytes of
//! states that may be in memory at a time; others go to a file (`super::spill`). Opened traces and buffers of events
//! cannot give way, and open rows and leaves have a least: where a limit has no room for these, no event is read, and
//! the error names the parts. What results will need is not predicted: [`super::memory`] watches what the process
//! holds, leaves give way to results, and the stage that takes more all the same ends in a line.

use super::large_blocks::LARGE_BLOCKS;
use super::memory_error::MemoryError;
use super::memory_limit::{GROUPS, Limit, groups, kib};
use super::spill::SpillFile;
use std::path::Path;
use std::sync::Arc;

/// The memory for everything, and the file for states that it has no room for.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Bytes: the limit, else 70 % of what was free.
    pub bytes: u64,
    /// Bytes for leaves of the state history; `None`: half of what the other parts leave.
    #[doc(hidden)]
    pub leaves: Option<u64>,
    /// The file; `None` where no folder for temporary files can be written.
    pub file: Option<Arc<SpillFile>>,
}

/// The most bytes of a leaf, roughly.
const LEAF: u64 = 32 << 10;
/// Buffers of events of one worker, at most.
const BUFFERS: u64 = 30 << 20;
/// Open rows of a recording that is not small, at least.
const LEAST_ROWS: u64 = 8 << 20;
/// Divisor of the budget: the part for buffers of events.
const BUFFERS_OF: u64 = 8;
/// Eighths of a limit for large blocks of the heap, buffers of events among them.
const LARGE_EIGHTHS: u64 = 3;
/// Divisor of the budget: the part for executions whose paths are known while others are walked.
const PATHS_OF: u64 = 16;
impl Budget {
    /// The budget within a limit.
    pub fn new(limit: Option<Limit>) -> Budget {
        let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
        let free = || free(Path::new(GROUPS), &read("/proc/meminfo"), &read("/proc/self/cgroup"));
        // In whole MiB, as it is shown.
        let free = || free().map_or(u64::MAX, |bytes| ((bytes / 10 * 7) >> 20) << 20);
        let bytes = match limit {
            Some(limit @ Limit::Group(_)) => limit.bytes().min(free()),
            Some(limit) => limit.bytes(),
            None => free(),
        };
        Budget { bytes, leaves: None, file: SpillFile::new().map(Arc::new) }
    }

    /// The limit to watch where none was asked for and no group has one.
    pub fn limit(&self) -> Option<Limit> {
        (self.bytes < u64::MAX).then_some(Limit::Free(self.bytes))
    }

    /// Large blocks of the heap have a part of a limit that was set from now on; others go to a file. Before the
    /// sandbox begins.
    pub fn bound_large_blocks(&self, limit: Option<Limit>) {
        let limit = limit.filter(|limit| !matches!(limit, Limit::Free(_)));
        if let (Some(limit), Some(file)) = (limit, self.file.as_ref().and_then(|file| file.another())) {
            LARGE_BLOCKS.keep_in(file, limit.bytes() / 8 * LARGE_EIGHTHS);
        }
    }

    /// Bytes for buffers of events.
    pub fn for_buffers(&self, workers: usize) -> u64 {
        (self.bytes / BUFFERS_OF).min(BUFFERS * workers as u64)
    }

    /// Bytes in memory for what is known of executions until all paths are.
    pub fn for_paths(&self) -> u64 {
        self.bytes / PATHS_OF
    }

    /// Bytes for leaves in memory beside the `opened` bytes that the process holds before it reads events, and the
    /// buffers of events. Half of the rest is for open rows, tables and results.
    pub fn for_leaves(&self, opened: u64, buffers: u64, workers: usize) -> u64 {
        let left = self.bytes.saturating_sub(opened).saturating_sub(buffers);
        self.leaves.unwrap_or((left / 2).max(least_for_leaves(workers)))
    }

    /// Bytes for open rows beside the same: as many as beside all buffers that the budget allows, at most a quarter of
    /// the rest, at least what [`check_parts`] compares.
    pub fn for_rows(&self, opened: u64, buffers: u64, workers: usize) -> u64 {
        let left = self.bytes.saturating_sub(opened).saturating_sub(buffers);
        let all = least_for_rows(self.for_buffers(workers).max(buffers));
        all.min(left / 4).max(least_for_rows(buffers))
    }
}

/// Bytes for open rows beside this many of buffers, at least: those of the chunks that are being joined and made
/// leaves, and where these are small, those of threads and of one slab. Small recordings have no more rows than that.
fn least_for_rows(buffers: u64) -> u64 {
    (buffers / 2).max(buffers.min(LEAST_ROWS))
}

/// The least bytes of leaves in memory: what each worker may hold at a time.
pub const fn least_for_leaves(workers: usize) -> u64 {
    (4 * workers as u64 + 16) * LEAF
}

/// In whole MiB, as one would type them.
fn whole(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20) << 20
}

/// The limit that has room for this many bytes.
fn limit_for(limit: Limit, needed: u64) -> u64 {
    match limit {
        Limit::Asked(_) | Limit::Free(_) => whole(needed),
        // Some of a group's limit is left for the kernel.
        Limit::Group(_) => whole(needed / 7 * 8 + 8),
    }
}

/// What must be in memory, compared with a limit before events are read.
pub fn check_parts(limit: Limit, opened: u64, buffers: u64, workers: usize) -> Result<(), MemoryError> {
    let (rows, leaves) = (least_for_rows(buffers), least_for_leaves(workers));
    let needed = opened + buffers + rows + leaves;
    if needed <= limit.bytes() {
        return Ok(());
    }
    // Buffers, and rows with them, grow with the limit.
    let needed = limit_for(limit, needed / 6 * 8);
    let [opened, buffers, rows, leaves] = [opened, buffers, rows, leaves].map(whole);
    Err(MemoryError::Parts { limit, opened, buffers, rows, leaves, needed })
}

/// Bytes for leaves of rows, once the pass has ended, beside what else is held: half of the rest, at least what workers
/// hold at a time. The other half is for stacks over time, their tables, and results, to which leaves give way.
pub fn rows_beside_results(limit: Limit, others: u64, workers: usize) -> u64 {
    (limit.bytes().saturating_sub(others) / 2).max(least_for_leaves(workers))
}

/// Bytes that the machine could give, and the control groups too.
fn free(root: &Path, machine: &str, of: &str) -> Option<u64> {
    let left = groups(root, of).into_iter().filter_map(|group| group.left());
    left.chain(kib(machine, "MemAvailable:")).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_what_is_left_is_for_leaves() {
        let budget = |bytes: u64| Budget { bytes, leaves: None, file: None };
        assert_eq!(budget(1 << 30).for_leaves(100 << 20, 24 << 20, 2), 450 << 20);
        assert_eq!(budget(1 << 20).for_leaves(100 << 20, 24 << 20, 2), 24 * LEAF);
        assert_eq!(Budget { leaves: Some(7), ..budget(1 << 30) }.for_leaves(0, 0, 1), 7);
    }

    #[test]
    fn what_cannot_fit_is_refused_by_its_parts() {
        let of = |limit: Limit| check_parts(limit, 90 << 20, 20 << 20, 2);
        assert_eq!(of(Limit::Asked(121 << 20)), Ok(()));
        let error = of(Limit::Asked(100 << 20)).unwrap_err().to_string();
        for part in ["--memory 100MiB", "hold 90MiB", "20MiB, 10MiB and 1MiB", "raise the limit to 161MiB"] {
            assert!(error.contains(part), "{error}");
        }
        let error = of(Limit::Group(112 << 20)).unwrap_err().to_string();
        assert!(error.contains("control group may hold 112MiB") && error.contains("to 185MiB"), "{error}");
        assert_eq!(of(Limit::Group(185 << 20)), Ok(()));
        let error = of(Limit::Free(100 << 20)).unwrap_err().to_string();
        assert!(error.contains("of the free memory, 100MiB") && error.contains("161MiB"), "{error}");
    }

    #[test]
    fn the_limit_that_a_refusal_names_suffices() {
        for (opened, workers) in [(3 << 20, 1), (90 << 20, 2), (700 << 20, 16)] {
            let asked = |bytes: u64| Budget { bytes, leaves: None, file: None };
            let of = |bytes: u64| check_parts(Limit::Asked(bytes), opened, asked(bytes).for_buffers(workers), workers);
            let Err(MemoryError::Parts { needed, .. }) = of(opened) else { panic!("{opened} bytes are taken") };
            assert_eq!(of(needed), Ok(()), "{opened} {workers}");
        }
    }

    #[test]
    fn rows_have_half_of_what_others_leave_and_the_least_for_workers() {
        assert_eq!(rows_beside_results(Limit::Asked(256 << 20), 70 << 20, 2), 93 << 20);
        assert_eq!(rows_beside_results(Limit::Asked(64 << 20), 70 << 20, 2), least_for_leaves(2));
    }

    #[test]
    fn buffers_have_an_eighth_of_the_budget_up_to_30_mib_a_worker() {
        let budget = |bytes: u64| Budget { bytes, leaves: None, file: None };
        assert_eq!(budget(128 << 20).for_buffers(2), 16 << 20);
        assert_eq!(budget(16 << 30).for_buffers(2), 60 << 20);
        assert_eq!(budget(16 << 30).for_buffers(16), 480 << 20);
        assert_eq!((budget(5 << 20).limit(), budget(u64::MAX).limit()), (Some(Limit::Free(5 << 20)), None));
    }

    #[test]
    fn free_memory_is_that_of_the_machine_and_of_the_groups() {
        let root = tempfile::tempdir().unwrap();
        let file = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let machine = "MemTotal: 8000 kB\nMemAvailable: 3000 kB\n";
        assert_eq!(free(root.path(), machine, "0::/a/b\n"), Some(3_072_000));
        file("a/memory.max", "2000000\n");
        file("a/memory.current", "500000\n");
        file("a/b/memory.max", "max\n");
        file("a/b/memory.current", "400000\n");
        assert_eq!(free(root.path(), machine, "0::/a/b\n"), Some(1_500_000));
        // Pages of files are given back.
        file("a/memory.stat", "anon 90000\ninactive_file 300000\nactive_file 100000\nfile_mapped 7\n");
        assert_eq!(free(root.path(), machine, "0::/a/b\n"), Some(1_900_000));
        file("memory/c/memory.limit_in_bytes", "1000\n");
        file("memory/c/memory.usage_in_bytes", "2000\n");
        assert_eq!(free(root.path(), machine, "4:memory:/c\n"), Some(0));
        file("memory/c/memory.stat", "inactive_file 100\ntotal_inactive_file 1200\ntotal_active_file 300\n");
        assert_eq!(free(root.path(), machine, "4:memory:/c\n"), Some(500));
    }
}
