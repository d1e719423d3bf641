//! Waits that took longer than usual without a known cause: they have no source, and no thread waited for them.
//!
//! In: the forest of delays. Out: [`UnexplainedWait`] rows, one per stream, call and region around it, longest together
//! first, each with the rank that was late for most of it. A late rank is no source where its own time exceeds no
//! limit: the same work may come too seldom to have one. Cost: linear in the forest, a search for the trigger of each
//! wait, and a sort of the rows.

use super::propagation::noise;
use crate::analysis::patterns::spread::DelayNode;
use crate::analysis::patterns::triggers::Triggers;
use crate::analysis::patterns::{Lateness, PatternAnalysis};
use crate::base::names::NameId;
use crate::base::time::{Ns, Span};
use crate::event::operation::OperationPlace;
use crate::model::event_kind::EventKind;
use crate::model::propagation::Noise;
use crate::model::unexplained::{LateStream, UnexplainedWait};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// By stream: how long others waited before it came.
type LateTimes = BTreeMap<u32, Ns>;

/// The rank that a wait for a message or a collective operation ended with, and how long it was awaited, where that is
/// most of what the wait took longer than usual.
fn late_stream(node: &DelayNode, place: OperationPlace, triggers: &Triggers<'_>) -> Option<LateStream> {
    if !matches!(node.kind, EventKind::Receive | EventKind::Collective) {
        return None;
    }
    let trigger = triggers.of(place, node.span.end)?;
    let ns = trigger.sent - node.span.start;
    let is_late = trigger.from.stream != place.stream && ns.saturating_mul(2) >= node.excess;
    is_late.then_some(LateStream { stream: trigger.from.stream, ns })
}

/// All rows.
pub(super) fn of(mined: &PatternAnalysis, lateness: &Lateness) -> Vec<UnexplainedWait> {
    let spread = &lateness.spread;
    let mut has_victims = vec![false; spread.nodes.len()];
    for cause in spread.causes.iter().flatten() {
        if let Some(known) = has_victims.get_mut(cause.node as usize) {
            *known = true;
        }
    }
    let operations = &mined.operations;
    let triggers = Triggers::new(operations, &mined.clocks);
    let mut rows: BTreeMap<(u32, NameId, Option<NameId>), (UnexplainedWait, LateTimes)> = BTreeMap::new();
    for ((node, cause), has_victims) in spread.nodes.iter().zip(&spread.causes).zip(has_victims) {
        if cause.is_some() || has_victims || !node.kind.waits() {
            continue;
        }
        let Some(late) = lateness.late.get(node.late as usize) else { continue };
        let Some(blamed) = late.responsible.get(node.responsible as usize) else { continue };
        let place = OperationPlace { stream: node.stream, operation: node.event / 2 };
        let Some(call) = operations.get(place).map(|o| o.symbol) else { continue };
        let function = operations.function_of(node.stream, node.event, blamed.local);
        let name = |id: NameId| operations.names.get(id).to_owned();
        let (row, late_times) = rows.entry((node.stream, call, function)).or_insert_with(|| {
            let row = UnexplainedWait {
                stream: node.stream,
                what: name(call),
                function: function.map(|id| operations.names.function(id).into_owned()),
                waits: 0,
                sent_in_time: 0,
                excess_ns: 0,
                late: None,
                span: node.span,
            };
            (row, LateTimes::new())
        });
        if let Some(LateStream { stream, ns }) = late_stream(node, place, &triggers) {
            *late_times.entry(stream).or_insert(0) += ns;
        }
        row.waits += 1;
        let noise = noise(mined, node, blamed, late.pattern.is_none(), &triggers);
        row.sent_in_time += u64::from(noise == Some(Noise::Delivery));
        row.excess_ns += node.excess;
        row.span = Span::new(row.span.start.min(node.span.start), row.span.end.max(node.span.end));
    }
    let latest = |times: LateTimes| times.into_iter().max_by_key(|(stream, ns)| (*ns, Reverse(*stream)));
    let with_late =
        |(row, times)| UnexplainedWait { late: latest(times).map(|(stream, ns)| LateStream { stream, ns }), ..row };
    let mut rows: Vec<UnexplainedWait> = rows.into_values().map(with_late).collect();
    rows.sort_by_key(|r| (Reverse(r.excess_ns), r.stream, r.span.start));
    rows
}
