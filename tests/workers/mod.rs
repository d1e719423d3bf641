//! Serial equals parallel: the same results from every analysis, and the same bytes from every command, for any number
//! of workers, any size of chunks, chunks that are done in any order, with and without the last switch before them, and
//! chunks that are run again without need, whether workers or the machine make rows, and whether these are in memory or
//! in a file; on every fixture, on damaged copies of one, and on generated recordings, whole and damaged.
//!
//! `WHYSLOW_CORPUS=... cargo test --release --test all workers:: -- --ignored` does the same on the corpus, in every
//! combination.

mod commands;
mod moments;

use crate::schedule;
use crate::support::random::Random;
use crate::support::{ask, recordings};
use recordings::{damage, fixtures, of_corpus, split_files};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use whyslow::parts::analysis::usage::Usage;
use whyslow::parts::base::budget::Budget;
use whyslow::parts::base::ctx::{Cancelled, Ctx};
use whyslow::parts::base::heap::MemoryPart;
use whyslow::parts::base::notice::Notice;
use whyslow::parts::base::spill::SpillFile;
use whyslow::parts::event::task::{Delimiter, Pairing, TaskDefinition};
use whyslow::parts::input::{Argument, Opened, Source, Trace, count, open};
use whyslow::parts::kernel::{Options, RowsBy, record};
use whyslow::parts::reading::bind::Focus;
use whyslow::parts::reading::chunks::ChunkTarget;
use whyslow::parts::reading::engine::{ChunkStart, ChunkStep, EngineOptions, Hooks};
use whyslow::parts::timeline::history::StateHistory;
use whyslow::parts::timeline::history::lines::{Longest, Time};
use whyslow::parts::timeline::{Tables, Timeline, TimelineDraft};
use whyslow::parts::view::stats::StatsTable;

fn load(path: &Path) -> Vec<Source> {
    let argument = Argument::new(path.to_owned());
    let Opened::Traces(sources) = open(&[argument], &Ctx::new(2)).unwrap() else {
        panic!("{} is no CTF trace", path.display())
    };
    sources
}

/// A place for generated recordings.
fn place(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("workers").join(name)
}

/// Marks of every kind: user-space and kernel, with key and type, and of one system call.
fn tasks() -> Vec<TaskDefinition> {
    let delimiter = |event: &str, key: Option<&str>| Delimiter {
        event: event.to_owned(),
        key: key.into_iter().map(str::to_owned).collect(),
        conditions: Vec::new(),
    };
    let task = |begin: &str, end: &str, key: Option<&str>, kind: Option<&str>| TaskDefinition {
        name: begin.to_owned(),
        begins: vec![delimiter(begin, key)],
        ends: vec![delimiter(end, key)],
        pairing: if key.is_some() { Pairing::Key } else { Pairing::Thread },
        kind: kind.map(str::to_owned),
        nest: false,
        process: None,
    };
    vec![
        task("app:request_begin", "app:request_end", Some("id"), Some("type")),
        task("syscall_entry_write", "syscall_exit_write", None, None),
    ]
}

/// All of it as text, in which equal recordings are equal.
fn text(recording: &Timeline, notices: &[String]) -> String {
    let names: Vec<&str> = (0..recording.names().len())
        .map(|i| recording.names().get(whyslow::parts::base::names::NameId::at(i)))
        .collect();
    let stacks: Vec<&[u64]> = (0..recording.stacks().len())
        .map(|i| recording.stacks().get(whyslow::parts::event::stack::RawStackId::at(i)))
        .collect();
    // All fields by name: a new field of a recording is to be compared as well.
    let TimelineDraft { tables, threads, cpus, disk, services, marks, page_faults, counters } =
        TimelineDraft::of(recording);
    let Tables {
        names: _,
        stacks: _,
        hosts,
        traces,
        images,
        lossy,
        covered,
        quality,
        span,
        // Held by `tests/recorders.rs`: only perf and ftrace record them.
        wake_stacks: _,
        remarks,
        of_ranks,
    } = tables;
    format!(
        "{names:?}{stacks:?}{hosts:?}{traces:?}{threads:?}{cpus:?}{images:?}{disk:?}{services:?}{marks:?}{page_faults:?}{counters:?}{lossy:?}\
         {covered:?}{quality:?}{span:?}{remarks:?}{of_ranks}{notices:?}"
    )
}

