//! One histogram: counts as bars of block characters, the greatest count beside them, the axis below.

use crate::model::metric::Unit;
use crate::view::tui::canvas::{Canvas, width};
use crate::view::tui::figure;
use crate::view::tui::layout::Grid;
use crate::view::tui::linked::Bins;
use crate::view::tui::theme::Scope;
use std::ops::Range;

/// What is drawn.
pub struct Histogram<'a> {
    /// Bins of the metric.
    pub bins: &'a Bins,
    /// Its unit.
    pub unit: Unit,
    /// Executions per bin.
    pub counts: &'a [u32],
    /// Bins that the group's own filters let in.
    pub inside: &'a [bool],
    /// How bins share columns.
    pub grid: Grid,
    /// Style of the bars inside.
    pub bar: Scope,
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
            canvas.right(gutter - 1, 0, &figure::count(most), Scope::Dim);
        }
        for (c, (count, inside)) in columns.iter().enumerate() {
            if *count == 0 {
                continue;
            }
            let eighths = ((*count as f64 / most as f64 * (bars * 8) as f64).round() as usize).max(1);
            let scope = if *inside { self.bar } else { Scope::Outside };
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
        canvas.fill(gutter, y, columns, '─', Scope::Rule);
        match self.bins {
            Bins::Names(names) => {
                for (i, (_, name)) in names.iter().enumerate().step_by(self.grid.step) {
                    if self.grid.repeat >= 4 {
                        canvas.text_in(gutter + i * self.grid.repeat, y, self.grid.repeat - 1, name, Scope::Dim);
                    }
                }
            }
            Bins::Range { edges, .. } => {
                let text = |at: usize| edges.get(at).map_or(String::new(), |v| figure::value(self.unit, *v));
                let last = if self.grid.repeat > 1 { self.bins.len().saturating_sub(1) } else { self.bins.len() };
                let (low, high) = (text(0), text(last));
                canvas.text_in(gutter, y, columns, &low, Scope::Dim);
                let room = columns.saturating_sub(width(&low) + 1);
                if width(&high) <= room {
                    canvas.right(gutter + columns, y, &high, Scope::Dim);
                }
                let middle = text(self.bins.len() / 2);
                if room >= width(&high) + width(&middle) + 8 {
                    canvas.text(gutter + columns / 2 - width(&middle) / 2, y, &middle, Scope::Dim);
                }
            }
        }
        let place = |bin: usize| gutter + bin / self.grid.step * self.grid.repeat;
        if let Some(selected) = &self.selected {
            let (from, to) = (place(selected.start), place(selected.end.min(self.grid.count * self.grid.step)));
            canvas.fill(from, y, (to - from).max(1), '━', Scope::Selection);
        }
        if let Some(bin) = self.cursor {
            canvas.text(place(bin), y, "▲", Scope::Selection);
        }
    }
}
