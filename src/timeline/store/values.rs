//! What is known of the values of a part without reading its leaf.
//!
//! The state history shows up to two values of a row ([`StoredRow::shown`]), and joins neighbours that touch and show
//! the same. In: the rows of a part, where they become a leaf; then the parts of a line in order. Out: for each value
//! some facts ([`PartValue`]), of which follows where an interval begins and ends, but for the rows of two leaves. Rows
//! without length count as absent. A part is *not sure* where rows overlap, in it or from before it: then nothing is
//! said about it, and who asks reads its rows. Cost: one look at each row; 2 bytes a part.

use super::directory::{LinePart, in_order, moment};
use super::leaf::{MOST_SHOWN, StoredRow};
use super::part_value::{PartValue, PartValues};
use super::parts::LineStore;
use crate::base::time::Timestamp;

/// A shown value, one larger: 0 where it is unknown.
pub(super) type Shown = [u32; MOST_SHOWN];

pub(super) fn shown<R: StoredRow>(row: &R) -> Shown {
    let number = |value: Option<u32>| value.map_or(0, |value| value.wrapping_add(1));
    let [a, b] = row.shown();
    [number(a), number(b)]
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

impl PartEnds {
    /// Numbers that it is kept as.
    pub const NUMBERS: usize = 2 * MOST_SHOWN + 2;

    /// As numbers.
    pub fn to_numbers(self) -> [u64; Self::NUMBERS] {
        let ([a, b], [c, d]) = (self.first, self.last);
        [a.into(), b.into(), c.into(), d.into(), in_order(self.until), self.ahead.into()]
    }

    /// Of numbers.
    pub fn of_numbers([a, b, c, d, until, ahead]: [u64; Self::NUMBERS]) -> PartEnds {
        let (first, last) = ([a as u32, b as u32], [c as u32, d as u32]);
        PartEnds { first, last, until: moment(until), ahead: ahead as u32 }
    }
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
    // Of the first row alone.
    let mut facts = [PartValue::SURE; MOST_SHOWN];
    for (facts, value) in facts.iter_mut().zip(&first) {
        *facts |= if *value == 0 { PartValue::UNKNOWN } else { PartValue::ONE };
        *facts |= if *value != 0 && ahead == Some(0) { PartValue::STARTS } else { 0 };
    }
    for row in rows {
        let (span, next) = (row.span(), shown(row));
        is_sure &= until <= span.start && has_number(row);
        let touches = until == span.start;
        for (facts, (last, next)) in facts.iter_mut().zip(last.iter().zip(&next)) {
            *facts &= if touches && last == next { PartValue::ALL } else { !PartValue::ONE };
            *facts &= if *next == 0 { PartValue::ALL } else { !PartValue::UNKNOWN };
        }
        (until, last) = (until.max(span.end), next);
    }
    own.zip(&facts).for_each(|(value, facts)| *value = PartValue(if is_sure { *facts } else { 0 }));
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
            for ((value, a), b) in part.values.iter_mut().zip(&last).zip(&ends.first) {
                let same = if *a == 0 || *b == 0 { Some(false) } else { R::shows_same(a - 1, b - 1, &tid) };
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
        let directory = &self.directory;
        let (mut own, by_leaf) = (vec![Default::default(); directory.len()], directory.by_leaf(self.leaves.len()));
        for part in (0..self.leaves.len()).flat_map(|leaf| by_leaf.group(leaf)).map(|part| *part as usize) {
            let rows: Vec<R> = self.rows_of(part).collect();
            if let Some(own) = own.get_mut(part) {
                *own = of_rows(directory.start(part), &rows);
            }
        }
        let mut values = Vec::with_capacity(own.len());
        for line in 0..directory.lines() {
            let mut so_far = LineSoFar::default();
            for at in directory.line(line) {
                let Some((mut part, (facts, ends))) = directory.part(at).zip(own.get(at)) else { continue };
                part.values = *facts;
                so_far.add::<R>(&mut part, ends, &tid);
                values.push(part.values);
            }
        }
        values
    }
}
