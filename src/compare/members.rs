//! The executions that pass filters, and the reason if none does.
//!
//! In: a model and the filters of one group, with those of the other group for `group!=`. Out: executions, ascending,
//! or an error of one line. Cost: O(N) for each filter, O(N log N) with a percentile.

use super::filter::{Filter, Operand, Test};
use super::select_error::SelectError;
use super::since_begin;
use crate::base::names::NameId;
use crate::base::op::Op;
use crate::base::spelling;
use crate::model::column_values::ColumnValues;
use crate::model::execution::ExecutionId;
use crate::model::histogram::{Bins, ValueRange};
use crate::model::metric::{ABSENT, Column, Metric, Unit};
use crate::model::weights::RankedValues;
use crate::model::{Model, categories, elapsed};
use std::borrow::Cow;

/// The values of a metric by execution; durations, starts, ends and numbers need no column.
pub fn values<'m>(model: &'m Model, metric: &Metric) -> Option<Cow<'m, ColumnValues>> {
    let e = &model.executions;
    if let Some(column) = e.column(metric) {
        return Some(Cow::Borrowed(&column.values));
    }
    let values = match metric {
        Metric::Duration => e.duration.iter().collect(),
        Metric::Start => e.start.iter().map(|s| s.since(model.origin)).collect(),
        Metric::End => e.spans().map(|span| span.end.since(model.origin)).collect(),
        Metric::Elapsed => elapsed::values(model)?.into(),
        Metric::Execution => (0..e.len()).map(|i| i as i64).collect(),
        _ => categories::values(model, metric)?.into(),
    };
    Some(Cow::Owned(values))
}

/// The present values of a metric, ascending.
pub fn sorted_present(values: impl IntoIterator<Item = i64>) -> Vec<i64> {
    let values = values.into_iter();
    // Most are present: a list that grew would take twice the memory.
    let mut sorted = Vec::with_capacity(values.size_hint().0);
    sorted.extend(values.filter(|v| *v != ABSENT));
    sorted.sort_unstable();
    sorted
}

/// The present values of a metric with the numbers of executions that have them.
pub fn ranked_present(model: &Model, values: &ColumnValues) -> RankedValues {
    let weights = model.executions.weights();
    let present = values.iter().enumerate().filter(|(_, value)| *value != ABSENT);
    RankedValues::new(present.map(|(i, value)| (value, weights.of(i))), weights.are_one())
}

/// How many executions each bin has of a metric of some.
pub fn binned(model: &Model, column: &Column, bins: &Bins, members: &[ExecutionId]) -> Vec<u32> {
    let weights = model.executions.weights();
    let mut counts = vec![0_u32; bins.len()];
    for id in members {
        if let Some(bin) = column.values.get(id.index()).and_then(|value| bins.of(value)) {
            counts[bin] = counts[bin].saturating_add(u32::try_from(weights.of(id.index())).unwrap_or(u32::MAX));
        }
    }
    counts
}

/// The execution of typical length among `members`, of the type of `like` where executions have types: the lower
/// median by duration. `None` where there is none besides `like`.
pub fn typical(model: &Model, members: &[ExecutionId], like: ExecutionId) -> Option<ExecutionId> {
    let types = model.executions.column(&Metric::Type);
    let kind = |id: &ExecutionId| types.and_then(|column| column.values.get(id.index()));
    let wanted = kind(&like);
    let alike = members.iter().copied().filter(|id| kind(id) == wanted && *id != like);
    let mut alike: Vec<_> = alike.map(|id| (model.executions.duration(id.index()), id)).collect();
    // All but the median need no order: a key waits for this among a million executions.
    let median = alike.len().checked_sub(1)? / 2;
    let (_, (_, found), _) = alike.select_nth_unstable(median);
    Some(*found)
}

/// The executions that pass all filters, ascending; `others` are the filters of the other group, for `group!=`.
pub fn members(model: &Model, filters: &[Filter], others: &[Filter]) -> Result<Vec<ExecutionId>, SelectError> {
    let mut passes = vec![true; model.executions.len()];
    for filter in &since_begin::resolved(model, filters)? {
        if filter.metric == Metric::Group {
            if others.iter().any(|other| other.metric == Metric::Group) {
                return Err(SelectError::BothExclude { filter: filter.to_string() });
            }
            members(model, others, &[])?.iter().for_each(|e| passes[e.index()] = false);
            continue;
        }
        let values = values(model, &filter.metric).ok_or_else(|| {
            let names: Vec<String> = model.executions.columns.iter().map(|c| c.metric.name()).collect();
            let metric = filter.metric.name();
            let remedy = spelling::suggest(&metric, &names);
            SelectError::NoMetric { filter: filter.to_string(), metric, remedy }
        })?;
        if let Test::AnyOf(numbers) = &filter.test {
            passes.iter_mut().zip(values.iter()).for_each(|(pass, v)| *pass &= numbers.binary_search(&v).is_ok());
            continue;
        }
        let range = match &filter.test {
            Test::Compare(_, Operand::Name(name)) => {
                model.names.find(name).map(|id| ValueRange::single(id.raw().into()))
            }
            Test::Compare(Op::NotEqual, value) => {
                let equal = Filter { metric: filter.metric.clone(), test: Test::Compare(Op::Equal, value.clone()) };
                equal.range(&ranked_present(model, &values))
            }
            _ => filter.range(&ranked_present(model, &values)),
        };
        let inside = !matches!(filter.test, Test::Compare(Op::NotEqual, _));
        for (pass, v) in passes.iter_mut().zip(values.iter()) {
            *pass &= v != ABSENT && range.is_some_and(|range| range.contains(v)) == inside;
        }
    }
    Ok(passes.iter().enumerate().filter(|(_, p)| **p).map(|(i, _)| ExecutionId::at(i)).collect())
}

