//! The fast algorithm equals the obvious slow one, on generated inputs.

use proptest::prelude::*;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::statistics::{Sums, divide_rounded, mann_whitney, nearest_rank};
use whyslow::parts::model::histogram::ValueRange;
use whyslow::parts::model::metric::{ABSENT, Column, Metric};
use whyslow::parts::model::selection::{Linked, Selection};

const METRICS: usize = 4;

/// Columns with many equal and some absent values.
fn columns() -> impl Strategy<Value = Vec<Column>> {
    let value = prop_oneof![4 => -5..40_i64, 1 => Just(7), 1 => Just(ABSENT), 1 => 0..1_000_000_000_i64];
    proptest::collection::vec(proptest::collection::vec(value, METRICS), 1..120).prop_map(|rows| {
        (0..METRICS)
            .map(|m| Column {
                metric: if m == 0 { Metric::Duration } else { Metric::Field(format!("f{m}")) },
                values: rows.iter().map(|r| r[m]).collect(),
            })
            .collect()
    })
}

fn moves() -> impl Strategy<Value = Vec<(usize, Option<ValueRange>)>> {
    let range = proptest::option::of(
        (-10..60_i64, 0..60_i64).prop_map(|(from, length)| ValueRange { from, to: from + length }),
    );
    proptest::collection::vec((0..METRICS, range), 1..30)
}

/// Counts by the definition: executions that pass all ranges but the metric's own.
fn slow_counts(columns: &[Column], ranges: &[Option<ValueRange>], linked: &Linked, axis: usize) -> Vec<u32> {
    let bins = &linked.axes()[axis].bins;
    let mut counts = vec![0; bins.len()];
    for i in 0..columns[0].values.len() {
        let passes = |m: usize| {
            let v = columns[m].values.get(i).unwrap();
            m == axis || ranges[m].is_none_or(|range| v != ABSENT && range.from <= v && v < range.to)
        };
        if let Some(bin) = bins.of(columns[axis].values.get(i).unwrap()).filter(|_| (0..METRICS).all(passes)) {
            counts[bin] += 1;
        }
    }
    counts
}

proptest! {
    #[test]
    fn linked_histograms_equal_a_recount(columns in columns(), moves in moves(), threads in 1..4_usize) {
        let linked = Linked::new(&columns, &Ctx::new(threads)).unwrap();
        let mut selection = Selection::new(&linked);
        let initial = selection.clone();
        let mut ranges = [None; METRICS];
        for (axis, range) in moves {
            selection.select(&linked, axis, range);
            ranges[axis] = range;
            for m in 0..METRICS {
                prop_assert_eq!(selection.counts(&linked, m), slow_counts(&columns, &ranges, &linked, m));
            }
            let inside = |i: &usize| (0..METRICS).all(|m| {
                let v = columns[m].values.get(*i).unwrap();
                ranges[m].is_none_or(|range| v != ABSENT && range.from <= v && v < range.to)
            });
            let members: Vec<usize> = (0..linked.executions()).filter(inside).collect();
            prop_assert_eq!(selection.passing(), members.len());
            let found: Vec<usize> = selection.members().iter().map(|e| e.index()).collect();
            prop_assert_eq!(found, members);
        }
        for axis in 0..METRICS {
            selection.select(&linked, axis, None);
        }
        prop_assert_eq!(selection, initial);
    }

    #[test]
    fn exclude_keeps_the_ranges(columns in columns(), out in 0..7_u32) {
        let linked = Linked::new(&columns, &Ctx::new(1)).unwrap();
        let mut selection = Selection::new(&linked);
        selection.select(&linked, 1, Some(ValueRange { from: 0, to: 20 }));
        let before = selection.clone();
        selection.exclude(&linked, |e| e.raw() % 7 == out);
        prop_assert!(selection.members().iter().all(|e| e.raw() % 7 != out));
        selection.exclude(&linked, |_| false);
        prop_assert_eq!(selection, before);
    }

    #[test]
    fn sums_equal_the_definition(values in proptest::collection::vec(0..10_000_u64, 2..60)) {
        let mut sums = Sums::zeros(values.len() as u64);
        values.iter().for_each(|v| sums.put(*v));
        let n = values.len() as f64;
        let mean = values.iter().sum::<u64>() as f64 / n;
        let scatter: f64 = values.iter().map(|v| (*v as f64 - mean).powi(2)).sum();
        prop_assert!((sums.mean() - mean).abs() < 1e-9);
        prop_assert!((sums.population_variance() - scatter / n).abs() < 1e-6 * (1.0 + scatter));
        prop_assert!((sums.sample_variance() - scatter / (n - 1.0)).abs() < 1e-6 * (1.0 + scatter));
    }

    #[test]
    fn mann_whitney_counts_pairs(mut a in proptest::collection::vec(0..12_i64, 1..25), mut b in proptest::collection::vec(0..12_i64, 1..25)) {
        let pairs = a.iter().flat_map(|x| b.iter().map(move |y| (x, y)));
        let u: f64 = pairs.map(|(x, y)| if y > x { 1.0 } else if y == x { 0.5 } else { 0.0 }).sum();
        let (ab, ba) = (mann_whitney(&mut a, &mut b).unwrap(), mann_whitney(&mut b, &mut a).unwrap());
        prop_assert_eq!(ab.u, u);
        prop_assert!((0.0..=1.0).contains(&ab.p) && (ab.p - ba.p).abs() < 1e-12);
        prop_assert!((ab.superiority + ba.superiority - 1.0).abs() < 1e-12);
    }

    #[test]
    fn nearest_rank_is_the_least_value_with_enough_below(mut v in proptest::collection::vec(-50..50_i64, 1..60), p in 0..=100_u32) {
        v.sort_unstable();
        let enough = |x: i64| v.iter().filter(|y| **y <= x).count() * 100 >= p as usize * v.len();
        let least = v.iter().copied().find(|x| enough(*x));
        prop_assert_eq!(nearest_rank(&v, f64::from(p)), least);
    }

    #[test]
    fn divide_rounded_is_nearest(n in -10_000..10_000_i128, d in 1..50_u128) {
        let q = i128::from(divide_rounded(n, d));
        prop_assert!((n - q * d as i128).abs() * 2 <= d as i128);
    }
}
