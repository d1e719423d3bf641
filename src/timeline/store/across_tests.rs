//! Questions about many lines compared with a scan of all rows.

use super::across::{LaneQuestion, LaneTable, StateSet};
use super::builder::LineStoreBuilder;
use super::leaf::StoredRow;
use super::leaf_bytes::Leaf;
use super::nodes::meets;
use super::parts::{LineStore, RowPlace};
use crate::base::column_grid::ColumnGrid;
use crate::base::statistics::Random;
use crate::base::time::{Ns, Span, Timestamp};
use crate::timeline::{Call, PageFault, Segment, SegmentKind, ThreadId};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// Rows of lines as they end, sealed some at a time. Most are short, some begin long before others of their slab.
fn made<R: StoredRow + Debug>(
    random: &mut Random,
    lines: usize,
    make: impl Fn(&mut Random, u32, Span) -> R,
) -> (LineStore<R>, Vec<Vec<R>>) {
    let mut rows: Vec<Vec<R>> = vec![Vec::new(); lines];
    let mut ends = vec![Timestamp::ZERO; lines];
    let mut builder = LineStoreBuilder::default();
    let (slabs, each) = (1 + random.below(6), 1 + random.below(6_000));
    let mut now = Timestamp::ZERO;
    for _ in 0..slabs {
        let mut slab: Vec<Vec<R>> = vec![Vec::new(); lines];
        for _ in 0..each {
            now = now.saturating_add(random.below(4) as Ns);
            // Lines of the upper half have few rows.
            let half = lines.div_ceil(2);
            let line = if random.below(200) == 0 { lines - 1 - random.below(half) } else { random.below(half) };
            let gap = if random.below(5) == 0 { random.below(3) as Ns } else { 0 };
            let start = ends[line].saturating_add(gap).min(now);
            ends[line] = now;
            slab[line].push(make(random, line as u32, Span::new(start, now)));
        }
        for (line, own) in slab.iter().enumerate() {
            builder.push(line, own);
            rows[line].extend(own);
        }
        builder.seal_slab();
    }
    (builder.finish(lines), rows)
}

fn segment(random: &mut Random, _: u32, span: Span) -> Segment {
    let kinds = [SegmentKind::Running, SegmentKind::Disk, SegmentKind::Stopped];
    Segment { span, kind: kinds[random.below(3)], waker: None, qualifier: None, cpu: 0 }
}

fn call(random: &mut Random, line: u32, span: Span) -> Call {
    let span = Span::new(span.start.saturating_sub(random.below(9) as Ns).max(Timestamp::ZERO), span.end);
    Call { span, name: crate::base::names::NameId::from_raw(line), ret: None, descriptor: None }
}

/// Rows with their lines, in an order of their own.
fn sorted<R: StoredRow + Debug>(mut rows: Vec<(u32, R)>) -> Vec<String> {
    rows.sort_by_key(|(line, row)| (*line, row.span().start, row.span().end));
    rows.iter().map(|row| format!("{row:?}")).collect()
}

