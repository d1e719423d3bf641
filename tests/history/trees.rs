//! The plain state history trees of the thesis compared with a scan of all intervals: they are the oracle of the state
//! history, and what `benches/history.rs` compares it with.

use crate::support::packings::{self, Kind, pack};
use crate::support::rsht::build::build;
use crate::support::rsht::interval::{Interval, Run};
use crate::support::rsht::search::{When, Which};
use crate::support::rsht::tree::{Depth, Shape, Tree};
use crate::support::spans::span;
use proptest::prelude::*;
use whyslow::parts::base::names::NameId;
use whyslow::parts::base::time::{Ns, Span, Timestamp};
use whyslow::parts::timeline::attributes::AttributeId;
use whyslow::parts::timeline::history::StateValue;

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

fn bulk(intervals: &[Interval], shape: Shape) -> Tree {
    let mut run = Run::default();
    run.extend(intervals.iter().copied());
    build(run, shape)
}

fn by_end(intervals: &[Interval]) -> impl Iterator<Item = Interval> {
    let mut by_end = intervals.to_vec();
    by_end.sort_by_key(|i| i.span.end);
    by_end.into_iter()
}

fn scan(intervals: &[Interval], keep: impl Fn(&Interval) -> bool) -> Vec<Interval> {
    let mut kept: Vec<_> = intervals.iter().copied().filter(keep).collect();
    kept.sort();
    kept
}

fn search(tree: &Tree, which: Which, when: When) -> Vec<Interval> {
    let mut search = tree.search(which, when);
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
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn searches_equal_a_scan(
        all in intervals(),
        shape in shape(),
        instants in prop::collection::vec(-30..400i64, 1..8),
        some in prop::collection::vec((0..14u32, prop_oneof![Just(1u32), Just(1000)]), 0..6),
    ) {
        let instants: Vec<Timestamp> = instants.into_iter().map(Timestamp::new).collect();
        let some: Vec<_> = some.into_iter().map(|(at, sparse)| AttributeId::from_raw(at * sparse)).collect();
        answers_like_a_scan(&bulk(&all, shape), &all, &instants, &some);
        for kind in [Kind::Classic, Kind::Esht] {
            answers_like_a_scan(&pack(by_end(&all), kind, shape), &all, &instants, &some);
        }
    }
}

#[test]
fn large_history_is_searched_at_an_instant() {
    let all: Vec<Interval> = packings::model(3_000, 100).collect();
    let shape = Shape { node: 256, fanout: 8, depth: Depth::Variable };
    let one = bulk(&all, shape);
    one.check().unwrap();
    assert_eq!(one.depth(), 6);
    assert!(one.size() < 20 * all.len(), "{} bytes", one.size());
    let at = search(&one, Which::ALL, When::at(Timestamp::new(1_234_567)));
    assert_eq!(at, scan(&all, |i| i.span.contains(Timestamp::new(1_234_567))));
    assert_eq!(at.len(), 3_000);
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
    let tree = bulk(&all, Shape { node: 2, fanout: 2, depth: Depth::Variable });
    tree.check().unwrap();
    assert_eq!((tree.nodes(), tree.depth()), (7, 3));
    let mut single = tree.search(Which::these([AttributeId::at(2)]), When::at(Timestamp::new(6)));
    assert_eq!(single.next().map(|i| i.span), Some(span(6, 10)));
    assert_eq!(single.nodes_read(), 5);
    let mut single = tree.search(Which::these([AttributeId::at(0)]), When::at(Timestamp::new(2)));
    assert_eq!(single.next().map(|i| i.span), Some(span(0, 4)));
    assert_eq!(single.nodes_read(), 3);
}

#[test]
fn tree_of_no_intervals_is_empty() {
    let tree = build(Run::default(), Shape::default());
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
    for tree in [bulk(&all, Shape::default()), bulk(&all, Shape { node: 1, ..Shape::default() })] {
        answers_like_a_scan(&tree, &all, &instants, &[AttributeId::at(0), AttributeId::at(1)]);
    }
}
