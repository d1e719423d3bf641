//! One histogram: counts as bars of block characters, the greatest count beside them, the axis below.

use super::axis::{self, AxisLabel};
use crate::base::figure;
use crate::tui::canvas::{Canvas, width};
use crate::tui::counts::{GroupCounts, HistogramRow};
use crate::tui::frame::BinGrid;
use crate::tui::theme::StyleScope;
use std::ops::Range;

/// Input of the drawing.
pub struct Histogram<'a> {
    /// The metric and its bins.
    pub row: &'a HistogramRow,
    /// The executions of the group.
    pub counts: &'a GroupCounts,
    /// How bins share columns.
    pub grid: BinGrid,
    /// Style of the bars of the group's members.
    pub bar: StyleScope,
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

    /// Draw it: `gutter` columns for the greatest count, all lines but the last for bars, the last for the axis.
    pub fn draw(&self, canvas: &mut Canvas<'_>, gutter: usize) {
        let bars = canvas.height().saturating_sub(1);
        let sum = |counts: &[u32], bins: Range<usize>| -> u64 {
            counts.get(bins).unwrap_or(&[]).iter().map(|n| u64::from(*n)).sum()
        };
        let column = |c: usize| (sum(&self.counts.passing, self.bins(c)), sum(&self.counts.members, self.bins(c)));
        let columns: Vec<(u64, u64)> = (0..self.grid.count).map(column).collect();
        let most = columns.iter().map(|(n, _)| *n).max().unwrap_or(0);
        if gutter > 0 && bars > 0 {
            canvas.right(gutter - 1, 0, &figure::count(most), StyleScope::Dim);
        }
        // A gap between the bars of things that are counted one by one.
        let gap = usize::from(self.grid.repeat > 2);
        for (c, (passing, members)) in columns.into_iter().enumerate() {
            let eighths = |n: u64| match n {
                0 => 0,
                n => ((n as f64 / most as f64 * (bars * 8) as f64).round() as usize).max(1),
            };
            let (full, all) = (eighths(members), eighths(passing).div_ceil(8));
            for line in 0..bars {
                const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
                let below = bars - 1 - line;
                let (symbol, scope) = match full.saturating_sub(below * 8).min(8) {
                    0 if below < all && passing > members => ('░', StyleScope::Outside),
                    0 => continue,
                    filled => (BLOCKS[filled], self.bar),
                };
                canvas.fill(gutter + c * self.grid.repeat, line, self.grid.repeat - gap, symbol, scope);
            }
        }
        self.axis(canvas, gutter, bars);
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
        // A double line underlines the bins that the group's own filter on this metric includes, unless it includes
        // all. It keeps a blank to the labels, so that it does not read as a part of them.
        if self.counts.inside.contains(&false) {
            for c in 0..self.grid.count * self.grid.repeat {
                let bins = self.bins(c / self.grid.repeat);
                let is_inside = self.counts.inside.get(bins).is_some_and(|bins| bins.contains(&true));
                let touches = |l: &AxisLabel| l.column <= c + 1 && c <= l.column + width(&l.text);
                if is_inside && !labels.iter().any(touches) {
                    canvas.text_in(gutter + c, y, 1, "═", self.bar);
                }
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
