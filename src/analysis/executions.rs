//! Executions from pairs of delimiting events.
//!
//! In: the marks of a timeline, in the total order of events. Out: the executions of one task, numbered by (start,
//! end, thread). Without a key a begin and an end pair on their thread; with one they pair where the key's value is
//! equal, across threads of one host. A second begin opens an inner execution where the task nests and restarts the
//! outer one where it does not. Marks without a partner are counted. Cost: one table look-up per mark.
//! ALGORITHMS.md section 6.1.

use super::functions::{self, CalledFunction};
use crate::base::notice::{Notice, Notices};
use crate::base::time::{Span, Timestamp};
use crate::event::host::HostId;
use crate::event::task::{self, TaskDefinition};
use crate::reading::tasks;
use crate::timeline::questions::Asker;
use crate::timeline::reader::RowReader;
use crate::timeline::{MarkRow, ThreadId, Timeline};
use foldhash::HashMap;
use std::collections::BTreeSet;
use std::sync::Arc;

/// One execution, by its two marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execution {
    /// First to last event.
    pub span: Span,
    /// The thread of the end event: its delays delayed the end.
    pub thread: ThreadId,
    /// The number of the mark that began it.
    pub begin: u32,
    /// The number of the mark that ended it.
    pub end: u32,
}

impl Execution {
    /// The last moment inside: the end may be an exec, from which on the thread has another name.
    pub fn last_moment(&self) -> Timestamp {
        self.span.last_moment()
    }
}

/// How begins are paired with ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PairingRule {
    /// A key means something within its process only (descriptors).
    pub within_process: bool,
    /// A second begin opens an inner execution; else it restarts the outer.
    pub nest: bool,
    /// Executions lie between two system calls and pair on their thread, without a key, and every event that could end
    /// one does.
    pub each: bool,
    /// The marks are entries and exits of functions: only calls of these count.
    pub called: Option<BTreeSet<CalledFunction>>,
    /// Only executions that end on these threads count; `None`: those of all.
    pub threads: Option<Arc<BTreeSet<ThreadId>>>,
}

impl PairingRule {
    /// The rule of a task.
    pub fn of(task: &TaskDefinition) -> PairingRule {
        let unkeyed = task.begins.iter().chain(&task.ends).all(|d| d.key.is_empty());
        let each = unkeyed && task.ends.iter().all(|d| d.conditions.is_empty());
        PairingRule {
            within_process: task.pairing == task::Pairing::ProcessKey,
            nest: task.nest,
            each: each && task.pairing == task::Pairing::Thread && !task.nest && tasks::is_between_calls(task),
            called: None,
            threads: None,
        }
    }

    fn is_meant(&self, execution: &Execution) -> bool {
        self.threads.as_ref().is_none_or(|threads| threads.contains(&execution.thread))
    }
}

/// The property that a begin and its end have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Pairing {
    Thread(ThreadId),
    Key(HostId, i64),
    ProcessKey(HostId, i32, i64),
}

/// The marks of each of `tasks` tasks, in order, in one walk for all of them.
pub fn by_task(timeline: &Timeline, tasks: usize) -> Vec<Vec<MarkRow>> {
    let mut marks = vec![Vec::new(); tasks];
    for mark in timeline.reader(Asker::Executions).marks() {
        if let Some(of_task) = marks.get_mut(mark.task as usize) {
            of_task.push(mark);
        }
    }
    marks
}

/// The positions of the marks of each task, so that the executions of many tasks can be found one after the other.
#[derive(Clone, Debug, Default)]
pub struct MarksByTask {
    positions: Vec<Vec<u32>>,
    /// The number of marks at that time; tasks may be added to a timeline later.
    marks: usize,
}

impl MarksByTask {
    /// One walk over the marks of a timeline.
    pub fn new(timeline: &Timeline) -> MarksByTask {
        let reader = timeline.reader(Asker::Executions);
        let (mut positions, marks) = (Vec::<Vec<u32>>::new(), reader.mark_count());
        for mark in reader.marks() {
            let task = mark.task as usize;
            // Tasks beyond the number of marks come from damage: no question names them.
            if task >= positions.len() && task < marks {
                positions.resize_with(task + 1, Vec::new);
            }
            if let Some(of_task) = positions.get_mut(task) {
                of_task.push(mark.number);
            }
        }
        MarksByTask { positions, marks }
    }

