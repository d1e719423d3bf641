//! Columns of equal length over a range of times.
//!
//! In: a range in nanoseconds and a number of columns. Out: where a column begins, the column of a time, the part of a
//! range in each column. Borders are rounded down, so that columns tile the range; any two moments of 64 bits may be
//! its ends. Cost: the borders are kept, eight bytes for each column; a time is a multiplication, which says about
//! where its column is, and a look at the borders there.

use super::time::{Ns, Span, Timestamp};
use std::ops::Range;

/// Columns over a range of times.
#[derive(Clone, Debug, Default)]
pub struct ColumnGrid {
    window: Range<Ns>,
    columns: usize,
    /// Where each column begins, and the end of the range.
    borders: Vec<Ns>,
    /// Columns for each nanosecond.
    density: f64,
}

impl PartialEq for ColumnGrid {
    fn eq(&self, other: &ColumnGrid) -> bool {
        self.window == other.window && self.columns == other.columns
    }
}

impl Eq for ColumnGrid {}

impl ColumnGrid {
    /// So many columns over a range, which is at least a nanosecond long.
    pub fn new(window: &Range<Ns>, columns: usize) -> ColumnGrid {
        let window = window.start..window.end.max(window.start.saturating_add(1));
        let length = window.end.abs_diff(window.start);
        let border = |column: usize| {
            let (column, columns) = (column as u128, columns.max(1) as u128);
            window.start.wrapping_add((u128::from(length) * column / columns) as i64)
        };
        let borders = (0..=columns).map(border).collect();
        ColumnGrid { borders, density: columns as f64 / length as f64, window, columns }
    }

    /// So many columns over a span.
    pub fn of(span: Span, columns: usize) -> ColumnGrid {
        ColumnGrid::new(&(span.start.ns()..span.end.ns()), columns)
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The range as a span.
    pub fn whole(&self) -> Span {
        Span::of_ns(self.window.start, self.window.end)
    }

    /// The first moment of a column; the end of the range after the last.
    pub fn start(&self, column: usize) -> Ns {
        self.borders.get(column).copied().unwrap_or(self.window.end)
    }

    /// The span of a column.
    pub fn span(&self, column: usize) -> Span {
        Span::new(Timestamp::new(self.start(column)), Timestamp::new(self.start(column + 1)))
    }

    /// The column of a time, if it is inside.
    pub fn column(&self, at_ns: Ns) -> Option<usize> {
        if !self.window.contains(&at_ns) || self.columns == 0 {
            return None;
        }
        if self.columns == 1 {
            return Some(0);
        }
        // The last column that begins no later: near the product, which is rounded.
        let about = (at_ns.abs_diff(self.window.start) as f64 * self.density) as usize;
        let mut column = about.min(self.columns - 1);
        while self.start(column) > at_ns {
            column -= 1;
        }
        while column + 1 < self.columns && self.start(column + 1) <= at_ns {
            column += 1;
        }
        Some(column)
    }

    /// A range as its part in the first column that it meets, that in the last, and the columns between, which it
    /// covers; at most two columns have none between.
    #[inline]
    pub fn pieces(&self, range: Range<Ns>) -> ([Option<(usize, u64)>; 2], Range<usize>) {
        let (start, end) = (range.start.max(self.window.start), range.end.min(self.window.end));
        let columns = if start < end { self.column(start).zip(self.column(end - 1)) } else { None };
        match columns {
            None => ([None, None], 0..0),
            Some((first, last)) if first == last => ([Some((first, end.abs_diff(start))), None], 0..0),
            Some((first, last)) => {
                let (head, tail) = (self.start(first + 1).abs_diff(start), end.abs_diff(self.start(last)));
                ([Some((first, head)), Some((last, tail))], first + 1..last)
            }
        }
    }

    /// The columns that a range covers, with the nanoseconds of it in each.
    pub fn parts(&self, range: Range<Ns>) -> impl Iterator<Item = (usize, u64)> + '_ {
        let (start, end) = (range.start.max(self.window.start), range.end.min(self.window.end));
        let ends = if start < end { self.column(start).zip(self.column(end - 1)) } else { None };
        let columns = ends.map_or(0..0, |(first, last)| first..last + 1);
        let border = move |column: usize| self.start(column).max(start).min(end);
        columns.map(move |column| (column, border(column + 1).abs_diff(border(column))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_tile_their_window() {
        let windows = [
            (0..7, 3),
            (-5..13, 4),
            (0..3, 10),
            (5..5, 2),
            (0..1_000_000_007, 77),
            (Ns::MIN..Ns::MAX, 5),
            (-9..1 << 62, 640),
        ];
        for (window, columns) in windows {
            let grid = ColumnGrid::new(&window, columns);
            let end = window.end.max(window.start + 1);
            let parts = || grid.parts(window.start.saturating_sub(9)..end.saturating_add(9));
            assert_eq!(parts().map(|(_, ns)| ns).sum::<u64>(), end.abs_diff(window.start), "{window:?} in {columns}");
            for from in 0..columns.min(6) {
                let range = grid.start(from)..grid.start(columns - from.min(columns)).max(grid.start(from));
                let (ends, whole) = grid.pieces(range.clone());
                let between: u64 = whole.map(|column| grid.start(column + 1).abs_diff(grid.start(column))).sum();
                let sum = ends.iter().flatten().map(|(_, ns)| ns).sum::<u64>() + between;
                assert_eq!(sum, grid.parts(range).map(|(_, ns)| ns).sum::<u64>(), "{window:?} from {from}");
            }
            for column in 0..columns {
                let at = grid.start(column);
                let first = grid.start(column + 1) > at;
                assert!(!first || grid.column(at) == Some(column), "{window:?}: {column} at {at}");
            }
            assert_eq!(grid.column(end), None);
            assert!(window.start == Ns::MIN || grid.column(window.start - 1).is_none());
        }
        assert_eq!(ColumnGrid::new(&(0..9), 0).parts(0..9).count(), 0);
    }
}
