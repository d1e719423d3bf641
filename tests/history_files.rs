//! History files: every answer from one is the answer from its traces, to the byte, without the traces and without
//! symbols; damage costs its span and a line; what a file does not hold is refused in one line.

use crate::support::ask;
use ask::{json, output, refuses, said};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

const LOCK: &str = "fixtures/traces/lock-contention";
const CPU: &str = "fixtures/traces/cpu-contention";

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn copy(from: &Path, to: &Path) {
    if !from.is_dir() {
        std::fs::copy(from, to).unwrap();
        return;
    }
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        copy(&entry.path(), &to.join(entry.file_name()));
    }
}

/// Recordings in a folder of their own, which can be taken away.
struct Recordings {
    folder: tempfile::TempDir,
    /// As on a command line.
    words: Vec<String>,
    symbols: Vec<String>,
}

impl Recordings {
    /// Copies of `LABEL=PATH` or `PATH`, and symbol files where there are some beside them.
    fn of(words: &[&str]) -> Recordings {
        let folder = folder();
        let copied = |word: &&str| {
            let (label, path) = word.split_once('=').map_or(("", *word), |(label, path)| (label, path));
            let to = folder.path().join(Path::new(path).file_name().unwrap());
            copy(Path::new(path), &to);
            let to = to.to_str().unwrap();
            if label.is_empty() { to.to_owned() } else { format!("{label}={to}") }
        };
        let words = words.iter().map(copied).collect::<Vec<String>>();
        let bin = |word: &String| PathBuf::from(word.split_once('=').map_or(&**word, |(_, path)| path)).join("bin");
        let symbols = words.iter().map(bin).filter(|bin| bin.is_dir());
        let symbols = symbols.flat_map(|bin| ["--symbols".to_owned(), bin.to_str().unwrap().to_owned()]).collect();
        Recordings { folder, words, symbols }
    }

    fn file(&self) -> String {
        self.folder.path().join("kept.history").to_str().unwrap().to_owned()
    }

    /// What the program prints for some words and these recordings.
    fn answer(&self, words: &[&str]) -> (Option<i32>, Vec<u8>) {
        let takes_symbols = !["stats", "query", "timeline"].contains(&words[0]) && words != ["info", "--json"];
        let symbols = self.symbols.iter().filter(|_| takes_symbols);
        let all: Vec<&str> = words.iter().copied().chain(symbols.chain(&self.words).map(String::as_str)).collect();
        let out = output(&all);
        (out.status.code(), out.stdout)
    }

    fn build(&self, more: &[&str]) -> String {
        let file = self.file();
        let (status, _) = self.answer(&[&["build", "--history", "-o", &file], more].concat());
        assert_eq!(status, Some(0));
        file
    }

    /// The traces and their symbols are gone; the file stays.
    fn take_away(&self) {
        for entry in std::fs::read_dir(self.folder.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                std::fs::remove_dir_all(path).unwrap();
            } else if path != Path::new(&self.file()) {
                std::fs::remove_file(path).unwrap();
            }
        }
    }
}

const QUESTIONS: [&[&str]; 12] = [
    &["query", "--json", "--attribute", "threads/*/*"],
    &["query", "--json", "--attribute", "cpus/*/*"],
    &["query", "--json", "--overview"],
    &["timeline", "--json", "--rows", "9", "--cpus"],
    &["stats", "io", "--json"],
    &["stats", "cpu", "--json"],
    &["info", "--json"],
    &["info", "--full", "--json"],
    &["explain", "--json"],
    &["diff", "--json"],
    &["diff", "--json", "--executions", "0,1"],
    &["anomalies", "--json"],
];

/// All questions have the same answers without the traces.
fn answers_stay(recordings: &Recordings, more: &[&[&str]], build: &[&str]) {
    let questions = || QUESTIONS.iter().copied().chain(more.iter().copied());
    let file = recordings.build(build);
    let expected: Vec<_> = questions().map(|words| recordings.answer(words)).collect();
    recordings.take_away();
    for (words, (status, text)) in questions().zip(expected) {
        let out = output(&[words, &[&file]].concat());
        assert_eq!(out.status.code(), status, "{words:?}: {}", said(&out));
        assert!(out.stdout == text, "{words:?} of {:?}: {}", recordings.words, String::from_utf8_lossy(&out.stdout));
    }
}

