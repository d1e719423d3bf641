//! `info --full`: how often and how long each task ran, and which waits stay unexplained, by reason.
//!
//! System calls are counted where the kernel pass already paired them; all other tasks by pairing their marks. Unknown
//! waits are those on the critical paths of these executions, so that idle threads do not drown them.

use super::executions::{self, Rule};
use super::path;
use super::recording::{EdgeKind, Recording};
use crate::base::notice::Notices;
use crate::base::time::Ns;
use crate::event::task::TaskDefinition;
use std::collections::BTreeMap;

/// Off-CPU time on critical paths that nobody can explain, and all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unknown {
    /// Reason: how many waits, how long together.
    pub reasons: BTreeMap<String, (u64, Ns)>,
    /// Time off the CPU on these paths, for comparison.
    pub off_cpu_ns: Ns,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Durations by task name, sorted ascending.
    pub durations: BTreeMap<String, Vec<Ns>>,
    /// Waits without a cause.
    pub unknown: Unknown,
}

/// Survey the tasks whose marks the recording holds, and its system calls.
pub fn survey(recording: &Recording, tasks: &[TaskDefinition], notices: &mut Notices) -> Survey {
    let mut found = Survey::default();
    for (number, task) in tasks.iter().enumerate() {
        let executions = executions::pair(recording, number as u32, &Rule::of(task), notices);
        let executions = executions::covered(recording, executions, notices);
        for execution in &executions {
            for segment in path::walk(recording, execution.thread, execution.span) {
                let off = !matches!(segment.kind, EdgeKind::Running | EdgeKind::Interrupted | EdgeKind::Preempted);
                if off {
                    found.unknown.off_cpu_ns += segment.span.len();
                }
                if matches!(segment.kind, EdgeKind::Unknown | EdgeKind::Blocked) && !segment.span.is_empty() {
                    let reason = segment.qualifier.map_or("no wake-up was seen", |q| recording.names.get(q));
                    let entry = found.unknown.reasons.entry(reason.to_owned()).or_default();
                    entry.0 += 1;
                    entry.1 += segment.span.len();
                }
            }
        }
        let lengths = executions.iter().map(|e| e.span.len()).collect();
        found.durations.insert(task.name.clone(), lengths);
    }
    for thread in &recording.threads {
        for call in thread.calls.iter().filter(|c| c.ret.is_some()) {
            let name = recording.names.get(call.name);
            if !tasks.iter().any(|task| task.name == name) {
                found.durations.entry(name.to_owned()).or_default().push(call.span.len());
            }
        }
    }
    found.durations.values_mut().for_each(|d| d.sort_unstable());
    found
}
