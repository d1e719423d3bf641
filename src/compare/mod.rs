//! Comparison of two groups of executions: what the slow ones do that the fast ones don't.
//!
//! In: a model and the two groups, or a request to propose them. Out: a [`Comparison`] with everything that a screen or
//! a JSON document shows: the differential tree, the ranked causes whose extra time adds up exactly, the verdict, other
//! properties that separate the groups. ALGORITHMS.md section 7.
//!
//! ```text
//! groups -> tree -> partition, across -> causes (naming, words) -> verdict (doubt, chance, tail, windows, interrupts)
//!        `-> dimension ---------------------------------------^         causes -> kinds
//! ```

mod across;
pub mod arranged;
pub mod calls;
mod causes;
mod caveats;
pub mod chance;
mod comparison;
pub mod condition;
mod culprit;
mod dimension;
mod doubt;
mod evidence;
mod failures;
pub mod filter;
pub mod functions;
mod groups;
pub mod heat_map;
mod interrupts;
mod kept;
mod kernel_paths;
mod kinds;
mod leaves;
pub mod members;
pub mod moments;
mod naming;
mod other_reason;
pub mod partials;
mod partition;
mod profile;
mod proposal;
pub mod ranks;
#[cfg(test)]
pub(crate) mod scenario;
pub mod select_error;
pub mod separation;
mod sequence;
mod since_begin;
mod tail;
pub mod time_of_day;
mod tree;
pub mod trend;
pub mod truth;
mod verdict;
mod windows;
mod words;

pub use comparison::{
    Basis, Cause, CausePart, Comparison, Culprit, DiffNode, DiffTree, Dimension, Group, GroupsOrigin, SlowKind, Spread,
    Verdict,
};
pub use tree::{frame_in_words, frame_text};
pub use words::share_of_group;

/// The label of the traces of `--baseline` that have none of their own.
pub const BASELINE: &str = "baseline";

use crate::base::ctx::{Cancelled, Ctx};
use crate::base::statistics::divide_rounded;
use crate::model::Model;
use crate::model::execution::ExecutionId;
use filter::Filter;
use select_error::SelectError;

/// The reason why two groups cannot be compared, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// The task has no executions.
    #[error("task {task} has no executions: `whyslow info --full` lists tasks with their counts")]
    NoExecutions { task: String },
    /// A group is empty.
    #[error("the {group} group is empty: {reason}")]
    EmptyGroup {
        /// `slow` or `fast`.
        group: &'static str,
        /// The filters, and the range of the metric's values.
        reason: String,
    },
    /// A filter cannot be evaluated over these executions.
    #[error(transparent)]
    Filter(#[from] SelectError),
    /// An execution number is too large.
    #[error("--executions {execution}: there are executions 0 to {last}")]
    UnknownExecution {
        /// The number given.
        execution: u32,
        /// The largest number.
        last: usize,
    },
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// The groups to compare; if both lists are empty, [`compare`] proposes them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComparisonRequest {
    /// Filters of the slow group.
    pub slow: Vec<Filter>,
    /// Filters of the fast group.
    pub fast: Vec<Filter>,
    /// Filters of both groups; proposals are made within them.
    pub within: Vec<Filter>,
    /// Propose the trace whose executions take longer against the other one.
    pub by_trace: bool,
    /// How two profiles are set against each other.
    pub per: ProfileUnit,
}

/// By what the amounts of two profiles are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProfileUnit {
    /// By the run: what each of them used in all.
    #[default]
    Run,
    /// By the sample: as if both had done the same work, that is, had as much in all.
    Sample,
}

/// Compare two groups of the model's executions. Cost: linear in the groups' sparse vectors, plus the tests.
pub fn compare(model: &Model, request: &ComparisonRequest, ctx: &Ctx) -> Result<Comparison, CompareError> {
    if let Some(of) = &model.profile {
        return profile::compare(model, of, request, ctx);
    }
    let groups::SelectedGroups { slow, fast, origin, left_out } = groups::groups(model, request)?;
    let both = tree::GroupPair::new(model, &slow.members, &fast.members, &ctx.cancel);
    let extra_ns = extra_ns(model, &slow, &fast);
    let mut built = tree::build(&both)?;
    let ranked = causes::rank(&both, &mut built, extra_ns)?;
    let dimensions = match origin {
        GroupsOrigin::All => Vec::new(),
        _ => dimension::dimensions(&both, &slow, &fast),
    };
    ctx.cancel.check()?;
    let sizes = chance::GroupSizes { slow: slow.members.len(), fast: fast.members.len() };
    let evidence = evidence::Evidence {
        groups: &both,
        slow: &slow,
        fast: &fast,
        origin,
        extra_ns,
        ranked: &ranked,
        in_first: tail::CauseTimes::new(model, &ranked.first),
        splits: chance::RandomSplits::new(sizes, doubt::RANDOM_SPLITS),
        dimensions: &dimensions,
    };
    let verdict = verdict::verdict(&evidence);
    let kinds = if origin == GroupsOrigin::All { Vec::new() } else { kinds::kinds(&both, &ranked) };
    let warnings = caveats::caveats(model, &slow, &fast, origin, left_out);
    ctx.cancel.check()?;
    Ok(Comparison {
        extra_ns,
        tree: built.tree,
        causes: ranked.causes,
        kinds,
        dimensions: dimensions.into_iter().map(|d| d.dimension).collect(),
        verdict,
        warnings,
        slow,
        fast,
    })
}

