//! Pieces of work that threads hand to kernel workers: whose is the one that a worker runs?
//!
//! A work item is known by its address from its queueing to its end. One that is queued in an interrupt is nobody's.
//! An item may be queued again: after events were lost, one that was queued before is nobody's. The table is bounded: work whose start was not recorded is forgotten when it is full.

use crate::state::recording::{HostId, ThreadId};
use foldhash::HashMap;

/// Work that waits to be run.
const MOST: usize = 1 << 14;

/// What happens to a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// A thread queues it, or an interrupt.
    Queued(Option<ThreadId>),
    /// A worker begins with it.
    Begins(ThreadId),
    /// A worker has done it.
    Ends(ThreadId),
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Works {
    /// By whom and, in number of losses of the host, when.
    queued: HashMap<(HostId, u64), (ThreadId, u32)>,
    running: HashMap<ThreadId, ThreadId>,
    losses: HashMap<HostId, u32>,
}

impl Works {
    /// The work item at `address` moves on.
    pub fn step(&mut self, host: HostId, address: u64, work: Work) {
        match work {
            Work::Queued(by) => {
                self.queued.remove(&(host, address));
                if self.queued.len() >= MOST {
                    self.queued.clear();
                }
                let losses = self.losses.get(&host).copied().unwrap_or(0);
                self.queued.extend(by.map(|by| ((host, address), (by, losses))));
            }
            Work::Begins(worker) => {
                self.running.remove(&worker);
                let losses = self.losses.get(&host).copied().unwrap_or(0);
                let by = self.queued.remove(&(host, address)).filter(|(_, then)| *then == losses).map(|(by, _)| by);
                // Work that queues work goes on for whoever queued the first.
                let by = by.map(|by| self.running.get(&by).copied().unwrap_or(by));
                self.running.extend(by.map(|by| (worker, by)));
            }
            Work::Ends(worker) => {
                self.running.remove(&worker);
            }
        }
    }

    /// Events of a host were lost, on the CPU where `thread` ran.
    pub fn lose(&mut self, host: HostId, thread: Option<ThreadId>) {
        *self.losses.entry(host).or_default() += 1;
        if let Some(worker) = thread {
            self.running.remove(&worker);
        }
    }

    /// For whom a worker works now.
    pub fn of(&self, worker: ThreadId) -> Option<ThreadId> {
        self.running.get(&worker).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_for_whom_queued_it_until_it_ends() {
        const HOST: HostId = HostId(0);
        let (a, worker, other) = (ThreadId(1), ThreadId(7), ThreadId(8));
        let mut works = Works::default();
        works.step(HOST, 100, Work::Queued(Some(a)));
        assert_eq!(works.of(worker), None);
        works.step(HOST, 100, Work::Begins(worker));
        works.step(HOST, 200, Work::Queued(Some(worker)));
        works.step(HOST, 200, Work::Begins(other));
        assert_eq!((works.of(worker), works.of(other)), (Some(a), Some(a)));
        works.step(HOST, 100, Work::Ends(worker));
        // Queued by an interrupt.
        works.step(HOST, 300, Work::Queued(None));
        works.step(HOST, 300, Work::Begins(worker));
        assert_eq!(works.of(worker), None);
        works.step(HOST, 400, Work::Queued(Some(a)));
        works.lose(HOST, Some(other));
        works.step(HOST, 400, Work::Begins(worker));
        assert_eq!((works.of(worker), works.of(other)), (None, None));
        (0..100_000).for_each(|i| works.step(HOST, i, Work::Queued(Some(a))));
        assert!(works.queued.len() <= MOST);
    }
}