    /// The most executions that the marks of a task can delimit.
    pub fn most_executions(&self, task: usize) -> usize {
        self.positions.get(task).map_or(0, Vec::len) / 2
    }

    /// As [`pair`], without a walk over the marks of other tasks.
    pub fn pair(&self, timeline: &Timeline, task: u32, rule: &PairingRule, notices: &mut Notices) -> Vec<Execution> {
        let reader = timeline.reader(Asker::Executions);
        let known = self.positions.get(task as usize).filter(|_| self.marks == reader.mark_count());
        match known {
            Some(positions) if rule.called.is_none() => {
                let marks = positions.iter().filter_map(|at| reader.mark(*at));
                pair_marks(timeline, marks, rule, notices)
            }
            _ => pair(timeline, task, rule, notices),
        }
    }
}

/// Pair the marks of one task. Marks of unknown threads take no part; the pass has counted them. Ends without a begin
/// give a notice, except those of descriptors: most descriptors that are closed were never accepted.
pub fn pair(timeline: &Timeline, task: u32, rule: &PairingRule, notices: &mut Notices) -> Vec<Execution> {
    if let Some(wanted) = &rule.called {
        let is_wanted = |e: &Execution| {
            timeline
                .mark(e.begin)
                .and_then(|begin| functions::called(timeline, begin))
                .is_some_and(|f| wanted.contains(&f))
        };
        let mut calls = functions::pair(timeline, task, notices);
        calls.retain(|call| is_wanted(call) && rule.is_meant(call));
        return calls;
    }
    let reader = timeline.reader(Asker::Executions);
    pair_marks(timeline, reader.marks().filter(|m| m.task == task), rule, notices)
}

/// Pair these marks of one task, which are not calls of functions.
pub fn pair_marks(
    timeline: &Timeline,
    marks: impl Iterator<Item = MarkRow>,
    rule: &PairingRule,
    notices: &mut Notices,
) -> Vec<Execution> {
    let mut open: HashMap<Pairing, Vec<MarkRow>> = HashMap::default();
    let mut executions = Vec::new();
    let reader = timeline.reader(Asker::Executions);
    for mark in marks {
        let Some(thread) = mark.thread else { continue };
        let Some((host, pid)) = timeline.thread(thread).map(|t| (t.host, t.pid)) else { continue };
        let pairing = match mark.key {
            None => Pairing::Thread(thread),
            Some(key) if rule.within_process => Pairing::ProcessKey(host, pid, key),
            Some(key) => Pairing::Key(host, key),
        };
        let place = || place(timeline, &mark);
        if mark.begins {
            let begun = open.entry(pairing).or_default();
            if !rule.nest && !begun.is_empty() {
                begun.clear();
                notices.add(Notice::Restarted, 1, place);
            }
            begun.push(mark);
            continue;
        }
        let begin = open.get_mut(&pairing).and_then(Vec::pop);
        // Keys need not come again: there may be one for each execution.
        if mark.key.is_some() && open.get(&pairing).is_some_and(Vec::is_empty) {
            open.remove(&pairing);
        }
        match begin {
            Some(begin) if begin.time <= mark.time => {
                let span = Span::new(begin.time, mark.time);
                let execution = Execution { span, thread, begin: begin.number, end: mark.number };
                if rule.each && begin.thread == mark.thread && spans_lost(&reader, &execution) {
                    notices.add(Notice::DelimitersLost, 1, place)
                } else {
                    executions.push(execution)
                }
            }
            Some(_) => notices.add(Notice::ClockSkew, 1, place),
            None if rule.within_process => {}
            None => notices.add(Notice::EndWithoutBegin, 1, place),
        }
    }
    // The table is unordered: the thread decides between two that began at once.
    let first = open.values().flatten().min_by_key(|m| (m.time, m.thread, m.key));
    let unfinished = open.values().map(|begun| begun.len() as u64).sum();
    notices.add(Notice::Unfinished, unfinished, || first.map_or_else(String::new, |m| place(timeline, m)));
    executions.retain(|execution| rule.is_meant(execution));
    // Ends come in order: a stable sort would be the same, and take more memory.
    executions.sort_unstable_by_key(|e| (e.span.start, e.span.end, e.thread, e.end));
    executions
}

