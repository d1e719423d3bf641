//! The histogram pane: the heat map, and below it one block per metric, the slow group above the axis, the fast one
//! below it.
//!
//! Both halves of a histogram have the same bins, so that they can be compared by eye; each has its own scale of
//! counts, written beside it, because the groups differ in size by orders of magnitude. Full bars are the members of
//! the group; shaded cells at the axis have executions that pass its filters on the other metrics alone. The cursor is
//! on the heat map or on a histogram; panes that are too low for both show the one that has it.

mod draw;
pub mod state;

use super::pane_view::{PaneCell, PaneView};
use crate::tui::app::App;
use crate::tui::bookmarks::BookmarkPlace;
use crate::tui::canvas::Canvas;
use crate::tui::details::{self, Details, SampleExecution};
use crate::tui::frame::{HeatInPane, HistogramCells, ScreenFrame, first_shown};
use crate::tui::groups::BinSelection;
use crate::tui::layers::details::DetailsPage;
use crate::tui::layers::executions;
use crate::tui::layers::page::PageLayer;
use crate::tui::pane::Pane;
use crate::tui::update::groups::{drag_to, selected, text_of};
use crate::tui::update::heat;
use crate::tui::widget::heat_map::nearest;
use crate::view::words;
use state::has_heat;

/// The pane.
pub struct HistogramsView;

impl PaneView for HistogramsView {
    fn draw(&self, canvas: &mut Canvas<'_>, app: &App) {
        draw::draw(canvas, app);
    }

    fn lay_out(&self, app: &App, frame: &mut ScreenFrame) {
        let heat = match &app.model {
            Some(model) if !has_heat(model) => HeatInPane::None,
            None => HeatInPane::None,
            Some(_) if app.histograms.below_heat => HeatInPane::Behind,
            Some(_) => HeatInPane::Front,
        };
        let area = frame.inside(Pane::Histograms);
        (frame.heat, frame.histograms) = HistogramCells::new(area, app.size.1, metrics(app), heat);
    }

    fn settle(&self, app: &mut App) {
        app.histograms.row = app.histograms.row.min(metrics(app).saturating_sub(1));
    }

    fn scroll(&self, app: &mut App) {
        let (offset, row) = (app.histograms.offset, app.histograms.row);
        app.histograms.offset = first_shown(offset, row, app.frame.histograms.shown, metrics(app));
        if let Some(grid) = app.bin_grid() {
            let column = (app.histograms.bin / grid.step).min(grid.count.saturating_sub(1));
            app.histograms.bin = column * grid.step;
        }
    }

    /// A page leads from any row of the heat map to the histograms.
    fn shown(&self, app: &App) -> usize {
        if app.histograms.is_on_heat(app.frame.heat) { app.frame.heat.rows + 2 } else { app.frame.histograms.shown }
    }

    /// Through the rows of the heat map, from the longest duration down, then through the metrics.
    fn vertical(&self, app: &mut App, by: isize) {
        app.histograms.dragging = false;
        if app.histograms.is_on_heat(app.frame.heat) {
            return heat::vertical(app, by);
        }
        match app.histograms.row.checked_add_signed(by) {
            Some(row) => app.histograms.row = row,
            None if app.model.as_ref().is_some_and(|model| has_heat(model)) && app.histograms.row == 0 => {
                app.histograms.below_heat = false;
            }
            None => app.histograms.row = 0,
        }
    }

    /// By columns of the heat map or of bins.
    fn sideways(&self, app: &mut App, by: isize) {
        app.histograms.dragging = false;
        if app.histograms.is_on_heat(app.frame.heat) {
            return heat::move_cursor(app, by, 0);
        }
        let Some(grid) = app.bin_grid() else { return };
        let column = (app.histograms.bin / grid.step).saturating_add_signed(by).min(grid.count.saturating_sub(1));
        app.histograms.bin = column * grid.step;
    }

    fn along(&self, app: &mut App, by: isize) {
        self.sideways(app, by);
    }

    /// The executions of the cell, of the box, or of the range.
    fn open(&self, app: &mut App) {
        executions::list_here(app);
    }

