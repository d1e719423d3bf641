//! Values of the state history, as `query` shows them.

use crate::base::time::Span;

/// One attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryRow {
    pub attribute: String,
    /// In order of time, disjoint.
    pub intervals: Vec<HistoryInterval>,
}

/// A value of an attribute, and how long it held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryInterval {
    /// From, to.
    pub span: Span,
    /// `None` where it is unknown.
    pub value: Option<HistoryValue>,
}

/// A value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryValue {
    Number(i64),
    /// A text, or the name of a state.
    Text(String),
}
