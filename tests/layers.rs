//! Data flows one way: a module uses modules before it in [`ORDER`] (docs/ARCHITECTURE.md, section 1).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const ORDER: [&str; 22] = [
    "base",
    "model",
    "advice",
    "input",
    "event",
    "reading",
    "dump",
    "timeline",
    "kernel",
    "saved",
    "symbols",
    "analysis",
    "explain",
    "delays",
    "compare",
    "view",
    "tui",
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

/// The modules that a source text names: `crate::MODULE` anywhere, also behind `use crate::{MODULE::..., MODULE::...}`.
fn modules(text: &str) -> Vec<String> {
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

/// Modules that may use only some of those before them.
const NARROW: [(&str, &[&str]); 4] = [
    ("model", &["base"]),
    ("record", &["base", "model", "advice"]),
    ("view", &["base", "model", "advice", "compare"]),
    ("tui", &["base", "model", "advice", "compare", "view"]),
];

/// True if a module may use another. Names that are no module of [`ORDER`] are items of the crate's root.
fn may_use(module: &str, used: &str) -> bool {
    let position = |module: &str| ORDER.iter().position(|m| *m == module);
    if module == used {
        return true;
    }
    if let Some((_, allowed)) = NARROW.iter().find(|(narrow, _)| *narrow == module) {
        return allowed.contains(&used);
    }
    match (position(module), position(used)) {
        (Some(_), None) => used != "record" || module == "command",
        (Some(here), Some(there)) => there < here,
        (None, _) => true,
    }
}

#[test]
fn modules_use_only_modules_before_them() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    assert!(files.len() > 20, "only {} sources found", files.len());
    let mut wrong = Vec::new();
    for file in files {
        let inside = file.strip_prefix(&src).unwrap();
        let module = inside.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
        let module = module.trim_end_matches(".rs");
        let text = std::fs::read_to_string(&file).unwrap();
        // Unit tests may look at a module through the command line.
        let used = modules(text.split("#[cfg(test)]").next().unwrap());
        wrong.extend(
            used.iter().filter(|used| !may_use(module, used)).map(|used| format!("{} uses {used}", inside.display())),
        );
    }
    assert!(wrong.is_empty(), "modules use others that come after them: {wrong:#?}");
}

#[test]
fn groups_of_imports_are_understood() {
    assert_eq!(
        modules("use crate::{model::{A, b::C}, view::tui};\nlet x = crate::base::time::Ns;"),
        ["model", "view", "base"]
    );
}

/// Files that check bytes of the program's own to be text: read from the keyboard or the command line, read (not
/// mapped) from symbol files, made here, or copied already.
const OWN_BYTES: [&str; 11] = [
    "base/text.rs",
    "symbols/elf.rs",
    "symbols/kernel.rs",
    "symbols/machine.rs",
    "symbols/perf_map.rs",
    "cli/pages.rs",
    "input/ctf/metadata.rs",
    "input/ctf/tsdl/attributes.rs",
    "input/translated/unicode_text.rs",
    "tui/keyboard/decoder.rs",
    "tui/keyboard/sequence.rs",
];

/// Another process may change a mapped file: its bytes are checked to be UTF-8 in a copy, made by `base/text.rs`.
#[test]
fn mapped_text_is_copied_before_it_is_checked() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    let mut wrong = Vec::new();
    for file in files {
        let inside = file.strip_prefix(&src).unwrap().to_string_lossy().into_owned();
        // Output of recorders comes through pipes; labels come from the command line.
        let is_own = inside.starts_with("record/") || inside.starts_with("command") || OWN_BYTES.contains(&&*inside);
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        let of_arguments = if inside == "input/argument.rs" { 1 } else { 0 };
        if !is_own && code.matches("from_utf8").count() > of_arguments {
            wrong.push(inside);
        }
    }
    assert!(wrong.is_empty(), "these check text in place: {wrong:?}");
}

/// Two files that use each other, and why.
const PAIRS: [(&str, &str, &str); 6] = [
    ("analysis::ecct", "analysis::ecct::held", "what a path holds is found while the path is walked"),
    ("analysis::executions", "analysis::functions", "a call of a function is an execution, and names its function"),
    ("analysis::iterations", "analysis::stack_tables", "waits are found by stacks, and kept with the stacks"),
    ("event::mpi::location", "event::mpi::task_graph", "tasks are followed while the events of a location are read"),
    ("kernel::prepared", "kernel::worker_rows", "a part of a thread, and the rows that it took along"),
    ("view::anomalies::paths", "view::anomalies::text", "the list and the paths in it"),
];

/// The paths of a `use` tree: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn paths(tree: &str) -> Vec<String> {
    let Some((before, list)) = tree.trim().split_once('{') else { return vec![tree.trim().to_owned()] };
    let list = list.trim_end().strip_suffix('}').unwrap();
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for (at, c) in list.char_indices().chain([(list.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                found.extend(paths(&list[start..at]).iter().map(|path| format!("{before}{path}")));
                start = at + 1;
            }
            _ => {}
        }
    }
    found
}

