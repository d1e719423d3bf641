//! The state history on the interval model of the R-SHT thesis ([002] Fig. 4.6): build, memory, and the three queries, for the
//! classic SHT, the eSHT, the R-SHT of fixed depth and ours. Printed with their ratio to the eSHT of the same run.
//!
//! `cargo bench --bench history` takes about two minutes; `-- 100000x100` measures one size only.
#![allow(clippy::unwrap_used)]

#[path = "history/packings.rs"]
mod packings;

use packings::{Kind, Random, model, pack};
use std::hint::black_box;
use std::time::{Duration, Instant};
use whyslow::base::work::{Cancel, Work};
use whyslow::state::attributes::AttributeId;
use whyslow::state::history::bulk::build;
use whyslow::state::history::growing::Growing;
use whyslow::state::history::interval::{Interval, Run};
use whyslow::state::history::search::{When, Which};
use whyslow::state::history::tree::{Depth, Shape, Tree};

struct Row {
    name: String,
    build: Duration,
    tree: Tree,
    single: Duration,
    single_mean: Duration,
    full: Duration,
    copy: Duration,
    many: Duration,
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    for (attributes, each) in [(1_000, 10_000), (10_000, 1_000), (100_000, 100), (1_000_000, 10)] {
        let size = format!("{attributes}x{each}");
        if wanted.is_empty() || wanted.contains(&size) {
            measure(attributes, each);
        }
    }
}

fn measure(attributes: u32, each: u32) {
    let all: Vec<Interval> = model(attributes, each).collect();
    println!("\n{attributes} attributes x {each} intervals each: {} intervals", all.len());
    println!(
        "{:<28} {:>8} {:>7} {:>6} {:>6} {:>9} {:>9} {:>9} {:>6} {:>9}",
        "tree", "build", "bytes/i", "nodes", "depth", "single", "(mean)", "full", "/copy", "2D"
    );
    let variable = Shape::default();
    let mut rows = Vec::new();
    let mut row = |name: &str, times: usize, make: &dyn Fn() -> (Duration, Tree)| {
        let row = query(name, times, make, attributes);
        print(&row, all.len(), rows.first());
        rows.push(row);
    };
    row("eSHT", 1, &|| timed(|| pack(all.iter().copied(), Kind::Esht, variable).unwrap()));
    if attributes <= 1_000 {
        row("classic SHT", 1, &|| timed(|| pack(all.iter().copied(), Kind::Classic, variable).unwrap()));
    }
    for r in [1, 2, 3] {
        let shape = Shape { depth: Depth::Fixed(r), ..variable };
        // The thesis counts levels, the handbook edges.
        row(&format!("R-SHT, {} levels", r + 1), 1, &|| bulk(&all, shape, 2, 0));
    }
    row("ours, 2 workers", 5, &|| bulk(&all, variable, 2, 0));
    row("ours, 1 worker", 3, &|| bulk(&all, variable, 1, 0));
    row("ours, 2 workers, shuffled", 3, &|| bulk(&all, variable, 2, 1));
    row("ours, growing", 1, &|| {
        timed(|| {
            let mut growing = Growing::new(variable);
            all.iter().for_each(|i| growing.push(i.attribute, i.span, i.value));
            growing.snapshot(&Work::new(1)).unwrap()
        })
    });
}

fn timed<T>(make: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let made = make();
    (start.elapsed(), made)
}

/// Runs of sixteen chunks, each in order of end as a machine closes them, or shuffled; only the build is timed.
fn bulk(all: &[Interval], shape: Shape, workers: usize, seed: u64) -> (Duration, Tree) {
    let mut all = all.to_vec();
    let mut random = Random(seed);
    for at in (1..all.len()).rev().filter(|_| seed > 0) {
        all.swap(at, random.below(at as u64 + 1) as usize);
    }
    let run = |chunk: &[Interval]| {
        let mut run = Run::default();
        run.extend(chunk.iter().copied());
        run
    };
    let runs = all.chunks(all.len().div_ceil(16)).map(run).collect();
    drop(all);
    timed(|| build(runs, shape, &Work::new(workers)).unwrap())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn query(name: &str, times: usize, make: &dyn Fn() -> (Duration, Tree), attributes: u32) -> Row {
    let (first, tree) = make();
    let mut builds = vec![first];
    builds.extend((1..times).map(|_| make().0));
    let span = tree.span();
    let mut random = Random(42);
    let mut instant = || span.start + random.below(span.len() as u64) as i64;
    let instants: Vec<i64> = (0..20_000).map(|_| instant()).collect();
    let mut random = Random(7);
    let mut attribute = || AttributeId(random.below(u64::from(attributes)) as u32);

    let singles: Vec<Duration> = instants
        .iter()
        .map(|t| {
            let attribute = attribute();
            timed(|| black_box(tree.at(attribute, *t)).unwrap()).0
        })
        .collect();
    let single_mean = singles.iter().sum::<Duration>() / singles.len() as u32;
    let never = Cancel::default();
    let ask = |t: &i64| tree.search(Which::ALL, When::at(*t), &never).into_vec();
    let asked = &instants[..21];
    let full = asked.iter().map(|t| timed(|| black_box(ask(t)).len()).0).collect();
    // All results are made first: so a copy, like the query, finds its source in memory and not in the cache.
    let results: Vec<_> = asked.iter().map(ask).collect();
    assert!(results.iter().all(|found| found.len() == attributes as usize));
    let copy = results.iter().map(|found| timed(|| black_box(found.to_vec()).len()).0).collect();
    let many = (0..9).map(|_| {
        let which = Which::these((0..100).map(|_| attribute()));
        let step = span.len() / 2_000;
        let when = When::instants((0..2_000).map(|i| span.start + i * step));
        timed(|| black_box(tree.search(which, when, &never).into_vec())).0
    });
    let many = median(many.collect());
    Row {
        name: name.to_owned(),
        build: median(builds),
        single: median(singles),
        single_mean,
        full: median(full),
        copy: median(copy),
        many,
        tree,
    }
}

fn print(row: &Row, intervals: usize, reference: Option<&Row>) {
    let rate = |row: &Row| intervals as f64 / row.build.as_secs_f64() / 1e6;
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    println!(
        "{:<28} {:>6.1}M {:>7.2} {:>6} {:>6} {:>7.2}us {:>7.2}us {:>7.0}us {:>6.2} {:>7.2}ms",
        row.name,
        rate(row),
        row.tree.size() as f64 / intervals as f64,
        row.tree.nodes(),
        row.tree.depth(),
        us(row.single),
        us(row.single_mean),
        us(row.full),
        us(row.full) / us(row.copy),
        us(row.many) / 1e3,
    );
    if let Some(reference) = reference {
        println!(
            "{:<28} {:>6.1}x {:>7.2}x {:>28.1}x {:>18.1}x {:>17.1}x",
            "  against the eSHT",
            rate(row) / rate(reference),
            reference.tree.size() as f64 / row.tree.size() as f64,
            us(reference.single) / us(row.single),
            us(reference.full) / us(row.full),
            us(reference.many) / us(row.many),
        );
    }
}
