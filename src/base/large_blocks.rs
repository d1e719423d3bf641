//! Large blocks of the heap, beyond their part of a memory limit, in a temporary file.
//!
//! In: requests of the allocator; how much memory is left, by who looks at it. Out: blocks of the heap, or blocks
//! that are pages of the file, which the system writes back and takes when it needs memory. So lists that grow with a
//! recording (operations, occurrences of patterns, messages, what an archive is read into) obey a limit whatever part
//! of the program makes them, and their code knows nothing of it. Small blocks stay in memory: there would be too many
//! mappings.
//!
//! A block has its place in the file for itself, reserved before it is mapped, so that a full disk is no signal later:
//! the block stays in memory then. The file has no name and no other process has it open. Nothing here allocates, and
//! the table of blocks has a fixed size. A block holds the same in memory and in the file, so no answer depends on
//! where it is. An error of the disk below a mapped page ends the process, as one below swapped memory does. Cost: an
//! atomic addition for a large block; one in the file is cleared when it is made, and grows where it is.
//!
//! The third file with `unsafe`: it hands out mappings as blocks, and only those that it made come back here.

#[cfg(target_os = "linux")]
use rustix::fs::{FallocateFlags, fallocate};
use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::File;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Bytes of a block that is large.
pub const LARGE: usize = 256 << 10;
/// Blocks in the file, at most.
const MOST: usize = 4096;
/// Blocks begin at multiples of this many bytes, in memory as in the file: a page, on all machines.
const PAGE: usize = 64 << 10;

/// A new block begins at the next multiple of this many bytes in the file, so that it can grow; what is between takes
/// no space on a disk.
const APART: usize = 1 << 30;
/// Places after this one are not taken while there are others: files have a largest size.
const FARTHEST: usize = 1 << 40;

/// Those of this process.
pub static LARGE_BLOCKS: LargeBlocks = LargeBlocks::new();

/// See the module.
pub struct LargeBlocks {
    /// Bytes that may be in memory.
    room: AtomicU64,
    /// Bytes that are in memory.
    held: AtomicU64,
    /// Bytes that the process may still take, as far as it is known.
    left: AtomicU64,
    /// Number of blocks in the file.
    count: AtomicUsize,
    /// The most bytes that the file has held.
    most_in_file: AtomicU64,
    /// The file, once one is given.
    file: OnceLock<File>,
    table: Mutex<BlockTable>,
}

/// A block in the file.
#[derive(Clone, Copy)]
struct FileBlock {
    address: usize,
    /// In the file.
    at: usize,
    bytes: usize,
}

/// The blocks in the file: the first ones of the list, in the order of their places.
struct BlockTable {
    all: [FileBlock; MOST],
    bytes: u64,
}

/// Whole pages for this many bytes.
fn whole(bytes: usize) -> usize {
    bytes.div_ceil(PAGE).saturating_mul(PAGE)
}

impl BlockTable {
    /// A gap for this many bytes in the file: where a block is to be among the others, and its place.
    fn gap(&self, count: usize, bytes: usize) -> (usize, usize) {
        let last = self.all.get(..count).and_then(|used| used.last());
        let after = last.map_or(0, |last| (last.at + last.bytes).next_multiple_of(APART));
        if after < FARTHEST {
            return (count, after);
        }
        let mut end = 0;
        for (number, block) in self.all.iter().take(count).enumerate() {
            if block.at - end >= bytes {
                return (number, end);
            }
            end = block.at + block.bytes;
        }
        (count, end)
    }
}

impl LargeBlocks {
    const fn new() -> LargeBlocks {
        LargeBlocks {
            room: AtomicU64::new(u64::MAX),
            held: AtomicU64::new(0),
            left: AtomicU64::new(u64::MAX),
            count: AtomicUsize::new(0),
            most_in_file: AtomicU64::new(0),
            file: OnceLock::new(),
            table: Mutex::new(BlockTable { all: [FileBlock { address: 0, at: 0, bytes: 0 }; MOST], bytes: 0 }),
        }
    }

    /// At most this many bytes are in memory from now on, others in a file without a name. Nothing changes where the
    /// file system cannot take places back: they would hold old bytes when they are used again, and fill the disk.
    pub fn keep_in(&self, file: File, room: u64) {
        if punch(&file, 0, PAGE).is_ok() && self.file.set(file).is_ok() {
            self.room.store(room, Ordering::Relaxed);
        }
    }