/// The results of all analyses of some traces.
struct Results {
    texts: Vec<(&'static str, String)>,
}

/// A budget for `leaves` bytes of leaves in memory; the others go to a file.
fn budget(leaves: u64) -> Budget {
    Budget { bytes: u64::MAX, leaves: Some(leaves), file: SpillFile::new().map(Arc::new) }
}

/// The most bytes of rows and leaves that a recording had in memory.
fn row_bytes(ctx: &Ctx) -> u64 {
    use MemoryPart::{EventBuffers, OpenRows, OpenedTraces, Results, Threads};
    let others = [OpenedTraces, EventBuffers, OpenRows, Threads, Results];
    ctx.progress.parts.held().filter(|held| !others.contains(&held.part)).map(|held| held.most).sum()
}

/// All results, with rows sealed every so many events, and a budget for leaves.
fn results(sources: &[Source], engine: EngineOptions, seal_every: usize, rows_by: RowsBy, work: &Ctx) -> Results {
    let traces: Vec<_> = sources.iter().map(|s| &s.trace).collect();
    let options = Options { engine, seal_every, rows_by, ..Options::default() };
    let (recording, notices) = record(&traces, &tasks(), &options, work).unwrap();
    assert_eq!(recording.check(), None);
    let history = StateHistory::new(recording.clone().seal(), None);
    let paths: Vec<String> = history.attributes().ids().map(|id| history.attributes().path_of(id)).collect();
    let ask = |pattern: &str, time: &Time| format!("{:?}", history.lines(pattern, time, &work.cancel).unwrap());
    let whole = Time::Range(history.window());
    let longest = Time::Longest(Longest { span: history.window(), count: 1 << 20, value: None });
    let usage = |focus| Usage::read(&traces, &[], focus, &engine, work).unwrap();
    let json = |table: &StatsTable| serde_json::to_string(table).unwrap();
    let ((running, ran), (moving, moved)) = (usage(Focus::Running), usage(Focus::Transfers));
    let (counts, counted) = count::count(sources, work).unwrap();
    let texts = vec![
        ("recording", text(&recording, &notices.sentences())),
        ("names of the history", format!("{paths:?}")),
        ("states", ask("threads/*/*", &whole)),
        ("threads of CPUs", ask("cpus/*/thread", &whole)),
        ("points", ask("threads/*/state", &Time::Points(history.window(), 700))),
        ("longest", ask("threads/*/state", &longest)),
        ("stats cpu", json(&StatsTable::cpu(&running.cpus(), running.threads(), &ran))),
        ("stats io", json(&StatsTable::io(moving.processes(), &moved))),
        ("stats count", json(&StatsTable::count(&counts, &counted))),
    ];
    Results { texts }
}

impl Results {
    fn assert_equal(&self, want: &Results, how: &str) {
        for ((what, found), (_, want)) in self.texts.iter().zip(&want.texts) {
            // Not assert_eq: some of the texts are megabytes.
            let at = found.bytes().zip(want.bytes()).position(|(a, b)| a != b).unwrap_or(0);
            let part = |text: &str| text.chars().skip(at.saturating_sub(150)).take(300).collect::<String>();
            assert!(found == want, "{how}: {what}:\n{}\n{}", part(found), part(want));
        }
    }
}

/// About every third chunk.
fn some(chunk: usize) -> bool {
    Random::new(chunk as u64 * 77 + 5).below(3) == 0
}

/// Chunks are handed on in an order of their own.
fn dawdle(step: ChunkStep, chunk: usize) {
    if step != ChunkStep::Read {
        return;
    }
    std::thread::sleep(Duration::from_micros(Random::new(chunk as u64 * 31 + 7).below(4) as u64 * 50));
}

/// Every combination of settings that must not change the result.
fn ways() -> Vec<(usize, EngineOptions)> {
    let sizes = [ChunkTarget::Packet, ChunkTarget::Bytes(64 << 10), ChunkTarget::Within(1 << 20), ChunkTarget::Whole];
    let run_again: [fn(usize) -> bool; 3] = [|_| false, some, |_| true];
    let mut ways = Vec::new();
    for workers in [1, 2, 3, 7] {
        for chunks in sizes {
            for start in [ChunkStart::AfterLastSwitch, ChunkStart::Unknown] {
                ways.extend(run_again.map(|run_again| {
                    let hooks = Hooks { run_again, step: dawdle };
                    (workers, EngineOptions { chunks, start, hooks })
                }));
            }
        }
    }
    ways
}

/// Compare some of the ways with one worker and one chunk; the number of leaves that were written to a file.
fn check(name: &str, sources: &[Source], step: usize) -> u64 {
    let serial = EngineOptions { chunks: ChunkTarget::Whole, start: ChunkStart::Unknown, ..EngineOptions::default() };
    let ctx = Ctx::new(1);
    let want = results(sources, serial, usize::MAX, RowsBy::Machine, &ctx);
    // As much as needed, one tenth, the least.
    let budgets = [u64::MAX, row_bytes(&ctx) / 10, 0];
    // A stride prime to all the counts of choices meets each of them.
    let seals = [1, 300, 1 << 14];
    let mut written = 0;
    for (number, (workers, way)) in ways().into_iter().step_by(step).enumerate() {
        let (seal_every, leaves) = (seals[number % 3], budgets[(number + number / 3) % 3]);
        let rows_by = [RowsBy::Workers, RowsBy::WhoIsFree][number % 2];
        let mut ctx = Ctx::new(workers);
        ctx.budget = Some(budget(leaves));
        let found = results(sources, way, seal_every, rows_by, &ctx);
        let [wrote, read] =
            [&ctx.progress.leaves_written, &ctx.progress.leaves_read].map(|n| n.load(Ordering::Relaxed));
        // All rows are looked at afterwards.
        assert_eq!(wrote > 0, read > 0, "{name}, {leaves} bytes");
        written += wrote;
        assert_eq!(ctx.cancel.failure(), None);
        let how = format!("{workers} workers, {way:?}, rows by {rows_by:?}, sealed every {seal_every}, {leaves} bytes");
        found.assert_equal(&want, &format!("{name}, {how}"));
    }
    written
}

#[test]
fn results_do_not_depend_on_how_fixtures_are_read() {
    for path in fixtures() {
        let written = check(&path.display().to_string(), &load(&path), 29);
        assert!(written > 0, "{}", path.display());
    }
}

#[test]
fn results_do_not_depend_on_how_generated_recordings_are_read() {
    for seed in 0..12 {
        let damaged = seed % 2 == 1;
        let folder = schedule::ctf::write(&place(&format!("generated-{seed}")), seed * 91 + 3, 1200, damaged);
        check(&format!("generated {seed}, damaged: {damaged}"), &load(&folder), if seed < 2 { 1 } else { 7 });
    }
}

/// Times beyond the range of a clock become its last one; events at that time are read once.
#[test]
fn results_do_not_depend_on_how_the_end_of_time_is_read() {
    let folder = schedule::ctf::write(&place("end-of-time"), 7, 900, false);
    let stream = folder.join("channel_1");
    let mut bytes = std::fs::read(&stream).unwrap();
    let word = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let (mut at, mut packets) = (0, 0);
    while at < bytes.len() {
        // Begin, end, content and size follow the packet header: magic number, UUID and id of the stream.
        let size = word(&bytes, at + 48) as usize / 8;
        if packets >= 4 {
            bytes[at + 24..at + 40].fill(0xff);
        }
        (at, packets) = (at + size, packets + 1);
    }
    assert!(packets >= 6, "{packets}");
    std::fs::write(&stream, bytes).unwrap();
    check("end of time", &load(&folder), 7);
}

/// A copy of a recording with a few bytes of its streams overwritten.
fn mutated(to: &Path, seed: u64) {
    let mut dice = Random::new(seed);
    damage(&split_files(), to, 3, &mut |n| dice.below(n));
}

#[test]
fn results_do_not_depend_on_how_mutated_recordings_are_read() {
    for seed in 0..8 {
        let folder = place(&format!("mutated-{seed}"));
        let _ = std::fs::remove_dir_all(&folder);
        mutated(&folder, seed * 1013 + 1);
        let argument = Argument::new(folder);
        // Traces that cannot be opened at all are another test's.
        if let Ok(Opened::Traces(sources)) = open(&[argument], &Ctx::new(2)) {
            check(&format!("mutated {seed}"), &sources, 19);
        }
    }
}

/// The result of opening some paths: all that later steps read, or the error.
fn opened(paths: &[PathBuf], workers: usize) -> String {
    let arguments: Vec<Argument> = paths.iter().map(|p| Argument::new(p.clone())).collect();
    let sources = match open(&arguments, &Ctx::new(workers)) {
        Ok(Opened::Traces(sources)) => sources,
        Ok(Opened::Otf2(_)) => panic!("an archive"),
        Err(e) => return e.to_string(),
    };
    let outline = |s: &Source| {
        let (trace, said) = (&s.trace, s.trace.notices().sentences());
        format!("{} {} {:?} {:?} {:?} {said:?}\n", s.label, s.name, trace.uuid(), trace.classes(), trace.streams())
    };
    sources.iter().map(outline).collect()
}

#[test]
fn opening_does_not_depend_on_workers() {
    let mut paths = fixtures();
    for seed in 0..4 {
        let folder = place(&format!("opened-{seed}"));
        let _ = std::fs::remove_dir_all(&folder);
        mutated(&folder, seed * 377 + 2);
        paths.push(folder);
    }
    // One that cannot be read, alone in its argument, and one beside others.
    let (broken, beside) = (place("opened-broken"), place("opened-beside"));
    for folder in [&broken, &beside.join("a")] {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join("metadata"), "/* CTF 1.8 */ trace {").unwrap();
    }
    mutated(&beside.join("b"), 5);
    paths.push(beside);
    let mut lists: Vec<Vec<PathBuf>> = paths.iter().map(|p| vec![p.clone()]).collect();
    lists.push(paths.clone());
    lists.push(paths.iter().take(2).cloned().chain([broken]).chain(paths.iter().skip(2).cloned()).collect());
    for list in lists {
        let serial = opened(&list, 1);
        for workers in [2, 3, 7] {
            assert!(opened(&list, workers) == serial, "{list:?}, {workers} workers");
        }
    }
}

