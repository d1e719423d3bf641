//! From a recording to the model of one task: all steps on one page.
//!
//! 1. images of processes and stack timelines of threads, from the whole recording;
//! 2. begin and end events paired into executions;
//! 3. per execution, in parallel chunks: its critical path, accumulated into an outline, and its counts;
//! 4. outlines merged in order of the executions; their stacks resolved; contexts named;
//! 5. columns and sparse vectors.
//!
//! Chunks do not depend on the number of workers and are merged in order, so every number of workers gives the same
//! model. The time of each execution's contexts adds up to its duration, exactly ([`check`]).

pub mod anomalies;
pub mod chains;
mod columns;
mod contexts;
pub mod contribution;
mod delayed;
pub mod delays;
pub mod facts;
pub mod history;
mod holders;
mod idle;
pub mod iterations;
mod measured;
pub mod mining;
mod naming;
mod propagation;
mod root_causes;
mod routes;
mod timelines;
mod unexplained;
mod waiting;

use crate::analysis::counters;
use crate::analysis::counts::{Counts, PathCounter};
use crate::analysis::disk::DiskUse;
use crate::analysis::ecct::{self, Own, Sources};
use crate::analysis::executions::{self, Execution, MarksByTask, Rule};
use crate::analysis::hops::Hops;
use crate::analysis::interleaved::interleaved;
use crate::analysis::leaders::Leaders;
use crate::analysis::outline::{Outline, Step};
use crate::analysis::path::{self, PathSegment};
use crate::analysis::stacks::Timelines;
use crate::analysis::symbols::cache::SymbolCache;
use crate::analysis::symbols::files::Places;
use crate::analysis::symbols::images::Spaces;
use crate::analysis::symbols::kernel::KernelSymbols;
use crate::analysis::symbols::kernel_symbols;
use crate::analysis::thread_names::ThreadNames;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::names::{NameId, Names};
use crate::base::notice::{Notice, Notices};
use crate::base::parallel::in_order;
use crate::base::time::Ns;
use crate::model::context::ContextId;
use crate::model::execution::ExecutionId;
use crate::model::facts::HostQuality;
use crate::model::wait_kind::WaitKind;
use crate::model::{Model, ThreadInfo, ThreadInfoId, TraceId, TraceInfo};
use crate::state::timeline::{SegmentKind, ThreadId, Timeline};
use columns::MetricColumns;
use contexts::Dictionary;
use contribution::Contributions;
use foldhash::HashMap;
use holders::HeldContext;
use std::sync::Arc;

/// Executions that a worker takes at once.
const CHUNK: usize = 64;

/// The request.
#[derive(Clone, Debug, Default)]
pub struct TaskRequest {
    /// Names of all tasks found; there may be many, and a model of each.
    pub tasks: Arc<Vec<String>>,
    /// The one to explain, a position in `tasks`.
    pub task: usize,
    /// Position of that task in the list that the pass was given (`Mark::task`).
    pub marks: u32,
    /// How its begins find their ends.
    pub rule: Rule,
    /// The traces, in the order given to the pass.
    pub traces: Vec<TraceInfo>,
    /// Folders of symbol files.
    pub places: Places,
    /// Executions whose moments are wanted in order of time.
    pub moments: Vec<ExecutionId>,
}

/// Result of one worker for a chunk of executions.
struct ExplainedChunk {
    outline: Outline,
    hops: Hops,
    executions: Vec<Explained>,
}

/// One execution.
struct Explained {
    own: Own,
    counts: Counts,
    counters: Vec<Option<i64>>,
    /// Waits without a cause.
    unresolved: u64,
    /// Its segments tile it.
    tiled: bool,
    /// By holder, where these are asked for.
    contributions: Vec<HeldContext>,
}

