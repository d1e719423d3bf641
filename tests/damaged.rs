//! A damaged packet: from its last readable record to its end the thread on its CPU is unknown.

use crate::support::{ask, ctf_writer, spans};
use ctf_writer::{Channel, Event, Task, TraceWriter, Value};
use spans::span;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::base::time::Ns;
use whyslow::parts::input::{Argument, Opened, open};
use whyslow::parts::kernel::{Options, record};
use whyslow::parts::reading::chunks::ChunkTarget;
use whyslow::parts::reading::engine::EngineOptions;
use whyslow::parts::timeline::{SegmentKind, Timeline, TimelineDraft};

const START: Ns = 1_000_000;
const END: Ns = START + 300;

fn switch(time: Ns, cpu: u32, prev: i32, next: i32, name: &str) -> Event {
    let fields = vec![
        ("prev_comm", Value::Text(name.into())),
        ("prev_tid", Value::I32(prev)),
        ("prev_state", Value::I64(0)),
        ("next_comm", Value::Text("x".into())),
        ("next_tid", Value::I32(next)),
    ];
    Event { time: START + time, cpu, name: "sched_switch".into(), fields, on: Rc::new(Task::default()), stack: None }
}

/// Thread 7 runs on CPU 0 from 10 on, and gives it to 8 at 100, in a record that cannot be read.
fn write(folder: &Path) -> PathBuf {
    let path = folder.join("trace");
    let mut trace = TraceWriter::new("", "kernel", 0x77, 0x99);
    trace.environment = vec![("domain".into(), "kernel".into())];
    trace.span = (START, END);
    let events = vec![
        switch(5, 1, 0, 9, "swapper"),
        switch(10, 0, 0, 7, "swapper"),
        switch(60, 0, 7, 7, "seven"),
        switch(100, 0, 7, 8, "the_damaged_one"),
        switch(200, 0, 8, 7, "eight"),
        switch(290, 1, 9, 0, "nine"),
    ];
    trace.channels.push(Channel { name: "kernel".into(), contexts: Vec::new(), events, discarded: Vec::new() });
    trace.write(&path);
    damage(&path);
    path
}

/// Records after a text in its stream cannot be read.
fn damage(trace: &Path) {
    for entry in std::fs::read_dir(trace).unwrap() {
        let file = entry.unwrap().path();
        let mut bytes = std::fs::read(&file).unwrap();
        let mark = b"the_damaged_one";
        let stream = !file.ends_with("metadata");
        if let Some(at) = bytes.windows(mark.len()).position(|w| w == mark).filter(|_| stream) {
            bytes[at..].fill(0xff);
            std::fs::write(&file, bytes).unwrap();
        }
    }
}

fn read(workers: usize, chunks: ChunkTarget) -> Timeline {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [Argument::new(write(folder.path()))];
    let Opened::Traces(sources) = open(&arguments, &Ctx::new(1)).unwrap() else { panic!("no trace") };
    let traces: Vec<_> = sources.iter().map(|s| &s.trace).collect();
    let options = Options { engine: EngineOptions { chunks, ..EngineOptions::default() }, ..Options::default() };
    record(&traces, &[], &options, &Ctx::new(workers)).unwrap().0.seal()
}

#[test]
fn cpu_is_unknown_after_a_damaged_record() {
    for (workers, chunks) in [(1, ChunkTarget::Whole), (2, ChunkTarget::Packet)] {
        let recording = read(workers, chunks);
        assert_eq!(recording.check(), None);
        let draft = TimelineDraft::of(&recording);
        let seven = draft.threads.iter().find(|t| t.thread.tid == 7).unwrap();
        let edges: Vec<(Ns, Ns, SegmentKind)> =
            seven.rows.segments.iter().map(|e| (e.span.start.ns() - START, e.span.end.ns() - START, e.kind)).collect();
        assert!(edges.contains(&(10, 60, SegmentKind::Running)), "{edges:?}");
        let lost = seven
            .rows
            .segments
            .iter()
            .find(|e| e.kind == SegmentKind::Unknown && e.span.start.ns() == START + 60)
            .unwrap();
        assert_eq!(lost.qualifier.map(|q| recording.names().get(q)), Some("events lost"), "{edges:?}");
        // The other CPU is whole.
        let nine = draft.threads.iter().find(|t| t.thread.tid == 9).unwrap();
        assert!(
            nine.rows.segments.iter().any(|e| e.kind == SegmentKind::Running && e.span.len() == 285),
            "{:?}",
            nine.rows.segments
        );
        assert!(recording.is_lossy(span(START + 150, START + 160)));
        assert!(!recording.is_lossy(span(START + 20, START + 30)));
        assert_eq!(recording.quality()[0].losses, 1);
    }
}

/// The same, of the tables: nothing is counted as running behind the last record that can be read.
#[test]
fn stats_cpu_ends_at_the_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path());
    for threads in ["1", "2"] {
        let mut command = ask::program();
        let out = ask::run(command.args(["stats", "cpu", "--json", "--threads", threads]).arg(&path));
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let table: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        let ran =
            |tid: i64| table["threads"].as_array().unwrap().iter().find(|t| t["tid"] == tid).unwrap()["cpu_ns"].clone();
        assert_eq!((ran(7), ran(9)), (50.into(), 285.into()), "{table:#}");
        let active: Vec<_> = table["cpus"].as_array().unwrap().iter().map(|cpu| cpu["active_ns"].clone()).collect();
        assert_eq!(active, [50, 285], "{table:#}");
    }
}

/// A call that was open before the damage has moved nothing: the exit behind it may be another's.
#[test]
fn calls_end_at_a_damaged_record() {
    let task = Rc::new(Task::default());
    let call = |time: Ns, name: &'static str, fields| Event {
        time: START + time,
        cpu: 0,
        name: name.into(),
        fields,
        on: Rc::clone(&task),
        stack: None,
    };
    let moved = |is_damaged: bool| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        let mut trace = TraceWriter::new("", "kernel", 0x77, 0x99);
        trace.environment = vec![("domain".into(), "kernel".into())];
        trace.span = (START, END);
        let name = if is_damaged { "the_damaged_one" } else { "seven" };
        let channel =
            |name: &str, events| Channel { name: name.into(), contexts: Vec::new(), events, discarded: Vec::new() };
        trace.channels.push(channel(
            "switches",
            vec![switch(10, 0, 0, 7, "swapper"), switch(20, 0, 7, 7, "seven"), switch(60, 0, 7, 7, name)],
        ));
        let entry = call(15, "syscall_entry_read", vec![("fd", Value::I32(3)), ("count", Value::U64(4096))]);
        let exit = call(90, "syscall_exit_read", vec![("ret", Value::I64(4096))]);
        trace.channels.push(channel("calls", vec![entry, exit]));
        trace.write(&path);
        damage(&path);
        let mut command = ask::program();
        let out = ask::run(command.args(["stats", "io", "--json"]).arg(&path));
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let table: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        let bytes =
            table["processes"].as_array().unwrap().iter().map(|process| process["read_bytes"].as_u64().unwrap());
        bytes.sum::<u64>()
    };
    assert_eq!((moved(false), moved(true)), (4096, 0));
}
