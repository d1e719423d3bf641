//! The lines of an execution's timeline: a line of states per thread, arrows for the wake-ups between them.
//!
//! Each run of a state begins with its letter, so that it reads without colours; a thread that waits for another one
//! of the path is dotted. An arrow leads from the thread that wakes to the one that waited, in the column of the
//! wake-up; it is drawn in blank cells only, so that it hides no state.

use crate::model::wait_kind::WaitKind;
use crate::tui::canvas::Canvas;
use crate::tui::theme::StyleScope;
use crate::view::lanes::{LaneCell, letter};
use std::ops::Range;

/// A wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneArrow {
    /// The thread that wakes.
    pub from: usize,
    /// The thread that is woken.
    pub to: usize,
    pub column: usize,
}

/// Input of the drawing.
pub struct Lanes<'a> {
    /// Names of the threads.
    pub labels: &'a [String],
    /// Their cells.
    pub cells: &'a [Vec<LaneCell>],
    /// Letters of events below the threads, with their columns; empty where events are not shown.
    pub events: Vec<Vec<(usize, char)>>,
    /// Wake-ups.
    pub arrows: Vec<LaneArrow>,
    /// Columns of found segments, by thread.
    pub found: Vec<(usize, Range<usize>)>,
    /// The columns of the segment under the cursor, and its thread.
    pub cursor: Option<(usize, Range<usize>)>,
    /// Lines per thread: 2 where arrows and events fit between them.
    pub per_lane: usize,
    /// The first thread shown.
    pub first: usize,
    /// Columns of the names.
    pub label_columns: usize,
}

/// The style of a state.
pub fn scope(state: WaitKind) -> StyleScope {
    let named = |scope: &&StyleScope| scope.name() == state.row().style;
    StyleScope::ALL.iter().find(named).copied().unwrap_or(StyleScope::StateOther)
}

impl Lanes<'_> {
    /// Draw as many threads as the canvas has lines for.
    pub fn draw(&self, canvas: &mut Canvas<'_>) {
        let left = self.label_columns + 2;
        for (thread, cells) in self.cells.iter().enumerate().skip(self.first) {
            let Some(y) = self.line(thread).filter(|y| *y < canvas.height()) else { break };
            let here = self.cursor.as_ref().is_some_and(|(of, _)| *of == thread);
            let label = self.labels.get(thread).map_or("", |label| label);
            let style = if here { StyleScope::Strong } else { StyleScope::Text };
            canvas.text_in(1, y, self.label_columns, label, style);
            draw_cells(canvas, left, y, cells);
            for (column, symbol) in self.events.get(thread).into_iter().flatten().filter(|_| self.per_lane > 1) {
                canvas.text_in(left + column, y + 1, 1, &symbol.to_string(), StyleScope::Key);
            }
        }
        for arrow in &self.arrows {
            self.draw_arrow(canvas, left, arrow);
        }
        for (thread, columns) in &self.found {
            self.shade(canvas, left, *thread, columns, StyleScope::Selection);
        }
        if let Some((thread, columns)) = &self.cursor {
            self.shade(canvas, left, *thread, columns, StyleScope::Match);
        }
    }

    /// The line of a thread, from the first one shown.
    fn line(&self, thread: usize) -> Option<usize> {
        Some(thread.checked_sub(self.first)? * self.per_lane)
    }

    fn shade(&self, canvas: &mut Canvas<'_>, left: usize, thread: usize, columns: &Range<usize>, scope: StyleScope) {
        if let Some(y) = self.line(thread) {
            canvas.shade(left + columns.start, y, columns.len().max(1), scope);
        }
    }

    /// The line between the two threads, with its head beside the one that is woken.
    fn draw_arrow(&self, canvas: &mut Canvas<'_>, left: usize, arrow: &LaneArrow) {
        let (Some(from), Some(to)) = (self.line(arrow.from), self.line(arrow.to)) else { return };
        let upwards = to < from;
        let lines = if upwards { to + 1..from } else { from + 1..to };
        let x = left + arrow.column;
        let height = canvas.height();
        for y in lines.clone().filter(|y| *y < height) {
            let is_between = !y.is_multiple_of(self.per_lane.max(1));
            let thread = self.first + y / self.per_lane.max(1);
            let blank = || self.cells.get(thread).and_then(|c| c.get(arrow.column)) == Some(&LaneCell::Empty);
            if !is_between && !blank() {
                continue;
            }
            let symbol = match upwards {
                true if y == lines.start => "▲",
                false if y + 1 == lines.end => "▼",
                _ => "│",
            };
            canvas.text_in(x, y, 1, symbol, StyleScope::Dim);
        }
    }
}

/// Each run of one state: its letter, then a line.
fn draw_cells(canvas: &mut Canvas<'_>, left: usize, y: usize, cells: &[LaneCell]) {
    let mut x = left;
    for run in cells.chunk_by(|a, b| a == b) {
        match run.first() {
            Some(LaneCell::State(state)) => {
                let style = scope(*state);
                canvas.fill(x, y, run.len(), '━', style);
                canvas.text_in(x, y, 1, &letter(*state).to_string(), style);
            }
            Some(LaneCell::Waits) => canvas.fill(x, y, run.len(), '┄', StyleScope::Dim),
            Some(LaneCell::Empty) | None => {}
        }
        x += run.len();
    }
}
