//! Recordings of other platforms: the same schedule as DTrace text, as ETW text by xperf and by tracerpt, as a Perfetto
//! trace, and as spans of a program beside a recording of the kernel gives the same answer, as far as each format
//! recorded it; damage gets an answer; no answer depends on the number of workers.
//!
//! The files are written by `fixtures/other-platforms/make.py` from the formats' documentation.

use crate::support::{ask, random};
use random::Random;
use serde_json::Value;
use std::path::{Path, PathBuf};
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::dump::{self, Form, Sizes};
use whyslow::parts::input::{self, Argument, Opened, Source};

const ALL: [&str; 5] = ["dtrace.txt", "xperf.csv", "tracerpt.csv", "perfetto.pftrace", "tracks.pftrace"];
const SPANS: [&str; 2] = ["chrome.json", "spans.pftrace"];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/other-platforms").join(name)
}

fn json(words: &[&str], path: &Path) -> Value {
    json_of(words, &[path])
}

fn json_of(words: &[&str], paths: &[&Path]) -> Value {
    let out = ask::run(ask::whyslow(words).arg("--json").args(paths));
    assert!(out.status.success(), "{paths:?}: {}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

fn error(path: &Path) -> String {
    error_of(&[path])
}

fn error_of(paths: &[&Path]) -> String {
    let out = ask::run(ask::whyslow(["explain"]).args(paths));
    assert!(!out.status.success(), "{paths:?}");
    String::from_utf8(out.stderr).unwrap()
}

fn open(path: &Path) -> Option<Vec<Source>> {
    match input::open(&[Argument::new(path.to_owned())], &Ctx::new(1)).ok()? {
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

/// Requests of a disk end the waits in place of the thread.
#[test]
fn disk_requests_of_dtrace_are_waits_for_the_disk() {
    let explain = json(&["explain"], &fixture("disk.txt"));
    let cause = &explain["causes"][0];
    assert_eq!((&cause["kind"], &cause["extra_ns"]), (&"blocked.disk".into(), &4_950_000.into()), "{explain:#}");
    assert_eq!(explain["verdict"]["confident"], true, "{explain:#}");
    let dumped = text(&open(&fixture("disk.txt")).unwrap(), 1, &Sizes::default());
    let requests =
        |step: &str| dumped.lines().filter(|line| line.contains(step) && line.contains("sector=1089096")).count();
    assert_eq!((requests("block:block_rq_issue"), requests("block:block_rq_complete")), (1, 1), "{dumped}");
    let missing = json(&["info"], &fixture("disk.txt"))["missing"].clone();
    assert!(missing.as_array().unwrap().iter().all(|m| m["question"] != "disk requests"), "{missing:#}");
    let missing = json(&["info"], &fixture("dtrace.txt"))["missing"].to_string();
    assert!(missing.contains("io:::start") && missing.contains("io:::done"), "{missing}");
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
    for side in ["begin", "end"] {
        let (span, marker) = (format!("span:handle_request:{side}"), format!("trace_marker:{side}"));
        let spans: Vec<String> = of(&tracks, &span).iter().map(|line| line.replace(&span, &marker)).collect();
        assert_eq!((spans.len(), &spans), (40, &of(&marked, &marker)), "{side}");
    }
    overlapping_spans_are_told_apart(&tracks);
    // The counter, and the span of a thread that no switch names.
    let warnings = json(&["info"], &fixture("tracks.pftrace"))["warnings"].to_string();
    assert!(warnings.contains("2 records of types that no analysis uses were skipped"), "{warnings}");
}

/// Two spans of one name overlap on a track.
fn overlapping_spans_are_told_apart(text: &str) {
    let ids: Vec<&str> =
        text.lines().filter(|l| l.contains("span:fetch:async_")).map(|l| l.split("id=").last().unwrap()).collect();
    let [outer, inner, inner_end, outer_end] = ids[..] else { panic!("{ids:?}") };
    assert!(outer != inner && inner == inner_end && outer == outer_end, "{ids:?}");
}

/// The kernel's events of the schedule, without begins and ends of executions, as two recorders write them.
fn kernels(folder: &Path) -> [PathBuf; 2] {
    let dtrace = changed(folder, "dtrace.txt", |text| {
        let of_kernel = |line: &&str| !line.contains("\tbegin\t") && !line.contains("\tend\t");
        text.lines().filter(of_kernel).map(|line| format!("{line}\n")).collect()
    });
    [fixture("kernel.pftrace"), dtrace]
}

/// Without times in the sentence, and what differs by recorder: how its events are counted.
fn answer(mut explain: Value) -> Value {
    let parts = ["slow", "fast", "extra_ns", "causes"];
    let mut kept: serde_json::Map<String, Value> = serde_json::Map::new();
    for part in parts {
        kept.insert(part.to_owned(), explain[part].take());
    }
    Value::Object(kept)
}

#[test]
fn spans_delimit_executions_beside_any_recording_of_the_kernel() {
    let folder = tempfile::tempdir().unwrap();
    let whole = answer(json(&["explain", "--task", "span:handle_request"], &fixture("tracks.pftrace")));
    assert_eq!((&whole["slow"]["count"], &whole["fast"]["count"]), (&8.into(), &32.into()));
    let [perfetto, dtrace] = kernels(folder.path());
    for spans in SPANS {
        let spans = fixture(spans);
        for paths in [[&*perfetto, &*spans], [&*spans, &*perfetto]] {
            let explain = json_of(&["explain"], &paths);
            assert_eq!(explain["task"], "span:handle_request", "{paths:?}");
            assert_eq!(answer(explain), whole, "{paths:?}");
        }
        // DTrace's times differ by the origin of its clock, its calls by their names.
        let explain = json_of(&["explain"], &[&dtrace, &spans]);
        let cause = &explain["causes"][0];
        assert_eq!((&cause["kind"], &cause["extra_ns"]), (&"blocked.thread".into(), &4_950_000.into()), "{explain:#}");
        assert_eq!(explain["verdict"]["confident"], true, "{explain:#}");
        let dumped = |path: &Path| {
            let arguments = [path, &*spans].map(|path| Argument::new(path.to_owned()));
            let Ok(Opened::Traces(sources)) = input::open(&arguments, &Ctx::new(1)) else { panic!("{path:?}") };
            text(&sources, 1, &Sizes::default())
        };
        let all = dumped(&perfetto);
        assert_eq!(all.matches("span:handle_request:begin").count(), 40);
        overlapping_spans_are_told_apart(&all);
    }
    let warnings = json_of(&["info"], &[&perfetto, &fixture("chrome.json")])["warnings"].to_string();
    assert!(
        warnings.contains("2 records of types that no analysis uses") && !warnings.contains("not be read"),
        "{warnings}"
    );
}

#[test]
fn spans_alone_are_executions_whose_states_are_unknown() {
    for name in SPANS {
        let explain = json(&["explain"], &fixture(name));
        assert_eq!((&explain["slow"]["count"], &explain["fast"]["count"]), (&8.into(), &32.into()), "{name}");
        let kind = explain["causes"][0]["kind"].as_str().unwrap();
        assert!(!kind.starts_with("blocked.thread") && kind != "cpu", "{name}: {explain:#}");
        let missing = json(&["info"], &fixture(name))["missing"].to_string();
        assert!(
            missing.contains("record --full --duration") || missing.contains("sched/sched_switch"),
            "{name}: {missing}"
        );
    }
}

/// Numbers behind a key of the JSON, changed.
fn with_numbers(text: &str, key: &str, change: impl Fn(u64) -> String) -> String {
    let mut parts = text.split(key);
    let mut out = parts.next().unwrap().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_digit()).unwrap();
        out += &format!("{key}{}{}", change(part[..end].parse().unwrap()), &part[end..]);
    }
    out
}

#[test]
fn clock_of_spans_is_proved_by_where_their_threads_ran() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = fixture("kernel.pftrace");
    let with = |key: &str, change: &dyn Fn(u64) -> String| {
        changed(folder.path(), "chrome.json", |text| with_numbers(&text, key, change))
    };
    let time = "\"ts\": ";
    // The wall clock of the same moments; microseconds with a fraction.
    let whole = answer(json_of(&["explain"], &[&kernel, &fixture("chrome.json")]));
    let wall = |us: u64| (us + 1_795_000_000_000_000 - 1_000_000).to_string();
    let fraction = |us: u64| format!("{us}.0");
    for change in [&wall as &dyn Fn(u64) -> String, &fraction] {
        assert_eq!(answer(json_of(&["explain"], &[&kernel, &with(time, change)])), whole);
    }
    // Another origin, within the recording and outside of it; a recording of other days.
    let shifted = |shift: u64| error_of(&[&kernel, &with(time, &|us| (us + shift).to_string())]);
    let other_days = error_of(&[&fixture("chrome.json"), &fixture("xperf.csv")]);
    let outside = "its spans are of another time than the kernel's recording beside it";
    for (said, part) in [(shifted(9_000), "another clock"), (shifted(3_600_000_000), outside), (other_days, outside)] {
        assert!(said.contains(part) && said.contains("-k CLOCK_MONOTONIC") && !said.contains("0 of 0"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    let said = error_of(&[&kernel, &with("\"tid\": ", &|_| "7".to_owned())]);
    assert!(said.contains("none of the 1 threads of its spans ran"), "{said}");
    // Under the same label they are of that kernel.
    let labelled = |name: &str| format!("a={}", fixture(name).display());
    let explain = ask::json(&["explain", "--json", &labelled("kernel.pftrace"), &labelled("chrome.json")]);
    assert_eq!(explain["causes"][0]["kind"], "blocked.thread", "{explain:#}");
}

#[test]
fn answers_do_not_depend_on_workers() {
    for name in ALL.into_iter().chain(SPANS).chain(["disk.txt"]) {
        let sources = open(&fixture(name)).unwrap();
        let one = text(&sources, 1, &Sizes::default());
        assert!(one.lines().count() > 80, "{name}");
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
        ("a.json", "{\"traceEvents\":[]}", "no span of a program"),
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
    for name in ALL.into_iter().chain(SPANS).chain(["disk.txt"]) {
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
