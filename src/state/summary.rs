//! Time per state of an attribute during a window: exact, at a cost that does not grow with the window.
//!
//! In: a sealed tree whose values are state codes. Out: the time per state of any attribute in any window. For each
//! attribute the time line is cut into cells, four of one level under one of the next; a cell holds the time per state
//! in it, in whole nanoseconds. The sum of a window consists of the cells inside it, of the level whose cells are at
//! most half as wide, and of the intervals of the tree for its two ends and for the cells that are not stored. So
//! drawing costs pixels times attributes, whatever the number of intervals (ALGORITHMS.md 8.9; future work in \[002\]).
//!
//! A cell is stored where it contains at least `WORTH` intervals; for the others the tree is as fast. (The handbook
//! stored cells of two intervals; but every border between two intervals makes such a cell on every level: more cells
//! than intervals.) Cost: one pass over the intervals per level, in parallel by attribute; at most a few bytes per
//! interval.

use super::attributes::AttributeId;
use super::history::interval::{Interval, StateValue};
use super::history::search::{When, Which};
use super::history::tree::Tree;
use crate::base::ctx::{Cancel, Cancelled, Ctx};
use crate::base::parallel::in_order;
use crate::base::time::{Span, Timestamp};
use std::collections::BTreeMap;

/// Intervals that make a cell worth storing.
const WORTH: u32 = 16;

/// Attributes that a worker takes at a time.
const STRETCH: usize = 256;

/// Time in ns by state code.
pub type Times = BTreeMap<u16, u64>;

/// The state with most time; of two equal ones the lower code.
pub fn most(times: &Times) -> Option<u16> {
    times.iter().max_by_key(|(code, time)| (**time, std::cmp::Reverse(**code))).map(|(code, _)| *code)
}

/// A stored cell: its number on its level, its times in `CellLevel::times` up to `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    number: u32,
    end: u32,
}

/// Time of one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StateTime {
    code: u16,
    /// In nanoseconds.
    time: u64,
}

/// A cell while its intervals are added.
#[derive(Default)]
struct OpenCell {
    number: u32,
    /// Number of its intervals.
    intervals: u32,
    times: Times,
}

/// The cells of one width, by attribute and number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct CellLevel {
    /// Cells are two to this power wide.
    width: u32,
    /// By attribute: where its cells end.
    ends: Vec<u32>,
    cells: Vec<Cell>,
    times: Vec<StateTime>,
}

/// Times per state at several scales.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Start of the first cell of each level.
    origin: Timestamp,
    /// The finest first.
    levels: Vec<CellLevel>,
}

impl CellLevel {
    fn attribute_ends(&mut self) {
        self.ends.push(self.cells.len() as u32);
    }

    /// Join the cells of the attributes that follow.
    fn append(&mut self, next: CellLevel) {
        let (cells, times) = (self.cells.len() as u32, self.times.len() as u32);
        self.ends.extend(next.ends.iter().map(|end| cells + end));
        self.cells.extend(next.cells.iter().map(|cell| Cell { end: times + cell.end, ..*cell }));
        self.times.extend(next.times);
    }

    /// Add the cells of one attribute; `intervals` are its own, by start.
    fn fill(&mut self, intervals: &[(Span, u16)], origin: Timestamp) {
        let width = self.width;
        let number = |t: Timestamp| (t.abs_diff(origin) >> width) as u32;
        let mut open = OpenCell::default();
        for (span, code) in intervals {
            let (first, last) = (number(span.start), number(span.end - 1));
            // Cells between the first and the last contain this interval alone: they are never stored.
            for cell in [first, last].into_iter().take(if first == last { 1 } else { 2 }) {
                if cell != open.number {
                    self.close(&mut open);
                    open.number = cell;
                }
                open.intervals += 1;
                *open.times.entry(*code).or_default() += clip(*span, cell_span(cell, origin, width));
            }
        }
        self.close(&mut open);
    }

    /// Store the open cell if it has enough intervals, and empty it.
    fn close(&mut self, open: &mut OpenCell) {
        if open.intervals >= WORTH {
            self.times.extend(open.times.iter().map(|(code, time)| StateTime { code: *code, time: *time }));
            self.cells.push(Cell { number: open.number, end: self.times.len() as u32 });
        }
        open.intervals = 0;
        open.times.clear();
    }
}

fn cell_span(number: u32, origin: Timestamp, width: u32) -> Span {
    let at = |number: u64| i128::from(origin) + (i128::from(number) << width);
    let clamp = |time: i128| Timestamp::checked(time).unwrap_or(Timestamp::MAX);
    Span::new(clamp(at(number.into())), clamp(at(u64::from(number) + 1)))
}

