//! Code that a process compiled while it ran, by address and time.
//!
//! In: functions with their addresses, in the order in which a runtime reported them, from its map of names
//! ([`perf_map`](super::perf_map)) and from its dump of code ([`jitdump`](super::jitdump)). Out: the function at an
//! address at a time. The addresses are cut into pieces that no border of a function crosses. A piece has its
//! functions in order of time: a runtime throws code away and puts other code in its place. A map has no times: there
//! the last line that covers an address counts. Cost: a search in a tree for each function, and one step for each piece
//! that it covers; what is kept is bounded.
//!
//! Code is looked for here first where a mapping has no file of its own ([`is_without_file`]).

use crate::base::packed::packed;
use crate::base::time::Timestamp;
use std::collections::BTreeMap;
use std::ops::Range;

/// The most functions of a process that are kept: those of a long-lived process can be many.
pub(super) const MOST: usize = 4_000_000;

/// The mark that the kernel puts after the path of a file that has no name any more.
const DELETED: &str = " (deleted)";

/// Beginnings of the names of mappings that no file on a disk backs: anonymous memory as perf and the kernel name it,
/// the heap and stacks, memory files and shared memory. `is_anon_memory` and `is_no_dso_memory` of perf's
/// `tools/perf/util/map.h`; `/memfd:` is where .NET puts its code.
const NO_FILE: [&str; 11] = [
    "//anon",
    "[anon",
    "[heap]",
    "[stack",
    "/memfd:",
    "/dev/zero",
    "/anon_hugepage",
    "/SYSV",
    "anon_inode:",
    "/dev/ashmem",
    "/dev/shm/",
];

/// True where code in a mapping is not what a file holds: it has no file, or one that was deleted since.
pub fn is_without_file(path: &str) -> bool {
    path.ends_with(DELETED) || is_memory(path)
}

/// True where a mapping is memory, with a name at most.
pub fn is_memory(path: &str) -> bool {
    NO_FILE.iter().any(|begin| path.starts_with(begin))
}

/// True where a mapping is memory for code that a process made itself. The heap and stacks hold addresses that are no
/// code, where a chain of frames was followed too far; a memory file may be a program, but .NET's is not.
pub fn is_code_memory(path: &str) -> bool {
    let is_other_memory_file = path.starts_with("/memfd:") && !path.starts_with("/memfd:doublemapper");
    is_memory(path) && !is_other_memory_file && !path.starts_with("[heap]") && !path.starts_with("[stack")
}

/// The path that a file had before it was deleted.
pub fn without_mark(path: &str) -> &str {
    path.strip_suffix(DELETED).unwrap_or(path)
}

/// A function that has been at an address since a time.
#[derive(Clone, Debug)]
struct CompiledFunction {
    since: Timestamp,
    name: Box<str>,
}

/// Addresses, and the functions that were there in turn.
#[derive(Clone, Debug)]
struct CompiledPiece {
    start: u64,
    end: u64,
    functions: Vec<CompiledFunction>,
}

packed! {
    CompiledFunction { since, name }
    CompiledPiece { start, end, functions }
    CompiledCode { pieces, changes }
}

/// The compiled code of one process: pieces that do not overlap, sorted by address.
#[derive(Clone, Debug, Default)]
pub struct CompiledCode {
    pieces: Vec<CompiledPiece>,
    /// The times at which other code took the place of some, sorted.
    changes: Vec<Timestamp>,
}

impl CompiledCode {
    /// What is needed to name the functions at these addresses, which are sorted. Code stays known to be described.
    pub fn only_at(&self, addresses: &[u64]) -> CompiledCode {
        let pieces = last_before(&self.pieces, |piece| piece.start, addresses);
        let mut pieces: Vec<CompiledPiece> = pieces.cloned().collect();
        if pieces.is_empty() {
            pieces.extend(self.pieces.first().cloned());
        }
        CompiledCode { pieces, changes: self.changes.clone() }
    }

    /// True where the pieces are in the order that the search relies on.
    pub fn is_sorted(&self) -> bool {
        self.pieces.is_sorted_by_key(|piece| piece.start) && self.changes.is_sorted()
    }

    /// True where nothing is known.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The function at an address at a time; the first one for times before it.
    pub fn at(&self, address: u64, time: Timestamp) -> Option<&str> {
        let after = self.pieces.partition_point(|piece| piece.start <= address);
        let piece = self.pieces.get(after.checked_sub(1)?).filter(|piece| address < piece.end)?;
        let before = piece.functions.partition_point(|function| function.since <= time);
        piece.functions.get(before.saturating_sub(1)).map(|function| &*function.name)
    }

    /// The times at which other code took the place of some, sorted.
    pub fn changes(&self) -> &[Timestamp] {
        &self.changes
    }
}

