//! The command line: help, exit codes, one line for what is wrong, the README's commands.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn whyslow(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_whyslow"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(words)
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap()
}

/// Ends with `status`; stderr is one line that starts with `whyslow: ` and holds all `parts`.
fn refuses(words: &[&str], status: i32, parts: &[&str]) {
    let out = whyslow(words);
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(status), "{words:?}: {said}");
    assert!(said.starts_with("whyslow: ") && said.lines().count() == 1, "{words:?}: {said}");
    for part in parts {
        assert!(said.contains(part), "{words:?}: no `{part}` in: {said}");
    }
    assert!(out.stdout.is_empty(), "{words:?}: {}", String::from_utf8_lossy(&out.stdout));
}

fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::remove_dir_all(&folder).ok();
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

const LOCK: &str = "fixtures/traces/lock-contention";

#[test]
fn help_and_version_are_no_errors() {
    for words in [&["--help"][..], &["--version"], &["explain", "--help"]] {
        let out = whyslow(words);
        assert!(out.status.success() && !out.stdout.is_empty() && out.stderr.is_empty(), "{words:?}");
    }
}

#[test]
fn a_missing_file() {
    refuses(&["explain", "no/such/trace"], 1, &["no/such/trace"]);
}

#[test]
fn a_folder_without_a_trace() {
    let folder = scratch("no-trace");
    std::fs::write(folder.join("notes.txt"), "nothing here").unwrap();
    refuses(&["explain", folder.to_str().unwrap()], 1, &["no-trace", "metadata"]);
}

#[test]
fn an_empty_trace() {
    let folder = scratch("empty-trace");
    std::fs::copy(format!("{LOCK}/ust/uid/0/64-bit/metadata"), folder.join("metadata")).unwrap();
    refuses(&["explain", folder.to_str().unwrap()], 1, &["empty-trace", "no events"]);
}

#[test]
fn a_trace_without_tasks() {
    let folder = scratch("no-tasks");
    std::fs::write(
        folder.join("metadata"),
        "/* CTF 1.8 */\ntrace { major = 1; minor = 8; byte_order = le; };\nstream {};\n\
         event { name = \"beat\"; fields := struct { integer { size = 8; } n; }; };\n",
    )
    .unwrap();
    std::fs::write(folder.join("stream"), [1, 2, 3]).unwrap();
    refuses(&["explain", folder.to_str().unwrap()], 1, &["no-tasks", "task", "begin="]);
}

#[test]
fn a_task_that_is_not_there() {
    refuses(&["explain", "--task", "app:requst", LOCK], 2, &["app:requst", "whyslow info"]);
    refuses(&["explain", "--task", "begin=a,end=b", LOCK], 2, &["no event `a`"]);
}

#[test]
fn a_task_without_executions() {
    refuses(&["explain", "--task", "vmsplice", LOCK], 1, &["vmsplice", "no executions", "whyslow info --full"]);
}

#[test]
fn a_group_without_executions() {
    refuses(&["explain", "--slow", "duration>1h", LOCK], 2, &["1h", "ms"]);
    refuses(&["explain", "--slow", "duration>100s", "--fast", "duration<=p50", LOCK], 1, &["slow", "duration"]);
}

#[test]
fn a_filter_with_a_typo() {
    refuses(&["explain", "--slow", "duratoin>=p95", LOCK], 2, &["duratoin", "duration"]);
    refuses(&["explain", "--slow", "duration~p95", LOCK], 2, &["duration~p95"]);
    refuses(&["explain", "--fast", "duration<=50q", LOCK], 2, &["50q", "ms"]);
}

#[test]
fn formats_that_come_later_say_so() {
    let folder = scratch("later");
    std::fs::write(folder.join("perf.data"), b"PERFILE2 and more").unwrap();
    refuses(&["info", folder.join("perf.data").to_str().unwrap()], 1, &["perf.data", "not read yet"]);
}

