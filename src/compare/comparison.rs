//! The result of a comparison, as every screen and JSON document shows it: plain data.

use super::ComparisonRequest;
use super::filter::Filter;
use super::words::share_of_difference;
use crate::model::context::ContextId;
use crate::model::execution::ExecutionId;
use crate::model::wait_kind::WaitKind;

/// The origin of the groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupsOrigin {
    /// By filters that the user gave.
    Given,
    /// By the largest gap in the durations.
    Gap,
    /// By the valley between two modes.
    Valley,
    /// From the 95th percentile, compared with up to the median: the durations have no gap and no valley.
    Percentile,
    /// Of two labelled traces that hold the same command, the one in which it took longer, compared with the other.
    Trace,
    /// All executions are one group: there is no other to compare them with.
    All,
}

/// One group: the executions that pass all its filters.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// An execution belongs to the group if it passes each of them.
    pub filters: Vec<Filter>,
    /// Its executions, ascending.
    pub members: Vec<ExecutionId>,
    /// How many executions they represent.
    pub count: u64,
    /// Mean duration, rounded to the nearest nanosecond; 0 where it is empty.
    pub mean_ns: i64,
    /// How long its executions take; `None` where it is empty, or of samples.
    pub spread: Option<Spread>,
}

/// Percentiles of the durations of a group, by nearest rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Half take no longer.
    pub p50_ns: i64,
    /// 95 of 100 take no longer.
    pub p95_ns: i64,
    /// 99 of 100 take no longer.
    pub p99_ns: i64,
    /// The longest.
    pub max_ns: i64,
}

/// A node of the differential tree; nodes are in pre-order, parents before children.
#[derive(Clone, Debug, PartialEq)]
pub struct DiffNode {
    pub context: ContextId,
    /// Position of the parent in [`DiffTree::nodes`].
    pub parent: Option<u32>,
    /// Nodes in this subtree, itself included: the next sibling is at `position + size`.
    pub size: u32,
    /// Frames above it.
    pub depth: u32,
    /// Mean inclusive time of the slow group.
    pub slow_mean_ns: f64,
    /// Mean inclusive time of the fast group.
    pub fast_mean_ns: f64,
    /// `slow_mean_ns - fast_mean_ns`.
    pub delta_ns: f64,
    /// The part of `delta_ns` that no child has.
    pub self_delta_ns: f64,
    /// `delta_ns` in standard deviations of the fast group (ALGORITHMS.md 7.3); `None` with too few executions.
    pub deviations: Option<f64>,
    /// P-value of Welch's or the permutation test, corrected for the number of contexts tested; `None` if not tested.
    pub p_value: Option<f64>,
    /// Share of the slow group's executions that have this context.
    pub slow_affected: f64,
    /// Share of the fast group's executions that have this context.
    pub fast_affected: f64,
}

/// The differential tree.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiffTree {
    /// Nodes in pre-order; siblings ordered by name.
    pub nodes: Vec<DiffNode>,
}

/// The thread, process or device that spent or held the time of a cause.
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
    /// The innermost function of the program that it ran or waited in, where a call stack shows one.
    pub function: Option<String>,
    /// Which of several threads of this name it is, where one that waits for it has the same name: `pid 1107`.
    pub which: Option<String>,
}

/// A ranked, worded part of the slow group's extra time.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause {
    /// From 1; `None` for the last entry, which joins the small ones.
    pub rank: Option<u32>,
    /// Kind of the time of the execution's own thread.
    pub kind: Option<WaitKind>,
    /// Extra nanoseconds per execution. Those of all causes add up to [`Comparison::extra_ns`].
    pub extra_ns: i64,
    /// Share of the whole extra time.
    pub share: f64,
    /// The difference in standard deviations of the fast group.
    pub deviations: Option<f64>,
    /// Corrected p-value.
    pub p_value: Option<f64>,
    /// Share of slow executions it touches.
    pub slow_affected: f64,
    /// Share of fast executions it touches.
    pub fast_affected: f64,
    /// Frames from the root, as drawn.
    pub path: Vec<String>,
    /// The context that represents it in the tree.
    pub context: Option<ContextId>,
    /// The contexts whose own time it sums up, ascending.
    pub contexts: Vec<ContextId>,
    /// The places of the execution's own thread where that time was spent, the largest first; without those below a
    /// hundredth of it.
    pub places: Vec<ContextId>,
    /// The innermost thread and function to blame.
    pub by: Culprit,
    /// Of a cause over several kinds its parts, the largest first; else none.
    pub parts: Vec<CausePart>,
    /// The cause in one sentence.
    pub sentence: String,
}

