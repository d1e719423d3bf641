//! The creation of threads (ALGORITHMS.md 3.5).
//!
//! In: the event by which a thread creates another one, and what the new one gets from it. Out: an instance of the new
//! id. Cost: a hash look-up. The caller allocates the instance, since a worker can do that outside of the stage that
//! joins chunks.

use super::machine::{BatchIds, Machine};
use super::thread_state::{OpenCall, Sched, ThreadState};
use crate::base::time::Timestamp;
use crate::event::image::ImageChange;
use crate::event::kind::TextId;
use crate::kernel::threads::HostTid;
use crate::timeline::{ThreadId, VirtualIds};

/// A new thread, as the event of its creation names it.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewThread {
    pub tid: i32,
    pub pid: i32,
    /// Its id in the innermost namespace; 0 where unknown.
    pub vtid: i32,
    pub name: TextId,
}

/// What a new thread gets from its parent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inherited {
    pub call: Option<OpenCall>,
    pub cpu: u32,
    /// The process of the parent.
    pub pid: i32,
}

impl ThreadState {
    /// A new thread, with memory for as many rows as one has that ends soon.
    pub fn with_room(key: HostTid, start: Timestamp) -> ThreadState {
        let mut state = ThreadState::new(key, start, Sched::New, None);
        state.thread.names.reserve(2);
        state.rows.segments.reserve(8);
        state.rows.calls.reserve(4);
        state
    }

    /// What a new thread gets from it.
    pub fn inherited(&self) -> Inherited {
        Inherited { call: self.call, cpu: self.cpu, pid: self.thread.pid }
    }
}

impl Machine {
    /// `parent` creates a thread. Tolerated: the id is in use (the exit of that thread was lost; it ends here). `state`
    /// is that of a thread that nothing has happened to.
    pub(super) fn fork(
        &mut self,
        t: Timestamp,
        parent: ThreadId,
        inherited: Inherited,
        mut state: Box<ThreadState>,
        new: NewThread,
        ids: &mut BatchIds<'_>,
    ) -> ThreadId {
        let host = state.thread.host;
        state.cpu = inherited.cpu;
        state.call = inherited.call.map(|call| OpenCall { since: t, ..call });
        state.observe_pid(Some(new.pid));
        state.set_ppid(inherited.pid);
        state.thread.parent = Some(parent);
        let mut lost = false;
        let (thread, previous) = self.threads.fork(HostTid::new(host, new.tid), state, |old| {
            // If its exit was recorded, only its last switch is missing.
            lost = !old.exited;
            old.die(old.end_by_exit().unwrap_or(t), &self.reasons);
        });
        if lost {
            self.inconsistent(t);
        }
        self.threads[thread].previous = previous;
        if new.vtid != 0 && new.vtid != new.tid {
            // The id of its process there is unknown where its parent's virtual ids are.
            let inside = self.threads[parent].thread.virtual_ids;
            let vpid = if new.tid == new.pid { new.vtid } else { inside.map_or(0, |ids| ids.pid) };
            self.namespace(thread, VirtualIds { tid: new.vtid, pid: vpid }, 1);
        }
        self.name(thread, t, new.name, ids);
        if new.pid == new.tid {
            self.image(t, host, new.pid, ImageChange::Fork { parent_pid: inherited.pid });
        }
        thread
    }
}
