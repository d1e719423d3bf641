//! The state of the interface, to be kept for the next session.
//!
//! In: the state when the program ends, or when a bookmark changes. Out: a [`SavedView`]. Cost: the unfolded nodes and
//! the bookmarks, of each at most `MOST`.

use super::app::App;
use super::bookmarks::Bookmark;
use super::panes::tree::state::Cursor;
use super::saved::SavedView;
use super::tree::{find_path, path_text};
use crate::view::words;

/// Unfolded nodes and bookmarks that are kept.
const MOST: usize = 2000;

/// The state of the interface, to be kept. Before the first answer everything that was to be restored is kept.
pub fn view(app: &App) -> SavedView {
    let bookmarks: Vec<Bookmark> = app.bookmarks.iter().take(MOST).cloned().collect();
    let Some((model, comparison)) = app.callers_first() else {
        let restoring = app.restoring.as_deref().cloned().unwrap_or_default();
        return SavedView { bookmarks, pane: app.pane.number(), ..restoring };
    };
    let request = app.groups.now();
    // Groups by label or type came with the command line, and come back with it; those of a baseline go with it.
    let own = !request.by_trace && request.within.is_empty() && app.baseline.is_none();
    let filters = |filters: &[_]| filters.iter().map(words::filter).collect::<Vec<_>>().join(", ");
    let text = |given: &[_]| if own { filters(given) } else { String::new() };
    // The tree with callers first is kept; the other one is made from it.
    let rows = app.tree.inverted.as_ref().map_or(&app.tree.rows, |inverted| &inverted.rows);
    let node = match app.tree.cursor {
        Cursor::Row(_) if app.tree.inverted.is_some() => None,
        Cursor::Row(_) => app.node().map(|(_, node)| path_text(&model, node.context)),
        Cursor::Cause(_) => None,
    };
    let mut unfolded = if app.tree.touched { rows.remember(&model) } else { Vec::new() };
    // Only what is in this tree: nodes of other groups are forgotten.
    unfolded.retain(|path| find_path(&model, &comparison.tree, path).is_some());
    unfolded.truncate(MOST);
    SavedView {
        task: app.groups.chosen_task().map(str::to_owned),
        slow: text(&request.slow),
        fast: text(&request.fast),
        pane: app.pane.number(),
        order: app.tree.rows.order().name().to_owned(),
        unfolded,
        node,
        heat_axis: app.histograms.heat.across.as_ref().map(words::metric),
        metric: app.histogram_row().filter(|_| app.histograms.below_heat).map(|row| words::metric(&row.metric)),
        bookmarks,
    }
}