/// True where an end and the next begin in between were lost, so that the pair spans two executions or more. This shows
/// where the exit of a call begins an execution, or the entry of a call ends it: in between the thread made another
/// call of that name, whose exit or entry was not recorded and would have ended one execution and begun another.
fn spans_lost(reader: &RowReader<'_>, execution: &Execution) -> bool {
    let Span { start, end } = execution.span;
    let mut calls = reader.calls(execution.thread);
    let begun_by = calls.last_begun(start.saturating_sub(1));
    let begun_by = begun_by.filter(|call| call.span.end == start && call.ret.is_some());
    let ended_by = calls.first_from(end).filter(|call| call.span.start == end);
    calls.begun_in(execution.span).any(|call| {
        begun_by.is_some_and(|b| b.name == call.name && call.ret.is_none())
            || ended_by.is_some_and(|e| e.name == call.name)
    })
}

/// The time over which all CPUs of a host were recorded; `None` without a kernel trace.
pub fn recorded(timeline: &Timeline, host: HostId) -> Option<Span> {
    // By host.
    let at = timeline.covered().binary_search_by_key(&host, |covered| covered.host).ok()?;
    timeline.covered().get(at).map(|covered| covered.span)
}

/// Leave out executions that extend beyond the time that the kernel trace of their host covers, because their waits are
/// unknown. Where that would leave none, all stay.
pub fn covered(timeline: &Timeline, all: Vec<Execution>, notices: &mut Notices) -> Vec<Execution> {
    let inside = |e: &Execution| {
        let covered = timeline.thread(e.thread).and_then(|thread| recorded(timeline, thread.host));
        covered.is_none_or(|span| span.start <= e.span.start && e.span.end <= span.end)
    };
    let outside = all.iter().filter(|e| !inside(e)).count();
    if outside == all.len() {
        return all;
    }
    let first = || all.iter().find(|e| !inside(e)).map_or_else(String::new, |e| begun_at(timeline, e));
    notices.add(Notice::Uncovered, outside as u64, first);
    all.into_iter().filter(inside).collect()
}

/// The begin of an execution in words.
fn begun_at(timeline: &Timeline, execution: &Execution) -> String {
    timeline.mark(execution.begin).map_or_else(String::new, |begin| place(timeline, &begin))
}

