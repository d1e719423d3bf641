//! The same command gives the same bytes: in two processes, whose hash tables differ, and on any number of workers;
//! also where many events have one time, so that only a defined order makes the answers equal.

use crate::support::{ask, ctf_writer};
use ask::{fixture, run, said, whyslow};
use ctf_writer::{Channel, Context, Event, Task, TraceWriter, Value};
use std::path::Path;
use std::rc::Rc;
use whyslow::parts::base::time::Ns;

/// A recording full of ties: tasks of many threads that begin at the same time, half of which end at the same time.
fn ties(folder: &Path) {
    const THREADS: u32 = 60;
    let mut events: Vec<Event> = Vec::new();
    for cpu in 0..2u32 {
        let own = || (1..THREADS).filter(|thread| thread % 2 == cpu);
        let mut event = |name: &'static str, time: Ns, thread: u32, field: (&'static str, Value)| {
            let (vtid, vpid) = (thread as i32, 1000 + thread as i32 % 3);
            let on = Rc::new(Task { vtid, vpid, ..Task::default() });
            events.push(Event { time, cpu, name: name.into(), fields: vec![field], on, stack: None });
        };
        for round in 0..4 {
            for thread in own() {
                event("p:work_begin", 1000 + 500 * round, thread, ("n", Value::U8(7)));
                event("p:play_begin", 1000 + 500 * round, thread, ("job_id", Value::U32(thread)));
            }
            for thread in own().filter(|thread| thread % 3 > 0) {
                let late = if thread % 4 == 0 { 100 } else { 0 };
                event("p:work_end", 1200 + 500 * round + late, thread, ("n", Value::U8(7)));
                event("p:play_end", 1200 + 500 * round + late, thread, ("job_id", Value::U32(thread)));
            }
        }
    }
    let mut trace = TraceWriter::new("h", "ust", 0x5a, 0x5b);
    trace.span = (1000, 3000);
    let contexts = vec![Context::Vtid, Context::Vpid];
    trace.channels.push(Channel { name: "s".into(), contexts, events, discarded: Vec::new() });
    trace.write(folder);
}

const COMMANDS: [&[&str]; 24] = [
    &["explain"],
    &["explain", "--json"],
    &["explain", "--json", "--task", "p:play"],
    &["diff"],
    &["diff", "--json"],
    &["diff", "--json", "--executions", "0,1"],
    &["anomalies", "--robust"],
    &["stats", "count", "--json"],
    &["stats", "cpu"],
    &["stats", "io"],
    &["query", "--attribute", "threads/*/state", "--points", "40"],
    &["timeline", "--rows", "9"],
    &["timeline", "--json", "--columns", "30", "--cpus"],
    &["info", "--full"],
    &["anomalies"],
    &["anomalies", "--json"],
    &["stats", "count"],
    &["stats", "cpu", "--json"],
    &["stats", "io", "--json"],
    &["query", "--json", "--attribute", "threads/*/state"],
    &["info"],
    &["info", "--full", "--json"],
    &["dump"],
    &["dump", "--canonical"],
];

#[test]
fn commands_print_the_same_in_every_process_on_any_workers() {
    let folder = tempfile::tempdir().unwrap();
    ties(folder.path());
    for trace in [folder.path().to_owned(), fixture("snap"), fixture("lost-events"), fixture("lock-contention")] {
        for words in COMMANDS {
            // Only the written trace has the task; of the largest trace only the costly questions are asked.
            let only_written = words.contains(&"p:play") && trace != folder.path();
            if only_written || (trace == fixture("lock-contention") && !matches!(words[0], "explain" | "anomalies")) {
                continue;
            }
            let ask = |workers: &str| {
                let out = run(whyslow(words).args(["--threads", workers]).arg(&trace));
                let said =
                    said(&out).lines().filter(|l| !l.starts_with("note: --threads")).collect::<Vec<_>>().join("\n");
                (out.status.code(), String::from_utf8_lossy(&out.stdout).into_owned(), said)
            };
            let first = ask("1");
            assert!(first.0.is_some_and(|status| status < 3), "{words:?}: {}", first.2);
            assert!(!words.contains(&"p:play") || first.0 == Some(0), "{words:?}: {}", first.2);
            for workers in ["1", "2", "7"] {
                assert_eq!(ask(workers), first, "{words:?} of {} on {workers} workers", trace.display());
            }
        }
    }
    // A database is the same bytes, too.
    let databases = tempfile::tempdir().unwrap();
    let build = |name: &str, workers: &str| {
        let file = databases.path().join(name);
        let out = run(whyslow(["build", "--threads", workers, "-o"]).arg(&file).arg(fixture("lock-contention")));
        assert!(out.status.success(), "{}", said(&out));
        std::fs::read(file).unwrap()
    };
    let first = build("a.whyslow", "1");
    assert!(["1", "2", "7"].iter().all(|workers| build("b.whyslow", workers) == first));
}
