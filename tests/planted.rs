//! A program with a known problem, recorded by perf on a real kernel: the verdict names the function that was planted
//! and the kind of its time.
//!
//! `fixtures/recorders/planted` holds one short recording for each problem; the ignored test records them anew, with
//! `whyslow record`, and needs perf and root.

use crate::support::ask;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A problem of the program, and the truth about it.
struct Plant {
    /// The program's argument, and the recording's name.
    problem: &'static str,
    kind: &'static str,
    /// The function that is on the path.
    function: &'static str,
    /// The thread whose fault it is.
    thread: &'static str,
    /// The function in which it was at fault.
    culprit: &'static str,
}

const PLANTS: [Plant; 6] = [
    Plant {
        problem: "lock",
        kind: "blocked.thread",
        function: "take_lock",
        thread: "indexer",
        culprit: "rebuild_index",
    },
    Plant {
        problem: "disk",
        kind: "blocked.disk",
        function: "append_journal",
        thread: "planted",
        culprit: "append_journal",
    },
    Plant {
        problem: "flush",
        kind: "blocked.disk",
        function: "flush_journal",
        thread: "planted",
        culprit: "flush_journal",
    },
    Plant {
        problem: "cpu",
        kind: "preempted",
        function: "handle_request",
        thread: "compactor",
        culprit: "compact_segments",
    },
    Plant {
        problem: "sleep",
        kind: "blocked.timer",
        function: "retry_upstream",
        thread: "planted",
        culprit: "back_off",
    },
    Plant { problem: "compute", kind: "cpu", function: "rank_results", thread: "planted", culprit: "rank_results" },
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recorders/planted")
}

fn explained(recording: &Path) -> Value {
    let out = ask::run(ask::whyslow(["explain", "--json", "--symbols"]).arg(folder()).arg(recording));
    assert!(out.status.success(), "{}: {}", recording.display(), String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// The name without the mark on names from files that are newer than their recording, as in a fresh checkout.
fn name(value: &Value) -> &str {
    value.as_str().unwrap_or_default().trim_end_matches('?')
}

impl Plant {
    fn is_named_by(&self, answer: &Value) {
        let (problem, cause) = (self.problem, &answer["causes"][0]);
        assert_eq!(answer["task"], "handle_request", "{problem}");
        assert_eq!(cause["kind"], self.kind, "{problem}: {cause:#}");
        let by = &cause["by"];
        assert_eq!((name(&by["thread"]), name(&by["function"])), (self.thread, self.culprit), "{problem}: {cause:#}");
        let path: Vec<&str> = cause["path"].as_array().unwrap().iter().map(name).collect();
        assert!(path.contains(&self.function), "{problem}: {path:?}");
    }
}

#[test]
fn recorded_problem_is_named_with_its_function_and_kind() {
    for plant in &PLANTS {
        let answer = explained(&folder().join(format!("{}.data", plant.problem)));
        plant.is_named_by(&answer);
        assert_eq!(answer["verdict"]["confident"], true, "{}: {}", plant.problem, answer["verdict"]);
        let all = answer["slow"]["count"].as_u64().unwrap() + answer["fast"]["count"].as_u64().unwrap();
        assert_eq!(all, 96, "{}", plant.problem);
    }
}

#[test]
fn system_call_of_a_return_probe_is_not_the_programs() {
    // Since Linux 6.11 the code of a return probe is a system call, which ends under number -1.
    let answer = explained(&folder().join("compute.data"));
    let warnings = answer["warnings"].to_string();
    assert!(!warnings.contains("contradict"), "{warnings}");
    let json = answer.to_string();
    assert!(!json.contains("uretprobe") && !json.contains("\"syscalls\""), "{json}");
}

#[test]
#[ignore = "needs perf and root"]
fn problem_is_recorded_and_named() {
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("planted");
    std::fs::copy(folder().join("planted"), &program).unwrap();
    for plant in &PLANTS {
        let out = place.path().join(plant.problem);
        let record = ["record", "--with", "perf", "--uprobe", "handle_request", "-o"];
        let mut record = ask::whyslow(record);
        record.arg(&out).arg("--").arg(&program).arg(plant.problem).current_dir(place.path());
        let recorded = ask::run(&mut record);
        let said = String::from_utf8_lossy(&recorded.stderr).into_owned();
        assert!(recorded.status.success() && said.contains("nothing lost"), "{said}");
        plant.is_named_by(&explained(&out));
    }
    // No probe is left behind.
    let probes = std::fs::read_to_string("/sys/kernel/tracing/uprobe_events").unwrap_or_default();
    assert!(!probes.contains("handle_request"), "{probes}");
}
