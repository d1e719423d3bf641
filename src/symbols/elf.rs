//! Function names for addresses in one ELF file: inlined functions, symbols, starts of unnamed functions.
//!
//! In: the file (and its separate debug file) and addresses as the file counts them. Out, per address: the functions
//! there, outermost first. DWARF gives inlined functions; the symbol tables give the rest, but only within the
//! symbol's size: beyond it, the nearest name before an address is usually wrong. Where no symbol covers the address,
//! the unwind table still gives the begin of the function. Opening a file costs its symbol tables and what
//! [`super::dwarf`] reads; each address one search. Everything is read through bounds-checked readers; a section that
//! claims to unpack into far more than it holds is not unpacked.

use super::checked_file::{Cache, CheckedFile};
use super::dwarf::functions_at;
use super::sections::{Sections, UnpackedSections};
use crate::base::demangle::demangle;
use gimli::{BaseAddresses, RunTimeEndian, UnwindSection};
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SectionFlags, SectionKind, SegmentFlags, SymbolKind};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

/// The symbols before the nearest one that are examined for a longer one around the address.
const AROUND: usize = 16;

/// The properties that distinguish builds of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileIdentity {
    pub build_id: Option<Box<[u8]>>,
    /// Its separate debug file.
    pub debug_link: Option<DebugLink<String>>,
    /// It has a full symbol table, so that no debug file is needed.
    pub has_names: bool,
    /// Bytes in memory from the first that is loaded to the last.
    pub loaded: Option<u64>,
    /// It can be loaded at any address.
    pub position_independent: bool,
    /// The parts of the file that are loaded.
    pub segments: Vec<LoadSegment>,
}

impl FileIdentity {
    /// The link to its separate debug file.
    pub fn debug_link(&self) -> Option<DebugLink<&str>> {
        self.debug_link.as_ref().map(|link| DebugLink { name: link.name.as_str(), crc: link.crc })
    }
}

/// A link to a separate debug file (`.gnu_debuglink`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DebugLink<N> {
    /// The file's name.
    pub name: N,
    pub crc: u32,
}

/// The identity of a file; `None` if it is no readable ELF file.
pub fn identity(path: &Path) -> Option<FileIdentity> {
    let cache = Cache::new(CheckedFile::open(path).ok()?);
    let elf = object::File::parse(&cache).ok()?;
    let debug_link = elf.gnu_debuglink().ok().flatten();
    let first = elf.segments().map(|s| s.address()).min();
    let last = elf.segments().map(|s| s.address().saturating_add(s.size())).max();
    Some(FileIdentity {
        build_id: elf.build_id().ok().flatten().map(Into::into),
        debug_link: debug_link.map(|(name, crc)| DebugLink { name: String::from_utf8_lossy(name).into_owned(), crc }),
        has_names: elf.symbol_table().is_some(),
        loaded: first.zip(last).and_then(|(first, last)| last.checked_sub(first)),
        position_independent: elf.kind() == object::ObjectKind::Dynamic,
        segments: elf.segments().map(segment).collect(),
    })
}

/// The addresses of an executable that is not position independent; `None` for others.
pub fn fixed_span(path: &Path) -> Option<Range<u64>> {
    let cache = Cache::new(CheckedFile::open(path).ok()?);
    let elf = object::File::parse(&cache).ok()?;
    if elf.kind() != object::ObjectKind::Executable {
        return None;
    }
    let ends = elf.segments().map(|s| s.address().saturating_add(s.size()));
    Some(elf.segments().map(|s| s.address()).min()?..ends.max()?)
}

/// A part of a file that is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadSegment {
    /// Its offset in the file.
    pub offset: u64,
    /// Bytes in the file.
    pub size: u64,
    /// The file's own address of its first byte.
    pub address: u64,
}

pub(super) fn segment<'a>(segment: impl ObjectSegment<'a>) -> LoadSegment {
    let (offset, size) = segment.file_range();
    LoadSegment { offset, size, address: segment.address() }
}

/// The file's own address of an offset in it.
pub fn own_address(segments: &[LoadSegment], offset: u64) -> u64 {
    let holds = |s: &&LoadSegment| (s.offset..s.offset.saturating_add(s.size)).contains(&offset);
    segments.iter().find(holds).map_or(offset, |s| s.address.wrapping_add(offset - s.offset))
}

