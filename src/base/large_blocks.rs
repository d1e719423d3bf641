//! Large blocks of the heap, beyond their part of a memory limit, in a temporary file.
//!
//! In: requests of the allocator. Out: blocks of the heap, or blocks that are pages of the file, which the system
//! writes back and takes when it needs memory. So lists that grow with a recording (operations, occurrences of
//! patterns, messages, what an archive is read into) obey a limit whatever part of the program makes them, and their
//! code knows nothing of it. Small blocks stay in memory: there would be too many mappings.
//!
//! A block has its place in the file for itself, reserved before it is mapped, so that a full disk is no signal later:
//! the block stays in memory then. The file has no name and no other process has it open. Nothing here allocates, and
//! the table of blocks has a fixed size. Which blocks go to the file depends on sizes alone, not on times. Cost: an
//! atomic addition for a large block; one in the file is cleared when it is made, and grows where it is.
//!
//! The third file with `unsafe`: it hands out mappings as blocks, and only those that it made come back here.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::File;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Bytes of a block that is large.
pub const LARGE: usize = 256 << 10;
/// Blocks in the file, at most.
const MOST: usize = 4096;
/// Blocks begin at multiples of so many bytes, in memory as in the file: a page, on all machines.
const PAGE: usize = 64 << 10;

/// A new block begins at the next multiple of so many bytes in the file, so that it can grow; what is between takes no
/// space on a disk.
const APART: usize = 1 << 30;
/// Places behind this one are not taken while there are others: files have a largest size.
const FARTHEST: usize = 1 << 40;

/// Bytes of large blocks that may be in memory.
static ROOM: AtomicU64 = AtomicU64::new(u64::MAX);
/// Bytes of those that are.
static HELD: AtomicU64 = AtomicU64::new(0);
/// Number of blocks in the file.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// The most bytes that the file has held.
static MOST_BYTES: AtomicU64 = AtomicU64::new(0);
/// The file, once one is given.
static FILE: OnceLock<File> = OnceLock::new();
static BLOCKS: Mutex<Blocks> = Mutex::new(Blocks { all: [FileBlock { address: 0, at: 0, bytes: 0 }; MOST], bytes: 0 });

/// A block in the file.
#[derive(Clone, Copy)]
struct FileBlock {
    address: usize,
    /// In the file.
    at: usize,
    bytes: usize,
}

/// The first [`COUNT`] are in use, in the order of their places.
struct Blocks {
    all: [FileBlock; MOST],
    bytes: u64,
}

/// At most so many bytes of large blocks are in memory from now on, others in a file without a name.
pub fn keep_in(file: File, room: u64) {
    // One file serves the whole process.
    let _ = FILE.set(file);
    ROOM.store(room, Ordering::Relaxed);
}

/// True where large blocks go to a file.
pub fn are_bounded() -> bool {
    ROOM.load(Ordering::Relaxed) < u64::MAX
}

/// The most bytes that were in the file at a time.
pub fn most_in_file() -> u64 {
    MOST_BYTES.load(Ordering::Relaxed)
}

fn blocks() -> MutexGuard<'static, Blocks> {
    BLOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whole pages for so many bytes.
fn whole(bytes: usize) -> usize {
    bytes.div_ceil(PAGE).saturating_mul(PAGE)
}