impl Cause {
    /// The last entry, without a rank: what the parts that are too small to be shown have together.
    pub(super) fn remainder(kind: Option<WaitKind>, extra_ns: i64, share: f64, sentence: String) -> Cause {
        Cause {
            rank: None,
            kind,
            extra_ns,
            share,
            deviations: None,
            p_value: None,
            slow_affected: 0.0,
            fast_affected: 0.0,
            path: Vec::new(),
            context: None,
            contexts: Vec::new(),
            places: Vec::new(),
            by: Culprit::default(),
            parts: Vec::new(),
            sentence,
        }
    }
}

/// What a cause over several kinds has of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct CausePart {
    pub kind: WaitKind,
    /// Extra nanoseconds per execution.
    pub extra_ns: i64,
    /// How the time was spent: `waiting for a CPU while thread xz ran`.
    pub phrase: String,
}

/// The basis of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The first cause.
    Cause,
    /// The slow executions are of another type, host, CPU ...
    Dimension,
    /// The place of the extra time is known, but not what the thread did or waited for there.
    Place,
    /// There is no contrast: the causes show where the time of all executions went.
    Profile,
    /// No clear cause.
    None,
}

/// The answer in one sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The answer passed all controls (PRODUCT.md lists them).
    pub confident: bool,
    /// What the sentence is about.
    pub basis: Basis,
    /// The origin of the groups.
    pub groups: GroupsOrigin,
    /// The answer; the interface shows it first.
    pub sentence: String,
    /// Of one MPI run, where patterns were mined: which rank delayed others most in the whole run.
    pub delays: Option<String>,
}

/// A property other than time that separates the groups.
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
    /// Separation of the groups: the probability that a slow one exceeds a fast one, or the difference of the
    /// shares.
    pub effect: f64,
}

/// Slow executions that have the same trouble; one of several kinds.
#[derive(Clone, Debug, PartialEq)]
pub struct SlowKind {
    /// Its executions, ascending.
    pub members: Vec<ExecutionId>,
    /// How many executions they represent.
    pub count: u64,
    /// Mean duration, rounded to the nearest nanosecond.
    pub mean_ns: i64,
    /// Rank of the cause that most of their extra time has.
    pub cause: Option<u32>,
    /// The kind in one sentence.
    pub sentence: String,
}

/// Everything about one pair of groups.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The executions that are asked about.
    pub slow: Group,
    /// Those that they are compared with.
    pub fast: Group,
    /// Difference of the two mean durations, rounded.
    pub extra_ns: i64,
    /// The difference by calling context.
    pub tree: DiffTree,
    /// The parts of the difference, largest first.
    pub causes: Vec<Cause>,
    /// Kinds of slow executions; empty if all have the same trouble.
    pub kinds: Vec<SlowKind>,
    /// Other properties that separate the groups.
    pub dimensions: Vec<Dimension>,
    /// The answer.
    pub verdict: Verdict,
    /// Caveats: groups chosen by duration, few executions, losses ...
    pub warnings: Vec<String>,
}

impl Comparison {
    /// A share of the difference as it is printed; empty if a group has too few executions for shares, or the part is
    /// many times the difference.
    pub fn share(&self, share: f64) -> String {
        share_of_difference(share, self.slow.members.len(), self.fast.members.len()).unwrap_or_default()
    }

    /// The request that selects the same groups.
    pub fn request(&self) -> ComparisonRequest {
        ComparisonRequest {
            slow: self.slow.filters.clone(),
            fast: self.fast.filters.clone(),
            ..ComparisonRequest::default()
        }
    }
}
