//! The command line: help, exit codes, one line for what is wrong, the README's commands.

use crate::support::{ask, ctf_writer};
use ask::{json, output, refuses};
use ctf_writer::{Channel, Event, TraceWriter, Value};
use std::path::{Path, PathBuf};
use std::rc::Rc;

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
        let out = output(words);
        assert!(out.status.success() && !out.stdout.is_empty() && out.stderr.is_empty(), "{words:?}");
    }
}

#[test]
fn missing_file_is_an_error() {
    refuses(&["explain", "no/such/trace"], 1, &["no/such/trace"]);
}

#[test]
fn folder_without_a_trace_is_an_error() {
    let folder = scratch("no-trace");
    std::fs::write(folder.join("notes.txt"), "nothing here").unwrap();
    refuses(&["explain", folder.to_str().unwrap()], 1, &["no-trace", "metadata"]);
}

#[test]
fn empty_trace_is_an_error() {
    let folder = scratch("empty-trace");
    std::fs::copy(format!("{LOCK}/ust/uid/0/64-bit/metadata"), folder.join("metadata")).unwrap();
    refuses(&["explain", folder.to_str().unwrap()], 1, &["empty-trace", "no events"]);
}

#[test]
fn trace_without_tasks_is_an_error() {
    let folder = scratch("no-tasks");
    let beat = |n: u8| Event {
        time: i64::from(n),
        cpu: 0,
        name: "beat".into(),
        fields: vec![("n", Value::U8(n))],
        on: Rc::default(),
        stack: None,
    };
    let events = (1..4).map(beat).collect();
    let mut trace = TraceWriter::new("h", "ust", 0xc1, 0xc2);
    trace.channels.push(Channel { name: "stream".into(), contexts: Vec::new(), events, discarded: Vec::new() });
    trace.write(&folder);
    refuses(&["explain", folder.to_str().unwrap()], 1, &["no-tasks", "task", "begin="]);
}

#[test]
fn task_of_unknown_events_is_a_usage_error() {
    refuses(&["explain", "--task", "app:requst", LOCK], 2, &["app:requst", "did you mean `app:request`?"]);
    refuses(&["explain", "--task", "xyzzy", LOCK], 2, &["xyzzy", "app:request", "whyslow info"]);
    refuses(&["explain", "--task", "begin=a,end=b", LOCK], 2, &["no event `a`", "whyslow stats count"]);
    let misspelt = "begin=app:requst_begin,end=app:request_end";
    refuses(&["explain", "--task", misspelt, LOCK], 2, &["did you mean `app:request_begin`"]);
}

#[test]
fn task_without_executions_is_an_error() {
    refuses(&["explain", "--task", "vmsplice", LOCK], 1, &["vmsplice", "no executions", "whyslow info --full"]);
}

#[test]
fn group_without_executions_is_a_usage_error() {
    refuses(&["explain", "--slow", "duration>1d", LOCK], 2, &["1d", "ms"]);
    refuses(&["explain", "--slow", "duration>100s", "--fast", "duration<=p50", LOCK], 1, &["slow", "duration"]);
}

#[test]
fn filter_with_a_typo_is_a_usage_error() {
    refuses(&["explain", "--slow", "duratoin>=p95", LOCK], 2, &["duratoin", "duration"]);
    refuses(&["explain", "--slow", "duration~p95", LOCK], 2, &["duration~p95"]);
    refuses(&["explain", "--fast", "duration<=50q", LOCK], 2, &["50q", "ms"]);
}

#[test]
fn truncated_recording_is_an_error() {
    let folder = scratch("cut-off");
    std::fs::write(folder.join("perf.data"), b"PERFILE2 and more").unwrap();
    refuses(&["info", folder.join("perf.data").to_str().unwrap()], 1, &["perf.data", "ends inside its own header"]);
}

