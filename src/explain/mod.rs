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

mod assembly;
mod columns;
pub mod concurrent;
mod contexts;
pub mod contribution;
mod execution_timelines;
pub mod facts;
pub mod history;
mod holders;
pub mod idle;
pub mod iterations;
mod libraries;
mod measured;
pub mod naming;
pub mod overview;
mod own_times;
mod paths;
mod prepared;
pub mod profile;
mod request;
mod roles;
pub mod thread_lanes;
mod threads;
pub mod timelines;
pub mod waiting;

pub use request::TaskRequest;

use crate::analysis::counts::PathCounter;
use crate::analysis::disk::DiskUse;
use crate::analysis::ecct::EcctInputs;
use crate::analysis::executions::{self, Execution, MarksByTask};
use crate::analysis::interleaved::interleaved;
use crate::analysis::leaders::Leaders;
use crate::analysis::remarks::Remarks;
use crate::analysis::stack_tables::{LazyStackTables, StackTables};
use crate::analysis::thread_names::ThreadNames;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::heap::MemoryPart;
use crate::base::notice::{Notice, Notices};
use crate::base::parallel::both;
use crate::model::Model;
use crate::model::execution::{ExecutionId, InclusiveTimes};
use crate::model::facts::HostQuality;
use crate::symbols::files::SymbolPaths;
use crate::timeline::Timeline;
use assembly::Assembly;
use columns::MetricColumns;
use contexts::Dictionary;
use contribution::Contributions;
use foldhash::HashMap;
use get_size2::GetSize;
use paths::{ExplainedExecutions, Holders};
use prepared::PreparedFrom;
use std::sync::Arc;
use threads::ModelThreads;

/// Explain all executions of one task. `notices` are those of the pass; what is found here is added.
#[cfg(not(program))]
pub fn build(timeline: &Timeline, request: &TaskRequest, notices: &Notices, ctx: &Ctx) -> Result<Model, Cancelled> {
    let mut notices = notices.clone();
    let stacks = LazyStackTables::default();
    let stacks = RecordingTables::new(timeline, &stacks, &request.places, &mut notices, ctx)?;
    with_stacks(timeline, &stacks, request, &notices, ctx)
}

/// Explain all executions of one task by tables that serve several tasks in turn.
pub fn with_stacks(
    timeline: &Timeline,
    stacks: &RecordingTables,
    request: &TaskRequest,
    notices: &Notices,
    ctx: &Ctx,
) -> Result<Model, Cancelled> {
    build_model(timeline, stacks, request, notices, Holders::Omitted, ctx).map(|(model, _)| model)
}

/// Tables computed once per recording, for all of its tasks: above all its call stacks.
#[derive(Debug)]
pub struct RecordingTables {
    /// The call stacks.
    pub tables: Arc<StackTables>,
    disk: DiskUse,
    leaders: Leaders,
    counter: PathCounter,
    remarks: Remarks,
    marks: MarksByTask,
}

impl RecordingTables {
    /// With the stacks of all threads, which are placed beside the other tables.
    pub fn new(
        timeline: &Timeline,
        stacks: &LazyStackTables,
        places: &SymbolPaths,
        notices: &mut Notices,
        ctx: &Ctx,
    ) -> Result<RecordingTables, Cancelled> {
        let others = || {
            let (disk, counter) = (DiskUse::new(timeline), PathCounter::new(timeline));
            Ok((disk, counter, Leaders::new(timeline), Remarks::new(timeline), MarksByTask::new(timeline)))
        };
        let (others, tables) = both(ctx, others, || stacks.get(timeline, places, ctx))?;
        let (disk, counter, leaders, remarks, marks) = others;
        notices.merge(&tables.notices);
        Ok(RecordingTables { tables, disk, leaders, counter, remarks, marks })
    }
}

/// [`with_stacks`], and the threads that delayed each execution, by context and time.
pub fn with_contributions(
    timeline: &Timeline,
    stacks: &RecordingTables,
    request: &TaskRequest,
    notices: &Notices,
    ctx: &Ctx,
) -> Result<(Model, Contributions), Cancelled> {
    build_model(timeline, stacks, request, notices, Holders::Wanted, ctx)
}

