//! Details of the item under the cursor: the full stack, the figures, the threads, and sample executions to look up in
//! the trace.
//!
//! In: model, comparison, and a context or a range of a metric. Out: facts, already chosen and ordered; drawn by
//! `layers/details.rs`. Cost is bounded: of very large groups every n-th execution is looked at.

use super::counts::HistogramRow;
use super::tree::{TreeDirection, ancestry, find_context, find_path, path_text};
use crate::base::time::{Ns, Span, Timestamp};
use crate::compare::heat_map::{HeatBox, HeatCell, HeatMap};
use crate::compare::inverted::InvertedTree;
use crate::compare::{Cause, Comparison, DiffNode, DiffTree, Group, members};
use crate::model::context::ContextId;
use crate::model::execution::ExecutionId;
use crate::model::{Model, ThreadInfoId};
use crate::view::{heat_map, words};
use std::ops::Range;

/// Entries of sparse vectors that are looked at for one page, at most.
const LOOKED_AT: usize = 4_000_000;
/// Sampled executions of the slow group, and half as many of the fast one.
const SAMPLES: usize = 8;

/// A frame of the full stack with its figures.
#[derive(Clone, Debug)]
pub struct StackRow {
    pub frame: String,
    /// The node, if the path is in the tree.
    pub node: Option<DiffNode>,
}

/// An execution to look up in the trace.
#[derive(Clone, Debug)]
pub struct SampleExecution {
    pub number: u32,
    /// `slow` or `fast`.
    pub group: &'static str,
    /// Label of its trace.
    pub trace: String,
    /// Start, from the first event of the recording.
    pub start_ns: Ns,
    /// Start on the trace's own time line.
    pub clock_ns: Timestamp,
    pub duration_ns: i64,
    /// Time in the context, or value of the metric.
    pub here: i64,
    pub thread: String,
    /// Thread id.
    pub tid: i32,
    pub process: String,
    /// Process id.
    pub pid: i32,
}

/// A thread behind a thread frame.
#[derive(Clone, Debug)]
pub struct ThreadTime {
    /// Thread name, tid, process, pid.
    pub who: String,
    /// Its time over all executions.
    pub ns: u64,
}

/// One page of details.
#[derive(Clone, Debug)]
pub enum Details {
    /// Of a context, perhaps that of a cause.
    Context {
        cause: Option<Cause>,
        /// The tree of the path.
        direction: TreeDirection,
        /// From a root of the tree: the process, or the callee.
        path: Vec<StackRow>,
        /// Threads behind the frames of the path, the longest first.
        threads: Vec<ThreadTime>,
        samples: Vec<SampleExecution>,
    },
    /// Of a range of a metric.
    Range {
        /// Name of the metric.
        row: HistogramRow,
        bins: Range<usize>,
        samples: Vec<SampleExecution>,
    },
    /// Of a box of the heat map, or of a cell.
    Cells {
        /// What is inside, in words.
        words: String,
        sum: HeatCell,
        samples: Vec<SampleExecution>,
    },
}

impl Details {
    /// The sampled executions.
    pub fn samples(&self) -> &[SampleExecution] {
        match self {
            Details::Context { samples, .. } | Details::Range { samples, .. } | Details::Cells { samples, .. } => {
                samples
            }
        }
    }
}

/// Whether sample executions are searched, which scans all members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleSearch {
    /// Searched.
    Done,
    /// Skipped, because details are built again at every move of a cursor.
    LeftOut,
}

/// Details of a context.
pub fn of_context(model: &Model, comparison: &Comparison, node: u32, search: SampleSearch) -> Details {
    let path = stack(model, &comparison.tree, node);
    let contexts: Vec<ContextId> = path.iter().filter_map(|s| s.node.as_ref()).map(|n| n.context).collect();
    let last = contexts.last().filter(|_| search == SampleSearch::Done);
    let samples = last.map_or(Vec::new(), |c| samples_at(model, comparison, *c));
    let direction = TreeDirection::CallersFirst;
    Details::Context { cause: None, direction, threads: threads(model, &contexts), path, samples }
}