#[test]
fn json_goes_to_stdout_alone() {
    let out = output(&["explain", "--json", "--symbols", &format!("{LOCK}/bin"), LOCK]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let answer: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(answer["schema"], "whyslow.explain/1");
    assert_eq!(answer["task"], "app:request");
}

#[test]
fn fail_if_sets_the_exit_status() {
    let groups = ["--slow", "duration>=p95", "--fast", "duration<=p50"];
    let ask =
        |condition: &str| output(&[&["explain", "--fail-if", condition, LOCK][..], &groups].concat()).status.code();
    assert_eq!(ask("extra>1ms"), Some(3));
    assert_eq!(ask("extra>10s"), Some(0));
    refuses(&["explain", "--fail-if", "extra", LOCK], 2, &["extra"]);
}

#[test]
fn broken_pipe_is_success() {
    let mut child = ask::program()
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

/// The commands of the README's first page are those that work on a machine with Rust alone: the tour, a recording of
/// this repository, the tests.
#[test]
fn readme_names_its_commands() {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let commands: Vec<&str> = readme.lines().filter_map(|l| l.strip_prefix("    cargo ")).collect();
    assert!(commands.iter().any(|c| c.starts_with("test")), "{commands:?}");
    assert_eq!(commands.first(), Some(&"run --release -- --tour"));
    let runs = commands.iter().filter(|c| c.starts_with("run --release -- "));
    let opened: Vec<&str> =
        runs.flat_map(|run| run.split_whitespace().filter(|w| w.starts_with("fixtures/"))).collect();
    assert!(!opened.is_empty(), "{commands:?}");
    for path in opened {
        assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(path).exists(), "{path}");
    }
}

/// The same recording under two labels: two hosts, two values of the dimension `trace`, and no difference between them.
#[test]
fn labels_make_two_traces_of_one_recording() {
    let (old, new) = (format!("old={LOCK}"), format!("new={LOCK}"));
    let out = output(&["explain", "--json", "--slow", "trace=new", "--fast", "trace=old", &old, &new]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let answer: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(answer["slow"]["count"], answer["fast"]["count"]);
    assert_eq!((answer["extra_ns"].as_i64(), answer["verdict"]["confident"].as_bool()), (Some(0), Some(false)));
}

#[test]
fn query_answers_values_of_the_history() {
    let ask = |words: &[&str]| {
        let out = output(&[&["query", "--json", LOCK][..], words].concat());
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
fn keys_page_is_generated_from_the_actions() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/KEYS.md");
    let page = format!("# Keys of the interface\n\n{}", whyslow::parts::tui::key_bindings::markdown());
    if std::env::var_os("WHYSLOW_WRITE_KEYS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), page);
}

#[test]
fn invariants_are_checked_where_something_is_built() {
    for words in [&["explain", "--check", LOCK][..], &["query", "--check", "--attribute", "cpus/0/thread", LOCK]] {
        let out = output(words);
        assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
    }
}

/// How many executions of what `words` ask for passed both filters of the whole range, by their trace's JSON.
fn counted(words: &[&str]) -> u64 {
    let all = [&["diff", "--json", "--slow", "duration>=0", "--fast", "duration>=0"], words].concat();
    let out = output(&all);
    assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
    let answer: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    answer["slow"]["count"].as_u64().unwrap()
}

#[test]
fn tasks_file_declares_tasks() {
    let file = scratch("declared").join("tasks.toml");
    let declared = r#"
# From the client's call to the end of the request in the server: over processes, by the request's number.
[[task]]
name = "through"
begin = "client:call_begin"
end = "app:request_end"
key = "id"
type = "type"

[[task]]
name = "appends"
begin = { event = "app:request_begin", where = ["type == \"append\"", "id >= 0"] }
end = { event = "app:request_end", where = "status == 0" }
key = ["id", "vpid"]

[[task]]
name = "nothing"
begin = { event = "app:request_begin", where = "type == \"nothing\"" }
end = "app:request_end"
"#;
    std::fs::write(&file, declared).unwrap();
    let file = file.to_str().unwrap();
    let ask = |task: &str, more: &[&str]| counted(&[&["--tasks", file, "--task", task, LOCK], more].concat());
    let calls = counted(&["--task", "client:call", LOCK]);
    // A call at either end of the fixture may lack its other half.
    assert!(calls > 20 && ask("through", &[]).abs_diff(calls) <= 2, "{calls}");
    assert_eq!(ask("appends", &[]), counted(&["--task", "app:request", "--slow", "type=append", LOCK]));
    refuses(&["explain", "--tasks", file, "--task", "nothing", LOCK], 1, &["task nothing has no executions"]);
    // Without --task it is the first of the file; `info` lists them before all others.
    assert_eq!(counted(&["--tasks", file, LOCK]), ask("through", &[]));
    let info = output(&["info", "--full", "--json", "--tasks", file, LOCK]);
    let info: serde_json::Value = serde_json::from_slice(&info.stdout).unwrap();
    assert_eq!((&info["tasks"][0]["name"], &info["tasks"][1]["name"]), (&"through".into(), &"appends".into()));
    std::fs::write(file, declared.replace("client:call_begin", "client:call_bgin")).unwrap();
    refuses(&["info", "--tasks", file, LOCK], 2, &["tasks.toml:5", "client:call_bgin"]);
    refuses(&["info", "--tasks", "no/such.toml", LOCK], 2, &["no/such.toml"]);
}

#[test]
fn memory_limit_holds_or_is_refused_as_too_small() {
    let words = ["explain", "--json", LOCK];
    let free = output(&words).stdout;
    assert_eq!(output(&[&words[..], &["--memory", "4GiB"]].concat()).stdout, free);
    for command in ["explain", "diff", "anomalies", "info", "dump"] {
        refuses(&[command, "--memory", "64KiB", LOCK], 1, &["--memory 64KiB: this is not enough", "raise the limit"]);
    }
    let dump = ["dump", "--canonical", LOCK];
    assert_eq!(output(&[&dump[..], &["--memory", "4GiB"]].concat()).stdout, output(&dump).stdout);
    refuses(&["explain", "--memory", "lots", LOCK], 2, &["--memory", "512M"]);
}

/// The document that a command prints.
/// The number of executions and the filters of a group of `diff --json`.
fn group(answer: &serde_json::Value, name: &str) -> (u64, Vec<String>) {
    let group = &answer[name];
    let filters = group["filters"].as_array().unwrap().iter().map(|f| f.as_str().unwrap().to_owned()).collect();
    (group["count"].as_u64().unwrap(), filters)
}

#[test]
fn group_alone_is_compared_with_the_remaining_executions() {
    let ask = |words: &[&str]| json(&[&["diff", "--json", "--task", "app:request"], words, &[LOCK]].concat());
    let all = ask(&["--slow", "duration>=0", "--fast", "duration>=0"]);
    let (everything, _) = group(&all, "slow");
    for slow in ["duration>20ms", "type=append"] {
        let answer = ask(&["--slow", slow]);
        let (n, filters) = group(&answer, "fast");
        assert_eq!((group(&answer, "slow").0 + n, filters), (everything, vec!["group!=slow".to_owned()]), "{slow}");
    }
    // The same types on both sides, and what is printed selects the same again.
    let appends = ask(&["--slow", "type=append, duration>20ms"]);
    let (n, filters) = group(&appends, "fast");
    assert_eq!(filters, ["type=append", "group!=slow"]);
    let again = ask(&["--slow", "type=append,duration>20ms", "--fast", &filters.join(", ")]);
    assert_eq!(group(&again, "fast").0, n);
    let only = ask(&["--type", "append"]);
    assert!(group(&only, "slow").1.contains(&"type=append".to_owned()));
    assert_eq!(group(&appends, "slow").0 + n, group(&ask(&["--slow", "type=append"]), "slow").0);
    refuses(&["explain", "--slow", "duration>5", LOCK], 2, &["--slow", "`5` has no unit", "5ms"]);
}

#[test]
fn baseline_is_the_fast_group() {
    for words in
        [&[LOCK, "--baseline", LOCK][..], &[&format!("old={LOCK}"), &format!("new={LOCK}"), "--baseline", "old"]]
    {
        let answer = json(&[&["diff", "--json"], words].concat());
        let (fast, filters) = group(&answer, "fast");
        let label = if words[0] == LOCK { "baseline" } else { "old" };
        assert_eq!((fast, filters), (group(&answer, "slow").0, vec![format!("trace={label}")]));
        assert_eq!(group(&answer, "slow").1, [format!("trace!={label}")]);
    }
    let two = json(&["diff", "--json", &format!("a={LOCK}"), &format!("b={LOCK}")]);
    assert_eq!(group(&two, "slow").0, group(&two, "fast").0);
    refuses(&["explain", "--fail-if", "p95>+5%", LOCK], 2, &["--fail-if", "--baseline OLD"]);
}

#[test]
fn diff_prints_the_heat_map_of_a_property() {
    let words = ["diff", "--task", "app:request", LOCK];
    let answer = json(&[&words[..], &["--json", "--heat-map", "type"]].concat());
    let sum = |key: &str| {
        let rows = answer["heat_map"][key].as_array().unwrap().iter().flat_map(|row| row.as_array().unwrap());
        rows.map(|count| count.as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(sum("all"), answer["slow"]["of"].as_u64().unwrap());
    assert_eq!(sum("slow"), answer["slow"]["count"].as_u64().unwrap());
    assert_eq!(sum("fast"), answer["fast"]["count"].as_u64().unwrap());
    let text = String::from_utf8(output(&[&words[..], &["--heat-map", "start"]].concat()).stdout).unwrap();
    assert!(text.contains("start x duration: slow") || text.contains("start × duration: slow"), "{text}");
    refuses(&[&words[..], &["--heat-map", "typ"]].concat(), 2, &["--heat-map typ", "did you mean `type`"]);
    refuses(&["diff", "--heat-map", "start", "fixtures/profiles/flat.data"], 2, &["samples of a profile"]);
}

#[test]
fn help_has_examples_and_each_command_only_its_own_options() {
    let help = |words: &[&str]| String::from_utf8(output(words).stdout).unwrap();
    let main = help(&["--help"]);
    assert!(main.contains("OTF2") && main.contains("perf.data") && main.contains("Examples"), "{main}");
    for command in ["explain", "diff", "anomalies", "query", "stats", "build", "report"] {
        assert!(help(&[command, "--help"]).contains("Example"), "{command}");
    }
    for (command, option) in [("dump", "--tasks"), ("dump", "--handlers"), ("stats", "--tasks"), ("query", "--tasks")] {
        assert!(!help(&[command, "--help"]).contains(option), "{command} has no use for {option}");
    }
}

#[test]
fn plain_answer_is_words_alone() {
    let symbols = ["--symbols", "fixtures/traces/lock-contention/bin"];
    for words in [&["explain", "--plain", LOCK][..], &["--plain", LOCK]] {
        let out = output(&[words, &symbols].concat());
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let text = String::from_utf8(out.stdout).unwrap();
        assert!(text.starts_with("Waiting in append_entry for thread journal of ledgerd, which ran expensive_flush"));
        assert!(text.contains("\nCause 1: 12.4 ms, 77%, blocked.thread.\n"), "{text}");
        assert!(text.contains("    Path: ledgerd, worker_main, handle_request"), "{text}");
        // Nothing is aligned in columns or drawn, which a reader would spell out.
        for line in text.lines() {
            let inside = line.trim_start();
            assert!(
                line.is_ascii() && !inside.contains("  ") && !inside.contains(['#', '|']) && !inside.contains(" > "),
                "{line}"
            );
        }
    }
}
