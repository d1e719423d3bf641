//! The words of the glossary (docs/ARCHITECTURE.md, section 3): a word that it replaces appears nowhere in the folders
//! that are done, neither in code nor in comments nor in texts.
//!
//! In: the sources and documents of [`DONE`]. Out: file and line of each word of [`BANNED`]. Words are compared whole
//! and without case; `_` is part of a word, so that identifiers count as they are written.

use crate::support::ask;
use std::path::{Path, PathBuf};

/// Files and folders whose texts keep to the glossary.
const DONE: [&str; 10] = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "benches",
    "docs",
    "examples",
    "fuzz",
    "src",
    "tests",
];

/// Files and folders of those that are not done yet; the list only shrinks.
const LEFT: &[&str] = &[];

/// Words and phrases, and the word to use.
const BANNED: [(&str, &str); 39] = [
    ("anybody", "any thread, any user"),
    ("brush", "selection"),
    ("carve", "split, partition"),
    ("carved", "split, partitioned"),
    ("has the CPU", "running"),
    ("had the CPU", "running"),
    ("held against", "compared with"),
    ("hurt", "damaged"),
    ("in the dark", "without known initial state"),
    ("incarnation", "thread instance"),
    ("incarnations", "thread instances"),
    ("keep in mind", "caveats"),
    ("laid", "aligned, placed"),
    ("landmark", "initial state, checkpoint event"),
    ("lays", "aligns, places"),
    ("lies", "is"),
    ("lying", "inconsistent, drawn"),
    ("motif", "pattern"),
    ("nobody", "no thread, unknown"),
    ("odd", "a notice; inconsistent"),
    ("oddities", "notices, irregularities"),
    ("oddity", "notice, irregularity"),
    ("somebody", "a thread, a rank"),
    ("spokesmen", "candidates"),
    ("standing still", "interrupted"),
    ("stands", "is"),
    ("stood", "was"),
    ("tell", "show, report"),
    ("tells", "shows, reports"),
    ("told", "reported, recorded"),
    ("the house", "architecture"),
    ("too much", "excess, delay, extra"),
    ("trust panel", "data quality"),
    ("unasked", "by itself"),
    ("whoever", "the thread, the rank"),
    ("whom", "the thread, the victim"),
    ("takes another route", "makes different calls"),
    ("wishes", "request, options"),
    ("waits without a source", "waits without a known cause"),
];

/// Phrases that contain a banned word and stay: a question in JSON.
const ALLOWED: [&str; 1] = ["who woke whom"];

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// True if the line contains the phrase as whole words; both are in lower case.
fn contains(line: &str, phrase: &str) -> bool {
    line.match_indices(phrase).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + phrase.len()..]);
        !before.chars().next_back().is_some_and(is_word) && !after.chars().next().is_some_and(is_word)
    })
}

/// The banned words of a text, each with its line number.
fn banned(text: &str) -> Vec<(usize, &'static str, &'static str)> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let mut line = line.to_lowercase();
        for phrase in ALLOWED {
            line = line.replace(phrase, "");
        }
        found.extend(
            BANNED
                .iter()
                .filter(|(word, _)| contains(&line, &word.to_lowercase()))
                .map(|(word, use_)| (number, *word, *use_)),
        );
    }
    found
}

