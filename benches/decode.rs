//! Decoding CTF beside the sum of all bytes of the same files, on one and two workers; and, where `babeltrace2` is on
//! the PATH, whole processes beside it, paired in the same round, CPU seconds of both, medians of the ratio.
//!
//! Recordings: `kernel/*/kernel` of the corpus (`target/corpus`, or where `WHYSLOW_CORPUS` points), repeated under
//! other labels until 100 MB are reached; without a corpus the recordings in `fixtures/traces`.
//!
//! Recordings by perf and trace-cmd of the corpus, repeated until 200 MB are reached: reading on one and two workers,
//! `stats count` and `explain` beside `perf script` and `trace-cmd report`, where these are on the PATH.
//!
//! Texts of `perf script`, with call chains and without, repeated until 100 MB are reached: opening and counting on one
//! and two workers beside the sum of all bytes.
//!
//! `cargo bench --bench decode` takes some minutes; `-- stages`, `-- processes`, `-- recorders` or `-- texts` measures
//! one part.
#![allow(clippy::unwrap_used)]

#[path = "../tests/support/repeated.rs"]
mod repeated;

use foldhash::fast::FixedState;
use std::hash::{BuildHasher, Hasher};
use std::hint::black_box;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::cursor::ByteOrder;
use whyslow::parts::base::parallel::in_order;
use whyslow::parts::input::ctf::{Real, Sink};
use whyslow::parts::input::record::{IntegerArray, StreamId};
use whyslow::parts::input::records::PassedRecord;
use whyslow::parts::input::trace::Plan;
use whyslow::parts::input::{Argument, Opened, Source, count, open};
use whyslow::parts::reading::bind::Binding;

const ENOUGH: u64 = 100_000_000;
/// Bytes of packets that a worker takes at a time.
const PIECE: u64 = 1 << 20;
const ROUNDS: usize = 7;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    if let Some(("hash", arguments)) = wanted.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return hash(arguments);
    }
    let wants = |what: &str| wanted.is_empty() || wanted.iter().any(|w| w == what);
    let folders = recordings();
    let files: Vec<PathBuf> = folders.iter().flat_map(|f| stream_files(f)).collect();
    let bytes: u64 = files.iter().map(|f| f.metadata().unwrap().len()).sum();
    let arguments: Vec<String> =
        folders.iter().enumerate().map(|(i, folder)| format!("t{i}={}", folder.display())).collect();
    println!("{} recordings, {:.1} MB", folders.len(), bytes as f64 / 1e6);
    if wants("stages") {
        stages(&arguments, &files, bytes);
    }
    if wants("processes") {
        processes(&arguments, &folders, &files);
    }
    if wants("recorders") {
        recorders();
    }
    if wants("texts") {
        texts();
    }
}

/// Opening long texts of `perf script`, wall time beside the sum of all bytes in the same round.
fn texts() {
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/texts/waits.txt.gz");
    let mut chains = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(packed).unwrap()).read_to_end(&mut chains).unwrap();
    let is_event = |line: &&[u8]| !line.starts_with(b"\t") && *line != b"\n";
    let events: Vec<u8> = chains.split_inclusive(|byte| *byte == b'\n').filter(is_event).flatten().copied().collect();
    println!(
        "\n{:<24} {:>9} {:>9} {:>12} {:>24}",
        "text of perf script", "ms", "MB/s", "x byte-sum", "two workers faster by"
    );
    for (name, text) in [("with call chains", chains), ("without", events)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        std::fs::write(&path, repeated::perf_script(&text, ENOUGH as usize)).unwrap();
        let (mut ours, mut ratios, mut faster) = (vec![], vec![], vec![]);
        for _ in 0..ROUNDS {
            let started = Instant::now();
            black_box(byte_sum(&path));
            let sum = started.elapsed().as_secs_f64();
            let [one, two] = [1, 2].map(|workers| reading(&path.display().to_string(), workers));
            ours.push(one);
            ratios.push(one / sum);
            faster.push(one / two);
        }
        let seconds = median(ours);
        let speed = path.metadata().unwrap().len() as f64 / seconds / 1e6;
        println!("{name:<24} {:>9.1} {speed:>9.0} {:>12.2} {:>24.2}", seconds * 1e3, median(ratios), median(faster));
    }
}

/// A recording of 200 MB, and its recorder's own tool.
struct Recorder {
    file: &'static str,
    repeat: fn(&[u8], usize) -> Vec<u8>,
    tool: &'static str,
    /// Before the file.
    words: &'static [&'static str],
}

