//! One histogram: counts as bars of block characters, the greatest count beside them, the axis below.

use crate::base::figure;
use crate::model::metric::Unit;
use crate::view::tui::canvas::{Canvas, width};
use crate::view::tui::counts::HistogramRow;
use crate::view::tui::frame::BinGrid;
use crate::view::tui::theme::StyleScope;
use std::ops::Range;

/// Input of the drawing.
pub struct Histogram<'a> {
    /// The metric and its bins.
    pub row: &'a HistogramRow,
    /// Executions per bin.
    pub counts: &'a [u32],
    /// Bins that the group's own filters let in.
    pub inside: &'a [bool],
    /// How bins share columns.
    pub grid: BinGrid,
    /// Style of the bars inside.
    pub bar: StyleScope,
    /// The bin under the cursor.
    pub cursor: Option<usize>,
    /// The selected bins.
    pub selected: Option<Range<usize>>,
}

impl Histogram<'_> {
    /// Draw it: `gutter` columns for the greatest count, all lines but the last for bars, the last for the axis.
    pub fn draw(&self, canvas: &mut Canvas<'_>, gutter: usize) {
        let bars = canvas.height().saturating_sub(1);
        let column = |c: usize| {
            let range = c * self.grid.step..((c + 1) * self.grid.step).min(self.counts.len());
            let count: u64 = self.counts[range.clone()].iter().map(|n| u64::from(*n)).sum();
            (count, self.inside[range].iter().any(|i| *i))
        };
        let columns: Vec<(u64, bool)> = (0..self.grid.count).map(column).collect();
        let most = columns.iter().map(|(n, _)| *n).max().unwrap_or(0);
        if gutter > 0 && bars > 0 {
            canvas.right(gutter - 1, 0, &figure::count(most), StyleScope::Dim);
        }
        for (c, (count, inside)) in columns.iter().enumerate() {
            if *count == 0 {
                continue;
            }
            let eighths = ((*count as f64 / most as f64 * (bars * 8) as f64).round() as usize).max(1);
            let scope = if *inside { self.bar } else { StyleScope::Outside };
            for line in 0..bars {
                const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
                let filled = eighths.saturating_sub((bars - 1 - line) * 8).min(8);
                if filled > 0 {
                    // A gap between the bars of things that are counted one by one.
                    let gap = usize::from(self.grid.repeat > 2);
                    canvas.fill(gutter + c * self.grid.repeat, line, self.grid.repeat - gap, BLOCKS[filled], scope);
                }
            }
        }
        self.axis(canvas, gutter, bars);
    }

    fn axis(&self, canvas: &mut Canvas<'_>, gutter: usize, y: usize) {
        let columns = self.grid.count * self.grid.repeat;
        let place = |bin: usize| gutter + bin / self.grid.step * self.grid.repeat;
        let selected = self.selected.as_ref().map(|s| {
            let (from, to) = (place(s.start), place(s.end.min(self.grid.count * self.grid.step)));
            from..to.max(from + 1)
        });
        let cursor = self.cursor.map(place);
        // A label that the marks would break is left out: the title of the metric says where they are.
        let free = |from: usize, columns: usize| {
            let overlaps = |marks: &Range<usize>| marks.start < from + columns && from < marks.end;
            !selected.as_ref().is_some_and(overlaps) && !cursor.is_some_and(|c| overlaps(&(c..c + 1)))
        };
        // A double line underlines the bins that the group's own filter on this metric includes, unless it includes
        // all.
        if self.inside.contains(&false) {
            for c in 0..self.grid.count {
                let range = c * self.grid.step..((c + 1) * self.grid.step).min(self.inside.len());
                if self.inside[range].contains(&true) {
                    canvas.fill(gutter + c * self.grid.repeat, y, self.grid.repeat, '═', self.bar);
                }
            }
        }
        let bins = &self.row.bins;
        if self.row.metric.unit() == Unit::Name {
            for (i, name) in self.row.names.iter().enumerate().step_by(self.grid.step) {
                let at = gutter + i * self.grid.repeat;
                if self.grid.repeat >= 4 && free(at, width(name).min(self.grid.repeat - 1)) {
                    canvas.text_in(at, y, self.grid.repeat - 1, name, StyleScope::Dim);
                }
            }
        } else {
            let text = |at: usize| bins.edges.get(at).map_or(String::new(), |v| self.row.metric.unit().rounded(*v));
            // A wide bin is one value and not a range: its label is that value.
            let last = if self.grid.repeat > 1 { bins.len().saturating_sub(1) } else { bins.len() };
            let (low, high) = (text(0), text(last));
            if free(gutter, width(&low)) {
                canvas.text_in(gutter, y, columns, &low, StyleScope::Dim);
            }
            let room = columns.saturating_sub(width(&low) + 1);
            if width(&high) <= room && free(gutter + columns - width(&high), width(&high)) {
                canvas.right(gutter + columns, y, &high, StyleScope::Dim);
            }
            let middle = text(bins.len() / 2);
            let at = gutter + columns / 2 - (width(&middle) / 2).min(columns / 2);
            if room >= width(&high) + width(&middle) + 8 && free(at, width(&middle)) {
                canvas.text(at, y, &middle, StyleScope::Dim);
            }
        }
        if let Some(marks) = &selected {
            canvas.fill(marks.start, y, marks.len(), '━', StyleScope::Selection);
        }
        if let Some(at) = cursor {
            canvas.text(at, y, "▲", StyleScope::Selection);
        }
    }
}
