//! What is counted along a path besides time: hardware counters, page faults, fields; absent is absent.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/written.rs"]
mod written;

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use written::{Written, payload};

const UUID: &str = "11111111-1111-1111-1111-111111111111";

/// Thread 5 makes 60 calls `job`; every sixth is three times as long, has three times the instructions, and a page fault
/// in the middle. With `counters` each event carries two of them; `perf_tid` is none.
fn write(folder: &Path, counters: bool) {
    let context = if counters {
        "i32 _tid; u64 _perf_thread_instructions; u64 _perf_cpu_cycles; i32 _perf_tid;"
    } else {
        "i32 _tid;"
    };
    let mut trace = Written::new("alpha", UUID, "kernel", context);
    let mut instructions = 1_000u64;
    // Thread 5 has the CPU from here on.
    let fields = "string _prev_comm; i32 _prev_tid; i64 _prev_state; string _next_comm; i32 _next_tid;";
    let idle = if counters { payload().i32(0).u64(0).u64(0).i32(0) } else { payload().i32(0) };
    trace.event(900_000, 0, "sched_switch", fields, idle, payload().text("swapper/0").i32(0).i64(0).text("t5").i32(5));
    for i in 0..60i64 {
        let (t, long) = (1_000_000 * (i + 1), i % 6 == 5);
        let with = |n: u64| {
            let tid = payload().i32(5);
            if counters { tid.u64(n).u64(2 * n).i32(5) } else { tid }
        };
        let grown = if long { 30_000 } else { 10_000 } + i as u64;
        trace.event(t, 0, "syscall_entry_job", "i64 _fd;", with(instructions), payload().i64(i % 3));
        if long {
            let user = "u64 _address;";
            trace.event(t + 100, 0, "x86_exceptions_page_fault_user", user, with(instructions + 50), payload().u64(9));
        }
        instructions += grown;
        let end = t + if long { 300_000 } else { 100_000 };
        trace.event(end, 0, "syscall_exit_job", "i64 _ret;", with(instructions), payload().i64(1));
        // Between the calls it counts on.
        instructions += 777;
    }
    trace.write(folder);
}

fn run(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_whyslow")).args(words).arg(folder).output().unwrap()
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
fn absent_is_absent() {
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
