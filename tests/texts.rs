//! Texts and profiles in place of recordings: the text of `perf script` gives the answers of the perf.data that it was
//! printed from; folded stacks and profiles of the Firefox profiler have their samples; packed files and standard
//! input are read by content; no answer depends on the number of workers or on the order of the text.

use crate::support::ask;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use whyslow::parts::base::ctx::Ctx;
use whyslow::parts::dump::{self, Form, Sizes};
use whyslow::parts::input::{self, Argument, Opened};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/texts").join(name)
}

fn json(words: &[&str], path: &Path) -> Value {
    let out = ask::run(ask::whyslow(words).arg("--json").arg(path));
    assert!(out.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

fn dump_of(path: &Path, workers: usize) -> String {
    let argument = Argument::new(path.to_owned());
    let Ok(Opened::Traces(sources)) = input::open(&[argument], &Ctx::new(workers)) else {
        panic!("{}", path.display())
    };
    let mut out = Vec::new();
    dump::write(&sources, Form::Canonical, &Sizes::default(), &Ctx::new(workers), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The text of the waits, without a header.
fn waits() -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(File::open(fixture("waits.txt.gz")).unwrap()).read_to_string(&mut text).unwrap();
    text
}

/// How often an event occurs.
fn count(path: &Path, event: &str) -> u64 {
    dump_of(path, 1).lines().filter(|line| line.contains(event)).count() as u64
}

#[test]
fn text_of_perf_script_has_the_events_of_its_recording() {
    let (text, data) = (fixture("waits.txt.gz"), fixture("waits.data"));
    for event in ["sched:sched_switch", "sched:sched_waking", "raw_syscalls:sys_enter", "raw_syscalls:sys_exit"] {
        assert!(count(&data, event) > 0, "{event}");
        assert_eq!(count(&text, event), count(&data, event), "{event}");
    }
    let (text, data) = (fixture("profile.txt"), fixture("profile.data"));
    for (event, of_data) in [("cpu-clock", "cpu-clock"), ("page-faults", "page-faults")] {
        assert_eq!(count(&text, event), count(&data, of_data), "{event}");
    }
}

#[test]
fn text_of_perf_script_gives_the_answer_of_its_recording() {
    let answer = |name: &str| {
        let answer = json(&["explain", "--task", "read", "--no-sandbox"], &fixture(name));
        // The text has whole microseconds; names from files of this machine are marked.
        let ms = |ns: &Value| ns.as_f64().map(|ns| (ns / 1e5).round());
        let group = |group: &str| (answer[group]["count"].as_u64(), ms(&answer[group]["mean_ns"]));
        let causes = answer["causes"].as_array().unwrap().iter().take(2);
        let causes: Vec<_> = causes.map(|cause| (cause["kind"].clone(), ms(&cause["extra_ns"]))).collect();
        let by = answer["causes"][0]["by"].clone();
        (group("slow"), group("fast"), causes, by["tid"].clone(), by["thread"].clone())
    };
    let (text, data) = (answer("waits.txt.gz"), answer("waits.data"));
    assert_eq!(text, data);
    assert_eq!(text.0.0, Some(1));
    // Without any file of the program the text has its functions.
    let answer = json(&["explain", "--task", "read", "--no-sandbox"], &fixture("waits.txt.gz"));
    assert_eq!(answer["causes"][0]["by"]["function"], "handle");
}

#[test]
fn order_of_the_text_and_number_of_workers_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    // Many parts, whose functions and classes are numbered in each.
    let long = waits().repeat(30);
    let whole = path("whole.txt", &long);
    let one = dump_of(&whole, 1);
    assert!(one.lines().count() > 2_000);
    for workers in [2, 7] {
        assert!(dump_of(&whole, workers) == one, "{workers} workers");
    }
    let text = waits();
    let at = text.len() / 2 + text[text.len() / 2..].find("\n\n").unwrap() + 2;
    let turned = path("turned.txt", &[&text[at..], &text[..at]].concat());
    // Without the numbers of functions, which follow from their order in the file.
    let events = |path: &Path| {
        let dump = dump_of(path, 1);
        let plain = |line: &str| {
            let stack = line.find("callstack_kernel").zip(line.find("]}"));
            stack.map_or_else(|| line.to_owned(), |(from, to)| [&line[..from], &line[to..]].concat())
        };
        let mut lines: Vec<String> = dump.lines().map(plain).collect();
        lines.sort_unstable();
        lines
    };
    assert!(events(&turned) == events(&path("straight.txt", &text)));
    let times = |path: &Path| -> Vec<i64> {
        dump_of(path, 1).lines().map(|line| line.split('\t').next().unwrap().parse().unwrap()).collect()
    };
    assert!(times(&turned).is_sorted());
}

#[test]
fn standard_input_is_a_recording_of_any_kind() {
    let from_file = json(&["explain", "--task", "read"], &fixture("waits.txt.gz"));
    for bytes in
        [fs::read(fixture("waits.txt.gz")).unwrap(), waits().into_bytes(), fs::read(fixture("waits.data")).unwrap()]
    {
        let mut command = ask::whyslow(["explain", "--task", "read", "--json", "-"]);
        let mut child = command
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&bytes).unwrap();
        let out = child.wait_with_output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let answer: Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(answer["slow"]["count"], from_file["slow"]["count"]);
    }
}

#[test]
fn profiles_have_their_samples() {
    let dump = dump_of(&fixture("folded.txt"), 1);
    let periods = |dump: &str| {
        let period = |line: &str| line.split("period=").nth(1)?.split([',', '}']).next()?.parse::<u64>().ok();
        dump.lines().filter_map(period).sum::<u64>()
    };
    assert_eq!((dump.lines().count(), periods(&dump)), (4, 107), "{dump}");
    let dump = dump_of(&fixture("firefox.json"), 1);
    assert_eq!((dump.lines().count(), periods(&dump)), (5, 4_250_000), "{dump}");
}

#[test]
fn what_cannot_be_read_is_said_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |bytes: &[u8]| {
        let path = folder.path().join("recording");
        fs::write(&path, bytes).unwrap();
        let out = ask::run(ask::whyslow(["info"]).arg(&path));
        assert_eq!(out.status.code(), Some(1), "{}", String::from_utf8_lossy(&out.stdout));
        let said = String::from_utf8(out.stderr).unwrap();
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains("recording: "), "{said}");
        said
    };
    assert!(refused(b"a;b 1\na;c 1.5\n").contains("line 2: a count with decimals"));
    assert!(refused(b"\x1f\x8b\x08\0\0\0\0\0\0\0").contains("cannot be unpacked"));
    assert!(refused(b"{\"meta\":{\"preprocessedProfileVersion\":46},\"threads\":[{").contains("Firefox"));
    assert!(refused(b"work 1 [000] 1.000000: PERF_RECORD_EXIT(1:1):(1:1)\n").contains("perf script"));
}
