//! Stores of random rows, compared with the vectors that they were made of.

use super::builder::LineStoreBuilder;
use super::directory::{LineDirectory, LinePart};
use super::leaf::{RowBlock, StoredRow};
use super::leaf_bytes::{Leaf, LeafError};
use super::leaves::{LeafPin, Leaves};
use super::marks::{MarkLeaf, MarkStore};
use super::part_value::PartValue;
use super::parts::{LineStore, Place, RowPlace};
use super::whole::StoreError;
use crate::base::names::NameId;
use crate::base::time::{Span, Timestamp};
use crate::event::descriptor::NamedDescriptor;
use crate::event::host::HostId;
use crate::event::stack::{RawStackId, SampleWeight, StackOrigin};
use crate::timeline::questions::Family;
use crate::timeline::{
    Call, CounterOwner, CounterValue, DiskRequest, Mark, MarkField, PageFault, Segment, SegmentKind, Service,
    StackSample, ThreadId, Waker,
};
use proptest::prelude::*;
use std::sync::Arc;

/// A store of lines, in any order, whose rows were sealed in slabs of `slab` rows of each line.
fn store<R: StoredRow>(lines: &[Vec<R>], slab: usize) -> LineStore<R> {
    let mut builder = LineStoreBuilder::default();
    let longest = lines.iter().map(Vec::len).max().unwrap_or(0);
    for from in (0..longest).step_by(slab) {
        for (line, rows) in lines.iter().enumerate().rev() {
            builder.push(line, rows.get(from..rows.len().min(from + slab)).unwrap_or(&[]));
        }
        builder.seal_slab();
    }
    builder.finish(lines.len())
}

