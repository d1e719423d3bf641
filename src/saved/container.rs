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

use super::deflate::{deflated, inflated};
use super::{SavedFileError, SavedKind};
use crate::base::allocator::try_reserve;
use crate::base::cursor::{ByteOrder, Bytes};
use crate::base::file::{Existing, Output};
use crate::base::mapped::open_regular;
use crate::base::pack::Unpack;
use crate::base::packed::Packed;
use crate::timeline::store::leaves::Leaves;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A file of a higher minor version has sections that this program does not know.
const MINOR: u16 = 0;
/// Bytes before the first section.
const HEADER: usize = 40;
/// Bytes of a section in the table.
const ENTRY: usize = 40;
/// Bytes of a checksum.
const CHECKSUM: usize = 4;
/// The most sections of a file that is opened: each task of a database has four.
const MOST_SECTIONS: u32 = 1 << 20;

/// The name of a section: at most eight letters, and a number where there are several of that name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SectionName {
    letters: [u8; 8],
    number: u32,
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

/// What a section is made of.
#[derive(Debug)]
enum Content {
    /// The block of a value, and the length of the value.
    Value(Vec<u8>, u64),
    /// The leaves of stores, which are taken from there one by one.
    Leaves(Vec<Leaves>),
}

/// A file in the making.
#[derive(Debug)]
pub struct SavedFileWriter {
    kind: SavedKind,
    sections: Vec<(SectionName, Content)>,
}

impl SavedFileWriter {
    /// A file without sections.
    pub fn new(kind: SavedKind) -> SavedFileWriter {
        SavedFileWriter { kind, sections: Vec::new() }
    }

    /// Add a section that holds a value of these bytes, deflated where that is shorter.
    pub fn add(&mut self, name: SectionName, bytes: Vec<u8>) {
        let length = bytes.len() as u64;
        self.add_block(name, deflated(&bytes).unwrap_or(bytes), length);
    }

    /// Add a section that holds a value of these bytes as they are: inflating costs a third of what reading the value
    /// does, and many questions read it.
    pub fn add_plain(&mut self, name: SectionName, bytes: Vec<u8>) {
        let length = bytes.len() as u64;
        self.add_block(name, bytes, length);
    }

    fn add_block(&mut self, name: SectionName, mut block: Vec<u8>, length: u64) {
        block.extend(crc32fast::hash(&block).to_le_bytes());
        self.sections.push((name, Content::Value(block, length)));
    }

    /// Take other bytes for the value of a section that was added.
    #[cfg(test)]
    pub fn replace(&mut self, name: SectionName, bytes: Vec<u8>) {
        let at = self.sections.iter().position(|(section, _)| *section == name).unwrap();
        self.add(name, bytes);
        self.sections.swap_remove(at);
    }

    /// Add a section of the blocks of leaves.
    pub fn add_leaves(&mut self, name: SectionName, leaves: Vec<Leaves>) {
        self.sections.push((name, Content::Leaves(leaves)));
    }

    /// Write it to an output, where only a file of this kind may be replaced: it appears whole or not at all. Leaves
    /// are written one by one. Returns its length.
    pub fn save(&self, output: Output) -> Result<u64, SavedFileError> {
        let (path, kind) = (output.path().to_owned(), self.kind);
        let io = |error| SavedFileError::Io { path: path.clone(), error };
        let existing = match output.replaced().map(|before| kind.begins(before)) {
            Some(Ok(true)) => Existing::Replace,
            Some(Ok(false)) => return Err(SavedFileError::Foreign { path, kind }),
            Some(Err(error)) => return Err(io(error)),
            None => Existing::Keep,
        };
        let mut length = 0;
        let fill = |file: &mut File| {
            // The header has the place of the table, which comes last.
            file.write_all(&[0; HEADER])?;
            let header;
            (header, length) = self.write_sections(file)?;
            file.write_all_at(&header, 0)
        };
        output.write(existing, fill).map_err(|error| match error.kind() {
            // It was made meanwhile.
            ErrorKind::AlreadyExists => SavedFileError::Foreign { path: path.clone(), kind },
            _ => io(error),
        })?;
        Ok(length)
    }

    /// The bytes of the file.
    pub fn bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; HEADER];
        let (header, _) = self.write_sections(&mut bytes)?;
        bytes[..HEADER].copy_from_slice(&header);
        Ok(bytes)
    }

    /// Write all behind the header; returns the header and the length of the whole file.
    fn write_sections(&self, out: &mut impl Write) -> io::Result<(Vec<u8>, u64)> {
        let mut table = Vec::with_capacity(self.sections.len() * ENTRY);
        let mut offset = HEADER as u64;
        for (name, content) in &self.sections {
            let (mut length, mut value) = (0, 0);
            let mut write = |bytes: &[u8]| {
                length += bytes.len() as u64;
                out.write_all(bytes)
            };
            match content {
                Content::Value(block, length) => {
                    value = *length;
                    write(block)?;
                }
                Content::Leaves(lists) => {
                    for (leaves, leaf) in lists.iter().flat_map(|leaves| (0..leaves.len()).map(move |at| (leaves, at)))
                    {
                        let leaf = leaves.handle(leaf).ok_or_else(|| io::Error::other("states cannot be read back"))?;
                        write(leaf.bytes())?;
                    }
                }
            }
            table.extend(name.letters);
            table.extend(u64::from(name.number).to_le_bytes());
            [offset, length, value].into_iter().for_each(|number| table.extend(number.to_le_bytes()));
            offset += length;
        }
        out.write_all(&table)?;
        let length = offset + table.len() as u64;
        let mut header = Vec::with_capacity(HEADER);
        header.extend(self.kind.magic());
        header.extend(self.kind.version().to_le_bytes());
        header.extend(MINOR.to_le_bytes());
        header.extend((self.sections.len() as u32).to_le_bytes());
        header.extend(length.to_le_bytes());
        header.extend(offset.to_le_bytes());
        header.extend([0; 4]);
        let checksum = checksum(&header, &table);
        header.extend(checksum.to_le_bytes());
        Ok((header, length))
    }
}

