//! The tasks to analyse where the user named none: requests over sockets, loops, system calls and functions.
//!
//! In: a timeline. Out: tasks, the most promising first. Threads of one name loop around the call in which they wait
//! most often; waits for a disk do not count, because a thread waits for a disk while it works. System calls and
//! functions are ranked by the time that their slowest twentieth takes beyond the median. The tasks of the recorded
//! command come first, then those of the busiest processes, which together used nine tenths of the CPU time. The
//! tracer's own threads are left out, and so are calls in which a loop waits for its next iteration. Cost: linear in
//! segments and calls. ALGORITHMS.md 6.1.

use super::conversations;
use super::derived::{ThreadLife, commands, threads, tracers};
use super::executions::Execution;
use super::functions::{FunctionNames, called};
use super::iterations::waits;
use super::stack_tables::LazyStackTables;
use super::symbols::files::SymbolPaths;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::names::{NameId, fold_digits};
use crate::base::statistics::nearest_rank;
use crate::base::time::{Ns, Timestamp};
use crate::event::derived::{ConversationSide, Conversations, Derived, WaitIterations};
use crate::event::errno;
use crate::state::questions::Asker;
use crate::state::reader::RowReader;
use crate::state::timeline::{SegmentKind, ThreadId, Timeline};
use foldhash::HashMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Executions that a task needs for an answer.
pub const ENOUGH: usize = 12;

/// A task that the user did not name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// How it is delimited; a function by its name.
    pub task: Derived,
    /// How often it ran.
    pub executions: usize,
    /// The time that the slowest twentieth takes beyond the median.
    pub tail_ns: Ns,
    /// The rank of the processes that ran it.
    pub priority: Priority,
}

/// The rank of a process; the greatest is analysed first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    #[default]
    /// Any other process.
    Other,
    /// One of the busiest processes.
    Busiest,
    /// The command that the tracer ran.
    Command,
}

/// The CPU time of threads by name.
pub struct ThreadActivity {
    /// By thread: its name with digits folded; `None` for idle tasks, the kernel's own threads and the tracer's.
    names: Vec<Option<String>>,
    /// By name.
    busy: BTreeMap<String, BusyTime>,
}

/// The CPU time of the threads of one name.
#[derive(Clone, Copy, Debug, Default)]
struct BusyTime {
    ns: Ns,
    priority: Priority,
}

/// The time for which a thread ran.
fn running(reader: &RowReader<'_>, thread: ThreadId) -> Ns {
    let running = reader.segments(thread).all().filter(|segment| segment.kind == SegmentKind::Running);
    running.map(|segment| segment.span.len()).fold(0, Ns::saturating_add)
}

impl ThreadActivity {
    /// The activity in a timeline. Cost: linear in segments.
    pub fn new(timeline: &Timeline) -> ThreadActivity {
        let left_out = tracers(timeline);
        // The kernel's own threads serve others and have no tasks. Where user code was recorded, only threads that
        // ran some count.
        let reader = timeline.reader(Asker::Tasks);
        let runs_user_code =
            |id: ThreadId| !reader.calls(id).is_empty() || reader.samples(id).all().any(|s| s.user.is_some());
        let is_user_code_recorded = timeline.threads_by_id().any(|(id, _)| runs_user_code(id));
        let commands = commands(timeline);
        let mut busy: BTreeMap<String, BusyTime> = BTreeMap::new();
        let mut names = Vec::with_capacity(timeline.threads().len());
        for (id, thread) in timeline.threads_by_id() {
            let is_program = !thread.is_kernel(timeline.names()) && (!is_user_code_recorded || runs_user_code(id));
            let counts = is_program && !left_out.contains(&id);
            let name = thread.name_at(thread.life.end).filter(|_| counts);
            let name = name.map(|name| fold_digits(timeline.names().get(name)));
            let running = running(&reader, id);
            if let Some(name) = name.clone() {
                let of_name = busy.entry(name).or_default();
                of_name.ns = of_name.ns.saturating_add(running);
                if commands.contains(&id) {
                    of_name.priority = Priority::Command;
                }
            }
            names.push(name);
        }
        // Damaged times can have any value: 128 bits hold every sum of them.
        let total: i128 = busy.values().map(|busy| i128::from(busy.ns)).sum();
        let mut order: Vec<(Ns, String)> = busy.iter().map(|(name, busy)| (busy.ns, name.clone())).collect();
        order.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        let mut before = 0_i128;
        for (ns, name) in order {
            if let Some(of_name) = busy.get_mut(&name).filter(|_| before * 10 < total * 9) {
                of_name.priority = of_name.priority.max(Priority::Busiest);
            }
            before += i128::from(ns);
        }
        ThreadActivity { names, busy }
    }