    /// The process may still take this many bytes: a block that is larger goes to the file, where there is one.
    pub fn leave(&self, bytes: u64) {
        self.left.store(bytes, Ordering::Relaxed);
    }

    /// The most bytes that were in the file at a time.
    pub fn most_in_file(&self) -> u64 {
        self.most_in_file.load(Ordering::Relaxed)
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    fn table(&self) -> MutexGuard<'_, BlockTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number in the table of a block that is in the file.
    fn number(&self, table: &BlockTable, block: *mut u8) -> Option<usize> {
        table.all.get(..self.count())?.iter().position(|of| of.address == block as usize)
    }

    /// Add a block to the table.
    fn insert(&self, table: &mut BlockTable, number: usize, block: FileBlock) {
        let count = self.count();
        table.all.copy_within(number..count, number + 1);
        if let Some(place) = table.all.get_mut(number) {
            *place = block;
        }
        self.count.store(count + 1, Ordering::Relaxed);
        table.bytes += block.bytes as u64;
        self.most_in_file.fetch_max(table.bytes, Ordering::Relaxed);
    }

    /// Take a block out of the table; `None` if it is of the heap.
    fn remove(&self, table: &mut BlockTable, block: *mut u8) -> Option<FileBlock> {
        let (count, number) = (self.count(), self.number(table, block)?);
        let block = *table.all.get(number)?;
        table.all.copy_within(number + 1..count, number);
        self.count.store(count - 1, Ordering::Relaxed);
        table.bytes -= block.bytes as u64;
        Some(block)
    }

    /// A block of this many bytes in the file, all zero; null where it is to be in memory.
    #[cfg(target_os = "linux")]
    fn in_file(&self, bytes: usize) -> *mut u8 {
        use std::os::fd::AsRawFd;
        let Some(file) = self.file.get() else { return std::ptr::null_mut() };
        let (mut table, bytes) = (self.table(), whole(bytes));
        let count = self.count();
        let (number, at) = table.gap(count, bytes);
        let Ok(offset) = libc::off_t::try_from(at) else { return std::ptr::null_mut() };
        if count >= MOST || reserve(file, at, bytes).is_err() {
            return std::ptr::null_mut();
        }
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        #[allow(unsafe_code)]
        // SAFETY: it maps a place that no other block has, which exists now.
        let address =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, rights, libc::MAP_SHARED, file.as_raw_fd(), offset) };
        if address == libc::MAP_FAILED {
            return std::ptr::null_mut();
        }
        self.insert(&mut table, number, FileBlock { address: address as usize, at, bytes });
        address.cast()
    }

    /// A block of another size with the same content, if it is in the file and its place has room; null otherwise.
    #[cfg(target_os = "linux")]
    fn resized(&self, block: *mut u8, bytes: usize) -> *mut u8 {
        let (mut table, bytes) = (self.table(), whole(bytes));
        let (Some(number), Some(file)) = (self.number(&table, block), self.file.get()) else {
            return std::ptr::null_mut();
        };
        let next = table.all.get(..self.count()).and_then(|used| used.get(number + 1));
        let next = next.map_or(usize::MAX, |next| next.at);
        let Some(of) = table.all.get_mut(number).filter(|of| of.at.saturating_add(bytes) <= next) else {
            return std::ptr::null_mut();
        };
        if bytes > of.bytes && reserve(file, of.at + of.bytes, bytes - of.bytes).is_err() {
            return std::ptr::null_mut();
        }
        #[allow(unsafe_code)]
        // SAFETY: the mapping is the block, which its owner gives up for the one that is returned; after a shorter one
        // nothing is mapped, and a longer one has a place in the file that no other block has.
        let address = unsafe { libc::mremap(block.cast(), of.bytes, bytes, libc::MREMAP_MAYMOVE) };
        if address == libc::MAP_FAILED {
            return std::ptr::null_mut();
        }
        if bytes < of.bytes {
            // What is not taken back costs disk until the block is freed.
            let _ = punch(file, of.at + bytes, of.bytes - bytes);
        }
        let before = std::mem::replace(&mut of.bytes, bytes);
        of.address = address as usize;
        table.bytes = table.bytes + bytes as u64 - before as u64;
        self.most_in_file.fetch_max(table.bytes, Ordering::Relaxed);
        address.cast()
    }

    /// None where files have no such places.
    #[cfg(not(target_os = "linux"))]
    fn in_file(&self, _bytes: usize) -> *mut u8 {
        std::ptr::null_mut()
    }

    /// None where files have no such places.
    #[cfg(not(target_os = "linux"))]
    fn resized(&self, _block: *mut u8, _bytes: usize) -> *mut u8 {
        std::ptr::null_mut()
    }

    /// Give back a block if it is in the file.
    fn give_back(&self, block: *mut u8) -> bool {
        if self.count() == 0 {
            return false;
        }
        let mut table = self.table();
        let Some(FileBlock { at, bytes, .. }) = self.remove(&mut table, block) else { return false };
        #[cfg(target_os = "linux")]
        if let Some(file) = self.file.get() {
            #[allow(unsafe_code)]
            // SAFETY: the mapping is the block that its owner returns.
            unsafe {
                libc::munmap(block.cast(), bytes);
            }
            // `keep_in` has seen that the file system can do this.
            let _ = punch(file, at, bytes);
        }
        drop(table);
        true
    }

    /// True where this many more bytes are beyond the part of memory, or more than is left of all of it.
    fn is_beyond(&self, bytes: usize) -> bool {
        let [held, room, left] = [&self.held, &self.room, &self.left].map(|bytes| bytes.load(Ordering::Relaxed));
        held.saturating_add(bytes as u64) > room || bytes as u64 > left
    }

    /// So many bytes are in memory, in place of `before`.
    fn hold(&self, bytes: usize, before: usize) {
        self.held.fetch_add(bytes as u64, Ordering::Relaxed);
        self.held.fetch_sub(before as u64, Ordering::Relaxed);
        // Without a limit any number is left. With one, this holds until the next look at what the process holds.
        let left = self.left.load(Ordering::Relaxed);
        if left < u64::MAX {
            self.left.store(left.saturating_sub(bytes.saturating_sub(before) as u64), Ordering::Relaxed);
        }
    }

    /// A large block, all zero where that is asked for.
    pub fn alloc(&self, layout: Layout, zeroed: bool) -> *mut u8 {
        if self.is_beyond(layout.size()) && layout.align() <= 4096 {
            let block = self.in_file(layout.size());
            if !block.is_null() {
                return block;
            }
        }
        self.hold(layout.size(), 0);
        #[allow(unsafe_code)]
        // SAFETY: the system's allocator gets the arguments that came.
        unsafe {
            if zeroed { System.alloc_zeroed(layout) } else { System.alloc(layout) }
        }
    }

    /// Free a large block.
    ///
    /// # Safety
    ///
    /// As for [`GlobalAlloc::dealloc`]; the block is from here.
    #[allow(unsafe_code)]
    pub unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if !self.give_back(block) {
            self.held.fetch_sub(layout.size() as u64, Ordering::Relaxed);
            // SAFETY: the system's allocator gets the arguments that came.
            unsafe { System.dealloc(block, layout) }
        }
    }

    /// Change the size of a block that is large before or after.
    ///
    /// # Safety
    ///
    /// As for [`GlobalAlloc::realloc`].
    #[allow(unsafe_code)]
    pub unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let (is_large, becomes_large) = (layout.size() >= LARGE, size >= LARGE);
        let in_file = is_large && self.count() > 0 && self.number(&self.table(), block).is_some();
        if in_file && becomes_large {
            let resized = self.resized(block, size);
            if !resized.is_null() {
                return resized;
            }
        }
        let before = if is_large { layout.size() } else { 0 };
        let goes_to_file = becomes_large && self.is_beyond(size.saturating_sub(before));
        if !in_file && !goes_to_file {
            // SAFETY: the block is the system's.
            let grown = unsafe { System.realloc(block, layout, size) };
            if !grown.is_null() {
                self.hold(if becomes_large { size } else { 0 }, before);
            }
            return grown;
        }
        // SAFETY: the caller's size is one that a layout may have.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: both blocks have as many bytes as are copied, and are not the same; the old one is as it came.
        unsafe {
            let moved = if becomes_large { self.alloc(new, false) } else { System.alloc(new) };
            if !moved.is_null() {
                std::ptr::copy_nonoverlapping(block, moved, layout.size().min(size));
                if is_large { self.dealloc(block, layout) } else { System.dealloc(block, layout) }
            }
            moved
        }
    }
}

