//! The engine: `cargo bench --bench engine`. Counting, CPU time, bytes moved and the whole kernel analysis (recording
//! and its history) of some recordings opened together, with one worker and with two, as \[004\] table 5 measures them:
//! efficiency is the time of one over twice the time of two. The reference in the same run is counting with one worker.
//!
//! Recordings are those of the corpus, each twice under labels of its own (at least 100 MB together); else the
//! fixtures.
//!
//! Then the kernel pass of each recording alone, in chunks of 1 MiB: the CPU time of its workers and of the stage that
//! joins the chunks, the share of that stage, and the efficiency that a simulation of the pipeline gets for more
//! workers from these times, chunk by chunk, where the recording is repeated to about a thousand chunks (\[004\] 4.6.2
//! does the same). Memory bandwidth is not simulated. Once the machine steps through all events, once workers step
//! through those that their chunks decide. For two workers the simulation of the recording is beside real runs, which
//! are taken in turns with those of one worker, from the first chunk's begin to the last one's end: medians, and the
//! ratio of the two; once from the times that chunks take where one worker runs, and once from those where two run,
//! which share the memory. Only this part: `cargo bench --bench engine -- share`.
#![allow(clippy::unwrap_used)]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;
use whyslow::parts::analysis::usage::Usage;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::input::{Argument, Opened, Source, Trace, count, open};
use whyslow::parts::kernel::{Options, RowsBy, record};
use whyslow::parts::reading::bind::Focus;
use whyslow::parts::reading::chunks::ChunkTarget;
use whyslow::parts::reading::engine::{ChunkStep, EngineOptions, Hooks};
use whyslow::parts::timeline::history::StateHistory;

/// One analysis of all recordings.
type Run<'a> = &'a dyn Fn(&Ctx);

/// Runs of each; the median counts.
const RUNS: usize = 15;

/// Recordings whose pass is simulated have about this many chunks.
const CHUNKS: usize = 1000;

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
    found
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

/// The steps of chunks and their moments, in order.
static STEPS: Mutex<Vec<(ChunkStep, usize, Instant)>> = Mutex::new(Vec::new());

fn note(step: ChunkStep, chunk: usize) {
    STEPS.lock().unwrap().push((step, chunk, Instant::now()));
}

/// The seconds that a chunk takes.
#[derive(Clone, Copy)]
struct ChunkTimes {
    read: f64,
    join: f64,
    finish: f64,
}

/// The kernel pass of one recording in chunks of 1 MiB.
fn pass(traces: &[&Trace], rows_by: RowsBy, hooks: Hooks, ctx: &Ctx) {
    let engine = EngineOptions { chunks: ChunkTarget::Bytes(1 << 20), hooks, ..EngineOptions::default() };
    black_box(record(traces, &[], &Options { engine, rows_by, ..Options::default() }, ctx).unwrap());
}

