//! Lines of text in several styles.

use crate::tui::canvas::wrap;
use crate::tui::theme::StyleScope;

/// A line of a page: pieces in their styles.
pub type StyledLine = Vec<(StyleScope, String)>;

/// The beginning of a line that is marked among several.
pub const MARK: &str = "▌";

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
