//! The search in the tree that is shown, again whenever the tree is another one.

use crate::view::tui::app::App;
use crate::view::tui::search::TextSearch;

/// Nodes whose frame has this text in it.
pub(super) fn search_tree(app: &mut App, text: &str) {
    let matches = match app.shown_tree() {
        Some((model, comparison)) if !text.is_empty() => app.tree.rows.matches(text, &model, &comparison.tree),
        _ => Vec::new(),
    };
    app.tree.search = TextSearch { text: text.to_owned(), matches };
}