#[test]
#[ignore = "needs the corpus, and minutes"]
fn results_do_not_depend_on_how_the_corpus_is_read() {
    let mut found = 0;
    for path in of_corpus() {
        if let Ok(Opened::Traces(sources)) = open(&[Argument::new(path.clone())], &Ctx::new(2)) {
            check(&path.display().to_string(), &sources, 11);
            found += 1;
        }
    }
    println!("{found} recordings");
}

/// The sums of `stats cpu` and `stats io` are those of the kernel machine, which finds them on another way.
#[test]
fn usage_equals_the_kernel_machine() {
    let clean = (0..6).map(|seed| schedule::ctf::write(&place(&format!("clean-{seed}")), seed * 17 + 1, 900, false));
    let mut compared = 0;
    for path in fixtures().into_iter().chain(clean) {
        let sources = load(&path);
        let traces: Vec<&Trace> = sources.iter().map(|s| &s.trace).collect();
        let work = Ctx::new(2);
        let (recording, _) = record(&traces, &[], &Options::default(), &work).unwrap();
        // With lost events, or buffers that end unevenly, the machine guesses more than sums should.
        let even = recording.covered().iter().all(|covered| covered.span.end >= recording.span().end);
        if !recording.lossy().is_empty() || !even {
            continue;
        }
        compared += 1;
        let read = |focus| Usage::read(&traces, &[], focus, &EngineOptions::default(), &work).unwrap().0;
        let (running, moving) = (read(Focus::Running), read(Focus::Transfers));
        assert_eq!(work.progress.replayed.load(Ordering::Relaxed), 0, "{}", path.display());
        let mut threads: std::collections::BTreeMap<(i32, i32), i64> = Default::default();
        let mut cpus = Vec::new();
        let draft = TimelineDraft::of(&recording);
        for whyslow::parts::timeline::CpuTimeline { cpu, runs, .. } in &draft.cpus {
            let idle = |run: &&whyslow::parts::timeline::CpuRun| recording.threads()[run.thread.index()].idle;
            for run in runs.iter().filter(|run| !idle(run)) {
                let thread = &recording.threads()[run.thread.index()];
                *threads.entry((thread.pid, thread.tid)).or_default() += run.span.len();
            }
            let busy: i64 = runs.iter().filter(|run| !idle(run)).map(|run| run.span.len()).sum();
            cpus.push((*cpu, busy, runs.iter().map(|run| run.span.len()).sum::<i64>()));
        }
        let found: Vec<_> = running.cpus().iter().map(|c| (c.cpu, c.active_ns, c.total_ns)).collect();
        assert_eq!(found, cpus, "{}", path.display());
        let mut found: std::collections::BTreeMap<(i32, i32), i64> = Default::default();
        running.threads().iter().for_each(|t| *found.entry((t.pid, t.tid)).or_default() += t.cpu_ns);
        assert_eq!(found, threads, "{}", path.display());
        let mut moved: std::collections::BTreeMap<i32, [u64; 4]> = Default::default();
        for thread in &draft.threads {
            for call in &thread.rows.calls {
                use whyslow::parts::event::transfer::{Transfer, transfer};
                let (Some(ret), Some(way)) = (call.ret, transfer(recording.names().get(call.name))) else { continue };
                let sums = moved.entry(thread.thread.pid).or_default();
                let at = if way == Transfer::Read { 0 } else { 2 };
                sums[at] += u64::try_from(ret).unwrap_or(0);
                sums[at + 1] += 1;
            }
        }
        let found = moving.processes().into_iter();
        let found = found.map(|p| (p.pid, [p.read.bytes, p.read.calls, p.written.bytes, p.written.calls]));
        assert_eq!(found.collect::<std::collections::BTreeMap<_, _>>(), moved, "{}", path.display());
    }
    assert!(compared >= 6, "{compared}");
}

