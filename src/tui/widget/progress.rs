//! Progress of a job: stage, bar, per cent, the time left, events.

use crate::base::figure;
use crate::base::time_left::in_words;
use crate::tui::canvas::Canvas;
use crate::tui::job::Busy;
use crate::tui::theme::StyleScope;

/// `reading 42%`, as short as possible.
pub fn short(busy: &Busy) -> String {
    let stage = if busy.stage.is_empty() { busy.what } else { busy.stage };
    match percent(busy) {
        Some(percent) => format!("{stage} {percent}%"),
        None => format!("{stage} …"),
    }
}

fn percent(busy: &Busy) -> Option<u64> {
    (busy.total > 0).then(|| (busy.done.min(busy.total) as f64 / busy.total as f64 * 100.0) as u64)
}

/// A line with a bar, from column `x`.
pub fn draw(canvas: &mut Canvas<'_>, x: usize, y: usize, busy: &Busy) {
    let mut at = canvas.text(x, y, &short(busy), StyleScope::Progress) + 2;
    let left = busy.left.map(in_words);
    let words = left.as_ref().map_or(0, |words| words.len() + 2);
    let room = canvas.width().saturating_sub(at + 16 + words);
    if let Some(percent) = percent(busy)
        && room >= 8
    {
        let columns = room.min(40);
        canvas.fill(at, y, columns, '·', StyleScope::Dim);
        canvas.bar(at, y, columns, percent as f64 / 100.0, StyleScope::Progress);
        at += columns + 2;
    }
    if let Some(words) = left {
        at = canvas.text(at, y, &words, StyleScope::Progress) + 2;
    }
    if busy.events > 0 {
        canvas.text(at, y, &format!("{} events", figure::count(busy.events)), StyleScope::Dim);
    }
}
