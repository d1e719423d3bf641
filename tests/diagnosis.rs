//! Recorded problems with known causes: the right cause comes first, in the groups that the tool proposes and in
//! `p95` against `p50`, and the parts add up to the whole.

use crate::support::ask;
use serde_json::Value;
use std::path::Path;

struct Expected {
    folder: &'static str,
    traces: &'static [&'static str],
    task: &'static str,
    kind: &'static str,
    /// Process or thread to which it is attributed.
    by: &'static str,
    /// One of these is in the path, or is the function.
    functions: &'static [&'static str],
}

const LOCK: Expected = Expected {
    folder: "lock-contention",
    traces: &["kernel", "ust"],
    task: "app:request",
    kind: "blocked.thread",
    by: "journal",
    functions: &["expensive_flush", "serialize_entries", "checksum_block", "journal_tick"],
};

const CPU: Expected = Expected {
    folder: "cpu-contention",
    traces: &["kernel", "ust"],
    task: "app:request",
    kind: "preempted",
    by: "telemetryd",
    functions: &["telemetry_burst", "compress_frame", "entropy_encode"],
};

const DISK: Expected = Expected {
    folder: "disk-contention",
    traces: &["kernel"],
    task: "begin=syscall_exit_accept4,end=syscall_entry_shutdown",
    kind: "blocked.disk",
    by: "auditlogd",
    functions: &["fetch_block", "serve_get", "pread64"],
};

fn explain(expected: &Expected, groups: &[&str]) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces").join(expected.folder);
    let mut command = ask::program();
    command.args(["explain", "--json", "--task", expected.task, "--symbols"]).arg(folder.join("bin")).args(groups);
    let out = ask::run(command.args(expected.traces.iter().map(|t| folder.join(t))));
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

fn holds(expected: &Expected) {
    for groups in [&[][..], &["--slow", "duration>=p95", "--fast", "duration<=p50"]] {
        let answer = explain(expected, groups);
        let causes = answer["causes"].as_array().unwrap();
        let first = &causes[0];
        assert_eq!(first["kind"], expected.kind, "{first:#}");
        let by = [&first["by"]["process"], &first["by"]["thread"]];
        assert!(by.iter().any(|b| **b == expected.by), "{first:#}");
        let mut words: Vec<&str> = first["path"].as_array().unwrap().iter().map(|p| p.as_str().unwrap()).collect();
        words.extend(first["by"]["function"].as_str());
        // The disk's servers are loaded at fixed addresses: an exec records neither build id nor size, so their names
        // are marked.
        words.iter_mut().for_each(|w| *w = w.trim_end_matches('?'));
        assert!(expected.functions.iter().any(|f| words.contains(f)), "{first:#}");
        assert_eq!(answer["verdict"]["confident"], true, "{:#}", answer["verdict"]);
        assert_eq!(answer["verdict"]["basis"], "cause");
        assert!(answer["verdict"]["sentence"].as_str().unwrap().contains(expected.by), "{:#}", answer["verdict"]);
        let total: i64 = causes.iter().map(|c| c["extra_ns"].as_i64().unwrap()).sum();
        assert_eq!(total, answer["extra_ns"].as_i64().unwrap(), "every nanosecond of the difference is somewhere");
    }
}

#[test]
fn lock_held_by_another_thread_is_the_first_cause() {
    holds(&LOCK);
}

#[test]
fn cpu_taken_by_another_process_is_the_first_cause() {
    holds(&CPU);
}

#[test]
fn disk_used_by_another_process_is_the_first_cause() {
    holds(&DISK);
}
