//! Writing a file: it appears whole or not at all, and leaves nothing behind when that is broken off.
//!
//! A file without a name is filled and flushed to the disk (`O_TMPFILE`); then it gets its name, at once. Only to take
//! another file's place does it need a second, hidden name for a moment, because a link cannot replace. Where the file
//! system has no files without a name, it has the hidden name from the start. A process that is killed in that time
//! leaves the hidden name: the writer holds a lock on the file, so that the next one can distinguish leftovers from
//! work in progress, and removes them. Last the folder is flushed, or a crash of the machine could take the name back.
//! Cost: the bytes, two flushes, and the entries of the folder.

use super::allocator::room_for_threads;
use super::export_files;
use super::nameless::{NEW, nameless};
use super::output_path::{OutputPlace, existing};
use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, RawMode, Stat};
use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How hidden names begin.
const HIDDEN: &str = ".whyslow-";

/// Hidden names that exist now, with their folders, for the code that ends the process. A writer holds the lock until
/// the name exists; the code that ends the process keeps it, so that none is made after they were removed.
static UNFINISHED: Mutex<Vec<(Arc<File>, OsString)>> = Mutex::new(Vec::new());

/// The treatment of an existing file of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Leave it: the error is [`ErrorKind::AlreadyExists`].
    Keep,
    /// Take its place.
    Replace,
}

/// Write `bytes` to a file; see [`Output`].
pub fn write(path: &Path, bytes: &[u8], existing: Existing) -> io::Result<()> {
    Output::open(path)?.write(existing, |file| file.write_all(bytes))
}

/// A file to be written, which has its name once it is whole.
///
/// All that needs rights is done when it is opened: then the process can give them up. What has the name at the end is
/// only replaced if it is a regular file without other names, of this user, or of any user where this one is root; the
/// new file has its owner and rights.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    folder: Arc<File>,
    name: OsString,
    replaced: Option<File>,
    file: File,
    hidden: Option<Hidden>,
}

impl Output {
    /// Open the file that `path` means, for now without that name.
    pub fn open(path: &Path) -> io::Result<Output> {
        let OutputPlace { folder, name } = OutputPlace::of(path)?;
        let before = replaceable(&folder, &name)?;
        let mode = before.as_ref().map_or(NEW, |about| about.st_mode & 0o777);
        let replaced = before.as_ref().map(|_| open_beside(&folder, &name)).transpose()?;
        remove_leftovers(&folder);
        let folder = Arc::new(folder);
        let prepared = export_files::take(&folder, before.as_ref().map(|about| about.st_mode & 0o777))?;
        let (file, hidden) = match prepared.map_or_else(|| nameless(&folder, mode), |file| Ok(Some(file)))? {
            Some(file) => (file, None),
            None => {
                let (file, hidden) = hidden_file(&folder, mode)?;
                (file, Some(hidden))
            }
        };
        if let Some(before) = before {
            keep_rights(&file, &before);
        }
        // Not every file system has locks; without one either no process takes the file for a leftover, or all do.
        let _ = rustix::fs::flock(&file, FlockOperation::LockExclusive);
        Ok(Output { path: path.to_owned(), folder, name, replaced, file, hidden })
    }

    /// The path as the user wrote it, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder in which it gets its name.
    pub fn folder(&self) -> &File {
        &self.folder
    }

    /// The file that had the name when this one was opened, to be read; `None` if there was none.
    pub fn replaced(&self) -> Option<&File> {
        self.replaced.as_ref()
    }

    /// True if it takes the place of another file, or of its own hidden name.
    pub fn replaces(&self) -> bool {
        self.replaced.is_some() || self.hidden.is_some()
    }

    /// Fill it, and give it its name.
    pub fn write(mut self, existing: Existing, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
        fill(&mut self.file)?;
        self.file.sync_all()?;
        match self.hidden.take() {
            None => self.name(existing)?,
            Some(hidden) => self.place(&hidden, existing)?,
        }
        // Some file systems flush no folders.
        self.folder.sync_all().or_else(|e| if e.kind() == ErrorKind::InvalidInput { Ok(()) } else { Err(e) })
    }