const RECORDERS: [Recorder; 2] = [
    Recorder {
        file: "cs3-lock-contention/perf/perf.data",
        repeat: repeated::perf_data,
        tool: "perf",
        words: &["script", "-i"],
    },
    Recorder {
        file: "cs1-cpu-contention/tracecmd/trace.dat",
        repeat: repeated::trace_dat,
        tool: "trace-cmd",
        words: &["report", "-i"],
    },
];

/// Whole processes on long recordings by perf and trace-cmd, CPU seconds, beside their own tools in the same round.
fn recorders() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let corpus = std::env::var_os("WHYSLOW_CORPUS").map_or_else(|| root.join("target/corpus"), PathBuf::from);
    let whyslow = env!("CARGO_BIN_EXE_whyslow");
    for Recorder { file, repeat, tool, words } in RECORDERS {
        let Ok(short) = std::fs::read(corpus.join("kernel").join(file)) else { continue };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recording");
        std::fs::write(&path, repeat(&short, 200_000_000)).unwrap();
        let path = [path.display().to_string()];
        let (mut counts, mut two, mut read, mut explained, mut theirs) = (vec![], vec![], vec![], vec![], vec![]);
        for _ in 0..ROUNDS {
            let [one, pair] = [1, 2].map(|workers| (0..5).map(|_| reading(&path[0], workers)).sum::<f64>());
            read.push(one / pair);
            let run = |words: &[&str], runs| cost(whyslow, words, &path, runs);
            let Some(one) = run(&["stats", "count", "--threads", "1"], 5) else { return };
            let Some(pair) = run(&["stats", "count", "--threads", "2"], 5) else { return };
            let Some(explain) = run(&["explain", "--threads", "1"], 1) else { return };
            counts.push(one.0);
            two.push(one.1 / pair.1);
            explained.push(explain.0);
            theirs.extend(cost(tool, words, &path, 1).map(|cost| cost.0));
        }
        let (count, explain, theirs) = (median(counts), median(explained), median(theirs));
        println!("\n{file}, repeated to 200 MB, CPU seconds, medians of {ROUNDS} rounds");
        println!("reading                two workers {:.2} times as fast", median(read));
        println!("stats count            {count:.4}; two workers {:.2} times as fast", median(two));
        println!("explain                {explain:.3}");
        println!(
            "{tool:<22} {theirs:.3}: {:.1} times stats count, {:.1} times explain",
            theirs / count,
            theirs / explain
        );
    }
}

/// Seconds to open a recording and to count its records, without the begin and the end of a process.
fn reading(path: &str, workers: usize) -> f64 {
    let ctx = Ctx::new(workers);
    let started = Instant::now();
    let Ok(Opened::Traces(sources)) = open(&[Argument::parse(path)], &ctx) else { return f64::NAN };
    black_box(count::count(&sources, &ctx).unwrap().0.events);
    started.elapsed().as_secs_f64()
}

/// The recordings to read, some of them more than once.
fn recordings() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let corpus = std::env::var_os("WHYSLOW_CORPUS").map_or_else(|| root.join("target/corpus"), PathBuf::from);
    let under = |folder: PathBuf| {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        let mut found: Vec<PathBuf> = entries.map(|e| e.unwrap().path().join("kernel")).collect();
        found.retain(|path| path.join("metadata").exists());
        found.sort();
        found
    };
    let mut once = under(corpus.join("kernel"));
    if once.is_empty() {
        println!("no corpus at {}: the fixtures are read", corpus.display());
        once = under(root.join("fixtures/traces"));
    }
    let size = |folder: &PathBuf| stream_files(folder).iter().map(|f| f.metadata().unwrap().len()).sum::<u64>();
    let mut all = Vec::new();
    let mut bytes = 0;
    for folder in once.iter().cycle().take(1000) {
        if bytes >= ENOUGH {
            break;
        }
        bytes += size(folder);
        all.push(folder.clone());
    }
    all
}

fn stream_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|e| e.unwrap().path());
    let mut files: Vec<PathBuf> = entries.filter(|p| p.is_file() && !p.ends_with("metadata")).collect();
    files.sort();
    files
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of.get(of.len() / 2).copied().unwrap_or(f64::NAN)
}

fn timed<T>(mut run: impl FnMut() -> T) -> Duration {
    let once = |_| {
        let started = Instant::now();
        black_box(run());
        started.elapsed().as_secs_f64()
    };
    Duration::from_secs_f64(median((0..ROUNDS).map(once).collect()))
}

fn opened(arguments: &[String]) -> Vec<Source> {
    let arguments: Vec<Argument> = arguments.iter().map(Argument::parse).collect();
    match open(&arguments, &Ctx::new(1)) {
        Ok(Opened::Traces(sources)) => sources,
        _ => Vec::new(),
    }
}