#[test]
fn history_file_of_kernel_and_programs_answers_as_its_traces() {
    // The file ends with the programs' events, the state history with the kernel's.
    let more: [&[&str]; 3] = [
        &["explain", "--json", "--task", "client:call"],
        &["explain", "--json", "--task", "wait=read"],
        &["explain", "--json", "--task", "read"],
    ];
    answers_stay(&Recordings::of(&[LOCK]), &more, &["--task", "read"]);
}

#[test]
fn history_files_of_other_recorders_answer_as_their_traces() {
    for recording in
        ["fixtures/recorders/planted/lock.data", "fixtures/recorders/dwarf.data", "fixtures/recorders/v7.dat"]
    {
        answers_stay(&Recordings::of(&[recording]), &[], &[]);
    }
}

#[test]
fn history_file_of_several_hosts_answers_as_its_traces() {
    let recordings = Recordings::of(&["a=fixtures/traces/snap", "b=fixtures/traces/pid-buffers"]);
    answers_stay(&recordings, &[&["explain", "--json", "--slow", "trace=a", "--fast", "trace=b"]], &[]);
}

#[test]
fn history_file_is_the_same_for_any_number_of_workers() {
    let recordings = Recordings::of(&["fixtures/traces/pid-buffers"]);
    let one = std::fs::read(recordings.build(&["--threads", "1"])).unwrap();
    assert!(one == std::fs::read(recordings.build(&["--threads", "3", "--chunk", "0"])).unwrap());
}

#[test]
fn damaged_rows_cost_their_span_and_a_line() {
    let recordings = Recordings::of(&[CPU]);
    let file = recordings.build(&[]);
    let mut bytes = std::fs::read(&file).unwrap();
    let whole = json(&["query", "--json", "--attribute", "threads/*/state", &file]);
    // The rows of segments are the first ones of the largest section.
    let section = largest_section(&bytes);
    bytes[section + 5_000] ^= 4;
    std::fs::write(&file, &bytes).unwrap();
    for words in
        [&["explain", "--json"][..], &["anomalies", "--json"], &["query", "--json", "--attribute", "threads/*/state"]]
    {
        let answer = json(&[words, &[&file]].concat());
        let warnings = answer["warnings"].as_array().unwrap();
        let names_it = |w: &serde_json::Value| w.as_str().unwrap().contains("1 part of the history file is damaged");
        assert!(warnings.iter().any(names_it), "{words:?}: {warnings:?}");
    }
    let damaged = json(&["query", "--json", "--attribute", "threads/*/state", &file]);
    let intervals = |answer: &serde_json::Value| answer["intervals"].as_array().unwrap().clone();
    let (all, left) = (intervals(&whole), intervals(&damaged));
    assert!(left.len() < all.len() && left.len() * 8 > all.len(), "{} of {}", left.len(), all.len());
    // What is left was there, at that time; of the time that is lost nothing is said.
    let span = |of: &serde_json::Value| (of["start_ns"].as_i64().unwrap(), of["end_ns"].as_i64().unwrap());
    let state = |of: &serde_json::Value| format!("{} {}", of["attribute"], of["value"]);
    let mut spans: HashMap<String, Vec<(i64, i64)>> = HashMap::new();
    all.iter().for_each(|of| spans.entry(state(of)).or_default().push(span(of)));
    for interval in left.iter().filter(|interval| !interval["value"].is_null()) {
        let (start, end) = span(interval);
        let holds = |(from, to): &(i64, i64)| *from <= start && end <= *to;
        assert!(spans.get(&state(interval)).is_some_and(|spans| spans.iter().any(holds)), "{interval}");
    }
    // `--strict` ends with an error.
    assert_eq!(output(&["explain", "--strict", &file]).status.code(), Some(1));
}

/// Where the largest section of a history file begins.
fn largest_section(bytes: &[u8]) -> usize {
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let entries = (number(24)..bytes.len()).step_by(40);
    let sections = entries.map(|at| (number(at + 24), number(at + 16)));
    sections.max().unwrap().1
}

