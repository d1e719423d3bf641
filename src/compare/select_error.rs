//! The reasons why filters select no executions.

/// A filter that cannot be evaluated over the executions of a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// Both groups are what the other leaves.
    #[error("filter `{filter}`: each group excludes the other: write a condition for one of them")]
    BothExclude { filter: String },
    /// A group excludes itself.
    #[error("filter `{filter}`: the {group} group cannot exclude itself: name the other group")]
    ExcludesItself {
        filter: String,
        /// `slow` or `fast`.
        group: &'static str,
    },
    /// A time of day, of a recording that has none.
    #[error(
        "filter `{filter}`: the clock of this recording counts from the start of the machine, so it has no times of \
         day: write the time since the first event (`start>1.5s`)"
    )]
    NoTimeOfDay { filter: String },
    /// The executions do not have the metric.
    #[error("filter `{filter}`: these executions have no {metric}: {remedy}")]
    NoMetric {
        filter: String,
        metric: String,
        /// Similar metrics, or all.
        remedy: String,
    },
}
