//! The prompt for the filters of a group: its title and keys, the text, below it the error or the candidates.

use crate::view::tui::canvas::{Canvas, clip_front, width, wrap};
use crate::view::tui::filter_prompt::{FilterPrompt, PromptError};
use crate::view::tui::theme::StyleScope;

/// Most lines of an error.
const ERROR_LINES: usize = 4;

/// The keys of the prompt.
const KEYS: &str = "Tab complete  Up history  Ctrl-u empty  Enter apply  Esc cancel";

/// Lines that the prompt takes on a screen of this width: a title, the text, the error or the candidates.
pub fn height(prompt: &FilterPrompt, columns: usize) -> usize {
    let below = prompt.error.as_ref().map_or(1, |error| wrap(&error.text, columns).len().clamp(1, ERROR_LINES));
    2 + below
}

/// Draw it; on a canvas that is too low the title is left out first, then the line below.
pub fn draw(canvas: &mut Canvas<'_>, prompt: &FilterPrompt) {
    canvas.clear();
    let mut y = 0;
    if canvas.height() >= 3 {
        canvas.fill(0, 0, canvas.width(), '─', StyleScope::Rule);
        let end = canvas.text(2, 0, &format!(" {} group ", prompt.side.name()), StyleScope::Title);
        if end + width(KEYS) + 3 <= canvas.width() {
            canvas.right(canvas.width() - 1, 0, &format!(" {KEYS} "), StyleScope::Dim);
        }
        y = 1;
    }
    let label = canvas.text(0, y, &format!("{}> ", prompt.side.name()), StyleScope::Key);
    // The cursor and one column behind it stay in sight.
    let (before, after) = prompt.input.halves();
    let shown = clip_front(before, canvas.width().saturating_sub(label + 2));
    let cut = width(before) - width(&shown).min(width(before));
    let column = |at: usize| {
        let to = width(prompt.input.text().get(..at).unwrap_or_default());
        label + to.saturating_sub(cut)
    };
    let cursor = canvas.text(label, y, &shown, StyleScope::Text);
    canvas.text(cursor, y, after, StyleScope::Text);
    if let Some(PromptError { place, .. }) = &prompt.error {
        canvas.shade(column(place.start), y, column(place.end) - column(place.start), StyleScope::Error);
    }
    if after.is_empty() {
        canvas.text(cursor, y, "█", StyleScope::Selection);
    } else {
        canvas.shade(cursor, y, 1, StyleScope::Match);
    }
    match &prompt.error {
        Some(error) => draw_error(canvas, y + 1, error, column(error.place.start)),
        None => draw_candidates(canvas, y + 1, prompt, label),
    }
}

/// The error below its place, or from the left border where it is longer.
fn draw_error(canvas: &mut Canvas<'_>, y: usize, error: &PromptError, at: usize) {
    let columns = canvas.width();
    let length = width(&error.text);
    if length <= columns {
        canvas.text(at.min(columns - length), y, &error.text, StyleScope::Error);
        return;
    }
    for (line, text) in wrap(&error.text, columns).iter().take(ERROR_LINES).enumerate() {
        canvas.text(0, y + line, text, StyleScope::Error);
    }
}

/// The candidates, that of Tab marked; behind them the values of the metric.
fn draw_candidates(canvas: &mut Canvas<'_>, y: usize, prompt: &FilterPrompt, x: usize) {
    let (completion, chosen) = prompt.completion();
    let is_empty = prompt.input.text().trim().is_empty();
    let mut at = x;
    if is_empty {
        at = canvas.text(at, y, "duration>20ms, type=NAME", StyleScope::Text) + 2;
        at = canvas.text(at, y, "metrics:", StyleScope::Dim) + 1;
    }
    // The chosen candidate stays in sight.
    let columns = canvas.width().saturating_sub(at);
    let first = chosen.map_or(0, |chosen| {
        let mut first = chosen;
        let mut room = columns.saturating_sub(width(&completion.candidates[chosen]));
        while let Some(before) = first.checked_sub(1)
            && let Some(left) = room.checked_sub(width(&completion.candidates[before]) + 2)
        {
            room = left;
            first = before;
        }
        first
    });
    for (i, candidate) in completion.candidates.iter().enumerate().skip(first) {
        if at >= canvas.width() {
            return;
        }
        let scope = if chosen == Some(i) { StyleScope::Match } else { StyleScope::Dim };
        at = canvas.text(at, y, candidate, scope) + 2;
    }
    if !completion.remark.is_empty() && at + width(&completion.remark) <= canvas.width() {
        canvas.right(canvas.width(), y, &completion.remark, StyleScope::Dim);
    }
}
