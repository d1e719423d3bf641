//! The calls of an execution, and those of two aligned.

use crate::base::clean;
use crate::base::time::Ns;
use crate::compare::calls::CallTree;
use crate::compare::calls::aligned::{AlignedRow, PairedCalls, RowCalls};
use crate::compare::frame_text;
use crate::model::Model;
use crate::model::context::ContextId;
use serde::Serialize;

/// Calls and rows written, at most; those with the most time.
const MOST: usize = 10_000;

#[derive(Serialize)]
pub(super) struct CallJson {
    name: String,
    kind: &'static str,
    level: u32,
    /// Position in the list.
    parent: Option<usize>,
    start_ns: Ns,
    ns: Ns,
}

#[derive(Serialize)]
pub(super) struct CallsJson {
    rows: Vec<RowJson>,
    rows_left_out: usize,
    coarse: usize,
}

#[derive(Serialize)]
struct RowJson {
    /// The calls of a unit that repeats; one name for a call.
    names: Vec<String>,
    kind: &'static str,
    level: u32,
    parent: Option<usize>,
    a: Option<RowCallsJson>,
    b: Option<RowCallsJson>,
    delta_ns: Ns,
}

#[derive(Serialize)]
struct RowCallsJson {
    times: u32,
    start_ns: Ns,
    end_ns: Ns,
    ns: Ns,
}

/// By position: whether it is among the `most` that are worth most. A parent that is worth as much as its children is
/// among them where they are.
fn largest(worth: &[Ns], most: usize) -> Vec<bool> {
    let mut order: Vec<usize> = (0..worth.len()).collect();
    order.sort_by_key(|at| (std::cmp::Reverse(worth[*at]), *at));
    let mut kept = vec![false; worth.len()];
    order.into_iter().take(most).for_each(|at| kept[at] = true);
    kept
}

/// By position: its position among those that are kept.
fn positions(kept: &[bool]) -> Vec<usize> {
    let place = |next: &mut usize, kept: &bool| {
        let at = *next;
        *next += usize::from(*kept);
        Some(at)
    };
    kept.iter().scan(0, place).collect()
}

fn name(model: &Model, context: ContextId) -> String {
    clean::owned(&frame_text(model, context))
}

/// The calls of an execution, the longest ones.
pub(super) fn calls(model: &Model, tree: &CallTree) -> Vec<CallJson> {
    let worth: Vec<Ns> = tree.calls().iter().map(|call| call.ns).collect();
    let kept = largest(&worth, MOST);
    let positions = positions(&kept);
    let shown = tree.calls().iter().zip(&kept).filter(|(_, kept)| **kept);
    let call = shown.map(|(call, _)| CallJson {
        name: name(model, call.context),
        kind: model.contexts.spent(call.context).name(),
        level: call.level,
        parent: call.parent.and_then(|parent| positions.get(parent as usize).copied()),
        start_ns: call.start_ns,
        ns: call.ns,
    });
    call.collect()
}

/// Two executions, row by row.
pub(super) fn aligned(model: &Model, calls: &PairedCalls) -> CallsJson {
    let longer = |row: &AlignedRow| [row.a, row.b].into_iter().flatten().map(|calls| calls.ns).max().unwrap_or(0);
    let worth: Vec<Ns> = calls.rows.iter().map(longer).collect();
    let kept = largest(&worth, MOST);
    let positions = positions(&kept);
    let of = |calls: RowCalls| RowCallsJson {
        times: calls.times,
        start_ns: calls.start_ns,
        end_ns: calls.end_ns,
        ns: calls.ns,
    };
    let shown = calls.rows.iter().zip(&kept).filter(|(_, kept)| **kept);
    let row = shown.map(|(row, _)| RowJson {
        names: calls.unit(row).map(|context| name(model, context)).collect(),
        kind: model.contexts.spent(row.context).name(),
        level: row.level,
        parent: row.parent.and_then(|parent| positions.get(parent as usize).copied()),
        a: row.a.map(of),
        b: row.b.map(of),
        delta_ns: row.delta_ns(),
    });
    let rows: Vec<RowJson> = row.collect();
    CallsJson { rows_left_out: calls.rows.len() - rows.len(), rows, coarse: calls.coarse }
}