fn check<R: StoredRow + Debug + PartialEq>(random: &mut Random, store: &LineStore<R>, rows: &[Vec<R>]) {
    assert_eq!(store.check(|_| None), Ok(()));
    let mut by_line = vec![Vec::new(); rows.len()];
    store.each_row(|line, row| by_line[line as usize].push(row));
    assert_eq!(by_line, rows);
    let end = rows.iter().flatten().map(|row| row.span().end.ns()).max().unwrap_or(0);
    let all = || (0..).zip(rows).flat_map(|(line, own)| own.iter().map(move |row| (line, *row)));
    for _ in 0..12 {
        let from = random.below(end as usize + 20) as Ns - 10;
        let span = Span::of_ns(from, from + [1, 7, end / 20, end][random.below(4)]);
        let low = random.below(rows.len()) as u32;
        let lines = [0..u32::MAX, low..low + 1, low..low + 5][random.below(3)].clone();
        let mut found = Vec::new();
        store.meeting(lines.clone(), span, |line, row| found.push((line, row)));
        let scanned = all().filter(|(line, row)| lines.contains(line) && meets(row.span(), span)).collect();
        assert_eq!(sorted(found), sorted(scanned), "{lines:?} {span:?}");
        if R::STATES == 0 {
            continue;
        }
        let lane = |line: u32| if line.is_multiple_of(3) && line >= low { LaneTable::NONE } else { line / 7 % 3 };
        let lanes = LaneTable::new((0..rows.len() as u32).map(lane).collect());
        let grid = ColumnGrid::of(span, 1 + random.below(7));
        let states = [StateSet::ALL, StateSet::of([0, 5])][random.below(2)];
        let mut times: BTreeMap<_, u64> = BTreeMap::new();
        let asked = LaneQuestion { grid: &grid, lanes: &lanes, states };
        let places = store.lane_places(&asked);
        let middle = random.below(places.len() + 1);
        for part in [0..middle, middle..places.len()] {
            store.times(&asked, &places, part, |lane, columns, state, ns| {
                for column in columns {
                    let ns = ns.unwrap_or(grid.span(column).len() as u64);
                    *times.entry((lane, column, state)).or_default() += ns;
                }
            });
        }
        let mut summed: BTreeMap<_, u64> = BTreeMap::new();
        let is_wanted = |line: u32, row: &R| {
            lane(line) != LaneTable::NONE && (states == StateSet::ALL || [0, 5].contains(&row.state()))
        };
        for (line, row) in all().filter(|(line, row)| is_wanted(*line, row)) {
            for column in 0..grid.columns() {
                let inside = row.span().clip(span).clip(grid.span(column));
                if !inside.is_empty() {
                    *summed.entry((lane(line) as usize, column, row.state())).or_default() += inside.len() as u64;
                }
            }
        }
        assert_eq!(times, summed, "{span:?} {grid:?}");
    }
}

#[test]
fn rows_of_all_lines_in_a_span_are_those_of_a_scan() {
    let mut lifted = 0;
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let lines = [1, 5, 60, 3_000][random.below(4)];
        let (store, rows) = made(&mut random, lines, segment);
        lifted += store.nodes().leaves().iter().map(|leaf| leaf.lifted.len()).sum::<usize>();
        check(&mut random, &store, &rows);
        let (store, rows) = made(&mut random, lines, call);
        check(&mut random, &store, &rows);
        let fault = |_: &mut Random, line, span: Span| PageFault { thread: ThreadId::from_raw(line), time: span.end };
        let (store, rows) = made(&mut random, lines, fault);
        check(&mut random, &store, &rows);
    }
    assert!(lifted > 100, "{lifted} rows are lifted");
}

#[test]
fn nodes_follow_rows_that_change() {
    for seed in 0..10 {
        let mut random = Random::new(seed);
        let (mut store, mut rows) = made(&mut random, 30, segment);
        let mut changed = Vec::new();
        for _ in 0..200 {
            let line = random.below(30);
            if !rows[line].is_empty() {
                changed.push(RowPlace { line, row: random.below(rows[line].len()) });
            }
        }
        store.rewrite(&changed, |_, row| row.kind = SegmentKind::Network);
        changed.iter().for_each(|place| rows[place.line][place.row].kind = SegmentKind::Network);
        check(&mut random, &store, &rows);
    }
}

#[test]
fn leaves_with_parts_out_of_order_are_refused() {
    let rows = [Segment { kind: SegmentKind::Disk, ..segment(&mut Random::new(1), 0, Span::of_ns(0, 5)) }; 4];
    let is_read = |parts: &[(u32, usize)]| {
        let leaf = Leaf::encode(&rows, parts.iter().copied());
        Leaf::from_bytes(leaf.bytes().clone(), <Segment as crate::timeline::row::Row>::FAMILY).is_ok()
    };
    assert!(is_read(&[(0, 0), (7, 1), (9, 3)]));
    for wrong in [&[(0, 1)][..], &[(3, 0), (3, 1)], &[(4, 0), (3, 1)], &[(0, 0), (1, 0)], &[(0, 0), (1, 4)], &[]] {
        assert!(!is_read(wrong), "{wrong:?}");
    }
}
