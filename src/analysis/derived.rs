//! Begins and ends of tasks that no event delimits, found in what threads did.
//!
//! In: a recording and a definition. Out: marks in the recording, so that everything after works as for tasks that
//! events delimit. Turns between waits stand in [`turns`]; here are system calls, whole processes and threads. A
//! process runs from its exec to its exit or next exec, under the name that it has in between; a thread from its birth
//! to its end. Where no whole life of the name was recorded, what is known of the lives counts. Cost: linear in threads
//! and calls. ALGORITHMS.md 6.1.

use super::symbols::files::SymbolPaths;
use super::turns::{self, boundary};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::names::fold_digits;
use crate::base::time::{Ns, Span};
use crate::event::derived::Derived;
use crate::state::timeline::{ImageChange, Mark, Thread, ThreadId, Timeline};
use std::collections::{BTreeMap, BTreeSet};

/// How the programs are called that record: what they do is no trouble of the machine's.
const TRACERS: [&str; 6] = ["lttng", "perf", "trace-cmd", "bpftrace", "strace", "babeltrace2"];

/// True for the name of a program that records, and of its threads: inside of traced programs LTTng has some that are
/// called after these.
fn is_tracers(name: &str) -> bool {
    name.starts_with("lttng-") || name.ends_with("-ust") || TRACERS.contains(&name)
}

/// What `perf` calls the process in which it runs the command that it records, until that has begun.
const ABOUT_TO_EXEC: &str = "perf-exec";

/// It is called after a tracer, in the end: the command that a tracer runs bears its name only until it begins.
fn ends_as_tracers(timeline: &Timeline, thread: &Thread) -> bool {
    thread.names.last().is_some_and(|(_, name)| is_tracers(timeline.names.get(*name)))
}

/// The threads of the tracers' processes.
pub fn tracers(timeline: &Timeline) -> BTreeSet<ThreadId> {
    let named = |thread: &Thread| ends_as_tracers(timeline, thread);
    let leads = |thread: &&Thread| thread.tid == thread.pid && named(thread);
    let processes: BTreeSet<_> = timeline.threads.iter().filter(leads).map(|t| (t.host, t.pid)).collect();
    let all = timeline.threads.iter().enumerate().filter(|(_, t)| !t.idle);
    all.filter(|(_, t)| named(t) || processes.contains(&(t.host, t.pid))).map(|(at, _)| ThreadId::at(at)).collect()
}

/// The threads of the command that a tracer was told to record, and of all that it made: a process that had the
/// tracer's name before its own. None where the tracer ran no command.
pub fn commands(timeline: &Timeline) -> BTreeSet<ThreadId> {
    let was_tracers = |thread: &Thread| {
        let name = |name| timeline.names.get(name);
        thread.names.iter().any(|(_, n)| is_tracers(name(*n)) || name(*n) == ABOUT_TO_EXEC)
    };
    let begun =
        |thread: &&Thread| thread.tid == thread.pid && was_tracers(thread) && !ends_as_tracers(timeline, thread);
    let mut processes: BTreeSet<_> = timeline.threads.iter().filter(begun).map(|t| (t.host, t.pid)).collect();
    // A process is made after the one that made it, but may stand before it in the list.
    while !processes.is_empty() {
        let made_by = |thread: &&Thread| {
            let parent = thread.parent.and_then(|parent| timeline.thread(parent));
            parent.is_some_and(|parent| processes.contains(&(parent.host, parent.pid)))
        };
        let more: Vec<_> = timeline.threads.iter().filter(made_by).map(|t| (t.host, t.pid)).collect();
        let before = processes.len();
        processes.extend(more);
        if processes.len() == before {
            break;
        }
    }
    let all = timeline.threads.iter().enumerate().filter(|(_, t)| !t.idle);
    all.filter(|(_, t)| processes.contains(&(t.host, t.pid))).map(|(at, _)| ThreadId::at(at)).collect()
}

/// Mark the executions of a task. False where nothing in the recording has its name.
pub fn mark(
    timeline: &mut Timeline,
    task: u32,
    derived: &Derived,
    places: &SymbolPaths,
    ctx: &Ctx,
) -> Result<bool, Cancelled> {
    let known = match derived {
        Derived::Turn(turn) => return turns::mark(timeline, task, turn, places, ctx).map(|()| true),
        Derived::Call(name) => {
            let left_out = tracers(timeline);
            calls(timeline, task, name, &left_out)
        }
        Derived::Process(name) => mark_lives(timeline, task, processes(timeline), name),
        Derived::Thread(name) => mark_lives(timeline, task, threads(timeline), &fold_digits(name)),
        Derived::Named(name) => {
            calls(timeline, task, name, &BTreeSet::new()) || mark_lives(timeline, task, processes(timeline), name)
        }
    };
    Ok(known)
}

