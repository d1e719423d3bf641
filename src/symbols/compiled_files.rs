//! The files in which runtimes describe the code that they compiled, beside a recording or in the user's folders.
//!
//! In: the process that compiled. Out: its code, by address and time ([`compiled`](super::compiled)), from its map of
//! names and its dump. Of each kind the first file that can be read counts: another one is of another recording.

use super::cache::{KnownCode, SymbolCache};
use super::compiled::{CodeBuilder, MOST};
use super::files::SymbolPaths;
use super::{jitdump, perf_map};
use crate::base::time::Timestamp;
use foldhash::HashMap;
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

/// By process the times at which other code took the place of some, sorted.
pub(super) type CodeChanges = HashMap<i32, Vec<Timestamp>>;

/// The code that a process compiled, and why some of it could not be read; looked up once.
pub(super) fn code(pid: i32, symbol_paths: &SymbolPaths, cache: &SymbolCache) -> KnownCode {
    cache.compiled(pid, || find(pid, symbol_paths))
}

/// By process the times at which other code took the place of some.
pub(super) fn changes(pids: &BTreeSet<i32>, symbol_paths: &SymbolPaths, cache: &SymbolCache) -> CodeChanges {
    let changes = |pid: &i32| (*pid, code(*pid, symbol_paths, cache).code.changes().to_vec());
    pids.iter().map(changes).filter(|(_, times)| !times.is_empty()).collect()
}

fn find(pid: i32, symbol_paths: &SymbolPaths) -> KnownCode {
    let (mut code, mut unread) = (CodeBuilder::default(), Vec::new());
    let (mut map, mut dump) = (false, false);
    for folder in symbol_paths.beside.iter().chain(&symbol_paths.folders) {
        let map_path = folder.join(format!("perf-{pid}.map"));
        let dump_path = folder.join(format!("jit-{pid}.dump"));
        let mut note = |done: &mut bool, path: &Path, read: io::Result<()>| match read {
            Ok(()) => *done = true,
            // A trace may be a file, which is no folder to search in.
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(e) => unread.push(format!("{}: {e}", path.display())),
        };
        if !map && perf_map::is_trusted(&map_path) {
            note(&mut map, &map_path, perf_map::read_file(&map_path, &mut code));
        }
        if !dump && perf_map::is_trusted(&dump_path) {
            note(&mut dump, &dump_path, jitdump::read_file(&dump_path, symbol_paths.monotonic, &mut code));
        }
    }
    if code.is_full() {
        unread.push(format!("the names of process {pid}: more than {MOST} functions"));
    }
    KnownCode { code: Arc::new(code.finish()), unread }
}
