//! Cursors: moved by keys and clicks, and kept inside what there is, their lines inside what is shown.

use crate::view::tui::app::{App, Cursor, Pane};
use crate::view::tui::layout::{BinGrid, TreeLines, grid, histogram_shape, layout, list_lines, path_lines, tree_lines};
use crate::view::tui::overlay::{Overlay, Scroll};
use crate::view::tui::screen;

pub(super) fn tree_shape(app: &App) -> TreeLines {
    tree_lines(layout(app).inside(Pane::Tree).height, app.causes().len())
}

pub(super) fn page(app: &App) -> isize {
    match app.pane {
        Pane::Tree => tree_shape(app).rows.max(2) as isize - 1,
        Pane::Histograms => histogram_shape(app).shown as isize,
        Pane::Anomalies => list_lines(app).max(2) as isize - 1,
        Pane::Path => path_lines(app).steps.max(2) as isize - 1,
    }
}

pub(super) fn vertical(app: &mut App, by: isize) {
    match app.pane {
        Pane::Histograms => {
            app.histograms.row = app.histograms.row.saturating_add_signed(by);
            app.histograms.dragging = false;
        }
        Pane::Tree => {
            app.tree.touched = true;
            // Causes and rows are one list for the cursor.
            let causes = app.causes().len();
            let last = (causes + app.tree.rows.visible.len()).saturating_sub(1);
            let at = match app.tree.cursor {
                Cursor::Cause(i) => i,
                Cursor::Row(i) => causes + i,
            };
            let at = at.saturating_add_signed(by).min(last);
            app.tree.cursor = if at < causes { Cursor::Cause(at) } else { Cursor::Row(at - causes) };
        }
        // The end of both is settled below.
        Pane::Anomalies => app.patterns.list.row = app.patterns.list.row.saturating_add_signed(by),
        Pane::Path => app.patterns.path.step = app.patterns.path.step.saturating_add_signed(by),
    }
}

/// The grid of the metric under the cursor.
pub(super) fn bin_grid(app: &App) -> Option<BinGrid> {
    let cells = histogram_shape(app);
    Some(grid(app.histogram_row()?.bins.len(), cells.columns))
}

pub(super) fn move_bin(app: &mut App, by: isize) {
    let Some(grid) = bin_grid(app) else { return };
    let column = (app.histograms.bin / grid.step).saturating_add_signed(by).min(grid.count.saturating_sub(1));
    app.histograms.bin = column * grid.step;
    app.histograms.dragging = false;
}

/// Cursors inside what there is, their lines inside what is shown.
pub(super) fn settle(app: &mut App) {
    let shape = tree_shape(app);
    let (causes, rows) = (app.causes().len(), app.tree.rows.visible.len());
    app.tree.cursor = match app.tree.cursor {
        Cursor::Cause(i) if causes > 0 => Cursor::Cause(i.min(causes - 1)),
        Cursor::Cause(_) => Cursor::Row(0),
        Cursor::Row(_) if rows == 0 && causes > 0 => Cursor::Cause(0),
        Cursor::Row(i) => Cursor::Row(i.min(rows.saturating_sub(1))),
    };
    match app.tree.cursor {
        Cursor::Cause(i) => app.tree.cause_offset = shown_from(app.tree.cause_offset, i, shape.causes, causes),
        Cursor::Row(i) => app.tree.offset = shown_from(app.tree.offset, i, shape.rows, rows),
    }
    app.tree.offset = app.tree.offset.min(rows.saturating_sub(shape.rows.max(1)));
    let metrics = app.counts.as_ref().map_or(0, |c| c.rows.len());
    app.histograms.row = app.histograms.row.min(metrics.saturating_sub(1));
    let cells = histogram_shape(app);
    app.histograms.offset = shown_from(app.histograms.offset, app.histograms.row, cells.shown, metrics);
    if let Some(grid) = bin_grid(app) {
        let column = (app.histograms.bin / grid.step).min(grid.count.saturating_sub(1));
        app.histograms.bin = column * grid.step;
    }
    let shown = list_lines(app);
    let list = &mut app.patterns.list;
    list.row = list.row.min(list.visible.len().saturating_sub(1));
    list.offset = shown_from(list.offset, list.row, shown, list.visible.len());
    match app.pane {
        Pane::Anomalies => app.patterns.follow_list(),
        Pane::Path => app.patterns.follow_path(),
        Pane::Histograms | Pane::Tree => {}
    }
    let list = &mut app.patterns.list;
    list.offset = shown_from(list.offset, list.row, shown, list.visible.len());
    let paths = app.patterns.found.as_ref().map_or(&[][..], |f| &f.anomalies.paths);
    let steps = paths.get(app.patterns.path.path).map_or(0, |p| p.steps.len());
    let shown = path_lines(app).steps;
    let place = &mut app.patterns.path;
    place.step = place.step.min(steps.saturating_sub(1));
    place.offset = shown_from(place.offset, place.step, shown, steps);
}

/// The first line shown, so that line `at` of `count` is among the `shown`.
pub(super) fn shown_from(offset: usize, at: usize, shown: usize, count: usize) -> usize {
    let shown = shown.max(1);
    let offset = offset.min(at).max((at + 1).saturating_sub(shown));
    offset.min(count.saturating_sub(shown))
}

pub(super) fn scroll_page(app: &mut App, scroll: Scroll) {
    let Some((lines, shown)) = screen::page_size(app) else { return };
    let last = lines.saturating_sub(shown);
    if let Some(Overlay::Page { offset, .. }) = app.overlays.last_mut() {
        *offset = match scroll {
            Scroll::Lines(n) => offset.saturating_add_signed(n),
            Scroll::Pages(n) => offset.saturating_add_signed(n * shown.saturating_sub(1).max(1) as isize),
            Scroll::Home => 0,
            Scroll::End => last,
        }
        .min(last);
    }
}

pub(super) fn click(app: &mut App, x: u16, y: u16) {
    if !app.overlays.is_empty() {
        return;
    }
    let layout = layout(app);
    let Some((pane, _)) = layout.panes.iter().find(|(_, area)| area.contains((x, y).into())) else { return };
    let pane = *pane;
    app.pane = pane;
    let inside = layout.inside(pane);
    let Some(line) = y.checked_sub(inside.y).map(usize::from) else { return };
    match pane {
        Pane::Tree => {
            app.tree.touched = true;
            let shape = tree_shape(app);
            let rows_from = shape.cause_head + shape.causes + shape.tree_head;
            if line >= rows_from {
                app.tree.cursor = Cursor::Row(app.tree.offset + line - rows_from);
            } else if let Some(i) = line.checked_sub(shape.cause_head).filter(|i| *i < shape.causes) {
                app.tree.cursor = Cursor::Cause(app.tree.cause_offset + i);
            }
        }
        Pane::Histograms => {
            let cells = histogram_shape(app);
            app.histograms.row = app.histograms.offset + line.saturating_sub(cells.head) / cells.block;
        }
        Pane::Anomalies => {
            let head = usize::from(inside.height) - list_lines(app).min(usize::from(inside.height));
            app.patterns.list.row = app.patterns.list.offset + line.saturating_sub(head);
        }
        Pane::Path => {
            let lines = path_lines(app);
            if let Some(at) = line.checked_sub(lines.head + lines.drawing + lines.step_head) {
                app.patterns.path.step = app.patterns.path.offset + at;
            }
        }
    }
}
