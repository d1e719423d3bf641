//! After a message: cursors are on existing items, and their lines are visible.

use crate::view::tui::app::App;
use crate::view::tui::details::{self, SampleSearch};
use crate::view::tui::frame::{DETAILS_FROM, DETAILS_LINES};
use crate::view::tui::layers::details::node_details;
use crate::view::tui::pane::Pane;
use crate::view::tui::panes::tree::state::{Cursor, DetailsBeside, MarkedNodes, TreePaneItem};
use std::sync::Arc;

/// Bring the cursors back to existing items; list and path follow each other.
pub(super) fn cursors(app: &mut App) {
    let (causes, rows) = (app.causes().len(), app.tree.rows.visible.len());
    app.tree.cursor = match app.tree.cursor {
        Cursor::Cause(i) if causes > 0 => Cursor::Cause(i.min(causes - 1)),
        Cursor::Cause(_) => Cursor::Row(0),
        Cursor::Row(_) if rows == 0 && causes > 0 => Cursor::Cause(0),
        Cursor::Row(i) => Cursor::Row(i.min(rows.saturating_sub(1))),
    };
    mark(app);
    look_beside(app);
    let metrics = app.counts.as_ref().map_or(0, |c| c.rows.len());
    app.histograms.row = app.histograms.row.min(metrics.saturating_sub(1));
    let list = &mut app.patterns.list;
    list.row = list.row.min(list.visible.len().saturating_sub(1));
    match app.pane {
        Pane::Anomalies => app.patterns.follow_list(),
        Pane::Path => app.patterns.follow_path(),
        Pane::Histograms | Pane::Tree => {}
    }
    let steps = steps(app);
    app.patterns.path.step = app.patterns.path.step.min(steps.saturating_sub(1));
}

/// Look up the details of the item under the cursor of the tree, where the screen may have space for them.
fn look_beside(app: &mut App) {
    let (columns, lines) = app.size;
    let item = match app.tree.cursor {
        Cursor::Cause(at) => Some(TreePaneItem::Cause(at)),
        Cursor::Row(_) => app.node().map(|(at, _)| TreePaneItem::Node(at)),
    };
    let shown = app.shown_tree().zip(item).filter(|_| columns >= DETAILS_FROM && lines > DETAILS_LINES);
    let Some(((_, tree), item)) = shown else {
        app.beside = None;
        return;
    };
    if app.beside.as_ref().is_some_and(|beside| beside.item == item && Arc::ptr_eq(&beside.tree, &tree)) {
        return;
    }
    let found = app.compared_executions().and_then(|(model, comparison)| match item {
        TreePaneItem::Cause(at) => {
            let cause = comparison.causes.get(at)?;
            Some(details::of_cause(&model, &comparison, cause, SampleSearch::LeftOut))
        }
        TreePaneItem::Node(_) => node_details(app, &model, &comparison, SampleSearch::LeftOut),
    });
    app.beside = found.map(|details| DetailsBeside { item, tree, details });
}

/// Mark the nodes of the cause under the cursor: one pass over the tree, when the cause is another one.
fn mark(app: &mut App) {
    let Cursor::Cause(at) = app.tree.cursor else { return };
    if app.tree.marked.cause == Some(at) {
        return;
    }
    let Some(comparison) = &app.comparison else { return };
    let contexts = comparison.causes.get(at).map_or(&[][..], |cause| &cause.contexts);
    let nodes = (0_u32..).zip(&comparison.tree.nodes);
    let marked = nodes.filter(|(_, node)| contexts.binary_search(&node.context).is_ok()).map(|(at, _)| at);
    app.tree.marked = MarkedNodes { cause: Some(at), nodes: marked.collect() };
}

/// Scroll so that the line of each cursor is visible in the frame, which is up to date.
pub(super) fn offsets(app: &mut App) {
    let tree = app.frame.tree;
    let (causes, rows) = (app.causes().len(), app.tree.rows.visible.len());
    match app.tree.cursor {
        Cursor::Cause(i) => app.tree.cause_offset = first_shown(app.tree.cause_offset, i, tree.causes, causes),
        Cursor::Row(i) => app.tree.offset = first_shown(app.tree.offset, i, tree.rows, rows),
    }
    app.tree.offset = app.tree.offset.min(rows.saturating_sub(tree.rows.max(1)));
    let metrics = app.counts.as_ref().map_or(0, |c| c.rows.len());
    let shown = app.frame.histograms.shown;
    app.histograms.offset = first_shown(app.histograms.offset, app.histograms.row, shown, metrics);
    if let Some(grid) = app.bin_grid() {
        let column = (app.histograms.bin / grid.step).min(grid.count.saturating_sub(1));
        app.histograms.bin = column * grid.step;
    }
    let list = &mut app.patterns.list;
    list.offset = first_shown(list.offset, list.row, app.frame.list.rows, list.visible.len());
    let steps = steps(app);
    let path = &mut app.patterns.path;
    path.offset = first_shown(path.offset, path.step, app.frame.path.steps, steps);
}

/// Steps of the path that is shown.
fn steps(app: &App) -> usize {
    let paths = app.patterns.found.as_ref().map_or(&[][..], |report| &report.anomalies.paths);
    paths.get(app.patterns.path.path).map_or(0, |p| p.steps.len())
}

/// The first line shown, so that line `at` of `count` is among the `shown`.
fn first_shown(offset: usize, at: usize, shown: usize, count: usize) -> usize {
    let shown = shown.max(1);
    let offset = offset.min(at).max((at + 1).saturating_sub(shown));
    offset.min(count.saturating_sub(shown))
}
