//! The thread of a user-space event.
//!
//! Its contexts name thread and process by their ids in the namespace of the process: in a container these are small
//! numbers that other threads have outside. A user-space event happened on the thread that ran on its CPU, and kernel
//! threads emit none. So the ids decide where one thread has them; where several threads have them, or the one that has
//! them is on another CPU, the thread that runs on the CPU of the event decides. Ids that became known by a fork, the
//! state dump, a context, or because [`LEARNT`] events in a row happened on one thread, are valid for the life of that
//! thread. ALGORITHMS.md section 2.3.

use super::machine::{BatchIds, Machine};
use super::thread_state::{Sched, UnknownReason};
use super::threads::Guess;
use crate::event::host::HostId;
use crate::event::kind::Event;
use crate::kernel::threads::{HostTid, ThreadInstance};
use crate::timeline::{ThreadId, VirtualIds};

/// Events in a row that prove the thread of their ids.
const LEARNT: u32 = 8;

/// The threads that have certain ids.
#[derive(Clone, Copy, Debug)]
struct Candidates {
    /// The only thread in a container, or the one that runs on the CPU.
    learnt: Option<ThreadId>,
    /// True for several threads in containers of which none runs on the CPU.
    several: bool,
    /// The thread that has these ids outside of containers.
    outside: Option<ThreadId>,
}

impl Machine {
    /// The thread of a user-space event; `None` where it is unknown.
    pub(super) fn find_user(&mut self, host: HostId, event: &Event, ids: &mut BatchIds<'_>) -> Option<ThreadId> {
        let batch = ids.batch;
        let identity = batch.context(event.who).copied().unwrap_or_default();
        let here = self.running_program(host, event);
        let Some(vtid) = identity.vtid.or(identity.tid) else { return here };
        let vpid = identity.vpid.or(identity.pid);
        let Candidates { learnt, several, outside } = self.candidates(host, vtid, vpid, here);
        if several {
            return None;
        }
        let thread = match (learnt.or(outside), here) {
            // Known from kernel events with virtual ids.
            (Some(thread), _) if learnt.is_some() => thread,
            (Some(thread), None) => thread,
            (Some(thread), Some(here)) if thread == here => {
                self.threads[thread].confirmed = true;
                thread
            }
            (known, Some(here)) => self.guess(host, (vtid, vpid), known, here)?,
            // The kernel's events may have named this thread by its real id already.
            (None, None) if self.kernel_traced.get(host.index()) == Some(&true) => {
                if self.threads.latest(HostTid::new(host, vtid)).is_some() {
                    return None;
                }
                self.thread(host, vtid, event.time)
            }
            (None, None) => self.thread(host, vtid, event.time),
        };
        let state = &mut self.threads[thread];
        if let (None, Some(pid)) = (state.thread.virtual_ids, vpid) {
            state.fill_pid(pid);
        }
        // A user-space tracer reads the name of a thread once and keeps it.
        if state.thread.names.is_empty()
            && let Some(name) = identity.name
        {
            self.name(thread, event.time, name, ids);
        }
        self.seen_elsewhere(thread, host, event);
        Some(thread)
    }

    /// The thread that runs on the CPU of an event, if it can emit user-space events.
    fn running_program(&mut self, host: HostId, event: &Event) -> Option<ThreadId> {
        if self.kernel_traced.get(host.index()) != Some(&true) {
            return None;
        }
        let c = self.cpus.id(host, event.cpu, event.time)?;
        self.cpus[c].thread.filter(|thread| !self.is_kernel_thread(*thread))
    }

    fn is_kernel_thread(&self, thread: ThreadId) -> bool {
        self.threads[thread].is_kernel(&self.out.tables.names)
    }

    /// The threads that have certain ids. Of several in containers it is `here`, which runs on the CPU of the event.
    fn candidates(&self, host: HostId, vtid: i32, vpid: Option<i32>, here: Option<ThreadId>) -> Candidates {
        let same = |pid: i32| pid == 0 || vpid.is_none_or(|vpid| vpid == pid);
        let fits = |thread: &ThreadId| {
            let state = &self.threads[*thread];
            let ids = state.thread.virtual_ids;
            state.is_alive() && ids.is_some_and(|ids| ids.tid == vtid && same(ids.pid))
        };
        let inside = || self.by_vtid.get(&(host, vtid)).into_iter().flatten().copied().filter(&fits);
        let learnt = here.filter(|here| inside().any(|thread| thread == *here)).or_else(|| {
            let mut all = inside();
            all.next().filter(|first| all.all(|other| other == *first))
        });
        let several = learnt.is_none() && inside().next().is_some();
        let outside = self.threads.latest(HostTid::new(host, vtid)).filter(|thread| {
            let state = &self.threads[*thread];
            let pid = state.known_pid().unwrap_or(0);
            let own = state.thread.virtual_ids.is_none_or(|ids| ids.tid == vtid);
            state.is_alive() && own && same(pid) && !self.is_kernel_thread(*thread)
        });
        Candidates { learnt, several, outside }
    }

    /// `here` runs on the CPU of the event; no thread has its ids, or `known` has them outside of containers. The event
    /// belongs to `known` if that can have emitted it (the times of two tracers differ slightly), until enough events
    /// in a row happened on another thread.
    fn guess(
        &mut self,
        host: HostId,
        (vtid, vpid): (i32, Option<i32>),
        known: Option<ThreadId>,
        here: ThreadId,
    ) -> Option<ThreadId> {
        if let Some(ids) = self.threads[here].thread.virtual_ids
            && ids != (VirtualIds { tid: vtid, pid: vpid.unwrap_or(ids.pid) })
        {
            // It has other ids in its container.
            return known;
        }
        if known.is_some_and(|known| self.threads[known].confirmed) {
            return known;
        }
        if self.threads[here].thread.tid == vtid && known.is_none() {
            return Some(here);
        }
        let key = (host, vtid, vpid.unwrap_or(0));
        let guess = self.guesses.entry(key).or_insert(Guess { thread: here, events: 0 });
        if guess.thread == here {
            guess.events += 1;
        } else {
            *guess = Guess { thread: here, events: 1 };
        }
        if guess.events >= LEARNT {
            self.guesses.remove(&key);
            self.namespace(here, VirtualIds { tid: vtid, pid: vpid.unwrap_or(0) }, 1);
            return Some(here);
        }
        known.or(Some(here))
    }

    /// A user-space event shows its thread on a CPU of which the kernel's trace has no stream.
    fn seen_elsewhere(&mut self, thread: ThreadId, host: HostId, event: &Event) {
        let sched = self.threads[thread].sched;
        if matches!(sched, Sched::Ready | Sched::Blocked | Sched::Stopped(_))
            && !self.is_recorded(host, event.cpu.into())
        {
            self.threads[thread].change(event.time, Sched::Unknown(UnknownReason::Elsewhere), &self.reasons);
        }
    }
}
