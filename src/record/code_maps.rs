//! Copies of what runtimes wrote about the code that the recorded processes compiled.
//!
//! In: the processes of the machine when a recording ends, and the time at which it began. Out: files `perf-PID.map`
//! and `jit-PID.dump` in the folder of the recording, with the process ids that the recorder saw. A living process is
//! asked in its own root folder, by its id there: containers have their own of both. One that ended left its files in
//! `/tmp`. Files of others are not to be had by this: each must be a regular file with one name, owned by the user of
//! its process (of one that ended: by this user), and no link on its path is followed. Bytes are bounded; what cannot
//! be copied is left out, because the recording is good without it.

use rustix::fs::{Mode, OFlags, ResolveFlags};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::SystemTime;

/// Bytes of one file, and of all files of a recording.
const MOST: u64 = 256 << 20;
const MOST_OF_ALL: u64 = 1 << 30;
/// Bytes of a file below `/proc` that are read.
const MOST_STATUS: u64 = 1 << 16;

/// A file about compiled code: its name before and after a process id.
const FORMS: [(&str, &str); 2] = [("perf-", ".map"), ("jit-", ".dump")];

/// A process, as `/proc/PID/status` shows it.
struct Process {
    pid: i32,
    /// Its id in its own namespace.
    own_pid: i32,
    user: u32,
}

/// Copy the files into a folder. `root` is `/`; `since` is when the recording began.
pub(super) fn copy(root: &Path, since: SystemTime, folder: &Path) {
    let proc = root.join("proc");
    let mut copies = Copies { folder, left: MOST_OF_ALL, done: BTreeSet::new() };
    for process in processes(&proc) {
        let Process { pid, own_pid, user } = process;
        for (before, after) in FORMS {
            let name = format!("tmp/{before}{own_pid}{after}");
            let found = open_below(&proc.join(pid.to_string()).join("root"), Path::new(&name));
            copies.add(found, &format!("{before}{pid}{after}"), |about| about.uid() == user);
        }
    }
    let own = rustix::process::geteuid().as_raw();
    for entry in std::fs::read_dir(root.join("tmp")).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| is_of_process(name)) else { continue };
        let is_own =
            |about: &std::fs::Metadata| about.uid() == own && about.modified().is_ok_and(|written| written >= since);
        copies.add(open_below(&root.join("tmp"), Path::new(name)), name, is_own);
    }
}

/// True for the names of files about compiled code.
fn is_of_process(name: &str) -> bool {
    let pid = FORMS.iter().find_map(|(before, after)| name.strip_prefix(before)?.strip_suffix(after));
    pid.is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit()))
}

/// The processes of the machine.
fn processes(proc: &Path) -> Vec<Process> {
    let entries = std::fs::read_dir(proc).into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let process = |pid: i32| {
        let mut status = String::new();
        let file = File::open(proc.join(pid.to_string()).join("status")).ok()?;
        file.take(MOST_STATUS).read_to_string(&mut status).ok()?;
        let words = |name: &str| Some(status.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace());
        let user = words("Uid:")?.nth(1)?.parse().ok()?;
        // From the outermost namespace to its own; kernels without namespaces have no such line.
        let own_pid = words("NSpid:").and_then(|mut ids| ids.next_back()?.parse().ok()).unwrap_or(pid);
        Some(Process { pid, own_pid, user })
    };
    let mut all: Vec<Process> = pids.filter_map(process).collect();
    all.sort_unstable_by_key(|process| process.pid);
    all
}

/// Open a file below a folder, whose own path may have links (`/proc/PID/root` is one), through no link.
fn open_below(folder: &Path, name: &Path) -> io::Result<File> {
    let base = rustix::fs::open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(File::from(rustix::fs::openat2(base, name, flags, Mode::empty(), resolve)?))
}

/// The copies so far.
struct Copies<'a> {
    folder: &'a Path,
    /// Bytes that may still be copied.
    left: u64,
    done: BTreeSet<String>,
}

