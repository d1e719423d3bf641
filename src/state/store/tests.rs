//! Stores of random rows, compared with the vectors that they were made of.

use super::builder::LineStoreBuilder;
use super::leaf::StoredRow;
use super::parts::{LineStore, Place, RowPlace};
use crate::base::names::NameId;
use crate::base::time::{Span, Timestamp};
use crate::event::stack::{RawStackId, StackOrigin};
use crate::state::timeline::{
    Call, CounterOwner, CounterValue, DiskRequest, HostId, PageFault, Segment, SegmentKind, Service, StackSample,
    ThreadId, Waker,
};
use proptest::prelude::*;
use std::fmt::Debug;

/// A store of lines whose rows were sealed in slabs of `slab` rows of each line.
fn store<R: StoredRow>(lines: &[Vec<R>], slab: usize) -> LineStore<R> {
    let mut builder = LineStoreBuilder::default();
    let longest = lines.iter().map(Vec::len).max().unwrap_or(0);
    for from in (0..longest).step_by(slab) {
        // Lines come in any order.
        for (line, rows) in lines.iter().enumerate().rev() {
            builder.push(line, rows.iter().skip(from).take(slab).copied());
        }
        builder.seal_slab();
    }
    builder.finish(lines.len())
}

/// Rows of any kind, made of numbers: instants, lengths, gaps.
fn check_rows<R: StoredRow + PartialEq + Debug>(lines: &[Vec<R>], slab: usize) -> Result<(), TestCaseError> {
    let store = store(lines, slab);
    for (number, rows) in lines.iter().enumerate() {
        let line = store.line(number);
        prop_assert_eq!(&line.all().collect::<Vec<_>>(), rows);
        let mut back: Vec<_> = line.all().rev().collect();
        back.reverse();
        prop_assert_eq!(&back, rows);
        prop_assert_eq!(line.len(), rows.len());
        let times = rows.iter().flat_map(|row| [row.span().start, row.span().end]);
        for t in times.flat_map(|t| [t.saturating_sub(1), t, t.saturating_add(1)]) {
            let found = |place: Place| line.position(place);
            prop_assert_eq!(found(line.starts_from(t)), rows.partition_point(|row| row.span().start < t));
            prop_assert_eq!(found(line.starts_after(t)), rows.partition_point(|row| row.span().start <= t));
            prop_assert_eq!(found(line.ends_after(t)), rows.partition_point(|row| row.span().end <= t));
            let places =
                std::iter::successors(Some(Place::default()), |at| (*at != line.end_place()).then(|| line.after(*at)));
            for near in places.step_by(5).filter_map(|place| line.starts_near(place, t)) {
                prop_assert_eq!(near, line.starts_from(t));
            }
            let place = line.ends_after(t);
            prop_assert_eq!(line.get(place), rows.get(found(place)).copied());
            let before = line.before(place).and_then(|before| line.get(before));
            prop_assert_eq!(before, found(place).checked_sub(1).map(|at| rows[at]));
        }
    }
    prop_assert_eq!(store.line(lines.len()).len(), 0);
    Ok(())
}

/// A span after the one before, and some numbers.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    span: Span,
    small: u32,
    large: u64,
}

/// Lines of rows that do not overlap, with gaps or without.
fn lines() -> impl Strategy<Value = Vec<Vec<Numbers>>> {
    let number = || prop_oneof![4 => 0..300u64, 1 => any::<u64>()];
    let row = (prop_oneof![3 => Just(0), 1 => 1..1_000i64], 1..5_000_000i64, 0..40u32, number());
    let line = (-1_000_000..1_000_000i64, prop::collection::vec(row, 0..40)).prop_map(|(from, rows)| {
        let mut at = from;
        let mut row = |(gap, length, small, large)| {
            let start = at + gap;
            at = start + length;
            Numbers { span: Span::of_ns(start, at), small, large }
        };
        rows.into_iter().map(&mut row).collect()
    });
    prop::collection::vec(line, 1..8)
}

fn of<R>(lines: &[Vec<Numbers>], row: impl Fn(&Numbers) -> R + Copy) -> Vec<Vec<R>> {
    lines.iter().map(|line| line.iter().map(row).collect()).collect()
}

fn segment(n: &Numbers) -> Segment {
    let at = Timestamp::new(n.span.end.ns().wrapping_sub((n.large % 1_000) as i64 - 500));
    Segment {
        span: n.span,
        kind: if n.small.is_multiple_of(2) { SegmentKind::Running } else { SegmentKind::Network },
        waker: (n.small.is_multiple_of(3)).then_some(Waker { thread: ThreadId::from_raw(n.small), at }),
        qualifier: (n.small.is_multiple_of(5)).then_some(NameId::from_raw(n.large as u32 % 70_000)),
        cpu: n.large as u32,
    }
}

