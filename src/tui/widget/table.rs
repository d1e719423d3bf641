//! A table: columns placed side by side in a width, and their cells.
//!
//! In: [`TableColumn`]s, each with its head, its alignment and its widths. Out: a [`TableLayout`] that knows where each
//! column is. A column has a width from a certain width of the table on, and is left out of narrower tables: so the
//! least important columns go first. At most one column takes the rest.

use crate::tui::canvas::Canvas;
use crate::tui::theme::StyleScope;

/// Where the text of a column is in its cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Align {
    Left,
    Right,
}

/// A width of a column, in tables of at least some width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WidthFrom {
    table: usize,
    column: usize,
}

/// A column before it is placed. Without a width it takes the rest of the table.
#[derive(Clone, Debug)]
pub struct TableColumn {
    head: &'static str,
    align: Align,
    gap: usize,
    /// By ascending width of the table.
    widths: Vec<WidthFrom>,
}

impl TableColumn {
    /// A column of texts.
    pub fn left(head: &'static str) -> TableColumn {
        TableColumn { head, align: Align::Left, gap: 0, widths: Vec::new() }
    }

    /// A column of figures.
    pub fn right(head: &'static str) -> TableColumn {
        TableColumn { head, align: Align::Right, gap: 0, widths: Vec::new() }
    }

    /// Blank columns before it, unless it is the first.
    pub fn gap(self, gap: usize) -> TableColumn {
        TableColumn { gap, ..self }
    }

    /// The same width in every table; 0 leaves the column out.
    pub fn fixed(self, width: usize) -> TableColumn {
        self.from(0, width)
    }

    /// Its width in tables of `table` columns or more, up to the next such width; narrower tables leave the column out.
    pub fn from(mut self, table: usize, width: usize) -> TableColumn {
        self.widths.push(WidthFrom { table, column: width });
        self
    }

    /// Its width in a table of this width; `None` for the rest.
    fn width_in(&self, table: usize) -> Option<usize> {
        let fits = |step: &&WidthFrom| step.table <= table;
        (!self.widths.is_empty()).then(|| self.widths.iter().rev().find(fits).map_or(0, |step| step.column))
    }
}

/// A column where it is drawn; its width is 0 where it is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedColumn {
    /// Its first column on the canvas.
    pub x: usize,
    /// Its columns on the canvas.
    pub width: usize,
    head: &'static str,
    align: Align,
}

/// The placed columns.
#[derive(Clone, Debug)]
pub struct TableLayout {
    columns: Vec<PlacedColumn>,
    /// Blank columns of the canvas after the last column.
    margin: usize,
}

impl TableLayout {
    /// Place the columns on a canvas of this width, from `x` on, with `margin` blank columns after the last.
    pub fn new(canvas: usize, x: usize, margin: usize, columns: &[TableColumn]) -> TableLayout {
        let widths: Vec<Option<usize>> = columns.iter().map(|c| c.width_in(canvas)).collect();
        let is_shown = |width: &Option<usize>| *width != Some(0);
        let first = widths.iter().position(is_shown).unwrap_or(0);
        let gap = |at: usize| if at > first && is_shown(&widths[at]) { columns[at].gap } else { 0 };
        let used: usize = (0..columns.len()).map(|at| gap(at) + widths[at].unwrap_or(0)).sum();
        let rest = canvas.saturating_sub(x + used + margin);
        let mut x = x;
        let mut placed = Vec::with_capacity(columns.len());
        for (at, column) in columns.iter().enumerate() {
            x += gap(at);
            let width = widths[at].unwrap_or(rest);
            placed.push(PlacedColumn { x, width, head: column.head, align: column.align });
            x += width;
        }
        TableLayout { columns: placed, margin }
    }

    /// A column by its position.
    pub fn column(&self, at: usize) -> PlacedColumn {
        self.columns[at]
    }

    /// The heads of all columns.
    pub fn head(&self, canvas: &mut Canvas<'_>, y: usize) {
        for column in self.columns.iter().filter(|c| !c.head.is_empty()) {
            column.draw(canvas, y, column.head, StyleScope::Dim);
        }
    }

    /// The heads of all columns, over a rule up to the figures.
    pub fn ruled_head(&self, canvas: &mut Canvas<'_>, y: usize) {
        let figures = self.columns.iter().find(|c| c.align == Align::Right).map_or(0, |c| c.x);
        canvas.fill(0, y, figures + self.margin, '┄', StyleScope::Rule);
        for column in self.columns.iter().filter(|c| c.width > 0 && !c.head.is_empty()) {
            match column.align {
                Align::Left => drop(canvas.text(column.x - 1, y, &format!(" {} ", column.head), StyleScope::Dim)),
                Align::Right => column.draw(canvas, y, column.head, StyleScope::Dim),
            }
        }
    }

    /// A cell of the column at this position; nothing where the column is left out.
    pub fn cell(&self, canvas: &mut Canvas<'_>, y: usize, at: usize, text: &str, scope: StyleScope) {
        self.columns[at].draw(canvas, y, text, scope);
    }

    /// Cells of adjacent columns, from the one at this position on.
    pub fn cells(&self, canvas: &mut Canvas<'_>, y: usize, from: usize, cells: &[(String, StyleScope)]) {
        for (column, (text, scope)) in self.columns[from..].iter().zip(cells) {
            column.draw(canvas, y, text, *scope);
        }
    }
}

impl PlacedColumn {
    /// Texts are cut at the end of the column; figures are never cut.
    fn draw(&self, canvas: &mut Canvas<'_>, y: usize, text: &str, scope: StyleScope) {
        match self.align {
            _ if self.width == 0 => {}
            Align::Left => drop(canvas.text_in(self.x, y, self.width, text, scope)),
            Align::Right => canvas.right((self.x + self.width).min(canvas.width()), y, text, scope),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(canvas: usize) -> Vec<(usize, usize)> {
        let columns = [
            TableColumn::left("name"),
            TableColumn::right("extra").gap(1).fixed(9),
            TableColumn::right("slow").gap(1).from(40, 8).from(80, 9),
            TableColumn::right("fast").gap(1).from(60, 8),
        ];
        TableLayout::new(canvas, 1, 1, &columns).columns.iter().map(|c| (c.x, c.width)).collect()
    }

    #[test]
    fn new_leaves_out_columns_of_wider_tables_and_gives_the_rest_to_one() {
        assert_eq!(places(30), [(1, 18), (20, 9), (29, 0), (29, 0)]);
        assert_eq!(places(40), [(1, 19), (21, 9), (31, 8), (39, 0)]);
        assert_eq!(places(60), [(1, 30), (32, 9), (42, 8), (51, 8)]);
        assert_eq!(places(80), [(1, 49), (51, 9), (61, 9), (71, 8)]);
        assert_eq!(places(3)[0], (1, 0));
    }

    #[test]
    fn new_has_no_gap_before_the_first_column_shown() {
        let columns = [TableColumn::left("a").from(20, 5), TableColumn::left("b").gap(2).fixed(3)];
        assert_eq!(TableLayout::new(10, 2, 0, &columns).column(1).x, 2);
        assert_eq!(TableLayout::new(20, 2, 0, &columns).column(1).x, 9);
    }
}
