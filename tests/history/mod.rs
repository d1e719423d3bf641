//! The state history compared with a scan: every search equals a scan of all intervals, for every way of building;
//! invariants hold; the same intervals give the same tree for any workers, chunks and order.

mod lines;
mod recorded;
mod summary;
mod view;

use crate::support::{packings, random, spans};
use packings::{Kind, pack};
use proptest::prelude::*;
use spans::span;
use whyslow::parts::base::ctx::{Cancel, Ctx};
use whyslow::parts::base::names::NameId;
use whyslow::parts::base::time::{Ns, Span, Timestamp};
use whyslow::parts::state::attributes::AttributeId;
use whyslow::parts::state::history::bulk::build;
use whyslow::parts::state::history::growing::Growing;
use whyslow::parts::state::history::interval::{Interval, Run, StateValue};
use whyslow::parts::state::history::search::{When, Which};
use whyslow::parts::state::history::tree::{Depth, Shape, Tree};

fn value() -> impl Strategy<Value = StateValue> {
    prop_oneof![
        4 => (0..5u16).prop_map(StateValue::Code),
        1 => any::<i64>().prop_map(StateValue::Int),
        1 => (-3..3i64).prop_map(StateValue::Int),
        1 => (0..9u32).prop_map(|id| StateValue::Text(NameId::from_raw(id))),
    ]
}

/// One attribute's life: steps of (gap before, length, value). Most gaps are none, some intervals are very long.
fn line() -> impl Strategy<Value = Vec<(Ns, Ns, StateValue)>> {
    let gap = prop_oneof![4 => Just(0), 1 => 0..20i64];
    let length = prop_oneof![6 => 1..9i64, 2 => 1..80i64, 1 => 1..3000i64];
    prop::collection::vec((gap, length, value()), 0..14)
}

prop_compose! {
    fn intervals()(lines in prop::collection::vec((0..40i64, line()), 0..14), sparse in prop_oneof![Just(1u32), Just(1000)])
        -> Vec<Interval>
    {
        let mut all = Vec::new();
        for (attribute, (from, line)) in lines.into_iter().enumerate() {
            let mut at = from - 20;
            for (gap, length, value) in line {
                let span = span(at + gap, at + gap + length);
                all.push(Interval { attribute: AttributeId::from_raw(attribute as u32 * sparse), span, value });
                at = span.end.ns();
            }
        }
        all
    }
}

fn shape() -> impl Strategy<Value = Shape> {
    let depth = prop_oneof![3 => Just(Depth::Variable), 1 => (0..3u32).prop_map(Depth::Fixed)];
    let small = (1..7usize, 2..5usize, depth).prop_map(|(node, fanout, depth)| Shape { node, fanout, depth });
    prop_oneof![5 => small, 1 => Just(Shape::default())]
}

