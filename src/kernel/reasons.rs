//! The names of reasons: why a thread waits where no event says it, and why a state or a cause is not known.

use crate::base::names::NameId;
use crate::event::prev_state::StoppedBy;

/// Reasons of waits, and why a state or a cause is not known, as qualifiers of segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reasons {
    /// A wait whose wake-up was not recorded.
    pub unresolved: NameId,
    /// A wait that had not ended when the recording did.
    pub ended: NameId,
    /// Before the thread's first event.
    pub unseen: NameId,
    /// After lost events.
    pub lost: NameId,
    /// After a switch that is missing.
    pub gap: NameId,
    /// After a switch that is missing because only some processes were tracked.
    pub untracked: NameId,
    /// On a CPU that was not recorded.
    pub elsewhere: NameId,
    /// No switch of its host was recorded.
    pub unscheduled: NameId,
    /// Woken by an interrupt that was not recorded: the CPU was idle, or its thread outside any system call.
    pub interrupt: NameId,
    /// Woken from another CPU by an unknown thread.
    pub remote: NameId,
    /// Stopped by a signal.
    pub signal: NameId,
    /// Stopped by a tracer.
    pub tracer: NameId,
    /// Ready to run on a CPU that was leaving an idle state.
    pub idle_exit: NameId,
}

impl Reasons {
    /// The reason why a thread is stopped.
    pub fn stopped(&self, by: StoppedBy) -> NameId {
        match by {
            StoppedBy::Signal => self.signal,
            StoppedBy::Tracer => self.tracer,
        }
    }
}