#[test]
fn what_a_history_file_does_not_hold_is_refused_in_one_line() {
    let recordings = Recordings::of(&[CPU]);
    let file = recordings.build(&[]);
    refuses(&["dump", &file], 1, &["holds states and no events", "run `whyslow dump` on the original trace"]);
    refuses(&["stats", "count", &file], 1, &["run `whyslow stats count` on the original trace"]);
    refuses(&["build", "--history", "-o", "x", &file], 1, &["it is a history file already"]);
    refuses(&["explain", "--task", "read", &file], 2, &["--task read:", "`whyslow build --history --task read`"]);
    refuses(&["explain", "--handlers", "fixtures/README.md", &file], 2, &["whyslow build --history"]);
    refuses(&["explain", &file, LOCK], 1, &["not a history file"]);
    refuses(&["query", "--attribute", "cpus/*/thread", &file, &file], 1, &["one history file at a time"]);
    let database = recordings.folder.path().join("executions.why");
    let database = database.to_str().unwrap();
    assert!(output(&["build", "-o", database, &file]).status.success());
    // A database does not keep what its tasks were chosen by.
    let kept = String::from_utf8(output(&["explain", "--json", database]).stdout).unwrap();
    let of_file = String::from_utf8(output(&["explain", "--json", &file]).stdout).unwrap();
    assert_eq!(kept.replacen("\"given\"", "\"marked\"", 1), of_file);
    refuses(&["build", "--history", "-o", database, LOCK], 1, &["is no history file", "choose another name"]);
    let mut bytes = std::fs::read(&file).unwrap();
    let version = bytes[8];
    bytes[8] += 1;
    std::fs::write(&file, &bytes).unwrap();
    refuses(&["explain", &file], 1, &[&format!("history file of version {}", version + 1), "newer whyslow"]);
    bytes[8] = version;
    bytes.pop();
    std::fs::write(&file, &bytes).unwrap();
    refuses(&["explain", &file], 1, &["its end is missing", "build it again"]);
}

#[test]
fn history_files_are_compared_by_their_labels() {
    let (old, new) = (Recordings::of(&[LOCK]), Recordings::of(&[CPU]));
    let labelled = [format!("old={}", old.build(&[])), format!("new={}", new.build(&[]))];
    let words = ["explain", "--json", "--task", "app:request", "--slow", "trace=old", "--fast", "trace=new"];
    let from_files = json(&[&words[..], &[&labelled[0], &labelled[1]]].concat());
    let traces = [format!("old={LOCK}"), format!("new={CPU}")];
    let symbols = [format!("{LOCK}/bin"), format!("{CPU}/bin")];
    let more = ["--symbols", &symbols[0], "--symbols", &symbols[1], &traces[0], &traces[1]];
    let from_traces = json(&[&words[..], &more].concat());
    for part in ["task", "slow", "fast", "extra_ns", "verdict", "causes", "dimensions"] {
        assert_eq!(from_files[part], from_traces[part], "{part}");
    }
}

/// The rows of the store by family, as `info --timings` has them; the sums are those of the families.
fn stored(path: &str) -> Vec<serde_json::Value> {
    let store = json(&["info", "--timings", "--json", path])["store"].clone();
    let families = store["families"].as_array().unwrap();
    for key in ["leaves", "bytes", "index_bytes"] {
        let sum: u64 = families.iter().map(|family| family[key].as_u64().unwrap()).sum();
        assert_eq!(store[key], sum, "{key}");
    }
    families.clone()
}

#[test]
fn info_with_timings_shows_the_memory_of_each_part_beside_what_the_budget_gives_it() {
    let words = ["info", "--timings", "--json", "--memory", "1GiB", "--threads", "1", LOCK];
    let memory = json(&words)["memory"].as_array().unwrap().clone();
    let part = |name: &str| memory.iter().find(|part| part["part"] == name).cloned().unwrap();
    let bytes = |name: &str, key: &str| part(name)[key].as_u64().unwrap();
    // An eighth of the budget, at most 30 MiB a worker, and half of that for rows.
    assert_eq!((bytes("buffers", "given_bytes"), bytes("open rows", "given_bytes")), (30 << 20, 15 << 20));
    for name in ["buffers", "open rows"] {
        assert!((1..=bytes(name, "given_bytes")).contains(&bytes(name, "bytes")), "{}", part(name));
    }
    assert!(bytes("segments", "bytes") > 0 && part("segments")["given_bytes"].is_null());
    let text = String::from_utf8(output(&words[..2].iter().chain(&words[3..]).copied().collect::<Vec<_>>()).stderr);
    let text = text.unwrap();
    let line = text.lines().find(|line| line.trim().starts_with("open rows")).unwrap();
    assert!(line.ends_with(" kB of 15360 kB"), "{line}");
}

