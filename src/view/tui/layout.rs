//! Layout from the size of the screen and the texts to show: read by drawing and by the update (a page is as long as the
//! pane is high), so that both agree and drawing changes no state.

use super::app::{App, Pane};
use super::screen::header;
use crate::model::propagation::PropagationPath;
use ratatui::layout::Rect;

/// From this width on two panes are side by side.
pub const SIDE_BY_SIDE: u16 = 140;

/// The parts of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScreenLayout {
    /// Trace, groups, verdict.
    pub header: Rect,
    /// Lines of the header, as many as there is room for.
    pub header_lines: usize,
    /// The panes, from left to right, each with a title line at its top.
    pub panes: Vec<(Pane, Rect)>,
    /// Keys, or a message.
    pub footer: Rect,
}

/// The parts of the screen now.
pub fn layout(app: &App) -> ScreenLayout {
    let (columns, lines) = app.size;
    let least_body = if lines >= 20 { 12 } else { lines / 2 };
    let footer_lines = u16::from(lines >= 4);
    let budget = lines.saturating_sub(footer_lines + least_body);
    let wanted = header::lines(app, usize::from(columns)).len();
    let header_lines = wanted.min(usize::from(budget));
    let header = Rect::new(0, 0, columns, header_lines as u16);
    let body = Rect::new(0, header.height, columns, lines.saturating_sub(header.height + footer_lines));
    let panes = if columns >= SIDE_BY_SIDE && !app.zoom {
        let [first, second] = app.pane.pair();
        // The list of anomalies has more to say in a line than histograms have.
        let left = if app.pane.is_of_patterns() { columns / 2 } else { columns * 2 / 5 };
        vec![(first, Rect { width: left, ..body }), (second, Rect { x: left + 1, width: columns - left - 1, ..body })]
    } else {
        vec![(app.pane, body)]
    };
    ScreenLayout { header, header_lines, panes, footer: Rect::new(0, lines - footer_lines, columns, footer_lines) }
}

impl ScreenLayout {
    /// The rectangle of a pane without its title line; the pane in front where it is not shown.
    pub fn inside(&self, pane: Pane) -> Rect {
        let found = self.panes.iter().find(|(p, _)| *p == pane).or_else(|| self.panes.first());
        let area = found.map_or(Rect::ZERO, |(_, area)| *area);
        Rect { y: area.y + area.height.min(1), height: area.height.saturating_sub(1), ..area }
    }
}

/// Lines inside the tree pane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeLines {
    /// Column heads above the causes.
    pub cause_head: usize,
    /// Causes shown at once.
    pub causes: usize,
    /// Column heads above the tree.
    pub tree_head: usize,
    /// Tree rows shown at once.
    pub rows: usize,
}

/// Lines inside a tree pane of this height, with so many causes to show.
pub fn tree_lines(height: u16, causes: usize) -> TreeLines {
    let height = usize::from(height);
    let (cause_head, shown) = match height {
        0..=2 => (0, 0),
        3..=6 => (0, causes.min(1)),
        7..=10 => (0, causes.min(2)),
        _ => (usize::from(causes > 0), causes.min((height / 4).clamp(3, 8))),
    };
    let tree_head = usize::from(height >= 4);
    TreeLines { cause_head, causes: shown, tree_head, rows: height.saturating_sub(cause_head + shown + tree_head) }
}

/// Anomalies shown at once; above them a line of column heads where there is room.
pub fn list_lines(app: &App) -> usize {
    let height = usize::from(layout(app).inside(Pane::Anomalies).height);
    height - usize::from(height >= 3)
}

/// Lines inside the path pane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathLines {
    /// Lines that describe the path.
    pub head: usize,
    /// The drawing.
    pub drawing: usize,
    /// Lines per stream in it: one, or two with room for arrows between.
    pub per_stream: usize,
    /// Column heads above the steps.
    pub step_head: usize,
    /// Steps shown at once.
    pub steps: usize,
}

