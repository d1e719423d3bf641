//! A heat map: executions by when they began, or by a name, and by how long they took.
//!
//! In: a model, the members of both groups, what the columns are of, and how many columns and rows there may be. Out:
//! the number of executions in each cell: of all, of the slow group, of the fast one. The sums over the cells are the
//! numbers of executions. Durations have rows of equal ratio, with borders of three digits, so that a filter on them
//! reads well; times have columns of equal length. The borders depend on the executions and on the size alone, not on
//! the groups: a box keeps its place while the groups change. Cost: linear in the executions; a name sorts the names.

use super::filter::{Filter, Operand, Test};
use super::members;
use crate::base::column_grid::ColumnGrid;
use crate::base::op::Op;
use crate::model::Model;
use crate::model::execution::ExecutionId;
use crate::model::histogram::ValueRange;
use crate::model::metric::{ABSENT, Metric, Unit};
use std::collections::BTreeMap;
use std::ops::Range;

/// Names that a box leaves out, at most, so that its filters stay readable.
const MOST_EXCLUDED: usize = 8;

/// Decades of durations below the longest one that have rows of their own.
const DECADES: i64 = 1_000_000;

/// How many columns and rows there may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeatSize {
    /// Columns of a time.
    pub times: usize,
    /// Columns of a name.
    pub names: usize,
    pub rows: usize,
}

/// What one column holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeatColumn {
    /// These times.
    Times(ValueRange),
    /// One name.
    Name(String),
    /// So many names that have no column of their own.
    Others(usize),
    /// Executions for which it is not known.
    Absent,
}

/// Executions of a cell, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeatCell {
    /// Of both groups and of neither.
    pub all: u32,
    pub slow: u32,
    pub fast: u32,
}

/// The values at a corner of a box, whatever the size of the map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeatCorner {
    column: HeatColumn,
    durations: ValueRange,
}

/// A part of the map: columns and rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeatBox {
    pub columns: Range<usize>,
    pub rows: Range<usize>,
}

/// The executions in cells.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatMap {
    /// What the columns are of: a time or a name.
    pub across: Metric,
    pub columns: Vec<HeatColumn>,
    /// Ascending; row `r` holds durations `rows[r] <= d < rows[r + 1]`, in nanoseconds.
    pub row_borders: Vec<i64>,
    places: Places,
    /// Row by row, the shortest first.
    cells: Vec<HeatCell>,
}

/// How a value finds its column.
#[derive(Clone, Debug, PartialEq)]
enum Places {
    Times(ColumnGrid),
    /// The column of each name that has one, by value, and that of all other names.
    Names(BTreeMap<i64, usize>, Option<usize>),
}

/// The time of the columns: since the first event of all, or each since that of its own recording.
pub fn time_axis(model: &Model) -> Metric {
    if model.executions.column(&Metric::Elapsed).is_some() { Metric::Elapsed } else { Metric::Start }
}

/// What the columns can be of: the time first, then all that is a name and has several.
pub fn axes(model: &Model) -> Vec<Metric> {
    let names = model.executions.columns.iter().filter(|column| column.metric.unit() == Unit::Name);
    let several = names.filter(|column| {
        let mut present = column.values.iter().filter(|value| *value != ABSENT);
        let first = present.next();
        present.any(|value| Some(value) != first)
    });
    [time_axis(model)].into_iter().chain(several.map(|column| column.metric.clone())).collect()
}