/// The reason why no execution passes: the first filter that excludes all of them, and the values that exist.
pub fn why_empty(model: &Model, filters: &[Filter], others: &[Filter]) -> String {
    let none = |f: &&Filter| members(model, std::slice::from_ref(*f), others).is_ok_and(|m| m.is_empty());
    let alone = filters.iter().find(none);
    let Some(filter) = alone else {
        let all: Vec<String> = filters.iter().map(|f| format!("`{f}`")).collect();
        return format!("no execution passes {} together: drop one of them", all.join(" and "));
    };
    if filter.metric == Metric::Group {
        return format!("no execution passes `{filter}`: the other group has them all");
    }
    let present = values(model, &filter.metric).map(|values| sorted_present(values.iter())).unwrap_or_default();
    let range = match (filter.metric.unit(), present.first(), present.last()) {
        (_, None, _) | (_, _, None) => "no execution has a value".to_string(),
        (Unit::Name, ..) => {
            let mut ids = present.clone();
            ids.dedup();
            let names: Vec<&str> =
                ids.iter().take(12).map(|id| model.names.get(NameId::from_raw(*id as u32))).collect();
            format!("the values are {}", names.join(", "))
        }
        (unit, Some(least), Some(most)) => {
            format!("the values go from {} to {}", unit.exact(*least), unit.exact(*most))
        }
    };
    format!("no execution passes `{filter}`: {range}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::time::Timestamp;
    use crate::model::metric::Column;

    fn parse(text: &str) -> Filter {
        text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    fn model() -> Model {
        let mut model = Model::default();
        let append = i64::from(model.names.intern("append").raw());
        let lookup = i64::from(model.names.intern("lookup").raw());
        let e = &mut model.executions;
        for d in [10, 20, 30, 40] {
            e.start.push(Timestamp::new(1000 + d));
            e.duration.push(d);
        }
        e.columns.push(Column { metric: Metric::Type, values: vec![append, lookup, append, lookup].into() });
        e.columns.push(Column { metric: Metric::Field("n".into()), values: vec![ABSENT, 7, 8, 9].into() });
        model.origin = Timestamp::new(1000);
        model
    }

    fn passing(model: &Model, filters: &[&str]) -> Vec<u32> {
        let filters: Vec<Filter> = filters.iter().map(|t| parse(t)).collect();
        members(model, &filters, &[]).unwrap().into_iter().map(ExecutionId::raw).collect()
    }

    #[test]
    fn members_evaluates_every_operator() {
        let m = model();
        assert_eq!(passing(&m, &["duration>20ns"]), [2, 3]);
        assert_eq!(passing(&m, &["duration>=20ns", "duration<40ns"]), [1, 2]);
        assert_eq!(passing(&m, &["duration<=p50"]), [0, 1]);
        assert_eq!(passing(&m, &["duration in 20ns..40ns"]), [1, 2]);
        assert_eq!(passing(&m, &["start=40ns"]), [3]);
        assert_eq!(passing(&m, &["start<=30ns", "end>40ns"]), [2], "those that ran at a moment");
        assert_eq!(passing(&m, &["duration!=20ns"]), [0, 2, 3]);
        assert_eq!(passing(&m, &["type=append", "duration!=p1"]), [2]);
        assert_eq!(passing(&m, &["execution=3,0,9"]), [0, 3]);
        assert_eq!(passing(&m, &["duration=30ns,40ns"]), [2, 3]);
        assert_eq!(passing(&m, &["type!=append"]), [1, 3]);
        assert_eq!(passing(&m, &["type=none"]), [0_u32; 0]);
        assert_eq!(passing(&m, &["field.n!=8"]), [1, 3], "an absent value passes nothing");
        assert_eq!(passing(&m, &["field.n<100"]), [1, 2, 3]);
    }

    #[test]
    fn members_excludes_the_other_group() {
        let m = model();
        let slow = [parse("duration>20ns")];
        let rest = members(&m, &[parse("group!=slow"), parse("type=append")], &slow).unwrap();
        assert_eq!(rest, [ExecutionId::at(0)]);
        assert!(members(&m, &[parse("group!=slow")], &[parse("group!=fast")]).is_err());
        assert!(
            why_empty(&m, &[parse("group!=slow")], &[parse("duration>0ns")]).ends_with("the other group has them all")
        );
    }

    #[test]
    fn members_and_why_empty_explain_themselves() {
        let m = model();
        let absent = members(&m, &[parse("field.m>1")], &[]).unwrap_err().to_string();
        assert!(absent.contains("no field.m") && absent.contains("`field.n`"), "{absent}");
        assert_eq!(
            why_empty(&m, &[parse("duration>1s")], &[]),
            "no execution passes `duration>1s`: the values go from 10ns to 40ns"
        );
        assert!(why_empty(&m, &[parse("type=apend")], &[]).ends_with("the values are append, lookup"));
        assert!(why_empty(&m, &[parse("duration<20ns"), parse("duration>20ns")], &[]).contains("together"));
    }
}
