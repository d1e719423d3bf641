//! The memory budget: how much of it is for what, before the work.
//!
//! In: the limit, what the machine and the control groups have free, what the opened traces hold. Out: the bytes of
//! states that may be in memory at a time; others go to a file (`super::spill`). Opened traces, buffers of events, open
//! rows, tables and results cannot give way: where a limit has no room for the least of them, the step that needs them
//! does not begin, and the error names the part. Leaves give way to results. Beyond that [`super::memory`] watches what
//! the process holds.

use super::large_blocks::LARGE_BLOCKS;
use super::memory_error::{MemoryError, ResultsOf};
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
/// Divisor of a limit: the part for the buffers of workers that walk long paths, with the threads on them. Paths of 64
/// copies of a recording, over its whole time, took two workers 35 of 240 MiB.
const WALKS_OF: u64 = 6;
/// Bytes of an execution: its path until all paths are known, its times by context, its metrics; and the groups, ranks
/// and lists by cause of a comparison. The model of 64 copies of a recording of locks has 116, and a comparison of its
/// 461,248 system calls holds about as much beside it; the rest is an allowance, for symbols among others.
const EXECUTION: u64 = 320;
/// Bytes of an execution that is compared in blocks that are no large ones, where those go to a file: its metrics by
/// column, of which a time takes 4 bytes, a count one.
const SMALL_EXECUTION: u64 = 64;
/// Bytes of blocks that were freed and are too small for others, where little is held.
const PIECES: u64 = 3 << 20;
/// Bytes of an execution that is not compared with others, without its contributions: its path, times and metrics, as
/// above, and the names of its threads.
const HELD_UP: u64 = 160;

impl ResultsOf {
    fn bytes(self) -> u64 {
        let of = |size: u64, count: usize| size.saturating_mul(count as u64);
        match self {
            // All but the columns are lists of all executions.
            ResultsOf::Executions(executions) if LARGE_BLOCKS.are_bounded() => of(SMALL_EXECUTION, executions),
            ResultsOf::Executions(executions) => of(EXECUTION, executions),
            ResultsOf::Paths(executions) => of(HELD_UP, executions),
            // One list, which is a large block.
            ResultsOf::HeldUp { executions, .. } if LARGE_BLOCKS.are_bounded() => of(HELD_UP, executions),
            ResultsOf::HeldUp { executions, contributions: bytes }
            | ResultsOf::Operations { executions, lists: bytes, .. } => {
                of(HELD_UP, executions).saturating_add(bytes as u64)
            }
        }
    }

    /// Bytes that are needed until the results are there, within a limit of this many.
    fn until_then(self, limit: u64) -> u64 {
        match self {
            ResultsOf::Paths(_) | ResultsOf::Operations { executions: 1.., .. } => limit / WALKS_OF + limit / PATHS_OF,
            _ => 0,
        }
    }

    /// The least limit that has room for this many bytes beside those.
    fn limit_beside(self, bytes: u64) -> u64 {
        match self {
            ResultsOf::Paths(_) | ResultsOf::Operations { executions: 1.., .. } => {
                let (of, rest) = (WALKS_OF * PATHS_OF, WALKS_OF * PATHS_OF - WALKS_OF - PATHS_OF);
                (bytes / rest).saturating_add(1).saturating_mul(of)
            }
            _ => bytes,
        }
    }
}

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

/// What results need, compared with a limit before the first is made. `held` are all bytes that the process holds,
/// `in_leaves` those of leaves that can give way. Returns the bytes left for leaves.
pub fn check_results(
    limit: Limit,
    held: u64,
    in_leaves: u64,
    of: ResultsOf,
    workers: usize,
) -> Result<u64, MemoryError> {
    let results = of.bytes();
    let others = held.saturating_sub(in_leaves).saturating_add(in_leaves.min(least_for_leaves(workers)));
    let needed = others.saturating_add(results);
    let until_then = of.until_then(limit.bytes());
    if needed.saturating_add(until_then) > limit.bytes() {
        // What is held grows with the limit: blocks that were freed are in pieces.
        let needed = limit_for(limit, of.limit_beside(needed.saturating_add(needed / 16).saturating_add(PIECES)));
        let (held, results) = (whole(others), whole(results.saturating_add(until_then)));
        return Err(MemoryError::Results { limit, of, results, held, needed });
    }
    Ok(limit.bytes().saturating_sub(held.saturating_sub(in_leaves)).saturating_sub(results))
}

