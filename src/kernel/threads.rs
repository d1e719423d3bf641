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

use super::ended_list::EndedList;
use crate::event::host::HostId;
use crate::timeline::ThreadId;
use foldhash::HashMap;
use std::cell::{Cell, OnceCell};
use std::fmt::Debug;
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
pub trait ThreadInstance: From<Self::Ended> {
    /// All that it is once it has ended, in less memory.
    type Ended: Clone + Debug + From<Self>;
    /// The id that it has now.
    fn tid(&self) -> i32;
    /// It takes over another id.
    fn set_tid(&mut self, tid: i32);
    /// True until it ended.
    fn is_alive(&self) -> bool;
}

/// What becomes of an instance that was visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// It is visited the next time, too.
    Again,
    /// It is visited once something may have changed it.
    Known,
    /// It has ended, and little will change it: it is kept in less memory until it is asked for.
    Ended,
}

/// Where an instance is that has ended.
#[derive(Clone, Debug)]
struct Ended<T> {
    /// Its place among the ended ones, once it has one.
    place: Option<u32>,
    /// As it is there, where it was asked for.
    read: OnceCell<Box<T>>,
}

/// All thread instances, and which one each id names.
#[derive(Clone, Debug)]
pub struct ThreadTable<T: ThreadInstance> {
    /// Each in memory of its own: the table grows without moving it. `None` while it is among the ended ones.
    all: Vec<Option<Box<T>>>,
    /// By instance: true if it may have changed since [`ThreadTable::visit_changed`].
    changed: Vec<Cell<bool>>,
    /// By instance.
    ended: Vec<Ended<T>>,
    list: EndedList<T::Ended>,
    /// The latest instance of each id that was seen; `None` where it has another id now.
    latest: HashMap<HostTid, Option<ThreadId>>,
}

impl<T: ThreadInstance> Default for ThreadTable<T> {
    fn default() -> Self {
        let (all, changed, ended) = (Vec::new(), Vec::new(), Vec::new());
        ThreadTable { all, changed, ended, list: EndedList::default(), latest: HashMap::default() }
    }
}

impl<T: ThreadInstance> ThreadTable<T> {
    /// The holder of an id.
    pub fn holder(&self, key: HostTid) -> Holder {
        match self.latest.get(&key) {
            None => Holder::Unseen,
            Some(Some(thread)) if self.is_alive(*thread) => Holder::Alive(*thread),
            Some(_) => Holder::Ended,
        }
    }

    /// The instance that has an id.
    pub fn alive(&self, key: HostTid) -> Option<ThreadId> {
        self.latest(key).filter(|thread| self.is_alive(*thread))
    }

    /// True until an instance ends.
    pub fn is_alive(&self, thread: ThreadId) -> bool {
        self.all[thread.index()].as_ref().is_some_and(|instance| instance.is_alive())
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
        self.all.push(Some(instance));
        self.ended.push(Ended { place: None, read: OnceCell::new() });
        self.changed.push(Cell::new(true));
        let before = self.latest.insert(key, Some(thread));
        (thread, before.flatten())
    }

    /// A new instance that a fork made, and the one that its id named before. `end` ends that one if it still had the
    /// id.
    pub fn fork(&mut self, key: HostTid, child: Box<T>, end: impl FnOnce(&mut T)) -> (ThreadId, Option<ThreadId>) {
        let (thread, before) = self.open_boxed(key, child);
        if let Some(old) = before.filter(|old| self.is_alive(*old)) {
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

    /// Number of instances.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// The instances that are not among the ended ones, by id.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.all.iter().filter_map(|instance| instance.as_deref())
    }

    /// The instances that are not among the ended ones, by id.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.changed.fill(Cell::new(true));
        self.all.iter_mut().filter_map(|instance| instance.as_deref_mut())
    }

    /// An instance that is among the ended ones, as it was.
    #[cold]
    #[inline(never)]
    fn read(&self, thread: ThreadId) -> &T {
        // The copy goes with the next visit.
        self.changed[thread.index()].set(true);
        let ended = &self.ended[thread.index()];
        ended.read.get_or_init(|| ended.wake(&self.list))
    }

    /// None is among the ended ones any more.
    pub fn wake_all(&mut self) {
        for at in 0..self.all.len() {
            self.woken(ThreadId::at(at));
        }
    }

    /// An instance, which is not among the ended ones any more.
    #[inline]
    fn woken(&mut self, thread: ThreadId) -> &mut T {
        self.changed[thread.index()].set(true);
        let (ended, list) = (&self.ended, &self.list);
        self.all[thread.index()].get_or_insert_with(|| ended[thread.index()].wake(list))
    }

    /// Call `visit` for each instance that may have changed since the last time, with its position. Cost: a byte for
    /// each instance, and those that are visited.
    pub fn visit_changed(&mut self, mut visit: impl FnMut(usize, &mut T) -> Visit) {
        for (at, changed) in self.changed.iter_mut().enumerate().filter(|(_, changed)| changed.get()) {
            let (instance, ended) = (&mut self.all[at], &mut self.ended[at]);
            ended.read = OnceCell::new();
            let visited = instance.as_deref_mut().map_or(Visit::Known, |instance| visit(at, instance));
            changed.set(visited == Visit::Again);
            if let Some(instance) = instance.take_if(|_| visited == Visit::Ended) {
                ended.place = Some(self.list.put(ended.place, T::Ended::from(*instance)));
            }
        }
    }

    /// False for an instance that nothing has changed since [`ThreadTable::visited`].
    pub fn has_changed(&self, thread: ThreadId) -> bool {
        self.changed.get(thread.index()).is_some_and(Cell::get)
    }

    /// What has changed of an instance so far is known.
    pub fn visited(&mut self, thread: ThreadId) {
        self.changed.get(thread.index()).into_iter().for_each(|changed| changed.set(false));
    }

    /// The instance of an id of this table.
    pub fn get(&self, thread: ThreadId) -> Option<&T> {
        (thread.index() < self.all.len()).then(|| &self[thread])
    }

    /// The instances, and which one each id that was seen names.
    pub fn into_parts(self) -> (impl Iterator<Item = T>, impl Iterator<Item = (HostTid, Option<ThreadId>)>) {
        let ThreadTable { all, ended, mut list, latest, .. } = self;
        let instance = move |(instance, ended): (Option<Box<T>>, Ended<T>)| match instance {
            Some(instance) => Some(*instance),
            None => list.take(ended.place?).map(T::from),
        };
        (all.into_iter().zip(ended).filter_map(instance), latest.into_iter())
    }

    /// An id names this instance from now on, or none.
    pub fn rename(&mut self, key: HostTid, thread: Option<ThreadId>) {
        self.latest.insert(key, thread);
    }
}

impl<T> Ended<T> {
    /// The instance as it was.
    #[cold]
    #[inline(never)]
    fn wake<E: Clone>(&self, list: &EndedList<E>) -> Box<T>
    where
        T: From<E>,
    {
        // All that have ended have a place.
        Box::new(T::from(list[self.place.unwrap_or(u32::MAX)].clone()))
    }
}

impl<T: ThreadInstance> Index<ThreadId> for ThreadTable<T> {
    type Output = T;

    /// Ids come from this table.
    #[inline]
    fn index(&self, thread: ThreadId) -> &T {
        match &self.all[thread.index()] {
            Some(instance) => instance,
            None => self.read(thread),
        }
    }
}

impl<T: ThreadInstance> IndexMut<ThreadId> for ThreadTable<T> {
    #[inline]
    fn index_mut(&mut self, thread: ThreadId) -> &mut T {
        self.woken(thread)
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