/// The symbols at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SymbolsAt {
    /// Functions, outermost first: the one in the symbol table, then those inlined into it.
    Functions(Vec<String>),
    /// A linker's jump table: no function of its own.
    JumpTable,
    /// A function without a name that begins at the given address.
    Unnamed(u64),
    /// Nothing is known.
    Unknown,
}

/// The origin from which addresses are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressBase {
    /// As the file counts them.
    Own,
    /// From the first loaded byte.
    Loaded,
    /// From the first byte of the file.
    Offset,
    /// From the first page that holds code.
    Code,
}

/// The first page of the part of a file that the loader maps as executable; without program headers, of its code.
fn code<'d>(elf: &object::File<'d, &'d Cache>) -> Option<u64> {
    const PAGE: u64 = 4096;
    let runs = |flags| matches!(flags, SegmentFlags::Elf { p_flags } if p_flags & object::elf::PF_X != 0);
    let mapped = elf.segments().filter(|s| runs(s.flags())).map(|s| s.address()).min();
    let text = || elf.sections().filter(|s| s.kind() == SectionKind::Text).map(|s| s.address()).min();
    mapped.or_else(text).map(|address| address & !(PAGE - 1))
}

/// The functions that the symbol tables of a file define, by the names that they have there.
pub fn function_names(path: &Path) -> io::Result<Vec<String>> {
    let cache = Cache::new(CheckedFile::open(path)?);
    let elf = object::File::parse(&cache).map_err(io::Error::other)?;
    let symbols = elf.symbols().chain(elf.dynamic_symbols());
    let functions = symbols.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition());
    let mut names: Vec<String> = functions.filter_map(|symbol| symbol.name().ok().map(str::to_owned)).collect();
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// The symbols at each of `addresses`; the error is that of opening or reading a file.
#[cfg(not(program))]
pub fn symbols_at(
    main: &Path,
    debug: Option<&Path>,
    count: AddressBase,
    addresses: &[u64],
) -> io::Result<Vec<SymbolsAt>> {
    symbols_with(main, debug, count, addresses, &mut UnpackedSections::default())
}

/// The symbols at addresses of a file. `unpacked` are the sections that earlier questions about it have unpacked, and
/// those of this one are added.
pub(super) fn symbols_with(
    main: &Path,
    debug: Option<&Path>,
    count: AddressBase,
    addresses: &[u64],
    unpacked: &mut UnpackedSections,
) -> io::Result<Vec<SymbolsAt>> {
    let main = CheckedFile::open(main)?;
    let debug = debug.map(CheckedFile::open).transpose()?;
    let all = [Some(Rc::clone(&main.failed)), debug.as_ref().map(|d| Rc::clone(&d.failed))];
    let found = found(Cache::new(main), debug.map(Cache::new), count, addresses, unpacked);
    if all.into_iter().flatten().any(|failed| failed.get()) {
        Err(io::Error::other("it could not be read to its end"))
    } else {
        Ok(found)
    }
}

