//! Computing and waiting of ranks over time, in cells of a window.

use crate::base::time::Span;

/// A row with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct RankRow {
    /// `rank 3`, `ranks 16-31`.
    pub label: String,
    /// True for the row of the root cause.
    pub source: bool,
    /// Share of computing by cell, in per cent.
    pub computing: Vec<u8>,
    /// Share of waiting by cell, in per cent.
    pub waiting: Vec<u8>,
}

/// Rows over a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RankTimeline {
    /// The window that the cells divide.
    pub window: Span,
    /// From top to bottom.
    pub rows: Vec<RankRow>,
}
