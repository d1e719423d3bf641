//! The thread that an id names: one set of rules for all machines that follow threads.
//!
//! In: ids as events name them, in the order of the events. Out: thread instances, numbered from 0; `T` is the state
//! that a machine keeps of each. Cost: a hash look-up, none for the thread that runs on the CPU of the event.
//! ALGORITHMS.md section 3.5. The rules:
//!
//! - An id names its latest instance until that one ends. An id that was never seen names a thread that is older than
//!   the recording; the id of an ended instance names another one, whose fork was lost ([`Holder`]).
//! - Id 0 names the idle task of the event's CPU ([`HostTid::on_cpu`]).
//! - On a CPU the id of the running thread names that thread, even after its exit: it ends when it is switched out.
//! - A fork makes a new instance. The one that still has the id ends there: its exit was lost ([`ThreadTable::fork`]).
//! - A thread that runs another program, and is not the first of its process, takes over the id of the first, which
//!   ends; its own id is free ([`ThreadTable::take_over`]).
//! - The state dump fills what is unknown and replaces nothing ([`Observed`]).

use crate::event::host::HostId;
use crate::timeline::ThreadId;
use foldhash::HashMap;
use std::ops::{Index, IndexMut};

/// The name of a thread in events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostTid {
    host: HostId,
    tid: i32,
    /// The CPU of an idle task; all of them have id 0.
    idle_on: Option<u32>,
}

impl HostTid {
    /// The thread that an id names wherever it runs.
    pub fn new(host: HostId, tid: i32) -> HostTid {
        HostTid { host, tid, idle_on: None }
    }

    /// The thread that an event of a CPU means by an id.
    pub fn on_cpu(host: HostId, cpu: u32, tid: i32) -> HostTid {
        HostTid { host, tid, idle_on: (tid == 0).then_some(cpu) }
    }

    pub fn host(self) -> HostId {
        self.host
    }

    /// The thread id.
    pub fn tid(self) -> i32 {
        self.tid
    }

    /// The CPU of an idle task.
    pub fn idle_on(self) -> Option<u32> {
        self.idle_on
    }

    /// An idle task.
    pub fn is_idle(self) -> bool {
        self.idle_on.is_some()
    }
}

/// The holder of an id, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// No event has named it.
    Unseen,
    /// Its latest instance ended, or lost the id to another thread.
    Ended,
    /// This instance has it.
    Alive(ThreadId),
}

/// The properties of a thread instance that the rules need.
pub trait ThreadInstance {
    /// The id that it has now.
    fn tid(&self) -> i32;
    /// It takes over another id.
    fn set_tid(&mut self, tid: i32);
    /// True until it ended.
    fn is_alive(&self) -> bool;
}

/// All thread instances, and which one each id names.
#[derive(Clone, Debug)]
pub struct ThreadTable<T> {
    /// Each in a place of its own: the table grows without moving them.
    all: Vec<Box<T>>,
    /// By instance: true if it may have changed since [`ThreadTable::visit_changed`].
    changed: Vec<bool>,
    /// The latest instance of each id that was seen; `None` where it has another id now.
    latest: HashMap<HostTid, Option<ThreadId>>,
}

impl<T> Default for ThreadTable<T> {
    fn default() -> Self {
        ThreadTable { all: Vec::new(), changed: Vec::new(), latest: HashMap::default() }
    }
}

impl<T: ThreadInstance> ThreadTable<T> {
    /// The holder of an id.
    pub fn holder(&self, key: HostTid) -> Holder {
        match self.latest.get(&key) {
            None => Holder::Unseen,
            Some(Some(thread)) if self[*thread].is_alive() => Holder::Alive(*thread),
            Some(_) => Holder::Ended,
        }
    }

    /// The instance that has an id.
    pub fn alive(&self, key: HostTid) -> Option<ThreadId> {
        self.latest(key).filter(|thread| self[*thread].is_alive())
    }

    /// The instance that had an id last, ended or not.
    pub fn latest(&self, key: HostTid) -> Option<ThreadId> {
        self.latest.get(&key).copied().flatten()
    }

    /// The thread that an event of a CPU means by an id, when `running` runs there.
    pub fn holder_on(&self, key: HostTid, running: Option<ThreadId>) -> Holder {
        match running.filter(|running| !key.is_idle() && self[*running].tid() == key.tid) {
            Some(running) => Holder::Alive(running),
            None => self.holder(key),
        }
    }

    /// A new instance, which its id names from now on.
    pub fn open(&mut self, key: HostTid, instance: T) -> ThreadId {
        self.open_boxed(key, Box::new(instance)).0
    }

