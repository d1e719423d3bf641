//! Linked histograms: every metric's distribution in each group, counted anew when a filter moves.
//!
//! In: a model and the filters of both groups. Out: [`Counts`], an immutable snapshot that the screen draws. A
//! histogram counts the executions that pass the group's filters *on all other metrics*, so that a metric's own filter
//! does not hollow out its own histogram (ALGORITHMS.md 7.1). Each execution has, per group, a mask with a bit for
//! each metric that rejects it; bin numbers are precomputed bytes. Cost: O(N M) per count on the job thread.

use crate::base::work::{Cancelled, Work};
use crate::compare::Request;
use crate::compare::filter::{self, Filter};
use crate::model::Model;
use crate::model::metric::{ABSENT, Metric, Unit};
use std::sync::Arc;

/// Fine bins of a metric with many values. Divisible by most small numbers: columns on screen are sums of bins.
const BINS: usize = 240;
/// Of those, so many at the front belong to zero alone on a logarithmic axis with zeros.
const ZERO_BINS: usize = 12;

/// How values fall into bins.
#[derive(Clone, Debug, PartialEq)]
pub enum Bins {
    /// Bin `i` holds `[edges[i], edges[i + 1])`, ascending.
    Range {
        /// One more than bins.
        edges: Vec<i64>,
        /// The axis grows by factors.
        logarithmic: bool,
    },
    /// One bin per name: its value in the column and its text, most frequent first.
    Names(Vec<(i64, String)>),
}

impl Bins {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Bins::Range { edges, .. } => edges.len().saturating_sub(1),
            Bins::Names(names) => names.len(),
        }
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn of(&self, value: i64) -> Option<u8> {
        let at = match self {
            Bins::Range { edges, .. } => {
                edges.partition_point(|e| *e <= value).checked_sub(1)?.min(self.len().checked_sub(1)?)
            }
            Bins::Names(names) => names.iter().position(|(v, _)| *v == value)?,
        };
        u8::try_from(at).ok()
    }

    fn new(model: &Model, metric: &Metric, values: &[i64]) -> Bins {
        let sorted = filter::sorted_present(values);
        let (Some(&least), Some(&most)) = (sorted.first(), sorted.last()) else { return Bins::Names(Vec::new()) };
        if metric.unit() == Unit::Name {
            let mut runs: Vec<(i64, usize)> = sorted.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect();
            runs.sort_by_key(|(v, n)| (std::cmp::Reverse(*n), *v));
            runs.truncate(BINS);
            let text = |v: i64| match metric {
                Metric::Trace => usize::try_from(v).ok().and_then(|i| model.traces.get(i)).map(|t| t.label.clone()),
                _ => u32::try_from(v).ok().map(|id| model.names.get(crate::base::names::NameId(id)).to_owned()),
            };
            return Bins::Names(runs.into_iter().map(|(v, _)| (v, text(v).unwrap_or_default())).collect());
        }
        let span = most.saturating_sub(least);
        if span < BINS as i64 {
            return Bins::Range { edges: (least..=most + 1).collect(), logarithmic: false };
        }
        let median = sorted[sorted.len() / 2];
        let positive = sorted[sorted.partition_point(|v| *v <= 0).min(sorted.len() - 1)];
        let skewed = least >= 0 && *metric != Metric::Start && most / median.max(1) >= 20;
        let mut edges: Vec<i64> = if skewed {
            let first = if least == 0 { ZERO_BINS } else { 0 };
            let (low, high) = (positive.max(1) as f64, most as f64 + 1.0);
            let steps = (BINS - first) as f64;
            let at = |i: usize| (low * (high / low).powf(i as f64 / steps)).round() as i64;
            let zeros = (0..first).map(|_| 0);
            zeros.chain((0..=BINS - first).map(at)).collect()
        } else {
            let at = |i: usize| least + (i128::from(span + 1) * i as i128 / BINS as i128) as i64;
            (0..=BINS).map(at).collect()
        };
        for i in 1..edges.len() {
            edges[i] = edges[i].max(edges[i - 1]);
        }
        Bins::Range { edges, logarithmic: skewed }
    }
}

/// One metric in both groups.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Which.
    pub metric: Metric,
    /// Its bins.
    pub bins: Arc<Bins>,
    /// Executions of the slow group per bin.
    pub slow: Vec<u32>,
    /// Executions of the fast group per bin.
    pub fast: Vec<u32>,
    /// Bins that the slow group's own filters on this metric let in.
    pub slow_inside: Vec<bool>,
    /// The same of the fast group.
    pub fast_inside: Vec<bool>,
}

/// All histograms at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// In the order of the model's columns.
    pub rows: Vec<Row>,
}

