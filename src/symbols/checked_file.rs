//! A file of symbols, read through a cache, that records whether reading it failed.

use crate::base::mapped::open_regular;
use object::read::ReadCache;
use std::cell::Cell;
use std::fs::File;
use std::io;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::rc::Rc;

pub(super) type Cache = ReadCache<CheckedFile>;

/// A file that records whether reading it failed, because a parser treats an unreadable part as missing.
pub(super) struct CheckedFile {
    file: File,
    pub failed: Rc<Cell<bool>>,
}

impl CheckedFile {
    pub fn open(path: &Path) -> io::Result<CheckedFile> {
        Ok(CheckedFile { file: open_regular(path)?, failed: Rc::default() })
    }
}

impl Read for CheckedFile {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.file.read(to).inspect_err(|_| self.failed.set(true))
    }
}

impl Seek for CheckedFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to).inspect_err(|_| self.failed.set(true))
    }
}
