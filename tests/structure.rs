//! Sizes and names: files and functions small enough to be read at once, one name for one type, lines that can be
//! compared.
//!
//! In: all Rust sources and the documents. Out: each offender as one line. [`LEFT`] lists those that are known; it only
//! shrinks.
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const FILE_LINES: usize = 450;
const FUNCTION_LINES: usize = 80;
const COLUMNS: usize = 120;

/// Known offenders: a rule and a file, a function or a type.
const LEFT: &[&str] = &[];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files below some folders that end in `extension`, in order; folders that a package leaves out are none.
fn files(folders: &[&str], extension: &str) -> Vec<PathBuf> {
    let mut open: Vec<PathBuf> = folders.iter().map(|folder| root().join(folder)).filter(|f| f.is_dir()).collect();
    let mut files = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && path.file_name().is_none_or(|name| name != "target") {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

fn sources() -> Vec<PathBuf> {
    files(&["src", "tests", "benches", "fuzz", "examples"], "rs")
}

/// The documents, and the pages of methods beside the code.
fn documents() -> impl Iterator<Item = PathBuf> {
    let top = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"].map(|name| root().join(name));
    files(&["docs", "src"], "md").into_iter().chain(top)
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// Fails where an offender is not in [`LEFT`], and where an entry of it is no offender any more.
fn only_known(rule: &str, offenders: BTreeSet<String>) {
    let prefix = format!("{rule} ");
    let left: BTreeSet<String> = LEFT.iter().filter_map(|l| l.strip_prefix(&prefix)).map(str::to_owned).collect();
    let new: Vec<_> = offenders.difference(&left).collect();
    let mended: Vec<_> = left.difference(&offenders).collect();
    assert!(new.is_empty(), "{rule}: {new:#?}");
    assert!(mended.is_empty(), "{rule}: mended, to be taken out of LEFT: {mended:#?}");
}

#[test]
fn files_have_at_most_450_lines() {
    let long = |path: &PathBuf| text(path).lines().count() > FILE_LINES;
    only_known("file", sources().iter().filter(|path| long(path)).map(|path| shown(path)).collect());
}

/// The functions of a source that rustfmt has formatted: name and number of lines, from `fn` to the closing brace.
fn functions(source: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = source.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let indent = &line[..line.len() - code.len()];
        let Some(name) = function_name(code) else { continue };
        let ends = |l: &&str| l.ends_with('{') || l.ends_with(';') || l.ends_with('}');
        let Some(open) = lines[at..].iter().position(|l| ends(&l.trim_end())) else { continue };
        if !lines[at + open].trim_end().ends_with('{') {
            continue;
        }
        let close = format!("{indent}}}");
        if let Some(length) = lines[at + open..].iter().position(|l| *l == close) {
            found.push((name.to_owned(), open + length + 1));
        }
    }
    found
}

/// The name of the function that a line begins.
fn function_name(code: &str) -> Option<&str> {
    let mut words = code.split_whitespace();
    let is_qualifier = |word: &str| {
        word.starts_with("pub") || ["const", "unsafe", "async", "extern", "\"C\"", "super)", "crate)"].contains(&word)
    };
    let word = words.by_ref().find(|word| !is_qualifier(word))?;
    let name = words.next().filter(|_| word == "fn")?;
    name.split(['(', '<']).next()
}

#[test]
fn functions_finds_names_and_lengths() {
    let source = "pub(crate) fn a(\n    x: u8,\n) {\n    b();\n}\nimpl X {\n    fn c() {\n    }\n    fn d();\n    fn e() {}\n}\n";
    assert_eq!(functions(source), [("a".to_owned(), 5), ("c".to_owned(), 2)]);
}

#[test]
fn functions_have_at_most_80_lines() {
    let mut long = BTreeSet::new();
    for path in sources() {
        let of_file = functions(&text(&path)).into_iter().filter(|(_, lines)| *lines > FUNCTION_LINES);
        long.extend(of_file.map(|(name, _)| format!("{} {name}", shown(&path))));
    }
    only_known("function", long);
}

/// The types that a source declares `pub` or visible in the crate, without those of its tests.
fn types(source: &str) -> Vec<&str> {
    let code = source.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    code.lines().filter_map(type_name).collect()
}

fn type_name(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = rest.strip_prefix("(crate)").unwrap_or(rest).strip_prefix(' ')?;
    let name = ["struct ", "enum ", "trait ", "union ", "type "].iter().find_map(|kind| rest.strip_prefix(kind))?;
    name.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

#[test]
fn types_finds_declarations_outside_tests() {
    let source = "pub struct A<T>(T);\n    pub(crate) enum B {\n}\nstruct C;\npub use x::D;\n#[cfg(test)]\nmod tests {\npub struct E;\n}\n";
    assert_eq!(types(source), ["A", "B"]);
}

#[test]
fn no_two_types_share_a_name() {
    let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in files(&["src"], "rs") {
        for name in types(&text(&path)) {
            places.entry(name.to_owned()).or_default().insert(shown(&path));
        }
    }
    let shared = places.iter().filter(|(_, files)| files.len() > 1);
    for (name, files) in shared.clone() {
        println!("{name}: {files:?}");
    }
    only_known("type", shared.map(|(name, _)| name.clone()).collect());
}

/// Lines that cannot be broken: rows of tables, links and what is quoted as it is.
fn cannot_be_broken(line: &str) -> bool {
    line.starts_with('|') || line.starts_with("    ") || line.contains("](") || line.contains("://")
}

#[test]
fn lines_have_at_most_120_columns() {
    let mut wide = BTreeSet::new();
    let is_wide = |line: &str| line.chars().count() > COLUMNS;
    for path in files(&["src"], "rs") {
        if text(&path).lines().any(is_wide) {
            // By module: the first two parts of the path.
            wide.insert(shown(&path).split('/').take(2).collect::<Vec<_>>().join("/"));
        }
    }
    // Of tests, benchmarks, fuzzers and examples the comments: their expected texts are as wide as they are.
    let is_wide_comment = |line: &str| line.trim_start().starts_with("//") && is_wide(line);
    for path in files(&["tests", "benches", "fuzz", "examples"], "rs") {
        if text(&path).lines().any(is_wide_comment) {
            wide.insert(shown(&path));
        }
    }
    for path in documents() {
        if text(&path).lines().any(|line| is_wide(line) && !cannot_be_broken(line)) {
            wide.insert(shown(&path));
        }
    }
    only_known("columns", wide);
}

/// Relative links and pictures of the documents lead to files, so that they hold in a package too.
#[test]
fn links_lead_to_files() {
    for path in documents() {
        let text = text(&path);
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split(')').next().unwrap().split('#').next().unwrap();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            assert!(path.parent().unwrap().join(target).exists(), "{}: no file {target}", shown(&path));
        }
    }
}

/// The paths in backticks of a text: names of source files and documents, with or without folders. Names in capitals
/// are placeholders.
fn named_files(text: &str) -> Vec<&str> {
    let quoted = text.split('`').skip(1).step_by(2);
    let is_path = |word: &&str| {
        let plain = word.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./".contains(&b));
        plain && !word.contains("...") && [".rs", ".md", ".case", ".tape"].iter().any(|end| word.ends_with(end))
    };
    // A document of another project is not in capitals.
    let is_own = |word: &&str| !word.ends_with(".md") || word.bytes().any(|b| b.is_ascii_uppercase());
    let is_placeholder = |word: &&str| word.contains("NAME");
    quoted.filter(is_path).filter(is_own).filter(|word| !is_placeholder(word)).collect()
}

#[test]
fn named_files_finds_paths_in_backticks() {
    assert_eq!(named_files("`a/b.rs` and c.rs, `x y.rs`, `src/NAME.rs`, `spec.md`, `D.md`"), ["a/b.rs", "D.md"]);
}

/// Files that documents and comments name exist, by the end of their path.
#[test]
fn named_files_exist() {
    let folders = ["src", "tests", "benches", "fuzz", "examples", "docs", "fixtures"];
    let mut known: Vec<String> =
        ["rs", "md", "case", "tape"].iter().flat_map(|end| files(&folders, end)).map(|p| shown(&p)).collect();
    known.extend(["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "demo.tape"].map(str::to_owned));
    // The package leaves it out, with the fuzz targets that it runs.
    known.push("tests/replay.rs".to_owned());
    let exists = |name: &str| known.iter().any(|path| path == name || path.ends_with(&format!("/{name}")));
    let mut missing = BTreeSet::new();
    for path in documents() {
        missing.extend(
            named_files(&text(&path))
                .into_iter()
                .filter(|name| !exists(name))
                .map(|name| format!("{}: {name}", shown(&path))),
        );
    }
    for path in sources() {
        for line in text(&path).lines().map(str::trim_start).filter(|l| l.starts_with("//!") || l.starts_with("///")) {
            let names = named_files(line).into_iter().filter(|name| !exists(name));
            missing.extend(names.map(|name| format!("{}: {name}", shown(&path))));
        }
    }
    only_known("path", missing);
}

/// Cargo looks for no tests by itself (`autotests = false`): a file that is named nowhere would not be run.
#[test]
fn files_of_tests_are_modules_of_one_program_or_programs() {
    let manifest = text(&root().join("Cargo.toml"));
    let all = text(&root().join("tests/all.rs"));
    let mut left_out = Vec::new();
    for entry in std::fs::read_dir(root().join("tests")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let is_module = all.contains(&format!("\nmod {name};\n"));
        let is_program = |source: &Path| manifest.contains(&format!("\npath = \"{}\"\n", shown(source)));
        let sources = [path.clone(), path.join("mod.rs"), path.join("main.rs")].into_iter();
        let sources = sources.filter(|source| source.is_file() && source.extension().is_some_and(|e| e == "rs"));
        left_out.extend(sources.filter(|source| !is_module && !is_program(source)).map(|source| shown(&source)));
    }
    assert!(left_out.is_empty(), "neither `mod` in tests/all.rs nor `[[test]]` in Cargo.toml: {left_out:?}");
}

#[test]
fn tests_run_the_program_through_one_file() {
    // Only `ask.rs` limits the time of the program and closes its standard input.
    let name = concat!("CARGO_BIN", "_EXE_whyslow");
    let named: Vec<String> =
        files(&["tests"], "rs").iter().filter(|path| text(path).contains(name)).map(|path| shown(path)).collect();
    assert_eq!(named, ["tests/support/ask.rs"]);
}
