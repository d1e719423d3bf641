//! What is known of the values of a part without reading its leaf.
//!
//! The state history shows up to two values of a row ([`StoredRow::shown`]), and joins neighbours that touch and show
//! the same. In: the rows of a part, where they become a leaf; then the parts of a line in order. Out: for each value
//! some facts ([`PartValue`]), of which follows where an interval begins and ends, but for the rows of two leaves. Rows
//! without length count as absent. A part is *not sure* where rows overlap, in it or from before it: then nothing is
//! said about it, and who asks reads its rows. Cost: one look at each row; 2 bytes a part.

use super::leaf::StoredRow;
use super::parts::{LinePart, LineStore};
use crate::base::time::Timestamp;

/// The most values of a row that the state history shows.
pub const MOST_SHOWN: usize = 2;

/// What is known of one value of the rows of a part; nothing by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartValue(u8);

pub type PartValues = [PartValue; MOST_SHOWN];

impl PartValue {
    /// The other facts hold.
    const SURE: u8 = 1;
    /// The first row touches the one before it in the line, and both show the same known value.
    const JOINS: u8 = 2;
    /// All rows touch and show the same known value.
    const ONE: u8 = 4;
    /// No row shows a known value.
    const UNKNOWN: u8 = 8;
    /// The first row has a length and shows a known value: the start of the part is that of the value.
    const STARTS: u8 = 16;
    /// The facts of a part that has no row with a length.
    const EMPTY: u8 = Self::SURE | Self::UNKNOWN;
    const ALL: u8 = 31;

    /// By its number; `None` for one that is none.
    pub fn of_number(number: u8) -> Option<PartValue> {
        (number <= Self::ALL).then_some(PartValue(number))
    }

    /// Its number in a file.
    pub fn number(self) -> u8 {
        self.0
    }

    fn is(self, fact: u8) -> bool {
        self.0 & fact != 0
    }

    /// True where anything is known.
    pub fn is_sure(self) -> bool {
        self.is(Self::SURE)
    }

    /// The first row continues the value of the one before it in the line.
    pub fn joins(self) -> bool {
        self.is(Self::JOINS)
    }

    /// All rows are one interval.
    pub fn is_one(self) -> bool {
        self.is(Self::ONE)
    }

    /// No row shows a known value.
    pub fn is_unknown(self) -> bool {
        self.is(Self::UNKNOWN)
    }

    /// The first known value begins where the part does.
    pub fn starts(self) -> bool {
        self.is(Self::STARTS)
    }

    pub(super) fn with_joins(self, joins: bool) -> PartValue {
        PartValue(if joins { self.0 | Self::JOINS } else { self.0 & !Self::JOINS })
    }
}

/// A shown value, one larger: 0 where it is unknown.
pub(super) type Shown = [u32; MOST_SHOWN];

pub(super) fn shown<R: StoredRow>(row: &R) -> Shown {
    row.shown().map(|value| value.map_or(0, |value| value.wrapping_add(1)))
}

/// The first and the last row of a part that have a length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PartEnds {
    first: Shown,
    last: Shown,
    /// The last end of any.
    until: Timestamp,
    /// From the start of the part to that of the first.
    ahead: u32,
}

