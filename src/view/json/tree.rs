//! The metrics of both groups as histograms, and the differential tree.

use crate::base::clean;
use crate::compare::arranged::ArrangedTree;
use crate::compare::functions::{FunctionDiff, by_function};
use crate::compare::members::{binned, sorted_present};
use crate::compare::separation::separation;
use crate::compare::{Comparison, DiffTree, frame_text};
use crate::model::Model;
use crate::model::context::ContextId;
use crate::model::execution::ExecutionId;
use crate::model::histogram::Bins;
use crate::model::metric::{Column, Unit};
use serde::Serialize;
use std::collections::BinaryHeap;

#[derive(Serialize)]
pub(super) struct MetricJson {
    name: String,
    unit: &'static str,
    logarithmic: bool,
    /// Edges of the bins, one more than counts; half-open.
    bins: Vec<i64>,
    /// For metrics that are names: the name of each bin.
    #[serde(skip_serializing_if = "Option::is_none")]
    names: Option<Vec<String>>,
    slow: Vec<u32>,
    fast: Vec<u32>,
    /// How well it separates the groups, from 0 to 1.
    separation: f64,
}

pub(super) fn metric(model: &Model, column: &Column, c: &Comparison) -> MetricJson {
    let unit = column.metric.unit();
    let bins = Bins::new(&sorted_present(column.values.iter()), unit);
    let counts = |members: &[ExecutionId]| binned(model, column, &bins, members);
    let name = |value: &i64| clean::owned(model.name_of(*value));
    let (slow, fast) = (counts(&c.slow.members), counts(&c.fast.members));
    MetricJson {
        name: clean::owned(&column.metric.name()),
        unit: match unit {
            Unit::Ns => "ns",
            Unit::Bytes => "bytes",
            Unit::Count => "count",
            Unit::Name => "name",
        },
        logarithmic: bins.logarithmic,
        names: (unit == Unit::Name).then(|| bins.edges.iter().take(bins.len()).map(name).collect()),
        separation: separation(unit == Unit::Name, &slow, &fast),
        slow,
        fast,
        bins: bins.edges,
    }
}

#[derive(Serialize)]
pub(super) struct NodeJson {
    name: String,
    /// How the execution's own thread spent the time; absent with callees first, where a node joins several.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    depth: u32,
    /// Position of the node above it in this list; null of a root.
    parent: Option<u32>,
    slow_mean_ns: f64,
    fast_mean_ns: f64,
    delta_ns: f64,
    self_delta_ns: f64,
    deviations: Option<f64>,
    p_value: Option<f64>,
    slow_affected: f64,
    fast_affected: f64,
}

pub(super) fn tree(model: &Model, tree: &DiffTree, most: Option<usize>) -> Vec<NodeJson> {
    nodes(model, tree, most, |context| Some(model.contexts.spent(context).name()))
}

/// The nodes of an arranged tree of these executions, with callers first.
pub(super) fn arranged(model: &Model, arranged: &ArrangedTree, most: Option<usize>) -> Vec<NodeJson> {
    // How the time was spent is known of the contexts of the executions alone: a root may be below a wait there.
    let kinds = arranged.first_counting();
    let kind = |context: ContextId| Some(model.contexts.spent((*kinds.get(context.index())?)?).name());
    nodes(&arranged.model, &arranged.comparison.tree, most, kind)
}

/// The nodes of an inverted tree.
pub(super) fn callees_first(inverted: &ArrangedTree, most: Option<usize>) -> Vec<NodeJson> {
    nodes(&inverted.model, &inverted.comparison.tree, most, |_| None)
}

fn nodes(
    model: &Model,
    tree: &DiffTree,
    most: Option<usize>,
    kind: impl Fn(ContextId) -> Option<&'static str>,
) -> Vec<NodeJson> {
    let keep = largest(tree, most.unwrap_or(usize::MAX));
    // Where a node comes in the list: nodes above a kept one are kept.
    let positions: Vec<u32> =
        keep.iter().scan(0, |next, keep| Some(std::mem::replace(next, *next + u32::from(*keep)))).collect();
    let kept = tree.nodes.iter().zip(keep).filter(|(_, keep)| *keep);
    kept.map(|(n, _)| NodeJson {
        name: clean::owned(&frame_text(model, n.context)),
        kind: kind(n.context),
        depth: n.depth,
        parent: n.parent.and_then(|parent| positions.get(parent as usize).copied()),
        slow_mean_ns: n.slow_mean_ns,
        fast_mean_ns: n.fast_mean_ns,
        delta_ns: n.delta_ns,
        self_delta_ns: n.self_delta_ns,
        deviations: n.deviations,
        p_value: n.p_value,
        slow_affected: n.slow_affected,
        fast_affected: n.fast_affected,
    })
    .collect()
}

#[derive(Serialize)]
pub(super) struct FunctionJson {
    name: String,
    /// Contexts that have it.
    places: u32,
    slow_mean_ns: f64,
    fast_mean_ns: f64,
    delta_ns: f64,
    self_delta_ns: f64,
}

impl FunctionJson {
    pub(super) fn new(f: &FunctionDiff) -> FunctionJson {
        FunctionJson {
            name: clean::owned(&f.name),
            places: f.places,
            slow_mean_ns: f.slow_mean_ns,
            fast_mean_ns: f.fast_mean_ns,
            delta_ns: f.delta_ns,
            self_delta_ns: f.self_delta_ns,
        }
    }
}

/// The difference by function, at most `most` rows.
pub(super) fn functions(model: &Model, tree: &DiffTree, most: Option<usize>) -> Vec<FunctionJson> {
    by_function(model, tree).iter().take(most.unwrap_or(usize::MAX)).map(FunctionJson::new).collect()
}

/// Which nodes to keep of a tree bounded to `most`: the largest differences, each with all nodes above it.
pub fn largest(tree: &DiffTree, most: usize) -> Vec<bool> {
    let mut keep = vec![most >= tree.nodes.len(); tree.nodes.len()];
    if most >= tree.nodes.len() {
        return keep;
    }
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); tree.nodes.len()];
    let mut open = BinaryHeap::new();
    // Absolute differences are never negative, so their bits are ordered as they are.
    let entry = |at: usize| (tree.nodes[at].delta_ns.abs().to_bits(), std::cmp::Reverse(at));
    for (at, node) in tree.nodes.iter().enumerate() {
        match node.parent {
            Some(parent) => children[parent as usize].push(at),
            None => open.push(entry(at)),
        }
    }
    for _ in 0..most {
        let Some((_, std::cmp::Reverse(at))) = open.pop() else { break };
        keep[at] = true;
        open.extend(children[at].iter().map(|c| entry(*c)));
    }
    keep
}
