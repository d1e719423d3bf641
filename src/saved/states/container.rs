//! The sections of a history file: what they are called, where they are, and whether their bytes are what was written.
//!
//! ```text
//!  header    magic (8), major (2), minor (2), number of sections (4), length of the file (8), offset of the table (8),
//!            zero (4), checksum (4)
//!  sections  one after the other
//!  table     per section: name (8), offset (8), length (8), checksum (4), zero (4)
//! ```
//! Integers are little-endian; checksums are CRC-32, the header's over all else in header and table. The sections of a
//! later minor version that this one does not know are not looked at. Reading is by positioned reads: nothing is
//! mapped, and a section costs its bytes. The checksum of a section is that of all of its bytes, except in sections of
//! blocks, whose blocks have a checksum each: damage there costs one block.

use super::HistoryFileError;
use crate::base::cursor::{ByteOrder, Bytes};
use crate::base::file::{Existing, Output};
use crate::base::mapped::open_regular;
use crate::base::packed::{Packed, value_of};
use crate::timeline::store::leaves::Leaves;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// How each history file begins.
const MAGIC: [u8; 8] = *b"whyslowh";
/// A file of another major version has another layout.
pub(super) const MAJOR: u16 = 8;
/// A file of a higher minor version has sections that this program does not know.
const MINOR: u16 = 0;
/// Bytes before the first section.
const HEADER: usize = 40;
/// Bytes of a section in the table.
const ENTRY: usize = 32;
/// The most sections of a file that is opened.
const MOST_SECTIONS: u32 = 1 << 12;

/// The name of a section: at most eight letters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SectionName([u8; 8]);

impl SectionName {
    /// A name, filled up with zeros.
    pub const fn new(name: &str) -> SectionName {
        let (text, mut bytes, mut at) = (name.as_bytes(), [0; 8], 0);
        while at < text.len() && at < 8 {
            bytes[at] = text[at];
            at += 1;
        }
        SectionName(bytes)
    }
}

impl std::fmt::Debug for SectionName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

/// A section, written or as the table describes it.
#[derive(Clone, Copy, Debug)]
struct Section {
    name: SectionName,
    offset: u64,
    length: u64,
    checksum: u32,
}

/// The bytes of a section.
#[derive(Debug)]
enum Content {
    /// In memory.
    Bytes(Vec<u8>),
    /// Those of leaves one behind the other, which are taken from their store one by one.
    Leaves(Vec<Leaves>),
}

/// A history file in the making.
#[derive(Debug, Default)]
pub struct HistoryFileWriter {
    sections: Vec<(SectionName, Content)>,
}

impl HistoryFileWriter {
    /// Add a section behind the others.
    pub fn add(&mut self, name: SectionName, bytes: Vec<u8>) {
        self.sections.push((name, Content::Bytes(bytes)));
    }

    /// Add a section of the bytes of leaves.
    pub fn add_leaves(&mut self, name: SectionName, leaves: Vec<Leaves>) {
        self.sections.push((name, Content::Leaves(leaves)));
    }

    /// Write it to an output, where only a history file may be replaced: it appears whole or not at all. Leaves are
    /// written one by one. Returns its length.
    pub fn save(&self, output: Output) -> Result<u64, HistoryFileError> {
        let path = output.path().to_owned();
        let io = |error| HistoryFileError::Io { path: path.clone(), error };
        let existing = match output.replaced().map(begins_as_history_file) {
            Some(Ok(true)) => Existing::Replace,
            Some(Ok(false)) => return Err(HistoryFileError::Foreign { path }),
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
            ErrorKind::AlreadyExists => HistoryFileError::Foreign { path: path.clone() },
            _ => io(error),
        })?;
        Ok(length)
    }

    #[cfg(test)]
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; HEADER];
        let (header, length) = self.write_sections(&mut bytes).unwrap();
        assert_eq!(bytes.len() as u64, length);
        bytes[..HEADER].copy_from_slice(&header);
        bytes
    }

    /// Write all behind the header; returns the header and the length of the whole file.
    fn write_sections(&self, out: &mut impl Write) -> io::Result<(Vec<u8>, u64)> {
        let mut table = Vec::with_capacity(self.sections.len() * ENTRY);
        let mut offset = HEADER as u64;
        for (name, content) in &self.sections {
            let (mut sum, mut length) = (crc32fast::Hasher::new(), 0);
            let mut write = |bytes: &[u8]| {
                sum.update(bytes);
                length += bytes.len() as u64;
                out.write_all(bytes)
            };
            match content {
                Content::Bytes(bytes) => write(bytes)?,
                Content::Leaves(lists) => {
                    for (leaves, leaf) in lists.iter().flat_map(|leaves| (0..leaves.len()).map(move |at| (leaves, at)))
                    {
                        let leaf = leaves.handle(leaf).ok_or_else(|| io::Error::other("states cannot be read back"))?;
                        write(leaf.bytes())?;
                    }
                }
            }
            table.extend(name.0);
            table.extend(offset.to_le_bytes());
            table.extend(length.to_le_bytes());
            table.extend(sum.finalize().to_le_bytes());
            table.extend([0; 4]);
            offset += length;
        }
        out.write_all(&table)?;
        let length = offset + table.len() as u64;
        let mut header = Vec::with_capacity(HEADER);
        header.extend(MAGIC);
        header.extend(MAJOR.to_le_bytes());
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
    sum.update(header.get(..HEADER - 4).unwrap_or(header));
    sum.update(table);
    sum.finalize()
}

