//! For whom threads of the kernel work.
//!
//! Two things tell. A *piece of work* of a kernel worker is known by its address from its queueing to its end: the
//! worker works for whoever queued it, or for nobody known where that happened in an interrupt or before a loss. And
//! *who wakes* a resting thread of the kernel hands it work, where it is one of those that are woken for that: it works
//! for that thread until it rests again. A thread rests where it sleeps as idle ones do (interruptible, or as no load);
//! it is at work where it waits for a disk or a lock meanwhile. A worker that wakes another only makes room for it.
//! Tables are bounded: work whose start was not recorded is forgotten when there is too much.

use super::machine::Machine;
use crate::base::time::{Span, Timestamp};
use crate::event::kernel_thread::{is_handed_work, is_worker};
use crate::state::timeline::{HostId, Service, Thread, ThreadId};
use foldhash::HashMap;

/// Work that waits to be run.
const MOST: usize = 1 << 14;

/// A thread and when it handed in its work.
pub(super) type Client = (ThreadId, Timestamp);

/// What happens to a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkChange {
    /// A thread queues it, or an interrupt.
    Queued(Option<ThreadId>),
    /// A worker begins with it.
    Begins(ThreadId),
    /// A worker has done it.
    Ends(ThreadId),
}

/// What a thread of the kernel is at.
#[derive(Clone, Copy, Debug)]
struct Running {
    since: Timestamp,
    client: Option<Client>,
    /// A piece of work that was recorded; it lasts until its end.
    is_piece: bool,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Services {
    /// By whom and, in number of losses of the host, when.
    queued: HashMap<(HostId, u64), (Client, u32)>,
    running: HashMap<ThreadId, Running>,
    losses: HashMap<HostId, u32>,
    done: Vec<Service>,
}

impl Services {
    /// The work item at `address` moves on.
    pub fn step(&mut self, t: Timestamp, host: HostId, address: u64, work: WorkChange) {
        match work {
            WorkChange::Queued(by) => {
                self.queued.remove(&(host, address));
                if self.queued.len() >= MOST {
                    self.queued.clear();
                }
                let losses = self.losses.get(&host).copied().unwrap_or(0);
                self.queued.extend(by.map(|by| ((host, address), ((by, t), losses))));
            }
            WorkChange::Begins(worker) => {
                self.end(worker, t);
                let losses = self.losses.get(&host).copied().unwrap_or(0);
                let client = self.queued.remove(&(host, address)).filter(|(_, then)| *then == losses);
                // Work that queues work goes on for whoever queued the first.
                let client = client.map(|(client, _)| self.of(client.0).unwrap_or(client));
                self.running.insert(worker, Running { since: t, client, is_piece: true });
            }
            WorkChange::Ends(worker) => self.end(worker, t),
        }
    }

    /// A resting thread is woken by one that hands it work. One that is at work already goes on with that.
    fn hand(&mut self, thread: ThreadId, t: Timestamp, client: ThreadId) {
        let client = self.of(client).unwrap_or((client, t));
        self.running.entry(thread).or_insert(Running { since: t, client: Some(client), is_piece: false });
    }

    /// A thread rests: what it was woken for is done.
    pub fn rest(&mut self, thread: ThreadId, t: Timestamp) {
        if self.running.get(&thread).is_some_and(|running| !running.is_piece) {
            self.end(thread, t);
        }
    }

    fn end(&mut self, thread: ThreadId, t: Timestamp) {
        let Some(Running { since: start, client, .. }) = self.running.remove(&thread) else { return };
        if let Some((client, since)) = client.filter(|_| start < t) {
            self.done.push(Service { thread, span: Span::new(start, t), client, since });
        }
    }

    /// Events of a host were lost, on the CPU where `thread` ran.
    pub fn lose(&mut self, t: Timestamp, host: HostId, thread: Option<ThreadId>) {
        *self.losses.entry(host).or_default() += 1;
        if let Some(thread) = thread {
            self.end(thread, t);
        }
    }