impl HeatMap {
    /// The map of these groups. `None` where there are no executions, no cells, or no values of the metric.
    pub fn new(model: &Model, across: &Metric, [slow, fast]: [&[ExecutionId]; 2], size: HeatSize) -> Option<HeatMap> {
        let durations = || model.executions.duration.iter();
        let (least, most) = (durations().min()?, durations().max()?);
        if size.rows == 0 {
            return None;
        }
        let (values, weights) = (members::values(model, across)?, model.executions.weights());
        let (places, columns) = if across.unit() == Unit::Name {
            names(model, values.iter(), size.names)?
        } else {
            times(values.iter(), size.times)?
        };
        let row_borders = duration_borders(least, most, size.rows);
        let cells = vec![HeatCell::default(); columns.len() * (row_borders.len() - 1)];
        let mut map = HeatMap { across: across.clone(), columns, row_borders, places, cells };
        let weight = |i: usize| u32::try_from(weights.of(i)).unwrap_or(u32::MAX);
        for (i, (value, duration)) in values.iter().zip(durations()).enumerate() {
            if let Some(cell) = map.cell_mut(value, duration) {
                cell.all = cell.all.saturating_add(weight(i));
            }
        }
        for (group, count) in [(slow, HeatCell::slow as fn(&mut HeatCell, u32)), (fast, HeatCell::fast)] {
            for id in group {
                let value = values.get(id.index()).unwrap_or(ABSENT);
                let cell = map.cell_mut(value, model.executions.duration(id.index()));
                cell.into_iter().for_each(|cell| count(cell, weight(id.index())));
            }
        }
        Some(map)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.row_borders.len().saturating_sub(1)
    }

    /// The column and the row of an execution of the model that the map was made of.
    pub fn place(&self, model: &Model, execution: ExecutionId) -> Option<(usize, usize)> {
        let executions = &model.executions;
        let value = match &self.across {
            Metric::Start => executions.start.get(execution.index())?.since(model.origin),
            across => executions.column(across)?.values.get(execution.index())?,
        };
        self.place_of(value, executions.duration.get(execution.index())?)
    }

    /// The column and the row of a value and a duration.
    fn place_of(&self, value: i64, duration: i64) -> Option<(usize, usize)> {
        let column = match &self.places {
            // Only the very last value of the type can be at the end.
            Places::Times(grid) => grid.column(value.min(grid.whole().end.ns() - 1))?,
            Places::Names(names, others) if value != ABSENT => names.get(&value).copied().or(*others)?,
            Places::Names(..) => self.columns.len().checked_sub(1)?,
        };
        Some((column, self.row_of(duration)))
    }

    /// The row of a duration; the first or the last one beyond the borders.
    fn row_of(&self, duration: i64) -> usize {
        let after = self.row_borders.partition_point(|border| *border <= duration);
        after.saturating_sub(1).min(self.rows().saturating_sub(1))
    }

    /// The executions of a box, ascending. Cost: a look-up for each execution.
    pub fn members(&self, model: &Model, of: &HeatBox) -> Vec<ExecutionId> {
        let inside = |id: &ExecutionId| {
            let place = self.place(model, *id);
            place.is_some_and(|(column, row)| of.columns.contains(&column) && of.rows.contains(&row))
        };
        (0..model.executions.len()).map(ExecutionId::at).filter(inside).collect()
    }

    /// The values of a cell.
    pub fn corner(&self, column: usize, row: usize) -> Option<HeatCorner> {
        let (from, to) = (*self.row_borders.get(row)?, *self.row_borders.get(row + 1)?);
        Some(HeatCorner { column: self.columns.get(column)?.clone(), durations: ValueRange { from, to } })
    }

    /// The smallest box with everything between two corners, of this map or of one of another size.
    pub fn box_of(&self, corners: &[HeatCorner; 2]) -> HeatBox {
        let columns = corners.iter().map(|corner| self.columns_of(&corner.column));
        let rows = corners.iter().map(|HeatCorner { durations: ValueRange { from, to }, .. }| {
            self.row_of(*from)..self.row_of(to.saturating_sub(1).max(*from)) + 1
        });
        let joined = |all: Range<usize>, one: Range<usize>| all.start.min(one.start)..all.end.max(one.end);
        HeatBox { columns: columns.reduce(joined).unwrap_or(0..0), rows: rows.reduce(joined).unwrap_or(0..0) }
    }

