//! Blocks of bytes that are added one after the other and taken in the same order, once.
//!
//! In: blocks. Out: the same blocks. The first ones are in memory, as far as their part of the memory budget goes, all
//! others in the temporary file, each with a checksum: a block that cannot be read back as it was written is an error.

use super::spill::{SpillArea, SpillError, SpillFile, SpillPlace};
use std::sync::Arc;

/// A block in memory or in the file.
#[derive(Debug)]
enum Block {
    Held(Vec<u8>),
    Spilled { area: Arc<SpillArea>, place: SpillPlace, checksum: u32 },
}

/// The blocks.
#[derive(Debug)]
pub struct BlockList {
    blocks: Vec<Block>,
    /// Bytes of those in memory.
    held: u64,
    /// The most of them.
    room: u64,
    /// Where the others go; without it all are in memory.
    area: Option<Arc<SpillArea>>,
}

impl BlockList {
    /// No blocks yet. Of those that come, `room` bytes stay in memory, and all where there is no file.
    pub fn new(room: u64, file: Option<Arc<SpillFile>>) -> BlockList {
        let area = file.map(|file| Arc::new(SpillArea::new(file)));
        BlockList { blocks: Vec::new(), held: 0, room, area }
    }

    /// Add a block.
    pub fn push(&mut self, mut bytes: Vec<u8>) -> Result<(), SpillError> {
        let length = bytes.len() as u64;
        let block = match &self.area {
            Some(area) if self.held + length > self.room => {
                let place = area.write(&bytes)?;
                Block::Spilled { area: area.clone(), place, checksum: crc32fast::hash(&bytes) }
            }
            _ => {
                self.held += length;
                bytes.shrink_to_fit();
                Block::Held(bytes)
            }
        };
        self.blocks.push(block);
        Ok(())
    }

    /// All blocks in order; each is gone from memory once it was taken.
    pub fn take(self) -> impl Iterator<Item = Result<Vec<u8>, SpillError>> {
        self.blocks.into_iter().map(|block| match block {
            Block::Held(bytes) => Ok(bytes),
            Block::Spilled { area, place, checksum } => {
                let bytes = area.read(place)?;
                match crc32fast::hash(&bytes) == checksum {
                    true => Ok(bytes),
                    false => Err(area.unreadable(&"a checksum is wrong")),
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;
    use std::path::Path;

    #[test]
    fn blocks_beyond_their_part_come_back_from_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let kept = tempfile::tempfile_in(folder.path()).unwrap();
        let file = Arc::new(SpillFile::of(Box::new(kept.try_clone().unwrap()), folder.path()));
        let blocks: Vec<Vec<u8>> = (0..20u8).map(|n| vec![n; usize::from(n) * 10]).collect();
        let list = |room: u64, file: Option<&Arc<SpillFile>>| {
            let mut list = BlockList::new(room, file.cloned());
            blocks.iter().for_each(|block| list.push(block.clone()).unwrap());
            list
        };
        let all = |list: BlockList| list.take().collect::<Result<Vec<_>, _>>();
        let spilled = list(1 << 10, Some(&file));
        assert!((900..=1024).contains(&spilled.held), "{}", spilled.held);
        assert!(kept.metadata().unwrap().len() > 500);
        assert_eq!(all(spilled).unwrap(), blocks);
        assert_eq!(kept.metadata().unwrap().len(), 0, "the file is emptied");
        for held in [list(u64::MAX, Some(&file)), list(1 << 10, None)] {
            assert_eq!(kept.metadata().unwrap().len(), 0);
            assert_eq!(all(held).unwrap(), blocks);
        }
        // Changed behind our back: an error, and no block.
        let damaged = list(1 << 10, Some(&file));
        kept.write_all_at(&[7], 300).unwrap();
        let error = all(damaged).unwrap_err().to_string();
        assert!(error.contains("checksum") && error.contains("TMPDIR"), "{error}");
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let full = std::fs::File::options().write(true).open("/dev/full");
        let Ok(full) = full else { return };
        let file = Arc::new(SpillFile::of(Box::new(full), Path::new("/some/folder")));
        let mut list = BlockList::new(0, Some(file));
        assert!(matches!(list.push(vec![1]), Err(SpillError::Write { .. })));
    }
}
