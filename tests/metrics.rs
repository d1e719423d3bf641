//! Metrics of a path besides time: hardware counters, page faults, fields; absent is absent.

use crate::support::{ask, ctf_writer, kernel_trace};
use ctf_writer::{Context, Value as Field};
use kernel_trace::KernelTrace;
use serde_json::Value;
use std::path::Path;
use std::process::Output;

/// Thread 5 makes 60 calls `job`; every sixth is three times as long, has three times the instructions, and a page
/// fault in the middle. With `counters` each event carries two of them; `perf_tid` is none.
fn write(folder: &Path, counters: bool) {
    const COUNTERS: [Context; 3] =
        [Context::U64("perf_thread_instructions"), Context::U64("perf_cpu_cycles"), Context::I32("perf_tid")];
    let mut trace = KernelTrace::new("alpha", 0x11).with_contexts(if counters { &COUNTERS } else { &[] });
    let with = |n: u64, field: Vec<(&'static str, Field)>| {
        let counted = [
            ("perf_thread_instructions", Field::U64(n)),
            ("perf_cpu_cycles", Field::U64(2 * n)),
            ("perf_tid", Field::I32(5)),
        ];
        field.into_iter().chain(counted.into_iter().filter(|_| counters)).collect()
    };
    let mut instructions = 1_000u64;
    // Thread 5 runs from here on.
    trace.switch(900_000, 0, 0, 0, 5);
    for i in 0..60i64 {
        let (t, long) = (1_000_000 * (i + 1), i % 6 == 5);
        let grown = if long { 30_000 } else { 10_000 } + i as u64;
        trace.event(t, 0, 5, "syscall_entry_job", with(instructions, vec![("fd", Field::I64(i % 3))]));
        if long {
            let fault = with(instructions + 50, vec![("address", Field::U64(9))]);
            trace.event(t + 100, 0, 5, "x86_exceptions_page_fault_user", fault);
        }
        instructions += grown;
        let end = t + if long { 300_000 } else { 100_000 };
        trace.event(end, 0, 5, "syscall_exit_job", with(instructions, vec![("ret", Field::I64(1))]));
        // Between the calls it counts on.
        instructions += 777;
    }
    trace.write(folder);
}

fn run(folder: &Path, words: &[&str]) -> Output {
    ask::run(ask::program().args(words).arg(folder))
}

fn diff(folder: &Path, words: &[&str]) -> Value {
    let out = run(folder, &[&["diff", "--json", "--check", "--task", "job"], words].concat());
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

#[test]
fn counters_and_faults_are_metrics_and_can_be_filtered() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), true);
    let all = diff(folder.path(), &["--slow", "perf.thread_instructions>=30000", "--fast", "page_faults=0"]);
    assert_eq!((&all["slow"]["count"], &all["fast"]["count"]), (&10.into(), &50.into()));
    let names: Vec<&str> = all["metrics"].as_array().unwrap().iter().map(|m| m["name"].as_str().unwrap()).collect();
    for name in ["perf.thread_instructions", "perf.cpu_cycles", "page_faults", "field.fd"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert!(!names.contains(&"perf.tid"), "{names:?}");
    // The sum of the differences, and nothing of what was counted between the calls.
    for (range, count) in [("30000..30060", 10), ("10000..10060", 50), ("0..10000", 0)] {
        let filter = format!("perf.thread_instructions in {range}");
        let out = run(folder.path(), &["diff", "--json", "--task", "job", "--slow", &filter, "--fast", "duration>0"]);
        let found = serde_json::from_slice::<Value>(&out.stdout).map_or(0, |v| v["slow"]["count"].as_i64().unwrap());
        assert_eq!(found, count, "{filter}: {}", String::from_utf8_lossy(&out.stderr));
    }
    let twice = diff(folder.path(), &["--slow", "perf.cpu_cycles>=60000", "--fast", "perf.cpu_cycles<60000"]);
    assert_eq!(twice["slow"]["count"], 10);
}

#[test]
fn metrics_that_were_not_recorded_are_absent() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), false);
    let all = diff(folder.path(), &[]);
    let names: Vec<&str> = all["metrics"].as_array().unwrap().iter().map(|m| m["name"].as_str().unwrap()).collect();
    assert!(!names.iter().any(|n| n.starts_with("perf.")), "{names:?}");
    let filter = ["explain", "--task", "job", "--slow", "perf.thread_instructions>=1", "--fast", "duration>0"];
    let out = run(folder.path(), &filter);
    assert!(!out.status.success());
    assert!(String::from_utf8_lossy(&out.stderr).contains("perf.thread_instructions"), "{out:?}");
}
