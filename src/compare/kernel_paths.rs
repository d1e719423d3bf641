//! What the kernel did for a thread that runs or waits in it by no call of its own: page faults, reclaim and compaction
//! of memory, write-back, the lock of the memory map.
//!
//! In: the contexts of a cause. Out: the words that its sentence adds, where the kernel's call stacks of four fifths of
//! the time pass functions of one such path ([`PATHS`]); without kernel symbols none does, and nothing is said. Cost:
//! linear in the contexts times their depth. ALGORITHMS.md 7.6.

use super::leaves::{Leaf, Leaves};
use crate::model::context::{ContextId, FrameKind};
use crate::model::wait_kind::WaitKind;

/// Percent of the time that must be on one path.
const COVERS: i128 = 80;

/// A path through the kernel.
struct KernelPath {
    /// A stack on this path passes one of these functions.
    functions: &'static [&'static str],
    /// Follows the phrase of a cause.
    words: &'static str,
    /// True if page faults take this path.
    is_fault: bool,
}

const FAULT: &str = "in page faults";

/// The paths, those of narrower meaning first: reclaim for a control group is reclaim, and a fault may need either.
const PATHS: [KernelPath; 10] = [
    KernelPath {
        functions: &[
            "try_to_free_mem_cgroup_pages",
            "__mem_cgroup_handle_over_high",
            "mem_cgroup_handle_over_high",
            "mm_vmscan_memcg_reclaim",
        ],
        words: "in reclaim of memory for its control group, whose memory is at a limit",
        is_fault: false,
    },
    KernelPath {
        functions: &["__alloc_pages_direct_compact", "try_to_compact_pages", "mm_compaction"],
        words: "in direct compaction of memory",
        is_fault: false,
    },
    KernelPath {
        functions: &[
            "try_to_free_pages",
            "__alloc_pages_direct_reclaim",
            "do_try_to_free_pages",
            "mm_vmscan_direct_reclaim",
        ],
        words: "in direct reclaim of memory, of which too little was free",
        is_fault: false,
    },
    KernelPath {
        functions: &["balance_dirty_pages"],
        words: "held back until the kernel has written what programs wrote (balance_dirty_pages)",
        is_fault: false,
    },
    KernelPath {
        functions: &["blkcg_maybe_throttle_current", "ioc_rqos_throttle", "blkcg_iolatency_throttle"],
        words: "held back by the limits of its control group on the disk",
        is_fault: false,
    },
    KernelPath {
        functions: &["task_numa_work"],
        words: "while NUMA balancing looked through its memory",
        is_fault: false,
    },
    KernelPath {
        functions: &[
            "do_numa_page",
            "do_huge_pmd_numa_page",
            "migrate_misplaced_page",
            "migrate_misplaced_folio",
            "migrate_misplaced_folio_prepare",
        ],
        words: "in page faults by which NUMA balancing moves memory to the node of the thread",
        is_fault: true,
    },
    KernelPath {
        functions: &["do_swap_page", "swap_readpage"],
        words: "in page faults of swapped pages",
        is_fault: true,
    },
    KernelPath {
        functions: &["clear_page_erms", "clear_page_rep", "clear_page_orig", "clear_huge_page", "folio_zero_user"],
        words: "in page faults, of which the kernel cleared the pages",
        is_fault: true,
    },
    KernelPath {
        functions: &["handle_mm_fault", "asm_exc_page_fault", "exc_page_fault", "do_page_fault", "do_mem_abort"],
        words: FAULT,
        is_fault: true,
    },
];

/// Functions that wait for a reader-writer semaphore, which the lock of a memory map is.
const SEMAPHORE: [&str; 9] = [
    "rwsem_down_read_slowpath",
    "rwsem_down_write_slowpath",
    "down_read",
    "down_read_killable",
    "down_write",
    "down_write_killable",
    "__down_read_common",
    "__down_write_common",
    "schedule_preempt_disabled",
];
/// The scheduler's own, below them.
const SCHEDULER: [&str; 2] = ["__schedule", "schedule"];
/// Functions that take the lock of the memory map.
const MAP_USERS: [&str; 11] = [
    "lock_mm_and_find_vma",
    "do_user_addr_fault",
    "__vm_munmap",
    "vm_mmap_pgoff",
    "do_mprotect_pkey",
    "do_madvise",
    "__do_sys_mremap",
    "__do_sys_brk",
    "mmap_read_lock",
    "mmap_write_lock",
    "mmap_write_lock_killable",
];
const MAP_LOCK: &str = "for the lock of its memory map";

/// True for a function that says on which of the paths a stack is.
pub(super) fn is_named(function: &str) -> bool {
    PATHS.iter().any(|path| path.functions.contains(&function))
}

/// What the kernel did for most of the time of a cause, as `, in page faults`; empty where that is not known.
pub(super) fn in_kernel(kind: WaitKind, leaves: &Leaves<'_>) -> String {
    let may_be = matches!(
        kind,
        WaitKind::Cpu | WaitKind::Disk | WaitKind::Timer | WaitKind::Thread | WaitKind::Device | WaitKind::UnknownWait
    );
    let words = if may_be { most(leaves) } else { None };
    words.map_or_else(String::new, |words| format!(", {words}"))
}

