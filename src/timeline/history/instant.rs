//! The interval of an attribute about an instant, of two leaves at most.
//!
//! In: the parts of one line, and what is known of their values without their leaves (`store::values`). Out: the
//! interval that holds at a moment; or what is known next on both sides, if none holds. The parts that an interval or
//! a gap covers as a whole are passed by without a look into their leaves. So it needs the leaf where it begins and
//! the one where it ends:
//!
//! | the part of the moment | read | why no more |
//! |---|---|---|
//! | shows no known value | the last known row before it, the first after it | it is not read itself |
//! | is one interval, which the next part continues | where the interval begins, where it ends | the same |
//! | is one interval, which ends with it | it, and where that begins, or what is known next | not both |
//! | has several values, or a gap | it, and where the interval or gap begins *or* ends | the other end is in it |
//!
//! Parts that are not sure, since rows overlap there, give no answer: who asks then joins the rows about the moment.
//! Nothing in a file is trusted: contradictions between rows and what is known of them give no answer either, and each
//! loop goes over the parts in one direction. Cost: O(log P) for P parts in the line, the parts that it covers, and the
//! rows of the interval in the leaves that are read.

use super::StateValue;
use crate::base::time::{Span, Timestamp};
use crate::timeline::part_cursor::PartCursor;
use crate::timeline::row::Row;
use crate::timeline::store::leaf::StoredRow;
use crate::timeline::store::part_value::PartValue;

/// What an attribute is at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AtInstant {
    Holds(Span, StateValue),
    /// Nothing is known: where the last known value before it ends, and where the first after it begins.
    Unknown {
        before: Option<Timestamp>,
        next: Option<Timestamp>,
    },
}

impl AtInstant {
    /// True where it is about `t`: what is known of parts may be forged.
    fn fits(&self, t: Timestamp) -> bool {
        match *self {
            AtInstant::Holds(span, _) => span.contains(t),
            AtInstant::Unknown { before, next } => {
                before.is_none_or(|before| before <= t) && next.is_none_or(|next| t < next)
            }
        }
    }
}

/// A line that is asked for one attribute.
pub(super) struct AttributeParts<'r, R, V> {
    parts: PartCursor<'r, R>,
    /// The number of the value in [`StoredRow::shown`].
    number: usize,
    value: V,
    /// That of the interval, once it was read.
    own: Option<StateValue>,
}

/// Where the equal neighbours of a row begin or end in its part; true where they go to its first or last row.
type End = (Timestamp, bool);

impl<'r, R: StoredRow + Row, V: Fn(&R) -> Option<StateValue>> AttributeParts<'r, R, V> {
    pub(super) fn new(parts: PartCursor<'r, R>, number: usize, value: V) -> Self {
        AttributeParts { parts, number, value, own: None }
    }

    /// What it is at `t`, of rows up to `until`; `None` where what is known of the parts does not suffice.
    pub(super) fn until(&mut self, t: Timestamp, until: Timestamp) -> Option<AtInstant> {
        let asked = t.min(until.checked_sub(1)?);
        Some(match self.at(asked).filter(|found| found.fits(asked))? {
            AtInstant::Holds(span, value) if t < until => {
                AtInstant::Holds(Span::new(span.start, span.end.min(until)), value)
            }
            AtInstant::Holds(..) => AtInstant::Unknown { before: Some(until), next: None },
            AtInstant::Unknown { before, next } => {
                AtInstant::Unknown { before, next: next.filter(|next| t < until && *next < until) }
            }
        })
    }

    fn at(&mut self, t: Timestamp) -> Option<AtInstant> {
        self.own = None;
        let Some(part) = self.parts.begun(t) else {
            return Some(AtInstant::Unknown { before: None, next: self.known_from(0)? });
        };
        let known = self.known(part)?;
        if known.is_unknown() {
            return self.unknown(part, None, None);
        }
        // Its first row starts before `t`, or touches one that does.
        let has_begun = known.starts() || known.joins();
        if known.is_one() && has_begun && self.joined(part)?.is_some() {
            let start = self.begin(part, None)?;
            let end = self.end(part, None)?;
            return Some(AtInstant::Holds(Span::new(start, end), self.own?));
        }
        let begun = self.parts.rows_begun(part, t);
        match self.last_row(part, begun) {
            Some((at, row)) if (self.value)(&row).is_some() && t < row.span().end => self.holds(part, at, &row),
            Some((at, _)) => {
                let before = self.last_known(part, at + 1).map(|row| row.span().end);
                let next = self.first_known(part, at + 1).map(|row| row.span().start);
                self.unknown(part, before, next)
            }
            // The rows that have begun are empty.
            None => match self.first_row(part, begun)? {
                (at, row) if known.joins() => self.holds(part, at, &row),
                (at, _) => {
                    let next = self.first_known(part, at).map(|row| row.span().start);
                    self.unknown(part, None, next)
                }
            },
        }
    }

    /// What is known of a part, if it is sure.
    fn known(&self, part: usize) -> Option<PartValue> {
        self.parts.value(part, self.number).filter(|known| known.is_sure())
    }

    /// The last row before a position in a part that has a length, and its position.
    fn last_row(&mut self, part: usize, before: usize) -> Option<(usize, R)> {
        self.find(part, (0..before).rev(), |row, _| !row.span().is_empty())
    }

    /// The first one from a position on.
    fn first_row(&mut self, part: usize, from: usize) -> Option<(usize, R)> {
        self.find(part, from..self.parts.rows(part), |row, _| !row.span().is_empty())
    }