    /// The columns that have what a column of another map has; a name without a column is among the others.
    fn columns_of(&self, column: &HeatColumn) -> Range<usize> {
        let last = self.columns.len().saturating_sub(1);
        let found = match (column, &self.places) {
            (HeatColumn::Times(ValueRange { from, to }), Places::Times(grid)) => {
                let whole = grid.whole();
                let at = |time: i64| grid.column(time.clamp(whole.start.ns(), whole.end.ns() - 1)).unwrap_or(0);
                return at(*from)..at(to.saturating_sub(1).max(*from)) + 1;
            }
            _ => self.columns.iter().position(|own| own == column),
        };
        let at = found.or_else(|| self.columns.iter().position(|own| matches!(own, HeatColumn::Others(_))));
        let at = at.unwrap_or(last);
        at..(at + 1).min(self.columns.len())
    }

    fn cell_mut(&mut self, value: i64, duration: i64) -> Option<&mut HeatCell> {
        let (column, row) = self.place_of(value, duration)?;
        self.cells.get_mut(row * self.columns.len() + column)
    }

    /// The executions of a cell.
    pub fn cell(&self, column: usize, row: usize) -> HeatCell {
        let at = if column < self.columns.len() { row * self.columns.len() + column } else { usize::MAX };
        self.cells.get(at).copied().unwrap_or_default()
    }

    /// The largest counts that a cell has, each of its own.
    pub fn most(&self) -> HeatCell {
        self.cells.iter().fold(HeatCell::default(), |most, cell| HeatCell {
            all: most.all.max(cell.all),
            slow: most.slow.max(cell.slow),
            fast: most.fast.max(cell.fast),
        })
    }

    /// The executions of a part.
    pub fn sum(&self, part: &HeatBox) -> HeatCell {
        let cells = part.rows.clone().flat_map(|row| part.columns.clone().map(move |column| (column, row)));
        cells.map(|(column, row)| self.cell(column, row)).fold(HeatCell::default(), |sum, cell| HeatCell {
            all: sum.all.saturating_add(cell.all),
            slow: sum.slow.saturating_add(cell.slow),
            fast: sum.fast.saturating_add(cell.fast),
        })
    }

    /// The filters that let just the executions of a part in; none where it is the whole map. `None` where its names
    /// have no filter: executions without one, or too many names.
    pub fn filters(&self, part: &HeatBox) -> Option<Vec<Filter>> {
        let columns = self.columns.get(part.columns.clone()).filter(|columns| !columns.is_empty())?;
        let mut filters = match columns {
            all if all.len() == self.columns.len() => Vec::new(),
            [HeatColumn::Times(first), ..] => {
                let end = columns.iter().rev().find_map(|column| match column {
                    HeatColumn::Times(range) => Some(range.to),
                    _ => None,
                })?;
                let last = self.columns.len();
                between(&self.across, first.from, end, [part.columns.start == 0, part.columns.end == last])
            }
            [HeatColumn::Name(name)] => vec![Filter::named(self.across.clone(), Op::Equal, name)],
            several => self.all_but_others(several)?,
        };
        let (low, high) = (self.row_borders.get(part.rows.start)?, self.row_borders.get(part.rows.end)?);
        let open = [part.rows.start == 0, part.rows.end == self.rows()];
        filters.extend(between(&Metric::Duration, *low, *high, open));
        Some(filters)
    }

    /// Filters of several names: none of the others. `!=` lets no execution in that has no value.
    fn all_but_others(&self, inside: &[HeatColumn]) -> Option<Vec<Filter>> {
        let outside = self.columns.iter().filter(|column| !inside.contains(column));
        let mut filters = Vec::new();
        for column in outside {
            match column {
                HeatColumn::Name(name) => filters.push(Filter::named(self.across.clone(), Op::NotEqual, name)),
                HeatColumn::Absent => {}
                HeatColumn::Others(_) | HeatColumn::Times(_) => return None,
            }
        }
        let is_known = !inside.contains(&HeatColumn::Absent) && !filters.is_empty();
        (is_known && filters.len() <= MOST_EXCLUDED).then_some(filters)
    }
}

impl HeatCell {
    fn slow(&mut self, weight: u32) {
        self.slow = self.slow.saturating_add(weight);
    }

    fn fast(&mut self, weight: u32) {
        self.fast = self.fast.saturating_add(weight);
    }
}

