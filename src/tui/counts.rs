//! The histograms of both groups as the screen draws them.
//!
//! In: a model and the filters of both groups. Out: [`HistogramCounts`], an immutable snapshot. The counting itself is
//! [`model::selection`](crate::model::selection): ranges move there incrementally; conditions that are no ranges (`!=`,
//! lists, names that do not occur) exclude executions. Everything runs on the job thread, which keeps the
//! [`HistogramCounter`].

use crate::base::ctx::{Cancelled, Ctx};
use crate::base::op::Op;
use crate::compare::filter::{Filter, Operand, Test};
use crate::compare::separation::separation;
use crate::compare::{ComparisonRequest, members};
use crate::model::Model;
use crate::model::histogram::{Bins, ValueRange};
use crate::model::metric::{Column, Metric, Unit};
use crate::model::selection::{Axis, Linked, Selection};
use std::sync::Arc;

/// One metric in both groups.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramRow {
    pub metric: Metric,
    pub bins: Arc<Bins>,
    /// The name of each bin, for metrics that are names; else empty.
    pub names: Arc<[String]>,
    /// All executions per bin.
    pub all: Arc<[u32]>,
    /// Those that the slow group's filters concern.
    pub slow: GroupCounts,
    /// Those that the fast group's filters concern.
    pub fast: GroupCounts,
    /// How well the metric separates the groups, from 0 to 1.
    pub separation: f64,
}

/// The counts of one group on one metric.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupCounts {
    /// Executions per bin that pass the group's filters on all other metrics.
    pub passing: Vec<u32>,
    /// Members of the group per bin: they pass its filters on this metric as well.
    pub members: Vec<u32>,
    /// Bins that the group's own filters on this metric let in.
    pub inside: Vec<bool>,
}

/// The parts of a row that stay the same for a model.
struct RowShape {
    bins: Arc<Bins>,
    names: Arc<[String]>,
    all: Arc<[u32]>,
}

/// All histograms at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistogramCounts {
    /// The duration first, then those that separate the groups best; of equal ones the start last, others in the order
    /// of the model's columns.
    pub rows: Vec<HistogramRow>,
    /// Metrics that have one value in all executions, and that value: there is nothing to select.
    pub constant: Arc<[(Metric, i64)]>,
}

/// Data that stays the same for a model, and the two groups.
pub struct HistogramCounter {
    model: Arc<Model>,
    linked: Linked,
    shapes: Vec<RowShape>,
    constant: Arc<[(Metric, i64)]>,
    slow: Selection,
    fast: Selection,
    groups: ComparisonRequest,
}

impl HistogramCounter {
    /// Link the metrics of a model: O(N log N) per metric.
    pub fn new(model: &Arc<Model>, ctx: &Ctx) -> Result<HistogramCounter, Cancelled> {
        let mut metrics = vec![Metric::Duration];
        let others = model.executions.columns.iter().map(|c| c.metric.clone());
        metrics
            .extend(others.filter(|m| ![Metric::Duration, Metric::Start, Metric::Elapsed, Metric::Weight].contains(m)));
        let has_own_zeros = model.executions.column(&Metric::Elapsed).is_some();
        metrics.push(if has_own_zeros { Metric::Elapsed } else { Metric::Start });
        let column = |metric: Metric| {
            let values = members::values(model, &metric)?.into_owned();
            // A metric without values has no histogram.
            values.any().then_some(Column { metric, values })
        };
        // One that has the same value everywhere takes no histogram. A single execution has all of its own.
        let same = |column: &Column| {
            column.values.len() > 1 && column.values.iter().all(|value| Some(value) == column.values.get(0))
        };
        let (constant, columns): (Vec<Column>, Vec<Column>) = metrics.into_iter().filter_map(column).partition(same);
        let value = |column: Column| Some((column.metric, column.values.get(0)?));
        let constant: Arc<[(Metric, i64)]> =
            constant.into_iter().filter(|c| c.metric.unit() != Unit::Name).filter_map(value).collect();
        let linked = Linked::new(&columns, ctx)?.weighted(model.executions.weights());
        let names = |metric: &Metric, bins: &Bins| -> Arc<[String]> {
            let name = |value: &i64| model.name_of(*value).to_owned();
            let is_name = metric.unit() == Unit::Name;
            bins.edges.iter().take(if is_name { bins.len() } else { 0 }).map(name).collect()
        };
        let all = Selection::new(&linked);
        let shape = |(i, axis): (usize, &Axis)| RowShape {
            bins: Arc::new(axis.bins.clone()),
            names: names(&axis.metric, &axis.bins),
            all: all.counts(&linked, i).into(),
        };
        let shapes = linked.axes().iter().enumerate().map(shape).collect();
        Ok(HistogramCounter {
            model: Arc::clone(model),
            linked,
            shapes,
            constant,
            fast: all.clone(),
            slow: all,
            groups: ComparisonRequest::default(),
        })
    }

