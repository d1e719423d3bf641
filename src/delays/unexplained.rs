//! Waits that took longer than usual without a known cause: they have no source, and no thread waited for them.
//!
//! In: the forest of delays. Out: [`UnexplainedWait`] rows, one per stream, call and region around it, longest together
//! first. Cost: linear in the forest, and a sort of the rows.

use super::propagation::noise;
use crate::analysis::patterns::triggers::Triggers;
use crate::analysis::patterns::{Lateness, PatternAnalysis};
use crate::base::names::NameId;
use crate::base::time::Span;
use crate::event::operation::OperationPlace;
use crate::model::propagation::Noise;
use crate::model::unexplained::UnexplainedWait;
use std::cmp::Reverse;
use std::collections::BTreeMap;

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
    let mut rows: BTreeMap<(u32, NameId, Option<NameId>), UnexplainedWait> = BTreeMap::new();
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
        let row = rows.entry((node.stream, call, function)).or_insert_with(|| UnexplainedWait {
            stream: node.stream,
            what: name(call),
            function: function.map(|id| operations.names.function(id).into_owned()),
            waits: 0,
            sent_in_time: 0,
            excess_ns: 0,
            span: node.span,
        });
        row.waits += 1;
        let noise = noise(mined, node, blamed, late.pattern.is_none(), &triggers);
        row.sent_in_time += u64::from(noise == Some(Noise::Delivery));
        row.excess_ns += node.excess;
        row.span = Span::new(row.span.start.min(node.span.start), row.span.end.max(node.span.end));
    }
    let mut rows: Vec<UnexplainedWait> = rows.into_values().collect();
    rows.sort_by_key(|r| (Reverse(r.excess_ns), r.stream, r.span.start));
    rows
}
