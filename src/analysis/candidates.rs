//! What is worth asking about where nobody named a task: loops, system calls and functions.
//!
//! In: a recording. Out: tasks, the most promising first. A loop is a place where threads of one name wait again and
//! again: of the calls in which they wait (for the disk they wait while they work, that is no place) the one with the
//! most waits. System calls and functions count by the time that their slowest twentieth takes beyond the median. Those
//! of the command that the recording was made around come first, then those of the processes that did most: the ones
//! that together had nine tenths of the CPU time. The tracer's own threads take no part, nor do calls in which a loop
//! waits for its next turn. Cost: linear in edges and calls. ALGORITHMS.md 6.1.

use super::derived::{commands, tracers};
use super::executions::Execution;
use super::functions::{FunctionNames, called};
use super::symbols::files::SymbolPaths;
use super::turns::{ThreadWait, WaitSites, waits};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::names::{NameId, fold_digits};
use crate::base::statistics::nearest_rank;
use crate::base::time::Ns;
use crate::event::derived::{Derived, Turn};
use crate::state::timeline::{SegmentKind, Thread, ThreadId, Timeline};
use foldhash::HashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Executions from which a task answers.
pub const ENOUGH: usize = 12;

/// A task that nobody named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// What delimits it; a function by its name.
    pub task: Derived,
    /// How often it ran.
    pub executions: usize,
    /// What the slowest twentieth takes beyond the median.
    pub tail_ns: Ns,
    /// Whose it is.
    pub standing: Priority,
}

/// Who is asked about first; the last comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    #[default]
    /// Of others.
    Other,
    /// Of those that did most.
    DidMost,
    /// Of the command that the tracer was told to run.
    Command,
}

/// Who did how much.
pub struct ThreadActivity {
    /// By thread: its name with digits folded; `None` for idle tasks, the kernel's own threads and the tracer's.
    names: Vec<Option<String>>,
    /// CPU time by name, and whose it is.
    busy: BTreeMap<String, (Ns, Priority)>,
}

impl ThreadActivity {
    /// Of a recording. Cost: linear in edges.
    pub fn new(timeline: &Timeline) -> ThreadActivity {
        let left_out = tracers(timeline);
        // Threads of the kernel itself serve, nobody asks about them. Where programs' threads are seen in their
        // programs, they are told by that too.
        let is_programs = |t: &Thread| !t.calls.is_empty() || t.samples.iter().any(|s| s.user.is_some());
        let told_apart = timeline.threads.iter().any(is_programs);
        let commands = commands(timeline);
        let mut busy: BTreeMap<String, (Ns, Priority)> = BTreeMap::new();
        let mut names = Vec::with_capacity(timeline.threads.len());
        for (at, thread) in timeline.threads.iter().enumerate() {
            let is_asked = !thread.is_kernel(&timeline.names) && (!told_apart || is_programs(thread));
            let asked = is_asked && !left_out.contains(&ThreadId::at(at));
            let name = thread.name_at(thread.life.end).filter(|_| asked);
            let name = name.map(|name| fold_digits(timeline.names.get(name)));
            let running = thread
                .segments
                .iter()
                .filter(|e| e.kind == SegmentKind::Running)
                .map(|e| e.span.len())
                .fold(0, Ns::saturating_add);
            if let Some(name) = name.clone() {
                let entry = busy.entry(name).or_default();
                entry.0 = entry.0.saturating_add(running);
                if commands.contains(&ThreadId::at(at)) {
                    entry.1 = Priority::Command;
                }
            }
            names.push(name);
        }
        // Damaged times can be any: in 128 bits no sum of them overflows.
        let total: i128 = busy.values().map(|(ns, _)| i128::from(*ns)).sum();
        let mut order: Vec<(Ns, String)> = busy.iter().map(|(name, (ns, _))| (*ns, name.clone())).collect();
        order.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        let mut before = 0_i128;
        for (ns, name) in order {
            if let Some((_, standing)) = busy.get_mut(&name).filter(|_| before * 10 < total * 9) {
                *standing = (*standing).max(Priority::DidMost);
            }
            before += i128::from(ns);
        }
        ThreadActivity { names, busy }
    }

