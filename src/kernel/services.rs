//! The clients of kernel threads: the threads for which they work.
//!
//! There are two sources. A *work item* of a kernel worker is known by its address from its queueing to its end: the
//! worker works for the thread that queued it; the client is unknown where an interrupt queued it or events were lost
//! since. And a *wake-up* of a resting kernel thread hands it work, if it is one of those that are woken for that: it
//! works for its waker until it rests again. A thread rests where it sleeps as idle ones do (interruptible, or as no
//! load); while it waits for a disk or a lock it is still working. A worker that wakes another worker hands it no work:
//! the pool needs one more runnable worker. The table of queued items is bounded; it is emptied when it is full. What
//! was done moves to the store while the pass runs.

use super::sealed_rows::move_lines;
use crate::base::heap::table;
use crate::base::time::{Span, Timestamp};
use crate::event::host::HostId;
use crate::timeline::store::builder::LineStoreBuilder;
use crate::timeline::{Service, ThreadId};
use foldhash::HashMap;
use get_size2::GetSize;

/// Work items that wait for a worker.
const MOST: usize = 1 << 14;

/// The thread for which a kernel thread works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Client {
    pub thread: ThreadId,
    /// When it handed in the work.
    pub since: Timestamp,
}

/// A change of a work item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkChange {
    /// A thread queues it, or an interrupt.
    Queued(Option<ThreadId>),
    /// A worker begins to execute it.
    Begins(ThreadId),
    /// A worker has executed it.
    Ends(ThreadId),
}

/// The work that a kernel thread is doing.
#[derive(Clone, Copy, Debug)]
struct OpenService {
    since: Timestamp,
    client: Option<Client>,
    /// True for a recorded work item: it lasts until its end.
    is_item: bool,
}

/// A work item that waits for a worker.
#[derive(Clone, Copy, Debug)]
struct QueuedItem {
    client: Client,
    /// Number of losses of the host before.
    losses: u32,
}

/// All work of kernel threads for others.
#[derive(Clone, Debug, Default, GetSize)]
pub(super) struct Services {
    /// By host and address.
    #[get_size(size_fn = table)]
    queued: HashMap<(HostId, u64), QueuedItem>,
    /// By kernel thread.
    #[get_size(size_fn = table)]
    open: HashMap<ThreadId, OpenService>,
    /// Number of losses of each host.
    #[get_size(size_fn = table)]
    losses: HashMap<HostId, u32>,
    /// By end; those of a thread do not overlap.
    done: Vec<Service>,
}

impl Services {
    /// The work item at `address` changes.
    pub fn step(&mut self, t: Timestamp, host: HostId, address: u64, change: WorkChange) {
        match change {
            WorkChange::Queued(by) => {
                self.queued.remove(&(host, address));
                if self.queued.len() >= MOST {
                    self.queued.clear();
                }
                let losses = self.losses.get(&host).copied().unwrap_or(0);
                let item = by.map(|thread| QueuedItem { client: Client { thread, since: t }, losses });
                self.queued.extend(item.map(|item| ((host, address), item)));
            }
            WorkChange::Begins(worker) => {
                self.end(worker, t);
                let losses = self.losses.get(&host).copied().unwrap_or(0);
                let item = self.queued.remove(&(host, address)).filter(|item| item.losses == losses);
                // An item that a worker queues has the client of the item that this worker executes.
                let client = item.map(|item| self.client(item.client.thread).unwrap_or(item.client));
                self.open.insert(worker, OpenService { since: t, client, is_item: true });
            }
            WorkChange::Ends(worker) => self.end(worker, t),
        }
    }

    /// A kernel thread is woken by one that hands it work. If it is working already it continues with that.
    pub fn hand(&mut self, thread: ThreadId, t: Timestamp, client: ThreadId) {
        let client = self.client(client).unwrap_or(Client { thread: client, since: t });
        self.open.entry(thread).or_insert(OpenService { since: t, client: Some(client), is_item: false });
    }

    /// A thread rests: the work for which it was woken is done.
    pub fn rest(&mut self, thread: ThreadId, t: Timestamp) {
        if self.open.get(&thread).is_some_and(|service| !service.is_item) {
            self.end(thread, t);
        }
    }

