//! Loops of threads: the call in which threads of one name rest longest in all, and the work between two such waits.
//!
//! In: a timeline with its programs. Out: the loops of each program whose iterations differ, and the sites of all.
//! Waits for a disk do not count, because a thread waits for a disk while it works. Where no system calls were
//! recorded, the stacks at switches contain them. Cost: linear in segments and calls.

use super::programs::Programs;
use super::tails::{Candidate, Tail, TaskSpans, ranked};
use crate::analysis::iterations::waits;
use crate::analysis::stack_tables::LazyStackTables;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::span_list::{SpanList, SpanRoom};
use crate::base::time::{Ns, Span, Timestamp};
use crate::event::derived::{Derived, WaitIterations};
use crate::model::choice::ExecutionKind;
use crate::symbols::files::SymbolPaths;
use crate::timeline::questions::Asker;
use crate::timeline::{ThreadId, Timeline};
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
    Ok((ranked(programs, timeline.span(), ExecutionKind::Iterations, tasks), sites))
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
    let reader = timeline.reader(Asker::Tasks);
    // Where no system calls were recorded, the stacks at switches contain them.
    let (called, sampled) = (timeline.has_calls(), timeline.has_samples());
    let tables = if !called && sampled { Some(stacks.get(timeline, symbol_paths, ctx)?) } else { None };
    let tables = tables.as_deref();
    let sites = tables.map(|tables| tables.sites(timeline, symbol_paths, ctx)).transpose()?.zip(tables);
    ctx.progress.enter("tasks", timeline.segment_count() as u64);
    let mut found: BTreeMap<LoopSite, LoopIterations> = BTreeMap::new();
    for id in (0..timeline.threads().len()).map(ThreadId::at) {
        let named = programs.thread_name(id).filter(|name| !name.is_empty());
        ctx.cancel.check()?;
        ctx.progress.step(reader.segments(id).len() as u64);
        let Some((program, thread)) = programs.program(id).zip(named) else { continue };
        let mut own: HashMap<&str, LoopIterations> = HashMap::default();
        let mut of_thread = 0_usize;
        for wait in waits(timeline, &reader, id).inspect(|_| of_thread += 1).filter(|wait| !wait.for_disk) {
            let call = match &sites {
                Some((sites, tables)) => tables.functions(sites, &reader, id, wait.span.start).next_back(),
                None => wait.call.map(|call| timeline.names().get(call.name)),
            };
            let Some(call) = call else { continue };
            let iterations = own.entry(call).or_insert_with(|| LoopIterations::new(room));
            iterations.waits += 1;
            iterations.waited = iterations.waited.saturating_add(wait.span.len());
            let before = iterations.last_end.replace(wait.span.end);
            before.into_iter().for_each(|end| iterations.spans.push(Span::new(end, wait.span.start)));
        }
        if of_thread < 2 {
            continue;
        }
        for (call, iterations) in own {
            let site = LoopSite { program, thread: thread.to_owned(), call: call.to_owned() };
            let all = found.entry(site).or_insert_with(|| LoopIterations::new(room));
            all.spans.append(iterations.spans);
            all.waits += iterations.waits;
            all.waited = all.waited.saturating_add(iterations.waited);
        }
    }
    Ok(found)
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