    fn name(&self, thread: ThreadId) -> Option<&str> {
        self.names.get(thread.index())?.as_deref()
    }

    /// The name of the threads that ran most in the lives that are executions of `thread=NAME`.
    pub fn busiest(&self, timeline: &Timeline) -> Option<String> {
        let reader = timeline.reader(Asker::Tasks);
        let ran = |(name, lives): (String, Vec<ThreadLife>)| {
            let programs = lives.iter().map(|life| life.thread).filter(|id| self.name(*id).is_some());
            (programs.map(|id| running(&reader, id)).fold(0, Ns::saturating_add), Reverse(name))
        };
        let most = threads(timeline).into_iter().map(ran).filter(|(ns, _)| *ns > 0).max();
        most.map(|(_, Reverse(name))| name)
    }

    fn priority(&self, name: &str) -> Priority {
        self.busy.get(name).map_or(Priority::Other, |busy| busy.priority)
    }
}

/// Durations of one task, by the name of the threads that ran it.
type Durations = BTreeMap<String, Vec<Ns>>;

/// The slowest twentieth of some durations.
struct Tail {
    /// The time that they take beyond the median.
    excess: Ns,
    count: usize,
    /// The median of all durations.
    median: Ns,
}

impl Tail {
    fn of(durations: &mut [Ns]) -> Tail {
        durations.sort_unstable();
        let median = nearest_rank(durations, 50.0).unwrap_or(0);
        let slow = &durations[durations.len() - durations.len().div_ceil(20)..];
        Tail { excess: slow.iter().map(|d| d - median).sum(), count: slow.len(), median }
    }
}

/// The most promising first: by the rank of the processes, then by the excess of the tails.
fn ranked(activity: &ThreadActivity, tasks: BTreeMap<Derived, Durations>) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = Vec::new();
    for (task, mut by_name) in tasks {
        let tails = by_name.iter_mut().map(|(name, durations)| (Tail::of(durations).excess, activity.priority(name)));
        let priority = tails.max().map_or(Priority::Other, |(_, priority)| priority);
        let mut durations: Vec<Ns> = by_name.into_values().flatten().collect();
        let tail_ns = Tail::of(&mut durations).excess;
        all.push(Candidate { task, executions: durations.len(), tail_ns, priority });
    }
    all.sort_by(|a, b| b.priority.cmp(&a.priority).then(b.tail_ns.cmp(&a.tail_ns)).then_with(|| a.task.cmp(&b.task)));
    all
}

/// Requests of servers, then calls of clients, over sockets.
pub fn exchanges(timeline: &Timeline, activity: &ThreadActivity, ctx: &Ctx) -> Result<Vec<Candidate>, Cancelled> {
    let by_name = |(task, durations): (Conversations, Vec<Ns>)| {
        let name = fold_digits(&task.process);
        (Derived::Exchanges(task), BTreeMap::from([(name, durations)]))
    };
    let tasks = conversations::candidates(timeline, ctx)?.into_iter().map(by_name).collect();
    let mut all = ranked(activity, tasks);
    let asks = |task: &Derived| matches!(task, Derived::Exchanges(of) if of.side == ConversationSide::Calls);
    all.sort_by_key(|candidate| (Reverse(candidate.priority), asks(&candidate.task)));
    Ok(all)
}

/// A call in which threads of one name wait.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LoopSite {
    /// The name of the threads with digits folded.
    thread: String,
    /// The call in which they wait for their next iteration.
    call: String,
}

/// The iterations around the waits at one site.
#[derive(Default)]
struct LoopIterations {
    /// Durations from one wait to the next.
    durations: Vec<Ns>,
    waits: usize,
    /// The end of the last wait of the thread that is being read.
    last_end: Option<Timestamp>,
}

/// The sites of all loops.
pub type LoopSites = BTreeSet<LoopSite>;

