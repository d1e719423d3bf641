//! Names and processes of threads, where records hold the thread's id alone.
//!
//! In: recorded names and processes of threads, with their times on the recorder's clock. Out: the name and the process
//! of a thread at a time: the last record before it, else the first record. Cost: a binary search for each look-up; the
//! order in which records are added does not matter.

use foldhash::HashMap;

/// A name as recorded.
type Name = Box<[u8]>;

/// A recorded property of a thread.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Dated<T> {
    /// The recorder's clock from which it holds.
    from: u64,
    value: T,
}

/// Names and processes of threads, by thread id.
#[derive(Clone, Debug, Default)]
pub struct Threads {
    names: HashMap<i32, Vec<Dated<Name>>>,
    processes: HashMap<i32, Vec<Dated<i32>>>,
}

impl Threads {
    /// A thread has this name from `clock` on.
    pub fn named(&mut self, tid: i32, clock: u64, name: &[u8]) {
        let all = self.names.entry(tid).or_default();
        if all.last().is_none_or(|last| &*last.value != name) {
            all.push(Dated { from: clock, value: name.into() });
        }
    }

    /// A thread belongs to this process from `clock` on.
    pub fn belongs(&mut self, tid: i32, clock: u64, pid: i32) {
        let all = self.processes.entry(tid).or_default();
        if all.last().is_none_or(|last| last.value != pid) {
            all.push(Dated { from: clock, value: pid });
        }
    }

    /// Add the records of another part of the recording, which follow these.
    pub fn join(&mut self, part: Threads) {
        for (tid, names) in part.names {
            names.iter().for_each(|dated| self.named(tid, dated.from, &dated.value));
        }
        for (tid, processes) in part.processes {
            processes.iter().for_each(|dated| self.belongs(tid, dated.from, dated.value));
        }
    }

    /// A thread is created in this process; call after [`Self::seal`].
    pub fn created(&mut self, tid: i32, clock: u64, pid: i32) {
        let all = self.processes.entry(tid).or_default();
        let after = all.partition_point(|dated| dated.from <= clock);
        if after.checked_sub(1).and_then(|before| all.get(before)).is_none_or(|before| before.value != pid) {
            all.insert(after, Dated { from: clock, value: pid });
        }
    }

    /// Sort the records; call after the last one was added.
    pub fn seal(&mut self) {
        self.names.values_mut().for_each(|all| all.sort());
        self.processes.values_mut().for_each(|all| all.sort());
    }

    /// The name of a thread.
    pub fn name(&self, tid: i32, clock: u64) -> Option<&[u8]> {
        at(self.names.get(&tid)?, clock).map(|name| &**name)
    }

    /// The process of a thread.
    pub fn process(&self, tid: i32, clock: u64) -> Option<i32> {
        at(self.processes.get(&tid)?, clock).copied()
    }
}

/// The last value that holds from `clock` or earlier, else the first one.
fn at<T>(all: &[Dated<T>], clock: u64) -> Option<&T> {
    let after = all.partition_point(|dated| dated.from <= clock);
    all.get(after.saturating_sub(1)).map(|dated| &dated.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_give_the_last_record_before_a_time_else_the_first() {
        let mut threads = Threads::default();
        threads.named(7, 20, b"late");
        threads.named(7, 10, b"early");
        threads.belongs(7, 10, 5);
        threads.seal();
        let name = |clock| threads.name(7, clock);
        assert_eq!([name(0), name(19), name(20)], [Some(&b"early"[..]), Some(b"early"), Some(b"late")]);
        assert_eq!((threads.process(7, 3), threads.process(8, 3)), (Some(5), None));
        threads.created(7, 30, 6);
        threads.created(7, 20, 5);
        let process = |clock| threads.process(7, clock);
        assert_eq!([process(3), process(29), process(30)], [Some(5), Some(5), Some(6)]);
    }
}
