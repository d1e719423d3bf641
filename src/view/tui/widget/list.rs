//! A list to choose from, narrowed by typing; and a line of text being typed.

use crate::view::tui::canvas::{Canvas, width};
use crate::view::tui::input::TextInput;
use crate::view::tui::overlay::{MenuItem, fitting};
use crate::view::tui::theme::StyleScope;

/// The list: the typed text above it, the entries that fit below.
pub fn draw(canvas: &mut Canvas<'_>, title: &str, typed: &TextInput, choices: &[MenuItem], at: usize) {
    canvas.clear();
    canvas.fill(0, 0, canvas.width(), '─', StyleScope::Rule);
    canvas.text(2, 0, &format!(" {title} "), StyleScope::Title);
    line(canvas, 1, "", typed);
    let shown = canvas.height().saturating_sub(2);
    let found: Vec<&MenuItem> = fitting(choices, typed.text()).collect();
    if found.is_empty() {
        canvas.text(2, 2, "no match", StyleScope::Dim);
    }
    let offset = (at + 1).saturating_sub(shown);
    let widest = choices.iter().map(|c| width(&c.name)).max().unwrap_or(0).min(canvas.width() / 2);
    for (y, choice) in found.iter().skip(offset).take(shown).enumerate() {
        let here = offset + y == at;
        let end =
            canvas.text_in(2, y + 2, widest, &choice.name, if here { StyleScope::Strong } else { StyleScope::Text });
        canvas.text(end.max(widest + 2) + 2, y + 2, &choice.help, StyleScope::Dim);
        if here {
            canvas.mark_line(y + 2);
        }
    }
}

/// A line being typed, with its cursor; its end stays in sight.
pub fn line(canvas: &mut Canvas<'_>, y: usize, label: &str, input: &TextInput) {
    let at = canvas.text(0, y, &format!("{label}> "), StyleScope::Key);
    let (before, after) = input.halves();
    let room = canvas.width().saturating_sub(at + 1);
    let before = crate::view::tui::canvas::clip_front(before, room);
    let cursor = canvas.text(at, y, &before, StyleScope::Text);
    canvas.text(cursor, y, after, StyleScope::Text);
    if after.is_empty() {
        canvas.text(cursor, y, "█", StyleScope::Selection);
    } else {
        canvas.shade(cursor, y, 1, StyleScope::Match);
    }
}