    fn name(&self, thread: ThreadId) -> Option<&str> {
        self.names.get(thread.index())?.as_deref()
    }

    fn standing(&self, name: &str) -> Priority {
        self.busy.get(name).map_or(Priority::Other, |(_, standing)| *standing)
    }
}

/// Durations of one task, by the name of the threads that ran it.
type Durations = BTreeMap<String, Vec<Ns>>;

/// What the slowest twentieth takes beyond the median, and how many that are.
fn tail(durations: &mut [Ns]) -> (Ns, usize, Ns) {
    durations.sort_unstable();
    let median = nearest_rank(durations, 50.0).unwrap_or(0);
    let slow = &durations[durations.len() - durations.len().div_ceil(20)..];
    (slow.iter().map(|d| d - median).sum(), slow.len(), median)
}

/// The most promising first: by whose they are, then by what their tails take.
fn ranked(activity: &ThreadActivity, tasks: BTreeMap<Derived, Durations>) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = Vec::new();
    for (task, mut by_name) in tasks {
        let tails: Vec<(Ns, Priority)> =
            by_name.iter_mut().map(|(name, durations)| (tail(durations).0, activity.standing(name))).collect();
        let standing = tails.iter().max().map_or(Priority::Other, |(_, standing)| *standing);
        let mut durations: Vec<Ns> = by_name.into_values().flatten().collect();
        let (tail_ns, ..) = tail(&mut durations);
        all.push(Candidate { task, executions: durations.len(), tail_ns, standing });
    }
    all.sort_by(|a, b| b.standing.cmp(&a.standing).then(b.tail_ns.cmp(&a.tail_ns)).then_with(|| a.task.cmp(&b.task)));
    all
}

/// Where threads of one name wait, and between which waits: by name, by call, the turns' durations and all waits.
type WaitPlaces = BTreeMap<(String, String), (Vec<Ns>, usize)>;

/// Where one thread waits.
#[derive(Default)]
struct WaitPlace {
    /// Between two waits.
    turns: Vec<Ns>,
    waits: usize,
    /// When the last one ended.
    last: Option<Ns>,
}

/// Places of loops: names of threads with digits folded, and the call in which they wait for their next turn.
pub type LoopPlaces = BTreeSet<(String, String)>;