#[test]
fn json_goes_to_stdout_alone() {
    let out = whyslow(&["explain", "--json", "--symbols", &format!("{LOCK}/bin"), LOCK]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let answer: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(answer["schema"], "whyslow.explain/1");
    assert_eq!(answer["task"], "app:request");
}

#[test]
fn conditions_for_scripts() {
    let ask = |condition: &str| {
        whyslow(&["explain", "--fail-if", condition, "--symbols", &format!("{LOCK}/bin"), LOCK]).status.code()
    };
    assert_eq!(ask("extra>1ms"), Some(3));
    assert_eq!(ask("extra>10s"), Some(0));
    refuses(&["explain", "--fail-if", "extra", LOCK], 2, &["extra"]);
}

#[test]
fn a_broken_pipe_is_success() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_whyslow"))
        .args(["dump", LOCK])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let out = child.wait_with_output().unwrap();
    assert_eq!((out.status.code(), String::from_utf8(out.stderr).unwrap().as_str()), (Some(0), ""));
}

/// The two commands of the README's first page are those that work on a machine with Rust alone.
#[test]
fn the_readme_names_its_two_commands() {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let commands: Vec<&str> = readme.lines().filter_map(|l| l.strip_prefix("    cargo ")).collect();
    assert!(commands.iter().any(|c| c.starts_with("test")), "{commands:?}");
    let run = commands.iter().find(|c| c.starts_with("run --release -- ")).unwrap();
    for word in run.split_whitespace().skip(3).filter(|w| w.starts_with("fixtures/")) {
        assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(word).exists(), "{word}");
    }
}

/// The same recording under two labels: two hosts, two values of the dimension `trace`, and no difference between them.
#[test]
fn labels_make_two_of_one() {
    let (old, new) = (format!("old={LOCK}"), format!("new={LOCK}"));
    let out = whyslow(&["explain", "--json", "--slow", "trace=new", "--fast", "trace=old", &old, &new]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let answer: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(answer["slow"]["count"], answer["fast"]["count"]);
    assert_eq!((answer["extra_ns"].as_i64(), answer["verdict"]["confident"].as_bool()), (Some(0), Some(false)));
}

#[test]
fn the_history_is_asked_for_values() {
    let ask = |words: &[&str]| {
        let out = whyslow(&[&["query", "--json", LOCK][..], words].concat());
        assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
        serde_json::from_slice::<serde_json::Value>(&out.stdout).unwrap()
    };
    let answer = ask(&["--attribute", "cpus/*/thread", "--at", "12s"]);
    let intervals = answer["intervals"].as_array().unwrap();
    assert_eq!((answer["schema"].as_str(), intervals.len()), (Some("whyslow.query/1"), 2));
    assert!(intervals.iter().all(|i| i["start_ns"].as_i64() < i["end_ns"].as_i64()));
    let points = ask(&["--attribute", "cpus/0/thread", "--range", "11s..12s", "--points", "50"]);
    assert!((1..=50).contains(&points["intervals"].as_array().unwrap().len()));
    refuses(&["query", "--attribute", "cpus/99/thread", LOCK], 1, &["cpus/99/thread", "threads/*/state"]);
    refuses(&["query", "--attribute", "cpus/0/thread", "--at", "12parsec", LOCK], 2, &["12parsec"]);
}

/// The page of keys is the program's own table. `WHYSLOW_WRITE_KEYS=1` writes it again.
#[test]
fn the_page_of_keys_is_the_programs_own() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/KEYS.md");
    let page = format!("# Keys of the interface\n\n{}", whyslow::view::tui::actions::markdown());
    if std::env::var_os("WHYSLOW_WRITE_KEYS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), page);
}

#[test]
fn invariants_are_checked_where_something_is_built() {
    for words in [&["explain", "--check", LOCK][..], &["query", "--check", "--attribute", "cpus/0/thread", LOCK]] {
        let out = whyslow(words);
        assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
    }
}