    /// Give a file without a name its name.
    fn name(&self, existing: Existing) -> io::Result<()> {
        use std::os::fd::AsRawFd;
        let here = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let link = |to: &OsStr| rustix::fs::linkat(CWD, &here, &*self.folder, to, AtFlags::SYMLINK_FOLLOW);
        match link(&self.name) {
            Err(rustix::io::Errno::EXIST) if existing == Existing::Replace => {
                let ((), hidden) = Hidden::made(&self.folder, |name| Ok(link(name)?))?;
                self.place(&hidden, existing)
            }
            other => Ok(other?),
        }
    }

    /// Put a file with a hidden name where it belongs.
    fn place(&self, hidden: &Hidden, existing: Existing) -> io::Result<()> {
        let folder = &*self.folder;
        let rename = || Ok(rustix::fs::renameat(folder, &hidden.name, folder, &self.name)?);
        // Another one may have come since this one was opened.
        let before = replaceable(folder, &self.name)?;
        match existing {
            Existing::Replace => rename(),
            Existing::Keep => {
                match rustix::fs::linkat(folder, &hidden.name, folder, &self.name, AtFlags::empty()) {
                    // A file system without links: no other process may come between the two steps.
                    Err(e) if e != rustix::io::Errno::EXIST && before.is_none() => rename(),
                    other => Ok(other?),
                }
            }
        }
    }
}

/// What has a name in a folder and may be replaced; `None` if nothing has it.
fn replaceable(folder: &File, name: &OsStr) -> io::Result<Option<Stat>> {
    let wrong = |reason: &str| Err(io::Error::new(ErrorKind::InvalidInput, reason));
    let Some(about) = existing(folder, name)? else { return Ok(None) };
    if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile {
        return wrong("not a regular file");
    }
    if about.st_nlink > 1 {
        return wrong("the file there has other names (hard links), which would keep the old one: name another file");
    }
    let user = rustix::process::geteuid();
    if about.st_uid != user.as_raw() && !user.is_root() {
        return wrong("the file there belongs to another user: name another file");
    }
    Ok(Some(about))
}

/// Give a new file the owner and the rights of another. Where the owner cannot be the same, its group has no rights;
/// where rights cannot be given, it has fewer.
fn keep_rights(file: &File, before: &Stat) {
    let owned = std::os::unix::fs::fchown(file, Some(before.st_uid), Some(before.st_gid));
    let kept = if owned.is_ok() { 0o777 } else { 0o707 };
    let _ = file.set_permissions(Permissions::from_mode(before.st_mode & kept));
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

fn remove_all(all: &mut Vec<(Arc<File>, OsString)>) {
    all.drain(..).for_each(|(folder, name)| remove(&folder, &name));
}

fn remove(folder: &File, name: &OsStr) {
    let _ = rustix::fs::unlinkat(folder, name, AtFlags::empty());
}

/// Signals that end the process, taken over before there is anything to remove.
#[derive(Debug)]
pub struct EndSignals(signal_hook::iterator::Signals);

impl EndSignals {
    /// Take them over. One that arrives from now on waits for [`remove_and_end`](Self::remove_and_end).
    pub fn take() -> io::Result<EndSignals> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        Ok(EndSignals(signal_hook::iterator::Signals::new([SIGTERM, SIGINT, SIGHUP])?))
    }

    /// Each of them removes what is unfinished, then ends the process: for those who write and have no other use for
    /// signals. It starts a thread, which has the rights that this one has now.
    pub fn remove_and_end(mut self) -> io::Result<()> {
        room_for_threads(1)?;
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            if let Some(signal) = self.0.forever().next() {
                remove_unfinished();
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        })?;
        Ok(())
    }
}

/// A file in a folder, to be read.
fn open_beside(folder: &File, name: &OsStr) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(folder, name, flags, Mode::empty())?.into())
}

/// A hidden name, which is removed when this goes unless it has become another.
#[derive(Debug)]
struct Hidden {
    folder: Arc<File>,
    name: OsString,
}

impl Hidden {
    /// A new name, at which `make` makes something.
    fn made<T>(folder: &Arc<File>, make: impl FnOnce(&OsStr) -> io::Result<T>) -> io::Result<(T, Hidden)> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = OsString::from(format!("{HIDDEN}{}-{number}", std::process::id()));
        let mut all = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
        let made = make(&name)?;
        all.push((Arc::clone(folder), name.clone()));
        Ok((made, Hidden { folder: Arc::clone(folder), name }))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        remove(&self.folder, &self.name);
        if let Ok(mut all) = UNFINISHED.lock() {
            all.retain(|(_, name)| *name != self.name);
        }
    }
}