/// Nanoseconds of `span` inside `window`.
fn clip(span: Span, window: Span) -> u64 {
    let both = span.clip(window);
    if both.is_empty() { 0 } else { both.end.abs_diff(both.start) }
}

fn code(interval: &Interval) -> Option<(Span, u16)> {
    match interval.value {
        StateValue::Code(code) => Some((interval.span, code)),
        StateValue::Int(_) | StateValue::Text(_) => None,
    }
}

impl Summary {
    /// The summary of all state codes of `tree`; other values count as no time.
    pub fn build(tree: &Tree, ctx: &Ctx) -> Result<Summary, Cancelled> {
        let span = tree.span();
        let length = span.end.abs_diff(span.start);
        let finest = (length >> 22).next_power_of_two().trailing_zeros();
        // The widest cells are at most half as wide as the whole.
        let widths = (finest..63).step_by(2).take_while(|width| length >> width >= 2);
        let mut levels: Vec<CellLevel> = widths.map(|width| CellLevel { width, ..CellLevel::default() }).collect();
        let empty = levels.clone();
        let make = |i: usize| {
            let first = i * STRETCH;
            let past = (first + STRETCH).min(tree.attributes());
            let which = Which::range(AttributeId::at(first), AttributeId::at(past - 1));
            let mut lines: Vec<Vec<(Span, u16)>> = vec![Vec::new(); past - first];
            for interval in tree.search(which, When::ALWAYS, &ctx.cancel) {
                let line = interval.attribute.index().checked_sub(first).and_then(|at| lines.get_mut(at));
                line.into_iter().for_each(|line| line.extend(code(&interval)));
            }
            let mut levels = empty.clone();
            for mut own in lines {
                own.sort();
                for level in &mut levels {
                    // One attribute may have all intervals. After a cancel the result is not used.
                    if ctx.cancel.is_cancelled() {
                        return levels;
                    }
                    level.fill(&own, span.start);
                    level.attribute_ends();
                }
            }
            levels
        };
        in_order(ctx, tree.attributes().div_ceil(STRETCH), make, |_, part| {
            levels.iter_mut().zip(part).for_each(|(level, next)| level.append(next));
        })?;
        Ok(Summary { origin: span.start, levels })
    }

    /// Time per state of `attribute` in `window`: the exact sum of its intervals in `tree`, from which the summary was
    /// built.
    pub fn times(&self, tree: &Tree, attribute: AttributeId, window: Span) -> Times {
        let mut times = Times::new();
        let window = window.clip(tree.life(attribute).unwrap_or_default());
        if window.is_empty() {
            return times;
        }
        let mut from = window.start;
        for (cell, stored) in self.cells(attribute, window) {
            add_intervals(&mut times, tree, attribute, Span::new(from, cell.start));
            for StateTime { code, time } in stored {
                *times.entry(*code).or_default() += time;
            }
            from = cell.end;
        }
        add_intervals(&mut times, tree, attribute, Span::new(from, window.end));
        times
    }

    /// Number of stored cells.
    pub fn cells_stored(&self) -> usize {
        self.levels.iter().map(|level| level.cells.len()).sum()
    }

    /// The stored cells inside `window`, on the widest level of which two fit into it.
    fn cells(&self, attribute: AttributeId, window: Span) -> impl Iterator<Item = (Span, &[StateTime])> {
        let length = window.end.abs_diff(window.start);
        let stored = self.levels.iter().rev().find(|level| length >> level.width >= 2).map(|level| {
            let end = |at: Option<usize>| at.and_then(|at| level.ends.get(at)).map_or(0, |end| *end as usize);
            let own = end(attribute.index().checked_sub(1))..end(Some(attribute.index()));
            let since = |t: Timestamp| t.abs_diff(self.origin);
            let first = since(window.start).div_ceil(1 << level.width);
            let past = since(window.end) >> level.width;
            let cells = level.cells.get(own.clone()).unwrap_or(&[]);
            let from = cells.partition_point(|cell| u64::from(cell.number) < first);
            let to = cells.partition_point(|cell| u64::from(cell.number) < past).max(from);
            (own.start + from..own.start + to).filter_map(move |at: usize| {
                let cell = level.cells.get(at)?;
                let begin = at.checked_sub(1).and_then(|before| level.cells.get(before)).map_or(0, |before| before.end);
                let times = level.times.get(begin as usize..cell.end as usize)?;
                Some((cell_span(cell.number, self.origin, level.width), times))
            })
        });
        stored.into_iter().flatten()
    }
}

fn add_intervals(times: &mut Times, tree: &Tree, attribute: AttributeId, span: Span) {
    let found = tree.search(Which::these([attribute]), When::within(span), &Cancel::default());
    for (own, code) in found.filter_map(|interval| code(&interval)) {
        *times.entry(code).or_default() += clip(own, span);
    }
}
