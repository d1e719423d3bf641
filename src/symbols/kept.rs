//! The symbols of a recording in a history file.
//!
//! In: the cache into which the functions of all stacks were resolved, the kernel's symbols, and the addresses of all
//! raw stacks. Out: bytes; and from them a cache that gives the same answers and opens no file. Of the kernel's symbols
//! and of compiled functions those are kept that are the last at or before one of the addresses: for these addresses
//! the search gives what it gives in the whole list. Cost: linear in distinct addresses.

use super::cache::{KnownCode, KnownFile, KnownKernel, KnownSymbols, Lookup, SymbolCache, SymbolFile, locked};
use super::compiled::CompiledCode;
use super::elf::{AddressBase, SymbolsAt};
use super::kernel::KernelSymbols;
use super::proof::MappedExtent;
use super::sections::UnpackedSections;
use crate::base::names::NameId;
use crate::base::notice::{Notice, Notices};
use crate::base::pack::{Pack, Unpack};
use crate::base::packed::{Packed, bytes_of, packed, packed_variants, value_of};
use crate::event::stack::{RawStackId, RawStacks};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// A file and the symbols at its addresses, by address.
#[derive(Debug)]
struct KeptFile {
    file: KnownFile,
    found: SymbolFile,
    unread: Option<String>,
    symbols: Vec<KeptSymbol>,
}

#[derive(Debug)]
struct KeptSymbol {
    address: u64,
    at: SymbolsAt,
}

/// The fixed addresses of an executable, if it has some.
#[derive(Debug)]
struct KeptSpan {
    path: NameId,
    span: Option<Range<u64>>,
}

/// The code that a process compiled.
#[derive(Debug)]
struct KeptCompiled {
    pid: i32,
    code: CompiledCode,
    unread: Vec<String>,
}

#[derive(Debug)]
struct KeptSymbols {
    files: Vec<KeptFile>,
    fixed: Vec<KeptSpan>,
    compiled: Vec<KeptCompiled>,
    kernel: Option<KernelSymbols>,
    kernel_unread: Option<String>,
}

packed! {
    KnownFile { path, build_id, extent, count, local }
    KeptFile { file, found, unread, symbols }
    KeptSymbol { address, at }
    KeptSpan { path, span }
    KeptCompiled { pid, code, unread }
    KeptSymbols { files, fixed, compiled, kernel, kernel_unread }
}

packed_variants! {
    AddressBase { Own, Loaded, Offset, Code }
    MappedExtent { Loaded { bytes, position_independent }, Part { offset, bytes } }
    SymbolsAt { Unknown, JumpTable, Unnamed(start), Functions(functions) }
}

/// Its separate debug file is left out: it is opened when symbols are looked up, which they are.
impl Packed for SymbolFile {
    fn pack(&self, pack: &mut Pack) {
        let (number, path) = match self {
            SymbolFile::File { main, debug: _, proved } => (u64::from(*proved), Some(main)),
            SymbolFile::Mismatch(other) => (2, Some(other)),
            SymbolFile::Missing => (3, None),
            SymbolFile::Unproved(other) => (4, Some(other)),
        };
        pack.number(number);
        pack.text(&path.map(|path| path.display().to_string()).unwrap_or_default());
    }

    fn unpack(unpack: &mut Unpack<'_>) -> Option<Self> {
        let (number, path) = (unpack.index(5)?, PathBuf::from(unpack.text()?));
        Some(match number {
            2 => SymbolFile::Mismatch(path),
            3 => SymbolFile::Missing,
            4 => SymbolFile::Unproved(path),
            bit => SymbolFile::File { main: path, debug: None, proved: bit == 1 },
        })
    }
}