/// Bytes for leaves of rows, once the pass has ended, beside what else is held and the results of the executions that
/// this many events may delimit. Half is for stacks over time, their tables, and what is made of both.
pub fn rows_beside_results(limit: Limit, others: u64, marks: usize) -> u64 {
    let results = ResultsOf::Executions(marks / 2).bytes();
    limit.bytes().saturating_sub(others).saturating_sub(results) / 2
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

    fn operations(operations: usize, lists: usize) -> ResultsOf {
        ResultsOf::Operations { executions: 0, operations, lists }
    }

    #[test]
    fn results_are_refused_by_their_number_unless_leaves_can_give_way() {
        let of = |limit: u64, executions: usize| {
            check_results(Limit::Asked(limit << 20), 150 << 20, 80 << 20, ResultsOf::Executions(executions), 2)
        };
        // 70 MiB of others, 30 MiB of results: 156 MiB stay for leaves.
        assert_eq!(of(256, 96 << 10), Ok(156 << 20));
        assert_eq!(of(101, 96 << 10), Ok(1 << 20));
        let error = of(100, 96 << 10).unwrap_err();
        for part in ["98304 executions", "30MiB", "71MiB", "raise the limit to 111MiB"] {
            assert!(error.to_string().contains(part), "{error}");
        }
        let Err(MemoryError::Results { needed, .. }) = of(100, 96 << 10) else { panic!("{error}") };
        assert!(of(needed >> 20, 96 << 10).is_ok());
        let all = ResultsOf::Executions(96 << 10);
        assert!(check_results(Limit::Group(116 << 20), 150 << 20, 80 << 20, all, 2).is_ok());
        for of in [
            ResultsOf::Executions(usize::MAX),
            ResultsOf::Paths(usize::MAX),
            ResultsOf::HeldUp { executions: usize::MAX, contributions: usize::MAX },
            operations(usize::MAX, usize::MAX),
        ] {
            assert!(check_results(Limit::Free(u64::MAX >> 1), u64::MAX, 0, of, 2).is_err());
        }
        let (executions, contributions) = (96 << 10, 24 << 20);
        let held_up = ResultsOf::HeldUp { executions, contributions };
        // 15 and 24 MiB of results.
        assert_eq!(check_results(Limit::Asked(256 << 20), 70 << 20, 0, held_up, 2), Ok(147 << 20));
        // Paths: 15 MiB, 40 of a limit of 176 MiB.
        let paths =
            |limit: u64| check_results(Limit::Asked(limit << 20), 110 << 20, 0, ResultsOf::Paths(executions), 2);
        assert!(paths(176).is_ok());
        let error = paths(150).unwrap_err();
        for part in ["the paths of 98304 executions", "50MiB beside the 110MiB", "shorter trace"] {
            assert!(error.to_string().contains(part), "{error}");
        }
        let MemoryError::Results { needed, .. } = error else { panic!("{error}") };
        assert!(paths(needed >> 20).is_ok(), "{needed}");
        let error = check_results(Limit::Asked(80 << 20), 70 << 20, 0, operations(96 << 13, 33_816_576), 2)
            .unwrap_err()
            .to_string();
        for part in
            ["patterns in 786432 system calls", "need 33MiB beside the 70MiB", "limit to 112MiB", "shorter trace"]
        {
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(rows_beside_results(Limit::Asked(256 << 20), 70 << 20, 192 << 10), 156 << 19);
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