struct Indexed {
    metric: Metric,
    bins: Arc<Bins>,
    of: Vec<u8>,
    present: Vec<bool>,
    sorted: Vec<i64>,
}

#[derive(Default)]
struct Side {
    filters: Vec<Filter>,
    rejects: Vec<u32>,
}

/// The state from which histograms are counted.
pub struct Linked {
    model: Arc<Model>,
    columns: Vec<Indexed>,
    slow: Side,
    fast: Side,
}

impl Linked {
    /// Index a model: O(N log N) per metric.
    pub fn new(model: &Arc<Model>, work: &Work) -> Result<Linked, Cancelled> {
        let mut metrics = vec![Metric::Duration];
        let others = model.executions.columns.iter().map(|c| c.metric.clone());
        metrics.extend(others.filter(|m| *m != Metric::Duration));
        if !metrics.contains(&Metric::Start) {
            metrics.push(Metric::Start);
        }
        let mut columns = Vec::new();
        // 32 bits in the masks: the metrics beyond are rare fields of the events.
        for metric in metrics.into_iter().take(32) {
            work.cancel.check()?;
            let Some(values) = filter::values(model, &metric) else { continue };
            let bins = Arc::new(Bins::new(model, &metric, &values));
            let found: Vec<Option<u8>> = values.iter().map(|v| (*v != ABSENT).then(|| bins.of(*v)).flatten()).collect();
            columns.push(Indexed {
                metric,
                of: found.iter().map(|b| b.unwrap_or(0)).collect(),
                present: found.iter().map(Option::is_some).collect(),
                sorted: filter::sorted_present(&values),
                bins,
            });
            work.progress.step(1);
        }
        let side = || Side { filters: Vec::new(), rejects: vec![0; model.executions.len()] };
        Ok(Linked { model: Arc::clone(model), columns, slow: side(), fast: side() })
    }

    /// True when it indexes this very model.
    pub fn is_of(&self, model: &Arc<Model>) -> bool {
        Arc::ptr_eq(&self.model, model)
    }

    /// Take over the groups' filters and count.
    pub fn count(&mut self, groups: &Request) -> Counts {
        for (side, filters) in [(&mut self.slow, &groups.slow), (&mut self.fast, &groups.fast)] {
            side.take(&self.model, &self.columns, filters);
        }
        let rows = self.columns.iter().enumerate().map(|(i, column)| Row {
            metric: column.metric.clone(),
            bins: Arc::clone(&column.bins),
            slow: self.slow.histogram(i, column),
            fast: self.fast.histogram(i, column),
            slow_inside: self.slow.inside(column),
            fast_inside: self.fast.inside(column),
        });
        Counts { rows: rows.collect() }
    }
}

impl Side {
    fn take(&mut self, model: &Model, columns: &[Indexed], filters: &[Filter]) {
        for (i, column) in columns.iter().enumerate() {
            let on = |list: &[Filter]| -> Vec<Filter> {
                list.iter().filter(|f| f.metric == column.metric).cloned().collect()
            };
            let (was, is) = (on(&self.filters), on(filters));
            if was == is {
                continue;
            }
            let bit = 1u32 << i;
            let passing = filter::members(model, &is).unwrap_or_default();
            for mask in &mut self.rejects {
                *mask |= bit;
            }
            for id in passing {
                self.rejects[id.index()] &= !bit;
            }
        }
        self.filters = filters.to_vec();
    }

    fn histogram(&self, metric: usize, column: &Indexed) -> Vec<u32> {
        let mut counts = vec![0u32; column.bins.len()];
        let own = 1u32 << metric;
        for ((mask, bin), present) in self.rejects.iter().zip(&column.of).zip(&column.present) {
            if mask & !own == 0
                && *present
                && let Some(count) = counts.get_mut(usize::from(*bin))
            {
                *count += 1;
            }
        }
        counts
    }

    fn inside(&self, column: &Indexed) -> Vec<bool> {
        let own: Vec<&Filter> = self.filters.iter().filter(|f| f.metric == column.metric).collect();
        let passes = |low: i64, high: i64, name: Option<&str>| {
            own.iter().all(|f| match (&f.test, f.range(&column.sorted)) {
                (_, Some((from, to))) => from < high && low < to,
                (filter::Test::Compare(op, filter::Operand::Name(wanted)), None) => {
                    (name == Some(wanted.as_str())) == (*op == filter::Op::Equal)
                }
                _ => true,
            })
        };
        match column.bins.as_ref() {
            Bins::Range { edges, .. } => edges.windows(2).map(|e| passes(e[0], e[1].max(e[0] + 1), None)).collect(),
            Bins::Names(names) => names.iter().map(|(v, name)| passes(*v, v + 1, Some(name))).collect(),
        }
    }
}
