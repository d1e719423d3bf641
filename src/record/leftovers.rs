//! What recordings have left behind whose process is gone: probes, instances of tracefs, and sessions of LTTng.
//!
//! The script of a recording removes both however whyslow ends. Where the script itself is killed (a control group, a
//! container, memory), probes stay in the kernel, cost each call of their functions, and the next probe of the same
//! name is refused; the session of LTTng records on until the disk is full. Both are known by their name,
//! `whyslow_PID`; the kernel keeps a probe that a recorder still uses.

use super::capabilities::{Capabilities, Tool};
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The kernel's list of probes in programs, below each place of its tracing files.
const PROBES: [&str; 2] = ["sys/kernel/tracing/uprobe_events", "sys/kernel/debug/tracing/uprobe_events"];

/// The folder of instances, below each place of the kernel's tracing files.
const INSTANCES: [&str; 2] = ["sys/kernel/tracing/instances", "sys/kernel/debug/tracing/instances"];

/// The beginning of the name of a recording's session, and of the group of its probes; its process id follows.
pub(super) const GROUP: &str = "whyslow_";

/// Something that a recording has left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// The name of the session, or the group and the name of the probe as the kernel shows them.
    pub name: String,
    /// The process that made it, which has ended.
    pub pid: u32,
    keeper: Keeper,
}

/// Who keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Keeper {
    /// The kernel, in this list of probes.
    Kernel(PathBuf),
    /// The kernel, as a folder of tracefs.
    Folder(PathBuf),
    /// LTTng's daemon, which this program asks.
    Daemon(Tool),
}

impl fmt::Display for Leftover {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.keeper {
            Keeper::Kernel(_) => "probe",
            Keeper::Folder(_) => "ring buffer",
            Keeper::Daemon(_) => "LTTng session",
        };
        write!(to, "the {what} {}", self.name)
    }
}

impl Leftover {
    /// Remove it.
    pub fn remove(&self) -> io::Result<()> {
        match &self.keeper {
            // Opened otherwise, the file would lose all probes, those of others too.
            Keeper::Kernel(list) => {
                OpenOptions::new().append(true).open(list)?.write_all(format!("-:{}\n", self.name).as_bytes())
            }
            Keeper::Folder(instance) => std::fs::remove_dir(instance),
            Keeper::Daemon(lttng) => {
                let ended = lttng_command(lttng, &["destroy", &self.name]).output()?;
                let said = || io::Error::other(String::from_utf8_lossy(&ended.stderr).trim().to_owned());
                if ended.status.success() { Ok(()) } else { Err(said()) }
            }
        }
    }
}

/// A command of LTTng, without input.
fn lttng_command(lttng: &Tool, words: &[&str]) -> Command {
    let mut command = Command::new(&lttng.path);
    command.args(words).stdin(Stdio::null());
    command
}

/// The probes left behind on the machine whose files are below `root`; none where the list cannot be read.
pub fn left_probes(root: &Path) -> Vec<Leftover> {
    let lists = PROBES.iter().map(|list| root.join(list));
    let mut read = lists.filter_map(|list| Some((std::fs::read_to_string(&list).ok()?, list)));
    let Some((text, list)) = read.next() else { return Vec::new() };
    let left = |line: &str| {
        // `p:GROUP/NAME FILE:OFFSET ARGUMENTS`, or `r` where the function returns.
        let name = line.split_whitespace().next()?.split_once(':')?.1;
        let pid = ended(root, name.split_once('/')?.0)?;
        Some(Leftover { name: name.to_owned(), pid, keeper: Keeper::Kernel(list.clone()) })
    };
    text.lines().filter_map(left).collect()
}

/// The instances of tracefs that are left behind on the machine whose files are below `root`.
pub fn left_instances(root: &Path) -> Vec<Leftover> {
    let folders = INSTANCES.iter().filter_map(|folder| std::fs::read_dir(root.join(folder)).ok()).take(1);
    let mut left: Vec<Leftover> = folders
        .flat_map(|entries| entries.flatten())
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            // `whyslow_PID`, or `whyslow_PID_chosen`.
            let numbered = name.strip_prefix(GROUP)?.split('_').next()?;
            let pid = ended(root, &format!("{GROUP}{numbered}"))?;
            Some(Leftover { name, pid, keeper: Keeper::Folder(entry.path()) })
        })
        .collect();
    left.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    left
}

/// The sessions left behind with LTTng's daemon; none without one.
pub fn left_sessions(root: &Path, host: &Capabilities) -> Vec<Leftover> {
    let Some(lttng) = &host.lttng else { return Vec::new() };
    let Ok(listed) = lttng_command(lttng, &["list"]).output() else { return Vec::new() };
    let left = |line: &str| {
        // `1) NAME [active]`
        let name = line.trim_start().split_once(") ")?.1.split_whitespace().next()?;
        Some(Leftover { name: name.to_owned(), pid: ended(root, name)?, keeper: Keeper::Daemon(lttng.clone()) })
    };
    String::from_utf8_lossy(&listed.stdout).lines().filter_map(left).collect()
}

/// The process that a name of ours contains, if it has ended.
fn ended(root: &Path, name: &str) -> Option<u32> {
    name.strip_prefix(GROUP)?.parse().ok().filter(|pid| is_gone(root, *pid))
}

/// True for a process that has ended, also where its parent has not asked for its status.
fn is_gone(root: &Path, pid: u32) -> bool {
    match std::fs::read_to_string(root.join(format!("proc/{pid}/stat"))) {
        // The state follows the name, which may hold anything.
        Ok(about) => about.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with(['Z', 'X'])),
        Err(e) => e.kind() == io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_of_ended_recordings_are_removed_and_no_others() {
        let root = tempfile::tempdir().unwrap();
        let list = root.path().join("sys/kernel/tracing/uprobe_events");
        std::fs::create_dir_all(list.parent().unwrap()).unwrap();
        for (pid, state) in [("7", "(a) Z) S 1"), ("9", "(whyslow) Z 1")] {
            let process = root.path().join("proc").join(pid);
            std::fs::create_dir_all(&process).unwrap();
            std::fs::write(process.join("stat"), format!("{pid} {state}\n")).unwrap();
        }
        let text = "p:whyslow_7/handle /bin/a:0x10\np:whyslow_8/handle /bin/a:0x10 x=%di\n\
                    r0:whyslow_8/handle__return /bin/a:0x10\np:probe_a/whyslow_9 /bin/a:0x1\n\
                    p:whyslow_x/a /bin/a:0x1\np:whyslow_9/a /bin/a:0x1\n";
        std::fs::write(&list, text).unwrap();
        let left = left_probes(root.path());
        let names: Vec<&str> = left.iter().map(|probe| &*probe.name).collect();
        assert_eq!(names, ["whyslow_8/handle", "whyslow_8/handle__return", "whyslow_9/a"]);
        left.iter().for_each(|probe| probe.remove().unwrap());
        let written = std::fs::read_to_string(&list).unwrap();
        assert_eq!(written, format!("{text}-:whyslow_8/handle\n-:whyslow_8/handle__return\n-:whyslow_9/a\n"));
        assert!(left_probes(Path::new("/no/such/machine")).is_empty());
    }
}