#[test]
fn cancelled_run_ends_with_the_chunks_that_were_begun() {
    /// Chunks that were looked at: before the cancel, and in all.
    static SEEN: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
    let folder = schedule::ctf::write(&place("cancelled"), 5, 4000, false);
    let sources = load(&folder);
    let traces: Vec<_> = sources.iter().map(|s| &s.trace).collect();
    let slow = |step, _| {
        if step != ChunkStep::Read {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
        SEEN[1].fetch_add(1, Ordering::SeqCst);
    };
    let way = EngineOptions {
        chunks: ChunkTarget::Packet,
        hooks: Hooks { step: slow, ..Hooks::default() },
        ..EngineOptions::default()
    };
    let work = Ctx::new(3);
    let cancel = work.cancel.clone();
    std::thread::scope(|scope| {
        let run = scope.spawn(|| Usage::read(&traces, &[], Focus::Running, &way, &work).err());
        while SEEN[1].load(Ordering::SeqCst) < 4 {
            std::thread::sleep(Duration::from_millis(1));
        }
        cancel.cancel();
        SEEN[0].store(SEEN[1].load(Ordering::SeqCst), Ordering::SeqCst);
        let asked = Instant::now();
        assert_eq!(run.join().unwrap(), Some(Cancelled));
        // A tenth of a second is promised; the machine that tests may be busy.
        assert!(asked.elapsed() < Duration::from_secs(1));
    });
    let [before, all] = [&SEEN[0], &SEEN[1]].map(|seen| seen.load(Ordering::SeqCst));
    assert!(before >= 4 && all <= before + 3, "{before} chunks before the cancel, {all} in all");
}

#[test]
fn damage_in_one_chunk_leaves_the_others() {
    let folder = schedule::ctf::write(&place("one-packet"), 9, 1200, false);
    let whole = count::count(&load(&folder), &Ctx::new(2)).unwrap().0.events;
    let stream = folder.join("channel_1");
    let mut bytes = std::fs::read(&stream).unwrap();
    // The id of the first event, behind packet header and packet context.
    bytes[76..78].copy_from_slice(&u16::MAX.to_le_bytes());
    std::fs::write(&stream, bytes).unwrap();
    let sources = load(&folder);
    let traces: Vec<_> = sources.iter().map(|s| &s.trace).collect();
    let way = EngineOptions { chunks: ChunkTarget::Packet, ..EngineOptions::default() };
    let (usage, notices) = Usage::read(&traces, &[], Focus::Running, &way, &Ctx::new(3)).unwrap();
    assert!(notices.sentences().iter().any(|s| s.contains("damaged")), "{:?} {:?}", notices, Notice::DamagedPacket);
    assert_eq!(usage.cpus().len(), schedule::CPUS);
    assert!(count::count(&sources, &Ctx::new(2)).unwrap().0.events > whole * 9 / 10);
}
