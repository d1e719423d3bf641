//! Linked histograms: 15 metrics, all histograms current after each move. The reference is a recount of everything
//! in the same run; crossfilter's figures on a machine of this kind: 0.7 ms for a window moved by a
//! tenth and 605 to 1,120 ms for outliers against mode, at a million executions.

#[path = "../tests/support/random.rs"]
mod random;

use random::Random;
use std::hint::black_box;
use std::time::Instant;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::model::histogram::ValueRange;
use whyslow::parts::model::metric::{Column, Metric};
use whyslow::parts::model::selection::{Linked, Selection};

const METRICS: usize = 15;

fn milliseconds(times: usize, mut run: impl FnMut(usize)) -> f64 {
    let mut all: Vec<f64> = (0..times)
        .map(|i| {
            let start = Instant::now();
            run(i);
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

fn main() {
    for n in [200_000, 1_000_000] {
        let mut random = Random::new(1);
        let columns: Vec<Column> = (0..METRICS)
            .map(|m| {
                // Every other metric is uniform, the rest a mode with 2.5 % outliers.
                let value = |r: &mut Random| {
                    let spread = if m % 2 == 0 || r.below(40) == 0 { 1_000_000 } else { 1_000 };
                    r.below(spread) as i64
                };
                let values = (0..n).map(|_| value(&mut random)).collect();
                Column { metric: Metric::Field(format!("m{m}")), values }
            })
            .collect();
        let start = Instant::now();
        let Ok(linked) = Linked::new(&columns, &Ctx::new(0)) else { return };
        let loading = start.elapsed().as_secs_f64() * 1e3;
        let mut group = Selection::new(&linked);
        let window = |at: i64| Some(ValueRange { from: at, to: at + 4_000_000_000 / n as i64 });
        let recount = milliseconds(9, |_| group.exclude(&linked, |_| false));
        group.select(&linked, 0, window(0));
        let moved = milliseconds(200, |i| group.select(&linked, 0, window(400_000_000 / n as i64 * i as i64)));
        let jumped = milliseconds(50, |i| group.select(&linked, 0, window((i as i64 * 7919) % 990 * 1000)));
        group.select(&linked, 0, None);
        let modes = [Some(ValueRange { from: 0, to: 1_000 }), Some(ValueRange { from: 1_000, to: 1_000_000 })];
        let switched = milliseconds(20, |i| group.select(&linked, 1, modes[i % 2]));
        let cleared = milliseconds(20, |i| group.select(&linked, 1, modes[1].filter(|_| i % 2 == 0)));
        black_box(&group);
        println!("{n} executions, {METRICS} metrics: loading {loading:.0} ms, recount {recount:.2} ms");
        for (what, ms) in [
            ("window moved by a tenth", moved),
            ("window jumps", jumped),
            ("outliers or mode", switched),
            ("range set or cleared", cleared),
        ] {
            println!("  {what:25} {ms:8.3} ms = {:.3} of a recount", ms / recount);
        }
    }
}
