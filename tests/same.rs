//! The same command gives the same bytes: in two processes, whose hash tables differ, and on any number of workers; also where
//! many things happen at once, so that only an order of our own makes the answers equal.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/ask.rs"]
mod ask;

use ask::{fixture, run, said, whyslow};
use std::path::Path;

/// A recording full of ties: tasks of many threads that begin at the same time, half of which end at the same time.
fn ties(folder: &Path) {
    const THREADS: u32 = 60;
    let metadata = "/* CTF 1.8 */\ntypealias integer { size = 8; } := u8;\ntypealias integer { size = 32; } := u32;\n\
        trace { major = 1; minor = 8; byte_order = le; };\n\
        env { domain = \"ust\"; hostname = \"h\"; tracer_name = \"lttng-ust\"; };\n\
        clock { name = monotonic; freq = 1000000000; };\n\
        typealias integer { size = 64; align = 8; map = clock.monotonic.value; } := ts;\n\
        stream { packet.context := struct { u32 cpu_id; }; event.header := struct { u32 id; ts timestamp; };\n\
        event.context := struct { u32 vtid; u32 vpid; }; };\n\
        event { name = \"p:work_begin\"; id = 0; fields := struct { u8 n; }; };\n\
        event { name = \"p:work_end\"; id = 1; fields := struct { u8 n; }; };\n\
        event { name = \"p:play_begin\"; id = 2; fields := struct { u32 job_id; }; };\n\
        event { name = \"p:play_end\"; id = 3; fields := struct { u32 job_id; }; };\n";
    std::fs::write(folder.join("metadata"), metadata).unwrap();
    for cpu in 0..2u32 {
        let mut stream = cpu.to_le_bytes().to_vec();
        let mut event = |id: u32, time: u64, thread: u32, payload: &[u8]| {
            stream.extend(id.to_le_bytes());
            stream.extend(time.to_le_bytes());
            stream.extend(thread.to_le_bytes());
            stream.extend((1000 + thread % 3).to_le_bytes());
            stream.extend(payload);
        };
        for round in 0..4u64 {
            let own = || (1..THREADS).filter(|t| t % 2 == cpu);
            for thread in own() {
                event(0, 1000 + 500 * round, thread, &[7]);
                event(2, 1000 + 500 * round, thread, &thread.to_le_bytes());
            }
            for thread in own().filter(|t| t % 3 > 0) {
                let late = u64::from(thread % 4 == 0) * 100;
                event(1, 1200 + 500 * round + late, thread, &[7]);
                event(3, 1200 + 500 * round + late, thread, &thread.to_le_bytes());
            }
        }
        std::fs::write(folder.join(format!("s_{cpu}")), stream).unwrap();
    }
}

const COMMANDS: [&[&str]; 22] = [
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
            // Only the written trace has the task; the largest is asked what takes most of it.
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
