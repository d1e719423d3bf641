//! The columns of metrics, each in the form that takes least.
//!
//! A metric that follows from the rest of the model (the duration, the time per kind, a count that is always the same)
//! is stored by one byte. Other columns are the values themselves, or each value's distance from the one before
//! (numbers that grow). Which form is tried out: cost a few passes over each column.

use super::rows::most_numbers;
use crate::base::pack::{Pack, Unpack, fold, unfold};
use crate::model::column_values::ColumnValues;
use crate::model::execution::ContextTime;
use crate::model::metric::{ABSENT, Column, Metric, Unit};
use crate::model::wait_kind::WaitKind;
use crate::model::weights::MOST_WEIGHT;
use crate::model::{Model, categories, elapsed};

/// How a column is written.
const FOLLOWS: u64 = 0;
const SAME: u64 = 1;
const VALUES: u64 = 2;
const DISTANCES: u64 = 3;

/// Values of a metric that follow from the rest of a model, by execution.
fn follows(model: &Model, by_kind: &ByKind, metric: &Metric) -> Option<ColumnValues> {
    let e = &model.executions;
    let values = match metric {
        Metric::Duration => return Some(e.duration.iter().collect()),
        Metric::Start => return Some(e.start.iter().map(|s| s.since(model.origin)).collect()),
        Metric::Time(kind) => return Some(by_kind[*kind as usize].clone()),
        Metric::Other => {
            let others = || WaitKind::ALL.into_iter().filter(|kind| !kind.row().has_metric);
            let time = |i: usize| others().filter_map(|kind| by_kind[kind as usize].get(i)).sum();
            return Some((0..e.len()).map(time).collect());
        }
        Metric::Elapsed => elapsed::values(model),
        _ => categories::values(model, metric),
    };
    values.map(ColumnValues::from)
}

/// How the own threads of executions spent their time, in the order of [`WaitKind::ALL`].
type ByKind = [ColumnValues; WaitKind::ALL.len()];

fn by_kind(model: &Model) -> ByKind {
    let mut all = ByKind::default();
    for i in 0..model.executions.len() {
        let mut times = [0; WaitKind::ALL.len()];
        for ContextTime { context, ns } in model.executions.own.row(i) {
            times[model.contexts.spent(context) as usize] += ns as i64;
        }
        all.iter_mut().zip(times).for_each(|(values, time)| values.push(time));
    }
    all
}

/// The number of columns, and each.
pub(super) fn write(model: &Model, pack: &mut Pack) {
    let by_kind = by_kind(model);
    // Labels are not the executions' own.
    let columns = || model.executions.columns.iter().filter(|column| column.metric != Metric::Trace);
    pack.number(columns().count() as u64);
    for Column { metric, values } in columns() {
        pack.text(&metric.name());
        if follows(model, &by_kind, metric).is_some_and(|follows| *values == follows) {
            pack.number(FOLLOWS);
        } else if let Some(first) = values.get(0).filter(|first| values.iter().all(|v| v == *first)) {
            pack.number(SAME);
            pack.number(present(first));
        } else {
            let (mut plain, mut apart) = (Pack::default(), Some(Pack::default()));
            values.iter().for_each(|v| plain.number(present(v)));
            let mut before = 0_i64;
            for v in values.iter() {
                let distance = if v == ABSENT { ABSENT } else { v.wrapping_sub(before) };
                if v != ABSENT && distance == ABSENT {
                    apart = None;
                }
                let Some(apart) = &mut apart else { break };
                apart.number(present(distance));
                before = if v == ABSENT { before } else { v };
            }
            match apart.filter(|a| a.0.len() < plain.0.len()) {
                Some(apart) => {
                    pack.number(DISTANCES);
                    pack.0.extend(apart.0);
                }
                None => {
                    pack.number(VALUES);
                    pack.0.extend(plain.0);
                }
            }
        }
    }
}

/// Absent is the shortest.
fn present(value: i64) -> u64 {
    if value == ABSENT { 0 } else { fold(value) + 1 }
}

fn value(written: u64) -> i64 {
    written.checked_sub(1).map_or(ABSENT, unfold)
}

/// Read the columns of a model that is whole but for them. `None` if the bytes are invalid, or contain more values than
/// they may.
pub(super) fn read(model: &Model, unpack: &mut Unpack<'_>) -> Option<Vec<Column>> {
    let n = model.executions.len();
    let mut most = most_numbers(unpack.0.len().saturating_add(n));
    let by_kind = by_kind(model);
    let mut all: Vec<Column> = Vec::new();
    for _ in 0..unpack.index(unpack.0.len())? {
        most = most.checked_sub(n as u64)?;
        let metric = Metric::named(&unpack.text()?).filter(|metric| *metric != Metric::Trace)?;
        let values: ColumnValues = match unpack.number()? {
            FOLLOWS => follows(model, &by_kind, &metric)?,
            SAME => std::iter::repeat_n(value(unpack.number()?), n).collect(),
            VALUES => (0..n).map(|_| unpack.number().map(value)).collect::<Option<_>>()?,
            DISTANCES => {
                let mut before = 0_i64;
                let mut next = || {
                    let distance = value(unpack.number()?);
                    if distance != ABSENT {
                        before = before.wrapping_add(distance);
                    }
                    Some(if distance == ABSENT { ABSENT } else { before })
                };
                (0..n).map(|_| next()).collect::<Option<_>>()?
            }
            _ => return None,
        };
        let is_name = |v: i64| v == ABSENT || usize::try_from(v).is_ok_and(|id| id < model.names.len());
        if metric.unit() == Unit::Name && !values.iter().all(is_name) {
            return None;
        }
        let is_weight = |v: i64| v == ABSENT || u64::try_from(v).is_ok_and(|v| (1..=MOST_WEIGHT).contains(&v));
        if metric == Metric::Weight && !values.iter().all(is_weight) {
            return None;
        }
        all.push(Column { metric, values });
    }
    Some(all)
}
