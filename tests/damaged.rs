//! What a damaged packet takes from what is known: from its last record that can be read to its end, who ran on its CPU is unknown.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/ctf_writer.rs"]
mod ctf_writer;

use ctf_writer::{Channel, Event, Task, TraceWriter, Value};
use std::rc::Rc;
use whyslow::base::ctx::Ctx;
use whyslow::base::time::{Ns, Span};
use whyslow::input::{Argument, Opened, open};
use whyslow::reading::engine::{ChunkTarget, Way};
use whyslow::state::kernel::{Options, record};
use whyslow::state::timeline::{SegmentKind, Timeline};

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
fn read(workers: usize, chunks: ChunkTarget) -> Timeline {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
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
    for entry in std::fs::read_dir(&path).unwrap() {
        let file = entry.unwrap().path();
        let mut bytes = std::fs::read(&file).unwrap();
        let mark = b"the_damaged_one";
        let stream = !file.ends_with("metadata");
        if let Some(at) = bytes.windows(mark.len()).position(|w| w == mark).filter(|_| stream) {
            bytes[at..].fill(0xff);
            std::fs::write(&file, bytes).unwrap();
        }
    }
    let arguments = [Argument { label: None, path }];
    let Opened::Traces(sources) = open(&arguments, &Ctx::new(1)).unwrap() else { panic!("no trace") };
    let traces: Vec<_> = sources.iter().map(|s| &s.trace).collect();
    let options = Options { way: Way { chunks, ..Way::default() }, ..Options::default() };
    record(&traces, &[], &options, &Ctx::new(workers)).unwrap().0
}

#[test]
fn behind_a_damaged_record_who_ran_is_unknown() {
    for (workers, chunks) in [(1, ChunkTarget::Whole), (2, ChunkTarget::Packet)] {
        let recording = read(workers, chunks);
        assert_eq!(recording.check(), None);
        let seven = recording.threads.iter().find(|t| t.tid == 7).unwrap();
        let edges: Vec<(Ns, Ns, SegmentKind)> =
            seven.segments.iter().map(|e| (e.span.start - START, e.span.end - START, e.kind)).collect();
        assert!(edges.contains(&(10, 60, SegmentKind::Running)), "{edges:?}");
        let lost =
            seven.segments.iter().find(|e| e.kind == SegmentKind::Unknown && e.span.start == START + 60).unwrap();
        assert_eq!(lost.qualifier.map(|q| recording.names.get(q)), Some("events lost"), "{edges:?}");
        // The other CPU is whole.
        let nine = recording.threads.iter().find(|t| t.tid == 9).unwrap();
        assert!(
            nine.segments.iter().any(|e| e.kind == SegmentKind::Running && e.span.len() == 285),
            "{:?}",
            nine.segments
        );
        assert!(recording.is_lossy(Span::new(START + 150, START + 160)));
        assert!(!recording.is_lossy(Span::new(START + 20, START + 30)));
        assert_eq!(recording.quality[0].losses, 1);
    }
}