/// The bytes of all symbols of a recording. `kernel` are the kernel's, `about_kernel` the notices about them.
pub fn write(
    cache: &SymbolCache,
    kernel: Option<&KernelSymbols>,
    about_kernel: &Notices,
    stacks: &RawStacks,
) -> Vec<u8> {
    let addresses = sorted_addresses(stacks);
    let mut files: Vec<KeptFile> = locked(&cache.files)
        .iter()
        .map(|(file, known)| {
            let mut symbols: Vec<KeptSymbol> =
                known.symbols.iter().map(|(address, at)| KeptSymbol { address: *address, at: at.clone() }).collect();
            symbols.sort_unstable_by_key(|symbol| symbol.address);
            let (found, unread) = (known.found.clone(), known.unread.clone());
            KeptFile { file: file.clone(), found, unread, symbols }
        })
        .collect();
    files.sort_unstable_by_key(|of| bytes_of(&of.file));
    let mut fixed: Vec<KeptSpan> =
        locked(&cache.fixed).iter().map(|(path, span)| KeptSpan { path: *path, span: span.clone() }).collect();
    fixed.sort_unstable_by_key(|of| of.path);
    let mut compiled: Vec<KeptCompiled> = locked(&cache.compiled)
        .iter()
        .map(|(pid, of)| KeptCompiled { pid: *pid, code: of.code.only_at(&addresses), unread: of.unread.clone() })
        .collect();
    compiled.sort_unstable_by_key(|of| of.pid);
    let unread = about_kernel.iter().find(|(notice, _)| *notice == Notice::SymbolFileMissing);
    bytes_of(&KeptSymbols {
        files,
        fixed,
        compiled,
        kernel: kernel.map(|symbols| symbols.only_at(&addresses)),
        kernel_unread: unread.map(|(_, entry)| entry.first.clone()),
    })
}

/// The addresses at which functions of these stacks are looked up, sorted. All but the innermost are return addresses:
/// one less is inside the calling instruction.
fn sorted_addresses(stacks: &RawStacks) -> Vec<u64> {
    let of = |at| stacks.get(RawStackId::at(at)).iter().flat_map(|address| [address.wrapping_sub(1), *address]);
    let mut addresses: Vec<u64> = (0..stacks.len()).flat_map(of).collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

/// The cache of these bytes; `None` where they are none of ours.
pub fn read(bytes: &[u8]) -> Option<SymbolCache> {
    let KeptSymbols { files, fixed, compiled, kernel, kernel_unread } = value_of(bytes)?;
    let in_order = kernel.as_ref().is_none_or(KernelSymbols::is_sorted);
    (in_order && compiled.iter().all(|of| of.code.is_sorted())).then_some(())?;
    let known = |KeptFile { file, found, unread, symbols }: KeptFile| {
        let symbols = symbols.into_iter().map(|KeptSymbol { address, at }| (address, at)).collect();
        (file, Arc::new(KnownSymbols { found, unread, symbols, unpacked: UnpackedSections::default() }))
    };
    let known_code =
        |KeptCompiled { pid, code, unread }: KeptCompiled| (pid, KnownCode { code: Arc::new(code), unread });
    Some(SymbolCache {
        files: Mutex::new(files.into_iter().map(known).collect()),
        fixed: Mutex::new(fixed.into_iter().map(|KeptSpan { path, span }| (path, span)).collect()),
        compiled: Mutex::new(compiled.into_iter().map(known_code).collect()),
        kernel: Some(KnownKernel { symbols: kernel, unread: kernel_unread }),
        lookup: Lookup::Kept,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_answers_as_what_was_written_and_opens_no_file() {
        let cache = SymbolCache::default();
        let file = KnownFile {
            path: NameId::at(4),
            build_id: Some(vec![1, 2].into()),
            extent: Some(MappedExtent::Part { offset: 1, bytes: 9 }),
            count: AddressBase::Offset,
            local: true,
        };
        let symbols = [
            (7, SymbolsAt::Functions(vec!["outer".into(), "inlined".into()])),
            (3, SymbolsAt::JumpTable),
            (5, SymbolsAt::Unnamed(4)),
            (9, SymbolsAt::Unknown),
        ];
        let found = SymbolFile::File { main: "/usr/bin/server".into(), debug: None, proved: true };
        let (unread, unpacked) = (Some("why".into()), UnpackedSections::default());
        let known = KnownSymbols { found, unread, symbols: symbols.clone().into_iter().collect(), unpacked };
        locked(&cache.files).insert(file.clone(), Arc::new(known));
        cache.fixed(NameId::at(1), || Some(1..2));
        cache.fixed(NameId::at(2), || None);
        let mut notices = Notices::default();
        notices.add(Notice::SymbolFileMissing, 1, || "System.map".into());
        let bytes = write(&cache, None, &notices, &RawStacks::default());
        let again = read(&bytes).unwrap();
        let kept = locked(&again.files).get(&file).cloned().unwrap();
        assert_eq!(kept.symbols, symbols.into_iter().collect());
        assert_eq!(
            (&kept.unread, again.kernel.as_ref().unwrap().unread.as_deref()),
            (&Some("why".into()), Some("System.map"))
        );
        for (path, span) in [(1, Some(1..2)), (2, None), (3, None)] {
            assert_eq!(again.fixed(NameId::at(path), || panic!("a file is looked up")), span);
        }
        for end in 0..bytes.len() {
            assert!(read(&bytes[..end]).is_none());
        }
    }
}