/// The filter on a range of values, open at the borders of all values.
fn between(metric: &Metric, low: i64, high: i64, [first, last]: [bool; 2]) -> Vec<Filter> {
    let test = match (first, last) {
        (true, true) => return Vec::new(),
        (true, false) => Test::Compare(Op::Less, Operand::Number(high)),
        (false, true) => Test::Compare(Op::AtLeast, Operand::Number(low)),
        (false, false) => Test::In(Operand::Number(low), Operand::Number(high)),
    };
    vec![Filter { metric: metric.clone(), test }]
}

/// Columns of equal length over all times, none shorter than a nanosecond.
fn times(values: impl Iterator<Item = i64>, columns: usize) -> Option<(Places, Vec<HeatColumn>)> {
    let widened = |ends: Option<(i64, i64)>, value: i64| match ends {
        Some((least, most)) => Some((value.min(least), value.max(most))),
        None => Some((value, value)),
    };
    let (least, most) = values.filter(|value| *value != ABSENT).fold(None, widened)?;
    let end = most.saturating_add(1);
    let longest = usize::try_from(end.abs_diff(least)).unwrap_or(usize::MAX).max(1);
    let grid = ColumnGrid::new(&(least..end), columns.min(longest));
    let column = |at: usize| HeatColumn::Times(ValueRange { from: grid.start(at), to: grid.start(at + 1) });
    let columns: Vec<HeatColumn> = (0..grid.columns()).map(column).collect();
    (!columns.is_empty()).then_some((Places::Times(grid), columns))
}

/// A column for each name, in the order of the histograms; where there are too many, for the most frequent ones, and
/// one for the others. Executions without a name come last.
fn names(model: &Model, values: impl Iterator<Item = i64>, columns: usize) -> Option<(Places, Vec<HeatColumn>)> {
    let (mut counts, weights) = (BTreeMap::<i64, u64>::new(), model.executions.weights());
    values.enumerate().for_each(|(i, value)| *counts.entry(value).or_default() += weights.of(i));
    let absent = counts.remove(&ABSENT).is_some();
    let room = columns.checked_sub(usize::from(absent)).filter(|room| *room > 0)?;
    let mut kept: Vec<(i64, u64)> = counts.into_iter().collect();
    let all = kept.len();
    if all > room {
        kept.sort_by_key(|(value, count)| (std::cmp::Reverse(*count), *value));
        kept.truncate(room - 1);
        kept.sort_unstable();
    }
    let others = all - kept.len();
    let mut found: Vec<HeatColumn> =
        kept.iter().map(|(value, _)| HeatColumn::Name(model.name_of(*value).to_owned())).collect();
    let by_value = kept.iter().enumerate().map(|(at, (value, _))| (*value, at)).collect();
    let place_of_others = (others > 0).then_some(found.len());
    found.extend((others > 0).then_some(HeatColumn::Others(others)));
    found.extend(absent.then_some(HeatColumn::Absent));
    (!found.is_empty()).then_some((Places::Names(by_value, place_of_others), found))
}

/// Ascending borders of at most so many rows of equal ratio, each but the ends a number of three digits.
fn duration_borders(least: i64, most: i64, rows: usize) -> Vec<i64> {
    let end = most.saturating_add(1);
    let first = least.max(most / DECADES).max(1);
    let ratio = (end as f64 / first as f64).ln() / rows as f64;
    let mut borders = vec![least];
    for row in 1..rows {
        let border = three_digits(first as f64 * (ratio * row as f64).exp());
        if borders.last().is_some_and(|last| *last < border) && border < end {
            borders.push(border);
        }
    }
    borders.push(end);
    borders
}

/// The nearest whole number of three digits and zeros.
fn three_digits(value: f64) -> i64 {
    let mut unit = 1_i64;
    while value / unit as f64 >= 1000.0 {
        unit = unit.saturating_mul(10);
    }
    ((value / unit as f64).round() as i64).saturating_mul(unit)
}

#[cfg(test)]
mod tests;
