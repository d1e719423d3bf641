//! Writing a file: it appears whole or not at all, and leaves nothing behind when that is broken off.
//!
//! A file without a name is filled and flushed to the disk (`O_TMPFILE`); then it gets its name, at once. Only to take
//! another file's place does it need a second, hidden name for a moment, because a link cannot replace. Where the file
//! system has no files without a name, it has the hidden name from the start. A process that is killed in that time
//! leaves the hidden name: the writer holds a lock on the file, so that the next one can distinguish leftovers from
//! work in progress, and removes them. Last the folder is flushed, or a crash of the machine could take the name back.
//! Cost: the bytes, two flushes, and the entries of the folder.

use super::allocator::room_for_threads;
use rustix::fs::{AtFlags, CWD, FlockOperation};
#[cfg(target_os = "linux")]
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// How hidden names begin.
const HIDDEN: &str = ".whyslow-";

/// Hidden names that exist now, for the code that ends the process. A writer holds the lock until the name exists; the
/// code that ends the process keeps it, so that none is made after they were removed.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The treatment of an existing file of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Leave it: the error is [`ErrorKind::AlreadyExists`].
    Keep,
    /// Take its place.
    Replace,
}

/// Write `bytes` to a file. A link to a file means that file; a dangling link is refused, since it cannot be intended.
pub fn write(path: &Path, bytes: &[u8], existing: Existing) -> io::Result<()> {
    write_with(path, existing, |file| file.write_all(bytes))
}

/// The same for a file that `fill` writes piece by piece.
pub fn write_with(path: &Path, existing: Existing, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let target = target(path)?;
    let folder = target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    remove_leftovers(folder);
    match nameless(folder) {
        Some(mut file) => {
            filled(&mut file, fill)?;
            name(&file, &target, folder, existing)?;
        }
        None => {
            let (mut file, hidden) = hidden_file(folder)?;
            let placed = filled(&mut file, fill).and_then(|()| place(&hidden, &target, existing));
            hidden.forget();
            placed?;
        }
    }
    // Some file systems flush no folders.
    File::open(folder)?.sync_all().or_else(|e| if e.kind() == ErrorKind::InvalidInput { Ok(()) } else { Err(e) })
}

/// Remove what a signal would leave behind, and allow no more: called on the way out. Waits for a writer that is just
/// making a name, but not for long.
pub fn remove_unfinished() {
    const TRIES: u32 = 200;
    for _ in 0..TRIES {
        if let Ok(mut all) = UNFINISHED.try_lock() {
            remove_all(&mut all);
            return std::mem::forget(all);
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

fn remove_all(all: &mut Vec<PathBuf>) {
    all.drain(..).for_each(|path| drop(std::fs::remove_file(path)));
}

/// From now on a signal that ends the process removes it, too: for those who write and have no other use for signals.
pub fn remove_on_signals() -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    room_for_threads(1)?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        if let Some(signal) = signals.forever().next() {
            remove_unfinished();
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    })?;
    Ok(())
}

/// The file that a path means.
fn target(path: &Path) -> io::Result<PathBuf> {
    match std::fs::symlink_metadata(path) {
        Ok(about) if about.is_symlink() => std::fs::canonicalize(path).map_err(|e| match e.kind() {
            ErrorKind::NotFound => {
                io::Error::new(e.kind(), "it is a link to a file that is not there: remove the link")
            }
            _ => e,
        }),
        Ok(about) if !about.is_file() => Err(io::Error::new(ErrorKind::InvalidInput, "not a regular file")),
        _ => Ok(path.to_owned()),
    }
}

/// A new file without a name, readable as the user's mask allows; only Linux has such.
#[cfg(not(target_os = "linux"))]
fn nameless(_folder: &Path) -> Option<File> {
    None
}

/// A new file without a name, readable as the user's mask allows.
#[cfg(target_os = "linux")]
fn nameless(folder: &Path) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, folder, flags, Mode::from_raw_mode(0o666)).ok().map(File::from)
}

fn filled(file: &mut File, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    // Not every file system has locks; without one either no process takes the file for a leftover, or all do.
    let _ = rustix::fs::flock(&*file, FlockOperation::LockExclusive);
    fill(file)?;
    file.sync_all()
}

/// Give a file without a name its name.
fn name(file: &File, target: &Path, folder: &Path, existing: Existing) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let here = format!("/proc/self/fd/{}", file.as_raw_fd());
    let link = |to: &Path| rustix::fs::linkat(CWD, &here, CWD, to, AtFlags::SYMLINK_FOLLOW);
    match link(target) {
        Err(rustix::io::Errno::EXIST) if existing == Existing::Replace => {
            let ((), hidden) = Hidden::made(folder, |path| Ok(link(path)?))?;
            let placed = std::fs::rename(&hidden.0, target);
            hidden.forget();
            placed
        }
        other => Ok(other?),
    }
}

