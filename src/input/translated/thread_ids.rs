//! One id for each thread of a machine, where the platform numbers threads within their process (illumos), or where
//! ids are recorded by process and thread.
//!
//! A thread keeps its own id unless a thread of another process has it already; then it gets a free one above all
//! usual ids. Ids are given in the order of the file, so they are the same each time it is read.

use foldhash::HashMap;

/// Given ids begin here.
const FIRST: i32 = 1 << 28;

/// The id of a thread of which the name alone is known: it follows from the name.
pub(super) fn id_of_name(name: &[u8]) -> i32 {
    FIRST + (crc32fast::hash(name) % FIRST as u32) as i32
}

/// A thread as the platform names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct OwnName {
    pid: i32,
    tid: i32,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct UniqueThreadIds {
    /// The process whose thread has an id.
    holders: HashMap<i32, i32>,
    given: HashMap<OwnName, i32>,
}

impl UniqueThreadIds {
    /// The id of a thread; 0, that of the idle task, stays.
    pub fn id(&mut self, pid: i32, tid: i32) -> i32 {
        if tid == 0 || *self.holders.entry(tid).or_insert(pid) == pid {
            return tid;
        }
        let next = FIRST + self.given.len() as i32;
        *self.given.entry(OwnName { pid, tid }).or_insert(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_tells_threads_of_two_processes_apart() {
        let mut ids = UniqueThreadIds::default();
        assert_eq!([ids.id(10, 1), ids.id(10, 2), ids.id(10, 1)], [1, 2, 1]);
        let other = ids.id(11, 1);
        assert!(other != 1 && ids.id(11, 1) == other && ids.id(12, 1) != other);
        assert_eq!(ids.id(0, 0), 0);
    }
}
