//! The frame of one screen: its rectangles, the number of lines and columns of each part of a pane, and the wrapped
//! text of the header.
//!
//! Plain data. `layout` computes it once after each message. The update reads it (a page is as long as its pane is
//! high) and drawing reads the same, so that both agree, no text is wrapped twice, and drawing changes no state.
//! Layers have their own parts of it.

use super::pane::Pane;
use super::widget::page::StyledLine;
use crate::compare::heat_map::HeatSize;
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
    /// The boxes of the tree, where it is drawn as an icicle.
    pub icicle: Vec<IcicleBox>,
    /// Details of the item under the cursor, for the last lines of the tree pane, where its rows leave them empty.
    pub tree_details: Vec<StyledLine>,
    /// The heat map of the histogram pane.
    pub heat: HeatCells,
    /// Inside the histogram pane, below the heat map.
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

/// Lines of a list beside the heat map, at least.
const LEAST_LIST: u16 = 5;

impl ScreenFrame {
    /// The place of a list that leaves the heat map in sight: the other pane, or the lines below the map. `None` where
    /// there is no map or too little room.
    pub fn beside_heat(&self) -> Option<Rect> {
        let is_shown = self.heat.rows > 0 && self.panes.iter().any(|shown| shown.pane == Pane::Histograms);
        if !is_shown {
            return None;
        }
        if let Some(other) = self.panes.iter().find(|shown| shown.pane != Pane::Histograms) {
            return Some(other.area);
        }
        let inside = self.inside(Pane::Histograms);
        let map = (self.heat.lines() as u16).min(inside.height);
        let below = Rect { y: inside.y + map, height: inside.height - map, ..inside };
        (below.height >= LEAST_LIST).then_some(below)
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

/// A node of the tree with its place in an icicle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcicleBox {
    pub node: u32,
    /// The line, from that of the roots on.
    pub level: usize,
    /// The first column, and how many.
    pub x: usize,
    pub columns: usize,
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

/// Lines and columns of the heat map, the first row of the histogram pane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeatCells {
    /// Line that says what it shows: 1, or 0 on the lowest panes.
    pub head: usize,
    /// Lines of cells; 0 where it is not shown.
    pub rows: usize,
    /// Columns for the durations, left of the cells.
    pub gutter: usize,
    /// Columns of cells.
    pub columns: usize,
}

/// Columns of a name in the heat map, at least.
const NAME_COLUMNS: usize = 4;

impl HeatCells {
    /// The heat map in so many lines of a pane.
    fn new(width: usize, lines: usize) -> HeatCells {
        let head = usize::from(lines >= 3);
        let gutter = if width >= 30 { 9 } else { 1 };
        let rows = lines.saturating_sub(head + 1).max(usize::from(lines > 0));
        HeatCells { head, rows, gutter, columns: width.saturating_sub(gutter + 1) }
    }

    /// Lines that it takes, with its axis.
    pub fn lines(self) -> usize {
        if self.rows == 0 { 0 } else { self.head + self.rows + 1 }
    }

    /// How many columns and rows its cells may be.
    pub fn size(self) -> HeatSize {
        HeatSize { times: self.columns, names: (self.columns / NAME_COLUMNS).max(2), rows: self.rows }
    }
}

/// From this height of the histogram pane on, the heat map and histograms are shown at once; lower panes show the one
/// where the cursor is.
const BOTH_FROM: usize = 13;

/// Lines of a metric, at least: its title, its slow group, the axis, its fast group.
const LEAST_BLOCK: usize = 4;
/// Lines of a metric, at most.
const MOST_BLOCK: usize = 12;
/// Lines of cells of the heat map: a part of the screen's, so that they stay when the header becomes longer.
const HEAT_PART: usize = 5;
const HEAT_ROWS: std::ops::RangeInclusive<usize> = 4..=16;
/// Columns of the screen for each column of histograms.
const BLOCK_COLUMNS: usize = 60;

/// Lines and columns inside the histogram pane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistogramCells {
    /// The first line.
    pub top: usize,
    /// Lines of one metric: a title, bars of the slow group, the axis, bars of the fast group.
    pub block: usize,
    /// So many metrics of a column, from its top, have one line more.
    pub taller: usize,
    /// Metrics one below the other.
    pub down: usize,
    /// Such columns of metrics side by side.
    pub across: usize,
    /// Metrics shown at once.
    pub shown: usize,
    /// Columns for the greatest counts, left of the bars.
    pub gutter: usize,
    /// Columns of bars.
    pub columns: usize,
    /// Columns of the screen for a column of metrics.
    pub width: usize,
    /// The last line, which says how many there are, if it is shown.
    pub foot: Option<usize>,
}

