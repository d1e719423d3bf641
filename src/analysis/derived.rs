//! Begins and ends of tasks that no event delimits, derived from the states of threads.
//!
//! In: a timeline and a definition. Out: marks in the timeline, so that all later steps work as for tasks that events
//! delimit. [`iterations`] marks the iterations between waits; this file marks system calls, whole processes and
//! threads. A process runs from its exec to its exit or next exec, under the name that it has in between; a thread runs
//! from its creation to its end. Where no life of the name was recorded completely, the recorded parts count. Cost:
//! linear in threads and calls. ALGORITHMS.md 6.1.

use super::conversations::{self, NoConversation};
use super::iterations::{ExecutionEnd, boundary};
use super::stack_tables::LazyStackTables;
use super::{executions, iterations};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::names::fold_digits;
use crate::base::notice::{Notice, Notices};
use crate::base::time::{Ns, Span, Timestamp};
use crate::event::derived::Derived;
use crate::event::host::HostId;
use crate::event::image::ImageChange;
use crate::symbols::files::SymbolPaths;
use crate::timeline::questions::Asker;
use crate::timeline::store::marks::MarkStore;
use crate::timeline::{DerivedField, Mark, MarkField, SegmentKind, Thread, ThreadId, ThreadName, Timeline};
use std::collections::{BTreeMap, BTreeSet};

/// Names of programs that record: their activity is not part of the machine's work.
const TRACERS: [&str; 6] = ["lttng", "perf", "trace-cmd", "bpftrace", "strace", "babeltrace2"];

/// True for the name of a program that records, and of its threads. LTTng has some inside traced programs, named
/// after the program with `-ust` at the end.
fn is_tracer(name: &str) -> bool {
    name.starts_with("lttng-") || name.ends_with("-ust") || TRACERS.contains(&name)
}

/// Calls of the tracer that are worth a note.
const MANY_CALLS: usize = 100;

/// The name that `perf` gives the process of the recorded command until the command begins.
const ABOUT_TO_EXEC: &str = "perf-exec";

/// True where the last name of a thread is a tracer's: the command that a tracer runs has such a name only until it
/// begins.
fn ends_as_tracer(timeline: &Timeline, thread: &Thread) -> bool {
    thread.names.last().is_some_and(|last| is_tracer(timeline.names().get(last.name)))
}

/// The threads of the tracers' processes.
pub fn tracers(timeline: &Timeline) -> BTreeSet<ThreadId> {
    let named = |thread: &Thread| ends_as_tracer(timeline, thread);
    let leads = |thread: &&Thread| thread.tid == thread.pid && named(thread);
    let processes: BTreeSet<_> = timeline.threads().iter().filter(leads).map(|t| (t.host, t.pid)).collect();
    let all = timeline.threads().iter().enumerate().filter(|(_, t)| !t.idle);
    all.filter(|(_, t)| named(t) || processes.contains(&(t.host, t.pid))).map(|(at, _)| ThreadId::at(at)).collect()
}

/// Note that most of the recorded system calls are the tracer's own: it records its own writes.
pub fn note_tracer(timeline: &Timeline, notices: &mut Notices) {
    let reader = timeline.reader(Asker::Tasks);
    let calls = |id: ThreadId| reader.calls(id).len();
    let own: usize = tracers(timeline).into_iter().map(calls).sum();
    let all: usize = timeline.threads_by_id().map(|(id, _)| calls(id)).sum();
    if own >= MANY_CALLS && own > all / 2 {
        notices.add(Notice::TracerBusy, own as u64, String::new);
    }
}

/// The name of this program, which begins COMMAND itself and has its recorder run one that only waits.
const OWN: &str = "whyslow";