/// The lines of the path pane now.
pub fn path_lines(app: &App) -> PathLines {
    let height = usize::from(layout(app).inside(Pane::Path).height);
    let path = app.patterns.selected().and_then(|(found, at)| found.anomalies.paths.get(at));
    let streams = path.map_or(0, |p| streams(p).len());
    let head = usize::from(height >= 3);
    let step_head = usize::from(height >= 5);
    // A line for the axis; the steps get half of the room, the drawing no more than it needs.
    let room = height.saturating_sub(head + step_head);
    let steps = path.map_or(0, |p| p.steps.len()).min(room.div_ceil(2)).max(2);
    let free = room.saturating_sub(steps);
    let per_stream = if 2 * streams <= free { 2 } else { 1 };
    let drawing = if free < 3 { 0 } else { (per_stream * streams + 2 - per_stream).min(free) };
    PathLines { head, drawing, per_stream, step_head, steps: room - drawing }
}

/// The streams on a path, in the order in which it reaches them.
pub fn streams(path: &PropagationPath) -> Vec<u32> {
    let mut found = Vec::new();
    for step in &path.steps {
        if !found.contains(&step.stream) {
            found.push(step.stream);
        }
    }
    found
}

/// Lines and columns inside the histogram pane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistogramCells {
    /// Line that names the groups.
    pub head: usize,
    /// Lines of one metric: a title, bars, the axis.
    pub block: usize,
    /// Lines of bars.
    pub bars: usize,
    /// Metrics shown at once.
    pub shown: usize,
    /// Columns for the greatest count, left of each group's bars.
    pub gutter: usize,
    /// Columns of bars of one group.
    pub columns: usize,
    /// Groups side by side: 2, or 1 (the slow one) where there is no room.
    pub groups: usize,
}

/// The cells inside a histogram pane of this size, with so many metrics to show.
pub fn histogram_cells(area: Rect, metrics: usize) -> HistogramCells {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let head = usize::from(height >= 6);
    // Tall screens show all metrics, and give what is left to the bars.
    let fair = ((height - head) / metrics.max(1)).saturating_sub(2);
    let bars = if height < 9 { 1 } else { fair.clamp(2, 6) };
    let block = bars + 2;
    let groups = if width >= 44 { 2 } else { 1 };
    let gutter = if width >= 20 { 6 } else { 0 };
    let columns = (width / groups).saturating_sub(gutter + 1);
    HistogramCells { head, block, bars, shown: ((height - head) / block).max(1), gutter, columns, groups }
}

/// The cells of the histogram pane now.
pub fn histogram_shape(app: &App) -> HistogramCells {
    let metrics = app.counts.as_ref().map_or(0, |c| c.rows.len());
    histogram_cells(histogram_area(app, layout(app).inside(Pane::Histograms)), metrics)
}

/// The part of the pane for histograms; a line below, if it fits, names the metrics that have none.
pub fn histogram_area(app: &App, inside: Rect) -> Rect {
    let constant = app.counts.as_ref().is_some_and(|c| !c.constant.is_empty());
    Rect { height: inside.height - u16::from(constant && inside.height >= 12), ..inside }
}

/// How bins share the columns of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BinGrid {
    /// Bins per column, where there are more bins than columns.
    pub step: usize,
    /// Columns per bin, where there are fewer.
    pub repeat: usize,
    /// Columns (of `step` bins, `repeat` wide) altogether.
    pub count: usize,
}

/// The grid of so many bins in so many columns.
pub fn grid(bins: usize, columns: usize) -> BinGrid {
    let columns = columns.max(1);
    let step = bins.div_ceil(columns).max(1);
    let repeat = if step == 1 && bins > 0 { (columns / bins).clamp(1, 8) } else { 1 };
    BinGrid { step, repeat, count: bins.div_ceil(step) }
}
