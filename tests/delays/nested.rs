//! A function and one that it calls are one root cause, and the table of root causes adds up: each delay is in one row.

use crate::support::ask;
use serde_json::Value;

/// The answer of `anomalies --json` about a fixture with its symbols.
fn answer(name: &str) -> Value {
    let folder = format!("{}/fixtures/traces/{name}-contention", env!("CARGO_MANIFEST_DIR"));
    let mut command = ask::program();
    let out = ask::run(command.args(["anomalies", "--json", "--symbols", &format!("{folder}/bin"), &folder]));
    assert!(out.status.success(), "{name}: {}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

fn all<'a>(answer: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    answer[list].as_array().unwrap().iter()
}

#[test]
fn root_causes_of_a_function_and_its_callee_are_one() {
    // `expensive_flush` calls `serialize_entries` and `checksum_block` while it holds the lock.
    let answer = answer("lock");
    let journal: Vec<&Value> = all(&answer, "sources")
        .filter(|s| s["name"] == "journal" && s["kind"] == "running" && s["via"] == serde_json::json!(["lock"]))
        .collect();
    assert_eq!(journal.len(), 1, "{journal:#?}");
    assert_eq!(journal[0]["function"], "expensive_flush");
    let inner = journal[0]["inner"].as_array().unwrap();
    assert_eq!(inner[0]["function"], "checksum_block");
    let (part, whole) = (inner[0]["ns"].as_i64().unwrap(), journal[0]["affected_ns"].as_i64().unwrap());
    assert!(0 < part && part < whole, "{part} of {whole}");
    let sentence = answer["verdict"].as_str().unwrap();
    assert!(sentence.contains("expensive_flush") && sentence.contains("531 ms"), "{sentence}");
}

#[test]
fn root_causes_of_one_thread_at_one_time_are_one() {
    let answer = answer("lock");
    // The first step of each source: when which thread did what.
    let mut sources: Vec<(i64, &str, i64, i64, Option<&str>)> = Vec::new();
    let mut last = None;
    for path in all(&answer, "paths").filter(|p| !p["execution"].is_null()) {
        if last.replace(path["source"].as_u64()) == Some(path["source"].as_u64()) {
            continue;
        }
        let step = &path["steps"][0];
        if step["kind"] == "running" && path["steps"].as_array().unwrap().len() > 1 {
            let [begin, end] = ["start_ns", "end_ns"].map(|key| step[key].as_i64().unwrap());
            let (tid, what) = (step["tid"].as_i64().unwrap(), step["what"].as_str().unwrap());
            sources.push((tid, what, begin, end, step["function"].as_str()));
        }
    }
    sources.sort_unstable();
    assert!(sources.len() > 20);
    for pair in sources.windows(2) {
        let [(tid, what, begin, end, function), (next_tid, next_what, next, _, next_function)] = pair else {
            unreachable!()
        };
        let is_apart = (tid, what) != (next_tid, next_what) || next >= end;
        assert!(is_apart, "{tid}, {what} from {begin} to {end}: {function:?}, {next_function:?}");
    }
}

#[test]
fn root_causes_add_up_to_the_delays_of_the_executions() {
    for name in ["lock", "cpu", "disk"] {
        let answer = answer(name);
        let sum = |list, wanted: fn(&&Value) -> bool, key| -> i64 {
            all(&answer, list).filter(wanted).map(|one| one[key].as_i64().unwrap()).sum()
        };
        let rows = sum("sources", |s| s["in_executions"] == true, "affected_ns");
        let executions = sum("anomalies", |a| !a["execution"].is_null(), "excess_ns");
        assert_eq!(rows, executions, "{name}");
        for row in all(&answer, "sources") {
            let inner = row["inner"].as_array().unwrap().iter().map(|inner| inner["ns"].as_i64().unwrap());
            assert!(inner.max().unwrap_or(0) <= row["affected_ns"].as_i64().unwrap().max(1), "{name}: {row:#}");
        }
    }
}
