//! How much memory the process may hold: what the user asked for, or what its control group allows.
//!
//! In: `--memory`, the files of control groups, and what the machine has. Out: the limit, and what groups have free.

use super::quantity;
use std::fmt;
use std::path::{Path, PathBuf};

/// The mount point of control groups.
pub(super) const GROUPS: &str = "/sys/fs/cgroup";

/// How much may be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Bytes, as the user said.
    Asked(u64),
    /// Bytes that the control group may hold.
    Group(u64),
    /// Bytes of what was free when the process began, where no other limit is set.
    Free(u64),
}

impl Limit {
    /// The limit that holds: what was asked for, unless the group's is smaller.
    pub fn new(asked: Option<u64>) -> Option<Limit> {
        let group = std::fs::read_to_string("/proc/self/cgroup").ok().and_then(|of| group(Path::new(GROUPS), &of));
        let group = group.filter(|bytes| physical().is_none_or(|all| *bytes < all)).map(Limit::Group);
        let asked = asked.map(Limit::Asked);
        asked.into_iter().chain(group).min_by_key(|limit| limit.bytes())
    }

    /// The bytes that the process may hold itself.
    pub fn bytes(self) -> u64 {
        match self {
            Limit::Asked(bytes) | Limit::Free(bytes) => bytes,
            Limit::Group(bytes) => bytes - bytes / 8,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Asked(bytes) => write!(f, "--memory {}", size(*bytes)),
            Limit::Group(bytes) => write!(f, "the control group may hold {}", size(*bytes)),
            Limit::Free(bytes) => write!(f, "70 % of the free memory, {} (--memory sets another limit)", size(*bytes)),
        }
    }
}

/// Bytes that the machine has.
fn physical() -> Option<u64> {
    kib(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")
}

pub(super) fn kib(text: &str, name: &str) -> Option<u64> {
    let kib = text.lines().find_map(|l| l.strip_prefix(name))?.trim().strip_suffix("kB")?;
    kib.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// A control group's files: its limit, and what it holds.
pub(super) struct GroupFiles {
    most: PathBuf,
    used: PathBuf,
    /// What it holds by kind.
    kinds: PathBuf,
}

impl GroupFiles {
    /// Its limit; `None` where it has none.
    pub fn most(&self) -> Option<u64> {
        number(&self.most)
    }

    /// What it may still take; pages of files are given back when memory is asked for.
    pub fn left(&self) -> Option<u64> {
        let (most, used) = (self.most()?, number(&self.used)?);
        let kinds = std::fs::read_to_string(&self.kinds).unwrap_or_default();
        let pages = |names: [&str; 2]| -> u64 {
            let of = |line: &str| {
                let (kind, bytes) = line.split_once(' ')?;
                names.contains(&kind).then(|| bytes.trim().parse::<u64>().ok())?
            };
            kinds.lines().filter_map(of).fold(0, u64::saturating_add)
        };
        // Version 1 counts the groups inside it under names of their own.
        let files = pages(["inactive_file", "active_file"]).max(pages(["total_inactive_file", "total_active_file"]));
        Some(most.saturating_sub(used.saturating_sub(files)))
    }
}

fn number(file: &Path) -> Option<u64> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// The groups that a process belongs to, by its `/proc/PID/cgroup`, and those around them; of version 2 (`0::/path`,
/// `memory.max`) and 1 (`4:memory:/path`, `memory.limit_in_bytes`). In a container the path may lead nowhere: then the
/// root is the container's own group.
pub(super) fn groups(root: &Path, of: &str) -> Vec<GroupFiles> {
    let memberships = of.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        match controllers {
            "" => Some((root.to_owned(), path, ["memory.max", "memory.current"])),
            _ if controllers.split(',').any(|c| c == "memory") => {
                Some((root.join("memory"), path, ["memory.limit_in_bytes", "memory.usage_in_bytes"]))
            }
            _ => None,
        }
    });
    let files = memberships.flat_map(|(root, path, files)| {
        // From the group outwards to the root.
        let path = Path::new(path.trim_start_matches('/')).to_owned();
        let folders: Vec<PathBuf> = path.ancestors().map(|part| root.join(part)).collect();
        folders.into_iter().map(move |folder| {
            let [most, used] = files.map(|file| folder.join(file));
            GroupFiles { most, used, kinds: folder.join("memory.stat") }
        })
    });
    files.collect()
}

/// The smallest limit of all groups of a process.
fn group(root: &Path, of: &str) -> Option<u64> {
    groups(root, of).iter().filter_map(GroupFiles::most).min()
}

/// A size as one would type it.
pub(super) fn size(bytes: u64) -> String {
    quantity::exact(i64::try_from(bytes).unwrap_or(i64::MAX), quantity::SIZE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_groups_and_of_those_around_them_are_read() {
        let root = tempfile::tempdir().unwrap();
        let file = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        file("system.slice/memory.max", "2000\n");
        file("system.slice/a.service/memory.max", "max\n");
        file("memory/docker/abc/memory.limit_in_bytes", "9223372036854771712\n");
        file("memory/docker/memory.limit_in_bytes", "1000\n");
        let of = |text: &str| group(root.path(), text);
        assert_eq!(of("0::/system.slice/a.service\n"), Some(2000));
        assert_eq!(of("5:cpu:/x\n4:memory:/docker/abc\n"), Some(1000));
        assert_eq!(of("4:cpu,memory:/docker/abc\n0::/system.slice\n"), Some(1000));
        // Inside a container, whose own group is the root.
        assert_eq!(of("0::/elsewhere\n"), None);
        file("memory.max", "500\n");
        assert_eq!(of("0::/elsewhere\n"), Some(500));
        assert_eq!(of("other\n"), None);
        assert!(Limit::new(Some(1)) == Some(Limit::Asked(1)) && Limit::Group(800).bytes() == 700);
        assert!(Limit::Group(1 << 30).to_string().contains("1GiB"));
    }
}