/// Rows of any kind, made of numbers: instants, lengths, gaps.
fn check_rows<R: StoredRow + PartialEq + std::fmt::Debug>(lines: &[Vec<R>], slab: usize) -> Result<(), TestCaseError> {
    let store = store(lines, slab);
    let mut pin = LeafPin::default();
    for (number, rows) in lines.iter().enumerate() {
        let (line, pin) = (store.line(number), &mut pin);
        prop_assert_eq!(&line.all().collect::<Vec<_>>(), rows);
        let mut back: Vec<_> = line.all().rev().collect();
        back.reverse();
        prop_assert_eq!(&back, rows);
        prop_assert_eq!(line.len(), rows.len());
        let times = rows.iter().flat_map(|row| [row.span().start, row.span().end]);
        for t in times.flat_map(|t| [t.saturating_sub(1), t, t.saturating_add(1)]) {
            let found = |place: Place| line.position(place);
            prop_assert_eq!(found(line.starts_from(t, pin)), rows.partition_point(|row| row.span().start < t));
            prop_assert_eq!(found(line.starts_after(t, pin)), rows.partition_point(|row| row.span().start <= t));
            prop_assert_eq!(found(line.ends_after(t, pin)), rows.partition_point(|row| row.span().end <= t));
            let places = std::iter::successors(Some(Place::default()), |at| {
                (*at != line.end_place()).then(|| line.after(*at, &LeafPin::default()))
            });
            let from = line.starts_from(t, pin);
            for near in places.step_by(5).filter_map(|place| line.starts_near(place, t, pin)) {
                prop_assert_eq!(near, from);
            }
            let place = line.ends_after(t, pin);
            prop_assert_eq!(line.get(place, pin), rows.get(found(place)).copied());
            let before = line.before(place, &LeafPin::default()).and_then(|before| line.get(before, pin));
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

fn disk_request(n: &Numbers) -> DiskRequest {
    DiskRequest {
        host: HostId::from_raw(n.small),
        device: n.large as u32,
        sector: n.large,
        bytes: n.small.into(),
        write: n.small.is_multiple_of(2),
        submitter: thread(n.large),
        queued_by: thread(n.small.into()),
        span: n.span,
        issued: Timestamp::new(n.large as i64),
        is_completed: n.large.is_multiple_of(3),
    }
}

fn stack(raw: u64) -> Option<RawStackId> {
    (!raw.is_multiple_of(3)).then_some(RawStackId::from_raw(raw as u32))
}

fn thread(raw: u64) -> Option<ThreadId> {
    (!raw.is_multiple_of(4)).then_some(ThreadId::from_raw(raw as u32))
}

fn call(n: &Numbers, ret: Option<i64>) -> Call {
    Call { span: n.span, name: NameId::from_raw(n.small), ret, descriptor: NamedDescriptor::of_packed(n.large) }
}

proptest! {
    #[test]
    fn rows_of_each_family_are_found_as_in_vectors(lines in lines(), slab in 1..50usize) {
        check_rows(&of(&lines, segment), slab)?;
        check_rows(&of(&lines, |n| call(n, (n.small % 7 > 0).then_some(n.large as i64))), slab)?;
        let origin = |n: &Numbers| if n.small.is_multiple_of(2) { StackOrigin::Tick } else { StackOrigin::Other };
        check_rows(&of(&lines, |n| StackSample {
            time: n.span.end,
            origin: origin(n),
            user: stack(n.large),
            kernel: stack(n.small.into()),
            weight: stack(n.large).map(|_| SampleWeight { event: NameId::from_raw(n.small), amount: n.large }).into(),
        }), slab)?;
        check_rows(&of(&lines, disk_request), slab)?;
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
        let places: Vec<RowPlace> = picked.iter().map(|(line, row)| RowPlace { line: *line, row: *row }).collect();
        check_rewrite(of(&lines, segment), slab, &places, |number, row| {
            row.cpu = row.cpu.wrapping_mul(3).wrapping_add(number as u32);
            row.kind = SegmentKind::Disk;
        })?;
        check_rewrite(of(&lines, disk_request), slab, &places, |number, row| {
            row.issued = row.issued.max(Timestamp::new(number as i64));
            row.span.end = [row.span.start, Timestamp::MAX, row.span.end][number % 3];
        })?;
    }
}

/// Some rows change in the store as they do in vectors.
fn check_rewrite<R: StoredRow + PartialEq + std::fmt::Debug>(
    mut rows: Vec<Vec<R>>,
    slab: usize,
    places: &[RowPlace],
    change: impl Fn(usize, &mut R),
) -> Result<(), TestCaseError> {
    let mut store = store(&rows, slab);
    store.rewrite(places, &change);
    for (number, place) in places.iter().enumerate() {
        if let Some(row) = rows.get_mut(place.line).and_then(|line| line.get_mut(place.row)) {
            change(number, row);
        }
    }
    for (number, rows) in rows.iter().enumerate() {
        prop_assert_eq!(&store.line(number).all().collect::<Vec<_>>(), rows);
    }
    prop_assert_eq!(store.check(|_| None), Ok(()));
    Ok(())
}

/// Leaves of all kinds of columns, with the family that they are of.
fn leaves() -> Vec<(Family, Vec<u8>)> {
    let numbers = |n: i64| Numbers {
        span: Span::of_ns(n * 50, n * 50 + 20 + n % 7),
        small: (n % 40) as u32,
        large: if n % 9 == 0 { u64::MAX - n as u64 } else { n as u64 % 4 },
    };
    let lines: Vec<Vec<Numbers>> = vec![(0..150).map(numbers).collect(), (150..200).map(numbers).collect()];
    let first = |leaves: &Leaves| leaves.handle(0).unwrap().bytes().to_vec();
    let faults = of(&lines, |n| PageFault { thread: ThreadId::from_raw(n.small), time: n.span.start });
    let call = |n: &Numbers| call(n, Some((n.large % 3) as i64 - 1));
    let marks = (0..1_024).map(|n| Mark {
        time: Timestamp::new(i64::from(n)),
        task: 0,
        begins: n % 2 == 0,
        thread: None,
        trace: 0,
        cpu: 1,
        key: (n % 3 == 0).then_some(i64::from(n)),
        kind: None,
        fields: vec![MarkField { name: NameId::from_raw(n), value: 0 }; n as usize % 3],
    });
    let mut store_of_marks = MarkStore::default();
    store_of_marks.extend(marks);
    let mut all = vec![
        (Family::Segments, first(store(&of(&lines, segment), 60).leaves())),
        (Family::Calls, first(store(&of(&lines, call), 500).leaves())),
        (Family::Faults, first(store(&faults, 500).leaves())),
    ];
    all.push((Family::Marks, first(store_of_marks.leaves())));
    all
}

fn read(family: Family, bytes: &[u8]) -> Result<(), LeafError> {
    match family {
        Family::Marks => MarkLeaf::from_bytes(bytes.into()).map(|_| ()),
        _ => Leaf::from_bytes(bytes.into(), family).map(|leaf| assert_eq!(leaf.bytes()[..], *bytes)),
    }
}

#[test]
fn a_leaf_is_read_from_its_bytes_and_from_no_other() {
    for (family, bytes) in leaves() {
        assert_eq!(read(family, &bytes), Ok(()), "{family:?}");
        let other = if family == Family::Calls { Family::Samples } else { Family::Calls };
        assert_eq!(read(other, &bytes), Err(LeafError::Family));
        for length in 0..bytes.len() {
            assert!(read(family, &bytes[..length]).is_err(), "{family:?}, the first {length} bytes");
        }
        let mut changed = bytes.clone();
        for at in 0..bytes.len() {
            for flip in [1, 0x80, 0xff] {
                changed[at] ^= flip;
                assert!(read(family, &changed).is_err(), "{family:?}, byte {at}");
                changed[at] ^= flip;
            }
        }
        changed.push(0);
        assert_eq!(read(family, &changed), Err(LeafError::Length));
    }
}

#[test]
fn families_keep_their_numbers_in_leaves() {
    let numbers = Family::ALL.iter().map(|family| *family as u8);
    assert!(numbers.eq(0..11));
    let names = Family::ALL.iter().map(|family| family.name()).collect::<Vec<_>>().join(" ");
    assert_eq!(names, "segments calls samples runs requests services faults counters marks stacks names");
}

/// Bytes with a checksum that fits.
fn forged(mut bytes: Vec<u8>) -> Vec<u8> {
    let length = bytes.len() as u32;
    if let Some(place) = bytes.get_mut(4..8) {
        place.copy_from_slice(&length.to_le_bytes());
    }
    let end = bytes.len().saturating_sub(4);
    let sum = crc32fast::hash(&bytes[..end]).to_le_bytes();
    bytes[end..].iter_mut().zip(sum).for_each(|(byte, sum)| *byte = sum);
    bytes
}

/// Ask everything of a leaf that was accepted.
fn read_rows<R: StoredRow>(leaf: &Leaf) -> usize {
    let mut rows = RowBlock::<R>::new();
    for row in (0..leaf.rows()).chain([leaf.rows(), usize::MAX / 16]) {
        let start = leaf.start(R::EXTENT, row);
        rows.clear();
        leaf.decode(row, 16, start, &mut rows);
        rows.push(leaf.get(row, start));
    }
    rows.len()
}

proptest! {
    #[test]
    fn bytes_of_a_forger_end_in_an_error_or_in_rows(
        which in 0..4usize,
        changes in prop::collection::vec((0..120usize, any::<u8>()), 1..6),
        random in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let (family, mut bytes) = leaves().swap_remove(which);
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        for bytes in [forged(bytes), forged(random.clone()), random] {
            if family == Family::Marks {
                if let Ok(leaf) = MarkLeaf::from_bytes(bytes.into()) {
                    let store = MarkStore::from_parts(vec![leaf], []);
                    prop_assert_eq!(store.all().map(|mark| store.fields(mark.number).count()).len(), 1_024);
                }
                continue;
            }
            let Ok(leaf) = Leaf::from_bytes(bytes.into(), family) else { continue };
            match family {
                Family::Segments => read_rows::<Segment>(&leaf),
                Family::Calls => read_rows::<Call>(&leaf),
                _ => read_rows::<PageFault>(&leaf),
            };
        }
    }

    #[test]
    fn a_store_is_made_of_its_lists_and_of_no_others(
        lines in lines(),
        slab in 1..50usize,
        change in (0..100usize, 0..5usize, 1..4u32),
    ) {
        let rows = of(&lines, segment);
        let store = store(&rows, slab);
        prop_assert_eq!(store.check(|_| None), Ok(()));
        let leaves: Vec<Leaf> = store.leaves().iter().map(|leaf| Leaf::clone(&leaf)).collect();
        let mut parts = parts_of(&store);
        let again = LineStore::<Segment>::from_parts(leaves.clone(), directory(&parts)).unwrap();
        for (number, rows) in rows.iter().enumerate() {
            prop_assert_eq!(&again.line(number).all().collect::<Vec<_>>(), rows);
        }
        let (at, what, by) = change;
        let count = parts.iter().map(Vec::len).sum();
        let Some(at) = at.checked_rem(count) else { return Ok(()) };
        let line = store.directory().line_of(at);
        let at = at - store.directory().line(line).start;
        let part = &mut parts[line][at];
        match what {
            0 => part.leaf += by,
            1 => part.first += by as u16,
            2 => part.rows += by as u16,
            3 => part.rows = 0,
            _ => drop(parts[line].remove(at)),
        }
        prop_assert!(LineStore::<Segment>::from_parts(leaves, directory(&parts)).is_err());
    }
}

/// The parts of each line.
fn parts_of(store: &LineStore<Segment>) -> Vec<Vec<LinePart>> {
    let directory = store.directory();
    (0..directory.lines()).map(|line| directory.line(line).filter_map(|part| directory.part(part)).collect()).collect()
}

fn directory(parts: &[Vec<LinePart>]) -> Arc<LineDirectory> {
    Arc::new(LineDirectory::of(parts, Segment::SHOWN))
}

#[test]
fn check_compares_what_is_known_of_values_with_the_rows() {
    let numbers = |n: i64| Numbers { span: Span::of_ns(n, n + 1), small: n as u32 / 9, large: 1 };
    let store = store(&of(&[(0..40).map(numbers).collect()], segment), 5);
    assert_eq!(store.check(|_| None), Ok(()));
    let leaves: Vec<Leaf> = store.leaves().iter().map(|leaf| Leaf::clone(&leaf)).collect();
    for (at, part) in store.directory().iter().enumerate() {
        // Whether the others are sure is in the first bit of each five.
        for flipped in (0..10).filter(|bit| bit % 5 > 0).map(|bit| 1 << bit) {
            let mut parts = parts_of(&store);
            parts[0][at].values = PartValue::of_number(PartValue::to_number(part.values) ^ flipped).unwrap();
            let other = LineStore::<Segment>::from_parts(leaves.clone(), directory(&parts)).unwrap();
            assert_eq!(other.check(|_| None), Err(StoreError::Values(at)));
        }
    }
    assert_eq!(PartValue::of_number(1 << 10), None);
}

#[test]
fn moments_at_the_ends_of_time_are_kept() {
    let span = Span::new(Timestamp::MIN, Timestamp::MAX);
    let call = Call { span, name: NameId::from_raw(u32::MAX), ret: Some(i64::MIN), descriptor: None };
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
        let mut pin = LeafPin::default();
        let mut found = |t| {
            let place = line.starts_from(Timestamp::new(t), &mut pin);
            line.get(place, &mut pin).map(|row| row.time.ns())
        };
        assert_eq!(
            [0, 1, 20_475, 20_480, 49_990, 49_991].map(&mut found),
            [Some(0), Some(10), Some(20_480), Some(20_480), Some(49_990), None]
        );
    }
}

/// Rows of three lines, which come alternately, cross blocks and leaves.
#[test]
fn rows_that_cross_blocks_and_leaves_are_all_there() {
    let row = |i: i64| PageFault { thread: ThreadId::from_raw(0), time: Timestamp::new(i) };
    let line = |number: i64| (0..3000 + 700 * number).map(row).collect();
    let lines: Vec<Vec<PageFault>> = (0..3).map(line).collect();
    for slab in [700, 1024, 2048, 5000] {
        let store = store(&lines, slab);
        for (number, rows) in lines.iter().enumerate() {
            assert_eq!(&store.line(number).all().collect::<Vec<_>>(), rows, "{slab}");
        }
        assert_eq!(store.check(|_| None), Ok(()));
    }
}
