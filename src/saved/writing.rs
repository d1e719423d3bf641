//! Writing files of the [`container`](super::container): sections that were made before, or one after the other.
//!
//! In: sections. Out: a file, which appears whole or not at all, and takes the place of a file of its kind alone. What
//! a [`SavedFileWriter`] was given is in memory until it is saved; of a [`SectionStream`] only the table is.

use super::container::{HEADER, MINOR, MOST_SECTIONS, SavedBlock, SectionName, checksum};
use super::deflate::deflated;
use super::{SavedFileError, SavedKind};
use crate::base::file::{Existing, Output};
use crate::timeline::store::leaves::Leaves;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::FileExt;

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

    /// Write it to an output, as [`save_sections`]. Leaves are written one by one. Returns its length.
    pub fn save(&self, output: Output) -> Result<u64, SavedFileError> {
        let path = output.path().to_owned();
        let io = |error| SavedFileError::Io { path: path.clone(), error };
        save_sections(self.kind, output, |sections| self.write_sections(sections).map_err(io))
    }

    /// The bytes of the file.
    pub fn bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; HEADER];
        let mut sections = SectionStream::new(&mut bytes);
        self.write_sections(&mut sections)?;
        let (header, _) = sections.finish(self.kind)?;
        bytes[..HEADER].copy_from_slice(&header);
        Ok(bytes)
    }

    /// Write all sections.
    fn write_sections(&self, out: &mut SectionStream<'_>) -> io::Result<()> {
        for (name, content) in &self.sections {
            match content {
                Content::Value(block, length) => out.section(*name, *length, |put| put(block))?,
                Content::Leaves(lists) => out.section(*name, 0, |put| {
                    for (leaves, leaf) in lists.iter().flat_map(|leaves| (0..leaves.len()).map(move |at| (leaves, at)))
                    {
                        let leaf = leaves.handle(leaf).ok_or_else(|| io::Error::other("states cannot be read back"))?;
                        put(leaf.bytes())?;
                    }
                    Ok(())
                })?,
            }
        }
        Ok(())
    }
}

/// Sections on their way to a file, one after the other: in memory is their table.
pub struct SectionStream<'a> {
    out: &'a mut dyn Write,
    table: Vec<u8>,
    offset: u64,
    count: usize,
}

impl<'a> SectionStream<'a> {
    /// Behind a header, for which there is room.
    fn new(out: &'a mut dyn Write) -> SectionStream<'a> {
        SectionStream { out, table: Vec::new(), offset: HEADER as u64, count: 0 }
    }

    /// Add a section that holds a value of these bytes, deflated where that is shorter.
    pub fn add(&mut self, name: SectionName, bytes: &[u8]) -> io::Result<()> {
        let length = bytes.len() as u64;
        match deflated(bytes) {
            Some(block) => self.add_block(name, &SavedBlock { bytes: block, length }),
            None => self.add_block(name, &SavedBlock { bytes: bytes.to_vec(), length }),
        }
    }

    /// Add a section of another file as it is.
    pub fn add_block(&mut self, name: SectionName, block: &SavedBlock) -> io::Result<()> {
        let sum = crc32fast::hash(&block.bytes).to_le_bytes();
        self.section(name, block.length, |put| put(&block.bytes).and_then(|()| put(&sum)))
    }

    /// Add a section of the bytes that `write` puts; `value` is the length of the value that they hold.
    fn section(
        &mut self,
        name: SectionName,
        value: u64,
        write: impl FnOnce(&mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut length = 0;
        write(&mut |bytes| {
            length += bytes.len() as u64;
            self.out.write_all(bytes)
        })?;
        self.table.extend(name.letters);
        self.table.extend(u64::from(name.number).to_le_bytes());
        [self.offset, length, value].into_iter().for_each(|number| self.table.extend(number.to_le_bytes()));
        self.offset += length;
        self.count += 1;
        Ok(())
    }

    /// Write the table; returns the header and the length of the whole file.
    fn finish(self, kind: SavedKind) -> io::Result<(Vec<u8>, u64)> {
        let SectionStream { out, table, offset, count } = self;
        if count > MOST_SECTIONS {
            return Err(io::Error::other("more sections than a file may have: merge fewer files"));
        }
        out.write_all(&table)?;
        let length = offset + table.len() as u64;
        let mut header = Vec::with_capacity(HEADER);
        header.extend(kind.magic());
        header.extend(kind.version().to_le_bytes());
        header.extend(MINOR.to_le_bytes());
        header.extend((count as u32).to_le_bytes());
        header.extend(length.to_le_bytes());
        header.extend(offset.to_le_bytes());
        header.extend([0; 4]);
        let checksum = checksum(&header, &table);
        header.extend(checksum.to_le_bytes());
        Ok((header, length))
    }
}

/// Write a file of these sections to an output, where only a file of this kind may be replaced: it appears whole or not
/// at all. Returns its length.
pub fn save_sections(
    kind: SavedKind,
    output: Output,
    write: impl FnOnce(&mut SectionStream<'_>) -> Result<(), SavedFileError>,
) -> Result<u64, SavedFileError> {
    let path = output.path().to_owned();
    let io = |error| SavedFileError::Io { path: path.clone(), error };
    let existing = match output.replaced().map(|before| kind.begins(before)) {
        Some(Ok(true)) => Existing::Replace,
        Some(Ok(false)) => return Err(SavedFileError::Foreign { path, kind }),
        Some(Err(error)) => return Err(io(error)),
        None => Existing::Keep,
    };
    let (mut length, mut failed) = (0, None);
    let fill = |file: &mut File| {
        // The header has the place of the table, which comes last.
        file.write_all(&[0; HEADER])?;
        let mut sections = SectionStream::new(file);
        if let Err(why) = write(&mut sections) {
            failed = Some(why);
            return Err(io::Error::other("not finished"));
        }
        let header;
        (header, length) = sections.finish(kind)?;
        file.write_all_at(&header, 0)
    };
    let written = output.write(existing, fill);
    if let Some(why) = failed {
        return Err(why);
    }
    written.map_err(|error| match error.kind() {
        // It was made meanwhile.
        ErrorKind::AlreadyExists => SavedFileError::Foreign { path: path.clone(), kind },
        _ => io(error),
    })?;
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::saved::container::{CHECKSUM, ENTRY, SavedFile};
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
