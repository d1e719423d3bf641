//! The processes and threads that `--pid` means, as they are when the recording begins.
//!
//! In: ids of processes. Out: those with all that they have begun, since a server's master that creates workers does
//! none of their work; and the condition in the kernel's filter language that holds for their threads. A filter has at
//! most a page of text, so threads whose ids follow each other are one range. Cost: one read for each process of the
//! machine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The processes, and those that descend from them, in ascending order.
pub(super) fn with_descendants(pids: &[u32]) -> BTreeSet<u32> {
    if pids.is_empty() {
        return BTreeSet::new();
    }
    below(Path::new("/proc"), pids)
}

/// The processes, and those that descend from them, by a folder like `/proc`.
pub(super) fn below(proc: &Path, pids: &[u32]) -> BTreeSet<u32> {
    descendants(pids, &children(proc))
}

/// The entries of a folder whose names are numbers: its processes, or threads.
pub(super) fn numbers(folder: &Path) -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The processes of the machine that each has begun.
fn children(proc: &Path) -> BTreeMap<u32, Vec<u32>> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for pid in numbers(proc) {
        let stat = std::fs::read(proc.join(pid.to_string()).join("stat")).unwrap_or_default();
        // The name of the program is in parentheses and may hold any byte.
        let parent = String::from_utf8_lossy(&stat)
            .rsplit_once(')')
            .and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        if let Some(parent) = parent {
            children.entry(parent).or_default().push(pid);
        }
    }
    children
}

fn descendants(pids: &[u32], children: &BTreeMap<u32, Vec<u32>>) -> BTreeSet<u32> {
    let mut all = BTreeSet::new();
    let mut next: Vec<u32> = pids.to_vec();
    while let Some(pid) = next.pop() {
        if all.insert(pid) {
            next.extend(children.get(&pid).into_iter().flatten());
        }
    }
    all
}

/// The threads that a process has now; the process itself if it has ended.
fn threads_of(pid: u32) -> Vec<u32> {
    let threads: Vec<u32> = numbers(Path::new(&format!("/proc/{pid}/task"))).collect();
    if threads.is_empty() { vec![pid] } else { threads }
}

/// The conditions, any of which holds for each thread of the processes and for no other.
pub(super) fn thread_conditions(pids: &[u32]) -> Vec<String> {
    conditions(&thread_ids(pids))
}

/// Names that a filter compares at most, besides ids: it has a page of text.
const MOST_NAMES: usize = 16;

/// The names of the main threads of the processes, those that a filter can compare.
pub(super) fn thread_names(pids: &[u32]) -> BTreeSet<String> {
    let name = |pid| std::fs::read_to_string(format!("/proc/{pid}/comm")).ok();
    let names = with_descendants(pids).into_iter().filter_map(name);
    let names = names.filter_map(|name| super::comm(name.trim_end_matches('\n')).ok());
    names.collect::<BTreeSet<String>>().into_iter().take(MOST_NAMES).collect()
}

/// The ids of the threads of the processes, in ascending order.
pub(super) fn thread_ids(pids: &[u32]) -> BTreeSet<u32> {
    with_descendants(pids).into_iter().flat_map(threads_of).collect()
}

fn conditions(threads: &BTreeSet<u32>) -> Vec<String> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for tid in threads {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*tid) => *last = *tid,
            _ => ranges.push((*tid, *tid)),
        }
    }
    let condition = |(first, last): (u32, u32)| {
        if first == last {
            format!("common_pid == {first}")
        } else {
            format!("(common_pid >= {first} && common_pid <= {last})")
        }
    };
    ranges.into_iter().map(condition).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_are_those_of_all_generations() {
        let children = BTreeMap::from([(1, vec![5, 9]), (5, vec![6]), (6, vec![7]), (9, vec![10]), (7, vec![5])]);
        assert_eq!(descendants(&[5], &children), BTreeSet::from([5, 6, 7]));
        assert_eq!(descendants(&[9, 6], &children), BTreeSet::from([5, 6, 7, 9, 10]));
        assert_eq!(descendants(&[3], &children), BTreeSet::from([3]));
    }

    #[test]
    fn conditions_hold_for_the_threads_alone() {
        let text = conditions(&BTreeSet::from([4, 7, 8, 9, 11])).join(" || ");
        assert_eq!(text, "common_pid == 4 || (common_pid >= 7 && common_pid <= 9) || common_pid == 11");
        assert!(conditions(&BTreeSet::new()).is_empty());
    }

    #[test]
    fn children_are_read_whatever_programs_are_called() {
        let proc = tempfile::tempdir().unwrap();
        let files: [(&str, &[u8]); 3] =
            [("40", b"40 (a) \xff b) S 12 1"), ("41", b"41 (nginx) S 40 40"), ("self", b"no process")];
        for (pid, stat) in files {
            std::fs::create_dir(proc.path().join(pid)).unwrap();
            std::fs::write(proc.path().join(pid).join("stat"), stat).unwrap();
        }
        assert_eq!(children(proc.path()), BTreeMap::from([(12, vec![40]), (40, vec![41])]));
        assert!(with_descendants(&[std::process::id()]).contains(&std::process::id()));
    }
}
