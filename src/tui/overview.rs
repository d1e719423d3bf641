//! The recording at a glance: its cells, and the position in the dialog that shows them large.
//!
//! In: a [`RecordingOverview`] of the whole recording, and one of the window once a job has read it. The dialog has a
//! window, a cursor and a selection, all in times, so that they stay where they are when the screen changes its size.

use super::job::Busy;
use crate::base::time::{Span, Timestamp};
use crate::compare::Comparison;
use crate::compare::filter::{Filter, Operand, Test};
use crate::model::Model;
use crate::model::execution::ExecutionId;
use crate::model::metric::Metric;
use crate::model::overview::{OverviewMean, RecordingOverview, cut};
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
    pub window: Span,
    /// Cells of the window, once they are read.
    pub detail: Option<Arc<RecordingOverview>>,
    /// The time under the cursor.
    pub cursor: Timestamp,
    /// The end of the selection that does not move with the cursor.
    pub anchor: Option<Timestamp>,
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

/// The columns of a window. Cost: the columns times the logarithm of the executions, plus the cells.
pub fn columns(
    overview: &RecordingOverview,
    window: Span,
    count: usize,
    executions: Option<(&Model, &Comparison)>,
) -> Vec<OverviewColumn> {
    // Executions are numbered by their start.
    let begun = |model: &Model, members: &[ExecutionId], span: Span| {
        let before = |t: Timestamp| {
            members.partition_point(|id| model.executions.start.get(id.index()).is_some_and(|start| start < t))
        };
        before(span.end).saturating_sub(before(span.start))
    };
    let column = |at: usize| {
        let span = Span::new(cut(window, count, at), cut(window, count, at + 1));
        let counted =
            executions.map(|(model, c)| (begun(model, &c.slow.members, span), begun(model, &c.fast.members, span)));
        let (slow, fast) = counted.unwrap_or_default();
        OverviewColumn { span, mean: overview.mean(span), lossy: overview.is_lossy(span), slow, fast }
    };
    (0..count).map(column).collect()
}

impl OverviewView {
    /// The whole recording, with the cursor at its begin.
    pub fn new(whole: Span) -> OverviewView {
        OverviewView { window: whole, cursor: whole.start, ..OverviewView::default() }
    }

    /// The selected times: from the anchor to the column under the cursor, which is inside.
    pub fn selected(&self, count: usize) -> Option<Span> {
        let column = self.column_span(count);
        let anchor = self.anchor?;
        Some(Span::new(anchor.min(column.start), column.end.max(anchor)))
    }

    /// The position of the cursor among this many columns.
    pub fn column(&self, count: usize) -> usize {
        let after = (0..count).take_while(|at| cut(self.window, count, *at) <= self.cursor).count();
        after.saturating_sub(1)
    }

    fn column_span(&self, count: usize) -> Span {
        let at = self.column(count);
        Span::new(cut(self.window, count, at), cut(self.window, count, at + 1))
    }

    /// Move the cursor by columns; at a border the window moves along.
    pub fn step(&mut self, by: i64, count: usize, whole: Span) {
        let target = self.column(count) as i64 + by;
        let last = count.saturating_sub(1) as i64;
        if (0..=last).contains(&target) {
            self.cursor = cut(self.window, count, target as usize);
            return;
        }
        let length = self.window.len();
        self.set_window(self.window.start.saturating_add(length / 2 * by.signum()), length, whole);
        let at = if by < 0 { 0 } else { count.saturating_sub(1) };
        self.cursor = self.cursor.max(self.window.start).min(cut(self.window, count, at).max(self.cursor));
        self.cursor = self.cursor.clamp(self.window.start, cut(self.window, count, count.saturating_sub(1)));
    }

    /// The cursor to the first or the last column.
    pub fn go_to_end(&mut self, last: bool, count: usize) {
        self.cursor = cut(self.window, count, if last { count.saturating_sub(1) } else { 0 });
    }

    /// Half of the window (1) or twice as much (-1), around the cursor.
    pub fn zoom(&mut self, by: isize, count: usize, whole: Span) {
        let length = self.window.len();
        let new = if by > 0 { length / 2 } else { length.saturating_mul(2) };
        let new = new.max(count as i64).min(whole.len());
        let before = self.cursor.since(self.window.start) as f64 / length.max(1) as f64;
        self.set_window(self.cursor.saturating_add(-((new as f64 * before) as i64)), new, whole);
    }

    fn set_window(&mut self, start: Timestamp, length: i64, whole: Span) {
        let latest = whole.end.saturating_add(-length);
        let start = start.min(latest).max(whole.start);
        let window = Span::new(start, start.saturating_add(length));
        if window != self.window {
            self.window = window;
            self.detail = None;
        }
    }

    /// The selection, else the column under the cursor, as a filter on the start of executions.
    pub fn filter(&self, count: usize, origin: Timestamp) -> Filter {
        let span = self.selected(count).unwrap_or_else(|| self.column_span(count));
        let since = |t: Timestamp| Operand::Number(t.since(origin));
        Filter { metric: Metric::Start, test: Test::In(since(span.start), since(span.end)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selection_becomes_a_filter_on_start() {
        let mut view = OverviewView::new(Span::of_ns(1_000, 2_000));
        let whole = view.window;
        view.step(3, 10, whole);
        assert_eq!(view.filter(10, Timestamp::new(1_000)).to_string(), "start in 300ns..400ns");
        view.anchor = Some(view.cursor);
        view.step(2, 10, whole);
        assert_eq!(view.selected(10), Some(Span::of_ns(1_300, 1_600)));
        view.step(-4, 10, whole);
        assert_eq!(view.filter(10, Timestamp::new(1_000)).to_string(), "start in 100ns..300ns");
    }

    #[test]
    fn zoom_and_steps_stay_inside_of_the_recording() {
        let whole = Span::of_ns(0, 1_000);
        let mut view = OverviewView::new(whole);
        view.step(5, 10, whole);
        for _ in 0..9 {
            view.zoom(1, 10, whole);
            assert!(view.window.contains(view.cursor), "{view:?}");
        }
        assert_eq!(view.window.len(), 10);
        for by in [1, -1] {
            for _ in 0..2_000 {
                view.step(by, 10, whole);
                assert!(view.window.start >= whole.start && view.window.end <= whole.end);
                assert!(view.window.contains(view.cursor), "{view:?}");
            }
        }
        assert_eq!(view.window.start, whole.start);
        (0..9).for_each(|_| view.zoom(-1, 10, whole));
        assert_eq!(view.window, whole);
    }
}