/// Loops of threads, and the places of all loops, also of those that are not worth asking about.
pub fn loops(
    timeline: &Timeline,
    activity: &ThreadActivity,
    places: &SymbolPaths,
    work: &Ctx,
) -> Result<(Vec<Candidate>, LoopPlaces), Cancelled> {
    let threads = (0..timeline.threads.len()).map(ThreadId::at);
    let of = |id: ThreadId| Some((id, waits(timeline, timeline.thread(id).filter(|_| activity.name(id).is_some())?)));
    let all: Vec<(ThreadId, Vec<ThreadWait>)> = threads.filter_map(of).filter(|(_, waits)| waits.len() > 1).collect();
    work.cancel.check()?;
    // Where no system calls were recorded, the stacks at switches tell them.
    let called = timeline.threads.iter().any(|t| !t.calls.is_empty());
    let sampled = timeline.threads.iter().any(|t| !t.samples.is_empty());
    let sites = if !called && sampled { Some(WaitSites::new(timeline, &all, places, work)?) } else { None };
    let mut found: WaitPlaces = BTreeMap::new();
    for (id, waits) in &all {
        let (Some(thread), Some(name)) = (timeline.thread(*id), activity.name(*id)) else { continue };
        let mut own: HashMap<&str, WaitPlace> = HashMap::default();
        for wait in waits.iter().filter(|wait| !wait.for_disk) {
            let call = match &sites {
                Some(sites) => sites.names(*id, wait.span.start).next_back(),
                None => wait.call.and_then(|at| thread.calls.get(at)).map(|c| timeline.names.get(c.name)),
            };
            let Some(call) = call else { continue };
            let place = own.entry(call).or_default();
            place.waits += 1;
            let before = place.last.replace(wait.span.end);
            place.turns.extend(before.map(|end| wait.span.start.saturating_sub(end)));
        }
        for (call, place) in own {
            let (turns, waits) = found.entry((name.to_owned(), call.to_owned())).or_default();
            turns.extend(place.turns);
            *waits += place.waits;
        }
    }
    let mut best: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
    for ((name, call), (_, waits)) in &found {
        let most = best.entry(name).or_insert((call, *waits));
        if *waits > most.1 {
            *most = (call, *waits);
        }
    }
    let is_place = |(name, call): &(String, String)| best.get(name.as_str()).is_some_and(|(best, _)| best == call);
    let places: LoopPlaces = found.keys().filter(|key| is_place(key)).cloned().collect();
    let mut tasks = BTreeMap::new();
    for ((name, call), (mut turns, _)) in found.into_iter().filter(|(key, _)| places.contains(key)) {
        let (tail_ns, slow, median) = tail(&mut turns);
        // Turns that all take equally long raise no question.
        if turns.len() >= ENOUGH && tail_ns >= median.saturating_mul(slow as Ns) {
            let turn = Turn { call, thread: Some(name.clone()) };
            tasks.insert(Derived::Turn(turn), BTreeMap::from([(name, turns)]));
        }
    }
    Ok((ranked(activity, tasks), places))
}

/// System calls, but those in which a loop waits for its next turn.
pub fn calls(timeline: &Timeline, activity: &ThreadActivity, loops: &LoopPlaces) -> Vec<Candidate> {
    let waited: BTreeSet<(&str, &str)> = loops.iter().map(|(name, call)| (name.as_str(), call.as_str())).collect();
    let mut tasks: BTreeMap<Derived, Durations> = BTreeMap::new();
    let mut idle: BTreeMap<Derived, Durations> = BTreeMap::new();
    for (at, thread) in timeline.threads.iter().enumerate() {
        let Some(name) = activity.name(ThreadId::at(at)) else { continue };
        let mut own: HashMap<NameId, Vec<Ns>> = HashMap::default();
        for call in thread.calls.iter().filter(|call| call.ret.is_some()) {
            own.entry(call.name).or_default().push(call.span.len());
        }
        for (call, spans) in own {
            let text = timeline.names.get(call);
            let of = if waited.contains(&(name, text)) { &mut idle } else { &mut tasks };
            let durations = of.entry(Derived::Call(text.to_owned())).or_default();
            durations.entry(name.to_owned()).or_default().extend(spans);
        }
    }
    // A call that somebody's loop waits in is asked about after those that nobody's does.
    let mut all = ranked(activity, tasks);
    let others: BTreeMap<Derived, Durations> =
        idle.into_iter().filter(|(task, _)| all.iter().all(|c| c.task != *task)).collect();
    all.extend(ranked(activity, others));
    all
}

