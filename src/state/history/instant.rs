//! The interval of an attribute about an instant, of two leaves at most.
//!
//! In: the parts of one line, and what is known of their values without their leaves (`store::values`). Out: the
//! interval that holds at a moment; or what is known next on both sides, if none holds. The parts that an interval or
//! a gap covers as a whole are passed by without a look into their leaves. So it needs the leaf where it begins and
//! the one where it ends:
//!
//! | the part of the moment | read | why no more |
//! |---|---|---|
//! | shows no known value | the last known row before it, the first behind it | it is not read itself |
//! | is one interval, which the next part continues | where the interval begins, where it ends | the same |
//! | is one interval, which ends with it | it, and where the interval begins; in a gap, what is known next | one or the other |
//! | has several values, or a gap | it, and where the interval or gap begins *or* ends | the other end is in it |
//!
//! Parts that are not sure, since rows overlap there, give no answer: who asks then joins the rows about the moment.
//! Nothing in a file is trusted: contradictions between rows and what is known of them give no answer either, and each
//! loop goes over the parts in one direction. Cost: O(log P) for P parts in the line, the parts that it covers, and the
//! rows of the interval in the leaves that are read.

use super::interval::StateValue;
use crate::base::time::{Span, Timestamp};
use crate::state::part_cursor::PartCursor;
use crate::state::reader::Row;
use crate::state::store::leaf::StoredRow;
use crate::state::store::values::PartValue;

