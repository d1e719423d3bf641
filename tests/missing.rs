//! `info` says of any recording which questions it cannot answer, and gives the command that records the answers, in
//! the words of the recorder that made it.
//!
//! The recordings are fixtures by LTTng, perf and trace-cmd. The ignored test gives the commands to the real recorders'
//! parsers; it needs perf, trace-cmd, LTTng and root.

use crate::support::ask;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const LTTNG: &str = "traces/lock-contention/kernel";
const LTTNG_PROGRAMS: &str = "traces/lock-contention/ust";
const PERF: &str = "recorders/file.data";
const PERF_COPIES: &str = "recorders/dwarf.data";
const TRACE_CMD: &str = "recorders/v6.dat";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

fn info(words: &[&str], path: &Path) -> String {
    let out = ask::run(ask::whyslow(["info"]).args(words).arg(path));
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

fn missing(path: &Path) -> Vec<Value> {
    let document: Value = serde_json::from_str(&info(&["--json"], path)).unwrap();
    document["missing"].as_array().unwrap().clone()
}

/// The entry about a question.
fn about<'a>(missing: &'a [Value], question: &str) -> &'a Value {
    missing.iter().find(|m| m["question"] == question).unwrap_or_else(|| panic!("{question}: {missing:#?}"))
}

#[test]
fn info_names_what_each_recorder_left_out() {
    let perf = missing(&fixture(PERF));
    let woken = about(&perf, "who woke whom");
    // It has `sched_wakeup`, which shows some wakers.
    assert_eq!((&woken["extent"], &woken["lacks"][0]), (&"part".into(), &"sched:sched_waking".into()));
    assert_eq!(
        about(&perf, "system calls")["lacks"],
        serde_json::json!(["raw_syscalls:sys_enter", "raw_syscalls:sys_exit"])
    );
    assert!(perf.iter().all(|m| m["question"] != "functions in which threads waited"), "it has call chains: {perf:#?}");
    // What was counted beside the trace is the work of whyslow itself.
    let by_perf = |m: &&Value| m["question"] != "CPU quotas and stolen time";
    assert!(perf.iter().filter(by_perf).all(|m| m["command"].as_str().unwrap().starts_with("perf record -a -k mono ")));
    // Its chains were followed by frame pointers.
    let frameless = about(&perf, "callers of functions without a frame");
    assert_eq!(frameless["extent"], "part");
    assert!(frameless["command"].as_str().unwrap().contains("sched:sched_switch/call-graph=dwarf/"), "{frameless:#}");
    let copies = missing(&fixture(PERF_COPIES));
    assert!(copies.iter().all(|m| m["question"] != frameless["question"]), "{copies:#?}");
    let pages = missing(&fixture(TRACE_CMD));
    assert_eq!(about(&pages, "interrupts and timers")["lacks"][0], "irq:irq_handler_entry");
    assert!(about(&pages, "disk requests")["command"].as_str().unwrap().starts_with("trace-cmd record -C mono "));
    let stacks = about(&pages, "functions in which threads waited");
    assert_eq!(stacks["lacks"], serde_json::json!(["call stacks of sched_switch"]));
    assert!(stacks["command"].as_str().unwrap().contains("sched:sched_switch/call-graph=fp/"), "{stacks}");
    let lttng = missing(&fixture(LTTNG));
    assert_eq!(about(&lttng, "work of kernel workers")["lacks"][0], "workqueue_queue_work");
    let command = lttng[0]["command"].as_str().unwrap();
    assert!(command.starts_with("lttng create && ") && command.contains("--type=callstack-user"), "{command}");
    let programs = missing(&fixture(LTTNG_PROGRAMS));
    assert_eq!(programs.len(), 1, "{programs:#?}");
    let command = programs[0]["command"].as_str().unwrap();
    assert!(command.contains("sched_waking") && command.contains("--userspace --all"), "{command}");
}

#[test]
fn text_of_info_has_each_command_as_a_line_of_its_own() {
    for (name, commands) in [(PERF, 3), (TRACE_CMD, 3), (LTTNG, 2)] {
        let text = info(&[], &fixture(name));
        for m in missing(&fixture(name)) {
            let line = format!("    {}", m["command"].as_str().unwrap());
            assert_eq!(text.lines().filter(|l| **l == line).count(), 1, "{text}");
        }
        assert_eq!(text.matches("to record 10 s with ").count(), commands, "{text}");
    }
}

/// The names of a hostile recording are text for a shell.
#[test]
fn names_from_a_recording_are_no_commands() {
    let mut bytes = std::fs::read(fixture(PERF)).unwrap();
    for at in memchr::memmem::find_iter(&bytes.clone(), b"name: sched_wakeup\n") {
        bytes[at..at + 18].copy_from_slice(b"name: $(reboot)   ");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("perf.data");
    std::fs::write(&path, bytes).unwrap();
    let missing = missing(&path);
    assert_eq!(about(&missing, "who woke whom")["extent"], "whole");
    assert!(missing.iter().all(|m| !m["command"].as_str().unwrap().contains("reboot")), "{missing:#?}");
}

#[test]
fn database_gives_the_same_commands() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("a.whyslow");
    let both = fixture("traces/lock-contention");
    let built = ask::run(ask::whyslow(["build"]).arg(&both).arg("-o").arg(&database));
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    assert_eq!(missing(&database), missing(&both));
}

#[test]
fn saved_answers_of_all_kinds_name_what_their_recording_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let archive = fixture("archives/late_sender/trace/traces.otf2");
    let build = |name: &str, words: &[&str], from: &Path| {
        let path = folder.path().join(name);
        let built = ask::run(ask::whyslow(["build"]).args(words).arg(from).arg("-o").arg(&path));
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        path
    };
    let of_archive = missing(&archive);
    assert_eq!(about(&of_archive, "whether it computed or was preempted")["command"], "whyslow record --duration 10s");
    assert_eq!(missing(&build("archive", &[], &archive)), of_archive);
    let perf = missing(&fixture(PERF));
    assert_eq!(missing(&build("history", &["--history"], &fixture(PERF))), perf);
}

#[test]
#[ignore = "needs perf, trace-cmd, lttng and root"]
fn real_recorders_accept_the_commands() {
    let folder = tempfile::tempdir().unwrap();
    let unknown = ["event syntax error", "nknown option", "invalid option", "sage:", "nrecognized", "not recognized"];
    for name in [PERF, TRACE_CMD, LTTNG, LTTNG_PROGRAMS] {
        for m in missing(&fixture(name)) {
            let line = m["command"].as_str().unwrap().replace("sleep 10", "sleep 0.2");
            // After a step that the machine refuses the others are not tried: each by itself.
            for step in line.split(" && ") {
                let ran = Command::new("sh").arg("-c").arg(step).current_dir(folder.path()).output().unwrap();
                let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
                assert!(unknown.iter().all(|part| !said.contains(part)), "{step}: {said}");
                if step.starts_with("perf ") {
                    assert!(ran.status.success(), "{step}: {said}");
                } else {
                    eprintln!("{}: {}", step.split(' ').take(2).collect::<Vec<_>>().join(" "), said.trim());
                }
            }
        }
    }
}
