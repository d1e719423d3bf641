//! A temporary file without a name, for what memory has no room for.
//!
//! In: blocks of bytes. Out: their places, by which they are read back with positioned reads. The file is made in the
//! folder for temporary files, or, where that is memory itself (tmpfs), in `/var/tmp`; it has no name, so nothing is
//! left however the process ends. It is made before the sandbox begins, and takes no space until a block is written.
//! Blocks are not changed, and not taken back one by one: the file is emptied when its last [`SpillArea`] ends.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The folder where temporary files outlive a restart: on a disk, where `/tmp` is memory.
const ON_DISK: &str = "/var/tmp";

/// What keeps the bytes: a file, or a test's replacement.
pub trait Medium: std::fmt::Debug + Send + Sync {
    /// Write all of `bytes` at a place.
    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()>;
    /// Read as many bytes as `bytes` has.
    fn read(&self, bytes: &mut [u8], at: u64) -> io::Result<()>;
    /// Give back all space.
    fn clear(&self);
}

impl Medium for File {
    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.write_all_at(bytes, at)
    }

    fn read(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        self.read_exact_at(bytes, at)
    }

    fn clear(&self) {
        // What cannot be given back now is when the process ends.
        let _ = self.set_len(0);
    }
}

/// Why the file failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpillError {
    /// It cannot be written.
    #[error(
        "the states of the recording and its executions do not fit into memory, and {} cannot hold them ({why}); make \
         room there, name another folder by TMPDIR, or raise --memory",
        folder.display()
    )]
    Write {
        /// Where it is.
        folder: PathBuf,
        /// The system's reason.
        why: String,
    },
    /// It cannot be read, or has other bytes than were written.
    #[error("the temporary file in {} cannot be read back ({why}); name another folder by TMPDIR", folder.display())]
    Read {
        /// Where it is.
        folder: PathBuf,
        /// The reason.
        why: String,
    },
}

/// The place of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpillPlace {
    offset: u64,
    length: u32,
}

/// How far the file is in use.
#[derive(Debug, Default)]
struct Extent {
    end: u64,
    areas: usize,
}

#[derive(Debug)]
pub struct SpillFile {
    medium: Box<dyn Medium>,
    folder: PathBuf,
    in_memory: bool,
    extent: Mutex<Extent>,
}

impl SpillFile {
    /// A new file; `None` where no folder for temporary files can be written.
    pub fn new() -> Option<SpillFile> {
        let first = std::env::temp_dir();
        let on_disk = Path::new(ON_DISK);
        let folders = match is_memory(&first) {
            true if !is_memory(on_disk) => [on_disk, &first],
            _ => [&first, on_disk],
        };
        folders.into_iter().find_map(|folder| {
            let medium = Box::new(tempfile::tempfile_in(folder).ok()?);
            Some(SpillFile { in_memory: is_memory(folder), ..SpillFile::of(medium, folder) })
        })
    }

    /// A file that is kept by `medium`, which `folder` names in errors.
    #[doc(hidden)]
    pub fn of(medium: Box<dyn Medium>, folder: &Path) -> SpillFile {
        SpillFile { medium, folder: folder.to_owned(), in_memory: false, extent: Mutex::default() }
    }

    /// True where the folder is a file system in memory (tmpfs), so that the file saves none.
    pub fn is_in_memory(&self) -> bool {
        self.in_memory
    }

    /// The folder of the file.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Another file in the same folder; `None` where that is memory, or has no room for a file.
    pub fn another(&self) -> Option<File> {
        if self.in_memory { None } else { tempfile::tempfile_in(&self.folder).ok() }
    }

