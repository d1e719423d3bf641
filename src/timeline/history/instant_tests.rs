//! Attributes at instants, of lines in parts of a few rows, compared with the intervals that are written of all rows.

use super::StateValue;
use super::attributes_of::state;
use super::instant::{AtInstant, AttributeParts};
use super::join::join;
use crate::base::ctx::Ctx;
use crate::base::memory_error::MemoryError;
use crate::base::names::NameId;
use crate::base::statistics::Random;
use crate::base::time::{Span, Timestamp};
use crate::timeline::CpuRun;
use crate::timeline::draft::TimelineDraft;
use crate::timeline::part_cursor::PartCursor;
use crate::timeline::questions::Asker;
use crate::timeline::row::Row;
use crate::timeline::segments::{Call, Segment, SegmentKind, ThreadId};
use crate::timeline::store::builder::LineStoreBuilder;
use crate::timeline::store::leaf::StoredRow;
use crate::timeline::store::leaf_bytes::Leaf;
use crate::timeline::store::leaves::Leaves;
use crate::timeline::store::parts::{LineStore, RowPlace};
use crate::timeline::store::pool::{LeafPool, LeafSource};
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

/// A store with no leaf in memory.
fn cold<R: StoredRow>(store: &LineStore<R>, source: &Arc<dyn LeafSource>, ctx: &Ctx) -> LineStore<R> {
    let (directory, count) = (store.directory(), store.leaves().len());
    let leaves = Leaves::kept(&Arc::new(LeafPool::new(None, ctx)), source, count, R::FAMILY);
    let rows: Vec<usize> = directory.iter().map(|part| part.rows.into()).collect();
    let nodes = store.nodes().clone();
    LineStore::from_kept(leaves, nodes, rows.into_iter(), Arc::clone(directory)).unwrap()
}

/// What the intervals that are written of all rows say of an instant.
fn written(intervals: &[(Span, StateValue)], t: Timestamp) -> AtInstant {
    let after = intervals.partition_point(|(span, _)| span.end <= t);
    match intervals.get(after).filter(|(span, _)| span.contains(t)) {
        Some((span, value)) => AtInstant::Holds(*span, *value),
        None => AtInstant::Unknown {
            before: after.checked_sub(1).map(|at| intervals[at].0.end),
            next: intervals.get(after).map(|(span, _)| span.start),
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
        all().map(|(span, (_, name))| Call { span, name: NameId::at(*name), ret: None, descriptor: None }).collect();
    let runs: Vec<CpuRun> = all().map(|(span, (thread, _))| CpuRun { span, thread: ThreadId::at(*thread) }).collect();
    let of_state = |row: &Segment| state(row.kind);
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