    /// A new instance, in memory of its own, and the instance that the id named before.
    fn open_boxed(&mut self, key: HostTid, instance: Box<T>) -> (ThreadId, Option<ThreadId>) {
        let thread = ThreadId::at(self.all.len());
        self.all.push(instance);
        self.changed.push(true);
        let before = self.latest.insert(key, Some(thread));
        (thread, before.flatten())
    }

    /// A new instance that a fork made, and the one that its id named before. `end` ends that one if it still had the
    /// id.
    pub fn fork(&mut self, key: HostTid, child: Box<T>, end: impl FnOnce(&mut T)) -> (ThreadId, Option<ThreadId>) {
        let (thread, before) = self.open_boxed(key, child);
        if let Some(old) = before.filter(|old| self[*old].is_alive()) {
            end(&mut self[old]);
        }
        (thread, before)
    }

    /// `thread`, which has the id `own`, runs another program and takes over the id `first` of the first thread of its
    /// process. `end` ends that one. Nothing changes where both are the same id.
    pub fn take_over(&mut self, thread: ThreadId, own: HostTid, first: HostTid, end: impl FnOnce(&mut T)) {
        if own == first {
            return;
        }
        if let Some(leader) = self.alive(first).filter(|leader| *leader != thread) {
            end(&mut self[leader]);
        }
        self.latest.insert(first, Some(thread));
        self.latest.insert(own, None);
        self[thread].set_tid(first.tid);
    }

    /// The instances by id.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &T> {
        self.all.iter().map(Box::as_ref)
    }

    /// The instances by id.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = &mut T> {
        self.changed.fill(true);
        self.all.iter_mut().map(Box::as_mut)
    }

    /// Call `visit` for each instance that may have changed since the last time, with its position. Those for which it
    /// returns true are visited the next time, too. Cost: a byte for each instance, and those that are visited.
    pub fn visit_changed(&mut self, mut visit: impl FnMut(usize, &mut T) -> bool) {
        for (at, (instance, changed)) in self.all.iter_mut().zip(&mut self.changed).enumerate() {
            if *changed {
                *changed = visit(at, instance);
            }
        }
    }

    /// False for an instance that nothing has changed since [`ThreadTable::visited`].
    pub fn has_changed(&self, thread: ThreadId) -> bool {
        self.changed.get(thread.index()) == Some(&true)
    }

    /// What has changed of an instance so far is known.
    pub fn visited(&mut self, thread: ThreadId) {
        self.changed.get_mut(thread.index()).into_iter().for_each(|changed| *changed = false);
    }

    /// The instance of an id of this table.
    pub fn get(&self, thread: ThreadId) -> Option<&T> {
        self.all.get(thread.index()).map(Box::as_ref)
    }

    /// The instances, and which one each id that was seen names.
    pub fn into_parts(self) -> (impl Iterator<Item = T>, impl Iterator<Item = (HostTid, Option<ThreadId>)>) {
        (self.all.into_iter().map(|instance| *instance), self.latest.into_iter())
    }

    /// An id names this instance from now on, or none.
    pub fn rename(&mut self, key: HostTid, thread: Option<ThreadId>) {
        self.latest.insert(key, thread);
    }
}

impl<T> Index<ThreadId> for ThreadTable<T> {
    type Output = T;

    /// Ids come from this table.
    #[inline]
    fn index(&self, thread: ThreadId) -> &T {
        &self.all[thread.index()]
    }
}

impl<T> IndexMut<ThreadId> for ThreadTable<T> {
    #[inline]
    fn index_mut(&mut self, thread: ThreadId) -> &mut T {
        self.changed[thread.index()] = true;
        &mut self.all[thread.index()]
    }
}

/// A property of a thread: the last value from its own events, else the first one from the state dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed<V> {
    own: Option<V>,
    dumped: Option<V>,
}

impl<V> Default for Observed<V> {
    fn default() -> Self {
        Observed { own: None, dumped: None }
    }
}

impl<V: Copy> Observed<V> {
    /// An event of the thread has this value, or none.
    pub fn observe(&mut self, value: Option<V>) {
        self.own = value.or(self.own);
    }

    /// The state dump has this value.
    pub fn fill(&mut self, value: Option<V>) {
        self.dumped = self.dumped.or(value);
    }

    /// The value, where it is known.
    pub fn get(&self) -> Option<V> {
        self.own.or(self.dumped)
    }

