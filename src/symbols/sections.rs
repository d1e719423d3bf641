//! The sections of a file from which DWARF is read, unpacked.
//!
//! In: an ELF file, and the sections of it that were unpacked before. Out: their bytes. Unpacking costs more than all
//! else that is done with a file of debug information, and a recording asks several times for addresses in one file: so
//! what was unpacked is shared. A section that claims to unpack into far more than it holds is not unpacked.

use super::checked_file::Cache;
use gimli::{EndianSlice, RunTimeEndian};
use object::{Object, ObjectSection};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Reads numbers of a section.
pub(super) type Reader<'a> = EndianSlice<'a, RunTimeEndian>;

/// A compressed section may be this many times larger than its bytes in the file.
const UNPACKED: u64 = 64;

/// The sections for inlined functions and their names.
const DWARF: [gimli::SectionId; 7] = [
    gimli::SectionId::DebugAbbrev,
    gimli::SectionId::DebugAddr,
    gimli::SectionId::DebugInfo,
    gimli::SectionId::DebugRanges,
    gimli::SectionId::DebugRngLists,
    gimli::SectionId::DebugStr,
    gimli::SectionId::DebugStrOffsets,
];

/// Sections of one file that were compressed.
#[derive(Clone, Debug, Default)]
pub(super) struct UnpackedSections(BTreeMap<&'static str, Arc<[u8]>>);

impl UnpackedSections {
    /// Their bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        self.0.values().map(|section| section.len()).sum()
    }
}

/// The bytes of a section, unless it claims to unpack into far more than it holds.
pub(super) fn unpacked<'a>(section: &impl ObjectSection<'a>) -> Option<Cow<'a, [u8]>> {
    let packed = section.compressed_data().ok()?;
    let held = (packed.data.len() as u64).saturating_mul(UNPACKED);
    if packed.uncompressed_size <= held { packed.decompress().ok() } else { None }
}

/// The bytes of a section: of the file, or unpacked.
enum SectionBytes<'a> {
    OfFile(&'a [u8]),
    Unpacked(Arc<[u8]>),
}

/// See the module.
pub(super) struct Sections<'a> {
    endian: RunTimeEndian,
    data: BTreeMap<&'static str, SectionBytes<'a>>,
}

impl<'a> Sections<'a> {
    /// The sections of a file; `known` are those that were unpacked before.
    pub(super) fn of(elf: &'a object::File<'a, &'a Cache>, known: &mut UnpackedSections) -> Self {
        let endian = if elf.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let mut data = BTreeMap::new();
        for name in DWARF.map(|id| id.name()) {
            if let Some(bytes) = known.0.get(name) {
                data.insert(name, SectionBytes::Unpacked(Arc::clone(bytes)));
                continue;
            }
            let bytes = match elf.section_by_name(name).and_then(|section| unpacked(&section)) {
                Some(Cow::Borrowed(bytes)) => SectionBytes::OfFile(bytes),
                Some(Cow::Owned(bytes)) => {
                    let bytes: Arc<[u8]> = bytes.into();
                    known.0.insert(name, Arc::clone(&bytes));
                    SectionBytes::Unpacked(bytes)
                }
                None => continue,
            };
            data.insert(name, bytes);
        }
        Sections { endian, data }
    }

    /// The debug information in them.
    pub(super) fn dwarf(&self) -> Option<gimli::Dwarf<Reader<'_>>> {
        self.data.contains_key(gimli::SectionId::DebugInfo.name()).then(|| {
            let load = |id: gimli::SectionId| {
                let bytes = match self.data.get(id.name()) {
                    Some(SectionBytes::OfFile(bytes)) => bytes,
                    Some(SectionBytes::Unpacked(bytes)) => &**bytes,
                    None => &[],
                };
                Ok::<_, std::convert::Infallible>(EndianSlice::new(bytes, self.endian))
            };
            match gimli::Dwarf::load(load) {
                Ok(dwarf) => dwarf,
                Err(never) => match never {},
            }
        })
    }
}
