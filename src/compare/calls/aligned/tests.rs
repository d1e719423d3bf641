//! Alignments of made-up executions: by hand, and what holds for any two.

use super::super::MOST_CALLS;
use super::super::tests::{borrowed, random, timeline};
use super::*;
use crate::base::statistics::Random;

/// Two executions of these segments, aligned.
fn of(a: &[(&str, Ns)], b: &[(&str, Ns)]) -> (Model, PairedCalls) {
    let mut model = Model::default();
    let trees = [a, b].map(|segments| {
        let timeline = timeline(&mut model, segments);
        CallTree::of(&model.contexts, &timeline, &[], MOST_CALLS)
    });
    let paired = PairedCalls::of(&model.contexts, trees, &Cancel::default()).unwrap();
    (model, paired)
}

/// Its rows as `name times|times ns|ns`, moved in by level.
fn rows(a: &[(&str, Ns)], b: &[(&str, Ns)]) -> Vec<String> {
    let (model, paired) = of(a, b);
    let name = |row: &AlignedRow| model.names.get(model.contexts.frame(row.context).name).to_owned();
    let line = |row: &AlignedRow| {
        let [a, b] = [row.a, row.b].map(|calls| calls.map_or((0, 0), |calls| (calls.times, calls.ns)));
        let unit = if row.unit > 1 { format!("+{}", row.unit - 1) } else { String::new() };
        format!("{}{}{unit} {}|{} {}|{}", " ".repeat(row.level as usize), name(row), a.0, b.0, a.1, b.1)
    };
    paired.rows.iter().map(line).collect()
}

#[test]
fn calls_are_aligned_level_by_level() {
    let a = [("p parse", 5), ("p lock wait", 50), ("p lock", 5), ("p reply", 3)];
    let b = [("p parse", 6), ("p log", 2), ("p lock", 4), ("p reply", 3)];
    let expected =
        ["p 1|1 63|15", " parse 1|1 5|6", " log 0|1 0|2", " lock 1|1 55|4", "  wait 1|0 50|0", " reply 1|1 3|3"];
    assert_eq!(rows(&a, &b), expected);
}

#[test]
fn repeats_are_one_row_with_their_calls_below() {
    let a = [("p read", 2), ("p", 1), ("p read", 3), ("p", 1), ("p read", 9), ("p write", 1)];
    let b = [("p read", 2), ("p write", 4)];
    let expected =
        ["p 1|1 17|6", " read 3|1 14|2", "  read 1|1 2|2", "  read 1|0 3|0", "  read 1|0 9|0", " write 1|1 1|4"];
    assert_eq!(rows(&a, &b), expected);
    // A unit of two, which the other has once.
    let a = [("p x", 1), ("p y", 1), ("p x", 1), ("p y", 1), ("p z", 1)];
    let b = [("p x", 5), ("p y", 5), ("p z", 1)];
    let expected =
        ["p 1|1 5|11", " x+1 2|1 4|10", "  x 1|1 1|5", "  y 1|1 1|5", "  x 1|0 1|0", "  y 1|0 1|0", " z 1|1 1|1"];
    assert_eq!(rows(&a, &b), expected);
}

#[test]
fn roots_of_different_names_are_the_same() {
    assert_eq!(rows(&[("p read", 2)], &[("q read", 3)]), ["p 1|1 2|3", " read 1|1 2|3"]);
    assert_eq!(rows(&[], &[("q read", 3)]), ["q 0|1 0|3", " read 0|1 0|3"]);
}