fn build_model(
    timeline: &Timeline,
    stacks: &RecordingTables,
    request: &TaskRequest,
    notices: &Notices,
    holders: Holders,
    ctx: &Ctx,
) -> Result<(Model, Contributions), Cancelled> {
    let mut model = Model {
        tasks: Arc::clone(&request.tasks),
        task: request.task,
        traces: request.traces.clone(),
        notices: notices.clone(),
        quality: quality(timeline),
        origin: timeline.span().start,
        ..Model::default()
    };
    let RecordingTables { tables, disk, leaders, counter, remarks, marks } = stacks;
    let StackTables { spaces, timelines, symbols, kernel, .. } = &**tables;
    let names = ThreadNames::new(timeline, &mut model.names, &mut model.notices);
    let found = marks.pair(timeline, request.marks, &request.rule, &mut model.notices);
    let mut found = executions::covered(timeline, found, &mut model.notices);
    sort_alike(timeline, &mut found);
    let interleaved = interleaved(timeline, &found);
    let pauses = counter.pauses();
    let shown = &names;
    let sources =
        EcctInputs { timeline, timelines, names: shown, disk, leaders, pauses, remarks, kernel: kernel.as_ref() };
    let explained = paths::explain(&found, &request.timelines, &sources, counter, holders, ctx)?;
    let ExplainedExecutions { outline, hops, contributions, chunks } = explained;

    ctx.progress.enter("symbols", 0);
    let places = &request.places;
    let stacks = timelines.table();
    let dictionary = Dictionary { timeline, stacks, spaces, places, symbols, kernel: kernel.as_ref(), pauses };
    let (tree, contexts) = contexts::name(&outline, &dictionary, &mut model.names, &mut model.notices, ctx)?;
    model.contexts = tree;
    // Labels come before other names of executions.
    let labels = request.traces.iter().map(|trace| model.names.intern(&trace.label)).collect();
    let contributions = match holders {
        Holders::Wanted => Contributions::new(timeline, leaders, &names, &found, hops, contributions),
        Holders::Omitted => Contributions::default(),
    };
    let mut assembly = Assembly {
        timeline,
        request,
        outline: &outline,
        contexts: &contexts,
        names: &names,
        labels,
        kinds: HashMap::default(),
        errors: HashMap::default(),
        leaders,
        remarks,
        threads: ModelThreads::new(timeline, leaders),
        columns: MetricColumns::new(timeline),
        contributions,
        model,
    };
    ctx.progress.enter("results", found.len() as u64);
    let source = PreparedFrom { timeline, outline: &outline, contexts: &contexts };
    let prepare = |executions: &[Execution], explained| source.of_chunk(executions, explained);
    let take = |i: usize, prepared| assembly.push(&found[i], prepared, interleaved.get(i).copied().flatten());
    paths::each(chunks, &found, prepare, take, ctx)?;
    let (model, contributions) = assembly.finish();
    ctx.progress.parts.hold(MemoryPart::Results, model.executions.get_heap_size());
    Ok((model, contributions))
}

/// Executions of one span in the order of a canonical model: by host and ids of their threads. They are in order of
/// their spans.
fn sort_alike(timeline: &Timeline, found: &mut [Execution]) {
    let key = |execution: &Execution| {
        let thread = timeline.thread(execution.thread);
        let host = thread.and_then(|thread| timeline.hosts().get(thread.host.index()));
        (host.map(|host| timeline.names().get(host.name)), thread.map(|thread| (thread.pid, thread.tid)))
    };
    for alike in found.chunk_by_mut(|a, b| a.span == b.span).filter(|alike| alike.len() > 1) {
        alike.sort_by(|a, b| key(a).cmp(&key(b)));
    }
}

/// Of the hosts whose switches were recorded.
fn quality(timeline: &Timeline) -> Vec<HostQuality> {
    let hosts = timeline.hosts().iter().zip(timeline.quality()).filter(|(_, quality)| quality.switches > 0);
    hosts.map(|(h, quality)| HostQuality { host: timeline.names().get(h.name).to_owned(), quality: *quality }).collect()
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
    let mut inclusive = InclusiveTimes::new(&model.contexts);
    for i in 0..executions.len() {
        let duration = executions.duration(i);
        let own: u64 = executions.own.row(i).map(|time| time.ns).sum();
        let mut root = 0;
        inclusive.of(executions.own.row(i), |context, ns| {
            root += if model.contexts.parent(context).is_none() { ns } else { 0 };
        });
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