impl Blocks {
    /// A gap for so many bytes in the file: where a block is to be among the others, and its place.
    fn gap(&self, count: usize, bytes: usize) -> (usize, usize) {
        let last = self.all.get(..count).and_then(|used| used.last());
        let behind = last.map_or(0, |last| (last.at + last.bytes).next_multiple_of(APART));
        if behind < FARTHEST {
            return (count, behind);
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

    fn insert(&mut self, number: usize, block: FileBlock) {
        let count = COUNT.load(Ordering::Relaxed);
        self.all.copy_within(number..count, number + 1);
        if let Some(place) = self.all.get_mut(number) {
            *place = block;
        }
        COUNT.store(count + 1, Ordering::Relaxed);
        self.bytes += block.bytes as u64;
        MOST_BYTES.fetch_max(self.bytes, Ordering::Relaxed);
    }

    /// Take a block out of the table; `None` if it is of the heap.
    fn remove(&mut self, address: usize) -> Option<FileBlock> {
        let count = COUNT.load(Ordering::Relaxed);
        let used = self.all.get(..count)?;
        let number = used.iter().position(|block| block.address == address)?;
        let block = *used.get(number)?;
        self.all.copy_within(number + 1..count, number);
        COUNT.store(count - 1, Ordering::Relaxed);
        self.bytes -= block.bytes as u64;
        Some(block)
    }
}

/// A block of so many bytes in the file, all zero; null where it is to be in memory.
#[cfg(target_os = "linux")]
fn in_file(bytes: usize) -> *mut u8 {
    use std::os::fd::AsRawFd;
    let Some(file) = FILE.get() else { return std::ptr::null_mut() };
    let (mut blocks, bytes) = (blocks(), whole(bytes));
    let count = COUNT.load(Ordering::Relaxed);
    if count >= MOST {
        return std::ptr::null_mut();
    }
    let (number, at) = blocks.gap(count, bytes);
    let (Ok(offset), Ok(length)) = (libc::off_t::try_from(at), libc::off_t::try_from(bytes)) else {
        return std::ptr::null_mut();
    };
    #[allow(unsafe_code)]
    // SAFETY: the first call takes numbers; the second one maps a place that no other block has, which exists now.
    let address = unsafe {
        if libc::fallocate(file.as_raw_fd(), 0, offset, length) != 0 {
            return std::ptr::null_mut();
        }
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        libc::mmap(std::ptr::null_mut(), bytes, rights, libc::MAP_SHARED, file.as_raw_fd(), offset)
    };
    if address == libc::MAP_FAILED {
        return std::ptr::null_mut();
    }
    blocks.insert(number, FileBlock { address: address as usize, at, bytes });
    address.cast()
}

/// A block of another size with the same content, if it is in the file and its place has room; null otherwise.
#[cfg(target_os = "linux")]
fn resized(block: *mut u8, bytes: usize) -> *mut u8 {
    use std::os::fd::AsRawFd;
    let (mut blocks, bytes) = (blocks(), whole(bytes));
    let count = COUNT.load(Ordering::Relaxed);
    let used = blocks.all.get(..count).unwrap_or(&[]);
    let number = used.iter().position(|of| of.address == block as usize);
    let (Some(number), Some(file)) = (number, FILE.get()) else { return std::ptr::null_mut() };
    let next = used.get(number + 1).map_or(usize::MAX, |next| next.at);
    let Some(of) = blocks.all.get_mut(number).filter(|of| of.at.saturating_add(bytes) <= next) else {
        return std::ptr::null_mut();
    };
    let (shorter, longer) = (of.bytes.min(bytes), of.bytes.max(bytes));
    let range = (of.at.saturating_add(shorter) as libc::off_t, (longer - shorter) as libc::off_t);
    #[allow(unsafe_code)]
    // SAFETY: the mapping is the block, which its owner gives up for the one that is returned; behind a shorter one
    // nothing is mapped, and a longer one has a place in the file that no other block has.
    let address = unsafe {
        if bytes > of.bytes && libc::fallocate(file.as_raw_fd(), 0, range.0, range.1) != 0 {
            return std::ptr::null_mut();
        }
        libc::mremap(block.cast(), of.bytes, bytes, libc::MREMAP_MAYMOVE)
    };
    if address == libc::MAP_FAILED {
        return std::ptr::null_mut();
    }
    if bytes < of.bytes {
        #[allow(unsafe_code)]
        // SAFETY: it takes numbers; nothing is mapped at this place of the file any more.
        unsafe {
            let hole = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            libc::fallocate(file.as_raw_fd(), hole, range.0, range.1);
        }
    }
    let before = std::mem::replace(&mut of.bytes, bytes);
    of.address = address as usize;
    blocks.bytes = blocks.bytes + bytes as u64 - before as u64;
    MOST_BYTES.fetch_max(blocks.bytes, Ordering::Relaxed);
    address.cast()
}

/// None where files have no such places.
#[cfg(not(target_os = "linux"))]
fn in_file(_bytes: usize) -> *mut u8 {
    std::ptr::null_mut()
}

/// None where files have no such places.
#[cfg(not(target_os = "linux"))]
fn resized(_block: *mut u8, _bytes: usize) -> *mut u8 {
    std::ptr::null_mut()
}

/// Give back a block if it is in the file.
fn give_back(block: *mut u8) -> bool {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return false;
    }
    let mut blocks = blocks();
    let Some(FileBlock { at, bytes, .. }) = blocks.remove(block as usize) else { return false };
    #[cfg(target_os = "linux")]
    if let Some(file) = FILE.get() {
        use std::os::fd::AsRawFd;
        let hole = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        #[allow(unsafe_code)]
        // SAFETY: the mapping is the block that its owner returns; behind it nothing is mapped at this place of the
        // file, which reads as zero from now on. What is refused costs address space or disk, and no more.
        unsafe {
            libc::munmap(block.cast(), bytes);
            libc::fallocate(file.as_raw_fd(), hole, at as libc::off_t, bytes as libc::off_t);
        }
    }
    drop(blocks);
    true
}

/// True where so many more bytes of large blocks are beyond their part of memory.
fn is_beyond(bytes: usize) -> bool {
    HELD.load(Ordering::Relaxed).saturating_add(bytes as u64) > ROOM.load(Ordering::Relaxed)
}

/// A large block, all zero where that is asked for.
pub fn alloc(layout: Layout, zeroed: bool) -> *mut u8 {
    if is_beyond(layout.size()) && layout.align() <= 4096 {
        let block = in_file(layout.size());
        if !block.is_null() {
            return block;
        }
    }
    HELD.fetch_add(layout.size() as u64, Ordering::Relaxed);
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
pub unsafe fn dealloc(block: *mut u8, layout: Layout) {
    if !give_back(block) {
        HELD.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Change the size of a block that is large before or after.
///
/// # Safety
///
/// As for [`GlobalAlloc::realloc`].
#[allow(unsafe_code)]
pub unsafe fn realloc(block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
    let (is_large, becomes_large) = (layout.size() >= LARGE, size >= LARGE);
    let in_file = is_large && COUNT.load(Ordering::Relaxed) > 0 && is_in_file(block);
    if in_file && becomes_large {
        let resized = resized(block, size);
        if !resized.is_null() {
            return resized;
        }
    }
    let before = if is_large { layout.size() } else { 0 };
    let goes_to_file = becomes_large && is_beyond(size.saturating_sub(before));
    if !in_file && !goes_to_file {
        // SAFETY: the block is the system's.
        let grown = unsafe { System.realloc(block, layout, size) };
        if !grown.is_null() {
            HELD.fetch_add(if becomes_large { size as u64 } else { 0 }, Ordering::Relaxed);
            HELD.fetch_sub(before as u64, Ordering::Relaxed);
        }
        return grown;
    }
    // SAFETY: the caller's size is one that a layout may have.
    let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
    // SAFETY: both blocks have as many bytes as are copied, and are not the same; the old one is as it came.
    unsafe {
        let moved = if becomes_large { alloc(new, false) } else { System.alloc(new) };
        if !moved.is_null() {
            std::ptr::copy_nonoverlapping(block, moved, layout.size().min(size));
            if is_large { dealloc(block, layout) } else { System.dealloc(block, layout) }
        }
        moved
    }
}

fn is_in_file(block: *mut u8) -> bool {
    let blocks = blocks();
    blocks.all.iter().take(COUNT.load(Ordering::Relaxed)).any(|of| of.address == block as usize)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// The places of all blocks follow each other, and no two of them meet.
    fn is_sound() -> bool {
        let blocks = blocks();
        let used = &blocks.all[..COUNT.load(Ordering::Relaxed)];
        used.windows(2).all(|two| two[0].at + two[0].bytes <= two[1].at)
    }

    #[test]
    fn blocks_in_the_file_hold_what_is_written_through_every_change_of_size() {
        let file = tempfile::tempfile().unwrap();
        let seen = file.try_clone().unwrap();
        keep_in(file, 0);
        // The test's own allocator is the system's: blocks come from here alone.
        let layout = |bytes: usize| Layout::from_size_align(bytes, 16).unwrap();
        let sizes = [LARGE, LARGE + 1, 3 * LARGE, 10 * LARGE];
        assert!(is_beyond(1));
        let mut all: Vec<(*mut u8, usize)> = sizes.iter().map(|bytes| (alloc(layout(*bytes), true), *bytes)).collect();
        assert!(COUNT.load(Ordering::Relaxed) == 4 && is_sound());
        #[allow(unsafe_code)]
        // SAFETY: each block has the bytes that are written and read.
        unsafe {
            for (number, (block, bytes)) in (1_u8..).zip(&all) {
                assert!((0..*bytes).all(|at| *block.add(at) == 0));
                block.write_bytes(number, *bytes);
            }
            for (number, (block, bytes)) in (1_u8..).zip(&mut all) {
                for size in [*bytes * 2, LARGE + 7, 1000, 2 * LARGE] {
                    *block = realloc(*block, layout(*bytes), size);
                    let kept = size.min(*bytes).min(1000);
                    assert!((0..kept).all(|at| *block.add(at) == number), "{number} {size}");
                    block.write_bytes(number, size);
                    *bytes = size;
                    assert!(is_sound());
                }
            }
            assert!(seen.metadata().unwrap().len() >= 20 * LARGE as u64 && most_in_file() >= 17 * LARGE as u64);
            assert_eq!(blocks().bytes, 8 * LARGE as u64, "what a block no longer has is given back");
            // A gap is used again, and reads as zero.
            let (first, bytes) = all.remove(0);
            dealloc(first, layout(bytes));
            let again = alloc(layout(bytes), true);
            assert!((0..bytes).all(|at| *again.add(at) == 0) && is_sound());
            all.push((again, bytes));
            for (block, bytes) in all {
                dealloc(block, layout(bytes));
            }
        }
        assert_eq!(COUNT.load(Ordering::Relaxed), 0);
        ROOM.store(u64::MAX, Ordering::Relaxed);
        let block = alloc(layout(LARGE), false);
        assert_eq!(COUNT.load(Ordering::Relaxed), 0);
        #[allow(unsafe_code)]
        // SAFETY: it was allocated so.
        unsafe {
            dealloc(block, layout(LARGE));
        }
    }
}
