//! The mouse: a click does what the keys of the clicked thing do.
//!
//! Titles show their pane, words of the key bar are their keys, the warnings open the data quality page, a triangle
//! unfolds, a line takes the cursor and, when it has it, is opened; dragging in a histogram selects a range. Clicks on
//! dialogs are those of `layers`.

use super::act::act;
use super::groups::drag_to;
use super::layers;
use super::patterns::show;
use crate::view::tui::actions::Action;
use crate::view::tui::app::App;
use crate::view::tui::header::length;
use crate::view::tui::key_bar;
use crate::view::tui::pane::Pane;
use crate::view::tui::panes::tree::state::Cursor;
use crate::view::tui::screen::tree::fold_column;
use crate::view::tui::tabs::tabs;
use crate::view::tui::tree::{TreeItem, depth};

/// The button went down on a cell.
pub(super) fn click(app: &mut App, x: u16, y: u16) {
    if !app.layers.is_empty() {
        return layers::click(app, x, y);
    }
    if app.frame.footer.contains((x, y).into()) {
        let bar = key_bar::words(app, usize::from(app.size.0));
        let word = bar.iter().find(|word| word.columns().contains(&usize::from(x)));
        if let Some(word) = word.filter(|_| app.status.is_none()) {
            act(app, word.action);
        }
        return;
    }
    let corner = app.frame.header_lines.first().map_or(0, |line| length(&line.right));
    if y == 0 && !app.warnings().is_empty() && usize::from(x) + corner >= usize::from(app.size.0) {
        return act(app, Action::Quality);
    }
    if let Some(tab) = tabs(&app.frame, app.pane).iter().find(|tab| tab.area.contains((x, y).into())) {
        return show(app, tab.pane);
    }
    let Some(pane) = app.frame.panes.iter().find(|p| p.area.contains((x, y).into())).map(|p| p.pane) else {
        return;
    };
    let was_in_front = app.pane == pane;
    app.pane = pane;
    let inside = app.frame.inside(pane);
    let (Some(line), Some(column)) = (y.checked_sub(inside.y), x.checked_sub(inside.x)) else { return };
    let (line, column) = (usize::from(line), usize::from(column));
    let is_again = match pane {
        Pane::Tree => return click_tree(app, line, column, was_in_front),
        Pane::Histograms => return click_histogram(app, line, column),
        Pane::Anomalies => {
            let Some(at) = line.checked_sub(app.frame.list.head) else { return };
            let row = app.patterns.list.offset + at;
            std::mem::replace(&mut app.patterns.list.row, row) == row && row < app.patterns.list.visible.len()
        }
        Pane::Path => {
            let lines = app.frame.path;
            let Some(at) = line.checked_sub(lines.head + lines.drawing + lines.step_head) else { return };
            let step = app.patterns.path.offset + at;
            app.patterns.path.step = step;
            false
        }
    };
    if is_again && was_in_front {
        act(app, Action::Open)
    }
}

fn click_tree(app: &mut App, line: usize, column: usize, was_in_front: bool) {
    let shape = app.frame.tree;
    let rows_from = shape.cause_head + shape.causes + shape.tree_head;
    let cursor = if line >= rows_from {
        Cursor::Row(app.tree.offset + line - rows_from)
    } else {
        match line.checked_sub(shape.cause_head).filter(|i| *i < shape.causes) {
            Some(i) => Cursor::Cause(app.tree.cause_offset + i),
            None => return,
        }
    };
    let item = match cursor {
        Cursor::Row(row) => app.tree.rows.visible.get(row),
        Cursor::Cause(_) => None,
    };
    if item.is_none() && matches!(cursor, Cursor::Row(_)) {
        return;
    }
    let width = usize::from(app.frame.inside(Pane::Tree).width);
    let is_triangle = item.zip(app.shown_tree()).is_some_and(|(item, (_, comparison))| {
        let at = fold_column(width, depth(item, &comparison.tree) as usize);
        matches!(item, TreeItem::Node(_)) && (at..at + 2).contains(&column)
    });
    app.tree.touched = true;
    let is_again = std::mem::replace(&mut app.tree.cursor, cursor) == cursor && was_in_front;
    if is_triangle || is_again {
        act(app, Action::Open)
    }
}

/// The metric and the bin get the cursor; a selection of other bins ends.
fn click_histogram(app: &mut App, line: usize, column: usize) {
    let cells = app.frame.histograms;
    let Some(line) = line.checked_sub(cells.head) else { return };
    let metrics = app.counts.as_ref().map_or(0, |c| c.rows.len());
    let row = app.histograms.offset + line / cells.block.max(1);
    if row >= metrics || line / cells.block.max(1) >= cells.shown {
        return;
    }
    app.histograms.row = row;
    app.histograms.dragging = false;
    if let Some(bin) = bin_at(app, column) {
        app.histograms.bin = bin;
        app.histograms.selection = None;
    }
}

/// The bin of the metric under the cursor at a column of the pane.
fn bin_at(app: &App, column: usize) -> Option<usize> {
    let (cells, grid) = (app.frame.histograms, app.bin_grid()?);
    let columns = usize::from(app.frame.inside(Pane::Histograms).width) / cells.groups.max(1);
    let column = (column % columns.max(1)).checked_sub(cells.gutter)? / grid.repeat;
    (column < grid.count).then_some(column * grid.step)
}

/// The mouse moved with the button down.
pub(super) fn drag(app: &mut App, x: u16, y: u16) {
    if !app.layers.is_empty() {
        return layers::drag(app, x);
    }
    let inside = app.frame.inside(Pane::Histograms);
    let shown = app.frame.panes.iter().any(|p| p.pane == Pane::Histograms);
    if app.pane != Pane::Histograms || !shown || !inside.contains((x, y).into()) {
        return;
    }
    match bin_at(app, usize::from(x - inside.x)) {
        Some(bin) => drag_to(app, bin),
        None => {}
    }
}
