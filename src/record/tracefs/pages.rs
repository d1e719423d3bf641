//! The raw pages of a CPU's ring buffer, moved to a file while the kernel fills them.
//!
//! In: `trace_pipe_raw`. Out: a file without a name in the folder of the recording, so that nothing is left of it when
//! this program is killed. Full pages are spliced: the kernel hands them from the buffer to the pipe without a copy,
//! and writes them to the file. The last page, which is not full, is read when recording has ended. Cost: two system
//! calls for 16 pages.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, pipe, splice};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Bytes that are spliced at a time: what a pipe holds.
const PIPE: usize = 1 << 16;
/// The longest time between two looks for full pages.
const PAUSE: Duration = Duration::from_millis(50);

/// The pages of a CPU.
#[derive(Debug)]
pub struct DrainedCpu {
    pub cpu: u32,
    source: File,
    /// Both ends.
    pipe: (OwnedFd, OwnedFd),
    file: File,
    /// Why no more pages come.
    failed: Option<io::Error>,
}

impl DrainedCpu {
    /// The pages of the CPU whose folder this is, into a new file in another folder.
    pub fn open(folder: &Path, cpu: u32, into: &Path) -> io::Result<DrainedCpu> {
        let nonblocking = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
        let source = File::options().read(true).custom_flags(nonblocking).open(folder.join("trace_pipe_raw"))?;
        Ok(DrainedCpu { cpu, source, pipe: pipe()?, file: tempfile::tempfile_in(into)?, failed: None })
    }

    /// Move full pages until recording has ended.
    pub fn drain_until(&mut self, ends: &AtomicBool) {
        while !ends.load(Ordering::Acquire) && self.failed.is_none() {
            match self.splice_full_pages() {
                Ok(0) => self.wait(),
                Ok(_) => {}
                Err(e) => self.failed = Some(e),
            }
        }
    }

    /// Wait until the buffer is half full, a while at most.
    fn wait(&self) {
        let pause = Timespec { tv_sec: 0, tv_nsec: PAUSE.subsec_nanos().into() };
        let mut files = [PollFd::new(&self.source, PollFlags::IN)];
        let waited = poll(&mut files, Some(&pause));
        if waited.is_ok_and(|ready| ready > 0) {
            // The pages before a reader's own may be ready though none is full.
            std::thread::sleep(PAUSE / 50);
        }
    }

    /// Move the pages that are full now; the number of their bytes.
    fn splice_full_pages(&mut self) -> io::Result<usize> {
        let (mut moved, flags) = (0, SpliceFlags::NONBLOCK | SpliceFlags::MOVE);
        loop {
            let mut left = match splice(&self.source, None, &self.pipe.1, None, PIPE, flags) {
                Ok(0) | Err(Errno::AGAIN) => return Ok(moved),
                Err(Errno::INTR) => continue,
                Ok(bytes) => bytes,
                Err(e) => return Err(e.into()),
            };
            moved += left;
            while left > 0 {
                match splice(&self.pipe.0, None, &self.file, None, left, SpliceFlags::MOVE) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(bytes) => left -= bytes,
                    Err(Errno::INTR) => {}
                    Err(e) => return Err(e.into()),
                }
            }
        }
    }

    /// Read what is left, when recording has ended.
    fn read_rest(&mut self) -> io::Result<()> {
        self.splice_full_pages()?;
        let mut page = vec![0; PIPE];
        loop {
            match self.source.read(&mut page) {
                Ok(0) => return Ok(()),
                Ok(bytes) => self.file.write_all(page.get(..bytes).unwrap_or_default())?,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Why pages are missing; `None` where all are there.
    pub fn failure(&self) -> Option<String> {
        self.failed.as_ref().map(io::Error::to_string)
    }

    /// The file with all pages. The buffer is closed, so that its instance can be removed.
    pub fn into_file(self) -> File {
        self.file
    }
}

/// Move all pages that are left of a CPU, when recording has ended.
pub fn drain_all(cpu: &mut DrainedCpu) {
    if cpu.failed.is_none() {
        cpu.failed = cpu.read_rest().err();
    }
}
