//! Probes of recordings whose process is gone.
//!
//! The script of a recording removes its probes however whyslow ends. Where the script itself is killed (a control
//! group, a container, memory), they stay in the kernel, cost each call of their functions, and the next probe of the
//! same name is refused. They are known by their group, `whyslow_PID`; the kernel keeps one that a recorder still uses.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The kernel's list of probes in programs, below each place of its tracing files.
const PROBES: [&str; 2] = ["sys/kernel/tracing/uprobe_events", "sys/kernel/debug/tracing/uprobe_events"];

/// The beginning of the group of a recording's probes; its process id follows.
pub(super) const GROUP: &str = "whyslow_";

/// A probe that a recording has left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftProbe {
    /// Its group and name, as the kernel shows them.
    pub name: String,
    /// The process that made it, which has ended.
    pub pid: u32,
    list: PathBuf,
}

impl LeftProbe {
    /// Remove it from the kernel.
    pub fn remove(&self) -> io::Result<()> {
        // Opened otherwise, the file would lose all probes, those of others too.
        let mut list = OpenOptions::new().append(true).open(&self.list)?;
        list.write_all(format!("-:{}\n", self.name).as_bytes())
    }
}

/// The probes left behind on the machine whose files are below `root`; none where the list cannot be read.
pub fn left_probes(root: &Path) -> Vec<LeftProbe> {
    let lists = PROBES.iter().map(|list| root.join(list));
    let mut read = lists.filter_map(|list| Some((std::fs::read_to_string(&list).ok()?, list)));
    let Some((text, list)) = read.next() else { return Vec::new() };
    let is_gone = |pid: &u32| !root.join("proc").join(pid.to_string()).exists();
    let left = |line: &str| {
        // `p:GROUP/NAME FILE:OFFSET ARGUMENTS`, or `r` where the function returns.
        let name = line.split_whitespace().next()?.split_once(':')?.1;
        let pid = name.strip_prefix(GROUP)?.split_once('/')?.0.parse().ok().filter(is_gone)?;
        Some(LeftProbe { name: name.to_owned(), pid, list: list.clone() })
    };
    text.lines().filter_map(left).collect()
}

/// Remove what can be removed. Returns the names of the removed probes.
pub fn remove_left_probes(root: &Path) -> Vec<String> {
    left_probes(root).into_iter().filter(|probe| probe.remove().is_ok()).map(|probe| probe.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_of_ended_recordings_are_removed_and_no_others() {
        let root = tempfile::tempdir().unwrap();
        let list = root.path().join("sys/kernel/tracing/uprobe_events");
        std::fs::create_dir_all(list.parent().unwrap()).unwrap();
        std::fs::create_dir_all(root.path().join("proc/7")).unwrap();
        let text = "p:whyslow_7/handle /bin/a:0x10\np:whyslow_8/handle /bin/a:0x10 x=%di\n\
                    r0:whyslow_8/handle__return /bin/a:0x10\np:probe_a/whyslow_9 /bin/a:0x1\n\
                    p:whyslow_x/a /bin/a:0x1\n";
        std::fs::write(&list, text).unwrap();
        let names: Vec<String> = left_probes(root.path()).into_iter().map(|probe| probe.name).collect();
        assert_eq!(names, ["whyslow_8/handle", "whyslow_8/handle__return"]);
        assert_eq!(remove_left_probes(root.path()), names);
        let written = std::fs::read_to_string(&list).unwrap();
        assert_eq!(written, format!("{text}-:whyslow_8/handle\n-:whyslow_8/handle__return\n"));
        assert!(left_probes(Path::new("/no/such/machine")).is_empty());
    }
}
