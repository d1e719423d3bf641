//! The differential tree of small models, and its worked example.

use super::*;
use crate::compare::scenario::{ModelBuilder, lock_contention};

fn all(model: &Model, slow: impl Fn(usize) -> bool) -> (Vec<ExecutionId>, Vec<ExecutionId>) {
    (0..model.executions.len()).map(ExecutionId::at).partition(|e| slow(e.index()))
}

fn built(model: &Model, slow: impl Fn(usize) -> bool) -> BuiltTree {
    let (slow, fast) = all(model, slow);
    let mut built = build(&GroupPair::new(model, &slow, &fast, &Cancel::default())).unwrap();
    built.correct(&mut []);
    built
}

/// The worked example of ALGORITHMS.md 7.3, in milliseconds.
#[test]
fn build_gives_the_deviations_of_the_worked_example() {
    let mut s = ModelBuilder::new(1);
    for d in [10, 12, 11, 9, 8, 14, 15, 16] {
        s.run("x", "p", "p", 1, &[("p;main", d * 1_000_000)]);
    }
    let b = built(&s.seal(), |i| i >= 5);
    let root = &b.tree.nodes[0];
    assert!((root.deviations.unwrap() - 3.5355).abs() < 1e-3 && root.delta_ns == 5e6);
    // Of the 56 splits, this and its mirror image's absence: only one has a difference of 5.
    assert!((root.p_value.unwrap() - 1.0 / 56.0).abs() < 1e-9, "{root:?}");
}

#[test]
fn build_gives_nodes_in_pre_order_that_add_up() {
    let model = lock_contention(3, 18.0);
    let b = built(&model, |i| model.executions.duration(i) > 6_000_000);
    let nodes = &b.tree.nodes;
    for (at, node) in nodes.iter().enumerate() {
        let mut children = Vec::new();
        let mut next = at + 1;
        while next < at + node.size as usize {
            assert_eq!(nodes[next].parent, Some(at as u32));
            children.push(next);
            next += nodes[next].size as usize;
        }
        assert_eq!(next, at + node.size as usize);
        let names: Vec<String> = children.iter().map(|c| frame_text(&model, nodes[*c].context)).collect();
        assert!(names.is_sorted(), "{names:?}");
        let parts: f64 = children.iter().map(|c| nodes[*c].delta_ns).sum::<f64>() + node.self_delta_ns;
        assert!((parts - node.delta_ns).abs() < 1.0, "{parts} {}", node.delta_ns);
    }
    assert_eq!(nodes[0].size as usize, nodes.len());
    let lock = nodes.iter().find(|n| frame_text(&model, n.context) == "expensive_flush").unwrap();
    assert!(lock.p_value.unwrap() < 1e-6 && lock.slow_affected > 0.3 && lock.fast_affected < 0.01, "{lock:?}");
}

#[test]
fn build_negates_differences_of_swapped_groups() {
    let model = lock_contention(4, 18.0);
    let slow = |i: usize| model.executions.duration(i) > 6_000_000;
    let (a, b) = (built(&model, slow), built(&model, |i| !slow(i)));
    for (x, y) in a.tree.nodes.iter().zip(&b.tree.nodes) {
        assert_eq!((x.context, x.delta_ns, x.self_delta_ns), (y.context, -y.delta_ns, -y.self_delta_ns));
        assert_eq!(x.p_value.map(|p| (p * 1e9) as i64), y.p_value.map(|p| (p * 1e9) as i64));
    }
}

#[test]
fn build_gives_no_deviations_of_a_lone_execution() {
    let mut s = ModelBuilder::new(1);
    s.run("x", "p", "p", 1, &[("p;main", 5)]);
    s.run("x", "p", "p", 1, &[("p;main", 9)]);
    let b = built(&s.seal(), |i| i == 1);
    assert_eq!((b.tree.nodes[0].deviations, b.tree.nodes[0].p_value), (None, Some(1.0)));
}
