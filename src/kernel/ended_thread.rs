//! What is known of a thread once it has ended, in less memory than it took while it lived.
//!
//! In: its state, of which the end leaves only a part open. Out: that part, with its last row of each kind; and the
//! state as it was, where a late event names the thread.

use super::sealed_rows::SealedSegments;
use super::thread_state::{DescriptionVersion, EarlyWake, Sched, ThreadState};
use super::threads::{HostTid, Observed, ThreadInstance};
use crate::base::time::Timestamp;
use crate::timeline::{Call, Segment, StackSample, Thread, ThreadId, ThreadRows};

/// Declares what is kept of a thread besides its last rows, and how.
macro_rules! kept {
    ($($field:ident: $type:ty,)+) => {
        /// A thread that has ended: nothing interrupts it, it is in no call or function, and none of its switches is
        /// missing.
        #[derive(Clone, Debug)]
        pub(super) struct EndedThread {
            segment: Option<Segment>,
            call: Option<Call>,
            sample: Option<StackSample>,
            has_earlier_samples: bool,
            $($field: $type,)+
        }

        impl From<ThreadState> for EndedThread {
            fn from(mut state: ThreadState) -> EndedThread {
                state.thread.names.shrink_to_fit();
                let ThreadRows { segments, calls, samples, has_earlier_samples } = state.rows;
                EndedThread {
                    segment: segments.last().copied(),
                    call: calls.last().copied(),
                    sample: samples.last().copied(),
                    has_earlier_samples,
                    $($field: state.$field,)+
                }
            }
        }

        impl From<EndedThread> for ThreadState {
            fn from(ended: EndedThread) -> ThreadState {
                let key = HostTid::new(ended.thread.host, ended.thread.tid);
                let rows = ThreadRows {
                    segments: ended.segment.into_iter().collect(),
                    calls: ended.call.into_iter().collect(),
                    samples: ended.sample.into_iter().collect(),
                    has_earlier_samples: ended.has_earlier_samples,
                };
                let state = ThreadState::new(key, ended.since, Sched::Dead, ended.previous);
                ThreadState { rows, $($field: ended.$field,)+ ..state }
            }
        }
    };
}

kept! {
    thread: Thread,
    sealed: SealedSegments,
    since: Timestamp,
    cpu: u32,
    early_wake: Option<EarlyWake>,
    has_called: bool,
    lost_at: Timestamp,
    uninterruptible: bool,
    request_done: Timestamp,
    followed: bool,
    placed_by_waker: bool,
    exited: bool,
    exited_at: Timestamp,
    freed: bool,
    previous: Option<ThreadId>,
    pid: Observed<i32>,
    description: DescriptionVersion,
    confirmed: bool,
    namespace_level: i32,
    runs_softirqs: bool,
    last_sample: Timestamp,
    named_by_exec: bool,
    has_ended: bool,
}

impl ThreadState {
    /// True if it has ended, its rows are sealed but for the last, and nothing else is known of it than is kept.
    pub(super) fn is_at_rest(&self) -> bool {
        let is_in_nothing = self.interrupted.is_none() && self.call.is_none() && self.functions.is_empty();
        let agrees = self.gaps.count == 0 && self.contradictions == 0 && self.woke_outside.is_none();
        self.sched == Sched::Dead && self.is_sealed() && is_in_nothing && agrees
    }
}

impl ThreadInstance for ThreadState {
    type Ended = EndedThread;

    fn tid(&self) -> i32 {
        self.thread.tid
    }

    fn set_tid(&mut self, tid: i32) {
        self.thread.tid = tid;
        self.change_description();
    }

    fn is_alive(&self) -> bool {
        self.sched != Sched::Dead
    }
}
