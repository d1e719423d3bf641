//! Serial equals parallel: the same recording for any number of workers and any size of chunks, on every fixture.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use whyslow::analysis::recording::Recording;
use whyslow::base::work::Work;
use whyslow::event::task::{Delimiter, Pairing, TaskDefinition};
use whyslow::input::{Argument, Opened, Source, open};
use whyslow::state::engine::ChunkTarget;
use whyslow::state::kernel::{Options, record};

fn fixtures() -> Vec<(String, Vec<Source>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces");
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    names.sort();
    names.retain(|p| p.is_dir());
    let load = |path: &std::path::PathBuf| {
        let argument = Argument { label: None, path: path.clone() };
        let Opened::Ctf(sources) = open(&[argument]).unwrap() else { panic!("{}: no CTF", path.display()) };
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
    let options = Options { chunks, ..Options::default() };
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
