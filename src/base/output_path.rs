//! The place that the path of an output means: an open folder, and a name in it.
//!
//! The path is followed by descriptors, one component after the other, so that nothing changes meaning between a
//! question and its use. A link is followed if its owner is root or this user: in a folder that others may write to,
//! any user can put a link to any file, and root can write to each. (`fs.protected_symlinks` knows this rule for sticky
//! folders, and cannot see a link that a program resolves by itself.) Cost: two system calls for each component.

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// The links that a path may pass through, as in the kernel.
const MOST_LINKS: u32 = 40;

/// Opens a folder on the way, which need not be readable.
#[cfg(target_os = "linux")]
const ON_THE_WAY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const ON_THE_WAY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A folder, and a name in it that is no link.
#[derive(Debug)]
pub(super) struct OutputPlace {
    pub folder: File,
    pub name: OsString,
}

impl OutputPlace {
    /// The place that `path` means. A link to a file means that file; a dangling link is refused, since it cannot be
    /// intended.
    pub fn of(path: &Path) -> io::Result<OutputPlace> {
        let wrong = |reason: &str| io::Error::new(ErrorKind::InvalidInput, reason);
        let mut folder = rustix::fs::openat(CWD, ".", ON_THE_WAY, Mode::empty())?;
        let mut pending: Vec<OsString> = reversed(path);
        let (mut links, mut last_was_link) = (0, false);
        loop {
            let part = pending.pop().ok_or_else(|| wrong("not a regular file"))?;
            if matches!(part.as_bytes(), b"/" | b"..") {
                folder = rustix::fs::openat(&folder, &part, ON_THE_WAY, Mode::empty())?;
                continue;
            }
            let about = existing(&folder, &part)?;
            match about.map(|about| (FileType::from_raw_mode(about.st_mode), about.st_uid)) {
                Some((FileType::Symlink, owner)) => {
                    if !is_trusted(owner) {
                        let name = part.to_string_lossy();
                        let reason = format!("the link `{name}` in it belongs to another user: name its target");
                        return Err(io::Error::new(ErrorKind::PermissionDenied, reason));
                    }
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(rustix::io::Errno::LOOP.into());
                    }
                    last_was_link |= pending.is_empty();
                    let target = rustix::fs::readlinkat(&folder, &part, Vec::new())?;
                    pending.extend(reversed(&PathBuf::from(OsStr::from_bytes(target.to_bytes()))));
                }
                None if pending.is_empty() && last_was_link => {
                    let reason = "it is a link to a file that is not there: remove the link";
                    return Err(io::Error::new(ErrorKind::NotFound, reason));
                }
                _ if pending.is_empty() => {
                    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
                    let folder = rustix::fs::openat(&folder, ".", flags, Mode::empty())?;
                    return Ok(OutputPlace { folder: folder.into(), name: part });
                }
                _ => folder = rustix::fs::openat(&folder, &part, ON_THE_WAY, Mode::empty())?,
            }
        }
    }
}

/// What a name in a folder is, itself and not the target of a link; `None` if there is nothing.
pub(super) fn existing(folder: &impl AsFd, name: &OsStr) -> io::Result<Option<Stat>> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(about) => Ok(Some(about)),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// True for files of root and of this user.
fn is_trusted(owner: u32) -> bool {
    [0, rustix::process::geteuid().as_raw()].contains(&owner)
}

/// The components of a path, the last one first.
fn reversed(path: &Path) -> Vec<OsString> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    parts.map(|part| part.as_os_str().to_owned()).rev().collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, symlink};

    #[test]
    fn a_path_leads_through_own_links_to_a_folder_and_a_name() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        std::fs::create_dir_all(path("a/b")).unwrap();
        std::fs::write(path("a/b/real"), "").unwrap();
        symlink("b", path("a/c")).unwrap();
        symlink(path("a/c/../b/./real"), path("link")).unwrap();
        symlink("loop", path("loop")).unwrap();
        symlink("nowhere", path("dangling")).unwrap();
        let of = |name: &str| OutputPlace::of(&path(name));
        for (name, last) in [("a/c/new", "new"), ("link", "real"), ("a/b/../c/real", "real")] {
            let place = of(name).unwrap();
            let is_b = place.folder.metadata().unwrap().ino() == std::fs::metadata(path("a/b")).unwrap().ino();
            assert!(is_b && place.name == last, "{name}: {place:?}");
        }
        let kind = |name: &str| of(name).unwrap_err().kind();
        assert_eq!((kind("no/such"), kind("dangling")), (ErrorKind::NotFound, ErrorKind::NotFound));
        assert_eq!(kind("a/.."), ErrorKind::InvalidInput);
        assert!(of("loop").is_err());
    }

    #[test]
    fn a_link_of_another_user_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let (link, folder) = (root.path().join("link"), root.path().join("folder"));
        symlink("victim", &link).unwrap();
        symlink(".", &folder).unwrap();
        std::fs::write(root.path().join("victim"), "").unwrap();
        if [&link, &folder].iter().any(|path| std::os::unix::fs::lchown(path, Some(65534), None).is_err()) {
            // Only root can give a link away.
            return;
        }
        for path in [link, folder.join("new")] {
            let error = OutputPlace::of(&path).unwrap_err();
            assert!(error.to_string().contains("belongs to another user"), "{error}");
        }
    }
}
