//! The histogram pane: one block per metric, the fast group on the left, the slow one on the right.
//!
//! Both columns of a metric have the same bins and the same axis, so that they can be compared by eye; each has its
//! own scale of counts, written beside it, because the groups differ in size by orders of magnitude. Full bars are the
//! members of the group; shaded ones pass its filters on the other metrics alone.

use super::pane_view::{PaneCell, PaneView};
use super::tree::TreeView;
use crate::base::figure;
use crate::model::metric::Metric;
use crate::tui::app::App;
use crate::tui::bookmarks::BookmarkPlace;
use crate::tui::canvas::{Canvas, width};
use crate::tui::counts::HistogramRow;
use crate::tui::details::{self, Details, SampleExecution};
use crate::tui::frame::{BinGrid, HistogramCells, ScreenFrame, first_shown};
use crate::tui::groups::{BinSelection, GroupSide};
use crate::tui::layers::details::{DetailsPage, range_text};
use crate::tui::layers::page::PageLayer;
use crate::tui::pane::Pane;
use crate::tui::theme::StyleScope;
use crate::tui::update::groups::drag_to;
use crate::tui::widget::histogram::Histogram;
use crate::view::words;
use ratatui::layout::Rect;

/// The pane.
pub struct HistogramsView;

impl PaneView for HistogramsView {
    fn draw(&self, canvas: &mut Canvas<'_>, app: &App) {
        draw(canvas, app);
    }

