//! The recordings of `fixtures/traces`, written again as other people would have made them: the known cause comes
//! first, or the verdict is not sure of another.
//!
//! Each fixture is read once and written in each manner of `simulator/recorder.rs`. The events that a manner leaves out
//! decide the expected answer: see [`Expected`].

use crate::simulator;
use crate::support::{ask, ctf_writer, reread};
use serde_json::Value;
use simulator::recorder::{Contexts, Dialect, Events, Losses, Manner, Missing, Twice, write};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The answer that a variant must give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// The known cause first, and confident.
    Right,
    /// The same, but incomplete stacks need not name the function.
    Coarse,
    /// The evidence is not recorded: not confident of any other cause.
    Honest,
}
use Expected::{Coarse, Honest, Right};

struct Fixture {
    name: &'static str,
    task: &'static str,
    kind: &'static str,
    by: &'static str,
    functions: &'static [&'static str],
}

const LOCK: Fixture = Fixture {
    name: "lock-contention",
    task: "app:request",
    kind: "blocked.thread",
    by: "journal",
    functions: &["expensive_flush", "serialize_entries", "checksum_block", "journal_tick"],
};

const CPU: Fixture = Fixture {
    name: "cpu-contention",
    task: "app:request",
    kind: "preempted",
    by: "telemetryd",
    functions: &["telemetry_burst", "compress_frame", "entropy_encode"],
};

const DISK: Fixture = Fixture {
    name: "disk-contention",
    task: "begin=syscall_exit_accept4,end=syscall_entry_shutdown",
    kind: "blocked.disk",
    by: "auditlogd",
    functions: &["fetch_block", "serve_get", "pread64"],
};

fn folder(fixture: &Fixture) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces").join(fixture.name)
}

/// The events of a fixture's traces.
fn read(fixture: &Fixture) -> Events {
    let (mut kernel, mut stacks) = reread::events(&folder(fixture).join("kernel"));
    stacks.sort_by_key(|e| e.time);
    kernel.sort_by_key(|e| e.time);
    // A switch's call stack is about the one that its thread had last.
    let (mut last, mut at) = (BTreeMap::new(), 0);
    for event in &mut kernel {
        while let Some(sample) = stacks.get(at).filter(|s| s.time <= event.time) {
            last.insert(sample.on.tid, sample.stack.clone());
            at += 1;
        }
        if event.name == "sched_switch" {
            event.stack = last.get(&event.on.tid).cloned().flatten();
        }
    }
    let ust = folder(fixture).join("ust/uid/0/64-bit");
    let user = if ust.is_dir() { reread::events(&ust).0 } else { Vec::new() };
    let times = || kernel.iter().map(|e| e.time);
    let span = (times().min().unwrap(), times().max().unwrap());
    let cpus = 1 + kernel.iter().map(|e| e.cpu).max().unwrap() as usize;
    Events { kernel, stacks, user, span, cpus }
}

/// User-space events carry the small ids of a container, and no event maps them.
fn contained(mut events: Events) -> Events {
    let first = events.user.iter().map(|e| e.on.vpid).filter(|pid| *pid > 0).min().unwrap_or(1);
    for event in &mut events.user {
        let on = &event.on;
        let (vtid, vpid, comm) = (on.vtid - first + 1, on.vpid - first + 1, Rc::clone(&on.comm));
        event.on = Rc::new(ctf_writer::Task { vtid, vpid, comm, ..ctf_writer::Task::default() });
    }
    events
}

fn explain(fixture: &Fixture, traces: &[PathBuf], task: &str) -> Result<Value, String> {
    let mut command = ask::program();
    command.args(["explain", "--json", "--task", task, "--symbols"]).arg(folder(fixture).join("bin"));
    let out = ask::run(command.args(traces));
    if !out.status.success() {
        return Err(String::from_utf8_lossy(&out.stderr).trim().to_owned());
    }
    Ok(serde_json::from_slice(&out.stdout).unwrap())
}

