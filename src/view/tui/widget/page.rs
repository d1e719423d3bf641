//! A page of text over the panes: a title, lines in several styles, a mark when there is more.

use crate::view::tui::canvas::{Canvas, wrap};
use crate::view::tui::theme::StyleScope;

/// A line of a page: pieces in their styles.
pub type StyledLine = Vec<(StyleScope, String)>;

/// A line in one style.
pub fn plain(scope: StyleScope, text: impl Into<String>) -> StyledLine {
    vec![(scope, text.into())]
}

/// A paragraph in lines of at most `columns`, all but the first moved in.
pub fn paragraph(scope: StyleScope, text: &str, columns: usize, indent: usize) -> Vec<StyledLine> {
    let lines = wrap(text, columns.saturating_sub(indent).max(1));
    let blank = " ".repeat(indent);
    let place = |(i, line): (usize, String)| plain(scope, if i == 0 { line } else { format!("{blank}{line}") });
    lines.into_iter().enumerate().map(place).collect()
}

/// Draw the lines from `offset` on.
pub fn draw(canvas: &mut Canvas<'_>, title: &str, lines: &[StyledLine], offset: usize) {
    canvas.clear();
    canvas.fill(0, 0, canvas.width(), '─', StyleScope::Rule);
    let end = canvas.text(2, 0, &format!(" {title} "), StyleScope::Title);
    let shown = canvas.height().saturating_sub(1);
    let last = (offset + shown).min(lines.len());
    if shown < lines.len() {
        let place = format!(" {}-{last} of {} ", offset + 1, lines.len());
        let at = canvas.width().saturating_sub(place.len() + 2);
        if at > end {
            canvas.text(at, 0, &place, StyleScope::Dim);
        }
    }
    for (y, line) in lines.iter().skip(offset).take(shown).enumerate() {
        let end = canvas.width();
        canvas.pieces(1, y + 1, end, line);
    }
}
