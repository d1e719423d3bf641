//! Two groups of executions held against each other: what the slow ones do that the fast ones don't.
//!
//! [`compare`] takes a model and the two groups and gives everything a screen or a JSON document shows: the
//! differential tree, the ranked causes whose extra time adds up exactly, the verdict, what else separates the
//! groups. ALGORITHMS.md section 7.

mod causes;
pub mod chance;
pub mod condition;
mod dimension;
mod doubt;
pub mod filter;
mod groups;
mod interrupts;
mod kinds;
pub mod members;
pub mod moments;
mod partition;
#[cfg(test)]
pub(crate) mod scenario;
mod tail;
mod tree;
mod verdict;
mod windows;
mod words;

pub use tree::frame_text;

use crate::base::ctx::{Cancelled, Ctx};
use crate::base::figure;
use crate::base::statistics::divide_rounded;
use crate::model::Model;
use crate::model::context::ContextId;
use crate::model::execution::ExecutionId;
use crate::model::wait_kind::WaitKind;
use filter::Filter;

/// Executions in a group below which its figures are called rough.
const FEW: usize = 8;

/// How the groups came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupsOrigin {
    /// By filters that the user gave.
    Given,
    /// By the largest gap in the durations.
    Gap,
    /// By the valley between two modes.
    Valley,
    /// From the 95th percentile against up to the median: nothing natural was found.
    Percentile,
    /// Of two labelled traces that hold the same command, the one in which it took longer against the other.
    Trace,
    /// All executions are the one group: there is nothing to hold them against.
    All,
}

/// One group: the executions that pass all its filters.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The filters.
    pub filters: Vec<Filter>,
    /// Its executions, ascending.
    pub members: Vec<ExecutionId>,
    /// Mean duration, rounded to the nearest nanosecond; 0 where it is empty.
    pub mean_ns: i64,
}

/// A node of the differential tree; nodes stand in pre-order, parents before children.
#[derive(Clone, Debug, PartialEq)]
pub struct DiffNode {
    /// The context.
    pub context: ContextId,
    /// Position of the parent in [`DiffTree::nodes`].
    pub parent: Option<u32>,
    /// Nodes in this subtree, itself included: the next sibling stands at `position + size`.
    pub size: u32,
    /// Frames above it.
    pub depth: u32,
    /// Mean inclusive time of the slow group.
    pub slow_mean_ns: f64,
    /// Mean inclusive time of the fast group.
    pub fast_mean_ns: f64,
    /// `slow_mean_ns - fast_mean_ns`.
    pub delta_ns: f64,
    /// The part of it that no child has.
    pub self_delta_ns: f64,
    /// The difference in standard deviations (ALGORITHMS.md 7.3); `None` with too few executions.
    pub deviations: Option<f64>,
    /// Of Welch's or the permutation test, corrected for the number of contexts tested; `None` where not tested.
    pub p_value: Option<f64>,
    /// Share of the slow group's executions that have this context.
    pub slow_affected: f64,
    /// The same of the fast group.
    pub fast_affected: f64,
}

/// The differential tree.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiffTree {
    /// Nodes in pre-order; siblings ordered by name.
    pub nodes: Vec<DiffNode>,
}

/// Who spent or held the time of a cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Culprit {
    /// Host name.
    pub host: Option<String>,
    /// Process name.
    pub process: Option<String>,
    /// Process id, where it is one process.
    pub pid: Option<i32>,
    /// Thread id, where it is one thread.
    pub tid: Option<i32>,
    /// Thread name.
    pub thread: Option<String>,
    /// Function.
    pub function: Option<String>,
}