/// Explain all executions of one task. `notices` are those of the pass; what is found here is added.
pub fn build(recording: &Timeline, request: &TaskRequest, notices: &Notices, ctx: &Ctx) -> Result<Model, Cancelled> {
    let mut notices = notices.clone();
    let stacks = Stacks::new(recording, &request.places, &mut notices, ctx)?;
    with_stacks(recording, &stacks, request, &notices, ctx)
}

/// The same with stacks that were placed before, as for several tasks in turn.
pub fn with_stacks(
    recording: &Timeline,
    stacks: &Stacks,
    request: &TaskRequest,
    notices: &Notices,
    ctx: &Ctx,
) -> Result<Model, Cancelled> {
    made(recording, stacks, request, notices, false, ctx).map(|(model, _)| model)
}

/// Data computed once per recording, for all questions about it: above all its call stacks.
#[derive(Debug)]
pub struct Stacks {
    /// Images of processes.
    pub spaces: Spaces,
    /// Stacks over time, by thread.
    pub timelines: Timelines,
    /// Symbols of the files whose functions are on them.
    pub symbols: SymbolCache,
    kernel: Option<KernelSymbols>,
    disk: DiskUse,
    leaders: Leaders,
    counter: PathCounter,
    marks: MarksByTask,
}

impl Stacks {
    /// Place the stacks of all threads.
    pub fn new(recording: &Timeline, places: &Places, notices: &mut Notices, ctx: &Ctx) -> Result<Stacks, Cancelled> {
        ctx.progress.enter("stacks", 0);
        let kernel = kernel_symbols(places, notices);
        let spaces = Spaces::new(&recording.images);
        let timelines = Timelines::new(recording, &spaces, kernel.is_some(), ctx)?;
        let (disk, leaders, counter) = (DiskUse::new(recording), Leaders::new(recording), PathCounter::new(recording));
        let (symbols, marks) = (SymbolCache::default(), MarksByTask::new(recording));
        Ok(Stacks { spaces, timelines, symbols, kernel, disk, leaders, counter, marks })
    }
}

/// The same, and who held up each execution in which context and when.
pub fn with_contributions(
    recording: &Timeline,
    stacks: &Stacks,
    request: &TaskRequest,
    notices: &Notices,
    ctx: &Ctx,
) -> Result<(Model, Contributions), Cancelled> {
    made(recording, stacks, request, notices, true, ctx)
}

