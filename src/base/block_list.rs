//! Blocks of bytes that are added one after the other, and read or taken in the same order.
//!
//! In: blocks. Out: the same blocks. The first ones are in memory, as far as the room goes that some lists share, all
//! others in the temporary file, each with a checksum: a block that cannot be read back as it was written is an error.

use super::budget::Budget;
use super::ctx::Ctx;
use super::spill::{SpillArea, SpillError, SpillFile, SpillPlace};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A block in memory or in the file.
#[derive(Debug)]
enum Block {
    Held(Vec<u8>),
    Spilled { place: SpillPlace, checksum: u32 },
}

/// The memory for the blocks of some lists.
#[derive(Debug)]
pub struct BlockRoom {
    /// Bytes of those in memory.
    held: AtomicU64,
    /// The most of them.
    most: u64,
    /// Where the others go; without it all are in memory.
    area: Option<SpillArea>,
}

impl BlockRoom {
    /// Of the blocks that come, `most` bytes stay in memory, and all where there is no file.
    pub fn new(most: u64, file: Option<Arc<SpillFile>>) -> Arc<BlockRoom> {
        Arc::new(BlockRoom { held: AtomicU64::new(0), most, area: file.map(SpillArea::new) })
    }

    /// The room for what is known of executions while others are looked at: a part of the budget.
    pub fn of(ctx: &Ctx) -> Arc<BlockRoom> {
        let budget = ctx.budget.as_ref();
        BlockRoom::new(budget.map_or(u64::MAX, Budget::for_paths), budget.and_then(|budget| budget.file.clone()))
    }

    /// A block in memory, or in the file.
    fn keep(&self, bytes: &mut Vec<u8>) -> Result<Block, SpillError> {
        let length = bytes.len() as u64;
        if let Some(area) = &self.area
            && self.held.load(Ordering::Relaxed) + length > self.most
        {
            let block = Block::Spilled { place: area.write(bytes)?, checksum: crc32fast::hash(bytes) };
            bytes.clear();
            return Ok(block);
        }
        self.held.fetch_add(length, Ordering::Relaxed);
        bytes.shrink_to_fit();
        Ok(Block::Held(std::mem::take(bytes)))
    }

    fn read(&self, place: SpillPlace, checksum: u32) -> Result<Vec<u8>, SpillError> {
        // Only an area writes blocks.
        let Some(area) = &self.area else { return Ok(Vec::new()) };
        let bytes = area.read(place)?;
        if crc32fast::hash(&bytes) == checksum { Ok(bytes) } else { Err(area.unreadable(&"a checksum is wrong")) }
    }

    fn release(&self, blocks: &[Block]) {
        let held = |block: &Block| if let Block::Held(bytes) = block { bytes.len() as u64 } else { 0 };
        self.held.fetch_sub(blocks.iter().map(held).sum(), Ordering::Relaxed);
    }
}

#[derive(Debug)]
pub struct BlockList {
    blocks: Vec<Block>,
    room: Arc<BlockRoom>,
}

impl BlockList {
    /// No blocks yet.
    pub fn new(room: &Arc<BlockRoom>) -> BlockList {
        BlockList { blocks: Vec::new(), room: Arc::clone(room) }
    }

    /// Add a block; its bytes are gone from the vector, which may keep its memory.
    pub fn push(&mut self, bytes: &mut Vec<u8>) -> Result<(), SpillError> {
        self.blocks.push(self.room.keep(bytes)?);
        Ok(())
    }

    /// Add the blocks of another list in the same room.
    pub fn append(&mut self, other: &mut BlockList) {
        self.blocks.append(&mut other.blocks);
    }

    /// All blocks in order.
    pub fn all(&self) -> impl Iterator<Item = Result<Cow<'_, [u8]>, SpillError>> {
        self.blocks.iter().map(|block| match block {
            Block::Held(bytes) => Ok(Cow::Borrowed(bytes.as_slice())),
            Block::Spilled { place, checksum } => self.room.read(*place, *checksum).map(Cow::Owned),
        })
    }

    /// All blocks in order; each is gone from memory once it was taken.
    pub fn take(mut self) -> impl Iterator<Item = Result<Vec<u8>, SpillError>> {
        let (blocks, room) = (std::mem::take(&mut self.blocks), Arc::clone(&self.room));
        room.release(&blocks);
        blocks.into_iter().map(move |block| match block {
            Block::Held(bytes) => Ok(bytes),
            Block::Spilled { place, checksum } => room.read(place, checksum),
        })
    }
}

impl Drop for BlockList {
    fn drop(&mut self) {
        self.room.release(&self.blocks);
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
            let mut list = BlockList::new(&BlockRoom::new(room, file.cloned()));
            blocks.iter().for_each(|block| list.push(&mut block.clone()).unwrap());
            list
        };
        let all = |list: BlockList| list.take().collect::<Result<Vec<_>, _>>();
        let spilled = list(1 << 10, Some(&file));
        let held = |list: &BlockList| list.room.held.load(Ordering::Relaxed);
        assert!((900..=1024).contains(&held(&spilled)), "{}", held(&spilled));
        assert!(kept.metadata().unwrap().len() > 500);
        let read: Result<Vec<_>, _> = spilled.all().map(|block| block.map(Cow::into_owned)).collect();
        assert_eq!(read.unwrap(), blocks);
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
        let mut list = BlockList::new(&BlockRoom::new(0, Some(file)));
        assert!(matches!(list.push(&mut vec![1]), Err(SpillError::Write { .. })));
    }

    #[test]
    fn lists_share_their_room() {
        let room = BlockRoom::new(100, None);
        let mut lists = [BlockList::new(&room), BlockList::new(&room)];
        lists.iter_mut().for_each(|list| list.push(&mut vec![1; 40]).unwrap());
        let held = || room.held.load(Ordering::Relaxed);
        let [mut first, mut second] = lists;
        first.append(&mut second);
        drop(second);
        assert_eq!((held(), first.all().count()), (80, 2));
        drop(first);
        assert_eq!(held(), 0);
    }
}
