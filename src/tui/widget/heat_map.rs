//! The heat map: a mark for each cell, durations at the left, times or names below, the cursor and the box.
//!
//! The longest durations are at the top. The line of the cursor is marked, its column by a triangle below; the columns
//! of the box have a double line below, its rows one at their left, so that both are seen without colours.

use crate::base::figure;
use crate::compare::heat_map::{HeatBox, HeatMap};
use crate::model::metric::Unit;
use crate::tui::canvas::{Canvas, clip, width};
use crate::tui::frame::HeatCells;
use crate::tui::theme::StyleScope;
use crate::view::heat_map::{HeatMark, column_labels, repeat};

/// Input of the drawing.
pub struct HeatDrawing<'a> {
    pub map: &'a HeatMap,
    pub cells: HeatCells,
    /// Column and row under the cursor.
    pub cursor: Option<(usize, usize)>,
    /// The selected box.
    pub boxed: Option<HeatBox>,
}

/// The column and the row of a line and a column of the pane; those at the border of the map where it is outside.
pub fn nearest(map: &HeatMap, cells: HeatCells, line: usize, column: usize) -> (usize, usize) {
    let across = column.saturating_sub(cells.gutter) / repeat(map, cells.columns);
    let from_top = line.saturating_sub(cells.head).min(map.rows().saturating_sub(1));
    (across.min(map.columns.len().saturating_sub(1)), map.rows().saturating_sub(1 + from_top))
}

impl HeatDrawing<'_> {
    /// Draw the cells and the axis below them, from the line below the head on.
    pub fn draw(&self, canvas: &mut Canvas<'_>) {
        let (map, cells) = (self.map, self.cells);
        let (most, repeat) = (map.most(), repeat(map, cells.columns));
        // A gap between names.
        let gap = usize::from(repeat > 2 && map.across.unit() == Unit::Name);
        let labelled = if cells.rows > 6 { 2 } else { 1 };
        for from_top in 0..map.rows() {
            let (row, y) = (map.rows() - 1 - from_top, cells.head + from_top);
            if from_top % labelled == 0 && cells.gutter > 2 {
                let border = figure::time(map.row_borders.get(row).map_or(0.0, |ns| *ns as f64));
                canvas.right(cells.gutter - 1, y, &border, StyleScope::Dim);
            }
            for column in 0..map.columns.len() {
                let mark = HeatMark::new(map.cell(column, row), most);
                let scope = match mark {
                    HeatMark::Empty => continue,
                    HeatMark::Neither => StyleScope::Dim,
                    HeatMark::Fast(_) => StyleScope::FastBar,
                    HeatMark::Slow(_) | HeatMark::Both => StyleScope::SlowBar,
                };
                canvas.fill(cells.gutter + column * repeat, y, repeat - gap, mark.symbol(), scope);
            }
            if self.cursor.is_some_and(|(_, here)| here == row) {
                canvas.mark_line(y);
            }
            if let Some(boxed) = self.boxed.as_ref().filter(|boxed| boxed.rows.contains(&row)) {
                let (from, columns) = (cells.gutter + boxed.columns.start * repeat, boxed.columns.len() * repeat);
                canvas.shade(from, y, columns, StyleScope::Selection);
                canvas.text_in(cells.gutter - 1, y, 1, "┃", StyleScope::Selection);
            }
            if let Some((column, _)) = self.cursor.filter(|(_, here)| *here == row) {
                canvas.shade(cells.gutter + column * repeat, y, repeat - gap, StyleScope::Match);
            }
        }
        self.axis(canvas, repeat);
    }

    fn axis(&self, canvas: &mut Canvas<'_>, repeat: usize) {
        let (map, cells) = (self.map, self.cells);
        let y = cells.head + map.rows();
        let end = cells.gutter + map.columns.len() * repeat;
        let place = |column: usize| cells.gutter + column * repeat;
        let is_name = map.across.unit() == Unit::Name;
        // The triangle has the gap after a name, where there is one.
        let cursor = self.cursor.map(|(column, _)| place(column) + if is_name { repeat - 1 } else { 0 });
        let boxed = self.boxed.as_ref().map(|boxed| place(boxed.columns.start)..place(boxed.columns.end));
        // A label that the box or the cursor would break is left out: the title says where they are.
        let is_free = |from: usize, to: usize| {
            !boxed.as_ref().is_some_and(|marks| marks.start < to && from < marks.end)
                && !cursor.is_some_and(|at| from <= at && at < to)
        };
        let mut free = cells.gutter;
        for (column, label) in column_labels(map, repeat) {
            let at = cells.gutter + column;
            // Names are cut to their column, times are whole or left out.
            let label = if is_name && repeat > 4 { clip(&label, repeat - 1) } else { clip(&label, usize::MAX) };
            let to = at + width(&label);
            if at >= free && to <= end.max(cells.gutter + cells.columns) && is_free(at, to) {
                free = canvas.text(at, y, &label, StyleScope::Dim) + 1;
            }
        }
        if let Some(marks) = &boxed {
            canvas.fill(marks.start, y, marks.len(), '━', StyleScope::Selection);
        }
        if let Some(at) = cursor {
            canvas.text(at, y, "▲", StyleScope::Selection);
        }
    }
}