    fn lay_out(&self, app: &App, frame: &mut ScreenFrame) {
        let has_constant = app.counts.as_ref().is_some_and(|c| !c.constant.is_empty());
        frame.histograms = HistogramCells::new(frame.inside(Pane::Histograms), metrics(app), has_constant);
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

    fn shown(&self, app: &App) -> usize {
        app.frame.histograms.shown
    }

    fn vertical(&self, app: &mut App, by: isize) {
        app.histograms.row = app.histograms.row.saturating_add_signed(by);
        app.histograms.dragging = false;
    }

    /// By columns of bins.
    fn sideways(&self, app: &mut App, by: isize) {
        let Some(grid) = app.bin_grid() else { return };
        let column = (app.histograms.bin / grid.step).saturating_add_signed(by).min(grid.count.saturating_sub(1));
        app.histograms.bin = column * grid.step;
        app.histograms.dragging = false;
    }

    fn along(&self, app: &mut App, by: isize) {
        self.sideways(app, by);
    }

    fn open(&self, app: &mut App) {
        TreeView.open(app);
    }

    /// The metric and the bin get the cursor; a selection of other bins ends.
    fn click(&self, app: &mut App, at: PaneCell) -> bool {
        let cells = app.frame.histograms;
        let Some(block) = at.line.checked_sub(cells.head).map(|line| line / cells.block.max(1)) else { return false };
        let row = app.histograms.offset + block;
        if row >= metrics(app) || block >= cells.shown {
            return false;
        }
        app.histograms.row = row;
        app.histograms.dragging = false;
        if let Some(bin) = bin_at(app, at.column) {
            app.histograms.bin = bin;
            app.histograms.selection = None;
        }
        false
    }

    fn drag(&self, app: &mut App, column: usize) {
        if let Some(bin) = bin_at(app, column) {
            drag_to(app, bin);
        }
    }

    fn details(&self, app: &App) -> Option<PageLayer> {
        Some(PageLayer::new(DetailsPage(range_details(app)?)))
    }

    fn example(&self, app: &App) -> Option<SampleExecution> {
        range_details(app)?.samples().first().cloned()
    }

    /// The selection as a filter, ready for `--slow` or `--fast`.
    fn copied(&self, app: &App) -> Option<String> {
        let row = app.histogram_row()?;
        let grid = app.bin_grid()?;
        let (metric, bin) = (row.metric.clone(), app.histograms.bin);
        let selected = app.histograms.selection.clone().filter(|s| s.metric == metric);
        let selection = selected.unwrap_or(BinSelection { metric, anchor: bin, head: bin, attached: None });
        Some(words::filter(&selection.filter(row, grid.step)?))
    }

    fn place(&self, app: &App) -> Option<BookmarkPlace> {
        app.histogram_row().map(|row| BookmarkPlace::Metric { metric: words::metric(&row.metric) })
    }
}

/// Metrics that have a histogram.
fn metrics(app: &App) -> usize {
    app.counts.as_ref().map_or(0, |c| c.rows.len())
}

/// The bin of the metric under the cursor at a column of the pane.
fn bin_at(app: &App, column: usize) -> Option<usize> {
    let (cells, grid) = (app.frame.histograms, app.bin_grid()?);
    let columns = usize::from(app.frame.inside(Pane::Histograms).width) / cells.groups.max(1);
    let column = (column % columns.max(1)).checked_sub(cells.gutter)? / grid.repeat;
    (column < grid.count).then_some(column * grid.step)
}

/// Details of the selected range of the metric under the cursor.
fn range_details(app: &App) -> Option<Details> {
    let (model, comparison) = app.compared_executions()?;
    let (grid, row) = app.bin_grid().zip(app.histogram_row())?;
    let selected = app.histograms.selection.as_ref().filter(|s| s.metric == row.metric);
    let bin = app.histograms.bin;
    let bins = selected.map_or(bin..bin + grid.step, |s| s.bins(grid.step));
    Some(details::of_range(&model, &comparison, row, bins.start..bins.end.min(row.bins.len())))
}

fn draw(canvas: &mut Canvas<'_>, app: &App) {
    let Some(counts) = &app.counts else {
        canvas.text(2, 1, "counting …", StyleScope::Progress);
        return;
    };
    let cells = app.frame.histograms;
    if let Some(line) = cells.constant {
        let value = |(metric, v): &(Metric, i64)| format!("{} {}", words::metric(metric), metric.unit().rounded(*v));
        let all: Vec<String> = counts.constant.iter().map(value).collect();
        canvas.text(1, line, &format!("identical in all executions: {}", all.join(", ")), StyleScope::Dim);
    }
    let height = cells.constant.map_or(canvas.area.height, |line| line as u16);
    let canvas = &mut canvas.part(Rect { height, ..canvas.area });
    if cells.head > 0 {
        let columns = canvas.width() / cells.groups;
        let sides = if cells.groups == 2 {
            [GroupSide::Fast, GroupSide::Slow].as_slice()
        } else {
            [GroupSide::Slow].as_slice()
        };
        for (i, side) in sides.iter().enumerate() {
            let group = app.comparison.as_ref().map(|c| if *side == GroupSide::Slow { &c.slow } else { &c.fast });
            let text = group.map_or(String::new(), |g| figure::counted(g.members.len() as u64, "execution"));
            let scope = if *side == GroupSide::Slow { StyleScope::Slow } else { StyleScope::Fast };
            let at = canvas.text(i * columns + cells.gutter, 0, side.name(), scope) + 1;
            canvas.text(at, 0, &text, StyleScope::Dim);
        }
    }
    for (line, (at, row)) in counts.rows.iter().enumerate().skip(app.histograms.offset).take(cells.shown).enumerate() {
        let y = cells.head + line * cells.block;
        let height = cells.block.min(canvas.height().saturating_sub(y));
        let area = Rect { y: canvas.area.y + y as u16, height: height as u16, ..canvas.area };
        block(&mut canvas.part(area), app, row, at == app.histograms.row, cells);
    }
}

fn block(canvas: &mut Canvas<'_>, app: &App, row: &HistogramRow, here: bool, cells: HistogramCells) {
    let grid = BinGrid::new(row.bins.len(), cells.columns);
    let selection = app.histograms.selection.as_ref().filter(|s| s.metric == row.metric);
    let selected = selection.map(|s| {
        let bins = s.bins(grid.step);
        bins.start..bins.end.min(row.bins.len())
    });
    title(canvas, app, row, here, selected.clone(), grid);
    let columns = canvas.area.width / cells.groups as u16;
    let mut group = |place: u16, side: GroupSide| {
        let (counts, bar) = match side {
            GroupSide::Slow => (&row.slow, StyleScope::SlowBar),
            GroupSide::Fast => (&row.fast, StyleScope::FastBar),
        };
        let area = canvas.area;
        let area =
            Rect { x: area.x + place * columns, y: area.y + 1, width: columns, height: area.height.saturating_sub(1) };
        let cursor = (here && app.pane == Pane::Histograms).then_some(app.histograms.bin);
        let histogram = Histogram { row, counts, grid, bar, cursor, selected: selected.clone() };
        histogram.draw(&mut canvas.part(area), cells.gutter);
    };
    if cells.groups == 2 {
        group(0, GroupSide::Fast);
        group(1, GroupSide::Slow);
    } else {
        group(0, GroupSide::Slow);
    }
}

/// Name of the metric; under the cursor also the range of the cursor or of the selection.
fn title(
    canvas: &mut Canvas<'_>,
    app: &App,
    row: &HistogramRow,
    here: bool,
    selected: Option<std::ops::Range<usize>>,
    grid: BinGrid,
) {
    let scope = if here { StyleScope::Strong } else { StyleScope::Text };
    let mut at = canvas.text(1, 0, &words::metric(&row.metric), scope);
    if row.bins.logarithmic {
        at = canvas.text(at + 1, 0, "log", StyleScope::Dim);
    }
    if row.bins.is_empty() {
        canvas.text(at + 2, 0, "no execution has a value", StyleScope::Dim);
    } else if here || selected.is_some() {
        let bin = app.histograms.bin;
        let mark = if selected.is_some() { StyleScope::Selection } else { StyleScope::Text };
        let bins = selected.unwrap_or(bin..(bin + grid.step).min(row.bins.len()));
        let sum = |counts: &[u32]| counts.get(bins.clone()).unwrap_or(&[]).iter().map(|n| u64::from(*n)).sum();
        at = canvas.text(at + 2, 0, &range_text(row, &bins), mark) + 2;
        at = canvas.text(at, 0, &format!("{} in all: ", figure::count(sum(&row.all))), StyleScope::Dim);
        at = canvas.text(at, 0, &figure::count(sum(&row.fast.members)), StyleScope::Strong);
        at = canvas.text(at, 0, " fast, ", StyleScope::Fast);
        at = canvas.text(at, 0, &figure::count(sum(&row.slow.members)), StyleScope::Strong);
        at = canvas.text(at, 0, " slow", StyleScope::Slow);
    }
    if row.separation >= 0.005 && row.metric != Metric::Duration {
        let text = format!("separates {}", figure::percent(row.separation, 0));
        if at + width(&text) + 2 < canvas.width() {
            canvas.right(canvas.width(), 0, &text, StyleScope::Dim);
        }
    }
    if here {
        canvas.mark_line(0);
    }
}