/// The system calls of a name, of all threads but some.
fn calls(timeline: &mut Timeline, task: u32, name: &str, left_out: &BTreeSet<ThreadId>) -> bool {
    let Some(name) = timeline.names.find(name) else { return false };
    let mut found: Vec<(ThreadId, Span, i64)> = Vec::new();
    let threads = timeline.threads.iter().enumerate().map(|(at, thread)| (ThreadId::at(at), thread));
    for (id, thread) in threads.filter(|(id, _)| !left_out.contains(id)) {
        let ended = thread.calls.iter().filter(|call| call.name == name);
        found.extend(ended.filter_map(|call| Some((id, call.span, call.ret?))));
    }
    let ret = timeline.names.intern("ret");
    for (id, span, value) in &found {
        let end = Mark { fields: vec![(ret, *value)], ..boundary(timeline, *id, task, span.end, false) };
        timeline.marks.extend([boundary(timeline, *id, task, span.start, true), end]);
    }
    !found.is_empty()
}

/// A stretch of a thread's life under one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadLife {
    /// The thread; of a process the first.
    pub thread: ThreadId,
    /// When.
    pub span: Span,
    /// Its begin and its end were recorded.
    pub whole: bool,
}

/// Lives by name: the whole ones, and for names that have none what is known of the others.
pub type Lives = BTreeMap<String, Vec<ThreadLife>>;

/// From exec to exit of each process, by the name that it ends with.
pub fn processes(timeline: &Timeline) -> Lives {
    let mut execs: BTreeMap<(u32, i32), Vec<Ns>> = BTreeMap::new();
    for image in timeline.images.iter().filter(|i| matches!(i.change, ImageChange::Exec { .. })) {
        execs.entry((image.host.raw(), image.pid)).or_default().push(image.time);
    }
    let mut lives = Lives::new();
    for (at, thread) in timeline.threads.iter().enumerate().filter(|(_, t)| t.tid == t.pid && !t.idle) {
        let begun = execs.get(&(thread.host.raw(), thread.pid)).map_or(&[][..], |times| times);
        let begun: Vec<Ns> =
            begun.iter().copied().filter(|t| thread.life.start <= *t && *t < thread.life.end).collect();
        // Before its first exec it is its parent's program.
        let starts = begun.first().is_none_or(|first| *first > thread.life.start).then_some(thread.life.start);
        let mut bounds: Vec<(Ns, bool)> = starts.into_iter().map(|t| (t, false)).collect();
        bounds.extend(begun.iter().map(|t| (*t, true)));
        for (i, (from, seen)) in bounds.iter().enumerate() {
            let next = bounds.get(i + 1).map(|(t, _)| *t);
            let span = Span::new(*from, next.unwrap_or(thread.life.end));
            let ended = next.is_some() || thread.life.end < timeline.span.end;
            add(
                &mut lives,
                timeline,
                thread,
                ThreadLife { thread: ThreadId::at(at), span, whole: *seen && ended },
                false,
            );
        }
    }
    lives.values_mut().for_each(prefer_whole);
    lives
}

