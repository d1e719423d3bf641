//! Events of a kernel that several channels or sessions recorded, each of them only in part: the answer is that of a
//! recording of everything.

use crate::support::{ask, ctf_writer, kernel_trace};
use ctf_writer::{Channel, Context, Event, TraceWriter};
use kernel_trace::KernelTrace;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Executions of the task.
const EXECUTIONS: i64 = 120;
/// Time from one to the next.
const PERIOD: i64 = 1_000_000;

/// Thread 5 on CPU 0 makes calls `futex`; in every sixth it waits long for thread 9, which runs on CPU 1. The first and
/// the last events are of both CPUs.
fn events() -> Vec<Event> {
    let mut trace = KernelTrace::new("alpha", 0x11);
    for t in [0, PERIOD * (EXECUTIONS + 2)] {
        for cpu in [0, 1] {
            trace.switch(t, cpu, 0, 0, 20 + cpu as i32).switch(t + 10, cpu, 20 + cpu as i32, 1, 0);
        }
    }
    for i in 0..EXECUTIONS {
        let t = PERIOD * (i + 1);
        let back = t + if i % 6 == 5 { 600_000 } else { 50_000 };
        trace.switch(t - 10, 0, 0, 0, 5).call_entry(t, 0, 5, "futex").switch(t + 10, 0, 5, 1, 0);
        trace.switch(t + 20, 1, 0, 0, 9).waking(back, 1, 9, 5, 0).switch(back + 10, 1, 9, 1, 0);
        trace.switch(back + 30, 0, 0, 0, 5).call_exit(back + 40, 0, 5, "futex", 0).switch(back + 50, 0, 5, 1, 0);
    }
    trace.into_events()
}

/// Write a trace with these channels.
fn write(folder: &Path, uuid: u128, channels: Vec<Vec<Event>>) {
    let mut writer = TraceWriter::new("alpha", "kernel", uuid, 0x11);
    // Packets begin and end with their events.
    writer.span = (i64::MAX, i64::MIN);
    let channel = |(at, events): (usize, Vec<Event>)| Channel {
        name: format!("channel{at}"),
        contexts: vec![Context::Tid],
        events,
        discarded: Vec::new(),
    };
    writer.channels = channels.into_iter().enumerate().map(channel).collect();
    writer.write(folder);
}

/// The groups and causes of the calls.
fn answer(traces: &[&Path]) -> Value {
    let mut command = ask::program();
    let out = ask::run(command.args(["explain", "--json", "--task", "futex"]).args(traces));
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let mut answer: Value = serde_json::from_slice(&out.stdout).unwrap();
    let parts = ["slow", "fast", "extra_ns", "causes"];
    Value::Object(parts.iter().map(|part| ((*part).to_owned(), answer[*part].take())).collect())
}

fn whole(folder: &Path) -> Value {
    write(&folder.join("whole"), 1, vec![events()]);
    let answer = answer(&[&folder.join("whole")]);
    let first = &answer["causes"][0];
    assert_eq!((&first["kind"], &first["by"]["tid"]), (&"blocked.thread".into(), &9.into()), "{first:#}");
    answer
}

fn part(keeps: impl Fn(&Event) -> bool) -> Vec<Event> {
    events().into_iter().filter(|event| keeps(event)).collect()
}

/// The first three events of each name, as of a channel whose events were disabled soon.
fn few() -> Vec<Event> {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    let mut all = events();
    all.retain(|event| {
        let count = counts.entry(event.name.to_string()).or_default();
        *count += 1;
        *count <= 3
    });
    all
}

#[test]
fn the_followed_channel_is_one_that_recorded_the_events() {
    let folder = tempfile::tempdir().unwrap();
    let whole = whole(folder.path());
    let is_call = |event: &Event| event.name.starts_with("syscall_");
    // The first channel declares everything, and recorded little of it.
    write(&folder.path().join("few"), 2, vec![few(), part(is_call), part(|event| !is_call(event))]);
    assert_eq!(answer(&[&folder.path().join("few")]), whole);
}

