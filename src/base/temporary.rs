//! Temporary files for recordings that are unpacked: without a name from the beginning, so that no end of the process
//! leaves them behind.
//!
//! The process gives up the folder of temporary files before it reads a byte of its input, so the files are opened
//! before ([`prepare`]), as many as recordings may need. What one reader unpacks from a recording is in one file, one
//! part after the other. A small recording can unpack to much more than its size: it may take most of the
//! free space and no more.

use super::mapped::Mapped;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// The files that are not in use.
static OPEN: Mutex<Vec<TemporaryFile>> = Mutex::new(Vec::new());

/// Mappings begin at multiples of the largest page of any machine.
const ALIGNED: u64 = 1 << 16;

/// A file without a name.
#[derive(Debug)]
struct TemporaryFile {
    file: File,
    folder: PathBuf,
    end: u64,
    /// True if it goes back to [`OPEN`].
    is_prepared: bool,
}

impl TemporaryFile {
    fn new(is_prepared: bool) -> io::Result<TemporaryFile> {
        let folder = std::env::temp_dir();
        let said = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", folder.display()));
        let file = tempfile::tempfile_in(&folder).map_err(said)?;
        Ok(TemporaryFile { file, folder, end: 0, is_prepared })
    }

    /// The bytes that one unpacked recording may take: nine tenths of what is free.
    fn room(&self) -> u64 {
        let free = rustix::fs::fstatvfs(&self.file).map(|about| about.f_bavail.saturating_mul(about.f_frsize));
        free.map_or(u64::MAX, |free| free / 10 * 9)
    }
}

/// Open as many files as recordings may have to be unpacked. Where that fails, unpacking fails, and says why.
pub fn prepare(files: usize) {
    let new = (0..files).map_while(|_| TemporaryFile::new(true).ok());
    OPEN.lock().unwrap_or_else(PoisonError::into_inner).extend(new);
}

/// The paths of the prepared files, which the sandbox has to allow where one of them is opened once more.
pub fn paths() -> Vec<PathBuf> {
    let path = |open: &TemporaryFile| PathBuf::from(format!("/proc/self/fd/{}", open.file.as_raw_fd()));
    OPEN.lock().unwrap_or_else(PoisonError::into_inner).iter().map(path).collect()
}

/// A whole file, empty.
pub fn take() -> io::Result<File> {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    match open.iter().position(|one| one.end == 0) {
        Some(at) => Ok(open.swap_remove(at).file),
        None => TemporaryFile::new(false).map(|new| new.file),
    }
}

/// The bytes that `fill` writes, mapped.
pub fn mapped(fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<Mapped> {
    let prepared = OPEN.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let mut temporary = prepared.map_or_else(|| TemporaryFile::new(false), Ok)?;
    let mapped = temporary.mapped(fill);
    if temporary.is_prepared {
        OPEN.lock().unwrap_or_else(PoisonError::into_inner).push(temporary);
    }
    mapped
}

impl TemporaryFile {
    fn mapped(&mut self, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<Mapped> {
        let start = self.end;
        let room = self.room();
        let mut bounded = Bounded { file: self, at: start, most: start.saturating_add(room) };
        let mut buffered = BufWriter::with_capacity(1 << 18, &mut bounded);
        fill(&mut buffered)?;
        buffered.flush()?;
        drop(buffered);
        let end = bounded.at;
        self.end = end.next_multiple_of(ALIGNED);
        let length = usize::try_from(end - start).map_err(|_| io::Error::from(ErrorKind::FileTooLarge))?;
        Mapped::of_own(&self.file, start, length)
    }
}

/// Writes up to a bound.
struct Bounded<'a> {
    file: &'a TemporaryFile,
    at: u64,
    most: u64,
}

impl Write for Bounded<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let end = self.at.saturating_add(bytes.len() as u64);
        if end > self.most {
            let folder = self.file.folder.display();
            let reason = format!("unpacked it needs more than is free in {folder}: name another folder by TMPDIR");
            return Err(io::Error::new(ErrorKind::StorageFull, reason));
        }
        self.file.file.write_all_at(bytes, self.at)?;
        self.at = end;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_one_file_follow_each_other_and_have_no_name() {
        let mut file = TemporaryFile::new(false).unwrap();
        let texts = [vec![1; 70_000], Vec::new(), vec![3; 5]];
        let all: Vec<Mapped> = texts.iter().map(|text| file.mapped(|out| out.write_all(text)).unwrap()).collect();
        assert!(all.iter().zip(&texts).all(|(mapped, text)| mapped.bytes() == text && !mapped.lost()));
        assert_eq!((file.end, rustix::fs::fstat(&file.file).unwrap().st_nlink), (3 * ALIGNED, 0));
        // After an error the place is used again.
        assert!(file.mapped(|_| Err(ErrorKind::InvalidData.into())).is_err());
        assert_eq!(file.mapped(|out| out.write_all(b"x")).unwrap().bytes(), b"x");
        assert_eq!(file.end, 4 * ALIGNED);
    }

    #[test]
    fn more_than_is_free_is_an_error_that_names_the_remedy() {
        let file = TemporaryFile::new(false).unwrap();
        let mut bounded = Bounded { file: &file, at: 0, most: 10 };
        bounded.write_all(&[0; 10]).unwrap();
        let error = bounded.write_all(&[0]).unwrap_err().to_string();
        assert!(error.contains("TMPDIR"), "{error}");
        assert!(file.room() > 0 && file.file.metadata().unwrap().len() == 10);
    }
}