    /// The cell of the heat map, or the metric and the bin, get the cursor; a selection elsewhere ends.
    fn click(&self, app: &mut App, at: PaneCell) -> bool {
        let cells = app.frame.histograms;
        app.histograms.dragging = false;
        if at.line < app.frame.heat.lines() {
            app.histograms.below_heat = false;
            let place = app.histograms.heat.map().map(|map| nearest(map, app.frame.heat, at.line, at.column));
            heat::click(app, place);
            return false;
        }
        let across = at.column / cells.width.max(1);
        let has_line = |down: &usize| {
            let (first, lines) = cells.lines_of(*down);
            (first..first + lines).contains(&at.line)
        };
        let Some(down) = (0..cells.down).find(has_line).filter(|_| across < cells.across) else { return false };
        let row = app.histograms.offset + across * cells.down + down;
        if row >= metrics(app) {
            return false;
        }
        app.histograms.go_to_row(row);
        if let Some(bin) = bin_at(app, at.column) {
            app.histograms.bin = bin;
            app.histograms.selection = None;
        }
        false
    }

    fn drag(&self, app: &mut App, at: PaneCell) {
        if app.histograms.is_on_heat(app.frame.heat) {
            let place = app.histograms.heat.map().map(|map| nearest(map, app.frame.heat, at.line, at.column));
            heat::drag_to(app, place);
        } else if let Some(bin) = bin_at(app, at.column) {
            drag_to(app, bin);
        }
    }

    fn details(&self, app: &App) -> Option<PageLayer> {
        Some(PageLayer::new(DetailsPage(details_here(app)?)))
    }

    fn example(&self, app: &App) -> Option<SampleExecution> {
        details_here(app)?.samples().first().cloned()
    }

    /// The selection as filters, ready for `--slow` or `--fast`.
    fn copied(&self, app: &App) -> Option<String> {
        if app.histograms.is_on_heat(app.frame.heat) {
            let filters = app.histograms.heat.map()?.filters(&app.histograms.heat.here())?;
            return Some(text_of(&filters)).filter(|text| !text.is_empty());
        }
        let filters = selected(app);
        if !filters.is_empty() {
            return Some(text_of(&filters));
        }
        let (row, grid) = (app.histogram_row()?, app.bin_grid()?);
        let (metric, bin) = (row.metric.clone(), app.histograms.bin);
        let selection = BinSelection { metric, anchor: bin, head: bin, attached: None };
        Some(words::filter(&selection.filter(row, grid.step)?))
    }

    /// A metric; the heat map is always there.
    fn place(&self, app: &App) -> Option<BookmarkPlace> {
        app.histogram_row()
            .filter(|_| !app.histograms.is_on_heat(app.frame.heat))
            .map(|row| BookmarkPlace::Metric { metric: words::metric(&row.metric) })
    }
}

/// Metrics that have a histogram.
fn metrics(app: &App) -> usize {
    app.counts.as_ref().map_or(0, |c| c.rows.len())
}

/// The bin of the metric under the cursor at a column of the pane.
fn bin_at(app: &App, column: usize) -> Option<usize> {
    let (cells, grid) = (app.frame.histograms, app.bin_grid()?);
    let column = (column % cells.width.max(1)).checked_sub(cells.gutter)? / grid.repeat;
    (column < grid.count).then_some(column * grid.step)
}

/// Details of the box or the cell, or of the selected range of the metric under the cursor.
fn details_here(app: &App) -> Option<Details> {
    let (model, comparison) = app.compared_executions()?;
    if app.histograms.is_on_heat(app.frame.heat) {
        return Some(details::of_cells(&model, &comparison, app.histograms.heat.map()?, app.histograms.heat.here()));
    }
    let (grid, row) = app.bin_grid().zip(app.histogram_row())?;
    let selected = app.histograms.selection.as_ref().filter(|s| s.metric == row.metric);
    let bin = app.histograms.bin;
    let bins = selected.map_or(bin..bin + grid.step, |s| s.bins(grid.step));
    Some(details::of_range(&model, &comparison, row, bins.start..bins.end.min(row.bins.len())))
}