/// A ranked, worded part of the slow group's extra time.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause {
    /// From 1; `None` for the last entry into which small ones are folded.
    pub rank: Option<u32>,
    /// How the execution's own thread spent that time.
    pub kind: Option<WaitKind>,
    /// Extra nanoseconds per execution. All causes' add up to [`Comparison::extra_ns`].
    pub extra_ns: i64,
    /// Part of the whole.
    pub share: f64,
    /// Difference in standard deviations of the fast group.
    pub deviations: Option<f64>,
    /// Corrected p-value.
    pub p_value: Option<f64>,
    /// Share of slow executions it touches.
    pub slow_affected: f64,
    /// Share of fast executions it touches.
    pub fast_affected: f64,
    /// Frames from the root, as drawn.
    pub path: Vec<String>,
    /// The context that stands for it in the tree.
    pub context: Option<ContextId>,
    /// Who.
    pub by: Culprit,
    /// For people.
    pub sentence: String,
}

/// On what a verdict rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The first cause.
    Cause,
    /// The slow ones are of another type, host, CPU ...
    Dimension,
    /// The place of the extra time is known, what it was spent on or waited for is not.
    Place,
    /// Where the time of all executions went: there is no contrast.
    Profile,
    /// Nothing stands out.
    None,
}

/// The answer in one sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// PRODUCT.md says when.
    pub confident: bool,
    /// What it rests on.
    pub basis: Basis,
    /// How the groups came about.
    pub groups: GroupsOrigin,
    /// For people; the interface shows it first.
    pub sentence: String,
}

/// Something other than time that separates the groups.
#[derive(Clone, Debug, PartialEq)]
pub struct Dimension {
    /// `type`, `trace`, `process`, a metric ...
    pub name: String,
    /// The value, or a range in words.
    pub value: String,
    /// Share of the slow group that has it.
    pub slow_share: f64,
    /// Share of the fast group that has it.
    pub fast_share: f64,
    /// How well it separates: probability that a slow one exceeds a fast one, or the difference of the shares.
    pub effect: f64,
}

/// Slow executions that have the same trouble.
#[derive(Clone, Debug, PartialEq)]
pub struct SlowKind {
    /// Its executions, ascending.
    pub members: Vec<ExecutionId>,
    /// Mean duration, rounded to the nearest nanosecond.
    pub mean_ns: i64,
    /// Rank of the cause that most of their extra time has.
    pub cause: Option<u32>,
    /// For people.
    pub sentence: String,
}

/// Everything about one pair of groups.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The slow group.
    pub slow: Group,
    /// The fast group.
    pub fast: Group,
    /// Difference of the two mean durations, rounded.
    pub extra_ns: i64,
    /// Where it sits.
    pub tree: DiffTree,
    /// What it is made of, largest first.
    pub causes: Vec<Cause>,
    /// Kinds of slow executions; empty when all have the same trouble.
    pub kinds: Vec<SlowKind>,
    /// What else differs.
    pub dimensions: Vec<Dimension>,
    /// The answer.
    pub verdict: Verdict,
    /// What to keep in mind (groups chosen by duration, few executions, losses ...).
    pub warnings: Vec<String>,
}

impl Comparison {
    /// The request for the same groups.
    pub fn request(&self) -> ComparisonRequest {
        ComparisonRequest {
            slow: self.slow.filters.clone(),
            fast: self.fast.filters.clone(),
            ..ComparisonRequest::default()
        }
    }
}

/// Why two groups cannot be compared; the text says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// The task has no executions.
    #[error("task {task} has no executions: `whyslow info --full` lists tasks with their counts")]
    NoExecutions {
        /// The task.
        task: String,
    },
    /// A group is empty.
    #[error("the {group} group is empty: {reason}")]
    EmptyGroup {
        /// `slow` or `fast`.
        group: &'static str,
        /// Which filters, and the range that the metric really has.
        reason: String,
    },
    /// A filter names a metric that these executions do not have.
    #[error("{0}")]
    Filter(String),
    /// Cancelled.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// The groups to compare; where both lists are empty the tool proposes them.
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
}

