//! The examples of the help and the README are run as they stand, on recordings of this repository in place of the
//! names that they use.

use crate::support::ask;
use std::path::{Path, PathBuf};

/// Commands with examples that need no recorder of this machine.
const COMMANDS: [&str; 11] =
    ["explain", "diff", "executions", "report", "anomalies", "query", "timeline", "stats", "info", "build", "dump"];

fn fixture(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(path).to_str().unwrap().to_owned()
}

/// The words of a command line, as a shell divides it, up to a pipe, a comment, or two spaces before an explanation.
fn words(line: &str) -> Vec<String> {
    let (mut all, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for (at, c) in line.char_indices() {
        let ends = !quoted && (line[at..].starts_with("  ") || c == '#' || c == '|');
        match c {
            '\'' => quoted = !quoted,
            _ if ends => break,
            ' ' if !quoted => all.push(std::mem::take(&mut word)),
            _ => word.push(c),
        }
    }
    all.push(word);
    all.retain(|word| !word.is_empty());
    all
}

/// The word with a file of this repository where it names one of a user.
fn in_place(word: &str) -> String {
    match word {
        "TRACE" | "TRACE..." | "NEW" | "OLD" => fixture("traces/lock-contention"),
        "./bin" => fixture("traces/lock-contention/bin"),
        "OLD.data" => fixture("profiles/old-1.data"),
        "NEW.data" => fixture("profiles/new-1.data"),
        "run/traces.otf2" => fixture("archives/late_sender/trace/traces.otf2"),
        _ => word.to_owned(),
    }
}

/// The examples in a text: lines that begin with the name of the program.
fn examples(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().map(str::trim_start).filter_map(|line| line.strip_prefix("whyslow "));
    // The interface needs a terminal, and a recorder is not everywhere.
    lines.map(words).filter(|words| words.first().is_some_and(|first| COMMANDS.contains(&first.as_str()))).collect()
}

#[test]
fn examples_of_help_and_readme_give_answers() {
    let folder = tempfile::tempdir().unwrap();
    let mut all = Vec::new();
    for command in COMMANDS {
        let help = String::from_utf8(ask::run(&mut ask::whyslow([command, "--help"])).stdout).unwrap();
        let (_, below) = help.split_once("Example").unwrap_or_else(|| panic!("{command} has no examples"));
        all.extend(examples(below));
    }
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let commands = readme.split("```sh").skip(1).filter_map(|block| block.split("```").next());
    all.extend(commands.flat_map(examples));
    assert!(all.len() > 25, "{all:?}");
    for example in all {
        let typed: Vec<String> = example.iter().map(|word| in_place(word)).collect();
        let out = ask::run(ask::whyslow(&typed).current_dir(folder.path()));
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        // `--fail-if` ends with 3 where its condition holds.
        let is_answer = out.status.success() || out.status.code() == Some(3);
        assert!(is_answer && !said.contains("whyslow: "), "{example:?}: {:?} {said}", out.status);
        let written = example.windows(2).find(|pair| pair[0] == "-o").map(|pair| PathBuf::from(&pair[1]));
        assert!(!out.stdout.is_empty() || written.is_some_and(|file| folder.path().join(file).exists()), "{example:?}");
    }
}

#[test]
fn words_divides_as_a_shell_does() {
    let line = "query TRACE --attribute 'threads/*/state' --at 12.5s    # values of the history";
    assert_eq!(words(line), ["query", "TRACE", "--attribute", "threads/*/state", "--at", "12.5s"]);
    assert_eq!(
        words("explain TRACE --slow 'duration>20ms, type=append'").last().unwrap(),
        "duration>20ms, type=append"
    );
    assert_eq!(words("dump TRACE | grep sched_switch"), ["dump", "TRACE"]);
}