/// Reserve a place of a file.
#[cfg(target_os = "linux")]
fn reserve(file: &File, at: usize, bytes: usize) -> rustix::io::Result<()> {
    fallocate(file, FallocateFlags::empty(), at as u64, bytes as u64)
}

/// Take back a place of a file: it reads as zero from now on.
#[cfg(target_os = "linux")]
fn punch(file: &File, at: usize, bytes: usize) -> rustix::io::Result<()> {
    fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, at as u64, bytes as u64)
}

/// Not where files have no such places.
#[cfg(not(target_os = "linux"))]
fn punch(_file: &File, _at: usize, _bytes: usize) -> rustix::io::Result<()> {
    Err(rustix::io::Errno::OPNOTSUPP)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// The places of all blocks follow each other, and no two of them meet.
    fn is_sound(blocks: &LargeBlocks) -> bool {
        let table = blocks.table();
        let used = &table.all[..blocks.count()];
        used.windows(2).all(|two| two[0].at + two[0].bytes <= two[1].at)
    }

    #[test]
    fn blocks_in_the_file_hold_what_is_written_through_every_change_of_size() {
        let file = tempfile::tempfile().unwrap();
        let seen = file.try_clone().unwrap();
        let blocks = LargeBlocks::new();
        blocks.keep_in(file, 0);
        let layout = |bytes: usize| Layout::from_size_align(bytes, 16).unwrap();
        let sizes = [LARGE, LARGE + 1, 3 * LARGE, 10 * LARGE];
        assert!(blocks.is_beyond(1));
        let mut all: Vec<(*mut u8, usize)> =
            sizes.iter().map(|bytes| (blocks.alloc(layout(*bytes), true), *bytes)).collect();
        assert!(blocks.count() == 4 && is_sound(&blocks));
        #[allow(unsafe_code)]
        // SAFETY: each block has the bytes that are written and read.
        unsafe {
            for (number, (block, bytes)) in (1_u8..).zip(&all) {
                assert!((0..*bytes).all(|at| *block.add(at) == 0));
                block.write_bytes(number, *bytes);
            }
            for (number, (block, bytes)) in (1_u8..).zip(&mut all) {
                for size in [*bytes * 2, LARGE + 7, 1000, 2 * LARGE] {
                    *block = blocks.realloc(*block, layout(*bytes), size);
                    let kept = size.min(*bytes).min(1000);
                    assert!((0..kept).all(|at| *block.add(at) == number), "{number} {size}");
                    block.write_bytes(number, size);
                    *bytes = size;
                    assert!(is_sound(&blocks));
                }
            }
            assert!(seen.metadata().unwrap().len() >= 20 * LARGE as u64 && blocks.most_in_file() >= 17 * LARGE as u64);
            assert_eq!(blocks.table().bytes, 8 * LARGE as u64, "what a block no longer has is given back");
            // A gap is used again, and reads as zero.
            let (first, bytes) = all.remove(0);
            blocks.dealloc(first, layout(bytes));
            let again = blocks.alloc(layout(bytes), true);
            assert!((0..bytes).all(|at| *again.add(at) == 0) && is_sound(&blocks));
            all.push((again, bytes));
            for (block, bytes) in all {
                blocks.dealloc(block, layout(bytes));
            }
        }
        assert_eq!(blocks.count(), 0);
        blocks.room.store(u64::MAX, Ordering::Relaxed);
        let block = blocks.alloc(layout(LARGE), false);
        assert_eq!(blocks.count(), 0);
        #[allow(unsafe_code)]
        // SAFETY: it was allocated so.
        unsafe {
            blocks.dealloc(block, layout(LARGE));
        }
    }

    #[test]
    fn a_block_for_which_too_little_is_left_goes_to_the_file() {
        let blocks = LargeBlocks::new();
        blocks.keep_in(tempfile::tempfile().unwrap(), u64::MAX - 1);
        let layout = Layout::from_size_align(LARGE, 16).unwrap();
        blocks.leave(5 * LARGE as u64 / 2);
        let all = [(); 4].map(|()| blocks.alloc(layout, false));
        // Two of them were in memory before the next look.
        assert_eq!(blocks.count(), 2);
        #[allow(unsafe_code)]
        // SAFETY: they were allocated so.
        unsafe {
            all.into_iter().for_each(|block| blocks.dealloc(block, layout));
        }
        assert_eq!(blocks.count(), 0);
    }

    #[test]
    fn blocks_stay_in_memory_where_the_file_system_takes_no_place_back() {
        let blocks = LargeBlocks::new();
        blocks.keep_in(File::options().write(true).open("/dev/null").unwrap(), 0);
        assert_eq!(blocks.room.load(Ordering::Relaxed), u64::MAX);
    }
}