/// A mark in words: thread and time since the recording began.
fn place(timeline: &Timeline, mark: &MarkRow) -> String {
    let tid = mark.thread.and_then(|t| timeline.thread(t)).map_or(-1, |t| t.tid);
    let since = mark.time.since(timeline.span().start);
    format!("thread {tid}, {}.{:09} s after the first event", since / 1_000_000_000, since % 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::timeline_builder::TimelineBuilder;
    use crate::base::time::Ns;
    use crate::event::task::Delimiter;
    use crate::timeline::{Call, HostCoverage, ThreadDraft};

    type Marks<'a> = &'a [(Ns, bool, usize, Option<i64>)];

    /// Executions as (start, end, thread), and how many restarted, had no begin, had no end.
    fn pairs(marks: Marks<'_>, nest: bool) -> (Vec<(Ns, Ns, u32)>, [u64; 3]) {
        let mut builder = TimelineBuilder::new(2);
        for (time, begins, thread, key) in marks {
            builder.mark(*time, *begins, *thread, *key);
        }
        let mut notices = Notices::default();
        let timeline = builder.sealed();
        let found = pair(&timeline, 0, &PairingRule { nest, ..PairingRule::default() }, &mut notices);
        let counts = [Notice::Restarted, Notice::EndWithoutBegin, Notice::Unfinished].map(|n| notices.count(n));
        (found.iter().map(|e| (e.span.start.ns(), e.span.end.ns(), e.thread.raw() + 1)).collect(), counts)
    }

    #[test]
    fn pair_restarts_or_nests_at_a_second_begin() {
        let marks = [(1, true, 1, None), (2, true, 1, None), (3, false, 1, None), (5, false, 1, None)];
        assert_eq!(pairs(&marks, false), (vec![(2, 3, 1)], [1, 1, 0]));
        assert_eq!(pairs(&marks, true), (vec![(1, 5, 1), (2, 3, 1)], [0, 0, 0]));
    }

    #[test]
    fn pair_matches_descriptors_within_their_process() {
        let mut builder = TimelineBuilder::new(2);
        for ThreadDraft { thread, .. } in &mut builder.0.threads {
            thread.pid = thread.tid;
        }
        builder.mark(1, true, 1, Some(5)).mark(2, true, 2, Some(5)).mark(3, false, 1, Some(5)).mark(
            6,
            false,
            2,
            Some(5),
        );
        builder.mark(7, false, 2, Some(9));
        let mut notices = Notices::default();
        let rule = PairingRule { within_process: true, ..PairingRule::default() };
        let timeline = builder.sealed();
        let found = pair(&timeline, 0, &rule, &mut notices);
        assert_eq!(found.iter().map(|e| (e.span.start.ns(), e.span.end.ns())).collect::<Vec<_>>(), [(1, 3), (2, 6)]);
        assert!(notices.is_empty());
    }

    /// `accept` ends at 10, which begins one; `shutdown` begins at 90, which ends it; between the two another call.
    #[test]
    fn pair_drops_an_execution_over_a_lost_end_and_begin() {
        let found = |name: &str, ret: Option<i64>, each: bool| {
            let mut builder = TimelineBuilder::new(1);
            let mut call = |name: &str, start: Ns, end: Ns, ret: Option<i64>| {
                let name = builder.0.tables.names.intern(name);
                builder.0.threads[0].rows.calls.push(Call {
                    span: Span::of_ns(start, end),
                    name,
                    ret,
                    descriptor: None,
                });
            };
            call("accept", 2, 10, Some(5));
            call(name, 40, 50, ret);
            call("shutdown", 90, 95, Some(0));
            builder.mark(10, true, 1, None).mark(90, false, 1, None);
            let mut notices = Notices::default();
            let found =
                pair(&builder.sealed(), 0, &PairingRule { each, ..PairingRule::default() }, &mut notices).len() as u64;
            assert_eq!(found + notices.count(Notice::DelimitersLost), 1);
            found == 1
        };
        assert!(found("read", None, true) && found("read", Some(1), true));
        assert!(!found("accept", None, true), "its exit would have begun one");
        assert!(!found("shutdown", Some(0), true), "its entry would have ended it");
        assert!(found("accept", None, false), "with a key not each call delimits");
    }

    #[test]
    fn only_executions_between_calls_can_span_a_lost_end_and_begin() {
        let side = |event: &str| vec![Delimiter { event: event.to_owned(), key: Vec::new(), conditions: Vec::new() }];
        let each = |begin: &str, end: &str| {
            let (begins, ends, pairing) = (side(begin), side(end), task::Pairing::Thread);
            let (name, kind, process) = (String::new(), None, None);
            let task = TaskDefinition { name, begins, ends, pairing, kind, nest: false, process };
            PairingRule::of(&task).each
        };
        assert!(each("syscall_exit_accept", "syscall_entry_shutdown"));
        assert!(each("app:begin", "syscalls:sys_enter_shutdown"));
        assert!(!each("syscall_entry_read", "syscall_exit_read"), "an execution is one call");
        assert!(!each("app:begin", "app:end"));
    }

    #[test]
    fn covered_leaves_out_executions_outside_the_kernel_trace_unless_all_are() {
        let mut builder = TimelineBuilder::new(1);
        builder.mark(1, true, 1, None).mark(4, false, 1, None).mark(6, true, 1, None).mark(9, false, 1, None);
        let mut notices = Notices::default();
        let timeline = builder.sealed();
        let all = pair(&timeline, 0, &PairingRule { nest: true, ..PairingRule::default() }, &mut notices);
        for (until, kept, notice_count) in [(9, 2, 0), (8, 1, 1), (3, 2, 0)] {
            let mut draft = builder.0.clone();
            draft.tables.covered = vec![HostCoverage { host: HostId::at(0), span: Span::of_ns(0, until) }];
            let mut notices = Notices::default();
            assert_eq!(covered(&draft.seal(), all.clone(), &mut notices).len(), kept);
            assert_eq!(notices.count(Notice::Uncovered), notice_count);
        }
    }

    #[test]
    fn pair_matches_keys_across_threads_and_gives_the_thread_of_the_end() {
        let marks = [(1, true, 1, Some(7)), (2, true, 1, Some(8)), (4, false, 2, Some(7)), (6, false, 2, Some(9))];
        assert_eq!(pairs(&marks, false), (vec![(1, 4, 2)], [0, 1, 1]));
        let by_thread = [(1, true, 1, None), (2, true, 2, None), (4, false, 2, None), (4, false, 1, None)];
        assert_eq!(pairs(&by_thread, false), (vec![(1, 4, 1), (2, 4, 2)], [0, 0, 0]));
    }
}