fn made(
    recording: &Timeline,
    stacks: &Stacks,
    request: &TaskRequest,
    notices: &Notices,
    held: bool,
    ctx: &Ctx,
) -> Result<(Model, Contributions), Cancelled> {
    let mut model = Model {
        tasks: Arc::clone(&request.tasks),
        task: request.task,
        traces: request.traces.clone(),
        notices: notices.clone(),
        quality: quality(recording),
        origin: recording.span.start,
        ..Model::default()
    };
    let Stacks { spaces, timelines, symbols, kernel, disk, leaders, counter, marks } = stacks;
    let names = ThreadNames::new(recording, &mut model.names, &mut model.notices);
    let found = marks.pair(recording, request.marks, &request.rule, &mut model.notices);
    let found = executions::covered(recording, found, &mut model.notices);
    let interleaved = interleaved(recording, &found);
    let sources = Sources { recording, timelines, names: &names, disk, leaders };

    ctx.progress.enter("paths", found.len() as u64);
    let chunks: Vec<&[Execution<'_>]> = found.chunks(CHUNK).collect();
    let mut outline = Outline::default();
    let mut folded: Vec<Explained> = Vec::with_capacity(found.len());
    let mut hops = Hops::default();
    in_order(
        ctx,
        chunks.len(),
        |i| fold(chunks[i], &sources, counter, held),
        |i, made| {
            let (ids, hop_ids) = (outline.merge(&made.outline), hops.merge(&made.hops));
            folded.extend(made.executions.into_iter().map(|mut one| {
                one.own.iter_mut().for_each(|(node, _)| *node = ids[node.index()]);
                for held in &mut one.contributions {
                    (held.node, held.hop) = (ids[held.node.index()], hop_ids[held.hop.index()]);
                }
                one
            }));
            ctx.progress.step(chunks[i].len() as u64);
        },
    )?;

    ctx.progress.enter("symbols", 0);
    let places = &request.places;
    let dictionary = Dictionary { recording, timelines, spaces, places, symbols, kernel: kernel.as_ref() };
    let (tree, ids) = contexts::spell(&outline, &dictionary, &mut model.names, &mut model.notices, ctx)?;
    model.contexts = tree;
    let mut people = ThreadTable { recording, leaders, ids: HashMap::default() };
    let mut columns = MetricColumns::new(recording);
    let labels: Vec<NameId> = request.traces.iter().map(|t| model.names.intern(&t.label)).collect();
    let mut contributions = Contributions::new(recording, (leaders, &names), &found, hops, held);
    for (i, (execution, explained)) in found.iter().zip(folded).enumerate() {
        let Explained { own, counts, counters, unresolved, tiled, contributions: held } = explained;
        let counts = Counts { interleaved: interleaved.get(i).copied().flatten(), ..counts };
        contributions.push(held, &ids);
        let mut spent = [0; WaitKind::ALL.len()];
        for (node, ns) in &own {
            spent[outline.spent(*node) as usize] += ns;
        }
        let own: Vec<(ContextId, u64)> = own.into_iter().map(|(node, ns)| (ids[node.index()], ns)).collect();
        let id = ExecutionId::at(i);
        if request.moments.contains(&id) {
            model.moments.insert(id, own.clone());
        }
        let kind = execution.begin.kind.or(execution.end.kind);
        let kind = kind.map(|k| model.names.intern(recording.names.get(k)));
        let trace = TraceId::from_raw(execution.end.trace);
        let label = labels.get(trace.index()).copied();
        let label = label.unwrap_or_else(|| model.names.intern(""));
        columns.push(execution, counts, &counters, &spent, kind, label);
        let lossy = recording.is_lossy(execution.span);
        let first = || format!("execution at {} ns", execution.span.start.saturating_sub(recording.span.start));
        model.notices.add(Notice::UnresolvedWaits, unresolved, first);
        model.notices.add(Notice::UntiledPaths, u64::from(!tiled), first);
        let executions = &mut model.executions;
        executions.start.push(execution.span.start);
        executions.end.push(execution.span.end);
        executions.who.push(people.id(execution.thread, execution.span.end, &mut model.who, &mut model.names));
        executions.trace.push(trace);
        executions.cpu.push(execution.begin.cpu);
        executions.unsure.push(lossy || unresolved > 0);
        executions.own.push(own);
    }
    model.executions.inclusive = model.executions.own.inclusive(&model.contexts, ctx)?;
    model.executions.columns = columns.finish(&recording.names);
    let mut who: Vec<_> = outline.who().collect();
    who.sort_unstable();
    for (node, thread, ns) in who {
        let t = recording.thread(thread).map_or(0, |t| t.life.end);
        // Named as on the path: a thread that runs another program later had another name then.
        let shown = match outline.step(node) {
            Some(Step::Thread(_, shown)) => shown,
            _ => None,
        };
        let t = shown.and_then(|shown| names.last_time(recording.thread(thread)?, shown)).unwrap_or(t);
        let id = people.id(thread, t, &mut model.who, &mut model.names);
        *model.contexts.who.entry((ids[node.index()], id)).or_insert(0) += ns;
    }
    Ok((model, contributions))
}

fn fold(chunk: &[Execution<'_>], sources: &Sources<'_>, counter: &PathCounter, held: bool) -> ExplainedChunk {
    let (mut outline, mut hops) = (Outline::default(), Hops::default());
    let one = |execution: &Execution<'_>| {
        let path = path::walk(sources.recording, execution.thread, execution.span);
        let (own, contributions) = if held {
            let (own, spent_by) = ecct::fold_with_hops(sources, &path, &mut outline, &mut hops);
            let contributions = holders::add_up(execution.span.start, &own, &spent_by);
            (own, contributions)
        } else {
            (ecct::fold(sources, &path, &mut outline), Vec::new())
        };
        let unresolved = path.iter().filter(|s| is_unresolved(s)).count() as u64;
        let tiled = path::tiles(&path, execution.span);
        let counters = counters::along(sources.recording, &path);
        Explained { own, counts: counter.count(sources.recording, &path), counters, unresolved, tiled, contributions }
    };
    let executions = chunk.iter().map(one).collect();
    ExplainedChunk { outline, hops, executions }
}

/// Of the hosts whose switches were recorded.
fn quality(recording: &Timeline) -> Vec<HostQuality> {
    let hosts = recording.hosts.iter().zip(&recording.quality).filter(|(_, quality)| quality.switches > 0);
    hosts.map(|(h, quality)| HostQuality { host: recording.names.get(h.name).to_owned(), quality: *quality }).collect()
}

/// A wait with an unknown waker, or time in an unknown state.
fn is_unresolved(segment: &PathSegment) -> bool {
    matches!(segment.kind, SegmentKind::Blocked | SegmentKind::Unknown) && !segment.span.is_empty()
}

/// Threads of the model, made on first sight.
struct ThreadTable<'a> {
    recording: &'a Timeline,
    leaders: &'a Leaders,
    ids: HashMap<(ThreadId, Option<NameId>), ThreadInfoId>,
}