/// What holds for any two executions.
fn check(paired: &PairedCalls, contexts: &Contexts) {
    for of in [0, 1] {
        let tree = &paired.trees[of];
        let mut seen = vec![0; tree.calls().len()];
        for row in paired.rows.iter().filter(|row| !row.is_run()) {
            row.calls(of).into_iter().for_each(|calls| seen[calls.first as usize] += 1);
        }
        // A run of one execution may be a single call of the other, whose own row is below it.
        assert!(seen.iter().all(|n| *n == 1), "each call has a row: {seen:?}");
        for (at, call) in tree.calls().iter().enumerate() {
            let row = paired.rows[paired.row_of(of, at as u32).unwrap() as usize];
            let own = row.calls(of).unwrap();
            assert_eq!((own.first, own.ns, own.start_ns), (at as u32, call.ns, call.start_ns));
            let partner = paired.partner(of, at as u32);
            assert_eq!(partner.and_then(|partner| paired.partner(1 - of, partner)), partner.map(|_| at as u32));
        }
    }
    for (at, row) in paired.rows.iter().enumerate() {
        let end = at + row.size as usize;
        let children = paired.rows[at + 1..end].iter().filter(|child| child.parent == Some(at as u32));
        for of in [0, 1] {
            let sum: Ns = children.clone().filter_map(|child| child.calls(of)).map(|calls| calls.ns).sum();
            let whole = row.calls(of).map_or(0, |calls| calls.ns);
            assert!(if row.is_run() { sum == whole } else { sum <= whole }, "row {at}: {sum} of {whole}");
            let starts: Vec<Ns> = children.clone().filter_map(|c| c.calls(of)).map(|calls| calls.start_ns).collect();
            assert!(starts.is_sorted(), "siblings keep their order: {starts:?}");
        }
        if let (Some(a), Some(b), true) = (row.a, row.b, row.level > 0) {
            let frame = |of: usize, call: u32| contexts.frame(paired.trees[of].call(call).unwrap().context);
            assert_eq!(frame(0, a.first), frame(1, b.first));
        }
    }
    let lengths = [0, 1].map(|of| paired.length(of));
    for of in [0, 1] {
        let times: Vec<Ns> = (0..=lengths[of]).map(|at| paired.time_in_other(of, at)).collect();
        assert!(times.is_sorted(), "time goes on: {times:?}");
        assert!(times.iter().all(|at| (0..=lengths[1 - of]).contains(at)), "and stays inside: {times:?}");
    }
}

#[test]
fn each_call_has_one_row_and_pairs_keep_the_order() {
    let mut source = Random::new(3);
    for round in 0..120 {
        let [a, b] = [30, 20].map(|n| random(&mut source, n + round % 7));
        let (model, paired) = of(&borrowed(&a), &borrowed(&b));
        check(&paired, &model.contexts);
    }
}

#[test]
fn an_execution_is_aligned_with_itself_without_a_difference() {
    let mut source = Random::new(8);
    for _ in 0..40 {
        let segments = random(&mut source, 40);
        let (_, paired) = of(&borrowed(&segments), &borrowed(&segments));
        assert!(paired.rows.iter().all(|row| row.a == row.b), "{:?}", paired.rows);
        let end = paired.length(0);
        assert!((0..=end).all(|at| paired.time_in_other(0, at) == at));
    }
}

#[test]
fn linked_moments_are_at_the_same_part_of_the_same_call() {
    let a = [("p parse", 10), ("p lock", 100), ("p reply", 10)];
    let b = [("p parse", 20), ("p lock", 10), ("p reply", 10)];
    let (_, paired) = of(&a, &b);
    assert_eq!([0, 5, 10, 60, 110, 115, 120].map(|at| paired.time_in_other(0, at)), [0, 10, 20, 25, 30, 35, 40]);
    assert_eq!([25, 40].map(|at| paired.time_in_other(1, at)), [60, 120]);
    // Between the pairs before and after a call that only one has.
    let a = [("p parse", 10), ("p log", 10), ("p reply", 10)];
    let (_, paired) = of(&a, &[("p parse", 10), ("p", 2), ("p reply", 10)]);
    assert_eq!([10, 15, 20].map(|at| paired.time_in_other(0, at)), [10, 11, 12]);
}

#[test]
fn sequences_that_are_too_long_are_paired_from_the_left_and_counted() {
    let element = |name: u32| Element { name, ns: 1, run: RepeatRun { start: 0, unit: 1, count: 1 } };
    let mut source = Random::new(2);
    let mut some = |n: usize| (0..n).map(|_| element(source.below(9) as u32)).collect::<Vec<_>>();
    let (a, b) = (some(1500), some(900));
    let mut coarse = 0;
    let found = pairs(&a, &b, &mut coarse, &Cancel::default()).unwrap();
    assert_eq!(coarse, 1);
    let (mut i, mut j) = (0, 0);
    for pair in found {
        match pair {
            Paired::Both(x, y) => {
                assert_eq!((x, y, a[x].name), (i, j, b[y].name));
                (i, j) = (i + 1, j + 1);
            }
            Paired::First(x) => {
                assert_eq!(x, i);
                i += 1;
            }
            Paired::Second(y) => {
                assert_eq!(y, j);
                j += 1;
            }
        }
    }
    assert_eq!((i, j), (a.len(), b.len()));
}

#[test]
fn many_repeats_cost_little() {
    let many: Vec<(&str, Ns)> = (0..40_000).flat_map(|_| [("p read", 1), ("p", 1)]).collect();
    let (model, paired) = of(&many, &many[..60_000]);
    assert_eq!((paired.coarse, paired.rows[1].is_run()), (0, true));
    assert_eq!(paired.rows[1].a.map(|calls| calls.times), Some(40_000));
    assert_eq!(model.contexts.len(), 2);
}