/// Compare two groups of the model's executions. Cost: linear in the groups' sparse vectors, plus the tests.
pub fn compare(model: &Model, request: &ComparisonRequest, ctx: &Ctx) -> Result<Comparison, CompareError> {
    let (slow, fast, origin) = groups::groups(model, request)?;
    let both = tree::GroupPair::new(model, &slow.members, &fast.members, &ctx.cancel);
    let extra_ns = extra_ns(model, &slow, &fast);
    let mut built = tree::build(&both)?;
    let ranked = causes::rank(&both, &mut built, extra_ns)?;
    let dimensions = match origin {
        GroupsOrigin::All => Vec::new(),
        _ => dimension::dimensions(&both, &slow, &fast),
    };
    ctx.cancel.check()?;
    let evidence = verdict::Evidence {
        groups: &both,
        slow: &slow,
        fast: &fast,
        origin,
        extra_ns,
        ranked: &ranked,
        dimensions: &dimensions,
    };
    let verdict = verdict::verdict(&evidence);
    let kinds = if origin == GroupsOrigin::All { Vec::new() } else { kinds::kinds(&both, &ranked) };
    let warnings = warnings(model, &slow, &fast, origin);
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

/// Difference of the mean durations, exact until it is rounded.
fn extra_ns(model: &Model, slow: &Group, fast: &Group) -> i64 {
    let sum = |g: &Group| g.members.iter().map(|e| i128::from(model.executions.duration(e.index()))).sum::<i128>();
    let (n, m) = (slow.members.len() as i128, fast.members.len().max(1) as i128);
    divide_rounded(sum(slow) * m - sum(fast) * n, (n * m).unsigned_abs())
}

/// What to keep in mind with this comparison.
fn warnings(model: &Model, slow: &Group, fast: &Group, origin: GroupsOrigin) -> Vec<String> {
    let mut warnings = Vec::new();
    if origin == GroupsOrigin::Percentile {
        warnings.push(
            "no natural gap was found in the durations: the slowest twentieth is compared with the faster half".into(),
        );
    }
    for (name, group) in [("slow", slow), ("fast", fast)] {
        let n = group.members.len();
        if n < FEW && origin != GroupsOrigin::All {
            let members = figure::plural(n as u64, "execution");
            warnings.push(format!("the {name} group has only {members}: its figures are rough"));
        }
        let unsure = group.members.iter().filter(|e| model.executions.unsure.get(e.index()) == Some(&true)).count();
        if unsure * 10 > n {
            warnings.push(format!(
                "{unsure} of {n} {name} executions ran while events were lost or waited for something unknown"
            ));
        }
    }
    let shared = slow.members.iter().filter(|e| fast.members.binary_search(e).is_ok()).count();
    if shared > 0 {
        warnings.push(format!("{shared} executions are in both groups: they hide the difference"));
    }
    if by_duration(slow, fast) {
        warnings.push("the groups were chosen by duration, so they differ by construction: the p-values rank where the time went, they do not prove a difference".into());
    }
    warnings.extend(model.notices.sentences());
    warnings
}

/// True where a filter on the duration parts the groups: one that both have does not.
fn by_duration(slow: &Group, fast: &Group) -> bool {
    let only = |a: &Group, b: &Group| a.filters.iter().any(|f| f.on_duration() && !b.filters.contains(f));
    only(slow, fast) && only(fast, slow)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(model: &Model, slow: &str, fast: &str) -> Comparison {
        let list = |t: &str| if t.is_empty() { vec![] } else { vec![t.parse().unwrap()] };
        let request = ComparisonRequest { slow: list(slow), fast: list(fast), ..ComparisonRequest::default() };
        let c = compare(model, &request, &Ctx::new(1)).unwrap();
        let told: i64 = c.causes.iter().map(|c| c.extra_ns).sum();
        assert_eq!(told, c.extra_ns, "every nanosecond is somewhere");
        assert!(c.causes.iter().all(|c| c.path.len() <= 60));
        c
    }

    /// Both ways of asking, several seeds: the cause comes first, and the verdict says so.
    fn holds(make: impl Fn(u64) -> Model, kind: WaitKind, process: &str, function: &str) {
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
    fn a_process_that_takes_the_cpu() {
        holds(scenario::cpu_contention, WaitKind::Preempted, "telemetryd", "entropy_encode");
    }

    #[test]
    fn a_process_that_uses_the_disk() {
        holds(scenario::disk_contention, WaitKind::Disk, "auditlogd", "commit_log");
    }

    #[test]
    fn a_thread_that_holds_the_lock() {
        holds(|seed| scenario::lock_contention(seed, 16.0), WaitKind::Thread, "ledgerd", "expensive_flush");
    }

    #[test]
    fn a_rare_sleep() {
        holds(scenario::rare_sleep, WaitKind::Timer, "batchd", "retry_backoff");
    }

    #[test]
    fn more_work_of_its_own() {
        holds(scenario::many_threads, WaitKind::Cpu, "indexer", "rebuild_index");
    }

    #[test]
    fn without_a_problem_nobody_else_is_blamed() {
        for seed in 1..=4 {
            let model = scenario::lock_contention(seed, 0.1);
            let c = ask(&model, "", "");
            let first = &c.causes[0];
            assert!(!c.verdict.confident || first.kind == Some(WaitKind::Cpu), "{:?} {first:#?}", c.verdict);
        }
    }

    #[test]
    fn a_type_that_does_more_is_a_dimension() {
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
                c.verdict.sentence.starts_with("The slow ones are of type export: 100% of them"),
                "{:?}",
                c.verdict
            );
        }
        // Asked within the dimension, the dimension is no answer.
        let c = ask(&model, "type=export", "type=view");
        assert!(c.verdict.basis == Basis::Cause && c.dimensions.iter().all(|d| d.name != "type"), "{:?}", c.verdict);
    }

    /// One type alone takes the lock, and one of its executions in ten: the lock is the answer, not the type.
    #[test]
    fn a_cause_that_only_one_type_can_meet_stays_a_cause() {
        let c = ask(&scenario::lock_contention(8, 16.0), "", "");
        assert_eq!(c.verdict.basis, Basis::Cause);
    }

    #[test]
    fn two_troubles_are_two_kinds() {
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
        let told: Vec<(usize, Option<u32>)> = c.kinds.iter().map(|k| (k.members.len(), k.cause)).collect();
        assert!(told == [(40, Some(1)), (40, Some(2))] || told == [(40, Some(2)), (40, Some(1))], "{:?}", c.kinds);
        assert!(c.kinds.iter().any(|k| k.sentence.contains("Sleeping in retry")), "{:?}", c.kinds);
        assert!(ask(&scenario::disk_contention(1), "", "").kinds.is_empty());
    }

    #[test]
    fn what_chance_may_do_is_not_blamed() {
        let mut s = scenario::ModelBuilder::new(4);
        for i in 0..400 {
            let cpu = s.around(1.0);
            // One in a hundred sleeps, whatever the group.
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
    fn few_executions_are_called_few() {
        let mut s = scenario::ModelBuilder::new(5);
        for i in 0..4 {
            s.run("x", "p", "p", 1, &[("p;main", 1_000_000 + i), ("p;wait;[poll];{timer}", i / 3 * 9_000_000)]);
        }
        let c = ask(&s.seal(), "duration>5ms", "duration<5ms");
        assert!(!c.verdict.confident && c.verdict.sentence.contains("too few"), "{:?}", c.verdict);
        assert!(c.warnings.iter().any(|w| w.starts_with("the slow group has only 1 execution:")), "{:?}", c.warnings);
    }

    #[test]
    fn a_slow_group_that_is_faster_is_told_so() {
        let c = ask(&scenario::rare_sleep(1), "duration<=p50", "duration>=p95");
        assert!(
            !c.verdict.confident && c.verdict.sentence.starts_with("The slow group is not slower"),
            "{:?}",
            c.verdict
        );
        assert!(c.causes[0].extra_ns < 0);
    }

    #[test]
    fn a_cancelled_comparison_ends() {
        let ctx = Ctx::new(1);
        ctx.cancel.cancel();
        let end = compare(&scenario::rare_sleep(1), &ComparisonRequest::default(), &ctx);
        assert_eq!(end.unwrap_err(), CompareError::Cancelled(Cancelled));
    }
}
