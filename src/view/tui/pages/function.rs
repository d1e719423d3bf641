//! A function between its callers and its callees: what it costs everywhere.

use crate::compare::functions::Sandwich;
use crate::view::function_text::{HEAD, lists, sentence};
use crate::view::tui::theme::StyleScope;
use crate::view::tui::widget::page::{StyledLine, paragraph, plain};
use crate::view::words;

/// Its lines in this width.
pub fn lines(sandwich: &Sandwich, columns: usize) -> Vec<StyledLine> {
    let mut lines = vec![plain(StyleScope::Strong, words::frame_of_path(&sandwich.function.name).to_owned())];
    lines.extend(paragraph(StyleScope::Text, &sentence(sandwich), columns, 0));
    for (title, rows) in lists(sandwich, columns) {
        lines.push(StyledLine::new());
        lines.push(plain(StyleScope::Strong, title));
        if rows.is_empty() {
            lines.push(plain(StyleScope::Dim, "none"));
            continue;
        }
        lines.push(plain(StyleScope::Dim, HEAD));
        for row in rows {
            lines.push(match row.small.is_empty() {
                true => vec![(StyleScope::Dim, row.figures), (StyleScope::Text, row.name)],
                false => plain(StyleScope::Dim, row.figures + &row.small),
            });
        }
    }
    lines
}