fn hidden_file(folder: &Arc<File>, mode: RawMode) -> io::Result<(File, Hidden)> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Hidden::made(folder, |name| Ok(rustix::fs::openat(&**folder, name, flags, Mode::from_raw_mode(mode))?.into()))
}

/// Remove hidden files without a writer.
fn remove_leftovers(folder: &File) {
    let Ok(entries) = rustix::fs::Dir::read_from(folder) else { return };
    for entry in entries.flatten() {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if !name.as_bytes().starts_with(HIDDEN.as_bytes()) {
            continue;
        }
        let unlocked = |file: &File| rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive).is_ok();
        let is_left = |file: &File| file.metadata().is_ok_and(|about| about.is_file()) && unlocked(file);
        if open_beside(folder, name).is_ok_and(|file| is_left(&file)) {
            remove(folder, name);
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
            let mut output = Output::open(&path).unwrap();
            let (file, hidden) = hidden_file(&output.folder, NEW).unwrap();
            (output.file, output.hidden) = (file, Some(hidden));
            assert_eq!(output.write(existing, |file| file.write_all(text.as_bytes())).is_ok(), done);
        }
        assert_eq!((std::fs::read(&path).unwrap(), names(folder.path())), (b"three".to_vec(), vec!["a".to_owned()]));
    }

    #[test]
    fn leftovers_go_and_work_in_progress_stays() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(".whyslow-1-0"), "left").unwrap();
        std::fs::write(folder.path().join(".other"), "not ours").unwrap();
        let mut output = Output::open(&folder.path().join("later")).unwrap();
        let (file, hidden) = hidden_file(&output.folder, NEW).unwrap();
        rustix::fs::flock(&file, FlockOperation::LockExclusive).unwrap();
        let name = hidden.name.to_str().unwrap().to_owned();
        (output.file, output.hidden) = (file, Some(hidden));
        write(&folder.path().join("a"), b"", Existing::Keep).unwrap();
        let mut expected = vec![".other".to_owned(), "a".to_owned()];
        expected.push(name);
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

    #[test]
    fn a_replaced_file_keeps_its_rights_and_its_owner() {
        use std::os::unix::fs::{MetadataExt, chown};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        for mode in [0o600, 0o640, 0o666] {
            std::fs::write(&path, "old").unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let given = chown(&path, Some(65534), Some(65534)).is_ok();
            write(&path, b"new", Existing::Replace).unwrap();
            let about = std::fs::metadata(&path).unwrap();
            assert_eq!((about.mode() & 0o777, about.uid() == 65534), (mode, given));
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn special_files_and_files_with_other_names_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("a"), folder.path().join("b"));
        std::fs::write(&path, "old").unwrap();
        std::fs::hard_link(&path, &other).unwrap();
        let refused = |path: &Path| write(path, b"new", Existing::Replace).unwrap_err().to_string();
        assert!(refused(&path).contains("hard links"));
        assert_eq!(std::fs::read(&other).unwrap(), b"old");
        std::fs::remove_file(&path).unwrap();
        rustix::fs::mkfifoat(CWD, &path, Mode::RWXU).unwrap();
        for special in [&path, folder.path(), Path::new("/dev/null")] {
            assert!(refused(special).contains("not a regular file"), "{}", special.display());
        }
    }

    /// The name becomes a link, or the folder another one, between opening and writing.
    #[test]
    fn an_open_output_stays_in_its_folder() {
        let root = tempfile::tempdir().unwrap();
        let (folder, moved, victim) = (root.path().join("f"), root.path().join("moved"), root.path().join("victim"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(&victim, "precious").unwrap();
        let open = || Output::open(&folder.join("a")).unwrap();
        let link = open();
        symlink(&victim, folder.join("a")).unwrap();
        let error = link.write(Existing::Replace, |file| file.write_all(b"new")).unwrap_err();
        assert!(error.to_string().contains("not a regular file"), "{error}");
        std::fs::remove_file(folder.join("a")).unwrap();
        let output = open();
        std::fs::rename(&folder, &moved).unwrap();
        std::fs::create_dir(&folder).unwrap();
        output.write(Existing::Replace, |file| file.write_all(b"new")).unwrap();
        assert_eq!((names(&folder).len(), std::fs::read(moved.join("a")).unwrap()), (0, b"new".to_vec()));
        assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
    }
}
