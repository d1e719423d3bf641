//! How often and how long each task ran, and which waits have no known cause: `info --full`.

use crate::base::time::{Ns, Span};
use std::collections::BTreeMap;

/// Off-CPU time on critical paths without a known cause, and all off-CPU time there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnknownTime {
    /// Reason: how many waits, how long together.
    pub reasons: BTreeMap<String, (u64, Ns)>,
    /// Time off the CPU on these paths, for comparison.
    pub off_cpu_ns: Ns,
    /// Time of executions on hosts whose scheduler was not recorded: on the CPU or off it.
    pub unscheduled_ns: Ns,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskSurvey {
    /// Durations, sorted ascending.
    pub durations: Vec<Ns>,
    /// Waits without a cause on the paths of its executions.
    pub unknown: UnknownTime,
}

/// The findings of a survey.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// By name: the tasks, and all system calls.
    pub tasks: BTreeMap<String, TaskSurvey>,
    /// Waits without a cause over all tasks; where none has executions over all system calls, and where there are none
    /// either over the functions.
    pub unknown: UnknownTime,
    /// First and last event.
    pub span: Span,
}