/// All bytes of a file as one number, read as a trace is read.
fn byte_sum(file: &Path) -> u64 {
    let mapped = whyslow::parts::base::mapped::Mapped::open(file).unwrap();
    mapped.bytes().iter().map(|b| u64::from(*b)).sum()
}

/// Stages of one process, in wall time.
fn stages(arguments: &[String], files: &[PathBuf], bytes: u64) {
    let sources = opened(arguments);
    let events = count::count(&sources, &Ctx::new(1)).unwrap().0.events as f64;
    println!("{events} events\n\n{:<36} {:>9} {:>12} {:>9} {:>12}", "wall", "ms", "M events/s", "MB/s", "x byte-sum");
    let sum = timed(|| files.iter().map(|f| byte_sum(f)).fold(0, u64::wrapping_add));
    let row = |name: &str, workers: usize, time: Duration| {
        let s = time.as_secs_f64();
        let (rate, speed, times) = (events / s / 1e6, bytes as f64 / s / 1e6, s / sum.as_secs_f64());
        println!("{name:<24} {workers} workers {:>10.1} {rate:>12.1} {speed:>9.0} {times:>12.2}", s * 1e3);
    };
    row("byte-sum", 1, sum);
    row("open", 1, timed(|| opened(arguments).len()));
    let whole: Vec<Plan> = sources.iter().map(|s| s.trace.compile_whole()).collect();
    let kernel: Vec<Plan> = sources.iter().map(|s| s.trace.compile(&Binding::new(&s.trace, &[]).projection)).collect();
    for workers in [1, 2] {
        let ctx = Ctx::new(workers);
        row("count", workers, timed(|| count::count(&sources, &ctx).unwrap().0.events));
        row("full decode", workers, timed(|| decode(&sources, &whole, &ctx)));
        row("kernel projection", workers, timed(|| project(&sources, &kernel, &ctx)));
    }
}

/// A run of packets of a stream.
struct Piece {
    source: usize,
    stream: StreamId,
    packets: std::ops::Range<usize>,
}

fn pieces(sources: &[Source]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (source, s) in sources.iter().enumerate() {
        for (number, stream) in s.trace.streams().iter().enumerate() {
            let (mut start, mut bytes) = (0, 0);
            for (i, packet) in stream.packets.iter().enumerate() {
                bytes += packet.bytes;
                if bytes >= PIECE || i + 1 == stream.packets.len() {
                    pieces.push(Piece { source, stream: StreamId::at(number), packets: start..i + 1 });
                    (start, bytes) = (i + 1, 0);
                }
            }
        }
    }
    pieces
}

/// Every field of every event into a hash, piece by piece.
fn decode(sources: &[Source], plans: &[Plan], ctx: &Ctx) -> u64 {
    let pieces = pieces(sources);
    let one = |i: usize| {
        let piece = &pieces[i];
        let mut reader = sources[piece.source].trace.reader(&plans[piece.source], piece.stream, piece.packets.clone());
        let mut sink = Hash(FixedState::with_seed(0).build_hasher());
        while let Some(PassedRecord { class, clock }) = reader.show(&mut sink) {
            sink.0.write_u32(class.raw());
            sink.0.write_u64(clock);
        }
        sink.0.finish()
    };
    let mut all = 0u64;
    in_order(ctx, pieces.len(), one, |_, hash| all = all.rotate_left(5) ^ hash).unwrap();
    all
}

/// A process that decodes everything on one worker, for [`processes`].
fn hash(arguments: &[String]) {
    let sources = opened(arguments);
    let plans: Vec<Plan> = sources.iter().map(|s| s.trace.compile_whole()).collect();
    println!("{:016x}", decode(&sources, &plans, &Ctx::new(1)));
}

/// The fields that the kernel analysis reads, summed.
fn project(sources: &[Source], plans: &[Plan], ctx: &Ctx) -> u64 {
    let pieces = pieces(sources);
    let one = |i: usize| {
        let piece = &pieces[i];
        let mut reader = sources[piece.source].trace.reader(&plans[piece.source], piece.stream, piece.packets.clone());
        let mut sum = 0u64;
        while let Some(record) = reader.next() {
            let values = record.values.iter().filter_map(|v| v.as_u64());
            sum = values.fold(sum.wrapping_add(record.time.ns() as u64), u64::wrapping_add);
        }
        sum
    };
    let mut all = 0u64;
    in_order(ctx, pieces.len(), one, |_, sum| all = all.wrapping_add(sum)).unwrap();
    all
}

/// Hashes fields in the order in which they come.
struct Hash<H: Hasher>(H);

