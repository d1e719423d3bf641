//! The functions at addresses of one file by its debug information (DWARF), those that the compiler inlined among them.
//!
//! In: the sections, and addresses. Out: for each the names of the functions there, outermost first. The units whose
//! ranges have one of the addresses are read, each once from its first entry to its last: an entry comes after the
//! one that it is inside, so its name goes after the names that its addresses have. Of other units only the first
//! entry is read, which takes their abbreviations; line tables are not. Cost: the abbreviations of all units, and the
//! entries of those that are asked for; in memory the abbreviations of one unit at a time, and of those that it refers
//! to for names, whatever the size of the file.
//!
//! addr2line, which asks for one address at a time, keeps the abbreviations of all units (23 MB for a C library), and
//! reads line tables: a test compares the answers.

use super::sections::Reader;
use crate::base::demangle::demangle;
use foldhash::HashMap;
use gimli::{
    Abbreviations, AttributeValue, DebugAbbrevOffset, DebugAddrBase, DebugInfoOffset, DebugLocListsBase,
    DebugRngListsBase, DebugStrOffsetsBase, Dwarf, EntriesRaw, Unit, UnitHeader, UnitOffset, UnitType,
};
use std::cell::RefCell;
use std::sync::Arc;

type Attributes = [gimli::AttributeSpecification];

/// References from one entry to the next that are followed for a name.
const REFERENCES: usize = 16;

/// An address, and what is known of the functions there.
struct Sought<'a> {
    address: u64,
    /// Where the entry of its function is.
    function: Option<DebugInfoOffset>,
    /// Outermost first; `None` for a function without a name.
    names: Vec<Option<Reader<'a>>>,
}

/// What an entry says of a function.
#[derive(Default)]
struct Entry<'a> {
    low_pc: Option<u64>,
    /// The end of the code that begins at `low_pc`, or its length.
    high_pc: Option<u64>,
    size: Option<u64>,
    ranges: Option<gimli::RangeListsOffset>,
    /// By which the linker knows it.
    linkage_name: Option<Reader<'a>>,
    name: Option<Reader<'a>>,
    /// The entry that it is an instance of.
    origin: Option<AttributeValue<Reader<'a>>>,
}

/// A function around the next entries of a unit.
struct Open {
    depth: isize,
    function: DebugInfoOffset,
    /// Number of functions around it that it is inlined into.
    inlined: usize,
    /// Some address in it is sought.
    sought: bool,
}

/// The debug information of a file.
struct Units<'d, 'a> {
    dwarf: &'d Dwarf<Reader<'a>>,
    starts: Vec<DebugInfoOffset>,
    /// The table of abbreviations that was read last: neighbouring units may share one.
    last: RefCell<Option<(DebugAbbrevOffset, Arc<Abbreviations>)>>,
    /// Units with entries that others refer to for names, by their place.
    referred: RefCell<HashMap<usize, Arc<Unit<Reader<'a>>>>>,
}

/// The names of the functions at each of `addresses`, outermost first, demangled. Behind a function without a name are
/// only those that are inlined into it.
pub(super) fn functions_at(dwarf: &Dwarf<Reader<'_>>, addresses: &[u64]) -> Vec<Vec<String>> {
    let mut order: Vec<usize> = (0..addresses.len()).collect();
    order.sort_by_key(|i| addresses.get(*i));
    let sought = |i: &usize| Sought { address: addresses[*i], function: None, names: Vec::new() };
    let mut sought: Vec<Sought<'_>> = order.iter().map(sought).collect();
    let (last, referred) = (RefCell::default(), RefCell::default());
    let mut units = Units { dwarf, starts: Vec::new(), last, referred };
    let mut headers = dwarf.units();
    let start = |header: UnitHeader<Reader<'_>>| header.offset().as_debug_info_offset();
    while let Ok(Some(header)) = headers.next() {
        units.starts.extend(start(header));
    }
    for start in &units.starts {
        // The rest of a damaged unit has no names.
        let _ = units.read(*start, &mut sought);
    }
    let mut all = vec![Vec::new(); addresses.len()];
    for (i, sought) in order.into_iter().zip(sought) {
        let named = sought.names.iter().rposition(Option::is_none).map_or(0, |unnamed| unnamed + 1);
        all[i] = sought.names.into_iter().skip(named).flatten().map(|name| demangle(&name.to_string_lossy())).collect();
    }
    all
}