/// The threads of the command that the tracer ran, and of all its descendants. The command is a process that had the
/// tracer's name before its own; none where the tracer ran no command. Another tracer that began during the recording
/// made another one: its command counts only where no other is known. What this program ran goes before what its
/// recorder did.
pub fn commands(timeline: &Timeline) -> BTreeSet<ThreadId> {
    let is_of_tracer = |own: &ThreadName| {
        let name = timeline.names().get(own.name);
        is_tracer(name) || name == ABOUT_TO_EXEC || name == OWN
    };
    let is_whyslow = |own: &ThreadName| timeline.names().get(own.name) == OWN;
    let was_tracer = |thread: &Thread| thread.names.iter().any(is_of_tracer);
    let is_tracer_still =
        |thread: &Thread| thread.names.last().is_some_and(is_whyslow) || ends_as_tracer(timeline, thread);
    let begun = |thread: &&Thread| thread.tid == thread.pid && was_tracer(thread) && !is_tracer_still(thread);
    // The tracer of this recording was there before it.
    let is_older = |thread: &Thread| thread.parent.is_none() && thread.names.first().is_some_and(is_of_tracer);
    let is_own = |thread: &&Thread| {
        is_older(thread) || thread.parent.and_then(|parent| timeline.thread(parent)).is_some_and(is_older)
    };
    let begun: Vec<&Thread> = timeline.threads().iter().filter(begun).collect();
    let own: Vec<&Thread> = begun.iter().copied().filter(|thread| is_own(thread)).collect();
    let begun = if own.is_empty() { begun } else { own };
    let was_whyslow = |thread: &&Thread| thread.names.iter().any(is_whyslow);
    let by_whyslow: Vec<&Thread> = begun.iter().copied().filter(was_whyslow).collect();
    let begun = if by_whyslow.is_empty() { begun } else { by_whyslow };
    let mut processes: BTreeSet<_> = begun.into_iter().map(|t| (t.host, t.pid)).collect();
    // A child may precede its parent in the list of threads.
    while !processes.is_empty() {
        let is_child = |thread: &&Thread| {
            let parent = thread.parent.and_then(|parent| timeline.thread(parent));
            parent.is_some_and(|parent| processes.contains(&(parent.host, parent.pid)))
        };
        let more: Vec<_> = timeline.threads().iter().filter(is_child).map(|t| (t.host, t.pid)).collect();
        let before = processes.len();
        processes.extend(more);
        if processes.len() == before {
            break;
        }
    }
    let all = timeline.threads().iter().enumerate().filter(|(_, t)| !t.idle);
    all.filter(|(_, t)| processes.contains(&(t.host, t.pid))).map(|(at, _)| ThreadId::at(at)).collect()
}

/// Whether a timeline has what a task is about.
#[derive(Clone, Debug)]
pub enum Known {
    /// The timeline has it: its delimiting events, with those of the task.
    Yes(MarkStore),
    /// Nothing has its name.
    No,
    /// No conversation is of it.
    Not(NoConversation),
}

/// The delimiting events of a timeline, with those of the executions of a task; loops may need call stacks.
pub fn marks(
    timeline: &Timeline,
    task: u32,
    derived: &Derived,
    stacks: &LazyStackTables,
    symbol_paths: &SymbolPaths,
    notices: &mut Notices,
    ctx: &Ctx,
) -> Result<Known, Cancelled> {
    let found = match derived {
        Derived::Iterations(waits) => {
            return iterations::marks(timeline, task, waits, stacks, symbol_paths, ctx).map(Known::Yes);
        }
        Derived::Exchanges(conversations) => {
            let marked = conversations::marks(timeline, task, conversations, notices, ctx)?;
            return Ok(marked.map_or_else(Known::Not, Known::Yes));
        }
        Derived::Call(name) => {
            let left_out = tracers(timeline);
            calls(timeline, task, name, &left_out)
        }
        Derived::Process(name) => lives(timeline, task, processes(timeline), name, notices),
        Derived::Thread(name) => lives(timeline, task, threads(timeline), &fold_digits(name), notices),
        Derived::Named(name) => calls(timeline, task, name, &BTreeSet::new())
            .or_else(|| lives(timeline, task, processes(timeline), name, notices)),
    };
    Ok(found.map_or(Known::No, Known::Yes))
}

/// The delimiting events with the system calls of a name, of all threads except `left_out`; `None` where there are
/// none.
fn calls(timeline: &Timeline, task: u32, name: &str, left_out: &BTreeSet<ThreadId>) -> Option<MarkStore> {
    let name = timeline.names().find(name)?;
    let ret = timeline.field_name(DerivedField::Returned);
    let mut found = false;
    let marks = timeline.marks_with(|add| {
        let reader = timeline.reader(Asker::Tasks);
        for (id, _) in timeline.threads_by_id().filter(|(id, _)| !left_out.contains(id)) {
            let mut segments = reader.segments(id);
            for call in reader.calls(id).all().filter(|call| call.name == name) {
                let Some(value) = call.ret else { continue };
                let mut at = |end: ExecutionEnd, t| boundary(timeline, &mut segments, id, task, end, t);
                add(at(ExecutionEnd::Begin, call.span.start));
                let fields = vec![MarkField { name: ret, value }];
                add(Mark { fields, ..at(ExecutionEnd::End, call.span.end) });
                found = true;
            }
        }
    });
    found.then_some(marks)
}

