//! The bytes of a file: a read-only mapping of a regular file, or its contents read into memory.
//!
//! One of two files with `unsafe` (the other is `base/allocator.rs`). The contract of a mapping (no process changes the
//! file) cannot be enforced: another process may write to it, which changes values that we read and no more, since
//! nothing here trusts two reads to agree on anything but length; or truncate it, which turns an access after the new
//! end into SIGBUS. A handler puts zeros in place of the pages that went away, so the reader goes on and meets damage,
//! and the mapping reports that it was [lost](Mapped::lost). Rejected: reading everything into memory (three times
//! slower, and as much memory as the trace has bytes), and a lock on the file, which no other process would obey.
//!
//! The handler may neither lock nor allocate: it walks a list of guards that only grows; the guard of a mapping that
//! is gone is used again. A fault elsewhere goes to the handler that was there before ours.

use crate::base::allocator::try_reserve;
use crate::base::sandbox;
use memmap2::MmapOptions;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::SystemTime;

/// Open a file for reading if it is a regular one, without ever waiting for it.
///
/// The kind of a file is only known once it is open: a pipe would wait for its writer, a terminal may become the
/// controlling one, and another file may have the name since the last question about it. So the file is opened without
/// waiting, then the descriptor is asked. A file that the sandbox allows, and whose name has gone over to another file
/// since, is opened as it was.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let open = |path: &Path| OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path);
    let file = open(path).or_else(|error| match sandbox::allowed(path) {
        Some(before) if error.kind() == io::ErrorKind::PermissionDenied => open(&before),
        _ => Err(error),
    })?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok(file)
}

/// The whole of a regular file that cannot reasonably have more than `most` bytes.
pub fn read_small(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {most} bytes")));
    }
    Ok(bytes)
}

/// The bytes of a file.
#[derive(Debug)]
pub struct Mapped(Source);

#[derive(Debug)]
enum Source {
    Map(Guarded),
    Copy(Vec<u8>),
}

impl Mapped {
    /// Open `path`. What is not a regular file (a pipe, a device) is refused: its end is not known.
    pub fn open(path: &Path) -> io::Result<Mapped> {
        let mut file = open_regular(path)?;
        let about = file.metadata()?;
        if about.len() > 0
            && let Some(map) = Guarded::new(&file, path, &about)
        {
            return Ok(Mapped(Source::Map(map)));
        }
        let mut bytes = Vec::new();
        try_reserve(&mut bytes, usize::try_from(about.len()).unwrap_or(usize::MAX))?;
        file.read_to_end(&mut bytes)?;
        Ok(Mapped(Source::Copy(bytes)))
    }

    /// Some bytes of a file that this process has made for itself.
    pub fn of_own(file: &File, start: u64, length: usize) -> io::Result<Mapped> {
        if length > 0
            && let Some(map) = Guarded::of_own(file, start, length)
        {
            return Ok(Mapped(Source::Map(map)));
        }
        let mut bytes = Vec::new();
        try_reserve(&mut bytes, length)?;
        bytes.resize(length, 0);
        file.read_exact_at(&mut bytes, start)?;
        Ok(Mapped(Source::Copy(bytes)))
    }

    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            Source::Map(map) => &map.bytes,
            Source::Copy(bytes) => bytes,
        }
    }

    /// Take the pages of a range out of the process; they come back when they are read again. Several workers may do it
    /// at once, unlike the system, which unmaps a file on one CPU.
    pub fn give_back(&self, range: Range<usize>) {
        let Source::Map(map) = &self.0 else { return };
        let (from, to) = (range.start, range.end.min(map.bytes.len()));
        if from < to {
            #[allow(unsafe_code)]
            // SAFETY: pages of a read-only mapping hold nothing of their own: the file's bytes, or the zeros that the
            // handler put in their place, are read again. What is refused costs time at the end, and no more.
            let _ = unsafe { map.bytes.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, from, to - from) };
        }
    }

    /// When the file was written last, as it was opened; unknown for a copy in memory.
    pub fn written(&self) -> Option<SystemTime> {
        match &self.0 {
            Source::Map(map) => map.written,
            Source::Copy(_) => None,
        }
    }

    /// True when the file was cut off after it was opened: its missing bytes read as zeros.
    pub fn lost(&self) -> bool {
        match &self.0 {
            Source::Map(map) => map.lost(),
            Source::Copy(_) => false,
        }
    }
}

/// A mapping that the handler knows of.
#[derive(Debug)]
struct Guarded {
    bytes: memmap2::Mmap,
    guard: &'static Guard,
    /// The file where it has a name: its path and inode.
    named: Option<(PathBuf, u64)>,
    written: Option<SystemTime>,
}

impl Guarded {
    /// `None` where the file cannot be mapped, or not safely.
    fn new(file: &File, path: &Path, about: &Metadata) -> Option<Guarded> {
        let named = Some((path.to_owned(), about.ino()));
        Guarded::map(file, &MmapOptions::new(), named)
    }