    /// True when it counts this very model.
    pub fn is_of(&self, model: &Arc<Model>) -> bool {
        Arc::ptr_eq(&self.model, model)
    }

    /// Take over the groups' filters and count.
    pub fn count(&mut self, groups: &ComparisonRequest) -> HistogramCounts {
        let (model, linked) = (&self.model, &self.linked);
        let (was, now) = (&self.groups, groups);
        take(model, linked, &mut self.slow, (&was.slow, &was.fast), (&now.slow, &now.fast));
        take(model, linked, &mut self.fast, (&was.fast, &was.slow), (&now.fast, &now.slow));
        self.groups = groups.clone();
        let of = |group: &Selection, axis: usize, bins: &Bins| GroupCounts {
            passing: group.counts(linked, axis).to_vec(),
            members: group.members_by_bin(linked, axis),
            inside: inside(bins, group.range(axis)),
        };
        let rows = linked.axes().iter().zip(&self.shapes).enumerate().map(|(i, (axis, shape))| {
            let (slow, fast) = (of(&self.slow, i, &shape.bins), of(&self.fast, i, &shape.bins));
            HistogramRow {
                metric: axis.metric.clone(),
                bins: Arc::clone(&shape.bins),
                names: Arc::clone(&shape.names),
                all: Arc::clone(&shape.all),
                separation: separation(axis.metric.unit() == Unit::Name, &slow.members, &fast.members),
                slow,
                fast,
            }
        });
        HistogramCounts { rows: rows.collect(), constant: Arc::clone(&self.constant) }
    }
}

impl HistogramCounts {
    /// Order the rows by how well they separate the groups; the duration, by which groups are mostly made, stays first.
    pub fn sort_by_separation(&mut self) {
        let is_duration = |row: &HistogramRow| row.metric == Metric::Duration;
        self.rows
            .sort_by(|a, b| is_duration(b).cmp(&is_duration(a)).then_with(|| b.separation.total_cmp(&a.separation)));
    }

    /// Order the rows as another snapshot has them; metrics that it does not have come last.
    pub fn sort_like(&mut self, other: &HistogramCounts) {
        let place = |row: &HistogramRow| other.rows.iter().position(|o| o.metric == row.metric).unwrap_or(usize::MAX);
        self.rows.sort_by_key(place);
    }
}

/// A group's filters, and those of the other group.
type Sides<'a> = (&'a [Filter], &'a [Filter]);

/// Bring a selection from its old filters to the new ones; metrics whose filters are the same are not touched.
fn take(
    model: &Model,
    linked: &Linked,
    selection: &mut Selection,
    (old, old_others): Sides<'_>,
    (new, others): Sides<'_>,
) {
    let on = |filters: &[Filter], metric: &Metric| -> Vec<Filter> {
        filters.iter().filter(|f| f.metric == *metric).cloned().collect()
    };
    for (i, axis) in linked.axes().iter().enumerate() {
        let now = on(new, &axis.metric);
        if now != on(old, &axis.metric) {
            selection.select(linked, i, range(model, &now));
        }
    }
    let no_range = |filters: &[Filter]| -> Vec<Filter> {
        filters.iter().filter(|f| is_no_range(f) || linked.position(&f.metric).is_none()).cloned().collect()
    };
    let now = no_range(new);
    let depends = now.iter().any(|f| f.metric == Metric::Group) && others != old_others;
    if depends || now != no_range(old) {
        let passing = members::members(model, &now, others).unwrap_or_default();
        selection.exclude(linked, |id| passing.binary_search(&id).is_err());
    }
}

fn is_no_range(filter: &Filter) -> bool {
    matches!(filter.test, Test::Compare(Op::NotEqual, _) | Test::AnyOf(_))
}

/// The range that all these filters on one metric leave; `None` when none of them is a range.
fn range(model: &Model, filters: &[Filter]) -> Option<ValueRange> {
    let mut ranges = filters.iter().filter(|f| !is_no_range(f)).map(|f| match &f.test {
        // A name that does not occur lets nothing in.
        Test::Compare(_, Operand::Name(name)) => {
            model.names.find(name).map_or(ValueRange::EMPTY, |id| ValueRange::single(id.raw().into()))
        }
        _ => {
            let values = members::values(model, &f.metric).unwrap_or_default();
            f.range(&members::ranked_present(model, &values)).unwrap_or(ValueRange::EMPTY)
        }
    });
    let first = ranges.next()?;
    Some(ranges.fold(first, ValueRange::intersection))
}

fn inside(bins: &Bins, range: Option<ValueRange>) -> Vec<bool> {
    let is_inside = |bin: ValueRange| range.is_none_or(|range| range.overlaps(bin));
    (0..bins.len()).map(|i| bins.range(i).is_some_and(is_inside)).collect()
}
