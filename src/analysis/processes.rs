//! Processes of a timeline, each with its threads, its parent, and the moment from which it has what its parent had.
//!
//! In: the threads of a timeline. Out: process instances, parents before the children that they created in the
//! recording. A pid may be given again: a thread belongs to the last first thread with its pid that began before it.
//! Cost: sorting the threads.

use super::derived::tracers;
use crate::base::names::NameId;
use crate::base::time::Timestamp;
use crate::event::host::HostId;
use crate::timeline::{Thread, ThreadId, Timeline};
use foldhash::HashMap;
use std::collections::BTreeSet;

/// A process instance.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its threads; the first one is the first of the process, where that was recorded.
    pub threads: Vec<ThreadId>,
    /// When its first thread began.
    pub birth: Timestamp,
    /// Position of its parent, where that is known.
    pub parent: Option<usize>,
    /// The parent created it in the recording: it has the descriptors that the parent had then.
    pub is_forked: bool,
    /// It created others in the recording.
    pub has_forked: bool,
}

/// All processes of a timeline, in order of their birth.
#[derive(Debug)]
pub struct Processes(pub Vec<Process>);

impl Processes {
    /// Those of a timeline, without idle tasks.
    pub fn new(timeline: &Timeline) -> Processes {
        let mut order: Vec<(ThreadId, &Thread)> = timeline.threads_by_id().filter(|(_, t)| !t.idle).collect();
        // The first thread before the others that began with it.
        order.sort_by_key(|(id, t)| (t.life.start, t.tid != t.pid, *id));
        let mut all: Vec<Process> = Vec::new();
        let mut of_thread: HashMap<ThreadId, usize> = HashMap::default();
        let mut latest: HashMap<(HostId, i32), usize> = HashMap::default();
        for (id, thread) in &order {
            let key = (thread.host, thread.pid);
            let known = latest.get(&key).copied().filter(|_| thread.tid != thread.pid);
            let at = known.unwrap_or_else(|| {
                let birth = thread.life.start;
                all.push(Process { threads: Vec::new(), birth, parent: None, is_forked: false, has_forked: false });
                latest.insert(key, all.len() - 1);
                all.len() - 1
            });
            all[at].threads.push(*id);
            of_thread.insert(*id, at);
        }
        for at in 0..all.len() {
            let Some(first) = all[at].threads.first().and_then(|id| timeline.thread(*id)) else { continue };
            let creator = first.parent.and_then(|id| of_thread.get(&id)).copied();
            // A creator that began later is a mistake of the recording, and would make a circle.
            let creator = creator.filter(|creator| *creator < at);
            let parent = creator.or_else(|| latest.get(&(first.host, first.ppid)).copied().filter(|_| first.ppid > 0));
            (all[at].parent, all[at].is_forked) = (parent.filter(|parent| *parent != at), creator.is_some());
            creator.into_iter().for_each(|creator| all[creator].has_forked = true);
        }
        Processes(all)
    }

    /// The processes without threads that a tracer has in other processes: what they do is not the program's.
    pub fn without_tracers(timeline: &Timeline) -> Processes {
        let tracers = tracers(timeline);
        let mut processes = Processes::new(timeline);
        for process in &mut processes.0 {
            if process.threads.first().is_some_and(|first| !tracers.contains(first)) {
                process.threads.retain(|thread| !tracers.contains(thread));
            }
        }
        processes
    }

    /// The name of a process at a time: that of its first thread.
    pub fn name(&self, timeline: &Timeline, at: usize, t: Timestamp) -> Option<NameId> {
        let first = self.0.get(at)?.threads.first()?;
        timeline.thread(*first)?.name_at(t)
    }

    /// By process: it once had the name, or, where none had it, has the pid.
    pub fn named(&self, timeline: &Timeline, name_or_pid: &str) -> Vec<bool> {
        let first = |process: &Process| process.threads.first().and_then(|id| timeline.thread(*id));
        let ever = |first: &Thread| first.names.iter().any(|n| timeline.names().get(n.name) == name_or_pid);
        let by_name: Vec<bool> = self.0.iter().map(|process| first(process).is_some_and(ever)).collect();
        let Some(pid) = name_or_pid.parse::<i32>().ok().filter(|_| !by_name.contains(&true)) else {
            return by_name;
        };
        self.0.iter().map(|process| first(process).is_some_and(|first| first.pid == pid)).collect()
    }
}

/// The threads of the processes that once had a name, or, where none had it, have the pid; none where no process is
/// meant.
pub fn threads_of(timeline: &Timeline, name_or_pid: &str) -> BTreeSet<ThreadId> {
    let processes = Processes::new(timeline);
    let named = processes.named(timeline, name_or_pid);
    let meant = processes.0.into_iter().zip(named).filter(|(_, is_meant)| *is_meant);
    meant.flat_map(|(process, _)| process.threads).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::timeline_builder::TimelineBuilder;
    use crate::timeline::ThreadName;

    #[test]
    fn threads_of_takes_a_pid_where_no_process_has_the_name() {
        let mut builder = TimelineBuilder::new(4);
        let names = ["sh", "7", "worker", "sh"].map(|name| builder.0.tables.names.intern(name));
        for ((draft, name), (tid, pid)) in
            builder.0.threads.iter_mut().zip(names).zip([(7, 7), (8, 8), (9, 7), (12, 12)])
        {
            (draft.thread.tid, draft.thread.pid) = (tid, pid);
            draft.thread.names = vec![ThreadName { from: Timestamp::ZERO, name }];
        }
        let timeline = builder.sealed();
        let found = |typed: &str| -> Vec<u32> { threads_of(&timeline, typed).iter().map(|id| id.raw()).collect() };
        assert_eq!(found("sh"), [0, 2, 3]);
        assert_eq!((found("7"), found("12")), (vec![1], vec![3]));
        assert!(found("worker").is_empty() && found("99").is_empty());
    }

    #[test]
    fn without_tracers_keeps_the_threads_of_a_tracers_own_process() {
        let mut builder = TimelineBuilder::new(4);
        let threads = [("indexer", 1), ("indexer-ust", 1), ("lttng-sessiond", 3), ("lttng-consumerd", 3)];
        for (draft, (name, pid)) in builder.0.threads.iter_mut().zip(threads) {
            draft.thread.pid = pid;
            draft.thread.names = vec![ThreadName { from: Timestamp::ZERO, name: builder.0.tables.names.intern(name) }];
        }
        let processes = Processes::without_tracers(&builder.sealed());
        let threads: Vec<Vec<u32>> =
            processes.0.iter().map(|process| process.threads.iter().map(|id| id.raw()).collect()).collect();
        assert_eq!(threads, [vec![0], vec![2, 3]]);
    }
}
