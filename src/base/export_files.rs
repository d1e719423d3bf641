//! Files for what the interface exports, opened before the process gives up its rights.
//!
//! In: the folder of the exports. Out: files without a name in it. An export fills one and gives it its name, so that
//! the process needs no right to write into files that are there. Rights cannot be changed any more, so some of the
//! files are private: they take the places of files with fewer rights than a new one. Where the file system has no
//! files without a name there are none, and the folder has to be writable. Cost: an inode for each file.

use super::nameless::{NEW, nameless};
use rustix::fs::{CWD, Dev, Mode, OFlags, RawMode};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Files with the rights of new ones, and as many private ones.
const MOST: usize = 32;

/// The rights of a private file.
const PRIVATE: RawMode = 0o600;

static OPEN: Mutex<Option<ExportFiles>> = Mutex::new(None);

/// See the module.
#[derive(Debug)]
struct ExportFiles {
    /// Device and number of the folder.
    place: (Dev, u64),
    new: Vec<File>,
    private: Vec<File>,
    /// The rights of new ones.
    rights: RawMode,
}

impl ExportFiles {
    /// Open the files in a folder; none where that is not possible.
    fn open(folder: &File) -> Option<ExportFiles> {
        let files = |mode| (0..MOST).map(|_| nameless(folder, mode).ok().flatten()).collect::<Option<Vec<_>>>();
        let (new, private) = (files(NEW)?, files(PRIVATE)?);
        let rights = rustix::fs::fstat(new.first()?).ok()?.st_mode & 0o777;
        Some(ExportFiles { place: place(folder).ok()?, new, private, rights })
    }

    fn take(&mut self, folder: &File, before: Option<RawMode>) -> io::Result<Option<File>> {
        if place(folder)? != self.place {
            return Ok(None);
        }
        let has_fewer = |mode: RawMode| self.rights & !mode != 0;
        let files = if before.is_some_and(has_fewer) { &mut self.private } else { &mut self.new };
        files.pop().map(Some).ok_or_else(|| io::Error::other("no more exports: start whyslow anew"))
    }
}

/// Device and number.
fn place(folder: &impl AsFd) -> io::Result<(Dev, u64)> {
    let about = rustix::fs::fstat(folder)?;
    Ok((about.st_dev, about.st_ino))
}

/// Open the files for exports into a folder. Returns the folder, or nothing where it has to be writable.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
pub(super) fn prepare(path: &Path) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = File::from(rustix::fs::openat(CWD, path, flags, Mode::empty()).ok()?);
    let files = ExportFiles::open(&folder)?;
    *OPEN.lock().unwrap_or_else(PoisonError::into_inner) = Some(files);
    Some(folder)
}

/// Close the files: the process has kept its rights.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
pub(super) fn close() {
    *OPEN.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// A file for an export into a folder, where one with the rights `before` may have the name; nothing for a folder in
/// which none were opened.
pub(super) fn take(folder: &File, before: Option<RawMode>) -> io::Result<Option<File>> {
    match &mut *OPEN.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(files) => files.take(folder, before),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn files_are_of_their_folder_and_come_to_an_end() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let [folder, elsewhere] = [&one, &other].map(|folder| File::open(folder.path()).unwrap());
        // Not every file system has files without a name.
        let Some(mut files) = ExportFiles::open(&folder) else { return };
        assert!(files.take(&elsewhere, None).unwrap().is_none());
        let mode = |file: &File| file.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&files.take(&folder, Some(0)).unwrap().unwrap()), PRIVATE);
        let rights = files.rights;
        assert_eq!(mode(&files.take(&folder, Some(rights)).unwrap().unwrap()), rights);
        while files.take(&folder, None).is_ok_and(|file| file.is_some()) {}
        assert!(files.take(&folder, None).unwrap_err().to_string().contains("start whyslow anew"));
        assert!(files.take(&folder, Some(0)).unwrap().is_some());
        assert_eq!(std::fs::read_dir(one.path()).unwrap().count(), 0);
    }
}
