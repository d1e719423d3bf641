//! The engine: `cargo bench --bench engine`. Counting, CPU time, bytes moved and the whole kernel analysis (recording
//! and its history) of some recordings opened together, with one worker and with two, as \[004\] table 5 measures them:
//! efficiency is the time of one over twice the time of two. The reference in the same run is counting with one worker.
//!
//! Recordings are those of the corpus, each twice under labels of its own (at least 100 MB together); else the
//! fixtures.
#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;
use whyslow::analysis::usage::Usage;
use whyslow::base::ctx::Ctx;
use whyslow::input::Trace;
use whyslow::input::{Argument, Opened, Source, count, open};
use whyslow::reading::bind::Focus;
use whyslow::reading::engine::EngineOptions;
use whyslow::state::history::History;
use whyslow::state::kernel::{Options, record};

/// One analysis of all recordings.
type Run<'a> = &'a dyn Fn(&Ctx);

/// Runs of each; the median counts.
const RUNS: usize = 15;

fn recordings() -> Vec<PathBuf> {
    let corpus = std::env::var_os("WHYSLOW_CORPUS").map_or_else(|| "target/corpus".into(), PathBuf::from);
    let folders = |root: PathBuf, below: &str| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|e| e.path().join(below)).filter(|p| p.is_dir()).collect();
        paths.sort();
        paths
    };
    let mut found = folders(corpus.join("kernel"), "kernel");
    if found.is_empty() {
        println!("no corpus at {}: the fixtures, which are small", corpus.display());
        found = folders(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces"), "");
    }
    found.clone().into_iter().chain(found).collect()
}

/// Seconds of the processor that this process has used, all threads together.
fn processor() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit(") ").next().unwrap_or_default();
    after.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// With one worker and with two: the median of the wall's seconds, the mean of the processor's. Taken in turns, so that
/// both meet the same disturbances.
fn measured(run: Run<'_>) -> [(f64, f64); 2] {
    let works = [Ctx::new(1), Ctx::new(2)];
    works.iter().for_each(run);
    let mut all = [const { Vec::new() }; 2];
    for _ in 0..RUNS {
        for (ctx, all) in works.iter().zip(&mut all) {
            let (start, before) = (Instant::now(), processor());
            run(ctx);
            all.push((start.elapsed().as_secs_f64(), processor() - before));
        }
    }
    all.map(|mut all: Vec<(f64, f64)>| {
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        (all[RUNS / 2].0, all.iter().map(|(_, cpu)| cpu).sum::<f64>() / RUNS as f64)
    })
}

fn main() {
    let number = |(i, path)| Argument { label: Some(format!("r{i}")), path };
    let arguments: Vec<Argument> = recordings().into_iter().enumerate().map(number).collect();
    let Opened::Traces(sources) = open(&arguments, &Ctx::new(1)).unwrap() else { return };
    let traces: Vec<&Trace> = sources.iter().map(|s| &s.trace).collect();
    let labels: Vec<Option<String>> = sources.iter().map(|s| Some(s.label.clone())).collect();
    let bytes: u64 = traces.iter().flat_map(|t| t.streams()).flat_map(|s| &s.packets).map(|p| p.bytes).sum();
    let events = counted(&sources);
    println!("{} recordings, {:.0} MB, {events} events", sources.len(), bytes as f64 / 1e6);
    println!(
        "{:<8} {:>10} {:>10} {:>10} {:>10} {:>11} {:>9}",
        "", "1 worker", "CPU", "2 workers", "CPU", "efficiency", "/count"
    );
    let usage =
        |focus, ctx: &Ctx| black_box(Usage::read(&traces, &labels, focus, &EngineOptions::default(), ctx).unwrap());
    let kernel = |ctx: &Ctx| {
        let options = Options { labels: labels.clone(), ..Options::default() };
        let (recording, _) = record(&traces, &[], &options, ctx).unwrap();
        black_box(History::of_recording(&recording, ctx).unwrap());
    };
    let analyses: [(&str, Run<'_>); 4] = [
        ("count", &|ctx| drop(black_box(count::count(&sources, ctx).unwrap()))),
        ("cpu", &|ctx| drop(usage(Focus::Running, ctx))),
        ("io", &|ctx| drop(usage(Focus::Transfers, ctx))),
        ("kernel", &kernel),
    ];
    let mut reference = None;
    for (name, run) in analyses {
        let [(one, one_cpu), (two, two_cpu)] = measured(run);
        let reference = *reference.get_or_insert(one);
        println!(
            "{name:<8} {:>7.1} ms {:>7.1} ms {:>7.1} ms {:>7.1} ms {:>11.3} {:>8.1}x",
            one * 1e3,
            one_cpu * 1e3,
            two * 1e3,
            two_cpu * 1e3,
            one / two / 2.0,
            one / reference,
        );
    }
}

fn counted(sources: &[Source]) -> u64 {
    count::count(sources, &Ctx::new(2)).unwrap().0.events
}
