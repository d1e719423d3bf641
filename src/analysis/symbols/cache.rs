//! Symbols found in files, kept for the next query about the same recording.
//!
//! Opening a file with debug information costs more than everything else in the resolution of a stack: sections are
//! unpacked and units parsed. A recording's stacks are resolved for its operations and again for each task that is
//! explained, mostly at the same addresses. In: a file, as recorded, and addresses. Out: the symbols there. A file is
//! opened again only for new addresses, and its sections stay unpacked until [`KEPT`] bytes are. A cache belongs to one
//! recording: its keys are names of that recording.

use super::FileKey;
use super::elf::{AddressBase, SymbolsAt};
use super::files::SymbolFile;
use super::proof::MappedExtent;
use super::sections::UnpackedSections;
use crate::base::names::NameId;
use foldhash::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A [`FileKey`] that outlives the resolver.
type Key = (NameId, Option<Box<[u8]>>, Option<MappedExtent>, AddressBase);

fn key(file: FileKey<'_>) -> Key {
    (file.path, file.build_id.map(Into::into), file.extent, file.count)
}

/// Bytes of unpacked sections that a cache keeps.
const KEPT: usize = 64 << 20;

/// A file and its symbols.
#[derive(Clone, Debug)]
pub(super) struct KnownSymbols {
    /// The file that was found.
    pub found: SymbolFile,
    /// Why it could not be read.
    pub unread: Option<String>,
    /// By address.
    pub symbols: HashMap<u64, SymbolsAt>,
    /// Its sections that were compressed.
    pub unpacked: UnpackedSections,
}

/// The files looked up so far.
#[derive(Debug, Default)]
pub struct SymbolCache {
    files: Mutex<HashMap<Key, Arc<KnownSymbols>>>,
    fixed: Mutex<HashMap<NameId, Option<Range<u64>>>>,
}

impl SymbolCache {
    /// A file and its symbols.
    pub(super) fn get(&self, file: FileKey<'_>) -> Option<Arc<KnownSymbols>> {
        locked(&self.files).get(&key(file)).cloned()
    }

    /// Keep the symbols of a file, and its unpacked sections where there is room for them.
    pub(super) fn put(&self, file: FileKey<'_>, mut known: Arc<KnownSymbols>) {
        let (mut files, key) = (locked(&self.files), key(file));
        files.remove(&key);
        let kept: usize = files.values().map(|known| known.unpacked.bytes()).sum();
        if kept.saturating_add(known.unpacked.bytes()) > KEPT {
            Arc::make_mut(&mut known).unpacked = UnpackedSections::default();
        }
        files.insert(key, known);
    }

    /// The fixed addresses of an executable, if it has some; computed by `find` once.
    pub(super) fn fixed(&self, path: NameId, find: impl FnOnce() -> Option<Range<u64>>) -> Option<Range<u64>> {
        locked(&self.fixed).entry(path).or_insert_with(find).clone()
    }
}

/// The cache stays whole after a panic: entries are added one by one.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
