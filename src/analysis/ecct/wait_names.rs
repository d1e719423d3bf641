//! The names of waits for which no event of a recording gives one, looked up once for all paths of a timeline.
//!
//! In: a timeline, whose machine has interned them. Out: their ids. ALGORITHMS.md 5.4.

use crate::base::names::NameId;
use crate::model::wait_kind::{BY_SIGNAL, BY_TRACER, IDLE_CPU, IN_PHASE, LIKE_A_QUOTA, OUT_OF_TURN};
use crate::state::timeline::Timeline;

/// The names of waits that need one, among those of the timeline.
#[derive(Clone, Copy)]
pub(super) struct WaitNames {
    /// The time in which a CPU was idle although a thread was to run on it.
    pub idle: Option<NameId>,
    /// A thread that had lost the CPU, ready to run, came back in the place of another that ran for longer than time
    /// slices last.
    pub like_quota: Option<NameId>,
    /// A thread that had been woken came in the place of another that ran for longer than time slices last.
    pub out_of_turn: Option<NameId>,
    /// A thread came back in phase with others of its group.
    pub in_phase: Option<NameId>,
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
            like_quota: find(LIKE_A_QUOTA),
            out_of_turn: find(OUT_OF_TURN),
            in_phase: find(IN_PHASE),
            signal: find(BY_SIGNAL),
            tracer: find(BY_TRACER),
        }
    }
}
