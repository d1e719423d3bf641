//! The histogram pane: one block per metric, the fast group on the left, the slow one on the right.
//!
//! Both columns of a metric have the same bins and the same axis, so that they can be compared by eye; each has its
//! own scale of counts, written beside it, because the groups differ in size by orders of magnitude. Full bars are the
//! members of the group; shaded ones pass its filters on the other metrics alone.

use crate::base::figure;
use crate::model::metric::Metric;
use crate::view::tui::app::App;
use crate::view::tui::canvas::{Canvas, width};
use crate::view::tui::counts::HistogramRow;
use crate::view::tui::frame::{BinGrid, HistogramCells};
use crate::view::tui::groups::GroupSide;
use crate::view::tui::layers::details::range_text;
use crate::view::tui::pane::Pane;
use crate::view::tui::theme::StyleScope;
use crate::view::tui::widget::histogram::Histogram;
use crate::view::words;
use ratatui::layout::Rect;

pub fn draw(canvas: &mut Canvas<'_>, app: &App) {
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