impl Copies<'_> {
    /// Copy a file under a name, unless it is not one of those that may be copied.
    fn add(&mut self, found: io::Result<File>, name: &str, is_of_user: impl Fn(&std::fs::Metadata) -> bool) {
        let Ok(mut file) = found else { return };
        let Ok(about) = file.metadata() else { return };
        let is_whole = about.len() > 0 && about.len() <= MOST.min(self.left);
        let is_plain = about.is_file() && about.nlink() == 1;
        if !is_plain || !is_whole || !is_of_user(&about) || self.done.contains(name) {
            return;
        }
        let new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.folder.join(name));
        let Ok(mut new) = new else { return };
        // It may grow meanwhile.
        if let Ok(bytes) = io::copy(&mut (&mut file).take(about.len()), &mut new) {
            self.left = self.left.saturating_sub(bytes);
            self.done.insert(name.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    /// A machine with a process of id 7, which is 3 in its container, and its files.
    fn machine(user: u32) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let process = root.path().join("proc/7");
        std::fs::create_dir_all(process.join("root/tmp")).unwrap();
        std::fs::create_dir_all(root.path().join("tmp")).unwrap();
        let status = format!("Name:\tnode\nUid:\t0\t{user}\t0\t0\nNSpid:\t7\t3\n");
        std::fs::write(process.join("status"), status).unwrap();
        root
    }

    fn copied(root: &Path, since: SystemTime) -> Vec<(String, String)> {
        let folder = tempfile::tempdir().unwrap();
        copy(root, since, folder.path());
        let entries = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap());
        let mut files: Vec<(String, String)> = entries
            .map(|e| (e.file_name().into_string().unwrap(), std::fs::read_to_string(e.path()).unwrap()))
            .collect();
        files.sort();
        files
    }

    fn file(name: &str, text: &str) -> (String, String) {
        (name.to_owned(), text.to_owned())
    }

    #[test]
    fn copy_takes_the_files_of_living_processes_and_of_those_that_ended() {
        let own = rustix::process::geteuid().as_raw();
        let root = machine(own);
        let tmp = |name: &str| root.path().join("proc/7/root/tmp").join(name);
        std::fs::write(tmp("perf-3.map"), "1000 10 render\n").unwrap();
        std::fs::write(tmp("perf-7.map"), "another process of the container").unwrap();
        std::fs::write(root.path().join("tmp/jit-9.dump"), "ended").unwrap();
        std::fs::write(root.path().join("tmp/perf-x.map"), "no process").unwrap();
        let all = [file("jit-9.dump", "ended"), file("perf-7.map", "1000 10 render\n")];
        assert_eq!(copied(root.path(), UNIX_EPOCH), all);
        // A file that was written before the recording began is of an earlier process.
        let later = SystemTime::now() + Duration::from_secs(3600);
        assert_eq!(copied(root.path(), later), [file("perf-7.map", "1000 10 render\n")]);
    }

    #[test]
    fn copy_follows_no_link_and_takes_no_file_of_another_user() {
        let own = rustix::process::geteuid().as_raw();
        let secret = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(secret.path(), "secret").unwrap();
        let root = machine(own);
        let tmp = root.path().join("proc/7/root/tmp");
        std::os::unix::fs::symlink(secret.path(), tmp.join("perf-3.map")).unwrap();
        std::os::unix::fs::symlink(secret.path(), root.path().join("tmp/perf-8.map")).unwrap();
        std::fs::create_dir(tmp.join("jit-3.dump")).unwrap();
        assert!(copied(root.path(), UNIX_EPOCH).is_empty());
        // A second name of a file, and a folder that is a link.
        std::fs::remove_file(tmp.join("perf-3.map")).unwrap();
        let inside = root.path().join("inside");
        std::fs::write(&inside, "secret").unwrap();
        std::fs::hard_link(&inside, tmp.join("perf-3.map")).unwrap();
        assert!(copied(root.path(), UNIX_EPOCH).is_empty());
        std::fs::remove_dir_all(&tmp).unwrap();
        std::fs::create_dir(root.path().join("other")).unwrap();
        std::fs::write(root.path().join("other/perf-3.map"), "secret").unwrap();
        std::os::unix::fs::symlink("../../../other", &tmp).unwrap();
        assert!(copied(root.path(), UNIX_EPOCH).is_empty());
        // The process runs as another user than the owner of the file.
        let root = machine(own + 1);
        std::fs::write(root.path().join("proc/7/root/tmp/perf-3.map"), "1000 10 render\n").unwrap();
        assert!(copied(root.path(), UNIX_EPOCH).is_empty());
    }
}
