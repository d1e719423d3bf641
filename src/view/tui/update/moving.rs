//! Moving the cursors by keys. `settle` brings them back to existing items.

use crate::view::tui::app::App;
use crate::view::tui::pane::Pane;
use crate::view::tui::panes::tree::state::Cursor;

/// Lines of a page in the pane in front.
pub(super) fn page(app: &App) -> isize {
    match app.pane {
        Pane::Tree => app.frame.tree.rows.max(2) as isize - 1,
        Pane::Histograms => app.frame.histograms.shown.max(2) as isize - 1,
        Pane::Anomalies => app.frame.list.rows.max(2) as isize - 1,
        Pane::Path => app.frame.path.steps.max(2) as isize - 1,
    }
}

/// Move the cursor by lines; negative is up.
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
        Pane::Anomalies => app.patterns.list.row = app.patterns.list.row.saturating_add_signed(by),
        Pane::Path => app.patterns.path.step = app.patterns.path.step.saturating_add_signed(by),
    }
}

/// Move the cursor by columns of bins; negative is left.
pub(super) fn move_bin(app: &mut App, by: isize) {
    let Some(grid) = app.bin_grid() else { return };
    let column = (app.histograms.bin / grid.step).saturating_add_signed(by).min(grid.count.saturating_sub(1));
    app.histograms.bin = column * grid.step;
    app.histograms.dragging = false;
}