impl<'a, H: Hasher> Sink<'a> for Hash<H> {
    fn unsigned(&mut self, node: u32, value: u64) {
        self.0.write_u32(node);
        self.0.write_u64(value);
    }
    fn signed(&mut self, node: u32, value: i64) {
        self.0.write_u32(node);
        self.0.write_i64(value);
    }
    fn real(&mut self, node: u32, number: Real<'a>) {
        self.0.write_u32(node);
        number.groups().for_each(|group| self.0.write_u16(group));
    }
    fn text(&mut self, node: u32, bytes: &'a [u8], _: u8, _: ByteOrder) {
        self.0.write_u32(node);
        self.0.write(bytes);
    }
    fn words(&mut self, node: u32, words: IntegerArray<'a>) {
        self.0.write_u32(node);
        self.0.write(words.bytes);
    }
    fn blob(&mut self, node: u32, bytes: &'a [u8]) {
        self.0.write_u32(node);
        self.0.write(bytes);
    }
}

/// CPU seconds of all children that have ended, in hundredths.
fn children() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let numbers: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some((numbers.get(13)?.parse::<f64>().ok()? + numbers.get(14)?.parse::<f64>().ok()?) / 100.0)
}

/// CPU seconds and wall seconds of a command, the mean of some runs in a row.
fn cost(program: &str, words: &[&str], more: &[String], runs: u32) -> Option<(f64, f64)> {
    let (before, started) = (children()?, Instant::now());
    for _ in 0..runs {
        let mut command = Command::new(program);
        command.args(words).args(more).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().ok().filter(|status| status.success())?;
    }
    let runs = f64::from(runs);
    Some(((children()? - before) / runs, started.elapsed().as_secs_f64() / runs))
}

/// Whole processes, CPU seconds, beside babeltrace2 in the same round.
fn processes(arguments: &[String], folders: &[PathBuf], files: &[PathBuf]) {
    let whyslow = env!("CARGO_BIN_EXE_whyslow");
    let paths: Vec<String> = folders.iter().map(|f| f.display().to_string()).collect();
    // The other program reads a path once however often it is named.
    let mut once = paths.clone();
    once.sort();
    once.dedup();
    let share = {
        let size =
            |path: &String| stream_files(Path::new(path)).iter().map(|f| f.metadata().unwrap().len()).sum::<u64>();
        let (all, single): (u64, u64) = (paths.iter().map(size).sum(), once.iter().map(size).sum());
        all as f64 / single.max(1) as f64
    };
    let sum = timed(|| files.iter().map(|f| byte_sum(f)).fold(0, u64::wrapping_add)).as_secs_f64();
    let mut count_ratio = Vec::new();
    let (mut counts, mut two, mut texts, mut bare, mut their_text) = (vec![], vec![], vec![], vec![], vec![]);
    let (mut text_ratio, mut hashes, mut hash_ratio) = (vec![], vec![], vec![]);
    let this = std::env::current_exe().unwrap().display().to_string();
    for _ in 0..ROUNDS {
        let Some(ours) = cost(whyslow, &["stats", "count", "--threads", "1"], arguments, 10) else { return };
        let Some(pair) = cost(whyslow, &["stats", "count", "--threads", "2"], arguments, 10) else { return };
        let Some(text) = cost(whyslow, &["dump", "--canonical", "--threads", "1"], arguments, 1) else { return };
        let Some(hashed) = cost(&this, &["hash"], arguments, 3) else { return };
        hashes.push(hashed.0);
        counts.push(ours.0);
        two.push(ours.1 / pair.1);
        texts.push(text.0);
        if let Some(theirs) = cost("babeltrace2", &["-o", "dummy"], &once, 1) {
            bare.push(theirs.0 * share);
            count_ratio.push(theirs.0 * share / ours.0);
            hash_ratio.push(theirs.0 * share / hashed.0);
        }
        if let Some(theirs) = cost("babeltrace2", &[], &once, 1) {
            their_text.push(theirs.0 * share);
            text_ratio.push(theirs.0 * share / text.0);
        }
    }
    println!("\nwhole processes, one worker, CPU seconds, medians of {ROUNDS} rounds");
    let ours = median(counts);
    println!(
        "stats count            {ours:.4}, {:.2} times the byte-sum; two workers {:.2} times as fast",
        ours / sum,
        median(two)
    );
    println!("every field hashed     {:.3}", median(hashes));
    println!("dump --canonical       {:.3}", median(texts));
    if count_ratio.is_empty() {
        return println!("babeltrace2 is not on the PATH: nothing to compare with");
    }
    println!(
        "babeltrace2 -o dummy   {:.3}: {:.1} times stats count, {:.1} times every field hashed",
        median(bare),
        median(count_ratio),
        median(hash_ratio)
    );
    println!("babeltrace2            {:.3}: {:.1} times dump --canonical", median(their_text), median(text_ratio));
}
