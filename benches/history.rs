//! The state history on the interval model of the R-SHT thesis ([002] Fig. 4.6): build, memory, and the three queries,
//! for the classic SHT, the eSHT, the R-SHT of fixed depth and ours. Printed with their ratio to the eSHT of the same
//! run.
//!
//! Then the kernel recording of many threads, if the corpus is there: its history, the process-tree query, a zoom
//! sequence, and the published figures of the same questions; then a row at a random moment and a cursor's step, with
//! leaves in memory and in a file, and their ratio to a binary search in a vector and to its next element.
//!
//! `cargo bench --bench history` takes about two minutes; `-- 100000x100` or `-- recording` measures one of them only.
#![allow(clippy::unwrap_used)]

#[path = "../tests/support/packings.rs"]
mod packings;
#[path = "../tests/support/random.rs"]
mod random;

use packings::{Kind, model, pack};
use random::Random;
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use whyslow::parts::base::budget::Budget;
use whyslow::parts::base::ctx::{Cancel, Ctx};
use whyslow::parts::base::spill::SpillFile;
use whyslow::parts::base::time::{Span, Timestamp};
use whyslow::parts::input::Trace;
use whyslow::parts::state::attributes::AttributeId;
use whyslow::parts::state::history::bulk::build;
use whyslow::parts::state::history::growing::Growing;
use whyslow::parts::state::history::interval::{Interval, Run};
use whyslow::parts::state::history::lines::Time;
use whyslow::parts::state::history::search::{When, Which};
use whyslow::parts::state::history::tree::{Depth, Shape, Tree};
use whyslow::parts::state::history::view::HistoryView;
use whyslow::parts::state::history::{History, StateHistory};
use whyslow::parts::state::kernel::{Options, record};
use whyslow::parts::state::questions::Asker;
use whyslow::parts::state::timeline::Timeline;

/// Bytes that no cache holds.
const COLD: usize = 256 << 20;

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
    if wanted.is_empty() || wanted.contains(&"recording".to_owned()) {
        let corpus = std::env::var_os("WHYSLOW_CORPUS").map_or_else(|| "target/corpus".into(), PathBuf::from);
        let folder = corpus.join("public/real/many-threads/trace");
        match Trace::open(&folder) {
            Ok(trace) => recording(&trace),
            Err(_) => println!("\nno recording at {}: skipped", folder.display()),
        }
    }
}

/// The views of [002] 4.8.2 on a real recording: every thread's parent and name at one instant (the process tree), then
/// ten zooms into, and twenty scrolls along, the states of forty threads on a thousand pixels.
fn recording(trace: &Trace) {
    let ctx = Ctx::new(2);
    let (pass, (recording, _)) = timed(|| record(&[trace], &[], &Options::default(), &ctx).unwrap());
    rows("in memory", &recording);
    let mut least = Ctx::new(2);
    least.budget = Some(Budget { bytes: u64::MAX, leaves: Some(0), file: SpillFile::new().map(Arc::new) });
    rows("in a file", &record(&[trace], &[], &Options::default(), &least).unwrap().0);
    let built: Vec<_> = (0..5).map(|_| timed(|| History::of_recording(&recording, &ctx).unwrap())).collect();
    let times = built.iter().map(|(time, _)| *time).collect();
    let Some((_, history)) = built.into_iter().next() else { return };
    let tree = history.tree();
    println!(
        "\nmany threads: {} attributes, {} intervals, {} bytes each, {} levels; analysis {:.0} ms, history {:.1} ms",
        tree.attributes(),
        tree.len(),
        tree.size() as u64 / tree.len().max(1),
        tree.depth(),
        pass.as_secs_f64() * 1e3,
        median(times).as_secs_f64() * 1e3,
    );
    let never = Cancel::default();
    let window = history.window();
    let late = || Time::Instants(vec![window.start + window.len() / 2]);
    let trees = (0..21).map(|_| {
        timed(|| {
            ["threads/*/ppid", "threads/*/name"].map(|lines| black_box(history.lines(lines, &late(), &never)).is_ok())
        })
        .0
    });
    let process_tree = median(trees.collect());
    let mut views = Vec::new();
    for zoom in 0..10 {
        let width = window.len() >> zoom;
        let start = window.start + (window.len() - width) / 2;
        views.push(Span::new(start, start + width));
    }
    let width = window.len() >> 9;
    views.extend((0..20).map(|i| window.start + (window.len() - width) / 20 * i).map(|at| Span::new(at, at + width)));
    let visible = || Which::these(history.attributes.matching("threads/*/state").into_iter().step_by(100).take(40));
    let zooms = (0..11).map(|_| {
        let draw = |view: &Span| {
            let pixels = (0..1_000).map(|x| view.start + view.len() * x / 1_000);
            black_box(tree.search(visible(), When::instants(pixels), &never).into_vec()).len()
        };
        timed(|| views.iter().map(draw).sum::<usize>()).0
    });
    println!(
        "process tree {:.2} ms, zoom sequence of {} views {:.1} ms",
        process_tree.as_secs_f64() * 1e3,
        views.len(),
        median(zooms.collect()).as_secs_f64() * 1e3
    );
    let views = (0..11).map(|_| timed(|| HistoryView::new(recording.clone(), None)));
    let (made, views): (Vec<_>, Vec<_>) = views.unzip();
    let Some(view) = views.first() else { return };
    let asked = (0..21).map(|_| {
        timed(|| {
            ["threads/*/ppid", "threads/*/name"].map(|lines| black_box(view.lines(lines, &late(), &never)).is_ok())
        })
        .0
    });
    println!(
        "the rows of the store in place of the tree: names {:.2} ms, process tree {:.2} ms",
        median(made).as_secs_f64() * 1e3,
        median(asked.collect()).as_secs_f64() * 1e3
    );
    println!("{PUBLISHED}");
}