fn stack(raw: u64) -> Option<RawStackId> {
    (!raw.is_multiple_of(3)).then_some(RawStackId::from_raw(raw as u32))
}

fn thread(raw: u64) -> Option<ThreadId> {
    (!raw.is_multiple_of(4)).then_some(ThreadId::from_raw(raw as u32))
}

proptest! {
    #[test]
    fn rows_of_each_family_are_found_as_in_vectors(lines in lines(), slab in 1..50usize) {
        check_rows(&of(&lines, segment), slab)?;
        check_rows(&of(&lines, |n| Call {
            span: n.span,
            name: NameId::from_raw(n.small),
            ret: (n.small % 7 > 0).then_some(n.large as i64),
        }), slab)?;
        let origin = |n: &Numbers| if n.small.is_multiple_of(2) { StackOrigin::Tick } else { StackOrigin::Other };
        check_rows(&of(&lines, |n| StackSample {
            time: n.span.end,
            origin: origin(n),
            user: stack(n.large),
            kernel: stack(n.small.into()),
        }), slab)?;
        check_rows(&of(&lines, |n| DiskRequest {
            host: HostId::from_raw(n.small),
            device: n.large as u32,
            sector: n.large,
            bytes: n.small.into(),
            write: n.small.is_multiple_of(2),
            submitter: thread(n.large),
            queued_by: thread(n.small.into()),
            span: n.span,
            issued: Timestamp::new(n.large as i64),
        }), slab)?;
        check_rows(&of(&lines, |n| Service {
            thread: ThreadId::from_raw(n.small),
            span: n.span,
            client: ThreadId::from_raw(n.large as u32),
            since: Timestamp::new(n.large as i64),
        }), slab)?;
        check_rows(&of(&lines, |n| PageFault { thread: ThreadId::from_raw(n.small), time: n.span.start }), slab)?;
        check_rows(&of(&lines, |n| CounterValue {
            owner: match n.small % 2 {
                0 => CounterOwner::Thread(ThreadId::from_raw(n.large as u32)),
                _ => CounterOwner::Cpu(HostId::from_raw(n.small), n.large as u32),
            },
            time: n.span.start,
            value: n.large,
        }), slab)?;
    }

    #[test]
    fn rewrite_changes_these_rows_alone(
        lines in lines(),
        slab in 1..50usize,
        picked in prop::collection::vec((0..8usize, 0..40usize), 0..20),
    ) {
        let mut rows = of(&lines, segment);
        let mut store = store(&rows, slab);
        let places: Vec<RowPlace> = picked.iter().map(|(line, row)| RowPlace { line: *line, row: *row }).collect();
        let relabel = |number: usize, row: &mut Segment| {
            row.cpu = row.cpu.wrapping_mul(3).wrapping_add(number as u32);
            row.kind = SegmentKind::Disk;
        };
        store.rewrite(&places, relabel);
        for (number, place) in places.iter().enumerate() {
            if let Some(row) = rows.get_mut(place.line).and_then(|line| line.get_mut(place.row)) {
                relabel(number, row);
            }
        }
        for (number, rows) in rows.iter().enumerate() {
            prop_assert_eq!(&store.line(number).all().collect::<Vec<_>>(), rows);
        }
    }
}

#[test]
fn moments_at_the_ends_of_time_are_kept() {
    let span = Span::new(Timestamp::MIN, Timestamp::MAX);
    let call = Call { span, name: NameId::from_raw(u32::MAX), ret: Some(i64::MIN) };
    let first = Call { span: Span::new(Timestamp::MIN, Timestamp::MIN), ..call };
    let store = store(&[vec![first, call]], 5);
    assert_eq!(store.line(0).all().collect::<Vec<_>>(), [first, call]);
}

#[test]
fn more_rows_than_a_leaf_has_are_found() {
    let rows: Vec<Vec<PageFault>> = (0..3)
        .map(|line| {
            let fault = |n: i64| PageFault { thread: ThreadId::at(line), time: Timestamp::new(n * 10) };
            (0..5_000).map(fault).collect()
        })
        .collect();
    let store = store(&rows, 4_999);
    for (number, rows) in rows.iter().enumerate() {
        let line = store.line(number);
        assert_eq!(line.all().collect::<Vec<_>>(), *rows);
        let found = |t| line.get(line.starts_from(Timestamp::new(t))).map(|row| row.time.ns());
        assert_eq!(
            [0, 1, 20_475, 20_480, 49_990, 49_991].map(found),
            [Some(0), Some(10), Some(20_480), Some(20_480), Some(49_990), None]
        );
    }
}
