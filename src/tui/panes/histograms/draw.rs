//! Drawing of the histogram pane: the heat map, the histograms in columns, and the line that says how many there are.

use crate::base::figure;
use crate::model::metric::Metric;
use crate::tui::app::App;
use crate::tui::canvas::{Canvas, width};
use crate::tui::counts::{HistogramCounts, HistogramRow};
use crate::tui::frame::{BinGrid, HistogramCells};
use crate::tui::layers::details::range_text;
use crate::tui::pane::Pane;
use crate::tui::theme::StyleScope;
use crate::tui::widget::heat_map::HeatDrawing;
use crate::tui::widget::histogram::Histogram;
use crate::view::{heat_map, words};
use ratatui::layout::Rect;
use std::ops::Range;

/// Draw the pane.
pub(super) fn draw(canvas: &mut Canvas<'_>, app: &App) {
    draw_heat(canvas, app);
    let cells = app.frame.histograms;
    if cells.shown == 0 {
        return;
    }
    let Some(counts) = &app.counts else {
        canvas.text(2, cells.top + 1, "counting …", StyleScope::Progress);
        return;
    };
    let rows = counts.rows.iter().enumerate().skip(app.histograms.offset).take(cells.shown);
    for (place, (at, row)) in rows.enumerate() {
        let (across, down) = (place / cells.down.max(1), place % cells.down.max(1));
        let (y, lines) = cells.lines_of(down);
        let height = lines.min(canvas.height().saturating_sub(y));
        let area = Rect {
            x: canvas.area.x + (across * cells.width) as u16,
            y: canvas.area.y + y as u16,
            width: cells.width as u16,
            height: height as u16,
        };
        let here = at == app.histograms.row && !app.histograms.is_on_heat(app.frame.heat);
        block(&mut canvas.part(area), app, row, here, cells);
    }
    if let Some(line) = cells.foot {
        foot(canvas, app, counts, line);
    }
}

/// The heat map and its title; where executions have none, the reason.
fn draw_heat(canvas: &mut Canvas<'_>, app: &App) {
    let cells = app.frame.heat;
    if cells.rows == 0 {
        return;
    }
    let heat = &app.histograms.heat;
    if let Some(failure) = &heat.failure {
        canvas.text(2, cells.head, failure, StyleScope::Text);
        return;
    }
    // A map for a screen of another size does not fit.
    let Some(map) =
        heat.counted.as_ref().filter(|counted| counted.of.size == cells.size()).map(|counted| &*counted.map)
    else {
        canvas.text(2, cells.head, "counting …", StyleScope::Progress);
        return;
    };
    let in_front = app.histograms.is_on_heat(cells);
    let cursor = (in_front && app.pane == Pane::Histograms).then_some(app.histograms.heat.cursor);
    let boxed = app.histograms.heat.boxed();
    if cells.head > 0 {
        let scope = if in_front { StyleScope::Strong } else { StyleScope::Text };
        let mut at = canvas.text(1, 0, &heat_map::title(map), scope) + 2;
        if cursor.is_some() || boxed.is_some() {
            let here = app.histograms.heat.here();
            let scope = if boxed.is_some() { StyleScope::Selection } else { StyleScope::Text };
            let sum = map.sum(&here);
            at = canvas.text(at, 0, &heat_map::box_words(map, &here), scope) + 2;
            at = counted(canvas, at, [sum.all, sum.fast, sum.slow].map(u64::from));
        }
        if app.frame.histograms.foot.is_none() {
            legend(canvas, at, 0);
        }
    }
    HeatDrawing { map, cells, cursor, boxed }.draw(canvas);
}

/// Executions: all, where there is room, fast and slow.
fn counted(canvas: &mut Canvas<'_>, at: usize, [all, fast, slow]: [u64; 3]) -> usize {
    let [all, fast, slow] = [all, fast, slow].map(figure::count);
    let all = format!("{all} in all: ");
    let needed = width(&all) + width(&fast) + width(&slow) + width(" fast,  slow");
    let at = if at + needed <= canvas.width() { canvas.text(at, 0, &all, StyleScope::Dim) } else { at };
    let at = canvas.text(at, 0, &fast, StyleScope::Strong);
    let at = canvas.text(at, 0, " fast, ", StyleScope::Fast);
    let at = canvas.text(at, 0, &slow, StyleScope::Strong);
    canvas.text(at, 0, " slow", StyleScope::Slow)
}

/// What the marks of the heat map mean, at the right end of a line that is free from a column on.
fn legend(canvas: &mut Canvas<'_>, free: usize, y: usize) {
    let pieces = [
        (StyleScope::SlowBar, "▪■█"),
        (StyleScope::Dim, " slow  "),
        (StyleScope::FastBar, "░▒▓"),
        (StyleScope::Dim, " fast  "),
        (StyleScope::SlowBar, "▚"),
        (StyleScope::Dim, " both  · neither"),
    ];
    let length: usize = pieces.iter().map(|(_, text)| width(text)).sum();
    let end = canvas.width();
    if free + length + 3 > end {
        return;
    }
    let pieces = pieces.map(|(scope, text)| (scope, text.to_owned()));
    canvas.pieces(end - length - 1, y, end, &pieces);
}

/// How many metrics there are and how many of them are below; those of one value; what the marks mean.
fn foot(canvas: &mut Canvas<'_>, app: &App, counts: &HistogramCounts, y: usize) {
    let (all, shown) = (counts.rows.len(), app.frame.histograms.shown);
    let last = (app.histograms.offset + shown).min(all);
    let (above, below) = (app.histograms.offset, all - last);
    let mut text = match (above, below) {
        (0, 0) => String::new(),
        (0, below) => format!("{last} of {all}, {below} more below"),
        (above, 0) => format!("{} of {all}, {above} more above", last - above),
        (above, below) => format!("{} of {all}, {above} more above, {below} below", last - above),
    };
    if app.model.as_ref().is_some_and(|model| model.profile.is_some()) {
        text.push_str(if text.is_empty() { "" } else { "; " });
        text.push_str("samples have no durations, so no heat map");
    }
    let mut at = canvas.text(1, y, &text, StyleScope::Dim);
    if app.frame.heat.rows > 0 {
        legend(canvas, at, y);
    } else if !counts.constant.is_empty() {
        let value = |(metric, v): &(Metric, i64)| format!("{} {}", words::metric(metric), metric.unit().rounded(*v));
        let same: Vec<String> = counts.constant.iter().map(value).collect();
        at += if text.is_empty() { 0 } else { 2 };
        canvas.text(at.max(1), y, &format!("identical in all executions: {}", same.join(", ")), StyleScope::Dim);
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
    let cursor = (here && app.pane == Pane::Histograms).then_some(app.histograms.bin);
    let has_fast = app.comparison.as_ref().is_none_or(|comparison| !comparison.fast.members.is_empty());
    let area = canvas.area;
    let area = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    Histogram { row, grid, has_fast, cursor, selected }.draw(&mut canvas.part(area), cells.gutter);
}

/// Name of the metric; under the cursor also the range of the cursor or of the selection.
fn title(
    canvas: &mut Canvas<'_>,
    app: &App,
    row: &HistogramRow,
    here: bool,
    selected: Option<Range<usize>>,
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
        let has_fast = app.comparison.as_ref().is_none_or(|comparison| !comparison.fast.members.is_empty());
        at = if has_fast {
            counted(canvas, at, [sum(&row.all), sum(&row.fast.members), sum(&row.slow.members)])
        } else {
            canvas.text(at, 0, &format!("{} in all", figure::count(sum(&row.all))), StyleScope::Dim)
        };
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