/// The figures of the thesis that described these trees, which are of another machine, language and recording.
const PUBLISHED: &str = "
as published ([002] T4.2, T4.3: i7-3770, 16 GB, SATA SSD, Java 8, trees in a file; a recording of the same name with
240644 events, 741492 intervals of 50598 attributes; means of 10 runs; the zooms also draw)
tree      build, ms   MiB  depth  process tree, ms            zoom sequence, ms
SHT            1925  86.3     45  full 5360, single 21210     full 29880, single 15300
eSHT           1762  21.4      3  single 941, 2D 227          single 6894, 2D 4408
R-SHT R2       6604  20.9      3  single 1882, 2D 136         single 7861, 2D 3950
R-SHT R3       8926  20.8      3  single 915, 2D 118          single 6995, 2D 4422";

/// Rows of the thread that has the most: at random moments, and step by step.
fn rows(place: &str, recording: &Timeline) {
    let reader = recording.reader(Asker::History);
    let ids = recording.threads_by_id().map(|(id, _)| id);
    let Some(thread) = ids.max_by_key(|id| reader.segments(*id).len()) else { return };
    let all: Vec<_> = reader.segments(thread).all().collect();
    let Some((first, last)) = all.first().zip(all.last()) else { return };
    let (from, long) = (first.span.start, (last.span.end - first.span.start).max(1));
    let mut random = Random::new(3);
    let moments: Vec<Timestamp> = (0..10_000).map(|_| from + random.below(long as usize) as i64).collect();
    let each = |times: Vec<Duration>, count: usize| median(times).as_nanos() as f64 / count.max(1) as f64;
    let ask = |_| timed(|| moments.iter().filter_map(|t| reader.segments(thread).at(*t)).map(black_box).count()).0;
    let search = |_| {
        let at = |t: &Timestamp| all.get(all.partition_point(|row| row.span.end <= *t));
        timed(|| moments.iter().filter_map(at).map(black_box).count()).0
    };
    let walk = |_| {
        let mut cursor = reader.segments(thread);
        let (time, count) = timed(|| {
            let (mut row, mut count) = (cursor.first(), 0);
            while let Some(this) = &row {
                black_box(this);
                count += 1;
                row = cursor.next_row();
            }
            count
        });
        assert_eq!(count, all.len());
        time
    };
    let iterate = |_| timed(|| all.iter().map(black_box).count()).0;
    let [at, searched] = [(0..11).map(ask).collect(), (0..11).map(search).collect()].map(|t| each(t, moments.len()));
    let [step, iterated] = [(0..11).map(walk).collect(), (0..11).map(iterate).collect()].map(|t| each(t, all.len()));
    println!(
        "\nleaves {place}, {} segments: random at {at:.0} ns ({:.1} times a search in a vector), step {step:.1} ns \
         ({:.1} times)",
        all.len(),
        at / searched,
        step / iterated.max(0.1)
    );
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
            growing.snapshot(&Ctx::new(1)).unwrap()
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
    let mut random = Random::new(seed);
    for at in (1..all.len()).rev().filter(|_| seed > 0) {
        all.swap(at, random.below(at + 1));
    }
    let run = |chunk: &[Interval]| {
        let mut run = Run::default();
        run.extend(chunk.iter().copied());
        run
    };
    let runs = all.chunks(all.len().div_ceil(16)).map(run).collect();
    drop(all);
    timed(|| build(runs, shape, &Ctx::new(workers)).unwrap())
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
    let mut random = Random::new(42);
    let mut instant = || span.start + random.between(0, span.len());
    let instants: Vec<Timestamp> = (0..20_000).map(|_| instant()).collect();
    let mut random = Random::new(7);
    let mut attribute = || AttributeId::from_raw(random.below(attributes as usize) as u32);

    let singles: Vec<Duration> = instants
        .iter()
        .map(|t| {
            let attribute = attribute();
            timed(|| black_box(tree.at(attribute, *t)).unwrap()).0
        })
        .collect();
    let single_mean = singles.iter().sum::<Duration>() / singles.len() as u32;
    let never = Cancel::default();
    let ask = |t: &Timestamp| tree.search(Which::ALL, When::at(*t), &never).into_vec();
    let asked = &instants[..21];
    let full = asked.iter().map(|t| timed(|| black_box(ask(t)).len()).0).collect();
    // All results are made first and other memory is read: so a copy, like the query, finds its source in no cache.
    let results: Vec<_> = asked.iter().map(ask).collect();
    assert!(results.iter().all(|found| found.len() == attributes as usize));
    black_box(vec![1u8; COLD].iter().fold(0, |all, byte| all ^ byte));
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
