//! Failed system calls among the executions, which are no fast ones: a call that fails at once does nothing.
//!
//! In: executions. Out: those from whose durations groups are proposed, and the filters by which the groups leave the
//! others out. Where calls succeeded, a failure that took no longer than most successes is left out; one that took
//! longer (a timeout) may be slow. Where hardly any succeeded, failures are compared with each other. ALGORITHMS.md
//! 7.5.

use super::filter::Filter;
use super::proposal::FEWEST;
use crate::base::figure;
use crate::base::op::Op;
use crate::model::Model;
use crate::model::execution::ExecutionId;
use crate::model::metric::{ABSENT, Metric, SUCCEEDED};
use crate::model::weights::RankedValues;

/// Executions that may be compared with each other.
#[derive(Debug, Default)]
pub(super) struct Comparable {
    pub members: Vec<ExecutionId>,
    /// More filters of both groups.
    pub both: Vec<Filter>,
    /// More filters of the fast group.
    pub fast: Vec<Filter>,
    /// What is left out, in a sentence.
    pub left_out: Vec<String>,
}

/// The executions among `within` that may be compared.
pub(super) fn comparable(model: &Model, within: Vec<ExecutionId>) -> Comparable {
    let duration = |id: &ExecutionId| model.executions.duration(id.index());
    let failures = within.iter().filter(|id| has_failed(model, id.index())).count();
    if failures == 0 || failures == within.len() {
        return Comparable { members: within, ..Comparable::default() };
    }
    let (succeeded, failed): (Vec<ExecutionId>, Vec<ExecutionId>) =
        within.iter().partition(|id| !has_failed(model, id.index()));
    if succeeded.len() < FEWEST {
        let both = vec![Filter::named(Metric::Errno, Op::NotEqual, SUCCEEDED)];
        let n = figure::plural(model.executions.weights().sum(&succeeded), "call");
        let left_out = vec![format!("{n} did not fail: neither group has them, because nearly all calls failed")];
        return Comparable { members: failed, both, left_out, ..Comparable::default() };
    }
    let weights = model.executions.weights();
    let ranked = RankedValues::durations(&model.executions, succeeded.iter().map(|id| id.index()));
    let usual = ranked.nearest_rank(50.0).unwrap_or(0);
    let members: Vec<ExecutionId> =
        within.iter().copied().filter(|id| !has_failed(model, id.index()) || duration(id) > usual).collect();
    let at_once = weights.sum(&within) - weights.sum(&members);
    let left_out =
        format!("{} failed at once: they did nothing, so they are no fast ones", figure::plural(at_once, "call"));
    Comparable {
        members,
        fast: vec![Filter::named(Metric::Errno, Op::Equal, SUCCEEDED)],
        left_out: (at_once > 0).then_some(left_out).into_iter().collect(),
        ..Comparable::default()
    }
}

/// True for an execution that a failed system call ended.
pub(super) fn has_failed(model: &Model, execution: usize) -> bool {
    let error = model.executions.column(&Metric::Errno).and_then(|column| column.values.get(execution));
    error.is_some_and(|error| error != ABSENT && model.name_of(error) != SUCCEEDED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ctx::Ctx;
    use crate::compare::scenario::ModelBuilder;
    use crate::compare::{Comparison, ComparisonRequest, compare};
    use crate::model::metric::Column;

    /// Calls of `(errno, ns)` over and over; their return value is a field.
    fn calls(of: &[(&str, u64)]) -> Comparison {
        let mut builder = ModelBuilder::new(5);
        let mut errors = Vec::new();
        for (i, (error, ns)) in of.iter().cycle().take(of.len() * 40).enumerate() {
            let wait = if i % (of.len() * 8) == of.len() - 1 { 15_000_000 } else { 0 };
            let work = builder.around(*ns as f64 / 1e6);
            let scanner = "p;main;[openat];thread scanner@scanner;main";
            builder.run("x", "p", "p", 1, &[("p;main;[openat]", work), (scanner, wait)]);
            errors.push(*error);
        }
        let mut model = builder.seal();
        let names = errors.iter().map(|error| i64::from(model.names.intern(error).raw())).collect();
        let returned = errors.iter().map(|error| if *error == SUCCEEDED { 3 } else { -2 }).collect();
        let executions = &mut model.executions;
        executions.columns.push(Column { metric: Metric::Errno, values: names });
        executions.columns.push(Column { metric: Metric::Field("ret".into()), values: returned });
        compare(&model, &ComparisonRequest::default(), &Ctx::new(1)).unwrap()
    }

    #[test]
    fn failures_are_no_fast_executions() {
        let c = calls(&[("ENOENT", 15_000), ("ENOENT", 15_000), ("ENOENT", 15_000), (SUCCEEDED, 220_000)]);
        assert_eq!((c.slow.members.len(), c.fast.members.len()), (5, 35), "{:?} {:?}", c.slow.filters, c.fast.filters);
        assert!(c.dimensions.iter().all(|d| d.name != "field.ret" && d.name != "errno"), "{:?}", c.dimensions);
        assert!(c.warnings.iter().any(|w| w.starts_with("120 calls failed at once")), "{:?}", c.warnings);
    }

    #[test]
    fn slow_failures_are_slow_executions() {
        let mut of = [(SUCCEEDED, 220_000); 40];
        of[7] = ("ETIMEDOUT", 60_000_000);
        let c = calls(&of);
        assert!(c.slow.members.len() >= 40, "{:?}", c.slow.filters);
    }

    #[test]
    fn failures_are_compared_where_nothing_succeeds() {
        let mut of = [("EAGAIN", 15_000); 30];
        of[3].1 = 5_000_000;
        let c = calls(&of);
        assert!(c.slow.members.len() + c.fast.members.len() > 600, "{:?} {:?}", c.slow.filters, c.fast.filters);
    }
}