/// A pass of some workers: the times of each chunk, and the seconds from the first one's begin to the last one's end.
fn timed_pass(traces: &[&Trace], rows_by: RowsBy, ctx: &Ctx) -> (Vec<ChunkTimes>, f64) {
    STEPS.lock().unwrap().clear();
    pass(traces, rows_by, Hooks { step: note, ..Hooks::default() }, ctx);
    let steps = std::mem::take(&mut *STEPS.lock().unwrap());
    let moments: BTreeMap<(usize, ChunkStep), Instant> =
        steps.iter().map(|(s, chunk, at)| ((*chunk, *s), *at)).collect();
    let between = |chunk, from, to| (moments[&(chunk, to)] - moments[&(chunk, from)]).as_secs_f64();
    let times = |chunk| ChunkTimes {
        read: between(chunk, ChunkStep::Begin, ChunkStep::Read),
        join: between(chunk, ChunkStep::Joins, ChunkStep::Joined),
        finish: between(chunk, ChunkStep::Joined, ChunkStep::Finished),
    };
    let chunks = (0..moments.len() / 5).map(times).collect();
    (chunks, (steps[steps.len() - 1].2 - steps[0].2).as_secs_f64())
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// The same of passes of one worker and of two, taken in turns: medians.
fn timed_passes(traces: &[&Trace], rows_by: RowsBy) -> [(Vec<ChunkTimes>, f64); 2] {
    let works = [Ctx::new(1), Ctx::new(2)];
    let mut all = [const { Vec::new() }; 2];
    for _ in 0..RUNS {
        for (ctx, all) in works.iter().zip(&mut all) {
            all.push(timed_pass(traces, rows_by, ctx));
        }
    }
    all.map(|passes| {
        let of = |chunk: usize, time: fn(&ChunkTimes) -> f64| {
            median(passes.iter().map(|(of, _)| time(&of[chunk])).collect())
        };
        let chunk = |chunk| ChunkTimes {
            read: of(chunk, |of| of.read),
            join: of(chunk, |of| of.join),
            finish: of(chunk, |of| of.finish),
        };
        ((0..passes[0].0.len()).map(chunk).collect(), median(passes.iter().map(|(_, seconds)| *seconds).collect()))
    })
}

/// The seconds that some workers take for chunks, in a simulation of `base::parallel::in_order`.
fn simulated(chunks: &[ChunkTimes], workers: usize) -> f64 {
    let after = |now: u64, seconds: f64| now + (seconds * 1e9) as u64;
    let (mut unclaimed, mut joined, mut joining) = (0, 0, false);
    let (mut ready, mut idle) = (BTreeSet::new(), workers);
    // The nanoseconds at which a step of a chunk ends, the earliest first.
    let mut ends: BinaryHeap<Reverse<(u64, usize, ChunkStep)>> = BinaryHeap::new();
    let mut now = 0;
    loop {
        while idle > 0 {
            if !joining && ready.remove(&joined) {
                joining = true;
                ends.push(Reverse((after(now, chunks[joined].join), joined, ChunkStep::Joined)));
            } else if unclaimed < chunks.len() && unclaimed < joined + 2 * workers {
                ends.push(Reverse((after(now, chunks[unclaimed].read), unclaimed, ChunkStep::Read)));
                unclaimed += 1;
            } else {
                break;
            }
            idle -= 1;
        }
        let Some(Reverse((t, chunk, step))) = ends.pop() else { return now as f64 / 1e9 };
        now = t;
        match step {
            ChunkStep::Begin | ChunkStep::Joins => {}
            ChunkStep::Read => {
                ready.insert(chunk);
                idle += 1;
            }
            ChunkStep::Joined => {
                (joined, joining) = (joined + 1, false);
                ends.push(Reverse((after(now, chunks[chunk].finish), chunk, ChunkStep::Finished)));
            }
            ChunkStep::Finished => idle += 1,
        }
    }
}

/// The serial share of the kernel pass of each recording, and what it costs with more workers.
fn serial_share() {
    println!(
        "\nkernel pass in chunks of 1 MiB: workers, stage that joins, simulated efficiency of about {CHUNKS} chunks"
    );
    println!(
        "{:<20} {:<8} {:>6} {:>10} {:>10} {:>7} {:>7} {:>7} {:>7} {:>45}",
        "",
        "rows by",
        "chunks",
        "workers",
        "stage",
        "share",
        "4",
        "16",
        "64",
        "2 measured, simulated by times of 1, of 2"
    );
    for path in recordings() {
        let argument = Argument::new(path.clone());
        let Opened::Traces(sources) = open(&[argument], &Ctx::new(1)).unwrap() else { continue };
        let traces: Vec<&Trace> = sources.iter().map(|s| &s.trace).collect();
        let name = path.parent().and_then(Path::file_name).unwrap_or_default().display().to_string();
        for rows_by in [RowsBy::Machine, RowsBy::Workers] {
            print_share(&name, &traces, rows_by);
        }
    }
}

/// One line of it.
fn print_share(name: &str, traces: &[&Trace], rows_by: RowsBy) {
    let [(chunks, _), (chunks_of_two, two)] = timed_passes(traces, rows_by);
    let sum = |of: fn(&ChunkTimes) -> f64| chunks.iter().map(of).sum::<f64>();
    let (join, workers) = (sum(|of| of.join), sum(|of| of.read + of.finish));
    let times = CHUNKS.div_ceil(chunks.len());
    let many: Vec<ChunkTimes> = (0..times).flat_map(|_| chunks.iter().copied()).collect();
    let all = (workers + join) * times as f64;
    let efficiency = |workers: usize| all / simulated(&many, workers) / workers as f64;
    let [by_one, by_two] = [&chunks, &chunks_of_two].map(|chunks| simulated(chunks, 2));
    println!(
        "{name:<20} {:<8} {:>6} {:>7.1} ms {:>7.2} ms {:>7.3} {:>7.2} {:>7.2} {:>7.2} {:>9.1} ms {:>7.1} ms {:>5.2} {:>7.1} ms {:>5.2}",
        format!("{rows_by:?}"),
        chunks.len(),
        workers * 1e3,
        join * 1e3,
        join / (workers + join),
        efficiency(4),
        efficiency(16),
        efficiency(64),
        two * 1e3,
        by_one * 1e3,
        two / by_one,
        by_two * 1e3,
        two / by_two,
    );
}

fn main() {
    if !std::env::args().any(|word| word == "share") {
        analyses();
    }
    serial_share();
}

fn analyses() {
    let number = |(i, path)| Argument { label: Some(format!("r{i}")), ..Argument::new(path) };
    let twice = recordings().into_iter().chain(recordings());
    let arguments: Vec<Argument> = twice.enumerate().map(number).collect();
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
        black_box(StateHistory::new(recording.seal(), None));
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
