//! The one container of all that is kept in files: named sections of checked blocks.
//!
//! ```text
//!  header    magic (8), major (2), minor (2), number of sections (4), length of the file (8), offset of the table (8),
//!            zero (4), checksum (4)
//!  sections  one after the other, of one block or more; each block ends in the checksum of its bytes (4)
//!  table     per section: name (8), number (4), zero (4), offset (8), length (8), length of the value (8)
//! ```
//! Integers are little-endian; checksums are CRC-32, the header's over all else in header and table. A section holds a
//! value, as one block, deflated if its length says so; or the leaves of a store, whose places an index has.
//!
//! Opening costs header and table. A section is read by positioned reads and checked when it is asked for; nothing is
//! mapped. What is allocated is inside the file, or in proportion to it (`deflate`). The file appears whole or not at
//! all, and takes the place of a file of its kind alone. What a later minor version adds is not looked at.

use super::deflate::inflated;
use super::{SavedFileError, SavedKind};
use crate::base::allocator::try_reserve;
use crate::base::cursor::{ByteOrder, Bytes};
use crate::base::mapped::open_regular;
use crate::base::pack::Unpack;
use crate::base::packed::Packed;
use foldhash::HashMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A file of a higher minor version has sections that this program does not know.
pub(super) const MINOR: u16 = 0;
/// Bytes before the first section.
pub(super) const HEADER: usize = 40;
/// Bytes of a section in the table.
pub(super) const ENTRY: usize = 40;
/// Bytes of a checksum.
pub(super) const CHECKSUM: usize = 4;
/// The most sections of a file: each task of a recording has five in a database.
pub(super) const MOST_SECTIONS: usize = 1 << 22;

/// The name of a section: at most eight letters, and a number where there are several of that name.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SectionName {
    pub(super) letters: [u8; 8],
    pub(super) number: u32,
}

impl SectionName {
    /// A name, filled up with zeros; number 0.
    pub const fn new(name: &str) -> SectionName {
        let (text, mut letters, mut at) = (name.as_bytes(), [0; 8], 0);
        while at < text.len() && at < 8 {
            letters[at] = text[at];
            at += 1;
        }
        SectionName { letters, number: 0 }
    }

    /// The section of that name with a number.
    pub const fn of(self, number: u32) -> SectionName {
        SectionName { number, ..self }
    }
}

impl std::fmt::Debug for SectionName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.letters.escape_ascii(), self.number)
    }
}

/// A section as the table describes it.
#[derive(Clone, Copy, Debug)]
struct Section {
    name: SectionName,
    offset: u64,
    /// Of its blocks.
    length: u64,
    /// Of its value.
    value: u64,
}

/// A value as a file holds it: deflated where that is shorter than its length.
#[derive(Debug)]
pub struct SavedBlock {
    pub(super) bytes: Vec<u8>,
    /// Of the value.
    pub(super) length: u64,
}

/// The checksum of a header but for its last four bytes, and of the table.
pub(super) fn checksum(header: &[u8], table: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(header.get(..HEADER - CHECKSUM).unwrap_or(header));
    sum.update(table);
    sum.finalize()
}

/// An opened file.
#[derive(Debug)]
pub struct SavedFile {
    path: PathBuf,
    kind: SavedKind,
    file: File,
    length: u64,
    sections: Vec<Section>,
    /// By name the position; `None` where there are several of the name.
    places: HashMap<SectionName, Option<usize>>,
}

