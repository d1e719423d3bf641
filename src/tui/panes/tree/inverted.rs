//! The tree pane with callees first: asked for, shown, kept while groups change, and left.

use super::state::{Cursor, ShownInverted};
use crate::compare::inverted::InvertedTree;
use crate::tui::app::App;
use crate::tui::job::{Job, JobError};

use crate::tui::search::TextSearch;
use crate::tui::tree::{TreeDirection, TreeRows, find_path, path_text};
use std::sync::Arc;

/// Show the tree with callees first, or with callers first again.
pub fn toggle(app: &mut App) {
    if app.tree.inverted.is_some() {
        leave(app);
        return app.say("callers first");
    }
    let Some((model, comparison)) = app.compared_executions() else {
        return app.say("nothing to show yet");
    };
    if app.busy.is_some() {
        app.say("the analysis still runs; try again when it is done");
        return;
    }
    app.begin(Job::Invert { model, comparison })
}

/// The tree was inverted, or not.
pub fn on_inverted(app: &mut App, result: Result<Arc<InvertedTree>, JobError>) {
    app.busy = None;
    match result {
        Ok(tree) => {
            show(app, tree, None);
            app.say("callees first: each frame by its own time, its callers below it; I: back");
        }
        Err(error) => app.report_failure(error.to_string()),
    }
}

/// The place in an inverted tree, by names.
pub struct InvertedPlace {
    unfolded: Vec<Vec<String>>,
    cursor: Option<Vec<String>>,
}

/// Show an inverted tree, at a place of the one before or at its top.
pub fn show(app: &mut App, tree: Arc<InvertedTree>, place: Option<InvertedPlace>) {
    leave(app);
    let order = app.tree.rows.order();
    let mut rows = TreeRows::new(TreeDirection::CalleesFirst);
    let (model, of) = (&tree.model, &tree.comparison.tree);
    let place = place.unwrap_or(InvertedPlace { unfolded: Vec::new(), cursor: None });
    rows.recall(&place.unfolded, model, of);
    rows.set_order(order, model, of);
    // The node, or the nearest one above it that is still there.
    let found = place.cursor.as_ref().and_then(|path| {
        let paths = (1..=path.len()).rev().filter_map(|frames| path.get(..frames));
        paths.filter_map(|path| find_path(model, of, path)).find_map(|node| rows.row_of(node))
    });
    let rows = std::mem::replace(&mut app.tree.rows, rows);
    let cursor = app.tree.cursor;
    app.tree.inverted = Some(ShownInverted { tree, rows, cursor });
    match (place.cursor.is_some(), cursor) {
        (false, Cursor::Cause(_)) if !place.unfolded.is_empty() => {}
        _ => app.tree.cursor = Cursor::Row(found.unwrap_or(0)),
    }
    search_again(app);
}

/// Show the tree with callers first, where the cursor was; returns the place in the other one.
pub fn leave(app: &mut App) -> Option<InvertedPlace> {
    let node = app.node().filter(|_| app.tree.inverted.is_some()).map(|(_, node)| node.context);
    let shown = app.tree.inverted.take()?;
    let unfolded = app.tree.rows.remember(&shown.tree.model);
    let cursor = node.map(|context| path_text(&shown.tree.model, context));
    let order = app.tree.rows.order();
    app.tree.rows = shown.rows;
    if let Cursor::Row(_) = app.tree.cursor {
        app.tree.cursor = shown.cursor;
    }
    if let Some((model, comparison)) = app.compared_executions() {
        app.tree.rows.set_order(order, &model, &comparison.tree);
    }
    search_again(app);
    Some(InvertedPlace { unfolded, cursor })
}

/// Nodes whose frame has this text in it; again whenever the tree is another one.
pub fn search_tree(app: &mut App, text: &str) {
    let matches = match app.shown_tree() {
        Some((model, comparison)) if !text.is_empty() => app.tree.rows.matches(text, &model, &comparison.tree),
        _ => Vec::new(),
    };
    app.tree.search = TextSearch { text: text.to_owned(), matches };
}

/// The last search in another tree.
pub fn search_again(app: &mut App) {
    let text = app.tree.search.text.clone();
    search_tree(app, &text);
}