impl<'a> Units<'_, 'a> {
    /// Those of a unit, if some of its code is sought.
    fn read(&self, start: DebugInfoOffset, sought: &mut [Sought<'a>]) -> gimli::Result<()> {
        let header = self.dwarf.debug_info.header_from_offset(start)?;
        if !matches!(header.type_(), UnitType::Compilation | UnitType::Skeleton(_)) {
            return Ok(());
        }
        let unit = self.unit(header)?;
        let mut entries = unit.entries_raw(None)?;
        let Some(root) = entries.read_abbreviation()? else { return Ok(()) };
        let root = self.entry(&unit, &mut entries, root.attributes())?;
        let mut is_sought = false;
        self.for_each(&unit, &root, sought, |_| is_sought = true)?;
        if is_sought { self.read_entries(&unit, entries, sought) } else { Ok(()) }
    }

    /// The names of functions, from the entries of a unit.
    fn read_entries(
        &self,
        unit: &Unit<Reader<'a>>,
        mut entries: EntriesRaw<'_, '_, Reader<'a>>,
        sought: &mut [Sought<'a>],
    ) -> gimli::Result<()> {
        let mut all: Vec<Open> = Vec::new();
        while !entries.is_empty() {
            let (offset, depth) = (entries.next_offset(), entries.next_depth());
            let Some(abbreviation) = entries.read_abbreviation()? else { continue };
            while all.pop_if(|open| open.depth >= depth).is_some() {}
            let function = match abbreviation.tag() {
                gimli::DW_TAG_subprogram => offset.to_debug_info_offset(&unit.header).map(|at| (at, 0)),
                gimli::DW_TAG_inlined_subroutine => {
                    all.last().filter(|open| open.sought).map(|open| (open.function, open.inlined + 1))
                }
                _ => None,
            };
            let Some((function, inlined)) = function else {
                entries.skip_attributes(abbreviation.attributes())?;
                continue;
            };
            let entry = self.entry(unit, &mut entries, abbreviation.attributes())?;
            let mut name = None;
            self.for_each(unit, &entry, sought, |at| {
                // The first function at an address is its function, and so with functions inside one.
                if (inlined == 0 && at.function.is_none())
                    || (at.function == Some(function) && at.names.len() == inlined)
                {
                    at.function = Some(function);
                    at.names.push(*name.get_or_insert_with(|| self.name(unit, &entry, REFERENCES)));
                }
            })?;
            all.push(Open { depth, function, inlined, sought: name.is_some() });
        }
        Ok(())
    }

    /// Call `found` with what is sought in the code of an entry.
    fn for_each(
        &self,
        unit: &Unit<Reader<'a>>,
        entry: &Entry<'a>,
        sought: &mut [Sought<'a>],
        mut found: impl FnMut(&mut Sought<'a>),
    ) -> gimli::Result<()> {
        let mut within = |begin: u64, end: u64| {
            let from = sought.partition_point(|s| s.address < begin);
            // Code that the linker left out begins at zero.
            let all = sought.iter_mut().skip(from).take_while(|s| s.address < end && begin > 0);
            all.for_each(&mut found);
        };
        match (entry.ranges, entry.low_pc) {
            (Some(ranges), _) => {
                let mut ranges = self.dwarf.ranges(unit, ranges)?;
                while let Some(range) = ranges.next()? {
                    within(range.begin, range.end);
                }
            }
            (None, Some(low)) => {
                within(low, entry.high_pc.or(entry.size.map(|size| low.saturating_add(size))).unwrap_or(low));
            }
            (None, None) => {}
        }
        Ok(())
    }

    /// The attributes of the entry whose abbreviation was read.
    fn entry(
        &self,
        unit: &Unit<Reader<'a>>,
        entries: &mut EntriesRaw<'_, '_, Reader<'a>>,
        attributes: &Attributes,
    ) -> gimli::Result<Entry<'a>> {
        let mut entry = Entry::default();
        for specification in attributes {
            let attribute = entries.read_attribute(*specification)?;
            let value = attribute.value();
            match attribute.name() {
                gimli::DW_AT_low_pc => entry.low_pc = self.dwarf.attr_address(unit, value)?,
                gimli::DW_AT_high_pc => match value {
                    AttributeValue::Udata(size) => entry.size = Some(size),
                    _ => entry.high_pc = self.dwarf.attr_address(unit, value)?,
                },
                gimli::DW_AT_ranges => entry.ranges = self.dwarf.attr_ranges_offset(unit, value)?,
                gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                    entry.linkage_name = self.dwarf.attr_string(unit, value).ok();
                }
                gimli::DW_AT_name => entry.name = self.dwarf.attr_string(unit, value).ok(),
                gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => entry.origin = Some(value),
                _ => {}
            }
        }
        Ok(entry)
    }

    /// The name of an entry, else that of the entry that it is an instance of.
    fn name(&self, unit: &Unit<Reader<'a>>, entry: &Entry<'a>, references: usize) -> Option<Reader<'a>> {
        if let Some(name) = entry.linkage_name.or(entry.name) {
            return Some(name);
        }
        let references = references.checked_sub(1)?;
        let at = |unit: &Unit<Reader<'a>>, offset: UnitOffset| {
            let mut entries = unit.entries_raw(Some(offset)).ok()?;
            let abbreviation = entries.read_abbreviation().ok()??;
            let entry = self.entry(unit, &mut entries, abbreviation.attributes()).ok()?;
            self.name(unit, &entry, references)
        };
        match entry.origin? {
            AttributeValue::UnitRef(offset) => at(unit, offset),
            AttributeValue::DebugInfoRef(offset) => {
                let number = self.starts.partition_point(|start| start.0 <= offset.0).checked_sub(1)?;
                let unit = self.referred(number)?;
                at(&unit, offset.to_unit_offset(&unit.header)?)
            }
            _ => None,
        }
    }

    /// A unit that another one refers to.
    fn referred(&self, number: usize) -> Option<Arc<Unit<Reader<'a>>>> {
        if let Some(known) = self.referred.borrow().get(&number) {
            return Some(Arc::clone(known));
        }
        let header = self.dwarf.debug_info.header_from_offset(*self.starts.get(number)?).ok()?;
        let unit = Arc::new(self.unit(header).ok()?);
        self.referred.borrow_mut().insert(number, Arc::clone(&unit));
        Some(unit)
    }

    /// A unit by its header. [`gimli::Dwarf::unit`] reads the head of its line table as well.
    fn unit(&self, header: UnitHeader<Reader<'a>>) -> gimli::Result<Unit<Reader<'a>>> {
        let (encoding, of) = (header.encoding(), self.dwarf.file_type);
        let mut unit = Unit {
            abbreviations: self.abbreviations(&header)?,
            name: None,
            comp_dir: None,
            low_pc: 0,
            str_offsets_base: DebugStrOffsetsBase::default_for_encoding_and_file(encoding, of),
            addr_base: DebugAddrBase(0),
            loclists_base: DebugLocListsBase::default_for_encoding_and_file(encoding, of),
            rnglists_base: DebugRngListsBase::default_for_encoding_and_file(encoding, of),
            line_program: None,
            dwo_id: None,
            header,
        };
        let abbreviations = Arc::clone(&unit.abbreviations);
        let mut entries = header.entries_raw(&abbreviations, None)?;
        let mut low_pc = None;
        for specification in entries.read_abbreviation()?.map_or(&[][..], |root| root.attributes()) {
            match entries.read_attribute(*specification)?.value() {
                AttributeValue::DebugStrOffsetsBase(base) => unit.str_offsets_base = base,
                AttributeValue::DebugAddrBase(base) => unit.addr_base = base,
                AttributeValue::DebugRngListsBase(base) => unit.rnglists_base = base,
                value if specification.name() == gimli::DW_AT_low_pc => low_pc = Some(value),
                _ => {}
            }
        }
        // An index of an address may stand before the base that it counts from.
        if let Some(low_pc) = low_pc {
            unit.low_pc = self.dwarf.attr_address(&unit, low_pc)?.unwrap_or(0);
        }
        Ok(unit)
    }

    fn abbreviations(&self, header: &UnitHeader<Reader<'a>>) -> gimli::Result<Arc<Abbreviations>> {
        let at = header.debug_abbrev_offset();
        if let Some((known, abbreviations)) = &*self.last.borrow()
            && *known == at
        {
            return Ok(Arc::clone(abbreviations));
        }
        let abbreviations = Arc::new(header.abbreviations(&self.dwarf.debug_abbrev)?);
        *self.last.borrow_mut() = Some((at, Arc::clone(&abbreviations)));
        Ok(abbreviations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gimli::EndianSlice;
    use object::{Object, ObjectSection};
    use std::borrow::Cow;

    /// As addr2line has them.
    fn by_addr2line(context: &addr2line::Context<Reader<'_>>, address: u64) -> Vec<String> {
        let Ok(mut frames) = context.find_frames(address).skip_all_loads() else { return Vec::new() };
        let mut names = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let Some(name) = frame.function.as_ref().and_then(|f| f.raw_name().ok().map(|n| demangle(&n))) else {
                break;
            };
            names.push(name);
        }
        names.reverse();
        names
    }

    #[test]
    fn functions_at_has_the_functions_of_addr2line() {
        let data = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let elf = object::File::parse(&*data).unwrap();
        let load = |id: gimli::SectionId| {
            let section = elf.section_by_name(id.name());
            section.map_or(Ok(Cow::Borrowed(&[][..])), |section| section.uncompressed_data())
        };
        let sections = gimli::DwarfSections::load(load).unwrap();
        let dwarf = || sections.borrow(|bytes| EndianSlice::new(bytes, gimli::RunTimeEndian::Little));
        let (text, n) = (elf.section_by_name(".text").unwrap(), 5_000);
        // In no order.
        let addresses: Vec<u64> = (0..n).map(|i| text.address() + text.size() / n * (i * 7 % n)).collect();
        let found = functions_at(&dwarf(), &addresses);
        let context = addr2line::Context::from_dwarf(dwarf()).unwrap();
        for (address, found) in addresses.iter().zip(&found) {
            assert_eq!(*found, by_addr2line(&context, *address), "{address:#x}");
        }
        let inlined = found.iter().filter(|names| names.len() > 1).count();
        assert!(inlined > 500, "{inlined} have functions that were inlined");
    }
}
