//! Loops of threads: the call in which threads of one name rest longest in all, and the work between two such waits.
//!
//! In: a timeline with its programs. Out: the loops of each program whose iterations differ, and the sites of all.
//! Waits for a disk do not count, because a thread waits for a disk while it works. Where no system calls were
//! recorded, the stacks at switches contain them. Cost: linear in segments and calls, groups of
//! threads in parallel.

use super::programs::Programs;
use super::tails::{Candidate, Tail, TaskSpans, ranked};
use crate::analysis::iterations::{ThreadWait, waits};
use crate::analysis::stack_tables::LazyStackTables;
use crate::analysis::thread_groups::ThreadGroups;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::span_list::{SpanList, SpanRoom};
use crate::base::time::{Ns, Span, Timestamp};
use crate::event::derived::{Derived, WaitIterations};
use crate::model::choice::ExecutionKind;
use crate::symbols::files::SymbolPaths;
use crate::timeline::questions::Asker;
use crate::timeline::reader::RowReader;
use crate::timeline::{Thread, ThreadId, Timeline};
use foldhash::HashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Executions that a task needs for an answer.
pub const ENOUGH: usize = 12;

/// A call in which threads of one name wait, in one program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LoopSite {
    /// The position of the program.
    program: usize,
    /// The name of the threads with digits folded.
    thread: String,
    /// The call in which they wait for their next iteration.
    call: String,
}

/// The iterations around the waits at one site.
struct LoopIterations {
    /// From one wait to the next.
    spans: SpanList,
    waits: usize,
    /// How long they waited in all.
    waited: Ns,
    /// The end of the last wait of the thread that is being read.
    last_end: Option<Timestamp>,
}

impl LoopIterations {
    fn new(room: &SpanRoom) -> LoopIterations {
        LoopIterations { spans: SpanList::new(room), waits: 0, waited: 0, last_end: None }
    }
}

/// The sites of all loops.
pub type LoopSites = BTreeSet<LoopSite>;

/// True where the threads of a name wait for their next iteration in a call.
pub(super) fn is_site(sites: &LoopSites, program: usize, thread: &str, call: &str) -> bool {
    sites.contains(&LoopSite { program, thread: thread.to_owned(), call: call.to_owned() })
}

/// Loops of threads by program, and the sites of all loops, including those that make no candidate.
pub fn loops(
    timeline: &Timeline,
    programs: &Programs,
    stacks: &LazyStackTables,
    symbol_paths: &SymbolPaths,
    room: &SpanRoom,
    ctx: &Ctx,
) -> Result<(BTreeMap<usize, Vec<Candidate>>, LoopSites), Cancelled> {
    let found = found(timeline, programs, stacks, symbol_paths, room, ctx)?;
    let sites = most_waited(&found);
    let mut tasks = TaskSpans::new(room);
    for (site, iterations) in found.into_iter().filter(|(site, _)| sites.contains(site)) {
        let tail = Tail::of(&iterations.spans);
        // Iterations that all take equally long raise no question.
        if iterations.spans.len() >= ENOUGH && tail.excess >= tail.median.saturating_mul(tail.count as Ns) {
            let task = WaitIterations { call: site.call, thread: Some(site.thread) };
            *tasks.of(site.program, Derived::Iterations(task)) = iterations.spans;
        }
    }
    Ok((ranked(programs, timeline.span(), ExecutionKind::Iterations, tasks, ctx)?, sites))
}

/// The iterations at all sites.
fn found(
    timeline: &Timeline,
    programs: &Programs,
    stacks: &LazyStackTables,
    symbol_paths: &SymbolPaths,
    room: &SpanRoom,
    ctx: &Ctx,
) -> Result<BTreeMap<LoopSite, LoopIterations>, Cancelled> {
    // Where no system calls were recorded, the stacks at switches contain them.
    let (called, sampled) = (timeline.has_calls(), timeline.has_samples());
    let tables = if !called && sampled { Some(stacks.get(timeline, symbol_paths, ctx)?) } else { None };
    let tables = tables.as_deref();
    let sites = tables.map(|tables| tables.sites(timeline, symbol_paths, ctx)).transpose()?;
    if sites.is_some() {
        // Naming the functions was a stage of its own.
        ctx.progress.enter("tasks", timeline.segment_count() as u64);
    }
    let counter = timeline.reader(Asker::Tasks);
    let groups = ThreadGroups::new(timeline, |id| counter.segments(id).len() as u64);
    let find = |reader: &RowReader<'_>, id: ThreadId, _: &Thread| {
        ctx.progress.step(reader.segments(id).len() as u64);
        let program = programs.program(id)?;
        let thread = programs.thread_name(id).filter(|name| !name.is_empty())?;
        let mut stacks = tables.map(|tables| tables.timelines.cursor(reader, id));
        let call_of = |wait: &ThreadWait| match sites.zip(stacks.as_mut()) {
            Some((sites, stacks)) => sites.names(stacks.at(wait.span.start)).next_back(),
            None => wait.call.map(|call| timeline.names().get(call.name)),
        };
        let own = of_thread(waits(timeline, reader, id), call_of, room);
        let site = |call: &str| LoopSite { program, thread: thread.to_owned(), call: call.to_owned() };
        Some(own.into_iter().map(|(call, iterations)| (site(call), iterations)).collect::<Vec<_>>())
    };
    let mut all: BTreeMap<LoopSite, LoopIterations> = BTreeMap::new();
    groups.each(Asker::Tasks, ctx, find, |_, found| {
        for (site, iterations) in found {
            let of_site = all.entry(site).or_insert_with(|| LoopIterations::new(room));
            of_site.spans.append(iterations.spans);
            of_site.waits += iterations.waits;
            of_site.waited = of_site.waited.saturating_add(iterations.waited);
        }
    })?;
    Ok(all)
}

/// The iterations of a thread around its waits in each call; none of a thread that waited once, which is no loop.
fn of_thread<'n>(
    waits: impl Iterator<Item = ThreadWait>,
    mut call_of: impl FnMut(&ThreadWait) -> Option<&'n str>,
    room: &SpanRoom,
) -> HashMap<&'n str, LoopIterations> {
    let mut own: HashMap<&str, LoopIterations> = HashMap::default();
    let mut count = 0_usize;
    for wait in waits.inspect(|_| count += 1).filter(|wait| !wait.for_disk) {
        let Some(call) = call_of(&wait) else { continue };
        let iterations = own.entry(call).or_insert_with(|| LoopIterations::new(room));
        iterations.waits += 1;
        iterations.waited = iterations.waited.saturating_add(wait.span.len());
        let before = iterations.last_end.replace(wait.span.end);
        before.into_iter().for_each(|end| iterations.spans.push(Span::new(end, wait.span.start)));
    }
    if count < 2 { HashMap::default() } else { own }
}

/// By name of threads the site at which they rest longest in all, of those with enough waits where there are some; of
/// equals the first.
fn most_waited(found: &BTreeMap<LoopSite, LoopIterations>) -> LoopSites {
    let weight = |iterations: &LoopIterations| (iterations.waits > ENOUGH, iterations.waited);
    let mut best: BTreeMap<(usize, &str), &LoopSite> = BTreeMap::new();
    for (site, iterations) in found {
        let most = best.entry((site.program, &site.thread)).or_insert(site);
        if found.get(*most).is_some_and(|most| weight(iterations) > weight(most)) {
            *most = site;
        }
    }
    best.into_values().cloned().collect()
}
