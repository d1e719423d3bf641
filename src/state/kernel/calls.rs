//! System calls: from entry to exit, and what a call's result tells of the waits inside it.
//!
//! Exits and entries get lost: a call whose exit is missing ends where events were lost at the latest, one whose entry
//! is missing begins there at the earliest (`losses`). Where no loss is told, one whose entry is missing began where
//! the thread first waited since its last call.
//!
//! A call that returned a time-out knows what ended its last wait, whoever ran on the CPU when the timer's interrupt
//! came, and whether that interrupt was recorded or not ([`timed_out`]). ALGORITHMS.md sections 3.4 and 4.4.

use super::machine::Machine;
use super::thread_state::ThreadState;
use crate::base::names::NameId;
use crate::base::time::Timestamp;
use crate::state::timeline::{Segment, SegmentKind, ThreadId};

/// Segments that a call's last wait may lie back.
const NEAR: usize = 64;

/// Calls that end by their timer when they return nothing found, or that their sleep is over.
const SLEEPS: [&str; 4] = ["nanosleep", "clock_nanosleep", "clock_nanosleep_time64", "nanosleep_time64"];
const POLLS: [&str; 12] = [
    "poll",
    "ppoll",
    "ppoll_time64",
    "select",
    "_newselect",
    "pselect6",
    "pselect6_time64",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "io_getevents",
    "io_pgetevents",
];
/// Calls that return an error of their own when their time is over.
const TIMED: [&str; 11] = [
    "futex",
    "futex_time64",
    "futex_wait",
    "futex_waitv",
    "io_uring_enter",
    "mq_timedsend",
    "mq_timedsend_time64",
    "mq_timedreceive",
    "mq_timedreceive_time64",
    "recvmmsg",
    "recvmmsg_time64",
];
/// Calls that say then that they were to be tried again.
const TRIED: [&str; 5] =
    ["rt_sigtimedwait", "rt_sigtimedwait_time64", "sigtimedwait", "semtimedop", "semtimedop_time64"];
const EAGAIN: i64 = -11;
const ETIME: i64 = -62;
const ETIMEDOUT: i64 = -110;

/// True where a call with this result was ended by its timer.
pub(super) fn timed_out(call: &str, ret: i64) -> bool {
    match ret {
        0 => SLEEPS.contains(&call) || POLLS.contains(&call),
        ETIMEDOUT | ETIME => TIMED.contains(&call),
        EAGAIN => TRIED.contains(&call),
        _ => false,
    }
}

impl Machine {
    pub(super) fn enter_call(&mut self, thread: ThreadId, t: Timestamp, name: NameId) {
        self.end_unseen(thread, t);
        let state = &mut self.threads[thread];
        state.call = Some((t, name));
        state.called = true;
    }

    /// The exit of the call before was not recorded, or it is one that never returns here (`rt_sigreturn`): it lasted
    /// until now, or until events were lost.
    fn end_unseen(&mut self, thread: ThreadId, t: Timestamp) {
        let state = &mut self.threads[thread];
        if let Some((start, _)) = state.call {
            let lost = self.losses.first(state.thread.host, None, start, t);
            state.end_call(lost.unwrap_or(t), None);
        }
    }

    pub(super) fn leave_call(&mut self, thread: ThreadId, t: Timestamp, name: Option<NameId>, ret: i64) {
        let state = &self.threads[thread];
        match (state.call, name) {
            (Some((since, entered)), Some(left)) if entered != left && state.called => {
                // Exit of one call and entry of another are missing. A sleep that is over took place in the second.
                let lost = self.losses.first(state.thread.host, None, since, t);
                let slept = || timed_out(self.out.names.get(left), ret).then(|| first_wait(state, since)).flatten();
                let start = lost.or_else(slept);
                self.end_unseen(thread, start.unwrap_or(t));
                self.inconsistent(t);
                self.begin_unseen(thread, start.filter(|start| *start < t), left);
            }
            (None, Some(left)) => {
                let before = state.thread.calls.last().map_or(state.thread.life.start, |call| call.span.end);
                let lost = self.losses.first(state.thread.host, None, before, t);
                // A thread that never entered a call here began inside it: before the recording, or by a fork.
                let start = match state.called {
                    true => lost.or_else(|| first_wait(state, before)),
                    false => Some(before.max(state.floor)),
                };
                self.begin_unseen(thread, start.filter(|start| *start < t), left);
            }
            _ => {}
        }
        self.blame_timer(thread, ret);
        let state = &mut self.threads[thread];
        state.end_call(t, Some(ret));
        state.called = true;
    }

    /// A thread is in a call whose entry was not recorded, since `start` where that can be said. Whom it woke since its
    /// last call, it woke in this one.
    fn begin_unseen(&mut self, thread: ThreadId, start: Option<Timestamp>, name: NameId) {
        let state = &mut self.threads[thread];
        state.call = start.map(|start| (start, name));
        let before = state.thread.calls.last().map_or(Timestamp::MIN, |call| call.span.end);
        let Some((woken, segment, at)) = state.woke_outside.take().filter(|(.., at)| *at >= before) else { return };
        if let Some(segment) = self.threads[woken]
            .thread
            .segments
            .get_mut(segment)
            .filter(|e| e.span.end == at && e.kind == SegmentKind::Blocked)
        {
            (segment.waker, segment.qualifier) = (Some((thread, at)), None);
        }
    }

    /// The open call of a thread returns: where that was because its time was over, its last wait was for a timer. A
    /// call that does nothing but sleep slept even where the switches are missing.
    fn blame_timer(&mut self, thread: ThreadId, ret: i64) {
        let state = &mut self.threads[thread];
        let Some((start, name)) = state.call else { return };
        let name = self.out.names.get(name);
        if !timed_out(name, ret) {
            return;
        }
        let mut inside =
            state.thread.segments.iter_mut().rev().take(NEAR).take_while(|segment| segment.span.end > start);
        let slept = |segment: &&mut Segment| {
            is_wait(segment.kind) || segment.kind == SegmentKind::Unknown && segment.span.start >= start
        };
        let wait =
            if SLEEPS.contains(&name) { inside.find(slept) } else { inside.find(|segment| is_wait(segment.kind)) };
        if let Some(wait) = wait {
            (wait.kind, wait.waker, wait.qualifier) = (SegmentKind::Timer, None, None);
        }
    }
}

/// Off the CPU, and not able to run.
fn is_wait(kind: SegmentKind) -> bool {
    !matches!(kind, SegmentKind::Running | SegmentKind::Interrupted | SegmentKind::Preempted | SegmentKind::Unknown)
}

/// Where a thread first waited, or may have, since `before`: threads wait in calls.
fn first_wait(state: &ThreadState, before: Timestamp) -> Option<Timestamp> {
    let since = state.thread.segments.iter().rev().take(NEAR).take_while(|segment| segment.span.start >= before);
    since
        .filter(|segment| is_wait(segment.kind) || segment.kind == SegmentKind::Unknown)
        .last()
        .map(|segment| segment.span.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_tell_time_outs() {
        for (call, ret, wanted) in [
            ("nanosleep", 0, true),
            ("clock_nanosleep", -4, false),
            ("poll", 0, true),
            ("poll", 1, false),
            ("epoll_wait", 0, true),
            ("futex", -110, true),
            ("futex", -11, false),
            ("rt_sigtimedwait", -11, true),
            ("read", 0, false),
            ("read", -110, false),
        ] {
            assert_eq!(timed_out(call, ret), wanted, "{call} {ret}");
        }
    }
}
