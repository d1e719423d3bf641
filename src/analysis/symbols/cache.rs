//! Symbols found in files, kept for the next question about the same recording.
//!
//! To open a file with debug information costs more than all else that is done with a stack: sections are unpacked and
//! units parsed. A recording's stacks are resolved for its operations and again for each task that is explained, and
//! the later questions ask of the same addresses. In: a file, as the trace knows it, and addresses. Out: the symbols
//! there. Each file is opened again only for addresses that were not asked for before. A cache belongs to one
//! recording: its keys are that one's names.

use super::FileKey;
use super::elf::{AddressBase, SymbolsAt};
use super::files::SymbolFile;
use super::proof::MappedExtent;
use crate::base::names::NameId;
use foldhash::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A [`FileKey`] that outlives the resolver.
type Key = (NameId, Option<Box<[u8]>>, Option<MappedExtent>, AddressBase);

fn key(file: FileKey<'_>) -> Key {
    (file.path, file.build_id.map(Into::into), file.extent, file.count)
}

/// A file and its symbols.
#[derive(Clone, Debug)]
pub(super) struct KnownSymbols {
    /// The file that was found.
    pub found: SymbolFile,
    /// Why it could not be read.
    pub unread: Option<String>,
    /// By address.
    pub places: HashMap<u64, SymbolsAt>,
}

/// The files looked up so far.
#[derive(Debug, Default)]
pub struct SymbolCache {
    files: Mutex<HashMap<Key, Arc<KnownSymbols>>>,
    fixed: Mutex<HashMap<NameId, Option<(u64, u64)>>>,
}

impl SymbolCache {
    /// A file and its symbols.
    pub(super) fn get(&self, file: FileKey<'_>) -> Option<Arc<KnownSymbols>> {
        locked(&self.files).get(&key(file)).cloned()
    }

    /// Keep what is known of a file.
    pub(super) fn put(&self, file: FileKey<'_>, known: Arc<KnownSymbols>) {
        locked(&self.files).insert(key(file), known);
    }

    /// The fixed address of an executable, if it has one; computed by `find` once.
    pub(super) fn fixed(&self, path: NameId, find: impl FnOnce() -> Option<(u64, u64)>) -> Option<(u64, u64)> {
        *locked(&self.fixed).entry(path).or_insert_with(find)
    }
}

/// The cache stays whole after a panic: entries are added one by one.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