/// Loops of threads, and the sites of all loops, including those that make no candidate.
pub fn loops(
    timeline: &Timeline,
    activity: &ThreadActivity,
    stacks: &LazyStackTables,
    symbol_paths: &SymbolPaths,
    ctx: &Ctx,
) -> Result<(Vec<Candidate>, LoopSites), Cancelled> {
    let reader = timeline.reader(Asker::Tasks);
    // Where no system calls were recorded, the stacks at switches contain them.
    let (called, sampled) = (timeline.has_calls(), timeline.has_samples());
    let tables = if !called && sampled { Some(stacks.get(timeline, symbol_paths, ctx)?) } else { None };
    let tables = tables.as_deref();
    let sites = tables.map(|tables| tables.sites(timeline, symbol_paths, ctx)).transpose()?.zip(tables);
    let mut found: BTreeMap<LoopSite, LoopIterations> = BTreeMap::new();
    for id in (0..timeline.threads().len()).map(ThreadId::at) {
        let Some(name) = activity.name(id) else { continue };
        // Those of one thread at a time: together they may be more than all leaves.
        let waits = waits(timeline, &reader, id);
        ctx.cancel.check()?;
        if waits.len() < 2 {
            continue;
        }
        let mut own: HashMap<&str, LoopIterations> = HashMap::default();
        for wait in waits.iter().filter(|wait| !wait.for_disk) {
            let call = match &sites {
                Some((sites, tables)) => tables.functions(sites, &reader, id, wait.span.start).next_back(),
                None => wait.call.map(|call| timeline.names().get(call.name)),
            };
            let Some(call) = call else { continue };
            let iterations = own.entry(call).or_default();
            iterations.waits += 1;
            let before = iterations.last_end.replace(wait.span.end);
            iterations.durations.extend(before.map(|end| wait.span.start.since(end)));
        }
        for (call, iterations) in own {
            let site = LoopSite { thread: name.to_owned(), call: call.to_owned() };
            let all = found.entry(site).or_default();
            all.durations.extend(iterations.durations);
            all.waits += iterations.waits;
        }
    }
    let sites = most_waited(&found);
    let mut tasks = BTreeMap::new();
    for (site, iterations) in found.into_iter().filter(|(site, _)| sites.contains(site)) {
        let mut durations = iterations.durations;
        let tail = Tail::of(&mut durations);
        // Iterations that all take equally long raise no question.
        if durations.len() >= ENOUGH && tail.excess >= tail.median.saturating_mul(tail.count as Ns) {
            let task = WaitIterations { call: site.call, thread: Some(site.thread.clone()) };
            tasks.insert(Derived::Iterations(task), BTreeMap::from([(site.thread, durations)]));
        }
    }
    Ok((ranked(activity, tasks), sites))
}

/// By name of threads the site at which they wait most often; of equals the first.
fn most_waited(found: &BTreeMap<LoopSite, LoopIterations>) -> LoopSites {
    let mut best: BTreeMap<&str, (&LoopSite, usize)> = BTreeMap::new();
    for (site, iterations) in found {
        let most = best.entry(&site.thread).or_insert((site, iterations.waits));
        if iterations.waits > most.1 {
            *most = (site, iterations.waits);
        }
    }
    best.into_values().map(|(site, _)| site.clone()).collect()
}

/// Durations of calls of one name.
#[derive(Default)]
struct CallDurations {
    succeeded: Vec<Ns>,
    failed: Vec<Ns>,
}

impl CallDurations {
    /// Those that may be compared with each other: calls that failed at once are no fast ones.
    fn comparable(mut self) -> Vec<Ns> {
        if self.succeeded.is_empty() {
            return self.failed;
        }
        self.succeeded.sort_unstable();
        let usual = nearest_rank(&self.succeeded, 50.0).unwrap_or(0);
        self.succeeded.extend(self.failed.into_iter().filter(|ns| *ns > usual));
        self.succeeded
    }
}

