//! The words of the glossary (docs/ARCHITECTURE.md, section 3): a word that it replaces appears nowhere in the folders that are
//! done, neither in code nor in comments nor in texts.
//!
//! In: the sources and documents of [`DONE`]. Out: file and line of each word of [`BANNED`]. Words are compared whole and
//! without case; `_` is part of a word, so that identifiers count as they are written.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

/// Files and folders that keep to the glossary. To be extended folder by folder until it is `src` and `docs`.
const DONE: [&str; 13] = [
    "README.md",
    "benches",
    "docs/KEYS.md",
    "docs/PRODUCT.md",
    "src/analysis/mpi",
    "src/analysis/patterns",
    "src/base/notice.rs",
    "src/dump",
    "src/explain",
    "src/model",
    "src/record",
    "src/session",
    "src/view",
];

/// Files of those folders that are not done yet.
const LEFT: [&str; 0] = [];

/// Words and phrases, and the word to use.
const BANNED: [(&str, &str); 26] = [
    ("anybody", "any thread, any user"),
    ("brush", "selection"),
    ("has the CPU", "running"),
    ("had the CPU", "running"),
    ("keep in mind", "caveats"),
    ("laid", "aligned, placed"),
    ("lies", "is"),
    ("lying", "inconsistent, drawn"),
    ("motif", "pattern"),
    ("nobody", "no thread, unknown"),
    ("odd", "a notice; inconsistent"),
    ("oddities", "notices, irregularities"),
    ("oddity", "notice, irregularity"),
    ("somebody", "a thread, a rank"),
    ("standing still", "interrupted"),
    ("stands", "is"),
    ("stood", "was"),
    ("tell", "show, report"),
    ("tells", "shows, reports"),
    ("told", "reported, recorded"),
    ("too much", "excess, delay, extra"),
    ("trust panel", "data quality"),
    ("whoever", "the thread, the rank"),
    ("whom", "the thread, the victim"),
    ("takes another route", "makes different calls"),
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
        found
            .extend(BANNED.iter().filter(|(word, _)| contains(&line, word)).map(|(word, use_)| (number, *word, *use_)));
    }
    found
}

fn files(path: &Path, into: &mut Vec<PathBuf>) {
    if path.is_dir() {
        let mut entries: Vec<PathBuf> = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        entries.iter().for_each(|entry| files(entry, into));
    } else if path.extension().is_some_and(|e| e == "rs" || e == "md") {
        into.push(path.to_owned());
    }
}

#[test]
fn texts_keep_to_the_glossary() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut wrong = Vec::new();
    let mut read = 0;
    for done in DONE {
        let mut all = Vec::new();
        files(&root.join(done), &mut all);
        assert!(!all.is_empty(), "{done} has no sources");
        for file in all {
            let name = file.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            if LEFT.contains(&name.as_str()) {
                continue;
            }
            read += 1;
            let text = std::fs::read_to_string(&file).unwrap();
            wrong.extend(
                banned(&text).into_iter().map(|(line, word, use_)| format!("{name}:{line}: {word:?} (write: {use_})")),
            );
        }
    }
    assert!(read > 100, "only {read} files were read");
    assert!(wrong.is_empty(), "{} words that the glossary replaces:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn files_that_are_left_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for file in LEFT {
        assert!(root.join(file).is_file(), "{file} is gone: take it off the list");
    }
}

#[test]
fn banned_words_are_found_whole_and_in_any_case() {
    let words = |text: &str| banned(text).into_iter().map(|(line, word, _)| (line, word)).collect::<Vec<_>>();
    assert_eq!(words("// Nobody knows.\nlet told = 1;"), [(1, "nobody"), (2, "told")]);
    assert_eq!(words("\"12 ms too much\""), [(1, "too much")]);
    assert_eq!(words("the Trust panel"), [(1, "trust panel")]);
    assert!(words("modulo oddly told_of understood relies molten").is_empty());
    assert!(words("who woke whom").is_empty());
    assert_eq!(words("the thread whom it held up"), [(1, "whom")]);
}