fn found(
    main: Cache,
    debug: Option<Cache>,
    count: AddressBase,
    addresses: &[u64],
    unpacked: &mut UnpackedSections,
) -> Vec<SymbolsAt> {
    let Ok(elf) = object::File::parse(&main) else { return vec![SymbolsAt::Unknown; addresses.len()] };
    let debug_elf = debug.as_ref().and_then(|cache| object::File::parse(cache).ok());
    let first = match count {
        AddressBase::Loaded => elf.segments().map(|s| s.address()).min().unwrap_or(0),
        AddressBase::Code => code(&elf).unwrap_or(0),
        AddressBase::Own | AddressBase::Offset => 0,
    };
    let segments: Vec<LoadSegment> = elf.segments().map(segment).collect();
    let shift_of = |address: u64| match count {
        AddressBase::Own | AddressBase::Loaded | AddressBase::Code => first,
        AddressBase::Offset => own_address(&segments, address).wrapping_sub(address),
    };
    let symbols = Symbols::of([Some(&elf), debug_elf.as_ref()]);
    let named = debug_elf.as_ref().unwrap_or(&elf);
    let sections = Sections::of(named, unpacked);
    let is_named = |address: &u64| symbols.in_code(*address) && !symbols.in_jump_table(*address);
    let own = addresses.iter().map(|address| address.wrapping_add(shift_of(*address))).filter(is_named);
    let own: Vec<u64> = own.collect();
    let by_dwarf: BTreeMap<u64, Vec<String>> = match sections.dwarf() {
        Some(dwarf) => own.iter().copied().zip(functions_at(&dwarf, &own)).collect(),
        None => BTreeMap::new(),
    };
    let mut starts = None;
    let place = |address: &u64| {
        let shift = shift_of(*address);
        let address = address.wrapping_add(shift);
        if !symbols.in_code(address) {
            return SymbolsAt::Unknown;
        }
        if symbols.in_jump_table(address) {
            return SymbolsAt::JumpTable;
        }
        let mut names = by_dwarf.get(&address).cloned().unwrap_or_default();
        if let Some(name) = symbols.at(address).map(demangle) {
            // DWARF may have only the function's bare name, without its module or class.
            match names.first_mut() {
                Some(outermost) => *outermost = name,
                None => names.push(name),
            }
        }
        if !names.is_empty() {
            return SymbolsAt::Functions(names);
        }
        let starts = starts.get_or_insert_with(|| function_starts(&elf));
        match starts.range(..=address).next_back() {
            Some((start, end)) if address < *end => SymbolsAt::Unnamed(start.wrapping_sub(shift)),
            _ => SymbolsAt::Unknown,
        }
    };
    addresses.iter().map(place).collect()
}

struct Symbol<'a> {
    address: u64,
    end: u64,
    name: &'a str,
}

/// Function symbols sorted by address, one per address.
struct Symbols<'a> {
    symbols: Vec<Symbol<'a>>,
    code: Vec<Range<u64>>,
    jump_tables: Vec<Range<u64>>,
}

impl<'a> Symbols<'a> {
    fn of(files: [Option<&'a object::File<'a, &'a Cache>>; 2]) -> Self {
        let mut symbols = Vec::new();
        let mut jump_tables = Vec::new();
        let mut all_code = Vec::new();
        for elf in files.into_iter().flatten() {
            let code = elf.sections().filter(is_code);
            let code: Vec<_> = code.map(|s| (s.index(), s.address(), s.address().saturating_add(s.size()))).collect();
            all_code.extend(code.iter().map(|(_, from, to)| *from..*to));
            let is_jump_table = |name: &str| name == ".plt" || name.starts_with(".plt.");
            let tables = elf.sections().filter(|s| s.name().is_ok_and(is_jump_table));
            jump_tables.extend(tables.map(|s| s.address()..s.address().saturating_add(s.size())));
            for symbol in elf.symbols().chain(elf.dynamic_symbols()) {
                let Some(section) = symbol.section_index() else { continue };
                let Some((.., end)) = code.iter().find(|(index, ..)| *index == section) else { continue };
                let function = matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Unknown);
                let Some(name) = symbol.name().ok().filter(|n| function && !n.is_empty()) else { continue };
                // Assembler code has no sizes: such a symbol extends to the next one in its section.
                let sized = symbol.address().saturating_add(symbol.size());
                let end = if symbol.size() == 0 { *end } else { sized };
                symbols.push((symbol.address(), symbol.size() == 0, rank(&symbol, name), name, end));
            }
        }
        symbols.sort_unstable();
        symbols.dedup_by_key(|s| s.0);
        let next: Vec<u64> = symbols.iter().skip(1).map(|s| s.0).chain([u64::MAX]).collect();
        let symbol = |((address, unsized_, _, name, end), next): ((u64, bool, _, &'a str, u64), u64)| {
            let end = if unsized_ { end.min(next) } else { end };
            Symbol { address, end, name }
        };
        Symbols { symbols: symbols.into_iter().zip(next).map(symbol).collect(), code: all_code, jump_tables }
    }

    fn at(&self, address: u64) -> Option<&'a str> {
        let after = self.symbols.partition_point(|s| s.address <= address);
        self.symbols[..after].iter().rev().take(AROUND).find(|s| address < s.end).map(|s| s.name)
    }

    fn in_code(&self, address: u64) -> bool {
        self.code.iter().any(|section| section.contains(&address))
    }

    fn in_jump_table(&self, address: u64) -> bool {
        self.jump_tables.iter().any(|table| table.contains(&address))
    }
}

