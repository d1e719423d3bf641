//! What a recording may hold, as verdicts need it.
//!
//! In: what the traces of a model recorded. Out: whether one of them has it.

use super::event_name::{ENVIRONMENT, ESSENTIAL};
use super::recorded::{Recorded, StackKind};
use super::trace_info::{TraceInfo, TraceLevel};

/// What a recording may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Switches between threads.
    Switches,
    /// Begins and ends of interrupts.
    Interrupts,
    /// Requests of block devices.
    DiskRequests,
    /// Packets of the network.
    Packets,
    /// System calls.
    Calls,
    /// The kernel's call stacks at switches.
    KernelStacks,
    /// Counters of control groups and of the machine.
    Environment,
}

impl Need {
    pub fn words(self) -> &'static str {
        match self {
            Need::Switches => "switches",
            Need::Interrupts => "interrupts",
            Need::DiskRequests => "disk requests",
            Need::Packets => "packets",
            Need::Calls => "system calls",
            Need::KernelStacks => "the kernel's call stacks at switches",
            Need::Environment => "counters of control groups (whyslow snapshot)",
        }
    }

    fn is_in(self, recorded: &Recorded) -> bool {
        let has = |event: &str| recorded.events.contains(event);
        match self {
            Need::Switches => has(ESSENTIAL),
            Need::Interrupts => has("irq:irq_handler_entry") || has("irq:softirq_entry"),
            Need::DiskRequests => has("block:block_rq_issue") && has("block:block_rq_complete"),
            Need::Packets => has("net:net_dev_queue"),
            Need::Calls => has("raw_syscalls:sys_enter"),
            Need::KernelStacks => recorded.stacks.contains(&StackKind::KernelAtSwitches),
            Need::Environment => has(ENVIRONMENT),
        }
    }

    /// True if one of some traces has it; `None` where it is unknown what they recorded.
    pub fn is_recorded(self, traces: &[TraceInfo]) -> Option<bool> {
        // The kernel has no part in archives of MPI runs.
        let machines = traces.iter().filter(|trace| trace.level == TraceLevel::Machine);
        let all: Option<Vec<&Recorded>> = machines.map(|trace| trace.recorded.as_ref()).collect();
        all.filter(|all| !all.is_empty()).map(|all| all.into_iter().any(|recorded| self.is_in(recorded)))
    }
}
