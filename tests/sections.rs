//! References to sections of the methods lead to sections: `ALGORITHMS.md 4.6` in code, tests and documents, and `§4.6`
//! on the pages themselves.
//!
//! In: the index `docs/ALGORITHMS.md`, whose table names the page of each section; the pages; all sources, cases and
//! documents. Out: each reference without a section, and each section that is not where the index says, as one line.
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const INDEX: &str = "docs/ALGORITHMS.md";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Paths and texts of all sources, cases of the conformance suite and documents.
fn texts() -> Vec<(String, String)> {
    let folders = ["src", "tests", "benches", "examples", "fuzz", "docs"].map(|folder| root().join(folder));
    let mut open: Vec<PathBuf> = folders.into_iter().filter(|folder| folder.is_dir()).collect();
    open.extend(["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"].map(|name| root().join(name)));
    let mut texts = Vec::new();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            let is_built = path.file_name().is_some_and(|name| name == "target");
            let entries = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
            open.extend(entries.filter(|_| !is_built));
        } else if path.extension().is_some_and(|end| end == "rs" || end == "md" || end == "case") {
            let name = path.strip_prefix(root()).unwrap().display().to_string();
            texts.push((name, std::fs::read_to_string(&path).unwrap()));
        }
    }
    texts.sort();
    assert!(texts.len() > 500, "only {} files were read", texts.len());
    texts
}

/// The number with which a text begins: `4`, `4.6`, without a dot behind it.
fn number(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number = text[..end].trim_end_matches('.');
    (!number.is_empty() && number.split('.').all(|part| !part.is_empty())).then_some(number)
}

/// The numbers of the headings of a page, without those of quoted code.
fn headings(page: &str) -> Vec<&str> {
    let lines = page.split("```").step_by(2).flat_map(str::lines);
    lines.filter(|line| line.starts_with("##")).filter_map(|line| number(line.trim_start_matches('#').trim())).collect()
}

/// The chapter and the section in it, for the order of numbers: 8.9 precedes 8.10.
fn place(number: &str) -> (u32, u32) {
    let (chapter, section) = number.split_once('.').unwrap_or((number, "0"));
    (chapter.parse().unwrap(), section.parse().unwrap())
}

/// The rows of the index: first and last number, and the page that has them.
fn index(text: &str) -> Vec<(&str, &str, String)> {
    let mut rows = Vec::new();
    for line in text.lines().take_while(|line| !line.starts_with("## ")).filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let page = match cells[2].split_once("](../") {
            Some((_, target)) => target.trim_end_matches(')').to_owned(),
            None => INDEX.to_owned(),
        };
        for numbers in cells[0].split(", ").filter(|numbers| number(numbers).is_some()) {
            let (first, last) = numbers.split_once(" to ").unwrap_or((numbers, numbers));
            rows.push((first, last, page.clone()));
        }
    }
    rows
}

/// The numbers of sections that a text refers to by the name of the index: one, or several with `,`, `and` or `to`
/// between them. Comments go on in the next line.
fn named(text: &str) -> Vec<String> {
    let unwrapped =
        |line: &str| line.trim_start().trim_start_matches("//!").trim_start_matches("///").trim().to_owned();
    let text = text.lines().map(unwrapped).collect::<Vec<_>>().join(" ");
    let mut found = Vec::new();
    for (at, name) in text.match_indices("ALGORITHMS.md") {
        let mut rest = text[at + name.len()..].trim_start_matches([' ', ',', '`', ')']);
        rest = ["sections ", "section "].iter().find_map(|word| rest.strip_prefix(word)).unwrap_or(rest);
        while let Some(one) = number(rest) {
            found.push(one.to_owned());
            rest = &rest[one.len()..];
            let joined = [", ", " and ", " to "].iter().find_map(|word| rest.strip_prefix(word));
            rest = joined.unwrap_or_default();
        }
    }
    found
}

/// The numbers behind `§` in the text of a page, but for those of a thesis: in brackets, or behind its number.
fn signed(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, sign) in text.match_indices('§') {
        let before = &text[..at];
        let in_brackets = before.rfind('[') > before.rfind(']');
        let word = before.trim_end().rsplit(char::is_whitespace).next().unwrap_or_default();
        let is_of_thesis = ["vs", "to"].contains(&word) || word.trim_start_matches(['*', '(', '[']).starts_with("00");
        if !in_brackets && !is_of_thesis {
            found.extend(number(&text[at + sign.len()..]));
        }
    }
    found
}

#[test]
fn named_and_signed_find_numbers() {
    let text = "//! Ends (ALGORITHMS.md 5.3). ALGORITHMS.md\n//! sections 3.4, 3.5 and 4.4. ALGORITHMS.md is long.\n";
    assert_eq!(named(text), ["5.3", "3.4", "3.5", "4.4"]);
    assert_eq!(
        signed("as §3.6 says [000 §4.4.1], (§10); 002 §5.2 and *002 §5.3 vs §5.5*: §8.4."),
        ["3.6", "10", "8.4"]
    );
    assert_eq!(headings("# T\n## 2.1 A [OWN]\n```\n## 9.9 x\n```\n### 8.10 B\n## 11. C\n## D"), ["2.1", "8.10", "11"]);
}

#[test]
fn references_to_sections_lead_to_sections() {
    let texts = texts();
    let text = |name: &str| &texts.iter().find(|(path, _)| path == name).unwrap_or_else(|| panic!("no {name}")).1;
    let rows = index(text(INDEX));
    let mut sections: BTreeMap<&str, &str> = BTreeMap::new();
    let mut wrong = Vec::new();
    for page in rows.iter().map(|(_, _, page)| page.as_str()).collect::<BTreeSet<_>>() {
        for heading in headings(text(page)) {
            let is_row = |(first, last, of): &&(&str, &str, String)| {
                of == page && (place(first)..=place(last)).contains(&place(heading))
            };
            // The chapter that is left on the page of the index has its own heading.
            let is_chapter = rows.iter().any(|(first, ..)| first.split_once('.').is_some_and(|(of, _)| of == heading));
            if !is_chapter && rows.iter().find(is_row).is_none() {
                wrong.push(format!("{INDEX}: its table has no {heading} for {page}"));
            }
            if let Some(other) = sections.insert(heading, page) {
                wrong.push(format!("{heading} is in {other} and in {page}"));
            }
        }
    }
    let chapters: BTreeSet<&str> = sections.keys().filter_map(|section| section.split('.').next()).collect();
    let is_section = |number: &str| sections.contains_key(number) || chapters.contains(number);
    wrong.extend(
        rows.iter()
            .flat_map(|(first, last, _)| [first, last])
            .filter(|n| !sections.contains_key(**n))
            .map(|number| format!("{INDEX}: its table names {number}, which is no section")),
    );
    let mut read = 0;
    for (path, text) in texts.iter().filter(|(path, _)| path != "tests/sections.rs") {
        let mut numbers = named(text);
        if sections.values().any(|page| page == path) {
            numbers.extend(signed(text).into_iter().map(str::to_owned));
        }
        read += numbers.len();
        let missing = numbers.iter().filter(|number| !is_section(number));
        wrong.extend(missing.map(|number| format!("{path}: no section {number}")));
    }
    assert!(read > 200, "only {read} references were found");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
