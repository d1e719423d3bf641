//! Names of functions that a program compiled at run time, from copies of its `/tmp/perf-PID.map`.
//!
//! Lines are `START SIZE name`, numbers in hexadecimal. A runtime that replaces a function appends a line: the last
//! line that covers an address counts. Read only from the folders given, beside the trace or by `--symbols`.

use super::files::SymbolPaths;
use crate::base::mapped::open_regular;
use crate::base::notice::{Notice, Notices};
use std::io::{self, BufRead, BufReader, ErrorKind};

/// The most lines of one file that are read: the map of a long-lived process can be huge.
const MOST: usize = 4_000_000;

/// A function at its addresses.
#[derive(Clone, Debug)]
struct CompiledFunction {
    start: u64,
    end: u64,
    name: Box<str>,
}

/// Functions of one process, sorted by start.
#[derive(Clone, Debug, Default)]
pub struct PerfMap {
    functions: Vec<CompiledFunction>,
}

impl PerfMap {
    /// The map of a process; empty where there is none. One that cannot be read is a notice.
    pub fn find(pid: i32, symbol_paths: &SymbolPaths, notices: &mut Notices) -> Self {
        for folder in symbol_paths.beside.iter().chain(&symbol_paths.folders) {
            let path = folder.join(format!("perf-{pid}.map"));
            match open_regular(&path).and_then(|file| Self::read(BufReader::new(file))) {
                Ok(map) => return map,
                // A trace may be a file, which is no folder to search in.
                Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
                Err(e) => notices.add(Notice::SymbolFileMissing, 1, || format!("{}: {e}", path.display())),
            }
        }
        PerfMap::default()
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

    /// The function at an address.
    pub fn at(&self, address: u64) -> Option<&str> {
        let after = self.functions.partition_point(|function| function.start <= address);
        self.functions[..after].last().filter(|function| address < function.end).map(|function| &*function.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
