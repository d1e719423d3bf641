//! Data flows one way: a module uses modules before it in [`ORDER`] (docs/ARCHITECTURE.md, section 1).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

const ORDER: [&str; 16] = [
    "base",
    "model",
    "input",
    "event",
    "reading",
    "dump",
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

/// Modules that use few others, and which.
const NARROW: [(&str, &[&str]); 3] =
    [("model", &["base"]), ("record", &["base"]), ("view", &["base", "model", "compare"])];

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
fn mapped_text_is_copied_before_it_is_checked() {
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

/// The modules that a source text of `module` (a path such as `tsdl::parse`; empty for `mod.rs`) imports, by their
/// paths below the folder `crate_path`.
fn imported<'m>(text: &str, module: &str, crate_path: &str, modules: &'m [String]) -> Vec<&'m str> {
    let code: String =
        text.split("#[cfg(test)]").next().unwrap().lines().filter(|l| !l.trim().starts_with("//")).collect();
    let mut found = Vec::new();
    let here: Vec<&str> = module.split("::").filter(|s| !s.is_empty()).collect();
    for other in modules.iter().filter(|other| *other != module) {
        let path: Vec<&str> = other.split("::").collect();
        // How this module can name the other: from the crate, from its own folder, through `super`.
        let shared = here.iter().zip(&path).take_while(|(a, b)| a == b).count();
        let up = "super::".repeat(here.len() - shared);
        let relative = format!("{up}{}", path[shared..].join("::"));
        let absolute = format!("{crate_path}::{other}");
        if [relative, absolute].iter().any(|name| !name.is_empty() && names_module(&code, name)) {
            found.push(other.as_str());
        }
    }
    found
}

/// True where the code names the module and something in it: `name::`, not as the end of a longer path.
fn names_module(code: &str, name: &str) -> bool {
    code.match_indices(&format!("{name}::")).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':')
    })
}

#[test]
fn files_of_the_ctf_reader_import_each_other_one_way() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/input/ctf");
    let mut files = Vec::new();
    sources(&folder, &mut files);
    let name = |file: &PathBuf| {
        let inside = file.strip_prefix(&folder).unwrap().with_extension("");
        let path = inside.to_string_lossy().replace('/', "::");
        path.strip_suffix("mod").unwrap_or(&path).trim_end_matches("::").to_owned()
    };
    let modules: Vec<String> = files.iter().map(name).filter(|m| !m.is_empty()).collect();
    let mut left: Vec<(String, Vec<&str>)> = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        let module = name(file);
        let used = imported(&text, &module, "crate::input::ctf", &modules);
        left.push((module, used));
    }
    assert!(left.iter().map(|(_, used)| used.len()).sum::<usize>() > 40, "imports are not found");
    // Take away what imports nothing that is left, until nothing or a circle is left.
    loop {
        let names: Vec<String> = left.iter().map(|(module, _)| module.clone()).collect();
        let before = left.len();
        left.retain(|(_, used)| used.iter().any(|used| names.iter().any(|name| name == used)));
        if left.len() == before {
            break;
        }
    }
    assert!(left.is_empty(), "files that import each other in a circle, or import such files: {left:#?}");
}

#[test]
fn imports_within_a_folder_are_understood() {
    let modules = ["error", "schema", "tsdl", "tsdl::parse"].map(str::to_owned);
    let of = |text: &str, module: &str| imported(text, module, "crate::input::ctf", &modules);
    assert_eq!(of("use super::error::A;\nuse crate::input::ctf::schema::B;", "tsdl"), ["error", "schema"]);
    assert_eq!(of("use super::super::schema::B; use super::parse::C;", "tsdl::types"), ["schema", "tsdl::parse"]);
    assert_eq!(of("mod parse; parse::parse(text)", "tsdl"), ["tsdl::parse"]);
    assert!(of("// error::A\nuse other::schema::B;", "").is_empty());
}