/// A hidden name, and that it is to be removed.
struct Hidden(PathBuf);

impl Hidden {
    /// A new name, at which `make` makes something.
    fn made<T>(folder: &Path, make: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<(T, Hidden)> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{HIDDEN}{}-{number}", std::process::id()));
        let mut all = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
        let made = make(&path)?;
        all.push(path.clone());
        Ok((made, Hidden(path)))
    }

    /// It is gone, or has become another.
    fn forget(self) {
        let _ = std::fs::remove_file(&self.0);
        if let Ok(mut all) = UNFINISHED.lock() {
            all.retain(|path| *path != self.0);
        }
    }
}

fn hidden_file(folder: &Path) -> io::Result<(File, Hidden)> {
    Hidden::made(folder, |path| File::options().write(true).create_new(true).open(path))
}

/// Put a file with a hidden name where it belongs.
fn place(hidden: &Hidden, target: &Path, existing: Existing) -> io::Result<()> {
    match existing {
        Existing::Replace => std::fs::rename(&hidden.0, target),
        Existing::Keep => match std::fs::hard_link(&hidden.0, target) {
            // A file system without links: no other process may come between the two steps.
            Err(e) if e.kind() != ErrorKind::AlreadyExists && !target.exists() => std::fs::rename(&hidden.0, target),
            other => other,
        },
    }
}

/// Remove hidden files without a writer.
fn remove_leftovers(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().as_encoded_bytes().starts_with(HIDDEN.as_bytes());
        if !is_ours || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        let path = entry.path();
        let unlocked = |file: &File| rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive).is_ok();
        if File::open(&path).is_ok_and(|file| unlocked(&file)) {
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn names(folder: &Path) -> Vec<String> {
        let mut all: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        all.sort();
        all
    }

    #[test]
    fn a_file_is_replaced_only_when_told_to_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write(&path, b"one", Existing::Keep).unwrap();
        assert_eq!(write(&path, b"two", Existing::Keep).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
        write(&path, b"three", Existing::Replace).unwrap();
        assert_eq!((std::fs::read(&path).unwrap(), names(folder.path())), (b"three".to_vec(), vec!["a".to_owned()]));
    }

    #[test]
    fn the_way_with_a_hidden_name_does_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        for (text, existing, done) in
            [("one", Existing::Keep, true), ("two", Existing::Keep, false), ("three", Existing::Replace, true)]
        {
            let (mut file, hidden) = hidden_file(folder.path()).unwrap();
            filled(&mut file, |file| file.write_all(text.as_bytes())).unwrap();
            let placed = place(&hidden, &path, existing);
            hidden.forget();
            assert_eq!(placed.is_ok(), done);
        }
        assert_eq!((std::fs::read(&path).unwrap(), names(folder.path())), (b"three".to_vec(), vec!["a".to_owned()]));
    }

    #[test]
    fn leftovers_go_and_work_in_progress_stays() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(".whyslow-1-0"), "left").unwrap();
        std::fs::write(folder.path().join(".other"), "not ours").unwrap();
        let (mut file, hidden) = hidden_file(folder.path()).unwrap();
        filled(&mut file, |file| file.write_all(b"in progress")).unwrap();
        write(&folder.path().join("a"), b"", Existing::Keep).unwrap();
        let mut expected = vec![".other".to_owned(), "a".to_owned()];
        expected.push(hidden.0.file_name().unwrap().to_str().unwrap().to_owned());
        expected.sort();
        assert_eq!(names(folder.path()), expected);
        remove_all(&mut UNFINISHED.lock().unwrap());
        assert_eq!(names(folder.path()), [".other", "a"]);
    }

    #[test]
    fn links_mean_what_they_lead_to() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link, dangling) =
            (folder.path().join("real"), folder.path().join("link"), folder.path().join("dangling"));
        std::fs::write(&real, "old").unwrap();
        symlink("real", &link).unwrap();
        symlink("nowhere", &dangling).unwrap();
        write(&link, b"new", Existing::Replace).unwrap();
        assert!(std::fs::read(&real).unwrap() == b"new" && link.is_symlink());
        assert!(write(&dangling, b"new", Existing::Replace).unwrap_err().to_string().contains("link"));
        assert_eq!(names(folder.path()), ["dangling", "link", "real"]);
    }
}