#[test]
fn info_with_timings_shows_the_store_of_a_trace_and_of_its_history_file() {
    let recordings = Recordings::of(&[LOCK]);
    let file = recordings.build(&[]);
    let (of_trace, of_file) = (stored(LOCK), stored(&file));
    let find = |of: &[serde_json::Value], name: &str| of.iter().find(|family| family["family"] == name).cloned();
    for name in ["segments", "calls", "samples", "runs", "requests", "services"] {
        assert_eq!(find(&of_trace, name), find(&of_file, name), "{name}");
    }
    let segments = find(&of_file, "segments").unwrap();
    let [lines, rows, leaves, levels, bytes] = ["lines", "rows", "leaves", "levels", "bytes"].map(|key| &segments[key]);
    // A row takes 5 to 15 bytes, a leaf has 2,048 of them at most.
    let (rows, bytes) = (rows.as_u64().unwrap(), bytes.as_u64().unwrap());
    assert!(lines.as_u64().unwrap() > 5 && rows > 2_000 && (5 * rows..15 * rows).contains(&bytes), "{segments}");
    assert!((rows.div_ceil(2_048)..rows / 512).contains(&leaves.as_u64().unwrap()) && levels == 2, "{segments}");
    // The file has the delimiters of system calls and functions too.
    let marks = |of: &[serde_json::Value]| find(of, "marks").unwrap()["rows"].as_u64().unwrap();
    assert!(marks(&of_trace) > 0 && marks(&of_file) >= marks(&of_trace));
    let length = std::fs::metadata(&file).unwrap().len();
    assert!(of_file.iter().map(|family| family["bytes"].as_u64().unwrap()).sum::<u64>() < length);
    // Not without the option.
    let plain = json(&["info", "--full", "--json", &file]);
    assert!(plain["store"].is_null() && plain["memory"].is_null());
    let text = String::from_utf8(output(&["info", "--timings", &file]).stdout).unwrap();
    assert!(text.contains("\nstore: ") && text.lines().any(|line| line.ends_with("  segments")), "{text}");
}

#[test]
fn timings_count_the_nodes_and_leaves_that_each_question_looks_at() {
    let recordings = Recordings::of(&[LOCK]);
    let file = recordings.build(&[]);
    let counts = |words: &[&str], question: &str| -> [u64; 3] {
        let text = String::from_utf8(output(&[words, &["--timings", &file]].concat()).stderr).unwrap();
        let line = text.lines().find_map(|line| line.trim().strip_prefix(question)?.strip_prefix(": ")).unwrap_or("");
        let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        numbers.try_into().unwrap_or_else(|_| panic!("{question}: {text}"))
    };
    // An attribute at a moment reads a leaf or two, by the directory alone.
    let [asked, nodes, leaves] = counts(&["query", "--attribute", "cpus/0/thread", "--at", "1s"], "history runs at");
    assert!(asked > 0 && nodes == 0 && (1..=2).contains(&leaves), "{asked} {nodes} {leaves}");
    // The recording at a glance asks the nodes.
    let [asked, nodes, leaves] = counts(&["query", "--overview"], "history segments across");
    assert!(asked == 1 && nodes > 0 && leaves > 0, "{asked} {nodes} {leaves}");
    // Many threads ask twice: who is active, then the cells.
    let [asked, ..] = counts(&["timeline"], "history segments across");
    assert_eq!(asked, 2);
    for words in [["explain"], ["anomalies"]] {
        let [asked, nodes, leaves] = counts(&words, "path segments at");
        assert!(nodes == 0 && (1..=2 * asked).contains(&leaves), "{words:?}: {asked} {leaves}");
    }
}