    /// The last one before a position that shows a known value.
    fn last_known(&mut self, part: usize, before: usize) -> Option<R> {
        let found = self.find(part, (0..before).rev(), |row, value| !row.span().is_empty() && value.is_some());
        found.map(|(_, row)| row)
    }

    /// The first one from a position on.
    fn first_known(&mut self, part: usize, from: usize) -> Option<R> {
        let all = from..self.parts.rows(part);
        self.find(part, all, |row, value| !row.span().is_empty() && value.is_some()).map(|(_, row)| row)
    }

    fn find(
        &mut self,
        part: usize,
        mut rows: impl Iterator<Item = usize>,
        is_wanted: impl Fn(&R, Option<StateValue>) -> bool,
    ) -> Option<(usize, R)> {
        rows.find_map(|at| {
            let row = self.parts.row(part, at)?;
            is_wanted(&row, (self.value)(&row)).then_some((at, row))
        })
    }

    /// Nothing is known: the neighbours that are in the part, others are looked for.
    fn unknown(&mut self, part: usize, before: Option<Timestamp>, next: Option<Timestamp>) -> Option<AtInstant> {
        let before = if before.is_some() { before } else { self.known_before(part)? };
        let next = if next.is_some() { next } else { self.known_from(part + 1)? };
        Some(AtInstant::Unknown { before, next })
    }

    /// Where the last known value before a part ends, if there is any.
    fn known_before(&mut self, part: usize) -> Option<Option<Timestamp>> {
        for part in (0..part).rev() {
            if !self.known(part)?.is_unknown() {
                return Some(Some(self.last_known(part, self.parts.rows(part))?.span().end));
            }
        }
        Some(None)
    }

    /// Where the first known value from a part on begins, if there is any.
    fn known_from(&mut self, part: usize) -> Option<Option<Timestamp>> {
        for part in part..self.parts.parts() {
            let known = self.known(part)?;
            if known.starts() {
                return Some(self.parts.start(part));
            }
            if !known.is_unknown() {
                return Some(Some(self.first_known(part, 0)?.span().start));
            }
        }
        Some(None)
    }

    /// The interval of a row.
    fn holds(&mut self, part: usize, at: usize, row: &R) -> Option<AtInstant> {
        let (start, goes_back) = self.first_equal(part, at, row)?;
        let (end, goes_on) = self.last_equal(part, at, row)?;
        let start = if goes_back { self.begin(part, Some(start))? } else { start };
        let end = if goes_on { self.end(part, Some(end))? } else { end };
        Some(AtInstant::Holds(Span::new(start, end), self.own?))
    }

    /// Where the equal neighbours before a row in its part begin.
    fn first_equal(&mut self, part: usize, at: usize, row: &R) -> Option<End> {
        let (mut start, value) = (row.span().start, self.is_own(row)?);
        let mut from = at;
        while let Some((before, row)) = self.last_row(part, from) {
            if (self.value)(&row) != Some(value) || row.span().end != start {
                return Some((start, false));
            }
            (start, from) = (row.span().start, before);
        }
        Some((start, true))
    }

    /// Where those after it end.
    fn last_equal(&mut self, part: usize, at: usize, row: &R) -> Option<End> {
        let (mut end, value) = (row.span().end, self.is_own(row)?);
        let mut from = at + 1;
        while let Some((after, row)) = self.first_row(part, from) {
            if (self.value)(&row) != Some(value) || row.span().start != end {
                return Some((end, false));
            }
            (end, from) = (row.span().end, after + 1);
        }
        Some((end, true))
    }

    /// The value of a row, if it is that of the interval.
    fn is_own(&mut self, row: &R) -> Option<StateValue> {
        let value = (self.value)(row)?;
        (*self.own.get_or_insert(value) == value).then_some(value)
    }

    /// Where the interval of the first row of a part with a length begins; `start` is that of the row, if it was read.
    fn begin(&mut self, part: usize, mut start: Option<Timestamp>) -> Option<Timestamp> {
        let mut part = part;
        loop {
            let known = self.known(part)?;
            if !known.joins() {
                return match start {
                    Some(_) => start,
                    None if known.starts() => self.parts.start(part),
                    None => self.first_row(part, 0).map(|(_, row)| row.span().start),
                };
            }
            // Parts between them have no row with a length.
            part = (0..part).rev().find(|part| self.known(*part).is_none_or(|known| !known.is_unknown()))?;
            start = None;
            if !self.known(part)?.is_one() {
                let (at, row) = self.last_row(part, self.parts.rows(part))?;
                let (from, goes_back) = self.first_equal(part, at, &row)?;
                if !goes_back {
                    return Some(from);
                }
                start = Some(from);
            }
        }
    }

    /// Where the interval of the last row of a part with a length ends; `end` is that of the row, if it was read.
    fn end(&mut self, part: usize, mut end: Option<Timestamp>) -> Option<Timestamp> {
        let mut part = part;
        while let Some(next) = self.joined(part)? {
            (part, end) = (next, None);
            if !self.known(part)?.is_one() {
                let (at, row) = self.first_row(part, 0)?;
                let (until, goes_on) = self.last_equal(part, at, &row)?;
                if !goes_on {
                    return Some(until);
                }
                end = Some(until);
            }
        }
        if end.is_some() {
            return end;
        }
        let (_, row) = self.last_row(part, self.parts.rows(part))?;
        self.is_own(&row)?;
        Some(row.span().end)
    }

    /// The next part with a known value, if it continues that of the last row of a part; `None` where it is not sure.
    fn joined(&self, part: usize) -> Option<Option<usize>> {
        for next in part + 1..self.parts.parts() {
            let known = self.known(next)?;
            if !known.is_unknown() {
                return Some(known.joins().then_some(next));
            }
        }
        Some(None)
    }
}