/// The intervals in runs of `size`, in the order that `seed` shuffles them into (0: as they are).
fn runs(intervals: &[Interval], size: usize, seed: u64) -> Vec<Run> {
    let mut all = intervals.to_vec();
    if seed > 0 {
        let hash = |i: &Interval| {
            let mixed =
                (i.span.start.ns() as u64 ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(i.attribute.raw());
            mixed.wrapping_mul(seed | 1).rotate_left(23)
        };
        all.sort_by_key(hash);
    }
    all.chunks(size.max(1))
        .map(|chunk| {
            let mut run = Run::default();
            run.extend(chunk.iter().copied());
            run
        })
        .collect()
}

fn bulk(intervals: &[Interval], shape: Shape, workers: usize, size: usize, seed: u64) -> Tree {
    build(runs(intervals, size, seed), shape, &Ctx::new(workers)).unwrap()
}

fn by_end(intervals: &[Interval]) -> impl Iterator<Item = Interval> {
    let mut by_end = intervals.to_vec();
    by_end.sort_by_key(|i| i.span.end);
    by_end.into_iter()
}

fn grown(intervals: &[Interval], shape: Shape) -> Tree {
    let mut growing = Growing::new(shape);
    for i in by_end(intervals) {
        growing.push(i.attribute, i.span, i.value);
    }
    growing.snapshot(&Ctx::new(1)).unwrap()
}

fn model(attributes: u32, each: u32) -> Vec<Interval> {
    packings::model(attributes, each).collect()
}

fn scan(intervals: &[Interval], keep: impl Fn(&Interval) -> bool) -> Vec<Interval> {
    let mut kept: Vec<_> = intervals.iter().copied().filter(keep).collect();
    kept.sort();
    kept
}

fn search(tree: &Tree, which: Which, when: When) -> Vec<Interval> {
    let mut search = tree.search(which, when, &Cancel::default());
    let mut at_once = search.clone();
    let first = at_once.next();
    let mut found: Vec<_> = search.by_ref().collect();
    assert_eq!(first.into_iter().chain(at_once.into_vec()).collect::<Vec<_>>(), found);
    assert!(search.nodes_read() <= tree.nodes(), "a node was read twice");
    found.sort();
    found
}

/// Every kind of question, at every instant where an answer can change and between.
fn answers_like_a_scan(tree: &Tree, all: &[Interval], instants: &[Timestamp], some: &[AttributeId]) {
    tree.check().unwrap();
    assert_eq!(tree.len(), all.len() as u64);
    let attributes: Vec<_> =
        all.iter().map(|i| i.attribute).chain([AttributeId::at(3), AttributeId::from_raw(7_000)]).collect();
    for t in instants {
        for attribute in &attributes {
            let scanned = all.iter().copied().find(|i| i.attribute == *attribute && i.span.contains(*t));
            assert_eq!(tree.at(*attribute, *t), scanned, "{attribute:?} at {t}");
        }
        assert_eq!(search(tree, Which::ALL, When::at(*t)), scan(all, |i| i.span.contains(*t)));
    }
    let at_one = |i: &Interval| instants.iter().any(|t| i.span.contains(*t));
    let chosen = |i: &Interval| some.contains(&i.attribute);
    let these = || Which::these(some.iter().copied());
    let at_all = || When::instants(instants.iter().copied());
    assert_eq!(search(tree, these(), at_all()), scan(all, |i| chosen(i) && at_one(i)));
    assert_eq!(search(tree, Which::ALL, at_all()), scan(all, at_one));
    assert_eq!(search(tree, these(), When::ALWAYS), scan(all, chosen));
    for span in instants.windows(2).map(|two| Span::new(two[0], two[1])) {
        let meets = |i: &Interval| !span.is_empty() && i.span.start < span.end && span.start < i.span.end;
        assert_eq!(search(tree, these(), When::within(span)), scan(all, |i| chosen(i) && meets(i)));
        assert_eq!(search(tree, Which::ALL, When::within(span)), scan(all, meets));
        for attribute in some {
            let range = Which::range(AttributeId::from_raw(attribute.raw() / 2), *attribute);
            let inside = |i: &Interval| attribute.raw() / 2 <= i.attribute.raw() && i.attribute <= *attribute;
            assert_eq!(search(tree, range, When::within(span)), scan(all, |i| inside(i) && meets(i)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn searches_equal_a_scan(
        all in intervals(),
        shape in shape(),
        size in 1..60usize,
        instants in prop::collection::vec(-30..400i64, 1..8),
        some in prop::collection::vec((0..14u32, prop_oneof![Just(1u32), Just(1000)]), 0..6),
    ) {
        let instants: Vec<Timestamp> = instants.into_iter().map(Timestamp::new).collect();
        let some: Vec<_> = some.into_iter().map(|(at, sparse)| AttributeId::from_raw(at * sparse)).collect();
        answers_like_a_scan(&bulk(&all, shape, 1, size, 0), &all, &instants, &some);
        answers_like_a_scan(&grown(&all, shape), &all, &instants, &some);
        for kind in [Kind::Classic, Kind::Esht] {
            answers_like_a_scan(&pack(by_end(&all), kind, shape).unwrap(), &all, &instants, &some);
        }
    }

    #[test]
    fn history_does_not_depend_on_workers_chunks_or_order(all in intervals(), shape in shape(), seed in 1..u64::MAX) {
        let one = bulk(&all, shape, 1, usize::MAX, 0);
        for (workers, size) in [(1, 1), (2, 7), (3, 20), (7, 3)] {
            prop_assert_eq!(&bulk(&all, shape, workers, size, 0), &one);
            prop_assert_eq!(&bulk(&all, shape, workers, size, seed), &one);
        }
    }
}

#[test]
fn large_history_does_not_depend_on_workers_or_order() {
    let all = model(3_000, 100);
    let shape = Shape { node: 256, fanout: 8, depth: Depth::Variable };
    let one = bulk(&all, shape, 1, usize::MAX, 0);
    one.check().unwrap();
    assert_eq!(one.depth(), 6);
    for (workers, size, seed) in [(2, 10_000, 0), (3, 77_777, 5), (7, 1_000, 99), (2, usize::MAX, 7)] {
        assert_eq!(bulk(&all, shape, workers, size, seed), one);
    }
    assert!(one.size() < 20 * all.len(), "{} bytes", one.size());
    let at = search(&one, Which::ALL, When::at(Timestamp::new(1_234_567)));
    assert_eq!(at, scan(&all, |i| i.span.contains(Timestamp::new(1_234_567))));
    assert_eq!(at.len(), 3_000);
    for tree in [grown(&all, shape), pack(by_end(&all), Kind::Classic, shape).unwrap()] {
        tree.check().unwrap();
        assert_eq!(search(&tree, Which::ALL, When::at(Timestamp::new(1_234_567))), at);
    }
}

#[test]
fn intervals_that_end_together_are_cut_exactly() {
    let all: Vec<_> = (0..300_000u32)
        .map(|i| Interval {
            attribute: AttributeId::from_raw(i),
            span: span(i64::from(i % 7), 10),
            value: StateValue::Code(1),
        })
        .collect();
    for shape in [Shape::default(), Shape { node: 100, fanout: 4, depth: Depth::Fixed(0) }] {
        let one = bulk(&all, shape, 1, usize::MAX, 0);
        one.check().unwrap();
        assert_eq!(bulk(&all, shape, 2, 9_999, 3), one);
    }
}

/// The worked example of ALGORITHMS.md 8.6: n = 2, c = 2, four attributes.
#[test]
fn worked_example_has_two_r_trees_under_one_root() {
    let all: Vec<_> = (0..4u32)
        .flat_map(|k| {
            let cut = 4 + i64::from(k);
            [(0, cut), (cut, 10)].map(|(start, end)| Interval {
                attribute: AttributeId::from_raw(k),
                span: span(start, end),
                value: StateValue::Code(0),
            })
        })
        .collect();
    let tree = bulk(&all, Shape { node: 2, fanout: 2, depth: Depth::Variable }, 1, 8, 0);
    tree.check().unwrap();
    assert_eq!((tree.nodes(), tree.depth()), (7, 3));
    let mut single = tree.search(Which::these([AttributeId::at(2)]), When::at(Timestamp::new(6)), &Cancel::default());
    assert_eq!(single.next().map(|i| i.span), Some(span(6, 10)));
    assert_eq!(single.nodes_read(), 5);
    let mut single = tree.search(Which::these([AttributeId::at(0)]), When::at(Timestamp::new(2)), &Cancel::default());
    assert_eq!(single.next().map(|i| i.span), Some(span(0, 4)));
    assert_eq!(single.nodes_read(), 3);
}

#[test]
fn tree_of_no_intervals_is_empty() {
    let tree = build(Vec::new(), Shape::default(), &Ctx::new(2)).unwrap();
    tree.check().unwrap();
    assert_eq!((tree.len(), tree.nodes(), tree.depth()), (0, 0, 0));
    assert_eq!(tree.at(AttributeId::at(0), Timestamp::ZERO), None);
    assert_eq!(search(&tree, Which::ALL, When::ALWAYS), []);
}

#[test]
fn extreme_times_are_stored() {
    let interval = |attribute, start, end| Interval {
        attribute: AttributeId::from_raw(attribute),
        span: span(start, end),
        value: StateValue::Int(i64::MIN),
    };
    let all = [interval(0, Ns::MIN, Ns::MAX), interval(1, Ns::MIN, Ns::MIN + 1), interval(1, Ns::MAX - 1, Ns::MAX)];
    let instants = [Ns::MIN, Ns::MIN + 1, 0, Ns::MAX - 1, Ns::MAX].map(Timestamp::new);
    for tree in [bulk(&all, Shape::default(), 1, 1, 0), grown(&all, Shape { node: 1, ..Shape::default() })] {
        answers_like_a_scan(&tree, &all, &instants, &[AttributeId::at(0), AttributeId::at(1)]);
    }
}

#[test]
fn search_and_build_end_when_cancelled() {
    let all = model(500, 20);
    let work = Ctx::new(2);
    let tree = build(runs(&all, 1000, 0), Shape { node: 16, ..Shape::default() }, &work).unwrap();
    let mut search = tree.search(Which::ALL, When::ALWAYS, &work.cancel);
    assert!(search.next().is_some());
    work.cancel.cancel();
    assert!(search.count() < all.len() / 2);
    assert!(build(runs(&all, 1000, 0), Shape::default(), &work).is_err());
}

/// Nothing is read after a cancel, neither one by one nor at once.
#[test]
fn cancelled_search_reads_no_more_nodes() {
    let all = model(500, 20);
    let tree = build(runs(&all, 1000, 0), Shape { node: 16, ..Shape::default() }, &Ctx::new(1)).unwrap();
    for when in [When::ALWAYS, When::instants((0..100).map(|i| Timestamp::new(i * 5_000)))] {
        let cancel = Cancel::default();
        let mut search = tree.search(Which::ALL, when, &cancel);
        assert_eq!(search.by_ref().take(100).count(), 100);
        let read = search.nodes_read();
        cancel.cancel();
        // Intervals that were read are still given.
        assert!(search.by_ref().count() <= 16);
        assert_eq!(search.nodes_read(), read);
    }
}

/// Cancel each long stage in its middle, again and again, and print the longest time that it took to end.
#[test]
#[ignore = "measures time; by hand, on a quiet machine, in release"]
fn stages_end_within_a_tenth_of_a_second_of_a_cancel() {
    use std::time::{Duration, Instant};
    use whyslow::parts::state::summary::Summary;
    let many = model(100_000, 30);
    let few = model(100, 30_000);
    let ends_at_once: Vec<_> = (0..3_000_000u32)
        .map(|i| Interval {
            attribute: AttributeId::from_raw(i),
            span: span(i64::from(i % 7), 10),
            value: StateValue::Code(1),
        })
        .collect();
    let stage = |name: &str, run: &(dyn Fn(&Ctx) + Sync), workers: usize| {
        let start = Instant::now();
        run(&Ctx::new(workers));
        let whole = start.elapsed();
        let mut longest = Duration::ZERO;
        for tenth in 1..10 {
            let work = Ctx::new(workers);
            let late = std::thread::scope(|scope| {
                let run = scope.spawn(|| {
                    run(&work);
                    Instant::now()
                });
                std::thread::sleep(whole * tenth / 10);
                let asked = Instant::now();
                work.cancel.cancel();
                run.join().unwrap().saturating_duration_since(asked)
            });
            longest = longest.max(late);
        }
        println!("{name}, {workers} workers: {whole:.1?} in all, {longest:.1?} after a cancel");
        assert!(longest < Duration::from_millis(100), "{name}: {longest:?}");
    };
    for workers in [1, 2] {
        for (name, all) in [("many attributes", &many), ("few attributes", &few), ("all end at once", &ends_at_once)] {
            // The runs of a real analysis: one per chunk.
            let runs = std::sync::Mutex::new(vec![runs(all, 300_000, 0); 10]);
            let build = |work: &Ctx| drop(build(runs.lock().unwrap().pop().unwrap(), Shape::default(), work));
            stage(&format!("build, {name}"), &build, workers);
            let tree = bulk(all, Shape::default(), 2, 300_000, 0);
            let everything = |work: &Ctx| drop(tree.search(Which::ALL, When::ALWAYS, &work.cancel).into_vec());
            stage(&format!("everything, {name}"), &everything, workers);
            let instants = || When::instants((0..2_000).map(|i| tree.span().start + tree.span().len() / 2_000 * i));
            let grid = |work: &Ctx| drop(tree.search(Which::ALL, instants(), &work.cancel).into_vec());
            stage(&format!("2,000 instants, {name}"), &grid, workers);
            stage(&format!("summary, {name}"), &|work| drop(Summary::build(&tree, work)), workers);
        }
    }
}