/// True by the section's flag, because a separate debug file has the program's sections in name only.
fn is_code<'a>(section: &impl ObjectSection<'a>) -> bool {
    let executable = u64::from(object::elf::SHF_EXECINSTR);
    matches!(section.flags(), SectionFlags::Elf { sh_flags } if sh_flags & executable != 0)
}

/// Of several names for one address: global before weak before local, without underscores, short, then by letters.
fn rank<'a>(symbol: &impl ObjectSymbol<'a>, name: &str) -> (bool, bool, usize, usize) {
    let underscores = name.bytes().take_while(|b| *b == b'_').count();
    (symbol.is_local(), symbol.is_weak(), underscores, name.len())
}

/// Begin and end of all functions in the unwind table.
fn function_starts<'a>(elf: &object::File<'a, &'a Cache>) -> BTreeMap<u64, u64> {
    let mut starts = BTreeMap::new();
    let Some(section) = elf.section_by_name(".eh_frame") else { return starts };
    let Ok(data) = section.data() else { return starts };
    let endian = if elf.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let mut table = gimli::EhFrame::new(data, endian);
    table.set_address_size(if elf.is_64() { 8 } else { 4 });
    let text = elf.section_by_name(".text").map_or(0, |s| s.address());
    let bases = BaseAddresses::default().set_eh_frame(section.address()).set_text(text);
    let mut entries = table.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        if let gimli::CieOrFde::Fde(partial) = entry
            && let Ok(fde) = partial.parse(gimli::EhFrame::cie_from_offset)
        {
            starts.insert(fde.initial_address(), fde.initial_address().saturating_add(fde.len()));
        }
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demangle_gives_the_name_in_the_source() {
        assert_eq!(demangle("_ZN5store3row17h0123456789abcdefE"), "store::row");
        assert_eq!(demangle("_ZN3Foo3barEi"), "Foo::bar");
        assert_eq!(demangle("flush.part.0"), "flush");
        assert_eq!(demangle("memcpy@@GLIBC_2.14"), "memcpy");
        assert_eq!(demangle("main"), "main");
    }

    /// A function that the compiler keeps as one: it may inline the test itself into what calls it.
    #[inline(never)]
    fn sought_by_symbols_at(number: u64) -> u64 {
        std::hint::black_box(number.rotate_left(7) ^ 0x5eed)
    }

    #[test]
    fn symbols_at_finds_a_function_of_this_program() {
        assert_ne!(sought_by_symbols_at(1), 1);
        let path = std::env::current_exe().unwrap();
        let data = std::fs::read(&path).unwrap();
        let elf = object::File::parse(&*data).unwrap();
        let symbol = elf.symbols().find(|s| s.name().is_ok_and(|n| n.contains("sought_by_symbols_at"))).unwrap();
        let found = symbols_at(&path, None, AddressBase::Own, &[symbol.address(), u64::MAX]).unwrap();
        let SymbolsAt::Functions(names) = &found[0] else { panic!("{found:?}") };
        assert!(names[0].contains("elf::tests::sought_by_symbols_at"), "{names:?}");
        assert_eq!(found[1], SymbolsAt::Unknown);
        assert!(!identity(&path).unwrap().build_id.unwrap_or_default().is_empty());
    }

    #[test]
    fn inlined_functions_are_found() {
        let path = std::env::current_exe().unwrap();
        let data = std::fs::read(&path).unwrap();
        let elf = object::File::parse(&*data).unwrap();
        let text = elf.section_by_name(".text").unwrap();
        let addresses: Vec<u64> = (0..500).map(|i| text.address() + text.size() / 500 * i).collect();
        let found = symbols_at(&path, None, AddressBase::Own, &addresses).unwrap();
        let several = |p: &&SymbolsAt| matches!(p, SymbolsAt::Functions(names) if names.len() > 1);
        assert!(found.iter().filter(several).count() > 50);
    }

    #[test]
    fn symbols_at_is_unknown_in_a_damaged_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("broken");
        let mut data = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        data.truncate(4096);
        std::fs::write(&path, data).unwrap();
        assert_eq!(symbols_at(&path, None, AddressBase::Own, &[0x1000]).unwrap(), [SymbolsAt::Unknown]);
        assert!(symbols_at(folder.path(), None, AddressBase::Own, &[1]).is_err());
    }
}
