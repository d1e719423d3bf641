//! Recordings of other platforms: the same schedule as DTrace text, as ETW text by xperf and by tracerpt, and as a
//! Perfetto trace gives the same answer, as far as each format recorded it; damage gets an answer; no answer depends on
//! the number of workers.
//!
//! The files are written by `fixtures/other-platforms/make.py` from the formats' documentation.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/ask.rs"]
mod ask;
#[path = "support/random.rs"]
mod random;

use random::Random;
use serde_json::Value;
use std::path::{Path, PathBuf};
use whyslow::base::ctx::Ctx;
use whyslow::dump::{self, Form, Sizes};
use whyslow::input::{self, Argument, Opened, Source};

const ALL: [&str; 5] = ["dtrace.txt", "xperf.csv", "tracerpt.csv", "perfetto.pftrace", "tracks.pftrace"];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/other-platforms").join(name)
}

fn json(words: &[&str], path: &Path) -> Value {
    let out = ask::run(ask::whyslow(words).arg("--json").arg(path));
    assert!(out.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

fn error(path: &Path) -> String {
    let out = ask::run(ask::whyslow(["explain"]).arg(path));
    assert!(!out.status.success(), "{}", path.display());
    String::from_utf8(out.stderr).unwrap()
}

fn open(path: &Path) -> Option<Vec<Source>> {
    match input::open(&[Argument { label: None, path: path.to_owned() }], &Ctx::new(1)).ok()? {
        Opened::Traces(sources) => Some(sources),
        Opened::Otf2(_) => panic!("{} is no archive", path.display()),
    }
}

fn text(sources: &[Source], workers: usize, sizes: &Sizes) -> String {
    let mut out = Vec::new();
    dump::write(sources, Form::Readable, sizes, &Ctx::new(workers), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// A copy of a fixture with other contents.
fn changed(folder: &Path, name: &str, change: impl FnOnce(String) -> String) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, change(std::fs::read_to_string(fixture(name)).unwrap())).unwrap();
    path
}

#[test]
fn each_format_tells_the_same_story() {
    for name in ALL {
        let answer = json(&["explain"], &fixture(name));
        let cause = &answer["causes"][0];
        assert_eq!(cause["kind"], "blocked.thread", "{name}: {cause:#}");
        let by = cause["by"]["thread"].as_str().unwrap();
        assert_eq!(by.trim_end_matches(".exe"), "journal", "{name}: {cause:#}");
        // From 50 us to 5 ms after the begin.
        assert_eq!(cause["extra_ns"], 4_950_000, "{name}: {cause:#}");
        assert_eq!((&answer["slow"]["count"], &answer["fast"]["count"]), (&8.into(), &32.into()), "{name}");
        assert_eq!(answer["verdict"]["confident"], true, "{name}: {}", answer["verdict"]);
        let warnings = answer["warnings"].to_string();
        assert!(!warnings.contains("could not be read") && !warnings.contains("contradict"), "{name}: {warnings}");
    }
}

#[test]
fn format_and_missing_questions_are_named() {
    for (name, format, lacks) in [
        ("dtrace.txt", "DTrace text", "interrupts and timers"),
        ("xperf.csv", "ETW text (xperf)", "system calls"),
        ("tracerpt.csv", "ETW text (tracerpt)", "system calls"),
        ("perfetto.pftrace", "Perfetto", "work of kernel workers"),
        ("tracks.pftrace", "Perfetto", "work of kernel workers"),
    ] {
        let info = json(&["info"], &fixture(name));
        assert!(info.to_string().contains(format), "{name}: {info:#}");
        let missing = info["missing"].as_array().unwrap();
        let about = |question: &str| missing.iter().find(|m| m["question"] == question);
        assert_eq!(about(lacks).unwrap()["command"], "", "{name}: {missing:#?}");
        for known in ["who ran", "who woke whom", "process of each thread"] {
            assert!(about(known).is_none(), "{name}: {missing:#?}");
        }
        assert!(about("functions that ran").is_some(), "{name}");
    }
}

#[test]
fn script_without_wakers_gives_waits_without_causes() {
    let folder = tempfile::tempdir().unwrap();
    let path = changed(folder.path(), "dtrace.txt", |text| {
        text.lines().filter(|line| !line.contains("\twakeup\t")).map(|line| format!("{line}\n")).collect()
    });
    let answer = json(&["explain"], &path);
    let cause = &answer["causes"][0];
    assert!(cause["kind"] != "blocked.thread" && !answer.to_string().contains("journal"), "{cause:#}");
    let info = json(&["info"], &path);
    let missing = info["missing"].as_array().unwrap();
    let woken = missing.iter().find(|m| m["question"] == "who woke whom").unwrap();
    assert_eq!(woken["lacks"], serde_json::json!(["sched:::wakeup"]));
    assert!(woken["command"].as_str().unwrap().starts_with("dtrace -s whyslow.d"), "{woken:#}");
}

#[test]
fn events_have_the_names_and_threads_of_the_file() {
    let dtrace = text(&open(&fixture("dtrace.txt")).unwrap(), 1, &Sizes::default());
    let first = dtrace.lines().next().unwrap();
    for part in ["web1 cpu 1 sched:sched_waking", "comm=\"journal\"", "pid=102", "tid=0"] {
        assert!(first.contains(part), "{part}: {first}");
    }
    assert!(dtrace.contains("syscalls:sys_exit_futex") && dtrace.contains("dtrace:handle_request__return"), "{dtrace}");
    let perfetto = text(&open(&fixture("perfetto.pftrace")).unwrap(), 1, &Sizes::default());
    let counts = |text: &str, event: &str| text.lines().filter(|line| line.contains(event)).count();
    // 40 wake-ups by timers, 10 of the journal and 8 by it.
    assert_eq!((counts(&dtrace, "sched_waking"), counts(&dtrace, "sched_switch")), (58, 116));
    assert_eq!((counts(&perfetto, "sched_waking"), counts(&perfetto, "sched_switch")), (58, 116));
    assert_eq!((counts(&perfetto, "trace_marker:begin"), counts(&perfetto, "raw_syscalls:sys_exit")), (40, 8));
}

/// Spans that programs recorded have no CPU and come behind the kernel's events, on clocks of their own.
#[test]
fn spans_on_tracks_are_on_the_thread_and_cpu_that_ran() {
    let text = |name: &str| text(&open(&fixture(name)).unwrap(), 1, &Sizes::default());
    let of = |text: &str, event: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.contains(event));
        lines.map(|line| line.split("pid=100").next().unwrap().to_owned()).collect()
    };
    let (marked, tracks) = (text("perfetto.pftrace"), text("tracks.pftrace"));
    for event in ["trace_marker:begin", "trace_marker:end"] {
        assert_eq!(of(&tracks, event).len(), 40, "{event}");
        assert_eq!(of(&tracks, event), of(&marked, event), "{event}");
    }
    assert_eq!(tracks.matches("name=\"handle_request\"").count(), 40);
    // Two spans of one name overlap on a track.
    let cookies: Vec<&str> =
        tracks.lines().filter(|l| l.contains("async_")).map(|l| l.split("cookie=").nth(1).unwrap()).collect();
    let [outer, inner, inner_end, outer_end] = cookies[..] else { panic!("{cookies:?}") };
    assert!(outer != inner && inner == inner_end && outer == outer_end, "{cookies:?}");
    // The counter, and the span of a thread that no switch names.
    let warnings = json(&["info"], &fixture("tracks.pftrace"))["warnings"].to_string();
    assert!(warnings.contains("2 records of types that no analysis uses were skipped"), "{warnings}");
}