/// The difference between the answer and the expected one; `None` where there is none.
fn differs(fixture: &Fixture, expected: Expected, answer: &Result<Value, String>) -> Option<String> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(said) if expected == Honest && said.lines().count() == 1 => return None,
        Err(said) => return Some(said.clone()),
    };
    let first = &answer["causes"][0];
    let by = [&first["by"]["process"], &first["by"]["thread"]];
    let mut words: Vec<&str> = first["path"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    words.extend(first["by"]["function"].as_str());
    // Rewriting a trace may drop the proof of its executables: then their names are marked.
    words.iter_mut().for_each(|w| *w = w.trim_end_matches('?'));
    let named = fixture.functions.iter().any(|f| words.contains(f));
    let right = first["kind"] == fixture.kind && by.iter().any(|b| **b == fixture.by);
    let confident = answer["verdict"]["confident"] == true;
    let holds = match expected {
        Right => right && named && confident,
        Coarse => right && confident,
        Honest => right || !confident,
    };
    (!holds).then(|| format!("{} (confident: {confident})", answer["verdict"]["sentence"]))
}

fn manner(change: impl FnOnce(&mut Manner)) -> Manner {
    let mut manner = Manner::default();
    change(&mut manner);
    manner
}

fn without(missing: &[Missing]) -> Manner {
    manner(|m| m.missing = missing.to_vec())
}

/// A variant: its name, manner, in a container, the expected answer.
type Variant = (&'static str, Manner, bool, Expected);

fn hold(fixture: &Fixture, variants: Vec<Variant>) {
    let events = read(fixture);
    let mut wrong = Vec::new();
    for (name, manner, container, expected) in variants {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("variants-{}-{name}", fixture.name));
        let own = if container { contained(events.clone()) } else { events.clone() };
        let traces = write(own, &manner, &target);
        let mut task = fixture.task.to_owned();
        if manner.dialect == Dialect::Perf {
            task = task.replace("syscall_exit_", "syscalls:sys_exit_").replace("syscall_entry_", "syscalls:sys_enter_");
        }
        let answer = explain(fixture, &traces, &task);
        std::fs::remove_dir_all(&target).unwrap();
        if let Some(said) = differs(fixture, expected, &answer) {
            wrong.push(format!("{} {name}, {expected:?} expected: {said}", fixture.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn lock_variants_are_right_or_honest() {
    use Missing::*;
    let unrecorded = |m: &mut Manner| m.namespaces_recorded = false;
    hold(
        &LOCK,
        vec![
            ("rewritten", Manner::default(), false, Right),
            ("switches-twice-with-stacks", manner(|m| m.twice = Some(Twice::WithStacks(9_000))), false, Right),
            ("container", manner(unrecorded), true, Right),
            ("no-hrtimers", without(&[HrTimers]), false, Coarse),
            ("no-wake-ups", without(&[Wakeups]), false, Honest),
            ("tid-only", manner(|m| m.contexts = Contexts::Tid), false, Right),
            ("reported-losses", manner(|m| m.losses = Losses::Reported), false, Honest),
            ("another-clock", manner(|m| m.user_clock_ahead = Some(1_000_000)), false, Honest),
        ],
    );
}

#[test]
fn cpu_variants_are_right_or_honest() {
    use Missing::*;
    hold(
        &CPU,
        vec![
            ("two-sessions", manner(|m| m.second_session = Some(6_000)), false, Right),
            ("perf", manner(|m| m.dialect = Dialect::Perf), false, Coarse),
            ("no-calls", without(&[Calls]), false, Coarse),
            ("no-hrtimers", without(&[HrTimers]), false, Coarse),
            ("no-wake-ups", without(&[Wakeups]), false, Coarse),
            ("unreported-losses", manner(|m| m.losses = Losses::Unreported), false, Honest),
        ],
    );
}

#[test]
fn disk_variants_are_right_or_honest() {
    use Missing::*;
    hold(
        &DISK,
        vec![
            ("switches-twice", manner(|m| m.twice = Some(Twice::InChannel(5_000))), false, Right),
            ("perf", manner(|m| m.dialect = Dialect::Perf), false, Coarse),
            ("no-block", without(&[Block]), false, Honest),
            ("no-interrupts", without(&[Interrupts, HrTimers, Vectors]), false, Honest),
            ("no-contexts", manner(|m| m.contexts = Contexts::None), false, Honest),
        ],
    );
}