    /// Join the values of later events, after `rename`.
    pub fn join(&mut self, later: Observed<V>, rename: impl Fn(V) -> Option<V>) {
        self.observe(later.own.and_then(&rename));
        self.fill(later.dumped.and_then(rename));
    }
}

/// The thread that seems to have certain ids in user space, as long as that is not known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guess {
    pub thread: ThreadId,
    /// Number of events in a row.
    pub events: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: HostId = HostId::at(0);

    struct Named {
        tid: i32,
        alive: bool,
    }

    impl ThreadInstance for Named {
        fn tid(&self) -> i32 {
            self.tid
        }

        fn set_tid(&mut self, tid: i32) {
            self.tid = tid;
        }

        fn is_alive(&self) -> bool {
            self.alive
        }
    }

    fn key(tid: i32) -> HostTid {
        HostTid::new(HOST, tid)
    }

    #[test]
    fn visits_are_of_what_changed() {
        let mut table = ThreadTable::default();
        let ids: Vec<ThreadId> = (0..4).map(|tid| table.open(key(tid), Named { tid, alive: true })).collect();
        let visited = |table: &mut ThreadTable<Named>, again: Option<usize>| {
            let mut tids = Vec::new();
            table.visit_changed(|at, thread| {
                assert_eq!(at, thread.tid() as usize);
                tids.push(at);
                Some(at) == again
            });
            tids
        };
        assert_eq!(visited(&mut table, Some(2)), [0, 1, 2, 3], "new instances are");
        assert_eq!(table[ids[1]].tid(), 1);
        assert_eq!(visited(&mut table, None), [2], "reading changes nothing; one wants to be visited again");
        table[ids[3]].alive = false;
        assert_eq!(visited(&mut table, None), [3]);
        table.fork(key(0), Box::new(Named { tid: 4, alive: true }), |old| old.alive = false);
        assert_eq!(visited(&mut table, None), [0, 4], "a fork ends the one that had the id");
        assert_eq!(visited(&mut table, None), [0; 0]);
        table.iter_mut().for_each(|thread| thread.alive = true);
        assert_eq!(visited(&mut table, None).len(), 5);
    }

    #[test]
    fn holder_follows_forks_and_ends() {
        let mut table = ThreadTable::default();
        assert_eq!(table.holder(key(7)), Holder::Unseen);
        let first = table.open(key(7), Named { tid: 7, alive: true });
        assert_eq!(table.holder(key(7)), Holder::Alive(first));
        table[first].alive = false;
        assert_eq!((table.holder(key(7)), table.latest(key(7))), (Holder::Ended, Some(first)));
        assert_eq!(table.holder_on(key(7), Some(first)), Holder::Alive(first));
        let second = table.open(key(7), Named { tid: 7, alive: true });
        let (third, before) = table.fork(key(7), Box::new(Named { tid: 7, alive: true }), |old| old.alive = false);
        assert_eq!(before, Some(second));
        assert!(!table[second].is_alive());
        assert_eq!(table.holder(key(7)), Holder::Alive(third));
    }

    #[test]
    fn take_over_ends_the_first_thread_and_frees_the_own_id() {
        let mut table = ThreadTable::default();
        let first = table.open(key(7), Named { tid: 7, alive: true });
        let other = table.open(key(8), Named { tid: 8, alive: true });
        table.take_over(other, key(8), key(7), |leader| leader.alive = false);
        assert_eq!((table.holder(key(7)), table.holder(key(8))), (Holder::Alive(other), Holder::Ended));
        assert_eq!((table[other].tid(), table[first].is_alive()), (7, false));
        table.take_over(other, key(7), key(7), |_| unreachable!());
        assert_eq!(table.holder(key(7)), Holder::Alive(other));
    }

    #[test]
    fn on_cpu_distinguishes_idle_tasks_by_their_cpu() {
        let mut table = ThreadTable::default();
        let idle = table.open(HostTid::on_cpu(HOST, 1, 0), Named { tid: 0, alive: true });
        assert_eq!(table.holder_on(HostTid::on_cpu(HOST, 2, 0), Some(idle)), Holder::Unseen);
        assert_eq!(HostTid::on_cpu(HOST, 1, 7), key(7));
    }

    #[test]
    fn observed_prefers_own_events_and_the_first_dump() {
        let mut pid = Observed::default();
        pid.fill(Some(1));
        pid.fill(Some(2));
        assert_eq!(pid.get(), Some(1));
        pid.observe(Some(3));
        pid.observe(None);
        assert_eq!(pid.get(), Some(3));
    }
}