/// The commands that ran from exec to exit, and the threads that lived from birth to end beside the first of their
/// process, as tasks: how long each took, ascending. The tracer's own are left out.
pub fn whole_lives(timeline: &Timeline) -> BTreeMap<String, Vec<Ns>> {
    let left_out = tracers(timeline);
    let is_users = |life: &&ThreadLife| life.whole && !left_out.contains(&life.thread);
    let is_first = |life: &ThreadLife| timeline.thread(life.thread).is_none_or(|t| t.tid == t.pid);
    let durations = |lives: Vec<ThreadLife>, first: bool| {
        let of_tasks = lives.iter().filter(is_users).filter(|life| first || !is_first(life));
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

/// From birth to end of each thread, by its name with digits folded.
pub fn threads(timeline: &Timeline) -> Lives {
    let mut lives = Lives::new();
    for (at, thread) in timeline.threads.iter().enumerate().filter(|(_, t)| !t.idle) {
        let whole = thread.parent.is_some() && thread.life.end < timeline.span.end;
        add(&mut lives, timeline, thread, ThreadLife { thread: ThreadId::at(at), span: thread.life, whole }, true);
    }
    lives.values_mut().for_each(prefer_whole);
    lives
}

fn add(lives: &mut Lives, timeline: &Timeline, thread: &Thread, mut life: ThreadLife, folded: bool) {
    life.span = life.span.clip(timeline.span);
    let last = life.span.end.saturating_sub(1).max(life.span.start);
    let Some(name) = thread.name_at(last).filter(|_| !life.span.is_empty()) else { return };
    let name = timeline.names.get(name);
    lives.entry(if folded { fold_digits(name) } else { name.to_owned() }).or_default().push(life);
}

fn prefer_whole(lives: &mut Vec<ThreadLife>) {
    if lives.iter().any(|life| life.whole) {
        lives.retain(|life| life.whole);
    }
}

fn mark_lives(timeline: &mut Timeline, task: u32, mut lives: Lives, name: &str) -> bool {
    let Some(lives) = lives.remove(name) else { return false };
    for life in lives {
        let (from, to) = (life.span.start, life.span.end);
        let marks = [(from, true), (to, false)].map(|(t, begins)| boundary(timeline, life.thread, task, t, begins));
        timeline.marks.extend(marks);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::executions::{PairingRule, pair};
    use crate::analysis::timeline_builder::{HOST, TimelineBuilder};
    use crate::base::notice::Notices;
    use crate::state::timeline::{ImageEvent, SegmentKind};

    fn found(builder: &mut TimelineBuilder, derived: Derived) -> Option<Vec<(Ns, Ns, u32)>> {
        builder.0.marks.clear();
        let known = mark(&mut builder.0, 0, &derived, &SymbolPaths::default(), &Ctx::new(1)).unwrap();
        let mut notices = Notices::default();
        let all = pair(&builder.0, 0, &PairingRule::default(), &mut notices);
        assert!(notices.is_empty());
        known.then(|| all.iter().map(|e| (e.span.start, e.span.end, e.thread.raw() + 1)).collect())
    }

    fn named(name: &str) -> Derived {
        Derived::Named(name.to_owned())
    }

    #[test]
    fn calls_of_tracers_are_left_out_unless_asked_for() {
        let mut builder = TimelineBuilder::new(2);
        builder.silent_call(1, 5, 9).silent_call(2, 6, 8).silent_call(2, 20, 30);
        builder.0.threads[1].calls[1].ret = None;
        assert_eq!(found(&mut builder, named("call")), Some(vec![(5, 9, 1), (6, 8, 2)]));
        let name = builder.0.names.intern("lttng-consumerd");
        builder.0.threads[1].names = vec![(0, name)];
        assert_eq!(found(&mut builder, Derived::Call("call".to_owned())), Some(vec![(5, 9, 1)]));
        assert_eq!(found(&mut builder, named("call")), Some(vec![(5, 9, 1), (6, 8, 2)]));
        assert_eq!(found(&mut builder, named("other")), None);
    }

    #[test]
    fn a_process_runs_from_its_exec_to_its_exit_under_its_last_name() {
        let mut builder = TimelineBuilder::new(3);
        let (shell, dd) = (builder.0.names.intern("sh"), builder.0.names.intern("dd"));
        let path = builder.0.names.intern("/bin/dd");
        for (at, thread) in builder.0.threads.iter_mut().enumerate() {
            thread.pid = thread.tid;
            thread.names = vec![(0, shell), (100 + at as Ns, dd)];
            thread.life = Span::new(50, 600 + at as Ns);
        }
        builder.0.threads[2].names = vec![(0, shell)];
        builder.0.threads[2].life = builder.0.span;
        for pid in [1, 2] {
            let change = ImageChange::Exec { path };
            builder.0.images.push(ImageEvent { time: 90 + Ns::from(pid), host: HOST, pid, change });
        }
        builder.segment(1, 50, 600, SegmentKind::Running, 0);
        assert_eq!(found(&mut builder, Derived::Process("dd".to_owned())), Some(vec![(91, 600, 1), (92, 601, 2)]));
        // No shell is whole: what is known of them counts.
        let before = vec![(0, 1000, 3), (50, 91, 1), (50, 92, 2)];
        assert_eq!(found(&mut builder, Derived::Process("sh".to_owned())), Some(before));
        assert_eq!(found(&mut builder, named("dd")).map(|all| all.len()), Some(2));
    }

    #[test]
    fn threads_by_name_with_digits_folded() {
        let mut builder = TimelineBuilder::new(2);
        for (at, thread) in builder.0.threads.iter_mut().enumerate() {
            thread.life = Span::new(10, 500);
            thread.parent = (at == 0).then_some(ThreadId::at(1));
            thread.names = vec![(0, builder.0.names.intern(&format!("job-{at}")))];
        }
        assert_eq!(found(&mut builder, Derived::Thread("job-7".to_owned())), Some(vec![(10, 500, 1)]));
        builder.0.threads[0].parent = None;
        assert_eq!(found(&mut builder, Derived::Thread("job-*".to_owned())).map(|all| all.len()), Some(2));
    }
}