impl SavedFile {
    /// Open a file. Cost: header and table.
    pub fn open(path: &Path, kind: SavedKind) -> Result<SavedFile, SavedFileError> {
        let io = |error| SavedFileError::Io { path: path.to_owned(), error };
        let damaged = |what| SavedFileError::Damaged { path: path.to_owned(), kind, at: 0, what };
        let file = open_regular(path).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        let cut = || damaged("it ends within its header");
        let mut header = [0; HEADER];
        file.read_exact_at(&mut header, 0)
            .map_err(|error| if error.kind() == ErrorKind::UnexpectedEof { cut() } else { io(error) })?;
        let mut cursor = Bytes::new(&header);
        if cursor.take(kind.magic().len()) != Some(&kind.magic()) {
            return Err(damaged("it begins as another kind of file"));
        }
        let (major, _minor) = cursor.u16(ByteOrder::Little).zip(cursor.u16(ByteOrder::Little)).ok_or_else(cut)?;
        if major != kind.version() {
            return Err(SavedFileError::Version { path: path.to_owned(), kind, found: major });
        }
        let count = cursor.u32(ByteOrder::Little).ok_or_else(cut)?;
        let (stated, table_at) = cursor.u64(ByteOrder::Little).zip(cursor.u64(ByteOrder::Little)).ok_or_else(cut)?;
        let (zero, sum) = cursor.u32(ByteOrder::Little).zip(cursor.u32(ByteOrder::Little)).ok_or_else(cut)?;
        if stated != length {
            return Err(damaged(if length < stated { "its end is missing" } else { "something follows its end" }));
        }
        let table_length = u64::from(count) * ENTRY as u64;
        if zero != 0 || count as usize > MOST_SECTIONS || table_at.checked_add(table_length) != Some(length) {
            return Err(damaged("its table does not fit into it"));
        }
        let mut opened =
            SavedFile { path: path.to_owned(), kind, file, length, sections: Vec::new(), places: HashMap::default() };
        let table = opened.read_at(table_at, table_length)?;
        if checksum(&header, &table) != sum {
            return Err(damaged("the checksum of its table is wrong"));
        }
        let mut cursor = Bytes::new(&table);
        for _ in 0..count {
            let section = Section::read(&mut cursor, table_at);
            let section = section.ok_or_else(|| damaged("a section is outside of the file"))?;
            let at = opened.sections.len();
            opened.places.entry(section.name).and_modify(|place| *place = None).or_insert(Some(at));
            opened.sections.push(section);
        }
        Ok(opened)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes of the value of a section, whose checksum is right.
    pub fn section(&self, name: SectionName) -> Result<Vec<u8>, SavedFileError> {
        let SavedBlock { bytes: block, length } = self.block(name)?;
        let length = usize::try_from(length).ok();
        if length == Some(block.len()) {
            return Ok(block);
        }
        length.and_then(|length| inflated(&block, length)).ok_or_else(|| self.contradiction(name))
    }

    /// A section as the file holds it, whose checksum is right.
    pub fn block(&self, name: SectionName) -> Result<SavedBlock, SavedFileError> {
        let section = self.find(name).ok_or_else(|| self.damaged(name, "a section is missing, or there twice"))?;
        let mut block = self.read_at(section.offset, section.length)?;
        let sum = block.len().checked_sub(CHECKSUM).map(|end| block.split_off(end));
        if sum.is_none_or(|sum| sum != crc32fast::hash(&block).to_le_bytes()) {
            return Err(self.damaged(name, "a checksum is wrong"));
        }
        Ok(SavedBlock { bytes: block, length: section.value })
    }

    /// What `read` makes of the bytes of a section, all of them.
    pub fn read<T>(
        &self,
        name: SectionName,
        read: impl FnOnce(&mut Unpack<'_>) -> Option<T>,
    ) -> Result<T, SavedFileError> {
        let bytes = self.section(name)?;
        let mut unpack = Unpack(&bytes);
        read(&mut unpack).filter(|_| unpack.0.is_empty()).ok_or_else(|| self.contradiction(name))
    }

    /// The value in a section.
    pub fn value<T: Packed>(&self, name: SectionName) -> Result<T, SavedFileError> {
        self.read(name, T::unpack)
    }

    /// Some bytes of a section of leaves, unchecked; `None` where they are not in the section or cannot be read.
    pub fn leaf(&self, name: SectionName, offset: u64, length: u64) -> Option<Vec<u8>> {
        let section = self.find(name)?;
        offset.checked_add(length).filter(|end| *end <= section.length)?;
        self.read_at(section.offset.checked_add(offset)?, length).ok()
    }

    /// A section whose checksum is right has no value, or one that the others exclude.
    pub fn contradiction(&self, name: SectionName) -> SavedFileError {
        self.damaged(name, "a section contradicts the others or itself")
    }

    /// An error about a section.
    fn damaged(&self, name: SectionName, what: &'static str) -> SavedFileError {
        let at = self.find(name).map_or(0, |section| section.offset);
        SavedFileError::Damaged { path: self.path.clone(), kind: self.kind, at, what }
    }

    /// The one section of a name.
    fn find(&self, name: SectionName) -> Option<&Section> {
        self.sections.get((*self.places.get(&name)?)?)
    }

    /// Bytes that are inside the file, which bounds what is allocated.
    fn read_at(&self, offset: u64, length: u64) -> Result<Vec<u8>, SavedFileError> {
        let io = |error| SavedFileError::Io { path: self.path.clone(), error };
        let outside = || io(io::Error::from(ErrorKind::UnexpectedEof));
        offset.checked_add(length).filter(|end| *end <= self.length).ok_or_else(outside)?;
        let (mut bytes, length) = (Vec::new(), usize::try_from(length).map_err(|_| outside())?);
        try_reserve(&mut bytes, length).map_err(|error| io(error.into()))?;
        bytes.resize(length, 0);
        self.file.read_exact_at(&mut bytes, offset).map_err(io)?;
        Ok(bytes)
    }
}

impl Section {
    /// The next one; it is between header and table.
    fn read(cursor: &mut Bytes<'_>, table_at: u64) -> Option<Section> {
        let letters = cursor.take(8)?.try_into().ok()?;
        let mut number = || cursor.u64(ByteOrder::Little);
        let (name, offset, length, value) = (number()?, number()?, number()?, number()?);
        let name = SectionName { letters, number: u32::try_from(name).ok()? };
        let inside = offset >= HEADER as u64 && offset.checked_add(length)? <= table_at;
        inside.then_some(Section { name, offset, length, value })
    }
}
