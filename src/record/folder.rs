//! The folder of a recording: private to its owner, and reached by a descriptor only.
//!
//! A recording shows what every process does, and the addresses of the kernel. The recorders write it as root, often
//! below a folder of another user, who could put a link in place of a file, or of the folder. So the folder is made
//! with mode 700 and never taken over from others, and after that it has no path: [`RecordingFolder::join`] goes
//! through the open descriptor, which stays at this folder whatever its name comes to mean.

use super::RecordError;
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags};
use rustix::process::{Gid, Uid};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// The rights of the folder and, with the recorders' mask, of what is in it.
const PRIVATE: Mode = Mode::RWXU;

/// An open folder that no other user can enter.
#[derive(Debug)]
pub(super) struct RecordingFolder {
    path: PathBuf,
    open: File,
}

impl RecordingFolder {
    /// Make it, with the folders above. An existing one is taken if it is empty, of this user, and closed to others.
    pub fn create(path: &Path) -> Result<RecordingFolder, RecordError> {
        let wrong = |reason: String| RecordError::option(format!("--output {}", path.display()), reason);
        // With a slash at its end a link would be followed.
        let plain = path.components().as_path();
        if let Some(above) = plain.parent().filter(|above| !above.as_os_str().is_empty()) {
            std::fs::create_dir_all(above).map_err(|e| wrong(e.to_string()))?;
        }
        match rustix::fs::mkdirat(CWD, plain, PRIVATE) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(e) => return Err(wrong(io::Error::from(e).to_string())),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = rustix::fs::openat(CWD, plain, flags, Mode::empty());
        let open = open.map_err(|e| wrong(format!("{}; name a folder that is not there", io::Error::from(e))))?;
        match foreign(&open).map_err(|e| wrong(e.to_string()))? {
            Some(reason) => Err(wrong(format!("the folder {reason}; name a new one"))),
            None => Ok(RecordingFolder { path: path.to_owned(), open: open.into() }),
        }
    }

    /// Its path, to be shown.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of one of its files, for this process and for one that it starts, until that runs another program.
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        Path::new("/proc/self/fd").join(self.open.as_raw_fd().to_string()).join(name)
    }

    /// Give it and all in it to another user. The folder is the last one, so that the user enters it when all is done.
    pub fn give_to(&self, uid: u32, gid: u32) -> io::Result<()> {
        let owner = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        give(&self.open, owner)?;
        Ok(rustix::fs::fchown(&self.open, owner.0, owner.1)?)
    }

    /// A new file in it.
    pub fn create_file(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.open, Path::new(name), flags, Mode::RUSR | Mode::WUSR)?.into())
    }
}

/// Give what is in a folder to another user. Links are not followed.
fn give(folder: &File, owner: (Option<Uid>, Option<Gid>)) -> io::Result<()> {
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if entry.file_type().is_dir() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            give(&rustix::fs::openat(folder, name, flags, Mode::empty())?.into(), owner)?;
        }
        rustix::fs::chownat(folder, name, owner.0, owner.1, AtFlags::SYMLINK_NOFOLLOW)?;
    }
    Ok(())
}

/// The reason why a folder is not a new one of this user; `None` if it is.
fn foreign(folder: &impl std::os::fd::AsFd) -> io::Result<Option<&'static str>> {
    let about = rustix::fs::fstat(folder)?;
    let others = Mode::RWXG | Mode::RWXO;
    if about.st_uid != rustix::process::geteuid().as_raw() {
        return Ok(Some("belongs to another user, who could replace what is recorded"));
    }
    for entry in Dir::read_from(folder)? {
        if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
            return Ok(Some("is not empty"));
        }
    }
    Ok(Mode::from_raw_mode(about.st_mode).intersects(others).then_some("is open to others (its mode is not 700)"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn refused(path: &Path) -> String {
        RecordingFolder::create(path).unwrap_err().to_string()
    }

    #[test]
    fn create_makes_a_private_folder_and_takes_only_an_empty_private_one() {
        let above = tempfile::tempdir().unwrap();
        let path = above.path().join("a/b/");
        RecordingFolder::create(&path).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o700);
        RecordingFolder::create(&path).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o750)).unwrap();
        assert!(refused(&path).contains("is open to others"));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
        std::fs::write(path.join("kallsyms"), "").unwrap();
        assert!(refused(&path).contains("is not empty"));
    }

    #[test]
    fn create_follows_no_link_and_join_stays_at_the_folder() {
        let above = tempfile::tempdir().unwrap();
        let (real, link) = (above.path().join("real"), above.path().join("link"));
        let folder = RecordingFolder::create(&real).unwrap();
        symlink(&real, &link).unwrap();
        for path in [link.clone(), link.join("")] {
            assert!(refused(&path).contains("name a folder"), "{}", path.display());
        }
        // Another folder has the name now.
        std::fs::rename(&real, above.path().join("moved")).unwrap();
        std::fs::create_dir(&real).unwrap();
        folder.create_file(OsStr::new("record.log")).unwrap();
        assert!(folder.join("record.log").exists() && above.path().join("moved/record.log").exists());
        assert_eq!(std::fs::read_dir(&real).unwrap().count(), 0);
        // A link in place of a new file is no file.
        symlink(above.path().join("victim"), folder.join("kallsyms")).unwrap();
        assert!(folder.create_file(OsStr::new("kallsyms")).is_err());
        assert!(!above.path().join("victim").exists());
    }
}
