//! Table 1 of the COMPAS 2015 paper on the recorded NPB class A runs: events, detection time, patterns, selected,
//! anomalies, sources, longest path; beside the paper's figures and beside Pallas, a recorder that finds patterns while
//! it records, whose detection was timed on the same recordings (one thread, CPU). Needs the corpus in
//! `target/corpus` or where `WHYSLOW_CORPUS` points.

use std::path::PathBuf;
use std::time::{Duration, Instant};
use whyslow::parts::analysis::patterns::{PatternAnalysis, grammar};
use whyslow::parts::base::ctx::{Cancel, Ctx};
use whyslow::parts::delays::anomalies;
use whyslow::parts::event::mpi;
use whyslow::parts::event::operation::Operations;
use whyslow::parts::input::otf2::Archive;
use whyslow::parts::model::anomalies::Anomalies;
use whyslow::parts::model::settings::Settings;

/// Name; Pallas's detection in ms on this recording; the paper's line.
const RUNS: [(&str, f64, &str); 8] = [
    ("ep", 0.7, "3090 events, 3.51 ms, 32 patterns, 31 selected, 32 problems, 0 sources, longest 1"),
    ("ft", 1.1, "10256 events, 9.44 ms, 80 patterns, 19 selected, 19 problems, 0 sources, longest 1"),
    ("is", 1.9, "18552 events, 35.43 ms, 48 patterns, 0 selected"),
    ("cg", 289.0, "284754 events, 178 ms, 160 patterns, 65 selected, 611 problems, 34 sources, longest 3"),
    ("mg", 354.0, "118688 events, 186 ms, 2728 patterns, 494 selected, 5357 problems, 350 sources, longest 2"),
    ("sp", 3257.0, "557318 events, 597 ms, 174 patterns, 48 selected, 2132 problems, 0 sources, longest 1"),
    ("bt", 2784.0, "399944 events, 952 ms, 112 patterns, 66 selected, 1367 problems, 159 sources, longest 15"),
    ("lu", 4635.0, "4568002 events, 4565 ms, 210 patterns, 101 selected, 13721 problems, 2372 sources, longest 6"),
];

/// The fastest of five: noise only ever adds.
fn fastest<T>(mut run: impl FnMut() -> T) -> Duration {
    let once = |_| {
        let started = Instant::now();
        std::hint::black_box(run());
        started.elapsed()
    };
    (0..5).map(once).min().unwrap_or_default()
}

/// Mining as in `PatternAnalysis::new`, symbols taken from operations included, on one thread.
fn detect(operations: &Operations) -> usize {
    let symbols = |s: &whyslow::parts::event::operation::Sequence| {
        s.operations.iter().map(|o| o.symbol.raw()).collect::<Vec<_>>()
    };
    operations.sequences.iter().map(|s| grammar::mine(&symbols(s), &Cancel::default()).rules.len()).sum()
}

fn main() {
    let corpus = std::env::var_os("WHYSLOW_CORPUS").map_or_else(|| PathBuf::from("target/corpus"), PathBuf::from);
    println!(
        "     records  detection ms  ns/record  Pallas ms  ratio  patterns selected anomalies sources longest  whole ms"
    );
    let (mut least, mut per_record, mut largest) = (f64::INFINITY, Vec::new(), 0.0);
    for (name, pallas, paper) in RUNS {
        let folder = corpus.join(format!("npb/{name}.A.16/trace"));
        let Ok(archive) = Archive::open(&folder) else {
            println!("{name}: skipped, nothing at {}", folder.display());
            continue;
        };
        let one = Ctx::new(1);
        let whole = fastest(|| analyse(&archive, &Ctx::new(0)));
        let Some((records, mined, found)) = analyse(&archive, &one) else { continue };
        let detection = fastest(|| detect(&mined.operations)).as_secs_f64() * 1e3;
        let s = &found.summary;
        println!(
            "{name}  {records:>9}  {detection:>12.2}  {:>9.1}  {pallas:>9.1}  {:>5.0}  {:>8} {:>8} {:>9} {:>7} {:>7}  {:>8.0}",
            detection * 1e6 / records as f64,
            pallas / detection,
            s.patterns,
            s.selected,
            s.anomalies,
            s.sources,
            s.longest_path,
            whole.as_secs_f64() * 1e3,
        );
        println!("    paper: {paper}");
        least = f64::min(least, pallas / detection);
        largest = f64::max(largest, detection);
        if records > 400_000 {
            per_record.push((records, detection * 1e6 / records as f64));
        }
    }
    per_record.sort_by_key(|(records, _)| *records);
    println!(
        "goals: each at least 8 times faster than Pallas (here {least:.0}); the longest at most 500 ms (here {largest:.0})"
    );
    if let (Some(first), Some(last)) = (per_record.first(), per_record.last()) {
        println!("time per record from {} to {} records: times {:.2} (goal: 1.3)", first.0, last.0, last.1 / first.1);
    }
}

/// Everything that `whyslow anomalies` does but the writing.
fn analyse(archive: &Archive, ctx: &Ctx) -> Option<(u64, PatternAnalysis, Anomalies)> {
    let run = mpi::read(archive, ctx).ok()?;
    let records = run.counts().events;
    let mined = PatternAnalysis::new(run.into_operations(archive), ctx).ok()?;
    let found = anomalies::of_patterns(&mined, &Settings::default(), ctx).ok()?;
    Some((records, mined, found))
}