/// The checksum of a header but for its last four bytes, and of the table.
fn checksum(header: &[u8], table: &[u8]) -> u32 {
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
        if zero != 0 || count > MOST_SECTIONS || table_at.checked_add(table_length) != Some(length) {
            return Err(damaged("its table does not fit into it"));
        }
        let mut opened = SavedFile { path: path.to_owned(), kind, file, length, sections: Vec::new() };
        let table = opened.read_at(table_at, table_length)?;
        if checksum(&header, &table) != sum {
            return Err(damaged("the checksum of its table is wrong"));
        }
        let mut cursor = Bytes::new(&table);
        for _ in 0..count {
            let section = Section::read(&mut cursor, table_at);
            opened.sections.push(section.ok_or_else(|| damaged("a section is outside of the file"))?);
        }
        Ok(opened)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes of the value of a section, whose checksum is right.
    pub fn section(&self, name: SectionName) -> Result<Vec<u8>, SavedFileError> {
        let section = self.find(name).ok_or_else(|| self.damaged(name, "a section is missing, or there twice"))?;
        let mut block = self.read_at(section.offset, section.length)?;
        let sum = block.len().checked_sub(CHECKSUM).map(|end| block.split_off(end));
        if sum.is_none_or(|sum| sum != crc32fast::hash(&block).to_le_bytes()) {
            return Err(self.damaged(name, "a checksum is wrong"));
        }
        let length = usize::try_from(section.value).ok();
        if length == Some(block.len()) {
            return Ok(block);
        }
        length.and_then(|length| inflated(&block, length)).ok_or_else(|| self.contradiction(name))
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
        let mut found = self.sections.iter().filter(|section| section.name == name);
        let section = found.next();
        section.filter(|_| found.next().is_none())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::saved::deflate::MOST_RATIO;

    const ONE: SectionName = SectionName::new("one");
    const TWO: SectionName = SectionName::new("one").of(2);
    const LATER: usize = 99;

    fn written() -> Vec<u8> {
        let mut writer = SavedFileWriter::new(SavedKind::States);
        writer.add(ONE, b"first section".to_vec());
        // Random bytes do not become fewer.
        let mut random = crate::base::statistics::Random::new(1);
        writer.add(SectionName::new("later"), (0..LATER).map(|_| random.below(256) as u8).collect());
        writer.add(TWO, [7; 5_000].to_vec());
        writer.add(TWO.of(3), Vec::new());
        writer.bytes().unwrap()
    }

    fn opened(bytes: &[u8]) -> Result<[Vec<u8>; 3], SavedFileError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, bytes).unwrap();
        let file = SavedFile::open(&path, SavedKind::States)?;
        Ok([file.section(ONE)?, file.section(TWO)?, file.section(TWO.of(3))?])
    }

    #[test]
    fn open_reads_what_was_added_and_skips_unknown_sections() {
        let whole = written();
        assert_eq!(opened(&whole).unwrap(), [b"first section".to_vec(), [7; 5_000].to_vec(), Vec::new()]);
        // The largest value is the shortest block that it may be.
        let blocks = b"first section".len() + LATER + 5_000_usize.div_ceil(MOST_RATIO) + 4 * CHECKSUM;
        assert_eq!(whole.len(), HEADER + blocks + 4 * ENTRY);
    }

    #[test]
    fn open_refuses_each_truncation_and_each_changed_byte_of_what_is_read() {
        let whole = written();
        for end in 0..whole.len() {
            assert!(opened(&whole[..end]).is_err(), "{end}");
        }
        let skipped = HEADER + b"first section".len() + CHECKSUM;
        let skipped = skipped..skipped + LATER + CHECKSUM;
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1 << (at % 8);
            assert_eq!(opened(&changed).is_err(), !skipped.contains(&at), "{at}");
        }
    }

    #[test]
    fn open_names_the_remedy_for_another_major_version() {
        for kind in [SavedKind::Executions, SavedKind::States] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("file");
            for (version, remedy) in [(kind.version() + 1, "newer whyslow"), (0, kind.command())] {
                let mut bytes = SavedFileWriter::new(kind).bytes().unwrap();
                bytes[8..10].copy_from_slice(&version.to_le_bytes());
                std::fs::write(&path, bytes).unwrap();
                let error = SavedFile::open(&path, kind).unwrap_err().to_string();
                assert!(error.contains(remedy) && error.contains(&format!("version {version}")), "{error}");
            }
        }
    }

    #[test]
    fn save_replaces_a_file_of_its_kind_only() {
        let folder = tempfile::tempdir().unwrap();
        let (mine, other) = (folder.path().join("mine"), folder.path().join("other"));
        let mut writer = SavedFileWriter::new(SavedKind::States);
        writer.add(ONE, vec![1]);
        for _ in 0..2 {
            assert_eq!(writer.save(Output::open(&mine).unwrap()).unwrap(), std::fs::metadata(&mine).unwrap().len());
            writer.add(TWO, vec![2]);
        }
        std::fs::write(&other, "whyslow").unwrap();
        for (path, writer) in [(&other, &writer), (&mine, &SavedFileWriter::new(SavedKind::Executions))] {
            let refused = writer.save(Output::open(path).unwrap());
            assert!(matches!(refused, Err(SavedFileError::Foreign { .. })));
        }
        assert!(SavedKind::States.is_of(&mine) && !SavedKind::States.is_of(&other));
        assert!(!SavedKind::Executions.is_of(&mine));
    }
}