/// Details of a node of the inverted tree: the frame, the callers, and the executions with most time there.
pub fn of_inverted(
    model: &Model,
    comparison: &Comparison,
    inverted: &InvertedTree,
    node: u32,
    search: SampleSearch,
) -> Details {
    let path = stack(&inverted.model, &inverted.comparison.tree, node);
    let direction = TreeDirection::CalleesFirst;
    if search == SampleSearch::LeftOut {
        return Details::Context { cause: None, direction, threads: Vec::new(), path, samples: Vec::new() };
    }
    let last = path.last().and_then(|row| row.node.as_ref());
    let inside = last.map_or(Vec::new(), |node| inverted.contexts_in(node.context));
    let samples = sampled_inside(model, comparison, &inside);
    Details::Context { cause: None, direction, threads: Vec::new(), path, samples }
}

/// The frames from a root of the tree to a node.
fn stack(model: &Model, tree: &DiffTree, node: u32) -> Vec<StackRow> {
    let nodes = ancestry(tree, node).into_iter().filter_map(|at| tree.nodes.get(at as usize));
    nodes.map(|n| StackRow { frame: words::frame(model, n.context), node: Some(n.clone()) }).collect()
}

/// Details of a cause: those of its context, where it has one.
pub fn of_cause(model: &Model, comparison: &Comparison, cause: &Cause, search: SampleSearch) -> Details {
    match cause_node(model, comparison, cause) {
        Some(node) => match of_context(model, comparison, node, search) {
            Details::Context { direction, path, threads, samples, .. } => {
                Details::Context { cause: Some(cause.clone()), direction, path, threads, samples }
            }
            range => range,
        },
        None => {
            let path = match cause.context {
                Some(context) => path_text(model, context),
                None => cause.path.clone(),
            };
            let path = path.into_iter().map(|frame| StackRow { frame, node: None }).collect();
            let direction = TreeDirection::CallersFirst;
            Details::Context { cause: Some(cause.clone()), direction, path, threads: Vec::new(), samples: Vec::new() }
        }
    }
}

/// The node of a cause.
pub fn cause_node(model: &Model, comparison: &Comparison, cause: &Cause) -> Option<u32> {
    let by_context = cause.context.and_then(|c| find_context(model, &comparison.tree, c));
    let by_path = || (!cause.path.is_empty()).then(|| find_path(model, &comparison.tree, &cause.path)).flatten();
    by_context.or_else(by_path)
}

/// Details of a range of bins: the executions in it.
pub fn of_range(model: &Model, comparison: &Comparison, row: &HistogramRow, bins: Range<usize>) -> Details {
    let values = members::values(model, &row.metric).unwrap_or_default();
    let value = |id: ExecutionId| values.get(id.index()).filter(|v| row.bins.of(*v).is_some_and(|b| bins.contains(&b)));
    let samples = sampled(model, comparison, 1, value);
    Details::Range { row: row.clone(), bins, samples }
}

/// Details of a box of the heat map: the longest executions in it.
pub fn of_cells(model: &Model, comparison: &Comparison, map: &HeatMap, of: HeatBox) -> Details {
    let inside = |id: ExecutionId| {
        let (column, row) = map.place(model, id)?;
        let is_inside = of.columns.contains(&column) && of.rows.contains(&row);
        is_inside.then(|| model.executions.duration(id.index()))
    };
    let samples = sampled(model, comparison, 1, inside);
    let words = format!("{}: {}", heat_map::title(map), heat_map::box_words(map, &of));
    Details::Cells { words, sum: map.sum(&of), samples }
}

/// The executions that spent most time in a context.
fn samples_at(model: &Model, comparison: &Comparison, context: ContextId) -> Vec<SampleExecution> {
    let inside = model.contexts.within(context);
    sampled_inside(model, comparison, &inside)
}