#[test]
fn sessions_are_joined_by_cpu_and_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let whole = whole(folder.path());
    let cpu = |cpu: u32| move |event: &Event| event.cpu == cpu;
    write(&path("cpu0"), 2, vec![part(cpu(0))]);
    write(&path("cpu1"), 3, vec![part(cpu(1))]);
    assert_eq!(answer(&[&path("cpu0"), &path("cpu1")]), whole, "a trace for each CPU");
    // The compatible form of a call is declared beside it, in both sessions.
    let compatible = || {
        let mut all = events();
        let mut call = again(&all, "syscall_entry_futex", "compat_syscall_entry_futex", 1);
        call.truncate(1);
        call.iter_mut().for_each(|event| event.time = 1);
        all.extend(call);
        all
    };
    write(&path("compatible1"), 8, vec![compatible()]);
    write(&path("compatible2"), 9, vec![compatible()]);
    assert_eq!(answer(&[&path("compatible1"), &path("compatible2")])["extra_ns"], whole["extra_ns"], "two forms");
    // A session that kept the last buffers of each CPU, and one that recorded the scheduler alone.
    let from = |event: &Event| if event.cpu == 1 { EXECUTIONS / 3 * PERIOD } else { 0 };
    write(&path("last"), 4, vec![part(|event| event.time >= from(event))]);
    write(&path("scheduler"), 5, vec![part(|event| event.name.starts_with("sched_"))]);
    assert_eq!(answer(&[&path("last"), &path("scheduler")]), whole, "one that begins later on CPU 1");
    // Two sessions that were rotated, at different times: four traces.
    let mut rotated = Vec::new();
    for (session, cut) in [EXECUTIONS / 2 * PERIOD, EXECUTIONS / 3 * PERIOD].into_iter().enumerate() {
        for (name, later) in [("first", false), ("second", true)] {
            let trace = path(&format!("{name}{session}"));
            write(&trace, 6 + session as u128, vec![part(|event| (event.time >= cut) == later)]);
            rotated.push(trace);
        }
    }
    let rotated: Vec<&Path> = rotated.iter().map(|trace| trace.as_path()).collect();
    assert_eq!(answer(&rotated), whole, "rotated sessions");
}

/// Events again, a moment later, under another name.
fn again(events: &[Event], name: &str, new: &'static str, delay: i64) -> Vec<Event> {
    let mut copies: Vec<Event> = events.iter().filter(|event| event.name == name).cloned().collect();
    copies.iter_mut().for_each(|event| (event.name, event.time) = (new.into(), event.time + delay));
    copies
}

#[test]
fn an_event_that_a_recorder_was_asked_for_twice_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, twice) = (whole(folder.path()), folder.path().join("twice"));
    let mut events = events();
    events.extend(again(&events, "sched_switch", "sched_switch_again", 1));
    write(&twice, 2, vec![events]);
    // As perf does: two classes of one name in one stream.
    let text = std::fs::read_to_string(twice.join("metadata")).unwrap();
    std::fs::write(twice.join("metadata"), text.replace("sched_switch_again", "sched_switch")).unwrap();
    assert_eq!(answer(&[&twice]), whole);
}

#[test]
fn wakers_are_told_by_the_event_that_was_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wakeup");
    let mut events = events();
    events.extend(again(&events, "sched_waking", "sched_wakeup", 5));
    // The other one was declared and disabled soon.
    let mut left = 3;
    events.retain(|event| {
        let is_waking = event.name == "sched_waking";
        left -= i32::from(is_waking);
        !is_waking || left >= 0
    });
    write(&path, 2, vec![events]);
    let answer = answer(&[&path]);
    let first = &answer["causes"][0];
    assert_eq!((&first["kind"], &first["by"]["tid"]), (&"blocked.thread".into(), &9.into()), "{first:#}");
}