/// The executions that filters call slow; without any those of the slow group that [`compare`] proposes.
pub fn slow_members(model: &Model, filters: &[Filter]) -> Result<Vec<ExecutionId>, CompareError> {
    if !filters.is_empty() {
        return Ok(members::members(model, filters, &[])?);
    }
    match groups::groups(model, &ComparisonRequest::default()) {
        Ok(groups) if groups.origin != GroupsOrigin::All => Ok(groups.slow.members),
        Ok(_) | Err(CompareError::EmptyGroup { .. } | CompareError::NoExecutions { .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Difference of the mean durations, exact until it is rounded.
fn extra_ns(model: &Model, slow: &Group, fast: &Group) -> i64 {
    let sum = |g: &Group| groups::total(model, &g.members);
    let (n, m) = (i128::from(slow.count), i128::from(fast.count.max(1)));
    let difference = sum(slow).saturating_mul(m).saturating_sub(sum(fast).saturating_mul(n));
    divide_rounded(difference, (n * m).unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::wait_kind::WaitKind;

    fn ask(model: &Model, slow: &str, fast: &str) -> Comparison {
        let list = |t: &str| if t.is_empty() { vec![] } else { vec![t.parse().unwrap()] };
        let request = ComparisonRequest { slow: list(slow), fast: list(fast), ..ComparisonRequest::default() };
        let c = compare(model, &request, &Ctx::new(1)).unwrap();
        let explained: i64 = c.causes.iter().map(|c| c.extra_ns).sum();
        assert_eq!(explained, c.extra_ns, "the causes add up to the difference");
        assert!(c.causes.iter().all(|c| c.path.len() <= 60));
        c
    }

    /// Proposed and given groups, several seeds: the expected cause comes first, and the verdict names it.
    fn expect_first_cause(make: impl Fn(u64) -> Model, kind: WaitKind, process: &str, function: &str) {
        for seed in 1..=4 {
            let model = make(seed);
            for (slow, fast) in [("", ""), ("duration>=p95", "duration<=p50")] {
                let c = ask(&model, slow, fast);
                let first = &c.causes[0];
                let words = (first.kind, first.by.process.as_deref(), first.by.function.as_deref());
                assert_eq!(words, (Some(kind), Some(process), Some(function)), "{seed} {slow}: {first:#?}");
                assert!(c.verdict.confident && c.verdict.basis == Basis::Cause, "{seed} {slow}: {:?}", c.verdict);
                assert!(c.verdict.sentence.contains(function), "{}", c.verdict.sentence);
            }
        }
    }

    #[test]
    fn compare_names_the_process_that_takes_the_cpu() {
        expect_first_cause(scenario::cpu_contention, WaitKind::Preempted, "telemetryd", "entropy_encode");
    }

    #[test]
    fn compare_names_the_process_that_uses_the_disk() {
        expect_first_cause(scenario::disk_contention, WaitKind::Disk, "auditlogd", "commit_log");
    }

    #[test]
    fn compare_names_the_thread_that_holds_the_lock() {
        expect_first_cause(
            |seed| scenario::lock_contention(seed, 16.0),
            WaitKind::Thread,
            "ledgerd",
            "expensive_flush",
        );
    }

    #[test]
    fn compare_names_the_function_of_a_rare_sleep() {
        expect_first_cause(scenario::rare_sleep, WaitKind::Timer, "batchd", "retry_backoff");
    }

    #[test]
    fn compare_names_the_function_of_own_work() {
        expect_first_cause(scenario::many_threads, WaitKind::Cpu, "indexer", "rebuild_index");
    }

    #[test]
    fn compare_blames_no_other_thread_without_a_problem() {
        for seed in 1..=4 {
            let model = scenario::lock_contention(seed, 0.1);
            let c = ask(&model, "", "");
            let first = &c.causes[0];
            assert!(!c.verdict.confident || first.kind == Some(WaitKind::Cpu), "{:?} {first:#?}", c.verdict);
        }
    }

    #[test]
    fn verdict_is_the_type_that_does_more() {
        let mut s = scenario::ModelBuilder::new(2);
        for i in 0..2000 {
            let (kind, path, ms) =
                if i % 10 == 0 { ("export", "p;main;export", 40.0) } else { ("view", "p;main;view", 2.0) };
            let ns = s.around(ms);
            s.run(kind, "p", "p", 1, &[(path, ns)]);
        }
        let model = s.seal();
        for (slow, fast) in [("", ""), ("duration>=p95", "duration<=p50")] {
            let c = ask(&model, slow, fast);
            assert!(c.verdict.confident && c.verdict.basis == Basis::Dimension, "{:?}", c.verdict);
            assert!(
                c.verdict.sentence.starts_with("The slow executions are of type export (100% of them"),
                "{:?}",
                c.verdict
            );
        }
        // If the groups are types, the type is no answer.
        let c = ask(&model, "type=export", "type=view");
        assert!(c.verdict.basis == Basis::Cause && c.dimensions.iter().all(|d| d.name != "type"), "{:?}", c.verdict);
    }

    /// Only one type takes the lock, in one of ten executions: the lock is the answer, not the type.
    #[test]
    fn verdict_is_the_cause_that_only_one_type_meets() {
        let c = ask(&scenario::lock_contention(8, 16.0), "", "");
        assert_eq!(c.verdict.basis, Basis::Cause);
    }

    #[test]
    fn kinds_separates_two_troubles() {
        let mut s = scenario::ModelBuilder::new(3);
        for i in 0..1000 {
            let cpu = s.around(1.0);
            let long = s.around(60.0);
            let mut parts = vec![("p;main", cpu)];
            match i % 25 {
                3 => parts.push(("p;main;load;[pread64];{disk}", long)),
                7 => parts.push(("p;main;retry;[clock_nanosleep];{timer}", long)),
                _ => {}
            }
            s.run("x", "p", "p", 1, &parts);
        }
        let c = ask(&s.seal(), "", "");
        let kinds: Vec<(usize, Option<u32>)> = c.kinds.iter().map(|k| (k.members.len(), k.cause)).collect();
        assert!(kinds == [(40, Some(1)), (40, Some(2))] || kinds == [(40, Some(2)), (40, Some(1))], "{:?}", c.kinds);
        assert!(c.kinds.iter().any(|k| k.sentence.contains("Sleeping in retry")), "{:?}", c.kinds);
        assert!(ask(&scenario::disk_contention(1), "", "").kinds.is_empty());
    }

    #[test]
    fn verdict_blames_nothing_that_chance_explains() {
        let mut s = scenario::ModelBuilder::new(4);
        for i in 0..400 {
            let cpu = s.around(1.0);
            // One in a hundred sleeps in both groups.
            let sleep = if i % 100 == 50 { 80_000_000 } else { 0 };
            let kind = if i % 4 < 1 { "a" } else { "b" };
            s.run(kind, "p", "p", 1, &[("p;main", cpu), ("p;main;[nanosleep];{timer}", sleep)]);
        }
        let model = s.seal();
        for (slow, fast) in [("type=a", "type=b"), ("type=b", "type=a")] {
            let c = ask(&model, slow, fast);
            assert!(!c.verdict.confident && c.verdict.basis == Basis::None, "{:?}", c.verdict);
        }
    }

    #[test]
    fn verdict_is_not_confident_with_few_executions() {
        let mut s = scenario::ModelBuilder::new(5);
        for i in 0..4 {
            s.run("x", "p", "p", 1, &[("p;main", 1_000_000 + i), ("p;wait;[poll];{timer}", i / 3 * 9_000_000)]);
        }
        let c = ask(&s.seal(), "duration>5ms", "duration<5ms");
        assert!(!c.verdict.confident && c.verdict.sentence.contains("too few"), "{:?}", c.verdict);
        assert!(!c.verdict.sentence.contains('%') && c.share(0.5).is_empty(), "no share of so few: {:?}", c.verdict);
        assert!(c.warnings.iter().any(|w| w.starts_with("the slow group has only 1 execution:")), "{:?}", c.warnings);
    }

    #[test]
    fn verdict_says_that_other_parts_take_less() {
        let ask = |less: u64| {
            let mut s = scenario::ModelBuilder::new(6);
            for i in 0..400 {
                let (sleep, work) = if i % 20 == 3 { (40_000_000, 9_000_000 - less) } else { (0, 9_000_000) };
                let work = work + s.around(0.1);
                s.run("x", "p", "p", 1, &[("p;main;work", work), ("p;main;retry;[nanosleep];{timer}", sleep)]);
            }
            ask(&s.seal(), "", "").verdict.sentence
        };
        assert!(ask(8_000_000).contains("; other parts take"), "{}", ask(8_000_000));
        assert!(!ask(1_000_000).contains("other parts"), "{}", ask(1_000_000));
    }

    #[test]
    fn verdict_says_that_the_slow_group_is_faster() {
        let c = ask(&scenario::rare_sleep(1), "duration<=p50", "duration>=p95");
        assert!(
            !c.verdict.confident && c.verdict.sentence.starts_with("The slow group is not slower"),
            "{:?}",
            c.verdict
        );
        assert!(c.causes[0].extra_ns < 0);
    }

    #[test]
    fn compare_ends_when_cancelled() {
        let ctx = Ctx::new(1);
        ctx.cancel.cancel();
        let end = compare(&scenario::rare_sleep(1), &ComparisonRequest::default(), &ctx);
        assert_eq!(end.unwrap_err(), CompareError::Cancelled(Cancelled));
    }
}
