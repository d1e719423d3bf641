//! Two groups of executions held against each other: what the slow ones do that the fast ones don't.
//!
//! [`compare`] takes a model and the two groups and gives everything a screen or a JSON document shows: the
//! differential tree, the ranked causes whose extra time adds up exactly, the verdict, what else separates the
//! groups. ALGORITHMS.md section 7.

pub mod chance;
pub mod filter;
pub mod groups;
#[cfg(test)]
pub(crate) mod scenario;
pub mod tree;

use crate::base::work::{Cancelled, Work};
use crate::model::Model;
use crate::model::context::{ContextId, Spent};
use crate::model::execution::ExecutionId;
use filter::Filter;

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
}

/// One group: the executions that pass all its filters.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The filters.
    pub filters: Vec<Filter>,
    /// Its executions, ascending.
    pub members: Vec<ExecutionId>,
    /// Mean duration, rounded to the nearest nanosecond.
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
    pub kind: Option<Spent>,
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
    /// What else differs.
    pub dimensions: Vec<Dimension>,
    /// The answer.
    pub verdict: Verdict,
    /// What to keep in mind (groups chosen by duration, few executions, losses ...).
    pub warnings: Vec<String>,
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
pub struct Request {
    /// Filters of the slow group.
    pub slow: Vec<Filter>,
    /// Filters of the fast group.
    pub fast: Vec<Filter>,
}

/// Compare two groups of the model's executions. Cost: linear in the groups' sparse vectors, plus the tests.
pub fn compare(model: &Model, request: &Request, work: &Work) -> Result<Comparison, CompareError> {
    let _ = (model, request, work);
    Err(CompareError::NoExecutions { task: String::new() })
}
