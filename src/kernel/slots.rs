//! The slots of a thread that the events of a chunk set, to be handed from one machine to another.
//!
//! In: a thread of the machine that stepped through the events. Out: the thread of the other machine after them. What
//! only that other machine sets (its ids in containers, its functions, the block requests that it submitted) is left
//! as it is there. Cost: constant.

use super::cpu::{UNKNOWN_START, known_span};
use super::thread_state::{EarlyWake, Interruption, OpenCall, Sched, ThreadState};
use crate::base::time::Timestamp;
use crate::kernel::threads::Observed;
use crate::timeline::Segment;

/// The parent of a thread of a worker that no event has named.
const UNKNOWN_PARENT: i32 = i32::MIN;

/// The slots of a thread that the events of a chunk set.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadSlots {
    pub sched: Sched,
    since: Timestamp,
    cpu: u32,
    pub interrupted: Option<Interruption>,
    pub early_wake: Option<EarlyWake>,
    pub call: Option<OpenCall>,
    has_called: bool,
    uninterruptible: bool,
    placed_by_waker: bool,
    followed: bool,
    exited: bool,
    exited_at: Timestamp,
    last_sample: Timestamp,
    pid: Observed<i32>,
    ppid: i32,
    end: Timestamp,
}

/// The slots that a chunk knows only once an event of it has set them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KnownSlots {
    /// The call that the thread is in.
    pub call: bool,
    /// How it left its CPU and got into its run queue.
    pub queue: bool,
    /// Its last stack sample.
    pub sample: bool,
    /// A wake-up while it seemed to run.
    pub early_wake: bool,
}

impl ThreadState {
    /// Nothing is known of its process.
    pub fn forget_process(&mut self) {
        self.pid = Observed::default();
        self.thread.ppid = UNKNOWN_PARENT;
    }

    /// The slots that the events of a chunk set.
    pub fn slots(&self) -> ThreadSlots {
        ThreadSlots {
            sched: self.sched,
            since: self.since,
            cpu: self.cpu,
            interrupted: self.interrupted,
            early_wake: self.early_wake,
            call: self.call,
            has_called: self.has_called,
            uninterruptible: self.uninterruptible,
            placed_by_waker: self.placed_by_waker,
            followed: self.followed,
            exited: self.exited,
            exited_at: self.exited_at,
            last_sample: self.last_sample,
            pid: self.pid,
            ppid: self.thread.ppid,
            end: self.thread.life.end,
        }
    }

    /// Add the first segment that a worker has made; the one that was open before began at `since`.
    pub fn add_first_segment(&mut self, segment: Segment, since: Timestamp) {
        if let Some(span) = known_span(segment.span, since) {
            self.add_segment(Segment { span, ..segment });
        }
    }

    /// Set the slots that the events of a chunk have set.
    pub fn set_slots(&mut self, slots: &ThreadSlots, known: KnownSlots) {
        self.sched = slots.sched;
        if slots.since != UNKNOWN_START {
            self.since = slots.since;
        }
        self.cpu = slots.cpu;
        self.interrupted = slots.interrupted;
        if known.early_wake {
            self.early_wake = slots.early_wake;
        }
        if known.call {
            (self.call, self.has_called) = (slots.call, slots.has_called);
        }
        if known.queue {
            self.uninterruptible = slots.uninterruptible;
            self.placed_by_waker = slots.placed_by_waker;
        }
        // One that the worker left to the machine may be later than its own last one.
        self.last_sample = self.last_sample.max(slots.last_sample);
        self.followed |= slots.followed;
        if slots.exited {
            self.exit(self.exited_at.max(slots.exited_at));
        }
        if slots.sched == Sched::Dead {
            self.thread.life.end = slots.end;
        }
        let before = self.pid;
        self.pid.join(slots.pid, Some);
        if self.pid != before {
            self.change_description();
            self.thread.pid = self.pid.get().unwrap_or(self.thread.pid);
        }
        if slots.ppid != UNKNOWN_PARENT {
            self.set_ppid(slots.ppid);
        }
    }
}
