//! Names of functions that a program compiled at run time, from copies of its `/tmp/perf-PID.map`.
//!
//! Lines are `START SIZE name`, numbers in hexadecimal. A runtime that replaces a function appends a line: the last
//! line that covers an address counts. Read only from the folders given, beside the trace or by `--symbols`.

use super::files::SymbolPaths;
use crate::base::mapped::open_regular;
use crate::base::packed::packed;
use std::io::{self, BufRead, BufReader, ErrorKind};
use std::path::{Path, PathBuf};

/// The most lines of one file that are read: the map of a long-lived process can be huge.
const MOST: usize = 4_000_000;

/// The folder that may hold the maps of a trace: its own, or that of its file.
pub fn folder(trace: &Path) -> &Path {
    let parent = trace.parent().filter(|_| trace.is_file());
    parent.map_or(trace, |parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent })
}

/// The maps beside the file of a trace; none for a folder, which is the trace.
pub fn beside(trace: &Path) -> Vec<PathBuf> {
    if !trace.is_file() {
        return Vec::new();
    }
    let entries = std::fs::read_dir(folder(trace)).into_iter().flatten().flatten();
    let is_map = |name: &str| {
        let pid = name.strip_prefix("perf-").and_then(|rest| rest.strip_suffix(".map"));
        pid.is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit()))
    };
    let maps = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_map));
    let mut maps: Vec<PathBuf> = maps.map(|entry| entry.path()).collect();
    maps.sort();
    maps
}

/// A function at its addresses.
#[derive(Clone, Debug)]
struct CompiledFunction {
    start: u64,
    end: u64,
    name: Box<str>,
}

packed! {
    CompiledFunction { start, end, name }
    PerfMap { functions }
}

/// Functions of one process, sorted by start.
#[derive(Clone, Debug, Default)]
pub struct PerfMap {
    functions: Vec<CompiledFunction>,
}

impl PerfMap {
    /// The map of a process, empty where there is none; and why others could not be read.
    pub fn find(pid: i32, symbol_paths: &SymbolPaths) -> (PerfMap, Vec<String>) {
        let mut unread = Vec::new();
        for folder in symbol_paths.beside.iter().chain(&symbol_paths.folders) {
            let path = folder.join(format!("perf-{pid}.map"));
            match open_regular(&path).and_then(|file| Self::read(BufReader::new(file))) {
                Ok(map) => return (map, unread),
                // A trace may be a file, which is no folder to search in.
                Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
                Err(e) => unread.push(format!("{}: {e}", path.display())),
            }
        }
        (PerfMap::default(), unread)
    }

    fn read(text: impl BufRead) -> io::Result<Self> {
        let mut functions = Vec::new();
        for line in text.split(b'\n').take(MOST) {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            let mut words = line.splitn(3, ' ');
            let mut number = || u64::from_str_radix(words.next()?.trim_start_matches("0x"), 16).ok();
            if let (Some(start), Some(size)) = (number(), number())
                && let Some(name) = words.next()
            {
                let end = start.saturating_add(size);
                functions.push(CompiledFunction { start, end, name: name.trim_end().into() });
            }
        }
        functions.sort_by_key(|function| function.start);
        functions.reverse();
        functions.dedup_by_key(|function| function.start);
        functions.reverse();
        Ok(PerfMap { functions })
    }

    /// What is needed to name the functions at these addresses, which are sorted.
    pub fn only_at(&self, addresses: &[u64]) -> PerfMap {
        let functions = last_before(&self.functions, |function| function.start, addresses);
        PerfMap { functions: functions.cloned().collect() }
    }

    /// True where the functions are in the order that the search relies on.
    pub fn is_sorted(&self) -> bool {
        self.functions.is_sorted_by_key(|function| function.start)
    }

    /// The function at an address.
    pub fn at(&self, address: u64) -> Option<&str> {
        let after = self.functions.partition_point(|function| function.start <= address);
        self.functions[..after].last().filter(|function| address < function.end).map(|function| &*function.name)
    }
}

/// Of sorted items those that are the last at or before one of some sorted addresses.
pub(super) fn last_before<'a, T>(
    items: &'a [T],
    start: impl Fn(&T) -> u64 + 'a,
    addresses: &'a [u64],
) -> impl Iterator<Item = &'a T> {
    let mut chosen = None;
    addresses.iter().filter_map(move |address| {
        let last = items.partition_point(|item| start(item) <= *address).checked_sub(1)?;
        (chosen.replace(last) != Some(last)).then(|| items.get(last)).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_of_a_file_is_where_its_maps_are() {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("perf.data");
        for name in ["perf.data", "perf-12.map", "perf-x.map", "perf-.map", "perf-7.map", "notes-7.map"] {
            std::fs::write(folder.path().join(name), b"").unwrap();
        }
        assert_eq!(super::folder(&trace), folder.path());
        assert_eq!(super::folder(folder.path()), folder.path());
        assert_eq!(beside(&trace), ["perf-12.map", "perf-7.map"].map(|name| folder.path().join(name)));
        assert!(beside(folder.path()).is_empty());
    }

    #[test]
    fn at_gives_the_last_line_for_an_address() {
        let map = PerfMap::read(&b"1000 10 old\n2000 20 LazyCompile:~render app.js:7\nno function\n1000 8 new\n"[..])
            .unwrap();
        assert_eq!(map.at(0x1000), Some("new"));
        assert_eq!(map.at(0x1008), None);
        assert_eq!(map.at(0x201f), Some("LazyCompile:~render app.js:7"));
        assert_eq!(map.at(0xfff), None);
    }
}
