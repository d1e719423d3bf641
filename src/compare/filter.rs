//! Filters as typed: `METRIC OP VALUE` and `METRIC in A..B`, with units and percentiles (PRODUCT.md, `FILTER`).

use crate::model::metric::Metric;

/// Comparison operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    More,
    /// `>=`
    AtLeast,
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
}

/// The right-hand side.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A number in the metric's unit (ns, bytes, count).
    Number(i64),
    /// A percentile over all executions of the task (`p95`), nearest rank.
    Percentile(f64),
    /// A name (`type=append`).
    Name(String),
}

/// One condition.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// `METRIC OP VALUE`
    Compare(Op, Operand),
    /// `METRIC in A..B`, half-open.
    In(Operand, Operand),
}

/// A condition on one metric. `Display` gives it back as one would type it.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    /// On what.
    pub metric: Metric,
    /// Which values pass.
    pub test: Test,
}