/// The part of a thread's life under one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadLife {
    /// The thread; for a process its first thread.
    pub thread: ThreadId,
    pub span: Span,
    /// Its begin and its end were recorded.
    pub whole: bool,
}

/// Lives by name: of each trace the whole ones; where it has none of a name, the recorded parts of the others.
pub type Lives = BTreeMap<String, Vec<ThreadLife>>;

/// From exec to exit of each process, by the name that it ends with.
pub fn processes(timeline: &Timeline) -> Lives {
    let mut execs: BTreeMap<(u32, i32), Vec<Timestamp>> = BTreeMap::new();
    for image in timeline.images().iter().filter(|i| matches!(i.change, ImageChange::Exec { .. })) {
        execs.entry((image.host.raw(), image.pid)).or_default().push(image.time);
    }
    let mut lives = Lives::new();
    for (at, thread) in timeline.threads().iter().enumerate().filter(|(_, t)| t.tid == t.pid && !t.idle) {
        let begun = execs.get(&(thread.host.raw(), thread.pid)).map_or(&[][..], |times| times);
        let begun: Vec<Timestamp> =
            begun.iter().copied().filter(|t| thread.life.start <= *t && *t < thread.life.end).collect();
        // Before its first exec a process runs its parent's program.
        let forked = begun.first().is_none_or(|first| *first > thread.life.start).then_some(thread.life.start);
        let starts: Vec<Timestamp> = forked.into_iter().chain(begun.iter().copied()).collect();
        for (i, start) in starts.iter().enumerate() {
            let next = starts.get(i + 1).copied();
            let span = Span::new(*start, next.unwrap_or(thread.life.end));
            let has_begun = forked.is_none() || i > 0;
            let has_ended = next.is_some() || thread.life.end < recorded(timeline, thread.host).end;
            let life = ThreadLife { thread: ThreadId::at(at), span, whole: has_begun && has_ended };
            add(&mut lives, timeline, life, str::to_owned);
        }
    }
    lives.values_mut().for_each(|lives| prefer_whole(timeline, lives));
    lives
}

/// As tasks, the commands that ran from exec to exit, and the threads other than the first of their process that lived
/// from creation to end: their durations in ascending order. The tracer's own are left out.
pub fn whole_lives(timeline: &Timeline) -> BTreeMap<String, Vec<Ns>> {
    let left_out = tracers(timeline);
    let is_task = |life: &&ThreadLife| life.whole && !left_out.contains(&life.thread);
    let is_first = |life: &ThreadLife| timeline.thread(life.thread).is_none_or(|t| t.tid == t.pid);
    let durations = |lives: Vec<ThreadLife>, first: bool| {
        let of_tasks = lives.iter().filter(is_task).filter(|life| first || !is_first(life));
        let mut durations: Vec<Ns> = of_tasks.map(|life| life.span.len()).collect();
        durations.sort_unstable();
        durations
    };
    let commands =
        processes(timeline).into_iter().map(|(name, lives)| (Derived::Process(name), durations(lives, true)));
    let others = threads(timeline).into_iter().map(|(name, lives)| (Derived::Thread(name), durations(lives, false)));
    let all = commands.chain(others).filter(|(_, durations)| !durations.is_empty());
    all.map(|(task, durations)| (task.to_string(), durations)).collect()
}

/// From creation to end of each thread, by its name with digits folded.
pub fn threads(timeline: &Timeline) -> Lives {
    let mut lives = Lives::new();
    for (at, thread) in timeline.threads().iter().enumerate().filter(|(_, t)| !t.idle) {
        let whole = thread.parent.is_some() && thread.life.end < recorded(timeline, thread.host).end;
        add(&mut lives, timeline, ThreadLife { thread: ThreadId::at(at), span: thread.life, whole }, fold_digits);
    }
    lives.values_mut().for_each(|lives| prefer_whole(timeline, lives));
    lives
}

/// The time for which a host was recorded.
fn recorded(timeline: &Timeline, host: HostId) -> Span {
    executions::recorded(timeline, host).map_or(timeline.span(), |covered| covered.clip(timeline.span()))
}

/// A life without the time before the first event of a thread whose creation was not recorded: nothing shows that it
/// existed then.
fn known_part(timeline: &Timeline, id: ThreadId, life: Span) -> Span {
    let begins_unseen = timeline.thread(id).is_some_and(|thread| thread.parent.is_none());
    let begin = Span::new(life.start, life.start.saturating_add(1));
    let reader = timeline.reader(Asker::Tasks);
    let first = if begins_unseen { reader.segments(id).within(begin).next() } else { None };
    let unknown = first.filter(|first| first.kind == SegmentKind::Unknown && first.span.contains(life.start));
    unknown.filter(|unknown| unknown.span.end < life.end).map_or(life, |unknown| Span::new(unknown.span.end, life.end))
}

