//! One histogram, mirrored: bars of the slow group above the axis, bars of the fast group below it.
//!
//! Both have the same bins; each has its own scale of counts, as the groups differ in size by orders of magnitude, and
//! its greatest count beside it. Bars that hang have half and whole lines, as there are no characters for eighths.
//! Where the group's own filter keeps executions out, the line at the axis is shaded: to scale they would flatten the
//! bars.

use super::axis::{self, AxisLabel};
use crate::base::figure;
use crate::tui::canvas::{Canvas, width};
use crate::tui::counts::{GroupCounts, HistogramRow};
use crate::tui::frame::BinGrid;
use crate::tui::groups::GroupSide;
use crate::tui::theme::StyleScope;
use std::ops::Range;

const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// From this many columns for the greatest counts, they have the names of their groups.
const NAMED_GUTTER: usize = 11;

/// Input of the drawing.
pub struct Histogram<'a> {
    /// The metric and its bins.
    pub row: &'a HistogramRow,
    /// How bins share columns.
    pub grid: BinGrid,
    /// The fast group has members.
    pub has_fast: bool,
    /// The bin under the cursor.
    pub cursor: Option<usize>,
    /// The selected bins.
    pub selected: Option<Range<usize>>,
}

impl Histogram<'_> {
    /// The bins of a column of the screen.
    fn bins(&self, column: usize) -> Range<usize> {
        let step = self.grid.step;
        column * step..((column + 1) * step).min(self.row.bins.len())
    }

    /// Draw it: `gutter` columns for the greatest counts; the axis has the middle line, or the last one where there is
    /// no fast group.
    pub fn draw(&self, canvas: &mut Canvas<'_>, gutter: usize) {
        let bars = canvas.height().saturating_sub(1);
        let below = if self.has_fast { bars / 2 } else { 0 };
        let above = bars - below;
        self.bars(canvas, gutter, GroupSide::Slow, 0..above);
        self.bars(canvas, gutter, GroupSide::Fast, above + 1..above + 1 + below);
        self.axis(canvas, gutter, above);
    }

    /// The bars of a group in some lines.
    fn bars(&self, canvas: &mut Canvas<'_>, gutter: usize, side: GroupSide, lines: Range<usize>) {
        let (counts, bar) = match side {
            GroupSide::Slow => (&self.row.slow, StyleScope::SlowBar),
            GroupSide::Fast => (&self.row.fast, StyleScope::FastBar),
        };
        if lines.is_empty() {
            return;
        }
        let columns = self.columns(counts);
        let most = columns.iter().map(|(_, members)| *members).max().unwrap_or(0);
        if gutter > 0 {
            let text = figure::count(most);
            let text = if gutter >= NAMED_GUTTER { format!("{} {text:>5}", side.name()) } else { text };
            let y = if side == GroupSide::Slow { lines.start } else { lines.end - 1 };
            canvas.right(gutter - 1, y, &text, StyleScope::Dim);
        }
        // A gap between the bars of things that are counted one by one.
        let gap = usize::from(self.grid.repeat > 2);
        for (c, (passing, members)) in columns.into_iter().enumerate() {
            let full = match members {
                0 => 0,
                n => ((n as f64 / most as f64 * (lines.len() * 8) as f64).round() as usize).max(1),
            };
            for from_axis in 0..lines.len() {
                let filled = full.saturating_sub(from_axis * 8).min(8);
                let (symbol, scope) = match filled {
                    0 if from_axis == 0 && passing > 0 => ('░', StyleScope::Outside),
                    0 => continue,
                    filled if side == GroupSide::Slow => (BLOCKS[filled], bar),
                    1..=2 => ('▔', bar),
                    3..=6 => ('▀', bar),
                    _ => ('█', bar),
                };
                let y = match side {
                    GroupSide::Slow => lines.end - 1 - from_axis,
                    GroupSide::Fast => lines.start + from_axis,
                };
                canvas.fill(gutter + c * self.grid.repeat, y, self.grid.repeat - gap, symbol, scope);
            }
        }
    }

    /// Executions by column of the screen: those that pass the group's other filters, and its members.
    fn columns(&self, counts: &GroupCounts) -> Vec<(u64, u64)> {
        let sum = |counts: &[u32], bins: Range<usize>| -> u64 {
            counts.get(bins).unwrap_or(&[]).iter().map(|n| u64::from(*n)).sum()
        };
        let column = |c: usize| (sum(&counts.passing, self.bins(c)), sum(&counts.members, self.bins(c)));
        (0..self.grid.count).map(column).collect()
    }

    /// The axis: labels first, then the marks between them, then selection and cursor.
    fn axis(&self, canvas: &mut Canvas<'_>, gutter: usize, y: usize) {
        let place = |bin: usize| gutter + bin / self.grid.step * self.grid.repeat;
        let selected = self.selected.as_ref().map(|s| {
            let (from, to) = (place(s.start), place(s.end.min(self.grid.count * self.grid.step)));
            from..to.max(from + 1)
        });
        let cursor = self.cursor.map(place);
        // A label that the selection or the cursor would break is left out: the title says where they are.
        let overlaps = |label: &AxisLabel, marks: &Range<usize>| {
            marks.start < gutter + label.column + width(&label.text) && gutter + label.column < marks.end
        };
        let is_free = |label: &AxisLabel| {
            !selected.as_ref().is_some_and(|marks| overlaps(label, marks))
                && !cursor.is_some_and(|c| overlaps(label, &(c..c + 1)))
        };
        let labels: Vec<AxisLabel> = axis::labels(self.row, self.grid).into_iter().filter(is_free).collect();
        // A double line marks the bins that the slow group's own filter includes, a single one those of the fast group,
        // unless both include all. It keeps a blank to the labels, so that it does not read as a part of them.
        let includes = |counts: &GroupCounts, c: usize| {
            let bins = self.bins(c / self.grid.repeat);
            counts.inside.contains(&false) && counts.inside.get(bins).is_some_and(|bins| bins.contains(&true))
        };
        for c in 0..self.grid.count * self.grid.repeat {
            let touches = |l: &AxisLabel| l.column <= c + 1 && c <= l.column + width(&l.text);
            let (symbol, scope) = match (includes(&self.row.slow, c), includes(&self.row.fast, c)) {
                (true, _) => ("═", StyleScope::SlowBar),
                (false, true) => ("─", StyleScope::FastBar),
                (false, false) => continue,
            };
            if !labels.iter().any(touches) {
                canvas.text_in(gutter + c, y, 1, symbol, scope);
            }
        }
        for label in &labels {
            canvas.text(gutter + label.column, y, &label.text, StyleScope::Dim);
        }
        if let Some(marks) = &selected {
            canvas.fill(marks.start, y, marks.len(), '━', StyleScope::Selection);
        }
        if let Some(at) = cursor {
            canvas.text(at, y, "▲", StyleScope::Selection);
        }
    }
}
