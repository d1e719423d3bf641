//! What looks the same as the first cause, and what a recording must hold to exclude it.
//!
//! In: the contexts of the first cause. Out: another reason that explains half of its time as well and that nothing in
//! the recording excludes, in words for the verdict; such a cause is not confident. Cost: linear in the contexts times
//! their depth. ALGORITHMS.md 5.4 and 7.7.
//!
//! | the cause | looks the same | excluded by |
//! |---|---|---|
//! | others ran beyond their time slices | a CPU quota | the kernel's call stacks; counters of the control groups; |
//! | | | others that end by themselves |
//! | others ran, in phase with a period | a CPU quota | the same |
//! | others of much lower priority ran | a CPU quota | the same |
//! | others ran before a woken thread | a lower priority | priorities and weights; idle CPUs beside |
//! | | | it; others that end by themselves |
//! | others ran before one of other priority | that priority | others that end by themselves |
//! | sleep between calls that failed | why they failed | what the calls were about |
//! | a thread of which nothing is known | what it did or waited for | events of that time |
//! | a thread that ended a wait for a file | an interrupt of the disk while it ran | interrupts; disk requests |

use super::leaves::{Leaf, Leaves};
use crate::model::need::Need;
use crate::model::wait_kind::{BEFORE_LOWER, IN_PHASE, LIKE_A_QUOTA, OTHER_PRIORITY, OUT_OF_TURN, POLLING};

/// What may have caused the time besides the threads that are to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OtherReason {
    /// The CPU quota of the waiting thread's control group: its wait ended out of turn.
    Quota,
    /// The CPU quota of the waiting thread's control group: its waits end in phase with a period.
    Phase,
    /// The CPU quota of the waiting thread's control group: the threads that ran have a much lower priority.
    Lower,
    /// The priority of the waiting thread, or the CPU quota of its control group.
    Priority,
    /// The priority of the waiting thread, which is known not to be the usual one.
    KnownPriority,
    /// A thread slept between calls that failed, and what made them fail is unknown.
    Polling,
    /// What the thread to blame did, or what it waited for, is unknown.
    Unseen,
    /// An interrupt of the disk while the thread to blame ran ended a wait in a call about a file.
    DiskInterrupt,
}

impl OtherReason {
    /// What else explains half of the time.
    pub(super) fn of(leaves: &Leaves<'_>) -> Option<OtherReason> {
        if leaves.named_after(POLLING).is_some() {
            return Some(OtherReason::Polling);
        }
        if leaves.end_unseen() {
            return Some(OtherReason::Unseen);
        }
        let lacks = |need: Need| need.is_recorded(&leaves.input.model.traces) == Some(false);
        if lacks(Need::Interrupts) && lacks(Need::DiskRequests) && leaves.wait_for_files() {
            return Some(OtherReason::DiskInterrupt);
        }
        let is_sure = |leaf: &&Leaf| leaves.input.origins[leaf.context.index()].throttled;
        let reason = |leaf: &Leaf| match leaf.context {
            context if leaves.passes(context, IN_PHASE) => Some(OtherReason::Phase),
            context if leaves.passes(context, BEFORE_LOWER) => Some(OtherReason::Lower),
            context if leaves.passes(context, LIKE_A_QUOTA) => Some(OtherReason::Quota),
            context if leaves.passes(context, OTHER_PRIORITY) => Some(OtherReason::KnownPriority),
            context if leaves.passes(context, OUT_OF_TURN) && leaves.idle_beside(context).is_none() => {
                Some(OtherReason::Priority)
            }
            _ => None,
        };
        let list = leaves.list.iter().filter(|leaf| !is_sure(leaf));
        let found: Vec<(OtherReason, i128)> = list.filter_map(|leaf| Some((reason(leaf)?, leaf.weight))).collect();
        let of = |wanted: OtherReason| found.iter().filter(|(of, _)| *of == wanted).map(|(_, weight)| weight).sum();
        let all = [
            OtherReason::Lower,
            OtherReason::Priority,
            OtherReason::KnownPriority,
            OtherReason::Quota,
            OtherReason::Phase,
        ];
        let reasons = all.map(|of_kind| (of(of_kind), of_kind));
        let all: i128 = reasons.iter().map(|(weight, _)| weight).sum();
        let (most, reason) = reasons.into_iter().max_by_key(|(weight, _)| *weight)?;
        (most > 0 && all * 2 >= leaves.total()).then_some(reason)
    }

    /// In words that follow "No clear cause: ".
    pub(super) fn words(self) -> &'static str {
        match self {
            OtherReason::Quota => {
                "the threads that ran meanwhile did so for longer than time slices last and lost the CPU when the wait \
                 ended, as where the waiting thread's control group has used up its CPU quota (record the kernel's \
                 call stacks at sched_switch, or run whyslow snapshot meanwhile: cpu.stat of the group counts it)"
            }
            OtherReason::Lower => {
                "the threads that ran meanwhile have a much lower priority than the waiting one, which the kernel \
                 would have let run, had its control group not used up its CPU quota (record the kernel's call stacks \
                 at sched_switch, or run whyslow snapshot meanwhile: cpu.stat of the group counts it)"
            }
            OtherReason::Phase => {
                "such waits of these threads end in phase with a period, as those of threads whose control group has \
                 used up its CPU quota (record the kernel's call stacks at sched_switch, or run whyslow snapshot \
                 meanwhile: cpu.stat of the group counts it)"
            }
            OtherReason::Priority => {
                "the threads that ran meanwhile did so for longer than time slices last and lost the CPU when the wait \
                 ended, and the priority, the weight and the limits of the waiting thread and its control group are \
                 not all known (run whyslow snapshot meanwhile)"
            }
            OtherReason::KnownPriority => {
                "the threads that ran meanwhile did so for longer than time slices last and lost the CPU when the wait \
                 ended, and the waiting thread, or a control group around it, has another priority than usual"
            }
            OtherReason::Unseen => "what the thread that was waited for did meanwhile, or waited for, was not recorded",
            OtherReason::DiskInterrupt => {
                "an interrupt of the disk, which came while the thread ran that seems to have ended the wait, looks \
                 the same (record irq:irq_handler_entry and irq:irq_handler_exit, or block:block_rq_issue and \
                 block:block_rq_complete)"
            }
            OtherReason::Polling => {
                "a thread sleeps between calls that fail, and what makes them fail was not recorded"
            }
        }
    }
}
