//! The axis of a drawing over time: round times, those at both ends, the cursor and the selection.

use crate::base::figure;
use crate::base::time::Timestamp;
use crate::tui::canvas::Canvas;
use crate::tui::theme::StyleScope;
use crate::tui::time_window::TimeWindow;
use crate::view::ticks::ticks;

/// Draw it from column `left` on, in this many columns and two lines; times count from `origin`.
pub fn draw(canvas: &mut Canvas<'_>, left: usize, y: usize, time: &TimeWindow, count: usize, origin: Timestamp) {
    canvas.fill(left, y, count, '─', StyleScope::Rule);
    let stamp = |t: Timestamp| figure::stamp(t.since(origin));
    let x = canvas.text(left, y + 1, &stamp(time.window.start), StyleScope::Dim);
    let end = stamp(time.window.end);
    let last = left + count;
    if x + end.len() + 2 < last {
        canvas.right(last, y + 1, &end, StyleScope::Dim);
    }
    for (column, text) in ticks(time.window.start.since(origin), time.window.len(), count) {
        let at = left + column;
        canvas.text_in(at, y, 1, "┴", StyleScope::Rule);
        if at > x + 1 && at + text.len() + 2 < last.saturating_sub(end.len()) {
            canvas.text(at, y + 1, &text, StyleScope::Dim);
        }
    }
    let cursor = time.column(count);
    if let Some(anchor) = time.anchor {
        let at = TimeWindow { cursor: anchor, ..time.clone() }.column(count);
        let (first, last) = (at.min(cursor), at.max(cursor));
        canvas.fill(left + first, y, last + 1 - first, '═', StyleScope::Selection);
    }
    canvas.text_in(left + cursor, y, 1, "▲", StyleScope::Selection);
}
