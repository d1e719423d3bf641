//! The house is walked one way: a module uses what stands to its left, and `base` (docs/ARCHITECTURE.md, section 1).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

const ORDER: [&str; 15] = [
    "base",
    "model",
    "input",
    "event",
    "reading",
    "state",
    "analysis",
    "explain",
    "compare",
    "view",
    "session",
    "options",
    "confinement",
    "command",
    "cli",
];

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            into.push(path);
        }
    }
}

/// The rooms that a source text names: `crate::ROOM` anywhere, also behind `use crate::{ROOM::..., ROOM::...}`.
fn rooms(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("crate::") {
        let rest = &text[at + "crate::".len()..];
        if let Some(list) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut word = String::new();
            for c in list.chars() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => found.push(std::mem::take(&mut word)),
                    _ if depth == 0 => word.push(c),
                    _ => {}
                }
            }
            found.push(word);
        } else {
            found.push(rest.to_owned());
        }
    }
    let first_word =
        |s: &String| s.trim().split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("").to_owned();
    found.iter().map(first_word).collect()
}

#[test]
fn nothing_looks_back_to_the_right() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    assert!(files.len() > 20, "only {} sources found", files.len());
    let place = |room: &str| ORDER.iter().position(|r| *r == room);
    let mut wrong = Vec::new();
    for file in files {
        let inside = file.strip_prefix(&src).unwrap();
        let room = inside.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
        let room = room.trim_end_matches(".rs");
        let text = std::fs::read_to_string(&file).unwrap();
        // Unit tests may look at a module through the command line.
        let used = rooms(text.split("#[cfg(test)]").next().unwrap());
        let looks_back = |used: &String| match (room, place(used)) {
            ("record" | "model", _) => used != room && used != "base",
            (_, None) => place(room).is_some() && room != "command" && used == "record",
            (_, Some(there)) => place(room).is_some_and(|here| there > here),
        };
        wrong.extend(
            used.iter().filter(|used| looks_back(used)).map(|used| format!("{} uses {used}", inside.display())),
        );
    }
    assert!(wrong.is_empty(), "arrows that run back: {wrong:#?}");
}

#[test]
fn groups_of_imports_are_understood() {
    assert_eq!(
        rooms("use crate::{model::{A, b::C}, view::tui};\nlet x = crate::base::time::Ns;"),
        ["model", "view", "base"]
    );
}

/// Where bytes are checked to be text that are the program's own: read from the keyboard or the command line, read (not mapped)
/// from symbol files, or a copy already.
const OWN_BYTES: [&str; 8] = [
    "base/text.rs",
    "analysis/symbols/elf.rs",
    "analysis/symbols/kernel.rs",
    "analysis/symbols/perf_map.rs",
    "input/ctf/metadata.rs",
    "input/ctf/tsdl/resolve.rs",
    "view/tui/keyboard/decoder.rs",
    "view/tui/keyboard/sequence.rs",
];

/// Another process may change a mapped file: whoever checks that its bytes are UTF-8 checks a copy, made by `base/text.rs`.
#[test]
fn no_text_is_checked_in_place() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    let mut wrong = Vec::new();
    for file in files {
        let inside = file.strip_prefix(&src).unwrap().to_string_lossy().into_owned();
        // What recorders say comes through pipes; labels come from the command line.
        let is_own = inside.starts_with("record/") || inside.starts_with("command") || OWN_BYTES.contains(&&*inside);
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        let of_arguments = if inside == "input/mod.rs" { 1 } else { 0 };
        if !is_own && code.matches("from_utf8").count() > of_arguments {
            wrong.push(inside);
        }
    }
    assert!(wrong.is_empty(), "these check text in place: {wrong:?}");
}
