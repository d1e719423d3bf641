//! Symbols found in files, kept for the next query about the same recording.
//!
//! Opening a file with debug information costs more than everything else in the resolution of a stack: sections are
//! unpacked and units parsed. A recording's stacks are resolved for its operations and again for each task that is
//! explained, mostly at the same addresses. In: a file, as recorded, and addresses. Out: the symbols there. A file is
//! opened again only for new addresses, and its sections stay unpacked until `KEPT` bytes are. A cache belongs to one
//! recording: its keys are names of that recording. [`kept`](super::kept) writes a cache into a history file; one that
//! was read from there knows all that can be known.

use super::compiled::CompiledCode;
use super::elf::{AddressBase, SymbolsAt};
use super::kernel::KernelSymbols;
use super::proof::MappedExtent;
use super::sections::UnpackedSections;
use crate::base::names::NameId;
use foldhash::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A file as recorded, and the origin of its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileKey<'a> {
    pub path: NameId,
    pub build_id: Option<&'a [u8]>,
    /// Its size where it has no build id.
    pub extent: Option<MappedExtent>,
    pub count: AddressBase,
    /// It was recorded on this machine.
    pub local: bool,
}

/// A [`FileKey`] that outlives the resolver.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct KnownFile {
    pub path: NameId,
    pub build_id: Option<Box<[u8]>>,
    pub extent: Option<MappedExtent>,
    pub count: AddressBase,
    pub local: bool,
}

fn key(file: FileKey<'_>) -> KnownFile {
    let FileKey { path, build_id, extent, count, local } = file;
    KnownFile { path, build_id: build_id.map(Into::into), extent, count, local }
}

/// Bytes of unpacked sections that a cache keeps.
const KEPT: usize = 64 << 20;

/// The result of the search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SymbolFile {
    /// The file, with its separate debug file where it has one.
    File {
        /// The file itself, or its debug file where only that was found.
        main: PathBuf,
        /// Its separate debug file.
        debug: Option<PathBuf>,
        /// It is known to be the one that was traced.
        proved: bool,
    },
    /// In the user's folders there is a file of that name with another build id, or with another size where none was
    /// recorded.
    Mismatch(PathBuf),
    /// At the recorded path there is a file of which nothing proves that it is the one that was traced.
    Unproved(PathBuf),
    /// No file was found.
    Missing,
}

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

/// The code that a process compiled, and why some of it could not be read.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownCode {
    pub code: Arc<CompiledCode>,
    pub unread: Vec<String>,
}

/// The kernel's symbols, as far as they are known, or why they could not be read.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownKernel {
    pub symbols: Option<KernelSymbols>,
    pub unread: Option<String>,
}

/// Whether files may be opened for what is not known yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Lookup {
    /// Files may be opened.
    #[default]
    Files,
    /// What is not known cannot be known: the symbols are those of a history file.
    Kept,
}

/// The files looked up so far.
#[derive(Debug, Default)]
pub struct SymbolCache {
    pub(super) files: Mutex<HashMap<KnownFile, Arc<KnownSymbols>>>,
    /// By executable.
    pub(super) fixed: Mutex<HashMap<NameId, Option<Range<u64>>>>,
    /// By process.
    pub(super) compiled: Mutex<HashMap<i32, KnownCode>>,
    /// Of a history file.
    pub(super) kernel: Option<KnownKernel>,
    pub(super) lookup: Lookup,
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
        let mut all = locked(&self.fixed);
        match self.lookup {
            Lookup::Files => all.entry(path).or_insert_with(find).clone(),
            Lookup::Kept => all.get(&path).cloned().flatten(),
        }
    }

    /// The code that a process compiled; found by `find` once.
    pub(super) fn compiled(&self, pid: i32, find: impl FnOnce() -> KnownCode) -> KnownCode {
        let mut all = locked(&self.compiled);
        match self.lookup {
            Lookup::Files => all.entry(pid).or_insert_with(find).clone(),
            Lookup::Kept => all.get(&pid).cloned().unwrap_or_default(),
        }
    }
}

/// The cache stays whole after a panic: entries are added one by one.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
