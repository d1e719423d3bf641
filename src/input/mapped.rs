//! The bytes of a file: a read-only mapping of a regular file, or its contents read into memory.
//!
//! The one file with `unsafe`. The contract of a mapping (nobody changes the file) cannot be enforced: another
//! process may write to it, which changes values that we read and no more, since nothing here trusts two reads
//! to agree on anything but length; or truncate it, which turns an access behind the new end into SIGBUS. The length
//! is checked again after mapping, so that a file that shrank before is read instead.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The bytes of a file.
#[derive(Debug)]
pub struct Mapped(Source);

#[derive(Debug)]
enum Source {
    Map(memmap2::Mmap),
    Copy(Vec<u8>),
}

impl Mapped {
    /// Open `path`. What is not a regular file (a pipe, a device) is refused: its end is not known.
    pub fn open(path: &Path) -> io::Result<Mapped> {
        let mut file = File::open(path)?;
        let about = file.metadata()?;
        if !about.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        if about.len() > 0 {
            #[allow(unsafe_code)]
            // SAFETY: the mapping is private and read-only; see the head of this file for what remains.
            if let Ok(map) = unsafe { memmap2::MmapOptions::new().map_copy_read_only(&file) }
                && file.metadata()?.len() >= map.len() as u64
            {
                return Ok(Mapped(Source::Map(map)));
            }
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(Mapped(Source::Copy(bytes)))
    }

    /// All of it.
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            Source::Map(map) => map,
            Source::Copy(bytes) => bytes,
        }
    }
}