/// System calls except those in which a loop waits for its next iteration.
pub fn calls(timeline: &Timeline, activity: &ThreadActivity, loops: &LoopSites) -> Vec<Candidate> {
    let waited: BTreeSet<(&str, &str)> = loops.iter().map(|site| (site.thread.as_str(), site.call.as_str())).collect();
    let mut tasks: BTreeMap<Derived, Durations> = BTreeMap::new();
    let mut idle: BTreeMap<Derived, Durations> = BTreeMap::new();
    let reader = timeline.reader(Asker::Tasks);
    for id in (0..timeline.threads().len()).map(ThreadId::at) {
        let Some(name) = activity.name(id) else { continue };
        let mut own: HashMap<NameId, CallDurations> = HashMap::default();
        for call in reader.calls(id).all() {
            let Some(ret) = call.ret else { continue };
            let of_name = own.entry(call.name).or_default();
            let durations = if errno::failed(ret) { &mut of_name.failed } else { &mut of_name.succeeded };
            durations.push(call.span.len());
        }
        for (call, spans) in own {
            let spans = spans.comparable();
            let text = timeline.names().get(call);
            let of = if waited.contains(&(name, text)) { &mut idle } else { &mut tasks };
            let durations = of.entry(Derived::Call(text.to_owned())).or_default();
            durations.entry(name.to_owned()).or_default().extend(spans);
        }
    }
    // A call in which some thread's loop waits comes after those in which no loop waits.
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
    executions: &[Execution],
    functions: &FunctionNames,
) -> Vec<Candidate> {
    let mut tasks: BTreeMap<Derived, Durations> = BTreeMap::new();
    for execution in executions {
        let Some(function) = timeline.mark(execution.begin).and_then(|begin| called(timeline, begin)) else { continue };
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
    use crate::state::timeline::ThreadName;

    /// A thread that waits in `call` and works in between: `n` iterations, every twentieth ten times as long.
    fn looping(name: &str, n: usize, spread: bool) -> TimelineBuilder {
        let mut builder = TimelineBuilder::new(1);
        let id = builder.0.tables.names.intern(name);
        builder.0.threads[0].thread.names = vec![ThreadName { from: Timestamp::ZERO, name: id }];
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
        let timeline = builder.sealed();
        let activity = ThreadActivity::new(&timeline);
        let (stacks, paths) = (LazyStackTables::default(), SymbolPaths::default());
        let (loops, places) = loops(&timeline, &activity, &stacks, &paths, &Ctx::new(1)).unwrap();
        let names = |all: Vec<Candidate>| all.iter().map(|c| c.task.to_string()).collect();
        (names(loops), names(calls(&timeline, &activity, &places)))
    }

    #[test]
    fn loops_needs_many_iterations_of_uneven_length() {
        assert_eq!(found(&looping("job-1", 40, true)).0, ["wait=call,thread=job-*"]);
        assert!(found(&looping("job-1", 40, false)).0.is_empty());
        assert!(found(&looping("job-1", 10, true)).0.is_empty());
        assert!(found(&looping("lttng-sessiond", 40, true)).0.is_empty());
    }

    #[test]
    fn candidates_of_the_recorded_command_come_before_those_of_busier_processes() {
        let mut builder = looping("job-1", 40, true);
        let other = looping("idler", 40, true);
        let mut command = other.0.threads[0].clone();
        (command.thread.tid, command.thread.pid) = (9, 9);
        let [before, own] = ["perf-exec", "server"].map(|name| builder.0.tables.names.intern(name));
        command.thread.names =
            vec![ThreadName { from: Timestamp::ZERO, name: before }, ThreadName { from: Timestamp::new(1), name: own }];
        builder.0.threads[0].thread.pid = builder.0.threads[0].thread.tid;
        builder.0.threads.push(command);
        // The command ran for far less time.
        let busy = &mut builder.0.threads[0].rows.segments;
        let end = busy.last().map_or(0, |segment| segment.span.end.ns());
        busy.push(Segment { span: Span::of_ns(end, end + 1_000_000), ..busy[0] });
        assert_eq!(found(&builder).0, ["wait=call,thread=server", "wait=call,thread=job-*"]);
        // A thread that keeps a tracer's name to its end is the tracer's own.
        builder.0.threads[1].thread.names.truncate(1);
        let perf = builder.0.tables.names.intern("perf");
        builder.0.threads[1].thread.names.push(ThreadName { from: Timestamp::new(2), name: perf });
        assert_eq!(found(&builder).0, ["wait=call,thread=job-*"]);
    }

    #[test]
    fn calls_ranks_the_busiest_process_and_the_longest_tail_first() {
        let mut builder = TimelineBuilder::new(2);
        let (busy, idle) = (builder.0.tables.names.intern("busy"), builder.0.tables.names.intern("quiet"));
        for (at, (name, until)) in [(busy, 950), (idle, 20)].into_iter().enumerate() {
            builder.0.threads[at].thread.names = vec![ThreadName { from: Timestamp::ZERO, name }];
            builder.segment(at + 1, 0, until, SegmentKind::Running, 0);
        }
        let (read, sync) = (builder.0.tables.names.intern("read"), builder.0.tables.names.intern("fsync"));
        for i in 0..20 {
            let long = if i == 9 { 30 } else { 2 };
            builder.silent_call(1, i * 40, i * 40 + long).silent_call(2, i * 40, i * 40 + long + 9);
            builder.0.threads[0].rows.calls[i as usize].name = read;
            builder.0.threads[1].rows.calls[i as usize].name = sync;
        }
        assert_eq!(found(&builder).1, ["read", "fsync"]);
    }

    #[test]
    fn failed_calls_are_no_fast_ones() {
        let durations = |failed: &[Ns], succeeded: &[Ns]| {
            CallDurations { succeeded: succeeded.to_vec(), failed: failed.to_vec() }.comparable()
        };
        assert_eq!(durations(&[1, 2, 90], &[30, 10, 20]), [10, 20, 30, 90]);
        assert_eq!(durations(&[1, 2], &[]), [1, 2]);
    }
}