/// The facts of a part whose first row starts at `start`, by themselves: whether it joins is not known yet.
pub(super) fn of_rows<R: StoredRow>(start: Timestamp, rows: &[R]) -> (PartValues, PartEnds) {
    if R::SHOWN == 0 {
        return Default::default();
    }
    let mut rows = rows.iter().filter(|row| !row.span().is_empty());
    let mut values = [PartValue::default(); MOST_SHOWN];
    let own = values.iter_mut().take(R::SHOWN);
    let Some(row) = rows.next() else {
        own.for_each(|value| *value = PartValue(PartValue::EMPTY));
        return (values, PartEnds { until: Timestamp::MIN, ..PartEnds::default() });
    };
    let (span, first) = (row.span(), shown(row));
    let ahead = u32::try_from(span.start.abs_diff(start)).ok();
    // The largest number has none that is one larger.
    let has_number = |row: &R| !row.shown().contains(&Some(u32::MAX));
    let mut is_sure = ahead.is_some() && has_number(row);
    let (mut until, mut last) = (span.end, first);
    let (mut is_one, mut is_unknown) = (first.map(|value| value != 0), first.map(|value| value == 0));
    for row in rows {
        let (span, next) = (row.span(), shown(row));
        is_sure &= until <= span.start && has_number(row);
        for (number, is_one) in is_one.iter_mut().enumerate() {
            *is_one &= until == span.start && last.get(number) == next.get(number);
        }
        is_unknown.iter_mut().zip(next).for_each(|(is_unknown, value)| *is_unknown &= value == 0);
        (until, last) = (until.max(span.end), next);
    }
    let starts = first.map(|value| value != 0 && ahead == Some(0));
    for (value, ((one, unknown), starts)) in own.zip(is_one.into_iter().zip(is_unknown).zip(starts)) {
        let facts = [(one, PartValue::ONE), (unknown, PartValue::UNKNOWN), (starts, PartValue::STARTS)];
        let facts = facts.into_iter().filter(|(holds, _)| *holds).fold(PartValue::SURE, |all, (_, fact)| all | fact);
        *value = PartValue(if is_sure { facts } else { 0 });
    }
    (values, PartEnds { first, last, until, ahead: ahead.unwrap_or(0) })
}

/// The parts of a line so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineSoFar {
    /// What the last row with a length shows.
    last: Option<Shown>,
    /// The last end of any row.
    until: Timestamp,
    /// The last row is the one that ends last, and overlaps none.
    is_sure: bool,
}

impl Default for LineSoFar {
    fn default() -> Self {
        LineSoFar { last: None, until: Timestamp::MIN, is_sure: true }
    }
}

impl LineSoFar {
    /// Complete the facts of the next part. `tid` has the tid of a thread, where it is known.
    pub fn add<R: StoredRow>(&mut self, part: &mut LinePart, ends: &PartEnds, tid: impl Fn(u32) -> Option<i32>) {
        if R::SHOWN == 0 {
            return;
        }
        let is_plain = part.values.iter().take(R::SHOWN).all(|value| value.is_sure());
        let mut is_sure = is_plain && self.is_sure && self.until <= part.start;
        if is_plain && part.values.first() == Some(&PartValue(PartValue::EMPTY)) && ends.until == Timestamp::MIN {
            if !is_sure {
                part.values = Default::default();
            }
            return;
        }
        let touches = part.start.wrapping_add(ends.ahead.into()) == self.until;
        if let Some(last) = self.last.filter(|_| is_sure && touches) {
            for ((value, a), b) in part.values.iter_mut().zip(last).zip(ends.first) {
                let same = if a == 0 || b == 0 { Some(false) } else { R::shows_same(a - 1, b - 1, &tid) };
                is_sure &= same.is_some();
                *value = value.with_joins(same == Some(true));
            }
        }
        if !is_sure {
            part.values = Default::default();
        }
        let is_sure = is_plain && ends.until >= self.until;
        *self = LineSoFar { last: Some(ends.last), until: self.until.max(ends.until), is_sure };
    }
}

impl<R: StoredRow> LineStore<R> {
    /// The facts of all parts, made anew of the rows; `tid` has the tid of a thread.
    pub(super) fn values(&self, tid: impl Fn(u32) -> Option<i32>) -> Vec<PartValues> {
        let mut ends = vec![Default::default(); self.parts.len()];
        let mut by_leaf: Vec<usize> = (0..self.parts.len()).collect();
        by_leaf.sort_unstable_by_key(|at| self.parts.get(*at).map(|part| (part.leaf, part.first)));
        for at in by_leaf {
            let Some((part, ends)) = self.parts.get(at).zip(ends.get_mut(at)) else { continue };
            let rows: Vec<R> = self.rows_of(part).collect();
            *ends = of_rows(part.start, &rows);
        }
        let (mut values, mut lines) = (Vec::with_capacity(ends.len()), self.lines.iter().peekable());
        let mut so_far = LineSoFar::default();
        for (at, (part, (own, ends))) in self.parts.iter().zip(&ends).enumerate() {
            while lines.next_if(|from| **from as usize <= at).is_some() {
                so_far = LineSoFar::default();
            }
            let mut part = LinePart { values: *own, ..*part };
            so_far.add::<R>(&mut part, ends, &tid);
            values.push(part.values);
        }
        values
    }
}