/// Builds [`CompiledCode`] of functions in the order in which they were reported.
#[derive(Debug, Default)]
pub struct CodeBuilder {
    /// By start: the end, and the functions in order of time.
    pieces: BTreeMap<u64, (u64, Vec<CompiledFunction>)>,
    functions: usize,
}

impl CodeBuilder {
    /// True where no more is taken.
    pub fn is_full(&self) -> bool {
        self.functions >= MOST
    }

    /// Add a function; of two with one time the later counts.
    pub fn add(&mut self, range: Range<u64>, since: Timestamp, name: &str) {
        if range.is_empty() || self.is_full() {
            return;
        }
        self.cut(range.start);
        self.cut(range.end);
        let inside: Vec<(u64, u64)> =
            self.pieces.range(range.clone()).map(|(start, (end, _))| (*start, *end)).collect();
        let mut at = range.start;
        for (start, end) in inside.into_iter().chain([(range.end, range.end)]) {
            if at < start {
                self.pieces.insert(at, (start, Vec::new()));
            }
            at = end;
        }
        for (_, functions) in self.pieces.range_mut(range).map(|(_, piece)| piece) {
            let at = functions.partition_point(|function| function.since <= since);
            let function = CompiledFunction { since, name: name.into() };
            match at.checked_sub(1).and_then(|before| functions.get_mut(before)) {
                Some(same) if same.since == since => *same = function,
                Some(same) if *same.name == *name => {}
                _ => {
                    functions.insert(at, function);
                    self.functions += 1;
                }
            }
        }
    }

    /// The functions, to be searched.
    pub fn finish(self) -> CompiledCode {
        let piece = |(start, (end, functions))| CompiledPiece { start, end, functions };
        let pieces: Vec<CompiledPiece> = self.pieces.into_iter().map(piece).collect();
        let later = pieces.iter().flat_map(|piece| piece.functions.iter().skip(1));
        let mut changes: Vec<Timestamp> = later.map(|function| function.since).collect();
        changes.sort_unstable();
        changes.dedup();
        CompiledCode { pieces, changes }
    }

    /// Make an address a border of pieces.
    fn cut(&mut self, address: u64) {
        let Some((_, (end, functions))) = self.pieces.range_mut(..address).next_back() else { return };
        if address < *end {
            let next = (std::mem::replace(end, address), functions.clone());
            self.functions += next.1.len();
            self.pieces.insert(address, next);
        }
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

    fn code(functions: &[(Range<u64>, i64, &str)]) -> CompiledCode {
        let mut builder = CodeBuilder::default();
        for (range, since, name) in functions {
            builder.add(range.clone(), Timestamp::new(*since), name);
        }
        builder.finish()
    }

    #[test]
    fn at_follows_code_over_time() {
        let code = code(&[(0x100..0x200, 10, "parse"), (0x180..0x280, 30, "render"), (0x100..0x140, 20, "lex")]);
        let at = |address, time| code.at(address, Timestamp::new(time)).unwrap_or("-");
        assert_eq!((at(0x100, 5), at(0x100, 15), at(0x100, 20), at(0x13f, 99)), ("parse", "parse", "lex", "lex"));
        assert_eq!((at(0x150, 99), at(0x180, 29), at(0x180, 30)), ("parse", "parse", "render"));
        assert_eq!((at(0x200, 1), at(0x27f, 99), at(0x280, 99), at(0xff, 99)), ("render", "render", "-", "-"));
        assert_eq!(code.changes(), [20, 30].map(Timestamp::new));
        let kept = code.only_at(&[0x150, 0x190]);
        assert_eq!(kept.at(0x190, Timestamp::new(30)), Some("render"));
        assert_eq!(kept.at(0x110, Timestamp::new(30)), None);
    }

    #[test]
    fn add_replaces_what_has_the_same_time() {
        let code = code(&[(0x100..0x200, 0, "old"), (0x0..0x1000, 0, "all"), (0x150..0x160, 0, "inner")]);
        let at = |address| code.at(address, Timestamp::default()).unwrap_or("-");
        assert_eq!((at(0), at(0x14f), at(0x150), at(0x160), at(0xfff)), ("all", "all", "inner", "all", "all"));
        assert!(code.changes().is_empty());
    }

    #[test]
    fn is_without_file_knows_memory_and_deleted_files() {
        for path in
            ["//anon", "[anon:v8]", "/memfd:doublemapper (deleted)", "[heap]", "/dev/zero", "/opt/app (deleted)"]
        {
            assert!(is_without_file(path), "{path}");
        }
        for path in ["[vdso]", "/usr/bin/node", "/opt/(deleted)/app", "jitted-7-1.so"] {
            assert!(!is_without_file(path), "{path}");
        }
        assert_eq!(without_mark("/opt/app (deleted)"), "/opt/app");
    }
}