    fn extent(&self) -> MutexGuard<'_, Extent> {
        self.extent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// True where files of a folder are in memory.
#[cfg(target_os = "linux")]
fn is_memory(folder: &Path) -> bool {
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58f6;
    // The kernel's number has 32 bits.
    rustix::fs::statfs(folder).is_ok_and(|about| [TMPFS, RAMFS].contains(&(about.f_type as u64 & 0xffff_ffff)))
}

/// True for a folder in memory: elsewhere the system does not say.
#[cfg(not(target_os = "linux"))]
fn is_memory(_folder: &Path) -> bool {
    false
}

/// The use of a file by one owner, whose blocks are gone when it ends.
#[derive(Debug)]
pub struct SpillArea {
    file: Arc<SpillFile>,
}

impl SpillArea {
    /// Use a file.
    pub fn new(file: Arc<SpillFile>) -> SpillArea {
        file.extent().areas += 1;
        SpillArea { file }
    }

    /// Write a block.
    pub fn write(&self, bytes: &[u8]) -> Result<SpillPlace, SpillError> {
        let failed = |why: String| SpillError::Write { folder: self.file.folder.clone(), why };
        let length = u32::try_from(bytes.len()).map_err(|_| failed("a block is too long".to_owned()))?;
        let offset = {
            let mut extent = self.file.extent();
            let offset = extent.end;
            extent.end += u64::from(length);
            offset
        };
        self.file.medium.write(bytes, offset).map_err(|error| failed(error.to_string()))?;
        Ok(SpillPlace { offset, length })
    }

    /// Read a block back.
    pub fn read(&self, place: SpillPlace) -> Result<Vec<u8>, SpillError> {
        let mut bytes = vec![0; place.length as usize];
        self.file.medium.read(&mut bytes, place.offset).map_err(|error| self.unreadable(&error))?;
        Ok(bytes)
    }

    /// The error of a block that cannot be used.
    pub fn unreadable(&self, why: &dyn std::fmt::Display) -> SpillError {
        SpillError::Read { folder: self.file.folder.clone(), why: why.to_string() }
    }
}

impl Drop for SpillArea {
    fn drop(&mut self) {
        let mut extent = self.file.extent();
        extent.areas -= 1;
        if extent.areas == 0 {
            extent.end = 0;
            self.file.medium.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read_back_and_the_file_is_emptied() {
        let folder = tempfile::tempdir().unwrap();
        let kept = tempfile::tempfile_in(folder.path()).unwrap();
        let file = Arc::new(SpillFile::of(Box::new(kept.try_clone().unwrap()), folder.path()));
        let areas = [SpillArea::new(Arc::clone(&file)), SpillArea::new(Arc::clone(&file))];
        let blocks: Vec<Vec<u8>> = (0..20u8).map(|n| vec![n; usize::from(n) * 100]).collect();
        let places: Vec<SpillPlace> =
            blocks.iter().enumerate().map(|(n, block)| areas[n % 2].write(block).unwrap()).collect();
        for (n, (block, place)) in blocks.iter().zip(&places).enumerate() {
            assert_eq!(areas[n % 2].read(*place).unwrap(), *block);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the file has no name");
        let [first, second] = areas;
        drop(first);
        assert_eq!(kept.metadata().unwrap().len(), 19_000);
        // Cut off behind our back: an error, and no block.
        kept.set_len(10_000).unwrap();
        assert!(matches!(second.read(places[19]), Err(SpillError::Read { .. })));
        drop(second);
        assert_eq!((kept.metadata().unwrap().len(), file.extent().end), (0, 0));
    }

    #[test]
    fn a_full_disk_is_an_error_that_names_the_folder() {
        let full = File::options().write(true).open("/dev/full");
        let Ok(full) = full else { return };
        let area = SpillArea::new(Arc::new(SpillFile::of(Box::new(full), Path::new("/some/folder"))));
        let error = area.write(&[1; 100]).unwrap_err().to_string();
        assert!(error.contains("/some/folder") && error.contains("TMPDIR") && error.contains("No space"), "{error}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn memory_is_told_from_a_disk() {
        // Where there is a tmpfs at all, it is this.
        let shared = Path::new("/dev/shm");
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
        if mounts.lines().any(|line| line.contains(" /dev/shm tmpfs ")) {
            assert!(is_memory(shared));
        }
        assert!(!is_memory(Path::new("/proc")) && !is_memory(Path::new("/no/such/folder")));
    }
}