/// True for a regular file that begins as a history file does.
pub fn is_history_file(path: &Path) -> bool {
    open_regular(path).and_then(|file| begins_as_history_file(&file)).unwrap_or(false)
}

fn begins_as_history_file(mut file: &File) -> io::Result<bool> {
    let mut begin = Vec::with_capacity(MAGIC.len());
    (&mut file).take(MAGIC.len() as u64).read_to_end(&mut begin)?;
    Ok(begin == MAGIC)
}

/// An opened history file.
#[derive(Debug)]
pub struct HistoryFile {
    path: PathBuf,
    file: File,
    length: u64,
    sections: Vec<Section>,
}

impl HistoryFile {
    /// Open a file. Cost: header and table.
    pub fn open(path: &Path) -> Result<HistoryFile, HistoryFileError> {
        let io = |error| HistoryFileError::Io { path: path.to_owned(), error };
        let damaged = |what| HistoryFileError::Damaged { path: path.to_owned(), at: 0, what };
        let file = open_regular(path).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        let mut header = [0; HEADER];
        file.read_exact_at(&mut header, 0).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => damaged("it ends within its header"),
            _ => io(error),
        })?;
        let cut = || damaged("it ends within its header");
        let mut cursor = Bytes::new(&header);
        if cursor.take(MAGIC.len()) != Some(&MAGIC) {
            return Err(damaged("it does not begin as a history file does"));
        }
        let (major, _minor) = cursor.u16(ByteOrder::Little).zip(cursor.u16(ByteOrder::Little)).ok_or_else(cut)?;
        if major != MAJOR {
            return Err(HistoryFileError::Version { path: path.to_owned(), found: major });
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
        let mut opened = HistoryFile { path: path.to_owned(), file, length, sections: Vec::new() };
        let table = opened.read(table_at, table_length)?;
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

    /// The bytes of a section, whose checksum is right.
    pub fn section(&self, name: SectionName) -> Result<Vec<u8>, HistoryFileError> {
        let section = self.find(name)?;
        let bytes = self.read(section.offset, section.length)?;
        match crc32fast::hash(&bytes) == section.checksum {
            true => Ok(bytes),
            false => Err(self.damaged(name, "a checksum is wrong")),
        }
    }

    /// The value in a section.
    pub fn value<T: Packed>(&self, name: SectionName) -> Result<T, HistoryFileError> {
        value_of(&self.section(name)?).ok_or_else(|| self.contradiction(name))
    }

    /// Some bytes of a section of blocks, which have a checksum of their own; `None` where they are not in the section
    /// or cannot be read.
    pub fn block(&self, name: SectionName, offset: u64, length: u64) -> Option<Vec<u8>> {
        let section = self.find(name).ok()?;
        offset.checked_add(length).filter(|end| *end <= section.length)?;
        self.read(section.offset.checked_add(offset)?, length).ok()
    }

    /// A section whose checksum is right has no value, or one that the others exclude.
    pub fn contradiction(&self, name: SectionName) -> HistoryFileError {
        self.damaged(name, "a section contradicts the others or itself")
    }

    /// An error about a section.
    fn damaged(&self, name: SectionName, what: &'static str) -> HistoryFileError {
        let at = self.find(name).map_or(0, |section| section.offset);
        HistoryFileError::Damaged { path: self.path.clone(), at, what }
    }

    fn find(&self, name: SectionName) -> Result<&Section, HistoryFileError> {
        let mut found = self.sections.iter().filter(|section| section.name == name);
        let missing = || HistoryFileError::Damaged {
            path: self.path.clone(),
            at: 0,
            what: "a section is missing, or there twice",
        };
        let section = found.next().ok_or_else(missing)?;
        if found.next().is_some() { Err(missing()) } else { Ok(section) }
    }

    /// Bytes that are inside the file, which bounds what is allocated.
    fn read(&self, offset: u64, length: u64) -> Result<Vec<u8>, HistoryFileError> {
        let io = |error| HistoryFileError::Io { path: self.path.clone(), error };
        let outside = || io(io::Error::from(ErrorKind::UnexpectedEof));
        offset.checked_add(length).filter(|end| *end <= self.length).ok_or_else(outside)?;
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| outside())?];
        self.file.read_exact_at(&mut bytes, offset).map_err(io)?;
        Ok(bytes)
    }
}

