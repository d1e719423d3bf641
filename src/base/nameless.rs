//! New files without a name.

use rustix::fs::{Mode, OFlags, RawMode};
use std::fs::File;
use std::io;

/// The rights of a file that takes no other's place, of which the user's mask takes some.
pub(super) const NEW: RawMode = 0o666;

/// A new file without a name, with the rights that the user's mask leaves of `mode`; only Linux has such.
#[cfg(not(target_os = "linux"))]
pub(super) fn nameless(_folder: &File, _mode: RawMode) -> io::Result<Option<File>> {
    Ok(None)
}

/// A new file without a name, with the rights that the user's mask leaves of `mode`; nothing where the file system has
/// no such files.
#[cfg(target_os = "linux")]
pub(super) fn nameless(folder: &File, mode: RawMode) -> io::Result<Option<File>> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    match rustix::fs::openat(folder, ".", flags, Mode::from_raw_mode(mode)) {
        Ok(file) => Ok(Some(file.into())),
        // Where the sandbox refuses to write, a file with a name would be made and stay empty.
        Err(refused @ rustix::io::Errno::ACCESS) => Err(refused.into()),
        Err(_) => Ok(None),
    }
}
