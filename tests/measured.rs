//! `info` and `stats` report their measurements: spans of events, system calls that occurred, the reason of an empty
//! table, calls that were recorded by number.

use crate::support::{ask, ctf_writer};
use ctf_writer::{Channel, Context, Event, Task, TraceWriter, Value};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Time, name and fields of an event.
type TimedEvent = (i64, &'static str, Vec<(&'static str, Value)>);

fn json(words: &[&str], trace: &Path) -> serde_json::Value {
    let out = ask::run(ask::program().args(words).arg("--json").arg(trace));
    assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// A kernel trace that ran from 1 to 3 s; `events` are at their times, on CPU 0 and on one thread.
fn kernel(name: &str, events: Vec<TimedEvent>) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("measured-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    let on = Rc::new(Task { tid: 70, pid: 70, vtid: 70, vpid: 70, comm: "worker".into(), ..Task::default() });
    let event = |(time, name, fields): TimedEvent| Event {
        time,
        cpu: 0,
        name: name.into(),
        fields,
        on: Rc::clone(&on),
        stack: None,
    };
    let mut trace = TraceWriter::new("host", "kernel", 0x91, 0x92);
    trace.span = (1_000_000_000, 3_000_000_000);
    let contexts = vec![Context::Pid, Context::Tid, Context::Procname];
    let events = events.into_iter().map(event).collect();
    trace.channels.push(Channel { name: "channel".into(), contexts, events, discarded: Vec::new() });
    trace.write(&folder);
    folder
}

fn call(at: i64, entry: &'static str, exit: &'static str, id: Option<i64>) -> Vec<TimedEvent> {
    let id = || id.map(|id| ("id", Value::I64(id))).into_iter();
    let begin = 1_500_000_000 + at * 1000;
    let fd = ("fd", Value::I64(3));
    let ret = ("ret", Value::I64(0));
    vec![(begin, entry, id().chain([fd]).collect()), (begin + 500, exit, id().chain([ret]).collect())]
}

fn tasks(info: &serde_json::Value) -> Vec<(String, u64)> {
    let task = |t: &serde_json::Value| (t["name"].as_str().unwrap().to_owned(), t["executions"].as_u64().unwrap());
    info["tasks"].as_array().unwrap().iter().map(task).collect()
}

#[test]
fn info_reports_the_spans_of_events_and_of_packets() {
    let trace = kernel("span", call(0, "syscall_entry_fsync", "syscall_exit_fsync", None));
    let info = json(&["info", "--full"], &trace);
    let packets = &info["traces"][0];
    assert_eq!((packets["begin_ns"].as_i64(), packets["end_ns"].as_i64()), (Some(1_000_000_000), Some(3_000_000_000)));
    let events = (info["events"]["begin_ns"].as_i64(), info["events"]["end_ns"].as_i64());
    assert_eq!(events, (Some(1_500_000_000), Some(1_500_000_500)));
    assert!(json(&["info"], &trace).get("events").is_none(), "packets alone do not show the span of events");
}

/// The metadata of a kernel declare all its system calls; only those that occurred are tasks.
#[test]
fn system_calls_that_never_occurred_are_left_out() {
    let trace = kernel("declared", call(0, "syscall_entry_fsync", "syscall_exit_fsync", None));
    let metadata = trace.join("metadata");
    let mut text = std::fs::read_to_string(&metadata).unwrap();
    for (id, name) in [(70, "syscall_entry_openat"), (71, "syscall_exit_openat")] {
        let fields = "struct { integer { size = 64; } _ret; }";
        text += &format!("event {{ name = \"{name}\"; id = {id}; stream_id = 0; fields := {fields}; }};\n");
    }
    std::fs::write(&metadata, text).unwrap();
    let info = json(&["info", "--full"], &trace);
    assert_eq!(info["traces"][0]["event_types"], 4, "openat is declared");
    assert_eq!(tasks(&info), [("fsync".to_owned(), 1)]);
    let listed = json(&["info"], &trace);
    assert!(listed["tasks"].as_array().unwrap().is_empty(), "metadata do not show which calls occurred: {listed}");
}

#[test]
fn calls_recorded_by_number_have_their_name_or_number() {
    let raw = ("raw_syscalls:sys_enter", "raw_syscalls:sys_exit");
    let lttng = ("syscall_entry_unknown", "syscall_exit_unknown");
    for (name, (entry, exit)) in [("raw", raw), ("unknown", lttng)] {
        let all = [call(0, entry, exit, Some(74)), call(9, entry, exit, Some(999))].concat();
        let found = tasks(&json(&["info", "--full"], &kernel(name, all)));
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert!(names.contains(&"fsync") && names.iter().any(|n| n.contains("999")), "{name}: {names:?}");
    }
}

#[test]
fn empty_table_names_its_reason() {
    let trace = kernel("empty", call(0, "syscall_entry_fsync", "syscall_exit_fsync", None));
    for (table, rows, reason) in [("cpu", "threads", "sched_switch"), ("io", "processes", "no reads and writes")] {
        let answer = json(&["stats", table], &trace);
        assert!(answer[rows].as_array().unwrap().is_empty(), "{answer}");
        assert!(answer["warnings"][0].as_str().unwrap().contains(reason), "{answer}");
    }
}