    /// A mapping of bytes of a file without a name; `None` where it cannot be mapped.
    fn of_own(file: &File, start: u64, length: usize) -> Option<Guarded> {
        Guarded::map(file, MmapOptions::new().offset(start).len(length), None)
    }

    fn map(file: &File, part: &MmapOptions, named: Option<(PathBuf, u64)>) -> Option<Guarded> {
        install()?;
        #[allow(unsafe_code)]
        // SAFETY: the mapping is private and read-only; see the head of this file for what remains.
        let bytes = unsafe { part.map_copy_read_only(file) }.ok()?;
        let guard = Guard::over(&bytes)?;
        let written = file.metadata().and_then(|about| about.modified()).ok();
        Some(Guarded { bytes, guard, named, written })
    }

    /// The handler saw it, or the rest of the last page went away, which raises no signal.
    fn lost(&self) -> bool {
        let is_shorter = |(path, inode): &(PathBuf, u64)| {
            let shorter = |now: Metadata| now.ino() == *inode && now.len() < self.bytes.len() as u64;
            std::fs::metadata(path).is_ok_and(shorter)
        };
        self.guard.lost.load(Ordering::Acquire) || self.named.as_ref().is_some_and(is_shorter)
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        FREE_GUARDS.fetch_add(1, Ordering::SeqCst);
        // Before the addresses are given back: a fault of other memory must not be taken for ours.
        self.guard.start.store(FREE, Ordering::SeqCst);
    }
}

/// A mapping, as the handler sees it.
#[derive(Debug)]
struct Guard {
    /// First address, or [`FREE`].
    start: AtomicUsize,
    /// Behind the last.
    end: AtomicUsize,
    lost: AtomicBool,
    next: AtomicPtr<Guard>,
}

const FREE: usize = usize::MAX;

/// The first guard of the list.
static GUARDS: AtomicPtr<Guard> = AtomicPtr::new(null_mut());
/// Number of guards that are free, or are about to be. While it is zero the list is not searched, which may have a
/// guard for each of thousands of files.
static FREE_GUARDS: AtomicUsize = AtomicUsize::new(0);
/// Held while a guard is taken or added.
static TAKING: Mutex<()> = Mutex::new(());

fn guards() -> impl Iterator<Item = &'static Guard> {
    #[allow(unsafe_code)]
    // SAFETY: guards are leaked boxes, never freed, and published after they were written.
    let reach = |at: &AtomicPtr<Guard>| unsafe { at.load(Ordering::Acquire).as_ref() };
    std::iter::successors(reach(&GUARDS), move |guard| reach(&guard.next))
}

impl Guard {
    /// The mapping that holds an address, and where it ends. A handler may call it: it neither locks nor allocates.
    fn of(address: usize) -> Option<(&'static Guard, usize)> {
        guards().find_map(|guard| {
            let (start, end) = (guard.start.load(Ordering::SeqCst), guard.end.load(Ordering::SeqCst));
            let holds = start != FREE && (start..end).contains(&address);
            // Between the two it may have been taken for another mapping: then the end is none of this beginning.
            (holds && guard.start.load(Ordering::SeqCst) == start).then_some((guard, end))
        })
    }

    fn over(bytes: &[u8]) -> Option<&'static Guard> {
        let start = bytes.as_ptr() as usize;
        let end = start.checked_add(bytes.len())?;
        let _taking = TAKING.lock().ok()?;
        let is_free = |guard: &&Guard| guard.start.load(Ordering::SeqCst) == FREE;
        let free = if FREE_GUARDS.load(Ordering::SeqCst) > 0 { guards().find(is_free) } else { None };
        let free = free.inspect(|_| _ = FREE_GUARDS.fetch_sub(1, Ordering::SeqCst));
        let guard = free.unwrap_or_else(|| {
            let next = AtomicPtr::new(GUARDS.load(Ordering::Acquire));
            let (start, end, lost) = (AtomicUsize::new(FREE), AtomicUsize::new(0), AtomicBool::new(false));
            let guard: &'static mut Guard = Box::leak(Box::new(Guard { start, end, lost, next }));
            GUARDS.store(guard, Ordering::Release);
            guard
        });
        // It is free until it has its beginning, which comes last.
        guard.lost.store(false, Ordering::SeqCst);
        guard.end.store(end, Ordering::SeqCst);
        guard.start.store(start, Ordering::SeqCst);
        Some(guard)
    }
}

static PAGE: AtomicUsize = AtomicUsize::new(0);
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Install the handler once; `None` where that is refused.
fn install() -> Option<()> {
    static DONE: OnceLock<bool> = OnceLock::new();
    let install = || {
        PAGE.store(rustix::param::page_size(), Ordering::SeqCst);
        #[allow(unsafe_code)]
        // SAFETY: both structures are plain data, for which zeros are valid; the handler only does what a signal
        // handler may do, and runs on the alternate stack where there is one.
        unsafe {
            let mut ours: libc::sigaction = std::mem::zeroed();
            let mut before: libc::sigaction = std::mem::zeroed();
            ours.sa_sigaction = on_bus_error as *const () as usize;
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            if libc::sigaction(libc::SIGBUS, &ours, &mut before) != 0 {
                return false;
            }
            BEFORE.set(before).is_ok()
        }
    };
    DONE.get_or_init(install).then_some(())
}