#[test]
fn answers_do_not_depend_on_workers() {
    for name in ALL {
        let sources = open(&fixture(name)).unwrap();
        let one = text(&sources, 1, &Sizes::default());
        assert!(one.lines().count() > 150, "{name}");
        assert_eq!(text(&sources, 3, &Sizes::default()), one, "{name}");
        let explain = |threads| json(&["explain", "--threads", threads], &fixture(name));
        assert_eq!(explain("1"), explain("2"), "{name}");
    }
}

#[test]
fn wrong_files_get_one_line_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        error(&path)
    };
    for (name, content, part) in [
        ("a.txt", "whyslow-dtrace\t2\n", "line 1: the first line is `whyslow-dtrace`"),
        ("b.txt", "whyslow-dtrace\t1\n1\t0\texit\t1\t1\ta\n", "record `sched:::off-cpu`"),
        ("a.csv", "BeginHeader\n CSwitch, TimeStamp, New TID\nEndHeader\n", "line 2: CSwitch needs TimeStamp"),
        ("b.csv", "BeginHeader\n CSwitch, TimeStamp", "CSwitch needs"),
        ("c.csv", "BeginHeader\n", "`EndHeader` is missing"),
        ("d.csv", "BeginHeader\nEndHeader\n", "CSWITCH+DISPATCHER"),
        ("e.csv", "Event Name, Type, PID\n", "Clock-Time"),
        ("a.pftrace", "\u{a}\u{2}\u{40}\u{1}", "linux.ftrace"),
    ] {
        let said = write(name, content);
        assert!(said.contains(part) && said.lines().count() == 1, "{name}: {said}");
    }
}

#[test]
fn unreadable_lines_are_counted_with_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = changed(folder.path(), "dtrace.txt", |text| {
        text + "1\t2\n5\tx\tswitch\n6\t99999\texit\t1\t1\ta\n7\t0\tfuture\t1\t1\ta\tb\n"
    });
    let warnings = json(&["explain"], &path)["warnings"].to_string();
    assert!(warnings.contains("3 lines or messages of the recording could not be read"), "{warnings}");
    assert!(warnings.contains("1 record of a type that no analysis uses"), "{warnings}");
    let strict = ask::run(ask::whyslow(["info", "--strict"]).arg(&path));
    assert_eq!(strict.status.code(), Some(1), "{}", String::from_utf8_lossy(&strict.stderr));
}

#[test]
fn threads_numbered_within_their_process_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = changed(folder.path(), "dtrace.txt", |text| {
        // As on illumos: both threads have the id 1, in processes of their own.
        text.replace("\t102\t100\tjournal", "\t1\t200\tjournal").replace("\t101\t100\tserver", "\t1\t100\tserver")
    });
    let cause = json(&["explain"], &path)["causes"][0].clone();
    assert_eq!((&cause["kind"], &cause["by"]["thread"]), (&"blocked.thread".into(), &"journal".into()), "{cause:#}");
    assert_eq!(cause["by"]["pid"], 200, "{cause:#}");
}

#[test]
fn damage_gets_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random::new(17);
    for name in ALL {
        let whole = std::fs::read(fixture(name)).unwrap();
        for round in 0..60 {
            let mut bytes = whole.clone();
            if round % 3 == 0 {
                bytes.truncate(random.below(bytes.len()));
            } else {
                for _ in 0..1 + random.below(8) {
                    let at = random.below(bytes.len());
                    bytes[at] = random.below(256) as u8;
                }
            }
            let path = folder.path().join(name);
            std::fs::write(&path, &bytes).unwrap();
            if let Some(sources) = open(&path) {
                text(&sources, 1, &Sizes::default());
            }
        }
    }
}
