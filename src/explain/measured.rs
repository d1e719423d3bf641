//! Measurements of each iteration in the recording of an MPI run: metrics as columns, parameters as types.
//!
//! In: readings of metrics by operation, parameters. Out: for a metric that counts, its growth from the end of the
//! previous iteration to the end of this one; for others the last value. Parameters that an iteration sets are its
//! type. Cost: a search per iteration and metric.

use crate::analysis::patterns::triggers::Triggers;
use crate::base::names::NameId;
use crate::base::time::{Span, Timestamp};
use crate::event::operation::{Operation, Operations};
use crate::model::metric::{ABSENT, Column, Metric};
use std::collections::BTreeMap;

/// Columns as they grow, by metric.
pub(super) struct Measured {
    columns: BTreeMap<Metric, Vec<i64>>,
    iterations: usize,
}

impl Measured {
    /// Of all metrics that any stream has.
    pub(super) fn new(operations: &Operations) -> Self {
        let readings = operations.sequences.iter().flat_map(|s| &s.readings);
        let metric = |name: NameId, counts: bool| {
            let name = operations.names.get(name).to_owned();
            if counts { Metric::Perf(name) } else { Metric::Field(name) }
        };
        Measured { columns: readings.map(|r| (metric(r.name, r.counts), Vec::new())).collect(), iterations: 0 }
    }

    /// The next iteration, on the common time line: its parameters in words, if it sets any.
    pub(super) fn push(
        &mut self,
        operations: &Operations,
        triggers: &Triggers<'_>,
        stream: u32,
        span: Span,
    ) -> Option<String> {
        let sequence = operations.sequences.get(stream as usize)?;
        let begun = |time: Timestamp| {
            let before = |o: &Operation| triggers.span(stream, o).start < time;
            sequence.operations.partition_point(before)
        };
        let (first, end) = (begun(span.start), begun(span.end));
        for readings in &sequence.readings {
            let at = |operation: usize| readings.values.get(operation.checked_sub(1)?).copied().flatten();
            let name = operations.names.get(readings.name).to_owned();
            let (metric, value) = match (readings.counts, at(first), at(end)) {
                (true, Some(before), Some(after)) => (Metric::Perf(name), after.saturating_sub(before)),
                (false, _, Some(value)) => (Metric::Field(name), value),
                _ => continue,
            };
            if let Some(values) = self.columns.get_mut(&metric) {
                values.resize(self.iterations, ABSENT);
                values.push(value);
            }
        }
        self.iterations += 1;
        let from = sequence.parameters.partition_point(|p| (p.operation as usize) < first);
        let mut set: Vec<&str> = Vec::new();
        for parameter in sequence.parameters[from..].iter().take_while(|p| (p.operation as usize) < end) {
            let name = operations.names.get(parameter.name);
            if !set.contains(&name) && set.len() < MOST {
                set.push(name);
            }
        }
        (!set.is_empty()).then(|| set.join(", "))
    }

    /// The columns that hold a value.
    pub(super) fn finish(self) -> Vec<Column> {
        let iterations = self.iterations;
        let column = |(metric, mut values): (Metric, Vec<i64>)| {
            values.resize(iterations, ABSENT);
            Column { metric, values: values.into() }
        };
        let known = |c: &Column| c.values.any();
        self.columns.into_iter().map(column).filter(known).collect()
    }
}

/// Parameters in a type.
const MOST: usize = 4;