#[allow(unsafe_code)]
extern "C" fn on_bus_error(signal: libc::c_int, about: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel hands a valid record to a handler installed with SA_SIGINFO.
    let (address, by_kernel) = unsafe { ((*about).si_addr() as usize, (*about).si_code > 0) };
    if by_kernel && let Some((guard, end)) = Guard::of(address) {
        let page = address & !(PAGE.load(Ordering::SeqCst) - 1);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        // SAFETY: the pages from here to the end belong to this mapping, which is alive, since it was read just
        // now; they are replaced by zeros of the same kind (private, read-only).
        let zeros = unsafe { libc::mmap(page as *mut libc::c_void, end - page, libc::PROT_READ, flags, -1, 0) };
        if zeros != libc::MAP_FAILED {
            guard.lost.store(true, Ordering::Release);
            return;
        }
    }
    // Not ours: the fault happens again under the handler that was there before.
    // SAFETY: `before` was filled in by the kernel, and zeros are the default action; null asks for nothing back.
    unsafe {
        let default: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, BEFORE.get().unwrap_or(&default), null_mut());
        if !by_kernel {
            libc::raise(signal);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn file(pages: usize) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![7u8; pages * 4096 + 100]).unwrap();
        file
    }

    #[test]
    fn a_file_that_shrinks_reads_as_zeros_and_says_so() {
        let (shrinking, still) = (file(64), file(3));
        let (mapped, other) = (Mapped::open(shrinking.path()).unwrap(), Mapped::open(still.path()).unwrap());
        assert!(!mapped.lost());
        shrinking.as_file().set_len(4096 + 10).unwrap();
        let kept = mapped.bytes().iter().filter(|b| **b == 7).count();
        assert_eq!((mapped.bytes().len(), kept), (64 * 4096 + 100, 4096 + 10));
        assert!(mapped.lost() && !other.lost());
        assert!(other.bytes().iter().all(|b| *b == 7));
        // Pages that were given back hold the same.
        for (map, kept) in [(&mapped, kept), (&other, 3 * 4096 + 100)] {
            for range in [0..5000, 4096..usize::MAX, 70..70, usize::MAX - 1..usize::MAX] {
                map.give_back(range);
                assert_eq!(map.bytes().iter().filter(|b| **b == 7).count(), kept);
            }
        }
    }

    #[test]
    fn a_file_that_shrinks_within_its_last_page_says_so_too() {
        let shrinking = file(0);
        let mapped = Mapped::open(shrinking.path()).unwrap();
        shrinking.as_file().set_len(50).unwrap();
        assert_eq!(mapped.bytes().iter().filter(|b| **b == 7).count(), 50);
        assert!(mapped.lost());
    }

    /// The list of guards alone, over memory that is no mapping: what Miri can run.
    #[test]
    fn guards_know_their_bytes_and_are_taken_again() {
        let bytes = [vec![1u8; 100], vec![2; 200]];
        for _ in 0..3 {
            let taken: Vec<&Guard> = bytes.iter().map(|b| Guard::over(b).unwrap()).collect();
            for (guard, bytes) in taken.iter().zip(&bytes) {
                let (start, end) = (guard.start.load(Ordering::SeqCst), guard.end.load(Ordering::SeqCst));
                assert_eq!((start, end - start), (bytes.as_ptr() as usize, bytes.len()));
                assert!(guards().any(|g| std::ptr::eq(g, *guard)) && !guard.lost.load(Ordering::SeqCst));
            }
            let of = |address| Guard::of(address).map(|(guard, end)| (std::ptr::from_ref(guard) as usize, end));
            let (first, last) = (bytes[1].as_ptr() as usize, bytes[1].as_ptr() as usize + 199);
            let expected = Some((std::ptr::from_ref(taken[1]) as usize, last + 1));
            assert!(of(first) == expected && of(last) == expected && of(last + 1) != expected);
            // Others come and go while the list is walked.
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        let own = vec![3u8; 50];
                        let guard = Guard::over(&own).unwrap();
                        assert!(of(own.as_ptr() as usize).is_some() && of(first) == expected);
                        guard.start.store(FREE, Ordering::SeqCst);
                    });
                }
            });
            taken.iter().for_each(|guard| guard.start.store(FREE, Ordering::SeqCst));
            assert_eq!(Guard::of(first).map(|(_, end)| end), None);
        }
    }

    #[test]
    fn guards_are_used_again() {
        let files: Vec<_> = (0..8).map(|_| file(1)).collect();
        let open = || files.iter().map(|f| Mapped::open(f.path()).unwrap()).collect::<Vec<_>>();
        drop(open());
        let known = guards().count();
        for _ in 0..50 {
            assert!(open().iter().all(|m| !m.lost()));
        }
        // Other tests may map files at the same time.
        assert!(guards().count() < known + 100, "{} guards", guards().count());
    }
}
