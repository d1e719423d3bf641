//! The time in each state in any window equals the sum over all intervals.

use super::*;
use whyslow::parts::state::summary::{Summary, Times, most};

fn summed(all: &[Interval], attribute: AttributeId, window: Span) -> Times {
    let mut times = Times::new();
    for i in all.iter().filter(|i| i.attribute == attribute) {
        let both = i.span.clip(window);
        if let (StateValue::Code(code), false) = (i.value, both.is_empty()) {
            *times.entry(code).or_default() += both.len() as u64;
        }
    }
    times
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn summary_of_any_window_equals_the_sum(
        lines in prop::collection::vec(prop::collection::vec((0..3i64, 1..20i64, value()), 0..200), 1..4),
        scale in prop_oneof![Just(1i64), Just(7), Just(1 << 21)],
        windows in prop::collection::vec((-100..4000i64, 0..4000i64), 1..20),
    ) {
        let mut all = Vec::new();
        for (attribute, line) in lines.iter().enumerate() {
            let mut at = -50;
            for (gap, length, value) in line {
                let span = span((at + gap) * scale, (at + gap + length) * scale);
                all.push(Interval { attribute: AttributeId::from_raw(attribute as u32), span, value: *value });
                at += gap + length;
            }
        }
        let tree = bulk(&all, Shape { node: 64, ..Shape::default() }, 1, 1000, 0);
        let summary = Summary::build(&tree, &Ctx::new(1)).unwrap();
        prop_assert_eq!(&Summary::build(&tree, &Ctx::new(3)).unwrap(), &summary);
        for attribute in (0..4).map(AttributeId::from_raw) {
            for (from, length) in &windows {
                let window = span(from * scale - 1, (from + length) * scale);
                prop_assert_eq!(summary.times(&tree, attribute, window), summed(&all, attribute, window));
            }
        }
    }
}

#[test]
fn summary_of_wide_windows_reads_cells() {
    let all = model(10, 10_000);
    let tree = bulk(&all, Shape::default(), 2, 10_000, 0);
    let summary = Summary::build(&tree, &Ctx::new(2)).unwrap();
    let window = span(12_345, 987_654);
    assert_eq!(summary.times(&tree, AttributeId::at(3), window), summed(&all, AttributeId::at(3), window));
    assert!((1..all.len() / 4).contains(&summary.cells_stored()), "{}", summary.cells_stored());
}

#[test]
fn summary_gives_ties_to_the_lower_code() {
    assert_eq!(most(&Times::from([(1, 5), (2, 9), (4, 9)])), Some(2));
    assert_eq!(most(&Times::new()), None);
}
