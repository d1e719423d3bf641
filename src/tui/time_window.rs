//! The part of a recording that a dialog shows: a window, a cursor and a selection, all in times, so that they stay
//! where they are when the screen changes its size.
//!
//! In: actions of keys, with the number of columns of the drawing and the whole recording. Out: another window, which
//! stays inside of the recording; the selection as a filter on the start of executions.

use super::actions::Action;
use crate::base::column_grid::ColumnGrid;
use crate::base::time::{Span, Timestamp};
use crate::compare::filter::{Filter, Operand, Test};
use crate::model::metric::Metric;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimeWindow {
    /// The times shown.
    pub window: Span,
    /// The time under the cursor.
    pub cursor: Timestamp,
    /// The end of the selection that does not move with the cursor.
    pub anchor: Option<Timestamp>,
}

impl TimeWindow {
    /// The whole recording, with the cursor at its begin.
    pub fn new(whole: Span) -> TimeWindow {
        TimeWindow { window: whole, cursor: whole.start, anchor: None }
    }

    /// The selected times: from the anchor to the column under the cursor, which is inside.
    pub fn selected(&self, count: usize) -> Option<Span> {
        let column = self.column_span(count);
        let anchor = self.anchor?;
        Some(Span::new(anchor.min(column.start), column.end.max(anchor)))
    }

    fn grid(&self, count: usize) -> ColumnGrid {
        ColumnGrid::of(self.window, count)
    }

    /// The first moment of a column among this many.
    pub fn column_start(&self, count: usize, column: usize) -> Timestamp {
        Timestamp::new(self.grid(count).start(column))
    }

    /// The position of the cursor among this many columns; the nearest where it is outside of the window.
    pub fn column(&self, count: usize) -> usize {
        let nearest = if self.cursor < self.window.start { 0 } else { count.saturating_sub(1) };
        self.grid(count).column(self.cursor.ns()).unwrap_or(nearest)
    }

    /// The span of the column under the cursor.
    pub fn column_span(&self, count: usize) -> Span {
        self.grid(count).span(self.column(count))
    }

    /// Move the cursor by columns; at a border the window moves along.
    pub fn step(&mut self, by: i64, count: usize, whole: Span) {
        let target = self.column(count) as i64 + by;
        let last = count.saturating_sub(1) as i64;
        if (0..=last).contains(&target) {
            self.cursor = self.column_start(count, target as usize);
            return;
        }
        let length = self.window.len();
        self.set_window(self.window.start.saturating_add(length / 2 * by.signum()), length, whole);
        self.cursor = self.cursor.clamp(self.window.start, self.column_start(count, last as usize));
    }

    /// Do an action of the keys of time; false for another one.
    pub fn act(&mut self, action: Action, count: usize, whole: Span) -> bool {
        let quarter = count as i64 / 4;
        match action {
            Action::Left => self.step(-1, count, whole),
            Action::Right => self.step(1, count, whole),
            Action::PanLeft => self.step(-quarter, count, whole),
            Action::PanRight => self.step(quarter, count, whole),
            Action::Home => self.go_to_end(false, count),
            Action::End => self.go_to_end(true, count),
            Action::ZoomIn => self.zoom(1, count, whole),
            Action::ZoomOut => self.zoom(-1, count, whole),
            Action::Zoom => self.window = whole,
            Action::GrowLeft | Action::GrowRight => {
                self.anchor.get_or_insert(self.cursor);
                self.step(if action == Action::GrowLeft { -1 } else { 1 }, count, whole);
            }
            Action::Clear => self.anchor = None,
            _ => return false,
        }
        true
    }

    /// Show the same length of time about a moment, which gets the cursor.
    pub fn go_to(&mut self, at: Timestamp, whole: Span) {
        self.cursor = at;
        if !self.window.contains(at) {
            let length = self.window.len();
            self.set_window(at.saturating_add(-(length / 2)), length, whole);
        }
    }

    /// The cursor to the first or the last column.
    pub fn go_to_end(&mut self, last: bool, count: usize) {
        self.cursor = self.column_start(count, if last { count.saturating_sub(1) } else { 0 });
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
        self.window = Span::new(start, start.saturating_add(length));
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
        let mut view = TimeWindow::new(Span::of_ns(1_000, 2_000));
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
        let mut view = TimeWindow::new(whole);
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
