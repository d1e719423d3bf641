//! The state history on the interval model of the R-SHT thesis ([002] Fig. 4.6): build, memory, and the three queries,
//! for the classic SHT, the eSHT, and the plain R-SHT, printed with their ratio to the eSHT of the same run; then for
//! the R-SHT above the leaves of the store, with its ratio to the plain R-SHT, a copy, or a descent for each line.
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
#[path = "../tests/support/rsht/mod.rs"]
mod rsht;
#[path = "history/store.rs"]
mod store;

use packings::{Kind, model, pack};
use random::Random;
use rsht::build::build;
use rsht::interval::{Interval, Run};
use rsht::search::{When, Which};
use rsht::tree::{Depth, Shape, Tree};
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use whyslow::parts::base::budget::Budget;
use whyslow::parts::base::ctx::{Cancel, Ctx};
use whyslow::parts::base::spill::SpillFile;
use whyslow::parts::base::time::Timestamp;
use whyslow::parts::input::Trace;
use whyslow::parts::kernel::{Options, record};
use whyslow::parts::timeline::Timeline;
use whyslow::parts::timeline::attributes::AttributeId;
use whyslow::parts::timeline::history::StateHistory;
use whyslow::parts::timeline::history::lines::Time;
use whyslow::parts::timeline::questions::Asker;

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

impl Row {
    /// Millions of intervals built a second.
    fn rate(&self, intervals: usize) -> f64 {
        intervals as f64 / self.build.as_secs_f64() / 1e6
    }
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
    let views = (0..11).map(|_| timed(|| StateHistory::new(recording.clone().seal(), None)));
    let (made, views): (Vec<_>, Vec<_>) = views.unzip();
    let Some(history) = views.first() else { return };
    let never = Cancel::default();
    let window = history.window();
    let late = || Time::Instants(vec![window.start + window.len() / 2]);
    let trees = (0..21).map(|_| {
        timed(|| {
            ["threads/*/ppid", "threads/*/name"].map(|lines| black_box(history.lines(lines, &late(), &never)).is_ok())
        })
        .0
    });
    println!(
        "\nmany threads: {} attributes; analysis {:.0} ms, names {:.2} ms, process tree {:.2} ms",
        history.attributes().len(),
        pass.as_secs_f64() * 1e3,
        median(made).as_secs_f64() * 1e3,
        median(trees.collect()).as_secs_f64() * 1e3,
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
    row("eSHT", 1, &|| timed(|| pack(all.iter().copied(), Kind::Esht, variable)));
    if attributes <= 1_000 {
        row("classic SHT", 1, &|| timed(|| pack(all.iter().copied(), Kind::Classic, variable)));
    }
    for r in [1, 2, 3] {
        let shape = Shape { depth: Depth::Fixed(r), ..variable };
        // The thesis counts levels, the handbook edges.
        row(&format!("R-SHT, {} levels", r + 1), 1, &|| bulk(&all, shape));
    }
    row("R-SHT", 3, &|| bulk(&all, variable));
    if let Some(reference) = rows.last() {
        store::measure(&all, attributes, reference);
    }
}

fn timed<T>(make: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let made = make();
    (start.elapsed(), made)
}

/// The time that the processor spends on it: neighbours on a shared machine do not count.
fn thread_time<T>(make: impl FnOnce() -> T) -> (Duration, T) {
    let now = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
    let start = now();
    let made = make();
    (now().saturating_sub(start), made)
}

/// The plain R-SHT of some intervals; only the build is timed.
fn bulk(all: &[Interval], shape: Shape) -> (Duration, Tree) {
    let mut run = Run::default();
    run.extend(all.iter().copied());
    timed(|| build(run, shape))
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
    let ask = |t: &Timestamp| tree.search(Which::ALL, When::at(*t)).into_vec();
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
        thread_time(|| black_box(tree.search(which, when).into_vec())).0
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
    let rate = |row: &Row| row.rate(intervals);
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