impl Section {
    /// The next one; it is between header and table.
    fn read(cursor: &mut Bytes<'_>, table_at: u64) -> Option<Section> {
        let name = SectionName(cursor.take(8)?.try_into().ok()?);
        let (offset, length) = (cursor.u64(ByteOrder::Little)?, cursor.u64(ByteOrder::Little)?);
        let (checksum, _zero) = (cursor.u32(ByteOrder::Little)?, cursor.u32(ByteOrder::Little)?);
        let inside = offset >= HEADER as u64 && offset.checked_add(length)? <= table_at;
        inside.then_some(Section { name, offset, length, checksum })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: SectionName = SectionName::new("one");
    const TWO: SectionName = SectionName::new("two");

    fn written() -> Vec<u8> {
        let mut writer = HistoryFileWriter::default();
        writer.add(ONE, b"first section".to_vec());
        writer.add(SectionName::new("later"), vec![7; 99]);
        writer.add(TWO, Vec::new());
        writer.bytes()
    }

    fn opened(bytes: &[u8]) -> Result<(Vec<u8>, Vec<u8>), HistoryFileError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, bytes).unwrap();
        let file = HistoryFile::open(&path)?;
        Ok((file.section(ONE)?, file.section(TWO)?))
    }

    #[test]
    fn open_reads_what_was_added_and_skips_unknown_sections() {
        assert_eq!(opened(&written()).unwrap(), (b"first section".to_vec(), Vec::new()));
    }

    #[test]
    fn open_refuses_each_truncation_and_each_changed_byte_of_what_is_read() {
        let whole = written();
        for end in 0..whole.len() {
            assert!(opened(&whole[..end]).is_err(), "{end}");
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1 << (at % 8);
            let skipped = HEADER + b"first section".len()..HEADER + b"first section".len() + 99;
            assert_eq!(opened(&changed).is_err(), !skipped.contains(&at), "{at}");
        }
    }

    #[test]
    fn open_names_the_remedy_for_another_major_version() {
        let mut later = written();
        later[8] = MAJOR as u8 + 1;
        let error = opened(&later).unwrap_err().to_string();
        assert!(error.contains("newer whyslow"), "{error}");
        later[8] = 0;
        assert!(opened(&later).unwrap_err().to_string().contains("build --history"));
    }

    #[test]
    fn save_replaces_a_history_file_only() {
        let folder = tempfile::tempdir().unwrap();
        let (mine, other) = (folder.path().join("mine"), folder.path().join("other"));
        let mut writer = HistoryFileWriter::default();
        writer.add(ONE, vec![1]);
        for _ in 0..2 {
            assert_eq!(writer.save(Output::open(&mine).unwrap()).unwrap(), std::fs::metadata(&mine).unwrap().len());
            writer.add(TWO, vec![2]);
        }
        std::fs::write(&other, "whyslow").unwrap();
        assert!(matches!(writer.save(Output::open(&other).unwrap()), Err(HistoryFileError::Foreign { .. })));
        assert!(is_history_file(&mine) && !is_history_file(&other));
    }
}
