//! The frame of one screen: its rectangles, the number of lines and columns of each part of a pane, and the wrapped
//! text of the header.
//!
//! Plain data. `layout` computes it once after each message. The update reads it (a page is as long as its pane is
//! high) and drawing reads the same, so that both agree, no text is wrapped twice, and drawing changes no state.
//! Layers have their own parts of it.

use super::pane::Pane;
use super::widget::page::StyledLine;
use ratatui::layout::Rect;

/// The frame after a message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScreenFrame {
    /// The rectangle of the header: trace, groups, verdict.
    pub header: Rect,
    /// All lines of the header; more than the rectangle has where the screen is small.
    pub header_lines: Vec<HeaderLine>,
    /// The panes, from left to right, each with a title line at its top.
    pub panes: Vec<PaneArea>,
    /// Keys, or a message.
    pub footer: Rect,
    /// The rectangle of pages and lists over the panes.
    pub overlay: Rect,
    /// Inside the tree pane.
    pub tree: TreeLines,
    /// Details of the item under the cursor, for the last lines of the tree pane, where its rows leave them empty.
    pub tree_details: Vec<StyledLine>,
    /// Inside the histogram pane.
    pub histograms: HistogramCells,
    /// Inside the pane of root causes.
    pub list: ListLines,
    /// Inside the path pane.
    pub path: PathLines,
    /// The screen without its footer: timelines cover it.
    pub full: Rect,
}

/// A pane and its rectangle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaneArea {
    pub pane: Pane,
    /// Its rectangle, title line included.
    pub area: Rect,
}

/// A line of the header, with a part at its right end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeaderLine {
    /// From the left border.
    pub left: StyledLine,
    /// Up to the right border; left out where it does not fit.
    pub right: StyledLine,
    /// A line of a sentence, which has priority over the lines about the groups.
    pub is_sentence: bool,
}

impl ScreenFrame {
    /// The rectangle of a pane without its title line; that of the first pane shown if this one is not shown.
    pub fn inside(&self, pane: Pane) -> Rect {
        let found = self.panes.iter().find(|p| p.pane == pane).or_else(|| self.panes.first());
        let area = found.map_or(Rect::ZERO, |p| p.area);
        Rect { y: area.y + area.height.min(1), height: area.height.saturating_sub(1), ..area }
    }
}

/// Lines that the header may take on a screen of this many lines.
pub fn most_header_lines(lines: u16) -> usize {
    // On low screens the sentence goes before the lines of the pane.
    let least_body = if lines >= 20 { 12 } else { (lines / 3).max(4).min(lines / 2) };
    usize::from(lines.saturating_sub(footer_lines(lines) + least_body))
}

/// Lines of the footer on a screen of this many lines.
pub fn footer_lines(lines: u16) -> u16 {
    u16::from(lines >= 4)
}

/// From this width of the tree pane on, details stand below its rows.
pub const DETAILS_FROM: u16 = 100;

/// Lines for them, their head included.
pub const DETAILS_LINES: u16 = 22;

/// Lines inside the tree pane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeLines {
    /// Column heads above the causes.
    pub cause_head: usize,
    /// Causes shown at once.
    pub causes: usize,
    /// Column heads above the tree.
    pub tree_head: usize,
    /// Tree rows shown at once.
    pub rows: usize,
    /// Columns that the names of the rows take, indented.
    pub names: usize,
}

impl TreeLines {
    /// Lines inside a tree pane of this height, with this many causes to show.
    pub fn new(height: u16, causes: usize) -> TreeLines {
        let height = usize::from(height);
        let (cause_head, shown) = match height {
            0..=2 => (0, 0),
            3..=6 => (0, causes.min(1)),
            7..=10 => (0, causes.min(2)),
            _ => (usize::from(causes > 0), causes.min((height / 4).clamp(3, 8))),
        };
        let tree_head = usize::from(height >= 4);
        let rows = height.saturating_sub(cause_head + shown + tree_head);
        TreeLines { cause_head, causes: shown, tree_head, rows, names: 0 }
    }
}

/// Lines inside the pane of root causes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListLines {
    /// Column heads above the rows.
    pub head: usize,
    /// Rows shown at once.
    pub rows: usize,
}

impl ListLines {
    /// Lines inside a pane of this height.
    pub fn new(height: u16) -> ListLines {
        let height = usize::from(height);
        let head = usize::from(height >= 3);
        ListLines { head, rows: height - head }
    }
}

/// Lines inside the path pane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathLines {
    /// Lines that describe the path.
    pub head: usize,
    pub drawing: usize,
    /// Lines per stream in it: one, or two where arrows fit between the streams.
    pub per_stream: usize,
    /// Column heads above the steps.
    pub step_head: usize,
    /// Steps shown at once.
    pub steps: usize,
}

impl PathLines {
    /// Lines inside a pane of this height, for a path with this many streams and steps.
    pub fn new(height: u16, streams: usize, steps: usize) -> PathLines {
        let height = usize::from(height);
        let head = usize::from(height >= 3);
        let step_head = usize::from(height >= 5);
        // A line for the axis; the steps get half of the space, the drawing no more than it needs.
        let space = height.saturating_sub(head + step_head);
        let steps = steps.min(space.div_ceil(2)).max(2);
        let free = space.saturating_sub(steps);
        let per_stream = if 2 * streams <= free { 2 } else { 1 };
        let drawing = if free < 3 { 0 } else { (per_stream * streams + 2 - per_stream).min(free) };
        PathLines { head, drawing, per_stream, step_head, steps: space - drawing }
    }
}

/// Lines and columns inside the histogram pane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// Groups side by side: 2, or 1 (the slow one) on a narrow pane.
    pub groups: usize,
    /// The line below that names the metrics without a histogram, if it is shown.
    pub constant: Option<usize>,
}

impl HistogramCells {
    /// The cells inside a pane of this size, with this many metrics to show. `has_constant`: there are metrics whose
    /// values are all the same, which one line names.
    pub fn new(area: Rect, metrics: usize, has_constant: bool) -> HistogramCells {
        let constant = (has_constant && area.height >= 12).then(|| usize::from(area.height) - 1);
        let width = usize::from(area.width);
        let height = constant.unwrap_or(usize::from(area.height));
        let head = usize::from(height >= 6);
        // Tall screens show all metrics, and the bars get the rest of the lines.
        let fair = ((height - head) / metrics.max(1)).saturating_sub(2);
        let bars = if height < 9 { 1 } else { fair.clamp(2, 6) };
        let block = bars + 2;
        let groups = if width >= 44 { 2 } else { 1 };
        let gutter = if width >= 20 { 6 } else { 0 };
        let columns = (width / groups).saturating_sub(gutter + 1);
        HistogramCells { head, block, bars, shown: ((height - head) / block).max(1), gutter, columns, groups, constant }
    }
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

impl BinGrid {
    /// The grid of this many bins in this many columns.
    pub fn new(bins: usize, columns: usize) -> BinGrid {
        let columns = columns.max(1);
        let step = bins.div_ceil(columns).max(1);
        let repeat = if step == 1 && bins > 0 { (columns / bins).clamp(1, 8) } else { 1 };
        BinGrid { step, repeat, count: bins.div_ceil(step) }
    }
}

/// The first line shown, so that line `at` of `count` is among the `shown`.
pub fn first_shown(offset: usize, at: usize, shown: usize, count: usize) -> usize {
    let shown = shown.max(1);
    let offset = offset.min(at).max((at + 1).saturating_sub(shown));
    offset.min(count.saturating_sub(shown))
}