impl ThreadTable<'_> {
    /// The model's thread; its names are those at `t`, with their numbers. One that runs several programs is several.
    fn id(&mut self, thread: ThreadId, t: Ns, all: &mut Vec<ThreadInfo>, names: &mut Names) -> ThreadInfoId {
        let known = self.recording.thread(thread);
        let key = (thread, known.and_then(|known| self.leaders.of(self.recording, known, t).name_at(t)));
        if let Some(known) = self.ids.get(&key) {
            return *known;
        }
        let id = ThreadInfoId::at(all.len());
        all.push(self.describe(thread, t, names));
        self.ids.insert(key, id);
        id
    }

    fn describe(&self, id: ThreadId, t: Ns, names: &mut Names) -> ThreadInfo {
        let Some(thread) = self.recording.thread(id) else {
            let unknown = names.intern("unknown");
            return ThreadInfo { host: unknown, process: unknown, pid: 0, tid: 0, thread: unknown };
        };
        let mut name = |id: Option<NameId>| names.intern(id.map_or("unknown", |id| self.recording.names.get(id)));
        let host = name(self.recording.hosts.get(thread.host.index()).map(|h| h.name));
        let process = name(self.leaders.of(self.recording, thread, t).name_at(t));
        ThreadInfo { host, process, pid: thread.pid, tid: thread.tid, thread: name(thread.name_at(t)) }
    }
}

/// Invariants of every critical path.
pub fn untiled(notices: &Notices) -> Option<String> {
    let untiled = notices.count(Notice::UntiledPaths);
    (untiled > 0).then(|| format!("{untiled} critical paths do not add up to their executions"))
}

/// Check the invariants of every model; one sentence per violation, at most `most`.
pub fn check(model: &Model, most: usize) -> Vec<String> {
    let mut wrong = Vec::new();
    wrong.extend(untiled(&model.notices));
    let executions = &model.executions;
    for i in 0..executions.len() {
        let duration = executions.duration(i);
        let own: u64 = executions.own.row(i).map(|(_, ns)| ns).sum();
        let roots = executions.inclusive.row(i).filter(|(c, _)| model.contexts.parent(*c).is_none());
        let root: u64 = roots.map(|(_, ns)| ns).sum();
        let id = ExecutionId::at(i).raw();
        if duration < 0 || own != duration as u64 || root != own {
            wrong.push(format!("execution {id} lasts {duration} ns, its contexts {own} ns, its root {root} ns"));
        }
        if wrong.len() >= most {
            break;
        }
    }
    wrong
}
