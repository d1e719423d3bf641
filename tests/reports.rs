//! `whyslow report`: every format over a recording, and the command that it prints gives the same answer. The
//! configuration file: defaults that typed options override.

use crate::support::ask;
use ask::{run, whyslow};
use std::path::{Path, PathBuf};

const LOCK: &str = "fixtures/traces/lock-contention";
const GROUPS: [&str; 4] = ["--slow", "duration>=10ms", "--fast", "duration<2ms"];

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("reports").join(name);
    std::fs::remove_dir_all(&folder).ok();
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn stdout(words: &[&str]) -> String {
    let out = run(whyslow(words).current_dir(env!("CARGO_MANIFEST_DIR")));
    assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn report_writes_each_format_by_the_ending_of_the_file() {
    let folder = folder("formats");
    for (ending, beginning) in [
        ("html", &b"<!DOCTYPE html>"[..]),
        ("md", b"## "),
        ("svg", b"<svg class=\"flame\""),
        ("folded", b"ledgerd;"),
        ("speedscope.json", b"{\"$schema\":\"https://www.speedscope.app/"),
        ("pb.gz", b"\x1f\x8b"),
    ] {
        let path = folder.join(format!("why.{ending}"));
        assert_eq!(stdout(&["report", LOCK, "-o", path.to_str().unwrap()]), "");
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes.starts_with(beginning), "{ending}: {:?}", String::from_utf8_lossy(&bytes[..40]));
    }
    let page = std::fs::read_to_string(folder.join("why.html")).unwrap();
    assert!(!page.contains("http://www.w3.org/1999") && !page.contains("src="), "the page loads nothing");
    // Frames have parts of the window's width, so that the graph is as wide as it without the script, too.
    assert!(page.contains("<svg class=\"flame\" xmlns=\"http://www.w3.org/2000/svg\" width=\"100%\""));
    let frames: Vec<&str> = page.split("<svg class=\"frame\"").skip(1).collect();
    assert!(frames.len() > 10 && frames.iter().all(|frame| frame.split('>').next().unwrap().matches('%').count() == 2));
    let (list, _) = page.split_once("The slowest execution and a typical").unwrap();
    assert_eq!(list.matches("<tr><td class=\"slow\">slow").count(), 1 + 15, "the group, and its slowest");
    for element in ["html", "head", "body", "table", "svg", "figure", "script", "style"] {
        let (opened, closed) = (format!("<{element}"), format!("</{element}>"));
        let begins = page.match_indices(&opened).filter(|(at, _)| page[at + opened.len()..].starts_with([' ', '>']));
        assert_eq!(begins.count(), page.matches(&closed).count(), "{element}");
    }
}

/// The states of all threads around the slowest execution: its own thread first, then the one to blame. A database has
/// none.
#[test]
fn pages_draw_all_threads_during_the_slowest_execution() {
    let folder = tempfile::tempdir().unwrap();
    let page = |input: &str| {
        let path = folder.path().join("page.html");
        assert_eq!(stdout(&["report", input, "-o", path.to_str().unwrap()]), "");
        std::fs::read_to_string(path).unwrap()
    };
    let lanes = |page: &str| -> Vec<String> {
        let (_, lanes) = page.split_once("<h2>All ").expect("no lanes");
        let (lanes, _) = lanes.split_once("<h2>").unwrap();
        let labels = lanes.split("<text x=\"2\" y=\"12\">").skip(1);
        labels.map(|label| label.split_once('<').unwrap().0.to_owned()).collect()
    };
    let of_threads = lanes(&page(LOCK));
    assert!(of_threads[0].starts_with("worker ") && of_threads[1].starts_with("journal "), "{of_threads:?}");
    let of_ranks = lanes(&page(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/archives/late_sender/trace")));
    assert_eq!(of_ranks.len(), 6, "{of_ranks:?}");
    assert_eq!(of_ranks[0], "rank 1");
    let database = folder.path().join("lock.why");
    stdout(&["build", LOCK, "-o", database.to_str().unwrap()]);
    assert!(!page(database.to_str().unwrap()).contains("<h2>All "));
}

/// Samples have no durations: none of them is the slowest.
#[test]
fn reports_of_profiles_have_no_slowest_executions() {
    let folder = tempfile::tempdir().unwrap();
    let profile = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/profiles/flat.data");
    for name in ["page.html", "page.md"] {
        let path = folder.path().join(name);
        assert_eq!(stdout(&["report", profile, "-o", path.to_str().unwrap()]), "");
        let page = std::fs::read_to_string(path).unwrap();
        assert!(!page.contains("slowest") && !page.contains("Examples"), "{name}");
        assert!(page.contains("Data quality"), "{name}");
    }
}

#[test]
fn report_prints_a_command_that_gives_the_same_verdict() {
    let mut words = vec!["report", LOCK];
    words.extend(GROUPS);
    let summary = stdout(&words);
    let command = summary.lines().find_map(|line| line.strip_prefix("    whyslow ")).unwrap();
    assert_eq!(command, format!("explain {LOCK} --slow 'duration>=10ms' --fast 'duration<2ms'"));
    let mut words = vec!["explain", LOCK];
    words.extend(GROUPS);
    let verdict = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").replace('\\', "");
    let sentence = verdict(summary.lines().next().unwrap().trim_start_matches("## "));
    assert!(verdict(&stdout(&words)).starts_with(&sentence), "{sentence}");
}

#[test]
fn report_refuses_an_unknown_ending_before_it_reads_the_trace() {
    let out = run(&mut whyslow(["report", "/no/such/trace", "-o", "why.pdf"]));
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!((out.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    assert!(said.contains("why.pdf: unknown ending") && said.contains(".html"), "{said}");
}

#[test]
fn configuration_gives_defaults_that_options_override() {
    let home = folder("configuration");
    let file = home.join("whyslow/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let ask = |text: &str, words: &[&str]| {
        std::fs::write(&file, text).unwrap();
        let out = run(whyslow(words).env("XDG_CONFIG_HOME", &home).current_dir(env!("CARGO_MANIFEST_DIR")));
        (out.status.code(), String::from_utf8(out.stdout).unwrap() + &String::from_utf8(out.stderr).unwrap())
    };
    let (status, help) = ask("theme = \"light\"\nmouse = true\n", &["--help"]);
    assert_eq!(status, Some(0));
    assert!(help.contains("[default: light]"), "{help}");
    let symbols = format!("symbols = [\"{}\"]\n", home.display());
    let (status, command) = ask(&symbols, &["report", LOCK]);
    assert!(status == Some(0) && command.contains(&format!("--symbols {}", home.display())), "{command}");
    let (_, command) = ask(&symbols, &["report", LOCK, "--symbols", "."]);
    assert!(command.contains("--symbols .") && !command.contains(&format!("--symbols {}", home.display())));
    let (status, said) = ask("\ntheem = 1\n", &["info", LOCK]);
    assert_eq!((status, said.lines().count()), (Some(2), 1), "{said}");
    assert!(said.contains("config.toml:2: unknown field `theem`"), "{said}");
    let (status, _) = ask("theem = 1\n", &["--help"]);
    assert_eq!(status, Some(0), "help is shown whatever the configuration is");
}
