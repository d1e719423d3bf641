//! The metrics of executions, in columns.
//!
//! In: executions one after the other, each with its time per kind and the counts on its path. Out: one column
//! per metric. Time per kind is that of the execution's own thread (its outermost wait), so that it adds up to the
//! duration and agrees with the causes. A metric that was not recorded is absent, not zero.
//! PRODUCT.md, `FILTER`; ALGORITHMS.md section 6.2.

use crate::analysis::counts::PathCounts;
use crate::analysis::executions::Execution;
use crate::base::names::{NameId, Names};
use crate::base::time::Timestamp;
use crate::model::column_values::ColumnValues;
use crate::model::metric::{ABSENT, Column, Metric};
use crate::model::wait_kind::WaitKind;
use crate::timeline::Timeline;
use std::collections::BTreeMap;

/// Collects the metrics of executions, one after the other, in order.
#[derive(Debug)]
pub struct MetricColumns {
    origin: Timestamp,
    executions: usize,
    fixed: Vec<Column>,
    kinds: ColumnValues,
    errors: ColumnValues,
    fields: BTreeMap<NameId, ColumnValues>,
    counters: Vec<Column>,
}

/// The values of a new execution's columns besides its counts.
#[derive(Clone, Copy, Debug)]
pub struct NewExecution<'a> {
    /// Time of its own thread by kind, in the order of [`WaitKind::ALL`].
    pub spent: &'a [u64],
    /// Its type, a name of the model.
    pub kind: Option<NameId>,
    /// Where a system call ended it: the error for which it failed, or [`SUCCEEDED`](crate::model::metric::SUCCEEDED);
    /// a name of the model.
    pub error: Option<NameId>,
    /// Label of its trace, a name of the model.
    pub trace: NameId,
}

impl MetricColumns {
    /// No executions yet of a recording.
    pub fn new(timeline: &Timeline) -> Self {
        let column = |metric| Column { metric, values: ColumnValues::default() };
        let fixed = Metric::measured().into_iter().map(column).collect();
        let counter = |name| Metric::Perf(timeline.names().get(name).trim_start_matches("perf_").to_owned());
        let counters = timeline.counters().map(counter).map(column).collect();
        let origin = timeline.span().start;
        MetricColumns {
            origin,
            executions: 0,
            fixed,
            kinds: ColumnValues::default(),
            errors: ColumnValues::default(),
            fields: BTreeMap::new(),
            counters,
        }
    }

    /// The next execution. `counters` are those of the recording.
    pub fn push(
        &mut self,
        execution: &Execution,
        fields: BTreeMap<NameId, i64>,
        counts: PathCounts,
        counters: &[Option<i64>],
        new: NewExecution<'_>,
    ) {
        let NewExecution { spent, kind, error, trace } = new;
        let time = |kind: WaitKind| spent.get(kind as usize).map_or(0, |ns| *ns as i64);
        let other = WaitKind::ALL.into_iter().filter(|kind| !kind.row().has_metric).map(time).sum();
        for column in &mut self.fixed {
            column.values.push(match &column.metric {
                Metric::Duration => execution.span.len(),
                Metric::Start => execution.span.start.since(self.origin),
                Metric::Time(kind) => time(*kind),
                Metric::Other => other,
                Metric::Trace => i64::from(trace.raw()),
                other => counts.value(other).unwrap_or(ABSENT),
            });
        }
        for (column, grown) in self.counters.iter_mut().zip(counters) {
            column.values.push(grown.unwrap_or(ABSENT));
        }
        self.kinds.push(kind.map_or(ABSENT, |k| i64::from(k.raw())));
        self.errors.push(error.map_or(ABSENT, |error| i64::from(error.raw())));
        for (name, value) in fields {
            let column = self.fields.entry(name).or_default();
            column.pad(self.executions);
            column.push(value);
        }
        self.executions += 1;
    }

    /// The columns that hold at least one value.
    pub fn finish(mut self, names: &Names) -> Vec<Column> {
        self.fixed.push(Column { metric: Metric::Type, values: self.kinds });
        self.fixed.push(Column { metric: Metric::Errno, values: self.errors });
        let mut fields: Vec<Column> = self
            .fields
            .into_iter()
            .map(|(name, mut values)| {
                values.pad(self.executions);
                Column { metric: Metric::Field(names.get(name).to_owned()), values }
            })
            .collect();
        fields.sort_by(|a, b| a.metric.cmp(&b.metric));
        self.fixed.extend(fields);
        self.fixed.extend(self.counters);
        self.fixed.retain(|c| c.values.any());
        self.fixed
    }
}