fn most(leaves: &Leaves<'_>) -> Option<&'static str> {
    let of = |leaf: &Leaf| (path_of(leaves, leaf.context), leaf.weight);
    let all: Vec<_> = leaves.list.iter().map(of).collect();
    let is_most = |is: &dyn Fn(&(&'static str, bool)) -> bool| {
        let on_path = all.iter().filter(|(path, _)| path.as_ref().is_some_and(is));
        on_path.map(|(_, weight)| weight).sum::<i128>() * 100 >= leaves.total() * COVERS
    };
    let (heaviest, _) = all.iter().find_map(|(path, weight)| Some((*path.as_ref()?, weight)))?;
    if is_most(&|path| path.0 == heaviest.0) {
        return Some(heaviest.0);
    }
    // Some of them clear pages, others do not.
    is_most(&|path| path.1).then_some(FAULT)
}

/// The path of a context's own thread through the kernel, and whether it is that of a page fault.
fn path_of(leaves: &Leaves<'_>, leaf: ContextId) -> Option<(&'static str, bool)> {
    let model = leaves.input.model;
    let site = leaves.input.origins.get(leaf.index())?.site;
    let path = model.contexts.path(site);
    let kernel = path.into_iter().rev().map(|c| model.contexts.frame(c));
    let names: Vec<&str> = kernel
        .take_while(|frame| frame.kind == FrameKind::KernelFunction)
        .map(|frame| model.names.get(frame.name))
        .collect();
    let mut above = names.iter().skip_while(|name| SCHEDULER.contains(name)).peekable();
    if above.peek().is_some_and(|name| SEMAPHORE.contains(name)) {
        let user = above.find(|name| !SEMAPHORE.contains(name));
        if user.is_some_and(|name| MAP_USERS.contains(name)) {
            return Some((MAP_LOCK, false));
        }
    }
    let passes = |path: &&KernelPath| names.iter().any(|name| path.functions.contains(name));
    PATHS.iter().find(passes).map(|path| (path.words, path.is_fault))
}

#[cfg(test)]
mod tests {
    use crate::base::ctx::Ctx;
    use crate::compare::scenario::ModelBuilder;
    use crate::compare::{ComparisonRequest, compare};

    /// The sentence of the first cause of 400 executions, of which one in 20 has `parts` as well, in ms.
    fn sentence(parts: &[(&str, u64)]) -> String {
        let mut s = ModelBuilder::new(7);
        for i in 0..400 {
            let mut all = vec![("p;main", s.around(2.0))];
            all.extend(parts.iter().filter(|_| i % 20 == 3).map(|(path, ms)| (*path, ms * 1_000_000)));
            s.run("x", "p", "p", 1, &all);
        }
        let model = s.seal();
        compare(&model, &ComparisonRequest::default(), &Ctx::new(1)).unwrap().causes.swap_remove(0).sentence
    }

    /// Twins: the same function runs or waits as long, and the kernel's path is another one.
    #[test]
    fn kernel_paths_are_said_where_the_stacks_pass_them() {
        let fault = "p;main;fill;(exc_page_fault);(handle_mm_fault)";
        for (parts, says) in [
            (
                &[("p;main;fill;(handle_mm_fault);(clear_page_erms)", 40)][..],
                "fill on the CPU, in page faults, of which",
            ),
            (&[("p;main;fill", 40)], "fill on the CPU: "),
            (&[("p;main;fill;(handle_mm_fault)", 20), ("p;main;fill", 20)], "fill on the CPU: "),
            (&[("p;main;fill;[write];(vfs_write);(copy_page)", 40)], "fill on the CPU: "),
            (&[("p;main;fill;(handle_mm_fault);(try_to_free_pages)", 40)], "CPU, in direct reclaim of memory"),
            (
                &[("p;main;fill;(handle_mm_fault);(try_to_free_mem_cgroup_pages);(do_try_to_free_pages)", 40)],
                "CPU, in reclaim of memory for its control group",
            ),
            (&[("p;main;fill;(handle_mm_fault);(try_to_compact_pages)", 40)], "CPU, in direct compaction of memory"),
            (
                &[(fault, 20), ("p;main;fill;(handle_mm_fault);(clear_page_erms)", 20)],
                "fill on the CPU, in page faults: ",
            ),
            (
                &[("p;main;log;[write];(balance_dirty_pages);(schedule);{timer}", 40)],
                ", held back until the kernel has",
            ),
            (&[("p;main;log;[write];(ext4_write);(schedule);{timer}", 40)], "in log until it timed out: "),
            // By events, without stacks of the kernel.
            (&[("p;main;fill;(mm_vmscan_memcg_reclaim);{block device}", 40)], "its control group, whose memory is at"),
            (&[("p;main;fill;(mm_compaction)", 40)], "CPU, in direct compaction of memory"),
        ] {
            let sentence = sentence(parts);
            assert!(sentence.contains(says), "{parts:?}: {sentence}");
        }
    }

    #[test]
    fn the_lock_of_the_memory_map_is_said_with_its_holder() {
        let below = "thread mapper@p;remap";
        let waits = |path: &str| sentence(&[(&format!("p;main;touch;{path};{below}"), 40)]);
        let of_map = waits("(do_user_addr_fault);(lock_mm_and_find_vma);(down_read_killable);(schedule)");
        let whole = "Waiting in touch for thread mapper of p, which ran remap, for the lock of its memory map: ";
        assert!(of_map.starts_with(whole), "{of_map}");
        // Another semaphore.
        let of_file = waits("(ext4_write);(down_write);(rwsem_down_write_slowpath);(schedule)");
        assert!(of_file.starts_with("Waiting in touch for thread mapper of p, which ran remap: "), "{of_file}");
    }
}