    fn end(&mut self, thread: ThreadId, t: Timestamp) {
        let Some(OpenService { since: start, client, .. }) = self.open.remove(&thread) else { return };
        if let Some(client) = client.filter(|_| start < t) {
            let span = Span::new(start, t);
            self.done.push(Service { thread, span, client: client.thread, since: client.since });
        }
    }

    /// Events of a host were lost, on the CPU where `thread` ran.
    pub fn lose(&mut self, t: Timestamp, host: HostId, thread: Option<ThreadId>) {
        *self.losses.entry(host).or_default() += 1;
        if let Some(thread) = thread {
            self.end(thread, t);
        }
    }

    /// The thread for which a kernel thread works now.
    pub fn client(&self, thread: ThreadId) -> Option<Client> {
        self.open.get(&thread)?.client
    }

    /// Move the work that was done so far to the store, if that is `least` rows or more.
    pub fn seal(&mut self, least: usize, into: &mut LineStoreBuilder<Service>) {
        if self.done.len() >= least {
            move_lines(&mut self.done, |service| service.thread.index(), into);
        }
    }

    /// The work until `end` that is not in the store, by thread and time.
    pub fn close(mut self, end: Timestamp) -> Vec<Service> {
        let open: Vec<ThreadId> = self.open.keys().copied().collect();
        open.into_iter().for_each(|thread| self.end(thread, end));
        self.done.sort_unstable();
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: HostId = HostId::at(0);

    fn at(ns: i64) -> Timestamp {
        Timestamp::new(ns)
    }

    /// Thread, start, end, client and the time since which that one waits.
    fn fields(service: &Service) -> (u32, i64, i64, ThreadId, i64) {
        let Service { thread, span, client, since } = *service;
        (thread.raw(), span.start.ns(), span.end.ns(), client, since.ns())
    }

    #[test]
    fn step_takes_the_thread_that_queued_an_item_as_its_client() {
        let (a, worker, other) = (ThreadId::at(1), ThreadId::at(7), ThreadId::at(8));
        let mut services = Services::default();
        let client = |services: &Services, thread| services.client(thread).map(|client| client.thread);
        services.step(at(10), HOST, 100, WorkChange::Queued(Some(a)));
        assert_eq!(client(&services, worker), None);
        services.step(at(20), HOST, 100, WorkChange::Begins(worker));
        services.step(at(30), HOST, 200, WorkChange::Queued(Some(worker)));
        services.step(at(40), HOST, 200, WorkChange::Begins(other));
        assert_eq!((client(&services, worker), client(&services, other)), (Some(a), Some(a)));
        services.step(at(50), HOST, 100, WorkChange::Ends(worker));
        // Queued by an interrupt.
        services.step(at(60), HOST, 300, WorkChange::Queued(None));
        services.step(at(70), HOST, 300, WorkChange::Begins(worker));
        assert_eq!(client(&services, worker), None);
        services.step(at(80), HOST, 400, WorkChange::Queued(Some(a)));
        services.lose(at(90), HOST, Some(other));
        services.step(at(95), HOST, 400, WorkChange::Begins(worker));
        assert_eq!((client(&services, worker), client(&services, other)), (None, None));
        (0..100_000).for_each(|i| services.step(at(99), HOST, i, WorkChange::Queued(Some(a))));
        assert!(services.queued.len() <= MOST);
        let done: Vec<_> = services.close(at(100)).iter().map(fields).collect();
        assert_eq!(done, [(7, 20, 50, a, 10), (8, 40, 90, a, 10)]);
    }

    #[test]
    fn hand_opens_a_service_until_the_thread_rests() {
        let (a, b, journal, worker) = (ThreadId::at(1), ThreadId::at(2), ThreadId::at(7), ThreadId::at(8));
        let mut services = Services::default();
        services.hand(journal, at(10), a);
        // It is woken again while it works, and hands work to another kernel thread.
        services.hand(journal, at(12), b);
        services.hand(worker, at(15), journal);
        services.rest(worker, at(20));
        services.rest(journal, at(30));
        services.rest(journal, at(35));
        services.hand(journal, at(40), b);
        let done: Vec<_> = services.close(at(50)).iter().map(fields).collect();
        assert_eq!(done, [(7, 10, 30, a, 10), (7, 40, 50, b, 40), (8, 15, 20, a, 10)]);
    }
}
