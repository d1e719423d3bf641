//! `info --full`: the number and durations of each task's executions, and the unexplained waits by reason.
//!
//! System calls were already paired by the kernel pass; all other tasks are counted by pairing their marks. Unknown
//! waits are those on the critical paths of these executions, so that they are not lost among the waits of idle
//! threads. Where a host's scheduler was not recorded, running and waiting cannot be distinguished: that time is
//! reported separately, not as a wait. Cost: a walk per execution and per system call.

use super::executions::{self, PairingRule};
use super::path;
use crate::base::figure;
use crate::base::notice::{Notice, Notices};
use crate::base::time::{Ns, Span};
use crate::event::task::TaskDefinition;
use crate::model::survey::{Survey, TaskSurvey, UnknownTime};
use crate::timeline::questions::Asker;
use crate::timeline::{SegmentKind, ThreadId, Timeline};
use foldhash::HashSet;
use std::collections::BTreeMap;

impl Survey {
    /// Add the functions that were called, by name: tasks that are known only now. Their durations are in any order.
    pub fn add_functions(&mut self, mut calls: BTreeMap<String, TaskSurvey>) {
        let alone = self.tasks.values().all(|s| s.durations.is_empty());
        calls.retain(|name, _| !self.tasks.contains_key(name));
        for (name, mut surveyed) in calls {
            surveyed.durations.sort_unstable();
            if alone {
                self.unknown.merge(surveyed.unknown.clone());
            }
            self.tasks.insert(name, surveyed);
        }
    }
}

/// Survey the tasks whose marks the recording holds, and its system calls.
pub fn survey(timeline: &Timeline, tasks: &[TaskDefinition], notices: &mut Notices) -> Survey {
    let mut found = Survey { span: timeline.span(), ..Survey::default() };
    for (task, marks) in tasks.iter().zip(executions::by_task(timeline, tasks.len())) {
        let executions = executions::pair_marks(timeline, marks.into_iter(), &PairingRule::of(task), notices);
        let executions = executions::covered(timeline, executions, notices);
        let surveyed = found.tasks.entry(task.name.clone()).or_default();
        for execution in &executions {
            surveyed.add(timeline, execution.thread, execution.span, notices);
        }
    }
    let mut all: Vec<UnknownTime> = found.tasks.values().map(|s| s.unknown.clone()).collect();
    let empty = found.tasks.values().all(|s| s.durations.is_empty());
    let names: HashSet<&str> = tasks.iter().map(|task| task.name.as_str()).collect();
    let reader = timeline.reader(Asker::Survey);
    for (id, thread) in timeline.threads_by_id() {
        let recorded = executions::recorded(timeline, thread.host);
        let covered = |span: Span| recorded.is_none_or(|all| all.clip(span) == span);
        for call in reader.calls(id).all().filter(|c| c.ret.is_some()) {
            let name = timeline.names().get(call.name);
            if names.contains(name) {
                continue;
            }
            let surveyed = found.tasks.entry(name.to_owned()).or_default();
            if covered(call.span) {
                surveyed.add(timeline, id, call.span, notices);
            } else {
                surveyed.durations.push(call.span.len());
            }
        }
    }
    if empty {
        all = found.tasks.values().map(|s| s.unknown.clone()).collect();
    }
    all.into_iter().for_each(|unknown| found.unknown.merge(unknown));
    found.tasks.values_mut().for_each(|s| s.durations.sort_unstable());
    found
}

impl TaskSurvey {
    /// Add an execution: its duration, and the unexplained waits on its path.
    pub fn add(&mut self, timeline: &Timeline, thread: ThreadId, span: Span, notices: &mut Notices) {
        self.durations.push(span.len());
        if !timeline.thread(thread).is_some_and(|t| timeline.is_scheduled(t.host)) {
            self.unknown.unscheduled_ns += span.len();
            return;
        }
        let path = path::walk(timeline, thread, span);
        notices.add(Notice::UntiledPaths, u64::from(!path::tiles(&path, span)), || figure::moment(span.start.ns()));
        for segment in path {
            if !segment.kind.has_cpu() {
                self.unknown.off_cpu_ns += segment.span.len();
            }
            if matches!(segment.kind, SegmentKind::Unknown | SegmentKind::Blocked) && !segment.span.is_empty() {
                let reason = segment.qualifier.map_or("no wake-up was seen", |q| timeline.names().get(q));
                self.unknown.add(reason, 1, segment.span.len());
            }
        }
    }
}

impl UnknownTime {
    fn add(&mut self, reason: &str, waits: u64, ns: Ns) {
        match self.reasons.get_mut(reason) {
            Some((n, sum)) => (*n, *sum) = (*n + waits, *sum + ns),
            None => {
                self.reasons.insert(reason.to_owned(), (waits, ns));
            }
        }
    }

    fn merge(&mut self, other: UnknownTime) {
        self.off_cpu_ns += other.off_cpu_ns;
        self.unscheduled_ns += other.unscheduled_ns;
        other.reasons.iter().for_each(|(reason, (waits, ns))| self.add(reason, *waits, *ns));
    }

    /// Time without a cause.
    pub fn ns(&self) -> Ns {
        self.reasons.values().map(|(_, ns)| ns).sum()
    }
}