/// What the histogram pane shows of the heat map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeatInPane {
    /// There is none.
    None,
    /// The cursor is on it.
    Front,
    /// The cursor is on a histogram.
    Behind,
}

impl HistogramCells {
    /// The cells inside a pane of this size, on a screen of so many lines, with this many metrics to show, below those
    /// of the heat map.
    pub fn new(area: Rect, screen: u16, metrics: usize, heat: HeatInPane) -> (HeatCells, HistogramCells) {
        let (width, height) = (usize::from(area.width), usize::from(area.height));
        let both = height >= BOTH_FROM;
        let heat_lines = match heat {
            HeatInPane::None => 0,
            _ if both => {
                let rows = usize::from(screen) / HEAT_PART;
                (rows.clamp(*HEAT_ROWS.start(), *HEAT_ROWS.end()) + 2).min(height / 2)
            }
            HeatInPane::Front => height,
            HeatInPane::Behind => 0,
        };
        if heat_lines >= height && heat_lines > 0 {
            return (HeatCells::new(width, heat_lines), HistogramCells::default());
        }
        let foot = (height >= 6).then(|| height - 1);
        let lines = foot.unwrap_or(height) - heat_lines;
        let across = (width / BLOCK_COLUMNS).clamp(1, metrics.max(1));
        let needed = metrics.div_ceil(across).max(1);
        let least = (lines / needed).clamp(LEAST_BLOCK, MOST_BLOCK);
        let down = (lines / least).clamp(1, needed);
        // Lines that are left make the first ones higher.
        let block = (lines / down).clamp(least.min(LEAST_BLOCK), MOST_BLOCK);
        let taller = if block < MOST_BLOCK { lines.saturating_sub(down * block).min(down) } else { 0 };
        let width_of_one = width / across;
        let gutter = match width_of_one {
            0..20 => 0,
            20..44 => 6,
            _ => 11,
        };
        let cells = HistogramCells {
            top: heat_lines,
            block,
            taller,
            down,
            across,
            shown: down * across,
            gutter,
            columns: width_of_one.saturating_sub(gutter + 1),
            width: width_of_one,
            foot,
        };
        (HeatCells::new(width, heat_lines), cells)
    }
}

impl HistogramCells {
    /// The first line of a metric, by its place from the top of its column, and its lines.
    pub fn lines_of(self, down: usize) -> (usize, usize) {
        let first = self.top + down * self.block + down.min(self.taller);
        (first, self.block + usize::from(down < self.taller))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_end_above_the_last_line_and_below_the_heat_map() {
        for (width, metrics) in [(1, 0), (19, 3), (40, 1), (80, 9), (130, 14), (300, 30)] {
            for height in 6..120 {
                for heat in [HeatInPane::None, HeatInPane::Front, HeatInPane::Behind] {
                    let area = Rect::new(0, 0, width, height);
                    let (map, cells) = HistogramCells::new(area, height + 9, metrics, heat);
                    let place = format!("{width}x{height}, {metrics} metrics, {heat:?}");
                    let height = usize::from(height);
                    if cells.shown == 0 {
                        assert!(heat == HeatInPane::Front && map.lines() == height, "{place}");
                        continue;
                    }
                    assert_eq!((cells.top, cells.foot), (map.lines(), Some(height - 1)), "{place}");
                    let lines: Vec<(usize, usize)> = (0..cells.down).map(|down| cells.lines_of(down)).collect();
                    assert!(lines.windows(2).all(|pair| pair[0].0 + pair[0].1 == pair[1].0), "{place}: {lines:?}");
                    let (first, count) = lines[lines.len() - 1];
                    assert!(first + count < height, "{place}: {lines:?}");
                    assert!(cells.across * cells.width <= usize::from(width), "{place}");
                }
            }
        }
    }

    #[test]
    fn the_heat_map_keeps_its_rows_when_the_header_becomes_longer() {
        for screen in [24_u16, 40, 60] {
            let rows = |header| {
                let area = Rect::new(0, 0, 80, screen - header);
                HistogramCells::new(area, screen, 14, HeatInPane::Front).0.rows
            };
            assert!((5..10).all(|header| rows(header) == rows(5)), "{screen} lines");
        }
    }
}
