//! Serial equals parallel: the same recording, and the same bytes from every command, for any number of workers and any
//! size of chunks, on every fixture.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use whyslow::analysis::recording::Recording;
use whyslow::base::work::Work;
use whyslow::event::task::{Delimiter, Pairing, TaskDefinition};
use whyslow::input::{Argument, Opened, Source, open};
use whyslow::state::engine::{ChunkTarget, Way};
use whyslow::state::kernel::{Options, record};

fn fixtures() -> Vec<(String, Vec<Source>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces");
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    names.sort();
    names.retain(|p| p.is_dir());
    let load = |path: &std::path::PathBuf| {
        let argument = Argument { label: None, path: path.clone() };
        let Opened::Ctf(sources) = open(&[argument]).unwrap() else { panic!("{} is no CTF trace", path.display()) };
        (path.file_name().unwrap().to_string_lossy().into_owned(), sources)
    };
    names.iter().map(load).collect()
}

/// Marks of every kind: user-space and kernel, with key and type, and of one system call.
fn tasks() -> Vec<TaskDefinition> {
    let delimiter = |event: &str, key: Option<&str>| Delimiter {
        event: event.to_owned(),
        key: key.map(str::to_owned),
        not_negative: None,
    };
    let task = |begin: &str, end: &str, key: Option<&str>, kind: Option<&str>| TaskDefinition {
        name: begin.to_owned(),
        begins: vec![delimiter(begin, key)],
        ends: vec![delimiter(end, key)],
        pairing: if key.is_some() { Pairing::Key } else { Pairing::Thread },
        kind: kind.map(str::to_owned),
        nest: false,
    };
    vec![
        task("app:request_begin", "app:request_end", Some("id"), Some("type")),
        task("syscall_entry_write", "syscall_exit_write", None, None),
    ]
}

fn recorded(sources: &[Source], chunks: ChunkTarget, workers: usize) -> (Recording, Vec<String>) {
    let traces: Vec<_> = sources.iter().map(|s| &s.trace).collect();
    let options = Options { way: Way { chunks, ..Way::default() }, ..Options::default() };
    let (recording, notices) = record(&traces, &tasks(), &options, &Work::new(workers)).unwrap();
    (recording, notices.sentences())
}

/// All of it as text, in which equal recordings are equal.
fn text((recording, notices): &(Recording, Vec<String>)) -> String {
    let names: Vec<&str> =
        (0..recording.names.len()).map(|i| recording.names.get(whyslow::base::names::NameId::at(i))).collect();
    let stacks: Vec<&[u64]> =
        (0..recording.stacks.len()).map(|i| recording.stacks.get(whyslow::event::stack::RawStackId::at(i))).collect();
    let Recording { hosts, threads, cpus, images, disk, marks, page_faults, lossy, span, .. } = recording;
    format!(
        "{names:?}{stacks:?}{hosts:?}{threads:?}{cpus:?}{images:?}{disk:?}{marks:?}{page_faults:?}{lossy:?}{span:?}{notices:?}"
    )
}

#[test]
fn the_recording_does_not_depend_on_workers_or_chunks() {
    for (name, sources) in fixtures() {
        let whole = recorded(&sources, ChunkTarget::Whole, 1);
        assert!(!whole.0.threads.is_empty(), "{name}");
        let want = text(&whole);
        let runs = [
            (ChunkTarget::Packet, 1),
            (ChunkTarget::Packet, 3),
            (ChunkTarget::Bytes(64 << 10), 2),
            (ChunkTarget::Bytes(1 << 20), 7),
            (ChunkTarget::Balanced, 2),
        ];
        for (chunks, workers) in runs {
            // Not assert_eq: the texts are megabytes.
            assert!(text(&recorded(&sources, chunks, workers)) == want, "{name}: {chunks:?}, {workers} workers");
        }
    }
}

/// What a command prints, and how it ends.
fn printed(words: &[&str], trace: &Path, more: &[&str]) -> (Option<i32>, Vec<u8>, Vec<u8>) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_whyslow"));
    let out = command.args(words).arg(trace).args(more).output().unwrap();
    (out.status.code(), out.stdout, out.stderr)
}

#[test]
fn every_command_prints_the_same_bytes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces");
    let accepted = "begin=syscall_exit_accept4,end=syscall_entry_shutdown";
    let cases: [(&str, &[&str]); 8] = [
        ("lock-contention", &["diff", "--json"]),
        ("lock-contention", &["explain", "--json", "--task", "client:call"]),
        ("cpu-contention", &["explain", "--json"]),
        ("disk-contention", &["diff", "--json", "--task", accepted]),
        ("disk-contention", &["stats", "io", "--json"]),
        ("cpu-contention", &["stats", "cpu", "--json"]),
        ("lost-events", &["info", "--full", "--json"]),
        ("rotated", &["stats", "count", "--json"]),
    ];
    for (name, words) in cases {
        let trace = folder.join(name);
        let bin = trace.join("bin");
        let symbols = ["--symbols", bin.to_str().unwrap()];
        let places: &[&str] = if matches!(words[0], "diff" | "explain") { &symbols } else { &[] };
        let with = |threads: &str, chunk: &[&str]| {
            let more: Vec<&str> = ["--threads", threads].iter().chain(chunk).chain(places).copied().collect();
            printed(words, &trace, &more)
        };
        let want = with("1", &["--chunk", "1000000000"]);
        assert_eq!(want.0, Some(0), "{name} {words:?}: {}", String::from_utf8_lossy(&want.2));
        for (threads, chunk) in [("1", "0"), ("2", "65536"), ("3", "0"), ("7", "1048576")] {
            assert!(
                with(threads, &["--chunk", chunk]) == want,
                "{name} {words:?}: {threads} workers, chunks of {chunk}"
            );
        }
        assert!(with("2", &[]) == want, "{name} {words:?}: two workers, balanced chunks");
    }
}