fn files(path: &Path, into: &mut Vec<PathBuf>) {
    if path.is_dir() {
        let mut entries: Vec<PathBuf> = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        entries.iter().for_each(|entry| files(entry, into));
    } else if path.is_file() && path.extension().is_some_and(|e| e == "rs" || e == "md") {
        into.push(path.to_owned());
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The text of a file without the words that the glossary itself lists as replaced: the last cell of its rows.
fn checked_text(name: &str, text: &str) -> String {
    if name != "docs/ARCHITECTURE.md" {
        return text.to_owned();
    }
    let without_last_cell = |line: &str| match line.strip_suffix('|').and_then(|row| row.rsplit_once('|')) {
        Some((row, _)) if line.starts_with('|') => row.to_owned(),
        _ => line.to_owned(),
    };
    text.lines().map(without_last_cell).collect::<Vec<_>>().join("\n")
}

#[test]
fn texts_keep_to_the_glossary() {
    let mut wrong = Vec::new();
    let mut read = 0;
    for done in DONE.iter().filter(|done| root().join(done).exists()) {
        let mut all = Vec::new();
        files(&root().join(done), &mut all);
        for file in all {
            let name = file.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
            if name == "tests/words.rs" || LEFT.iter().any(|left| file.starts_with(root().join(left))) {
                continue;
            }
            read += 1;
            let text = checked_text(&name, &std::fs::read_to_string(&file).unwrap());
            wrong.extend(
                banned(&text).into_iter().map(|(line, word, use_)| format!("{name}:{line}: {word:?} (write: {use_})")),
            );
        }
    }
    assert!(read > 100, "only {read} files were read");
    assert!(wrong.is_empty(), "{} words that the glossary replaces:\n{}", wrong.len(), wrong.join("\n"));
}

/// An entry of [`LEFT`] that keeps to the glossary comes off the list.
#[test]
fn left_lists_only_files_with_replaced_words() {
    for left in LEFT {
        let mut all = Vec::new();
        files(&root().join(left), &mut all);
        let is_clean = all.iter().all(|file| banned(&std::fs::read_to_string(file).unwrap()).is_empty());
        assert!(!is_clean, "{left} keeps to the glossary: take it off the list");
    }
}

/// The output of `whyslow help` and of `whyslow help COMMAND`.
fn help(command: &str) -> String {
    let mut whyslow = ask::program();
    let out = ask::run(whyslow.arg("help").args(command.split_whitespace()));
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn help_keeps_to_the_glossary() {
    let all = help("");
    let listed =
        all.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1).take_while(|line| !line.is_empty());
    // Descriptions that are wrapped go on further to the right.
    let is_command = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let commands: Vec<&str> = listed.filter(is_command).filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.len() >= 9, "{all}");
    for command in [""].iter().chain(&commands) {
        let text = help(command);
        assert!(text.contains("Usage:"), "{command}: {text}");
        assert!(banned(&text).is_empty(), "help {command}: {:?}", banned(&text));
    }
}

/// The steps of docs/ARCHITECTURE.md, section 1: each names files below `src/` and functions in them.
#[test]
fn walk_names_functions_that_exist() {
    let text = std::fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let section = text.split("\n## 1. ").nth(1).unwrap().split("\n### ").next().unwrap();
    let (mut source, mut steps) = (String::new(), 0);
    for name in section.split('`').skip(1).step_by(2) {
        if name.ends_with(".rs") {
            source = std::fs::read_to_string(root().join("src").join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        } else if name.chars().all(|c| c.is_ascii_lowercase() || c == '_') {
            steps += 1;
            let is_there = ["(", "<"].iter().any(|end| source.contains(&format!("fn {name}{end}")));
            assert!(is_there, "no function {name}");
        }
    }
    assert!(steps >= 10, "only {steps} functions are named");
}

#[test]
fn banned_words_are_found_whole_and_in_any_case() {
    let words = |text: &str| banned(text).into_iter().map(|(line, word, _)| (line, word)).collect::<Vec<_>>();
    assert_eq!(words("// Nobody knows.\nlet told = 1;"), [(1, "nobody"), (2, "told")]);
    assert_eq!(words("\"12 ms too much\""), [(1, "too much")]);
    assert_eq!(words("the Trust panel"), [(1, "trust panel")]);
    assert_eq!(words("it had the CPU"), [(1, "had the CPU")]);
    assert!(words("modulo oddly told_of understood relies molten").is_empty());
    assert!(words("who woke whom").is_empty());
    assert_eq!(words("the thread whom it held up"), [(1, "whom")]);
}
