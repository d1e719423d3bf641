//! The order of the records in a perf.data without CPU numbers changes no answer: perf writes the ring of one CPU
//! behind that of another, and whyslow merges them by time. The same records in order of time, and divided among
//! several rings, give the same bytes, on any number of workers. So do the records of any other recording by perf that
//! are sorted by time.

use crate::support::{ask, random, reorder, repeated};
use random::Random;
use reorder::PerfData;
use std::path::{Path, PathBuf};
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::dump::{self, Form, Sizes};
use whyslow::parts::input::{self, Argument, Opened};
use whyslow::parts::kernel::{Options, record};
use whyslow::parts::timeline::TimelineDraft;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recorders/rings.data")
}

/// Everything that is read from a file: its dump, and the rows of the timeline.
fn seen(path: &Path, workers: usize) -> (String, String) {
    let ctx = Ctx::new(workers);
    let argument = Argument::new(path.to_owned());
    let Ok(Opened::Traces(sources)) = input::open(&[argument], &ctx) else { panic!("{}", path.display()) };
    let mut out = Vec::new();
    dump::write(&sources, Form::Readable, &Sizes::default(), &ctx, &mut out).unwrap();
    let traces: Vec<_> = sources.iter().map(|source| &source.trace).collect();
    let (timeline, _) = record(&traces, &[], &Options::default(), &ctx).unwrap();
    assert_eq!(timeline.check(), None);
    let draft = TimelineDraft::of(&timeline);
    let rows = draft.threads.iter().map(|of| format!("{:?} {:?}\n", of.thread, of.rows)).collect();
    (String::from_utf8(out).unwrap(), rows)
}

/// The times at the beginnings of the lines of a dump.
fn times(dump: &str) -> Vec<&str> {
    dump.lines().filter_map(|line| line.split(' ').next()).collect()
}

#[test]
fn order_of_records_changes_nothing() {
    let short = std::fs::read(fixture()).unwrap();
    let sorted = PerfData::of(&short).by_time();
    // Long enough for several packets and parts.
    let long = repeated::perf_data(&sorted, 1 << 20);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("perf.data");
    for (file, longest) in [(short, 60), (long, 4_000)] {
        let parts = PerfData::of(&file);
        let mut dice = Random::new(0x6f72_6465_7221);
        let mut orders = vec![parts.by_time(), file.clone()];
        for rings in [2, 3, 8] {
            for most in [1, 40, longest] {
                orders.push(parts.in_rings(rings, most, &mut dice));
            }
        }
        let mut first = None;
        for (number, bytes) in orders.iter().enumerate() {
            std::fs::write(&path, bytes).unwrap();
            let workers = [1, 2, 7][number % 3];
            let seen = seen(&path, workers);
            assert!(times(&seen.0).is_sorted(), "order {number}");
            assert!(times(&seen.0).len() >= parts.timed.len(), "order {number}");
            let first = first.get_or_insert_with(|| seen.clone());
            assert!(seen.0 == first.0, "the dump of order {number} differs");
            assert!(seen.1 == first.1, "the timeline of order {number} differs");
        }
    }
}

#[test]
fn answers_do_not_depend_on_the_order_of_records() {
    let file = std::fs::read(fixture()).unwrap();
    let parts = PerfData::of(&file);
    assert!(!parts.timed.is_sorted_by_key(|record| record.time), "the fixture holds rings that overlap");
    let orders = [file, parts.by_time(), parts.in_rings(4, 10, &mut Random::new(7))];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("perf.data");
    for words in [
        &["info", "--full"][..],
        &["dump"],
        &["stats", "cpu"],
        &["explain", "--json", "--task", "thread=ring-worker"],
        &["diff", "--json", "--task", "thread=ring-worker", "--slow", "duration>=40ms", "--fast", "duration<40ms"],
    ] {
        let mut answers = Vec::new();
        for (order, workers) in orders.iter().zip(["1", "2", "7"]) {
            std::fs::write(&path, order).unwrap();
            let mut command = ask::whyslow(words.iter().copied().chain(["--threads", workers, "perf.data"]));
            let answer = ask::run(command.current_dir(folder.path()));
            answers.push((answer.status.code(), String::from_utf8_lossy(&answer.stdout).into_owned()));
        }
        assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{words:?}: {answers:#?}");
        assert!(!answers[0].1.is_empty(), "{words:?}");
    }
}

/// All files of a folder and those in it.
fn files(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, all) } else { all.push(path) }
    }
}

#[test]
fn sorting_any_recording_by_time_changes_no_answer() {
    let mut all = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures"), &mut all);
    all.sort();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("perf.data");
    let (mut recordings, mut moved) = (0, 0);
    for fixture in &all {
        let file = std::fs::read(fixture).unwrap();
        let Some(parts) = PerfData::movable(&file) else { continue };
        recordings += 1;
        let sorted = parts.by_time();
        moved += usize::from(sorted != file);
        for words in [&["explain", "--json"][..], &["info", "--full"], &["dump"]] {
            let mut answers = Vec::new();
            for (bytes, workers) in [(&file, "1"), (&sorted, "2")] {
                std::fs::write(&path, bytes).unwrap();
                let mut command = ask::whyslow(words.iter().copied().chain(["--threads", workers, "perf.data"]));
                let answer = ask::run(command.current_dir(folder.path()));
                answers.push((answer.status.code(), String::from_utf8_lossy(&answer.stdout).into_owned()));
            }
            assert!(answers[0] == answers[1], "{}: {words:?}: {answers:#?}", fixture.display());
        }
    }
    assert!(recordings >= 15 && moved >= 10, "{moved} of {recordings}");
}
