//! The thread of a user-space event.
//!
//! Its contexts name thread and process as the namespace of the process does: in a container by small numbers that are
//! those of other threads outside. A user-space event happened on the thread that had its CPU, and kernel threads emit
//! none. So the ids are believed where one thread answers to them; where several do, or the one that does is elsewhere,
//! whoever has the CPU is asked. What was learnt once, by a fork, the tracer's enumeration, a context, or because
//! [`LEARNT`] events in a row happened on one thread, holds for the life of that thread. ALGORITHMS.md section 2.3.

use super::machine::{BatchIds, Machine};
use super::thread_state::{Sched, UnknownReason};
use crate::base::time::Timestamp;
use crate::event::kind::Event;
use crate::state::threads::{HostTid, ThreadInstance};
use crate::state::timeline::{HostId, ThreadId};

/// Events that tell for good whose ids they carry.
const LEARNT: u32 = 8;

/// Ids as user space sees them, and whose they seem to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guess {
    thread: ThreadId,
    times: u32,
}

/// Who answers to ids.
#[derive(Clone, Copy, Debug)]
struct Answer {
    /// The one thread in a container.
    learnt: Option<ThreadId>,
    /// There are several of them, and none has the CPU.
    several: bool,
    /// The thread whose ids they are outside of containers.
    outside: Option<ThreadId>,
}

impl Machine {
    /// The thread of a user-space event; `None` where nobody can say.
    pub(super) fn find_user(&mut self, host: HostId, event: &Event, ids: &mut BatchIds<'_>) -> Option<ThreadId> {
        let batch = ids.batch;
        let identity = batch.context(event.who).copied().unwrap_or_default();
        let here = self.has_cpu(host, event);
        let Some(vtid) = identity.vtid.or(identity.tid) else { return here };
        let vpid = identity.vpid.or(identity.pid);
        let Answer { learnt, several, outside } = self.answering(host, vtid, vpid, here);
        if several {
            return None;
        }
        let thread = match (learnt.or(outside), here) {
            // Known by what the kernel told of namespaces.
            (Some(thread), _) if learnt.is_some() => thread,
            (Some(thread), None) => thread,
            (Some(thread), Some(here)) if thread == here => {
                self.threads[thread].confirmed = true;
                thread
            }
            (known, Some(here)) => self.guess(host, (vtid, vpid), known, here)?,
            // A kernel that has not spoken of this id yet may do so under its real one.
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
        // User-space tracers keep the name that a thread had when they first asked.
        if state.thread.names.is_empty()
            && let Some(name) = identity.name
        {
            self.name(thread, event.time, name, ids);
        }
        self.seen_elsewhere(thread, host, event);
        Some(thread)
    }

    /// Who has the CPU of an event, if it can emit user-space events.
    fn has_cpu(&mut self, host: HostId, event: &Event) -> Option<ThreadId> {
        if self.kernel_traced.get(host.index()) != Some(&true) {
            return None;
        }
        let c = self.cpu(host, event.cpu, event.time)?;
        self.cpus[c].thread.filter(|thread| !self.is_kernel_thread(*thread))
    }

    fn is_kernel_thread(&self, thread: ThreadId) -> bool {
        self.threads[thread].thread.is_kernel(&self.out.names)
    }

    /// Who answers to ids. Of several in containers it is the one that has the CPU.
    fn answering(&self, host: HostId, vtid: i32, vpid: Option<i32>, here: Option<ThreadId>) -> Answer {
        let same = |pid: i32| pid == 0 || vpid.is_none_or(|vpid| vpid == pid);
        let fits = |thread: &ThreadId| {
            let state = &self.threads[*thread];
            let ids = state.thread.virtual_ids;
            state.is_alive() && ids.is_some_and(|(tid, pid)| tid == vtid && same(pid))
        };
        let inside = || self.by_vtid.get(&(host, vtid)).into_iter().flatten().copied().filter(&fits);
        let learnt = here.filter(|here| inside().any(|t| t == *here)).or_else(|| {
            let mut all = inside();
            all.next().filter(|first| all.all(|other| other == *first))
        });
        let several = learnt.is_none() && inside().next().is_some();
        let outside = self.threads.latest(HostTid::new(host, vtid)).filter(|thread| {
            let state = &self.threads[*thread];
            let pid = if state.is_pid_known() { state.thread.pid } else { 0 };
            let own = state.thread.virtual_ids.is_none_or(|(tid, _)| tid == vtid);
            state.is_alive() && own && same(pid) && !self.is_kernel_thread(*thread)
        });
        Answer { learnt, several, outside }
    }

    /// The CPU is `here`'s, and the ids are nobody's, or `known`'s, outside of containers. Where `known` can have
    /// emitted the event (times of two tracers are not that exact) it did, until others were seen often enough.
    fn guess(
        &mut self,
        host: HostId,
        (vtid, vpid): (i32, Option<i32>),
        known: Option<ThreadId>,
        here: ThreadId,
    ) -> Option<ThreadId> {
        if let Some(ids) = self.threads[here].thread.virtual_ids
            && ids != (vtid, vpid.unwrap_or(ids.1))
        {
            // It is somebody else inside its container.
            return known;
        }
        let confirmed = |known: ThreadId| self.threads[known].confirmed;
        if known.is_some_and(confirmed) {
            return known;
        }
        if self.threads[here].thread.tid == vtid && known.is_none() {
            return Some(here);
        }
        let key = (host, vtid, vpid.unwrap_or(0));
        let guess = self.guesses.entry(key).or_insert(Guess { thread: here, times: 0 });
        if guess.thread == here {
            guess.times += 1;
        } else {
            *guess = Guess { thread: here, times: 1 };
        }
        if guess.times >= LEARNT {
            self.guesses.remove(&key);
            self.namespace(here, vtid, vpid.unwrap_or(0), 1);
            return Some(here);
        }
        known.or(Some(here))
    }

    /// A user-space event says that its thread runs on a CPU of which the kernel's trace has no stream.
    fn seen_elsewhere(&mut self, thread: ThreadId, host: HostId, event: &Event) {
        let sched = self.threads[thread].sched;
        let t: Timestamp = event.time;
        if matches!(sched, Sched::Ready | Sched::Blocked) && !self.is_recorded(host, event.cpu.into()) {
            self.threads[thread].change(t, Sched::Unknown(UnknownReason::Elsewhere), &self.reasons);
        }
    }
}
