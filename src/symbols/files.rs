//! The files that may hold symbols: folders, lists of the kernel's symbols, and what recordings brought with them.
//!
//! In: what the user named, and what was found beside and inside the recordings. Out: [`SymbolPaths`], by which the
//! other files of this folder look for what they need.

use super::cache::SymbolCache;
use super::kernel::KernelSymbols;
use crate::base::notice::{Notice, Notices};
use crate::base::time::Ns;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The folders to search for symbols.
#[derive(Clone, Debug, Default)]
pub struct SymbolPaths {
    /// Folders that hold traced files, which come before the recorded paths.
    pub folders: Vec<PathBuf>,
    /// The recorded paths are not looked at.
    pub only: bool,
    /// Kernel symbol lists; where empty kernel frames are left out.
    pub kernel: Vec<PathBuf>,
    /// Kernel symbols inside recordings; used where `kernel` names none.
    pub recorded: Vec<Arc<[u8]>>,
    /// Symbols of kernel code that was made while recording; used beside the others.
    pub code: Vec<Arc<str>>,
    /// Folders that may hold what runtimes wrote about their code (the traces' own); `folders` are searched as well.
    pub beside: Vec<PathBuf>,
    /// What the common time line adds to the monotonic clock of the recorded machine, where it is known.
    pub monotonic: Option<Ns>,
    /// By number the traces of this machine since it started, with what is added to their times to give wall-clock
    /// time. Files at the recorded paths can be those that they recorded.
    pub local: BTreeMap<u32, Ns>,
    /// Recordings whose answers lack most where kernel functions have no names: perf's, whose stacks go on into the
    /// kernel, and which hold no symbols of it.
    pub wants_kernel: bool,
    /// What is found is kept here; of a history file what was found when it was written, which is all.
    pub known: Option<Arc<SymbolCache>>,
}

/// Read the kernel's symbols; a file that cannot be read, or has none, gives a notice.
pub fn kernel_symbols(symbol_paths: &SymbolPaths, notices: &mut Notices) -> Option<KernelSymbols> {
    if let Some(kept) = symbol_paths.known.as_ref().and_then(|known| known.kernel.as_ref()) {
        kept.unread.iter().for_each(|why| notices.add(Notice::SymbolFileMissing, 1, || why.clone()));
        return kept.symbols.clone();
    }
    if symbol_paths.kernel.is_empty() && symbol_paths.recorded.is_empty() {
        return None;
    }
    let recorded = if symbol_paths.kernel.is_empty() { symbol_paths.recorded.as_slice() } else { &[] };
    let shown = |paths: &[PathBuf]| paths.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", ");
    match KernelSymbols::of(symbol_paths.kernel.iter().map(PathBuf::as_path), recorded) {
        Ok(mut symbols) if !symbols.is_empty() => {
            symbols.add(symbol_paths.code.iter().map(|text| &**text));
            Some(symbols)
        }
        Ok(_) | Err(_) => {
            notices.add(Notice::SymbolFileMissing, 1, || shown(&symbol_paths.kernel));
            None
        }
    }
}