/// What an attribute is at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AtInstant {
    Holds(Span, StateValue),
    /// Nothing is known: where the last known value before it ends, and where the first behind it begins.
    Unknown {
        before: Option<Timestamp>,
        next: Option<Timestamp>,
    },
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
        let last = until.checked_sub(1)?;
        Some(match self.at(t.min(last))? {
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

    /// Where those behind it end.
    fn last_equal(&mut self, part: usize, at: usize, row: &R) -> Option<End> {
        let (mut end, value) = (row.span().end, self.is_own(row)?);
        let mut from = at + 1;
        while let Some((behind, row)) = self.first_row(part, from) {
            if (self.value)(&row) != Some(value) || row.span().start != end {
                return Some((end, false));
            }
            (end, from) = (row.span().end, behind + 1);
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

#[cfg(test)]
mod tests {
    use super::super::recorded::join;
    use super::*;
    use crate::base::ctx::Ctx;
    use crate::base::memory::MemoryError;
    use crate::base::names::NameId;
    use crate::base::statistics::Random;
    use crate::state::draft::TimelineDraft;
    use crate::state::questions::Asker;
    use crate::state::segments::{Call, Segment, SegmentKind, ThreadId};
    use crate::state::store::builder::LineStoreBuilder;
    use crate::state::store::leaf_bytes::Leaf;
    use crate::state::store::leaves::{LeafSource, Leaves};
    use crate::state::store::parts::{LineStore, RowPlace};
    use crate::state::store::pool::LeafPool;
    use crate::state::timeline::CpuRun;
    use std::fmt::Debug;
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    /// Threads 0 to 2; 1 and 2 had one tid.
    fn tid(thread: u32) -> Option<i32> {
        Some([10, 11, 11].get(thread as usize).copied().unwrap_or(0))
    }

    /// Spans in order of start: some touch, some are empty, and one of `overlap` begins before its neighbour ends.
    fn spans(random: &mut Random, overlap: usize) -> Vec<Span> {
        let mut end = 100;
        let (count, gaps) = (1 + random.below(60), [1, 3, 1000][random.below(3)]);
        let mut next = |_| {
            let start = end + if random.below(gaps) == 0 { random.below(4) as i64 } else { 0 };
            let length = if random.below(9) == 0 { 0 } else { 1 + random.below(6) as i64 };
            end = start + length - if overlap > 0 && random.below(overlap) == 0 { length / 2 } else { 0 };
            Span::of_ns(start, start + length)
        };
        (0..count).map(&mut next).collect()
    }

    /// So many of 0 to 2, most like the one before.
    fn numbers(random: &mut Random, count: usize) -> Vec<usize> {
        let (often, mut last) = ([2, 6, 30][random.below(3)], 0);
        let mut next = |_| {
            last = if random.below(often) == 0 { random.below(3) } else { last };
            last
        };
        (0..count).map(&mut next).collect()
    }

    /// Leaves in place of those of a file.
    #[derive(Debug)]
    struct Sealed(Vec<Leaf>);

    impl LeafSource for Sealed {
        fn read(&self, leaf: u32) -> Result<Leaf, MemoryError> {
            Ok(self.0[leaf as usize].clone())
        }
    }

    /// Parts of a few rows, each in a leaf.
    fn store<R: StoredRow>(rows: &[R], random: &mut Random) -> LineStore<R> {
        let mut builder = LineStoreBuilder::default();
        let (mut left, most) = (rows, [1, 2, 7][random.below(3)]);
        while !left.is_empty() {
            let (slab, rest) = left.split_at(left.len().min(1 + random.below(most)));
            builder.push(0, slab);
            builder.seal_slab();
            left = rest;
        }
        builder.finish_with(1, tid)
    }

    /// The same with no leaf in memory.
    fn cold<R: StoredRow>(store: &LineStore<R>, source: &Arc<dyn LeafSource>, ctx: &Ctx) -> LineStore<R> {
        let (parts, count) = (store.parts(), store.leaves().len());
        let leaves = Leaves::kept(&Arc::new(LeafPool::new(None, ctx)), source, count, R::FAMILY);
        let rows: Vec<usize> = parts.iter().map(|part| part.rows.into()).collect();
        LineStore::from_kept(leaves, rows.into_iter(), parts.to_vec(), store.lines().to_vec()).unwrap()
    }

    /// What the intervals that are written of all rows say of an instant.
    fn written(intervals: &[(Span, StateValue)], t: Timestamp) -> AtInstant {
        let behind = intervals.partition_point(|(span, _)| span.end <= t);
        match intervals.get(behind).filter(|(span, _)| span.contains(t)) {
            Some((span, value)) => AtInstant::Holds(*span, *value),
            None => AtInstant::Unknown {
                before: behind.checked_sub(1).map(|at| intervals[at].0.end),
                next: intervals.get(behind).map(|(span, _)| span.start),
            },
        }
    }

    /// Answers by leaves that were read: none, one, two, three; and questions without an answer.
    type Counts = [u32; 5];

    fn ask<R: StoredRow + Row + Debug>(
        rows: &[R],
        random: &mut Random,
        (number, value): (usize, fn(&R) -> Option<StateValue>),
        counts: &mut Counts,
        change: fn(&mut R),
    ) {
        let (mut store, mut rows) = (store(rows, random), rows.to_vec());
        let places: Vec<RowPlace> =
            (0..random.below(4)).map(|_| RowPlace { line: 0, row: random.below(rows.len()) }).collect();
        places.iter().for_each(|place| change(&mut rows[place.row]));
        store.rewrite(&places, |_, row| change(row));
        assert_eq!(store.check(tid), Ok(()));
        let end = rows.last().unwrap().span().end.ns() + 3;
        let until = [Timestamp::MAX, Timestamp::new(90 + random.below(end as usize - 80) as i64)][random.below(2)];
        let mut intervals = Vec::new();
        join(rows.iter().map(|row| (row.span(), value(row))), until, |span, value| intervals.push((span, value)));
        let timeline = TimelineDraft::default().seal();
        let reader = timeline.reader(Asker::History);
        let sealed = store.leaves().iter().map(|leaf| Leaf::clone(&leaf)).collect();
        let source: Arc<dyn LeafSource> = Arc::new(Sealed(sealed));
        for t in (95..end).map(Timestamp::new) {
            let ctx = Ctx::new(1);
            let store = cold(&store, &source, &ctx);
            let found = AttributeParts::new(PartCursor::new(&reader, store.line(0)), number, value).until(t, until);
            let leaves = ctx.progress.leaves_read.load(Ordering::Relaxed).min(3) as usize;
            counts[if found.is_none() { 4 } else { leaves }] += 1;
            assert!(found.is_none_or(|found| found == written(&intervals, t)), "{t:?} {until:?} {found:?} {rows:?}");
        }
    }

    fn ask_all(seed: u64, overlap: usize, [counts, one_tid]: [&mut Counts; 2]) {
        let mut random = Random::new(seed);
        let spans = spans(&mut random, overlap);
        let [kinds, others] = [0; 2].map(|_| numbers(&mut random, spans.len()));
        let kind = |number: usize| [SegmentKind::Running, SegmentKind::Unknown, SegmentKind::Disk][number];
        let all = || spans.iter().copied().zip(kinds.iter().zip(&others));
        let segment = |(span, (state, cpu)): (Span, (&usize, &usize))| Segment {
            span,
            kind: kind(*state),
            waker: None,
            qualifier: None,
            cpu: *cpu as u32,
        };
        let segments: Vec<Segment> = all().map(segment).collect();
        let calls: Vec<Call> =
            all().map(|(span, (_, name))| Call { span, name: NameId::at(*name), ret: None }).collect();
        let runs: Vec<CpuRun> =
            all().map(|(span, (thread, _))| CpuRun { span, thread: ThreadId::at(*thread) }).collect();
        let of_state = |row: &Segment| super::super::recorded::state(row.kind);
        let relabel = |row: &mut Segment| row.kind = SegmentKind::Network;
        ask(&segments, &mut random, (0, of_state), counts, relabel);
        ask(&segments, &mut random, (1, |row| Some(StateValue::Int(row.cpu.into()))), counts, relabel);
        ask(&calls, &mut random, (0, |row| Some(StateValue::Text(row.name))), counts, |_| {});
        let of_run = |row: &CpuRun| Some(StateValue::Int(tid(row.thread.raw())?.into()));
        let has_one_tid = runs.iter().any(|run| run.thread.raw() == 1) && runs.iter().any(|run| run.thread.raw() == 2);
        ask(&runs, &mut random, (0, of_run), if has_one_tid { one_tid } else { counts }, |_| {});
    }

    #[test]
    fn until_says_what_is_written_of_all_rows_and_reads_two_leaves() {
        let (mut counts, mut one_tid) = (Counts::default(), Counts::default());
        (0..200).for_each(|seed| ask_all(seed, 0, [&mut counts, &mut one_tid]));
        let [none, one, two, three, unsure] = counts;
        assert!(none > 0 && one > 1_000 && two > 1_000 && (three, unsure) == (0, 0), "{counts:?}");
        // A part of two threads that had one tid looks as if it had two values: it is read.
        assert!(one_tid[2] > one_tid[3] && one_tid[4] == 0, "{one_tid:?}");
    }

    #[test]
    fn until_has_no_wrong_answer_where_rows_overlap() {
        let (mut counts, mut one_tid) = (Counts::default(), Counts::default());
        (0..200).for_each(|seed| ask_all(seed, 1 + (seed as usize % 40), [&mut counts, &mut one_tid]));
        assert!(counts[3] == 0 && counts[4] > 1_000 && counts[2] > 1_000, "{counts:?}");
    }
}
