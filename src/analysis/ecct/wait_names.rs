//! The names of waits for which no event of a recording gives one, looked up once for all paths of a timeline.
//!
//! In: a timeline, whose machine has interned them. Out: their ids. ALGORITHMS.md 5.4.

use crate::base::names::NameId;
use crate::model::wait_kind::{
    BY_SIGNAL, BY_TRACER, HYPERVISOR, IDLE_CPU, IDLE_NO_QUOTA, IN_PHASE, LIKE_A_QUOTA, NO_STEAL, OTHER_PRIORITY,
    OUT_OF_TURN,
};
use crate::state::timeline::Timeline;

/// The names of waits that need one, among those of the timeline.
#[derive(Clone, Copy)]
pub(super) struct WaitNames {
    /// The time in which a CPU was idle although a thread was to run on it.
    pub idle: Option<NameId>,
    /// The same where no quota held the thread back.
    pub idle_no_quota: Option<NameId>,
    /// A thread that had lost the CPU, ready to run, came back in the place of another that ran for longer than time
    /// slices last.
    pub like_quota: Option<NameId>,
    /// A thread that had been woken came in the place of another that ran for longer than time slices last.
    pub out_of_turn: Option<NameId>,
    /// Either, of a thread that no quota held back and that has not the usual priority.
    pub other_priority: Option<NameId>,
    /// A thread came back in phase with others of its group.
    pub in_phase: Option<NameId>,
    /// The hypervisor gave a CPU to others.
    pub hypervisor: Option<NameId>,
    /// It did not.
    pub no_steal: Option<NameId>,
    /// A signal stopped a thread.
    pub signal: Option<NameId>,
    /// A tracer stopped a thread.
    pub tracer: Option<NameId>,
}

impl WaitNames {
    /// Those that the timeline has.
    pub fn of(timeline: &Timeline) -> WaitNames {
        let find = |name| timeline.names().find(name);
        WaitNames {
            idle: find(IDLE_CPU),
            idle_no_quota: find(IDLE_NO_QUOTA),
            like_quota: find(LIKE_A_QUOTA),
            out_of_turn: find(OUT_OF_TURN),
            other_priority: find(OTHER_PRIORITY),
            in_phase: find(IN_PHASE),
            hypervisor: find(HYPERVISOR),
            no_steal: find(NO_STEAL),
            signal: find(BY_SIGNAL),
            tracer: find(BY_TRACER),
        }
    }
}
