//! Running out of memory: one line and exit status 1, with the terminal as it was, instead of SIGABRT.
//!
//! The second file with `unsafe` (an allocator has no other interface). It hands everything to the system's allocator,
//! large blocks by way of [`large_blocks`](super::large_blocks), and looks at what comes back. Nothing on the way out
//! may allocate: the line is put together on the stack and written to the descriptor. Code that can do with less asks
//! through [`try_reserve`] and gets an error; threads start only where there is [room for them](room_for_threads). A
//! limit of the address space (`ulimit -v`) ends here; a cgroup's ends in a kill that no process can catch. Cost: a
//! comparison per allocation.

use super::large_blocks::{LARGE, LARGE_BLOCKS};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::TryReserveError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The system's allocator, watched.
pub struct Watched;

thread_local! {
    /// This thread goes on without the memory that it asks for.
    static TRIES: Cell<bool> = const { Cell::new(false) };
}

/// A thread is ending the process.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Called before the process exits.
static FAREWELL: Mutex<Option<fn()>> = Mutex::new(None);

/// Run `farewell`, which may not allocate, before the process ends for want of memory.
pub fn on_exhaustion(farewell: fn()) {
    *FAREWELL.lock().unwrap_or_else(PoisonError::into_inner) = Some(farewell);
}

/// Make room for `more` elements, if there is memory for them: for sizes that data claims.
pub fn try_reserve<T>(list: &mut Vec<T>, more: usize) -> Result<(), TryReserveError> {
    let before = TRIES.replace(true);
    let reserved = list.try_reserve_exact(more);
    TRIES.set(before);
    reserved
}

/// Give the pages of freed blocks back to the system, where its C library keeps them: after a step that frees many
/// small blocks and before one that allocates large ones, which cannot use them.
pub fn return_free_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[allow(unsafe_code)]
    // SAFETY: it takes a number and touches free blocks only.
    let _ = unsafe { libc::malloc_trim(0) };
}

/// Address space that a thread takes to begin: its stack, what the C library and the runtime keep for it (the stack of
/// its signal handlers), and a step by which the heap grows meanwhile. 256 KiB beside the stack were 12 KiB too few.
const THREAD: usize = (2 << 20) + (384 << 10);

/// `Err` where there is no memory for this many threads to begin: the C library aborts the process when a thread that
/// has begun finds none for what it keeps of it, before any code could report it.
pub fn room_for_threads(number: usize) -> Result<(), TryReserveError> {
    try_reserve(&mut Vec::<u8>::new(), number.saturating_mul(THREAD))
}

#[allow(unsafe_code)]
// SAFETY: every call is the system allocator's own, with the arguments that came; only what it returns is looked at.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= LARGE {
            return checked(LARGE_BLOCKS.alloc(layout, false), layout.size());
        }
        // SAFETY: as above.
        checked(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= LARGE {
            return checked(LARGE_BLOCKS.alloc(layout, true), layout.size());
        }
        // SAFETY: as above.
        checked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if layout.size().max(size) >= LARGE {
            // SAFETY: as above.
            return checked(unsafe { LARGE_BLOCKS.realloc(block, layout, size) }, size);
        }
        // SAFETY: as above.
        checked(unsafe { System.realloc(block, layout, size) }, size)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if layout.size() >= LARGE {
            // SAFETY: as above.
            return unsafe { LARGE_BLOCKS.dealloc(block, layout) };
        }
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

#[inline(always)]
fn checked(block: *mut u8, size: usize) -> *mut u8 {
    if block.is_null() { exhausted(size) } else { block }
}

#[cold]
fn exhausted(size: usize) -> *mut u8 {
    if TRIES.get() {
        return std::ptr::null_mut();
    }
    // A second thread waits for the first to end the process.
    if ENDING.swap(true, Ordering::SeqCst) {
        loop {
            std::thread::park();
        }
    }
    if let Ok(farewell) = FAREWELL.try_lock()
        && let Some(farewell) = *farewell
    {
        farewell();
    }
    let mut line = [0; 160];
    let mut written = 0;
    let mut digits = [0; 20];
    for part in [b"whyslow: out of memory: ".as_slice(), decimal(size, &mut digits), REMEDY] {
        for (to, from) in line.iter_mut().skip(written).zip(part) {
            *to = *from;
            written += 1;
        }
    }
    let _ = rustix::io::write(rustix::stdio::stderr(), line.get(..written).unwrap_or(&[]));
    exit_now()
}

const REMEDY: &[u8] = b" bytes more are needed; raise the limit, use fewer --threads, or use a shorter trace\n";

/// A number in decimal, without an allocation.
fn decimal(mut number: usize, digits: &mut [u8; 20]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}

/// Leave without running what others left to be done at the end: it might allocate, or wait for this thread.
fn exit_now() -> ! {
    #[allow(unsafe_code)]
    // SAFETY: `_exit` takes any status and does not return.
    unsafe {
        libc::_exit(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_tried_may_fail() {
        let mut list: Vec<u64> = Vec::new();
        // Miri has no limit of memory but that of the addresses.
        let too_many = if cfg!(miri) { usize::MAX } else { usize::MAX / 16 };
        assert!(try_reserve(&mut list, too_many).is_err() && list.capacity() == 0);
        assert!(try_reserve(&mut list, 10).is_ok() && list.capacity() >= 10);
        assert!(!TRIES.get());
    }

    #[test]
    fn numbers_are_written_without_help() {
        for number in [0, 9, 10, 12345, usize::MAX] {
            assert_eq!(decimal(number, &mut [0; 20]), number.to_string().as_bytes());
        }
    }
}
