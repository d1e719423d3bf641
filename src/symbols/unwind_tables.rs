//! The unwind tables of an executable: from a function to its caller.
//!
//! In: a file. Out: its unwind tables (`.eh_frame` with its index, `.debug_frame`) and its loaded parts. They are
//! interpreted in [`super::unwind`]. Cost: the sections are read whole. LSB Core,
//! "Exception Frames"; DWARF 5, section 6.4.

use super::checked_file::{Cache, CheckedFile};
use super::elf::{LoadSegment, segment};
use super::sections::unpacked;
use object::{Object, ObjectSection, ObjectSegment};
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// A section of a file.
#[derive(Clone, Debug)]
pub struct Section {
    pub address: u64,
    pub bytes: Arc<[u8]>,
}

/// The table that gives, for each place in a file's code, the caller's registers.
#[derive(Clone, Debug, Default)]
pub struct UnwindTables {
    /// Lowest address.
    pub base: u64,
    /// The parts that are loaded.
    pub segments: Vec<LoadSegment>,
    /// The table, and its index.
    pub eh_frame: Option<Section>,
    /// See [`Self::eh_frame`].
    pub eh_frame_hdr: Option<Section>,
    /// The table in the debug information.
    pub debug_frame: Option<Section>,
}

impl UnwindTables {
    /// The tables of a file; the error is that of opening or reading it.
    pub fn read(path: &Path) -> io::Result<UnwindTables> {
        let file = CheckedFile::open(path)?;
        let failed = Rc::clone(&file.failed);
        let cache = Cache::new(file);
        let elf = object::File::parse(&cache).map_err(io::Error::other)?;
        let section = |name: &str| {
            let section = elf.section_by_name(name)?;
            Some(Section { address: section.address(), bytes: Arc::from(&*unpacked(&section)?) })
        };
        let tables = UnwindTables {
            base: elf.segments().map(|s| s.address()).min().unwrap_or(0),
            segments: elf.segments().map(segment).collect(),
            eh_frame: section(".eh_frame"),
            eh_frame_hdr: section(".eh_frame_hdr"),
            debug_frame: section(".debug_frame"),
        };
        if failed.get() { Err(io::Error::other("it could not be read to its end")) } else { Ok(tables) }
    }
}