/// The executions that spent most time of their own in some contexts.
fn sampled_inside(model: &Model, comparison: &Comparison, inside: &[bool]) -> Vec<SampleExecution> {
    let is_inside = |context: ContextId| inside.get(context.index()).copied().unwrap_or(false);
    let own = &model.executions.own;
    let time = |id: ExecutionId| {
        let ns: u64 = own.row(id.index()).filter(|time| is_inside(time.context)).map(|time| time.ns).sum();
        (ns > 0).then_some(ns as i64)
    };
    sampled(model, comparison, own.row(0).len().max(16), time)
}

fn sampled(
    model: &Model,
    comparison: &Comparison,
    cost: usize,
    value: impl Fn(ExecutionId) -> Option<i64>,
) -> Vec<SampleExecution> {
    let most = |group: &Group, name: &'static str, count: usize| {
        let stride = (group.members.len().saturating_mul(cost) / LOOKED_AT).max(1);
        let looked_at = group.members.iter().step_by(stride);
        let mut found: Vec<(i64, ExecutionId)> = looked_at.filter_map(|id| value(*id).map(|v| (v, *id))).collect();
        found.sort_by_key(|(v, id)| (std::cmp::Reverse(*v), *id));
        found.truncate(count);
        found.into_iter().map(move |(here, id)| sample(model, id, name, here)).collect::<Vec<_>>()
    };
    let mut samples = most(&comparison.slow, "slow", SAMPLES);
    samples.extend(most(&comparison.fast, "fast", SAMPLES / 2));
    samples
}

fn sample(model: &Model, id: ExecutionId, group: &'static str, here: i64) -> SampleExecution {
    let (e, at) = (&model.executions, id.index());
    let who = e.who.get(at).and_then(|w| model.who.get(w.index()));
    let name = |id: Option<crate::base::names::NameId>| id.map_or("", |n| model.names.get(n)).to_owned();
    let trace = e.trace.get(at).and_then(|t| model.traces.get(t.index()));
    let start = e.start.get(at).unwrap_or_default();
    SampleExecution {
        number: id.raw(),
        group,
        trace: trace.map_or(String::new(), |t| t.label.clone()),
        start_ns: start.since(model.origin),
        clock_ns: start,
        duration_ns: if at < e.len() { e.duration(at) } else { 0 },
        here,
        thread: name(who.map(|w| w.thread)),
        tid: who.map_or(0, |w| w.tid),
        process: name(who.map(|w| w.process)),
        pid: who.map_or(0, |w| w.pid),
    }
}

/// The executions that contain the last instant of a span, longest first.
pub fn at_moment(model: &Model, span: Span) -> impl Iterator<Item = ExecutionId> {
    model.executions.at(span.end.max(span.start + 1) - 1)
}

/// The longest executions of a moment.
pub fn samples_of_moment(model: &Model, span: Span) -> Vec<SampleExecution> {
    let inside = at_moment(model, span).take(SAMPLES);
    inside.map(|id| sample(model, id, "", model.executions.duration(id.index()))).collect()
}

fn threads(model: &Model, path: &[ContextId]) -> Vec<ThreadTime> {
    let of_frames = path.iter().rev().map(|context| model.contexts.threads_of(*context).collect::<Vec<_>>());
    let mut found = of_frames.into_iter().find(|threads| !threads.is_empty()).unwrap_or_default();
    found.sort_by_key(|(who, ns)| (std::cmp::Reverse(*ns), *who));
    found.truncate(SAMPLES);
    let text = |who: ThreadInfoId| {
        model.who.get(who.index()).map_or(String::new(), |w| {
            let name = |n| model.names.get(n);
            format!("{} (tid {}) of {} (pid {}) on {}", name(w.thread), w.tid, name(w.process), w.pid, name(w.host))
        })
    };
    found.into_iter().map(|(who, ns)| ThreadTime { who: text(who), ns }).collect()
}
