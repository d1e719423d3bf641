//! The memory budget: how much of it is for what, before the work.
//!
//! In: the limit, what the machine and the control groups have free, what the opened traces hold. Out: the bytes of
//! states that may be in memory at a time; others go to a file (`super::spill`). Opened traces, buffers of events, open
//! rows, tables and results cannot give way: where a limit has no room for the least of them, the work does not begin.
//! Beyond that [`super::memory`] watches what the process holds.

use super::memory::{GROUPS, Limit, MemoryError, groups, kib};
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

impl Budget {
    /// The budget within a limit.
    pub fn new(limit: Option<Limit>) -> Budget {
        let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
        let free = || free(Path::new(GROUPS), &read("/proc/meminfo"), &read("/proc/self/cgroup"));
        let free = || free().map_or(u64::MAX, |bytes| bytes / 10 * 7);
        let bytes = match limit {
            Some(Limit::Asked(bytes)) => bytes,
            Some(limit @ Limit::Group(_)) => limit.bytes().min(free()),
            None => free(),
        };
        Budget { bytes, leaves: None, file: SpillFile::new().map(Arc::new) }
    }

    /// Bytes for leaves in memory beside the `opened` bytes that the process holds before it reads events, and the
    /// buffers of events. Half of the rest is for open rows, tables and results.
    pub fn for_leaves(&self, opened: u64, buffers: u64, workers: usize) -> u64 {
        let left = self.bytes.saturating_sub(opened).saturating_sub(buffers);
        self.leaves.unwrap_or((left / 2).max(least_for_leaves(workers)))
    }
}

/// The least bytes of leaves in memory: what each worker may hold at a time.
pub fn least_for_leaves(workers: usize) -> u64 {
    (4 * workers as u64 + 16) * LEAF
}

/// What must be in memory, compared with a limit before events are read.
pub fn check_parts(limit: Limit, opened: u64, buffers: u64, workers: usize) -> Result<(), MemoryError> {
    let leaves = least_for_leaves(workers);
    let needed = opened + buffers + leaves;
    if needed <= limit.bytes() {
        return Ok(());
    }
    // In whole MiB, as one would type them.
    let whole = |bytes: u64| bytes.div_ceil(1 << 20) << 20;
    let (opened, buffers, leaves) = (whole(opened), whole(buffers), whole(leaves));
    // Buffers grow with the limit, by a part of it; a group's limit must leave room for the kernel.
    let needed = match limit {
        Limit::Asked(_) => needed / 15 * 16,
        Limit::Group(_) => needed / 6 * 7,
    };
    Err(MemoryError::Parts { limit, opened, buffers, leaves, needed: whole(needed) })
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
        assert_eq!(of(Limit::Asked(111 << 20)), Ok(()));
        let error = of(Limit::Asked(100 << 20)).unwrap_err().to_string();
        for part in ["--memory 100MiB", "hold 90MiB", "20MiB and 1MiB", "to 119MiB"] {
            assert!(error.contains(part), "{error}");
        }
        let error = of(Limit::Group(112 << 20)).unwrap_err().to_string();
        assert!(error.contains("control group may hold 112MiB") && error.contains("to 130MiB"), "{error}");
        assert_eq!(of(Limit::Group(130 << 20)), Ok(()));
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