/// A file's text without its tests, and the `use` statements in it: true for those that export what they name.
fn statements(text: &str) -> impl Iterator<Item = (bool, &str)> {
    let code = text.split("#[cfg(test)]").next().unwrap();
    code.match_indices("use ").filter_map(|(at, word)| {
        let before = code[..at].rsplit('\n').next().unwrap().trim();
        let tree = code[at + word.len()..].split(';').next()?;
        let is_tree = tree.chars().all(|c| c.is_alphanumeric() || c.is_whitespace() || "_:{},*".contains(c));
        let is_statement = is_tree && (before.is_empty() || before.starts_with("pub"));
        is_statement.then_some((!before.is_empty(), tree))
    })
}

/// A path from the crate's root, for a path in the module `me`.
fn absolute(me: &str, path: &str) -> Vec<String> {
    let mut base = me.split("::").collect::<Vec<_>>();
    let mut rest = path;
    if let Some(from_root) = rest.strip_prefix("crate::") {
        base.clear();
        rest = from_root;
    }
    while let Some(above) = rest.strip_prefix("super::") {
        base.pop();
        rest = above;
    }
    base.extend(rest.split("::"));
    base.into_iter().map(str::to_owned).collect()
}

/// By module and name: the path of what it exports of others.
type Exports = BTreeMap<(String, String), Vec<String>>;

fn exports(modules: &BTreeMap<String, String>) -> Exports {
    let mut all = Exports::new();
    for (me, text) in modules {
        for (_, tree) in statements(text).filter(|(exported, _)| *exported) {
            for path in paths(tree) {
                let path = absolute(me, &path);
                all.insert((me.clone(), path.last().unwrap().clone()), path);
            }
        }
    }
    all
}

/// The module that has what a path names: not one that only exports it.
fn defined(path: &[String], modules: &BTreeMap<String, String>, exports: &Exports) -> Option<String> {
    let n = (1..=path.len()).rev().find(|n| modules.contains_key(&path[..*n].join("::")))?;
    let module = path[..n].join("::");
    match path.get(n).and_then(|name| exports.get(&(module.clone(), name.clone()))) {
        Some(origin) if origin != path => defined(origin, modules, exports),
        _ => Some(module),
    }
}

/// The files that a file uses, by the path of its module `me`: not those that it only exports.
fn used_files(me: &str, text: &str, modules: &BTreeMap<String, String>, exports: &Exports) -> Vec<String> {
    let trees = statements(text).filter(|(exported, _)| !exported).map(|(_, tree)| tree);
    let used = trees.flat_map(paths).filter_map(|path| defined(&absolute(me, &path), modules, exports));
    used.filter(|used| used != me).collect()
}

#[test]
fn files_do_not_use_each_other_in_circles() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    let module = |file: &PathBuf| {
        let name = file.strip_prefix(&src).unwrap().to_string_lossy().replace('/', "::");
        name.trim_end_matches(".rs").trim_end_matches("::mod").to_owned()
    };
    let modules: BTreeMap<String, String> =
        files.iter().map(|file| (module(file), std::fs::read_to_string(file).unwrap())).collect();
    let exports = exports(&modules);
    let is_pair = |one: &String, other: &String| {
        PAIRS.iter().any(|(a, b, _)| (one == a && other == b) || (one == b && other == a))
    };
    let mut count = 0;
    for room in ORDER {
        let inside = |module: &String| module == room || module.starts_with(&format!("{room}::"));
        let mut uses: BTreeMap<&String, Vec<String>> = modules
            .iter()
            .filter(|(me, _)| inside(me))
            .map(|(me, text)| {
                let used = used_files(me, text, &modules, &exports);
                (me, used.into_iter().filter(|used| inside(used) && !is_pair(me, used)).collect())
            })
            .collect();
        count += uses.values().flatten().count();
        // A file that uses no other is taken off, again and again; those of a circle stay.
        while let Some(last) = uses.iter().find(|(_, used)| used.iter().all(|u| !uses.contains_key(u))) {
            let last = (*last.0).clone();
            uses.remove(&last);
        }
        assert!(uses.is_empty(), "files of {room} in circles: {:#?}", uses);
    }
    assert!(count > 1_000, "only {count} imports found");
}

#[test]
fn used_files_resolves_paths_from_the_root_and_from_above() {
    let exporting = "mod d;\npub use d::{Y, Z};\n".to_owned();
    let mut modules: BTreeMap<String, String> =
        ["a::b", "a::b::c", "a::d"].map(|module| (module.to_owned(), String::new())).into();
    modules.insert("a".to_owned(), exporting);
    let text = "use crate::a::{d::X, b::{self, c::Y}};\nuse super::d;\nuse super::super::d::Z;\nuse crate::a::Y;\n\
                pub use super::d::W;\nuse std::io;\n";
    assert_eq!(used_files("a::b::c", text, &modules, &exports(&modules)), ["a::d", "a::b", "a::b", "a::d", "a::d"]);
}