/// Functions whose calls were recorded.
pub fn functions(
    timeline: &Timeline,
    activity: &ThreadActivity,
    executions: &[Execution<'_>],
    functions: &FunctionNames,
) -> Vec<Candidate> {
    let mut tasks: BTreeMap<Derived, Durations> = BTreeMap::new();
    for execution in executions {
        let Some(function) = called(timeline, execution.begin) else { continue };
        let name = activity.name(execution.thread).unwrap_or("");
        let durations = tasks.entry(Derived::Named(functions.name(function).to_owned())).or_default();
        durations.entry(name.to_owned()).or_default().push(execution.span.len());
    }
    ranked(activity, tasks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::timeline_builder::TimelineBuilder;
    use crate::base::time::Span;
    use crate::state::timeline::Segment;

    /// A thread that waits in `call` and works between: `n` turns, every twentieth ten times as long.
    fn looping(name: &str, n: usize, spread: bool) -> TimelineBuilder {
        let mut builder = TimelineBuilder::new(1);
        let id = builder.0.names.intern(name);
        builder.0.threads[0].names = vec![(0, id)];
        let mut at = 0;
        for i in 0..n as Ns {
            let work = if spread && i % 20 == 7 { 100 } else { 10 };
            builder.segment(1, at, at + work, SegmentKind::Running, 0).segment(
                1,
                at + work,
                at + work + 5,
                SegmentKind::Network,
                0,
            );
            builder.silent_call(1, at + work - 1, at + work + 6);
            at += work + 5;
        }
        builder.segment(1, at, at + 50, SegmentKind::Running, 0);
        builder
    }

    fn found(builder: &TimelineBuilder) -> (Vec<String>, Vec<String>) {
        let activity = ThreadActivity::new(&builder.0);
        let (loops, places) = loops(&builder.0, &activity, &SymbolPaths::default(), &Ctx::new(1)).unwrap();
        let names = |all: Vec<Candidate>| all.iter().map(|c| c.task.to_string()).collect();
        (names(loops), names(calls(&builder.0, &activity, &places)))
    }

    #[test]
    fn loops_are_found_where_they_turn_often_and_unevenly() {
        assert_eq!(found(&looping("job-1", 40, true)).0, ["wait=call,thread=job-*"]);
        assert!(found(&looping("job-1", 40, false)).0.is_empty());
        assert!(found(&looping("job-1", 10, true)).0.is_empty());
        assert!(found(&looping("lttng-sessiond", 40, true)).0.is_empty());
    }

    #[test]
    fn the_command_that_was_recorded_comes_before_who_did_more() {
        let mut builder = looping("job-1", 40, true);
        let other = looping("idler", 40, true);
        let mut command = other.0.threads[0].clone();
        (command.tid, command.pid) = (9, 9);
        let [before, own] = ["perf-exec", "server"].map(|name| builder.0.names.intern(name));
        command.names = vec![(0, before), (1, own)];
        builder.0.threads[0].pid = builder.0.threads[0].tid;
        builder.0.threads.push(command);
        // It did far less.
        let busy = &mut builder.0.threads[0].segments;
        let end = busy.last().map_or(0, |segment| segment.span.end);
        busy.push(Segment { span: Span::new(end, end + 1_000_000), ..busy[0] });
        assert_eq!(found(&builder).0, ["wait=call,thread=server", "wait=call,thread=job-*"]);
        // Under a tracer's name to the end it is the tracer's own.
        builder.0.threads[1].names.truncate(1);
        let perf = builder.0.names.intern("perf");
        builder.0.threads[1].names.push((2, perf));
        assert_eq!(found(&builder).0, ["wait=call,thread=job-*"]);
    }

    #[test]
    fn calls_of_the_busiest_with_the_most_in_their_tails_come_first() {
        let mut builder = TimelineBuilder::new(2);
        let (busy, idle) = (builder.0.names.intern("busy"), builder.0.names.intern("quiet"));
        for (at, (name, until)) in [(busy, 950), (idle, 20)].into_iter().enumerate() {
            builder.0.threads[at].names = vec![(0, name)];
            builder.segment(at + 1, 0, until, SegmentKind::Running, 0);
        }
        let (read, sync) = (builder.0.names.intern("read"), builder.0.names.intern("fsync"));
        for i in 0..20 {
            let long = if i == 9 { 30 } else { 2 };
            builder.silent_call(1, i * 40, i * 40 + long).silent_call(2, i * 40, i * 40 + long + 9);
            builder.0.threads[0].calls[i as usize].name = read;
            builder.0.threads[1].calls[i as usize].name = sync;
        }
        assert_eq!(found(&builder).1, ["read", "fsync"]);
    }
}