/// Add a life under its last name, as `shown` writes it.
fn add(lives: &mut Lives, timeline: &Timeline, mut life: ThreadLife, shown: impl Fn(&str) -> String) {
    let Some(thread) = timeline.thread(life.thread) else { return };
    life.span = life.span.clip(recorded(timeline, thread.host));
    life.span = known_part(timeline, life.thread, life.span);
    let name = thread.name_at(life.span.last_moment());
    let Some(name) = name.filter(|_| !life.span.is_empty()) else { return };
    lives.entry(shown(timeline.names().get(name))).or_default().push(life);
}

/// Of each trace the whole lives; where it has none of the name, the recorded parts.
fn prefer_whole(timeline: &Timeline, lives: &mut Vec<ThreadLife>) {
    let trace = |life: &ThreadLife| timeline.thread(life.thread).and_then(|thread| timeline.trace_of(thread.host));
    let with_whole: BTreeSet<Option<u32>> = lives.iter().filter(|life| life.whole).map(trace).collect();
    lives.retain(|life| life.whole || !with_whole.contains(&trace(life)));
}

/// The delimiting events with the lives of a name; `None` where there are none.
fn lives(timeline: &Timeline, task: u32, mut lives: Lives, name: &str, notices: &mut Notices) -> Option<MarkStore> {
    let lives = lives.remove(name)?;
    let in_part = lives.iter().filter(|life| !life.whole).count();
    notices.add(Notice::LivesInPart, in_part as u64, String::new);
    Some(timeline.marks_with(|add| {
        let reader = timeline.reader(Asker::Tasks);
        for ThreadLife { thread, span, .. } in lives {
            let mut segments = reader.segments(thread);
            add(boundary(timeline, &mut segments, thread, task, ExecutionEnd::Begin, span.start));
            add(boundary(timeline, &mut segments, thread, task, ExecutionEnd::End, span.end));
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::executions::{PairingRule, pair};
    use crate::analysis::timeline_builder::{HOST, TimelineBuilder};
    use crate::timeline::{ImageEvent, ThreadDraft};

    fn found(builder: &mut TimelineBuilder, derived: Derived) -> Option<Vec<(Ns, Ns, u32)>> {
        builder.0.marks.clear();
        let timeline = builder.sealed();
        let (stacks, paths) = (LazyStackTables::default(), SymbolPaths::default());
        let mut notices = Notices::default();
        let known = marks(&timeline, 0, &derived, &stacks, &paths, &mut notices, &Ctx::new(1)).unwrap();
        let Known::Yes(marks) = known else { return None };
        let timeline = timeline.delimited_by(marks);
        let all = pair(&timeline, 0, &PairingRule::default(), &mut notices);
        assert!(notices.iter().all(|(notice, _)| notice == Notice::LivesInPart));
        Some(all.iter().map(|e| (e.span.start.ns(), e.span.end.ns(), e.thread.raw() + 1)).collect())
    }

    fn named(name: &str) -> Derived {
        Derived::Named(name.to_owned())
    }

    #[test]
    fn mark_leaves_out_calls_of_tracers_unless_the_task_is_named() {
        let mut builder = TimelineBuilder::new(2);
        builder.silent_call(1, 5, 9).silent_call(2, 6, 8).silent_call(2, 20, 30);
        builder.0.threads[1].rows.calls[1].ret = None;
        assert_eq!(found(&mut builder, named("call")), Some(vec![(5, 9, 1), (6, 8, 2)]));
        let name = builder.0.tables.names.intern("lttng-consumerd");
        builder.0.threads[1].thread.names = vec![ThreadName { from: Timestamp::ZERO, name }];
        assert_eq!(found(&mut builder, Derived::Call("call".to_owned())), Some(vec![(5, 9, 1)]));
        assert_eq!(found(&mut builder, named("call")), Some(vec![(5, 9, 1), (6, 8, 2)]));
        assert_eq!(found(&mut builder, named("other")), None);
    }

    #[test]
    fn commands_are_those_of_the_tracer_that_was_there_before() {
        // A perf of the recording with its command; a shell that becomes another perf, and the command of that one.
        let mut builder = TimelineBuilder::new(4);
        let threads: [(&[&str], Option<usize>); 4] = [
            (&["perf"], None),
            (&["perf-exec", "load"], Some(0)),
            (&["bash", "perf"], None),
            (&["perf", "app"], Some(2)),
        ];
        for (at, (names, parent)) in threads.into_iter().enumerate() {
            let named = |(since, name): (Ns, &&str)| ThreadName {
                from: Timestamp::new(since),
                name: builder.0.tables.names.intern(name),
            };
            let names = (0..).zip(names).map(named).collect();
            let thread = &mut builder.0.threads[at].thread;
            (thread.names, thread.parent, thread.pid) = (names, parent.map(ThreadId::at), thread.tid);
        }
        let of = |builder: &TimelineBuilder| commands(&builder.sealed()).into_iter().collect::<Vec<_>>();
        assert_eq!(of(&builder), [ThreadId::at(1)]);
        // A whyslow begins the command itself; what its perf runs only waits.
        for (at, name) in [(2, "whyslow"), (3, "whyslow")] {
            builder.0.threads[at].thread.names[0].name = builder.0.tables.names.intern(name);
        }
        builder.0.threads[2].thread.names.truncate(1);
        assert_eq!(of(&builder), [ThreadId::at(3)]);
        // One that explains runs no command.
        builder.0.threads[3].thread.names.truncate(1);
        assert_eq!(of(&builder), [ThreadId::at(1)]);
        for (at, names) in [(2, &["bash", "perf"][..]), (3, &["perf", "app"])] {
            let named = |name: &&str| builder.0.tables.names.intern(name);
            let names: Vec<_> = names.iter().map(named).collect();
            let since = (0..).map(Timestamp::new);
            builder.0.threads[at].thread.names =
                since.zip(names).map(|(from, name)| ThreadName { from, name }).collect();
        }
        // Where the tracer of the recording ran no command, that of the other one is all there is.
        builder.0.threads[1].thread.names.truncate(1);
        builder.0.threads[1].thread.names[0].name = builder.0.tables.names.intern("perf");
        assert_eq!(of(&builder), [ThreadId::at(3)]);
    }

    #[test]
    fn process_runs_from_its_exec_to_its_exit_under_its_last_name() {
        let mut builder = TimelineBuilder::new(3);
        let (shell, dd) = (builder.0.tables.names.intern("sh"), builder.0.tables.names.intern("dd"));
        let path = builder.0.tables.names.intern("/bin/dd");
        for (at, ThreadDraft { thread, .. }) in builder.0.threads.iter_mut().enumerate() {
            thread.pid = thread.tid;
            thread.names = vec![
                ThreadName { from: Timestamp::ZERO, name: shell },
                ThreadName { from: Timestamp::new(100 + at as Ns), name: dd },
            ];
            thread.life = Span::of_ns(50, 600 + at as Ns);
        }
        builder.0.threads[2].thread.names = vec![ThreadName { from: Timestamp::ZERO, name: shell }];
        builder.0.threads[2].thread.life = builder.0.tables.span;
        for pid in [1, 2] {
            let change = ImageChange::Exec { path };
            builder.0.tables.images.push(ImageEvent {
                time: Timestamp::new(90 + Ns::from(pid)),
                host: HOST,
                pid,
                change,
            });
        }
        builder.segment(1, 50, 600, SegmentKind::Running, 0);
        assert_eq!(found(&mut builder, Derived::Process("dd".to_owned())), Some(vec![(91, 600, 1), (92, 601, 2)]));
        // No shell was recorded from exec to exit: the recorded parts count.
        let before = vec![(0, 1000, 3), (50, 91, 1), (50, 92, 2)];
        assert_eq!(found(&mut builder, Derived::Process("sh".to_owned())), Some(before));
        assert_eq!(found(&mut builder, named("dd")).map(|all| all.len()), Some(2));
    }

    #[test]
    fn thread_task_matches_names_with_digits_folded() {
        let mut builder = TimelineBuilder::new(2);
        for (at, ThreadDraft { thread, .. }) in builder.0.threads.iter_mut().enumerate() {
            thread.life = Span::of_ns(10, 500);
            thread.parent = (at == 0).then_some(ThreadId::at(1));
            thread.names =
                vec![ThreadName { from: Timestamp::ZERO, name: builder.0.tables.names.intern(&format!("job-{at}")) }];
        }
        assert_eq!(found(&mut builder, Derived::Thread("job-7".to_owned())), Some(vec![(10, 500, 1)]));
        builder.0.threads[0].thread.parent = None;
        assert_eq!(found(&mut builder, Derived::Thread("job-*".to_owned())).map(|all| all.len()), Some(2));
    }
}