    /// For whom a thread of the kernel works now.
    pub fn of(&self, thread: ThreadId) -> Option<Client> {
        self.running.get(&thread)?.client
    }

    /// All that was done until `end`, by thread and time.
    pub fn close(mut self, end: Timestamp) -> Vec<Service> {
        let at_work: Vec<ThreadId> = self.running.keys().copied().collect();
        at_work.into_iter().for_each(|thread| self.end(thread, end));
        self.done.sort_unstable();
        self.done
    }
}

impl Machine {
    /// `waker` woke `thread` at `t`: one of the kernel's own may have been handed work.
    pub(super) fn hand_work(&mut self, thread: ThreadId, t: Timestamp, waker: ThreadId) {
        let names = &self.out.names;
        let [own, wakers] = [thread, waker].map(|id| &self.threads[id].thread);
        let name = |thread: &Thread| thread.names.last().map_or("", |(_, name)| names.get(*name));
        let (own_name, wakers_name) = (name(own), name(wakers));
        if is_handed_work(own_name) && own.is_kernel(names) && !(is_worker(own_name) && is_worker(wakers_name)) {
            self.services.hand(thread, t, waker);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: HostId = HostId::at(0);

    #[test]
    fn work_is_for_whom_queued_it_until_it_ends() {
        let (a, worker, other) = (ThreadId::at(1), ThreadId::at(7), ThreadId::at(8));
        let mut works = Services::default();
        let of = |works: &Services, thread| works.of(thread).map(|(client, _)| client);
        works.step(10, HOST, 100, WorkChange::Queued(Some(a)));
        assert_eq!(of(&works, worker), None);
        works.step(20, HOST, 100, WorkChange::Begins(worker));
        works.step(30, HOST, 200, WorkChange::Queued(Some(worker)));
        works.step(40, HOST, 200, WorkChange::Begins(other));
        assert_eq!((of(&works, worker), of(&works, other)), (Some(a), Some(a)));
        works.step(50, HOST, 100, WorkChange::Ends(worker));
        // Queued by an interrupt.
        works.step(60, HOST, 300, WorkChange::Queued(None));
        works.step(70, HOST, 300, WorkChange::Begins(worker));
        assert_eq!(of(&works, worker), None);
        works.step(80, HOST, 400, WorkChange::Queued(Some(a)));
        works.lose(90, HOST, Some(other));
        works.step(95, HOST, 400, WorkChange::Begins(worker));
        assert_eq!((of(&works, worker), of(&works, other)), (None, None));
        (0..100_000).for_each(|i| works.step(99, HOST, i, WorkChange::Queued(Some(a))));
        assert!(works.queued.len() <= MOST);
        let done: Vec<_> =
            works.close(100).iter().map(|s| (s.thread.raw(), s.span.start, s.span.end, s.client, s.since)).collect();
        assert_eq!(done, [(7, 20, 50, a, 10), (8, 40, 90, a, 10)]);
    }

    #[test]
    fn who_wakes_a_resting_thread_hands_it_work_until_it_rests_again() {
        let (a, b, journal, worker) = (ThreadId::at(1), ThreadId::at(2), ThreadId::at(7), ThreadId::at(8));
        let mut works = Services::default();
        works.hand(journal, 10, a);
        // Woken again while it works, and working through another thread of the kernel.
        works.hand(journal, 12, b);
        works.hand(worker, 15, journal);
        works.rest(worker, 20);
        works.rest(journal, 30);
        works.rest(journal, 35);
        works.hand(journal, 40, b);
        let done: Vec<_> =
            works.close(50).iter().map(|s| (s.thread.raw(), s.span.start, s.span.end, s.client, s.since)).collect();
        assert_eq!(done, [(7, 10, 30, a, 10), (7, 40, 50, b, 40), (8, 15, 20, a, 10)]);
    }
}
