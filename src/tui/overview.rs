//! The recording at a glance: its cells, and the position in the dialog that shows them large.
//!
//! In: a [`RecordingOverview`] of the whole recording, and one of the window once a job has read it.

use super::job::Busy;
use super::time_window::TimeWindow;
use crate::base::column_grid::ColumnGrid;
use crate::base::time::{Span, Timestamp};
use crate::compare::Comparison;
use crate::model::Model;
use crate::model::execution::ExecutionId;
use crate::model::overview::{OverviewMean, RecordingOverview};
use std::sync::Arc;

/// Columns of the names beside the drawing.
pub const LABELS: usize = 9;

/// Lines of the strip of the whole recording in the header of a screen of this size: CPU use, and the executions below
/// it where that leaves the panes enough lines.
pub fn strip_lines((columns, lines): (u16, u16)) -> usize {
    match (columns, lines) {
        (..100, _) | (_, ..20) => 0,
        (_, ..30) => 1,
        _ => 2,
    }
}

/// The whole recording, once a job has read it.
#[derive(Clone, Debug, Default)]
pub struct OverviewState {
    pub whole: Option<Arc<RecordingOverview>>,
    /// The running job.
    pub busy: Option<Busy>,
    /// Why there is none.
    pub failure: Option<String>,
}

/// The dialog.
#[derive(Clone, Debug, Default)]
pub struct OverviewView {
    /// The times shown; empty: the whole.
    pub time: TimeWindow,
    /// Cells of the window, once they are read.
    pub detail: Option<Arc<RecordingOverview>>,
    /// Columns of the drawing in the present layout.
    pub columns: usize,
}

/// A column of a drawing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OverviewColumn {
    pub span: Span,
    /// The averages in it.
    pub mean: OverviewMean,
    /// Events were lost in it.
    pub lossy: bool,
    /// Slow executions that begin in it.
    pub slow: usize,
    /// Fast executions that begin in it.
    pub fast: usize,
}

/// The slow and the fast executions that begin in a span.
pub fn begun(model: &Model, comparison: &Comparison, span: Span) -> (usize, usize) {
    // Executions are numbered by their start.
    let of = |members: &[ExecutionId]| {
        let before = |t: Timestamp| {
            members.partition_point(|id| model.executions.start.get(id.index()).is_some_and(|start| start < t))
        };
        before(span.end).saturating_sub(before(span.start))
    };
    (of(&comparison.slow.members), of(&comparison.fast.members))
}

/// The columns of a window. Cost: the columns times the logarithm of the executions, plus the cells.
pub fn columns(
    overview: &RecordingOverview,
    window: Span,
    count: usize,
    executions: Option<(&Model, &Comparison)>,
) -> Vec<OverviewColumn> {
    let grid = ColumnGrid::of(window, count);
    let column = |at: usize| {
        let span = grid.span(at);
        let (slow, fast) = executions.map(|(model, c)| begun(model, c, span)).unwrap_or_default();
        OverviewColumn { span, mean: overview.mean(span), lossy: overview.is_lossy(span), slow, fast }
    };
    (0..count).map(column).collect()
}

impl OverviewView {
    /// The whole recording, with the cursor at its begin.
    pub fn new(whole: Span) -> OverviewView {
        OverviewView { time: TimeWindow::new(whole), ..OverviewView::default() }
    }
}
