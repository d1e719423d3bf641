//! System calls: from entry to exit, and the cause of a wait by the result of its call.
//!
//! Exits and entries get lost: a call whose exit is missing ended at the latest where events were lost, one whose entry
//! is missing began there at the earliest (`losses`). Where no loss was reported, a call whose entry is missing began
//! at the thread's first wait since its last call.
//!
//! Where a call returned a time-out, its last wait was ended by a timer, whichever thread ran on the CPU of the timer's
//! interrupt, and whether that interrupt was recorded or not ([`timed_out`]). ALGORITHMS.md sections 3.4 and 4.4.

use super::machine::Machine;
use super::sealed_rows::{NEAR, SegmentChange};
use super::thread_state::{OpenCall, ThreadState, WakeOutsideCall};
use crate::base::names::NameId;
use crate::base::time::{Ns, Timestamp};
use crate::event::descriptor::NamedDescriptor;
use crate::event::waiting_calls::{is_sleep, may_have_timed_out, timed_out};
use crate::timeline::{Segment, SegmentKind, ThreadId, Waker};

/// A tick of the kernel's clock: no time limit of a socket is shorter, no wait for a lock of a socket that long.
const TICK: Ns = 1_000_000;

/// Calls that return 0 in the thread that they create.
const CREATING: [&str; 4] = ["clone", "clone3", "fork", "vfork"];

impl Machine {
    pub(super) fn enter_call(
        &mut self,
        thread: ThreadId,
        t: Timestamp,
        name: NameId,
        descriptor: Option<NamedDescriptor>,
    ) {
        self.end_unseen(thread, t);
        let state = &mut self.threads[thread];
        state.call = Some(OpenCall { since: t, name, descriptor });
        state.has_called = true;
    }

    /// The exit of the previous call was not recorded, or that call never returns here (`rt_sigreturn`): it lasted
    /// until now, or until events were lost.
    fn end_unseen(&mut self, thread: ThreadId, t: Timestamp) {
        let state = &mut self.threads[thread];
        if let Some(OpenCall { since, .. }) = state.call {
            let lost = self.losses.first(state.thread.host, None, since, t);
            state.end_call(lost.unwrap_or(t), None);
        }
    }

    pub(super) fn leave_call(&mut self, thread: ThreadId, t: Timestamp, name: Option<NameId>, ret: i64) {
        let state = &self.threads[thread];
        match (state.call, name) {
            (Some(OpenCall { since, name: entered, .. }), Some(left)) if entered != left && state.has_called => {
                // The exit of one call and the entry of another are missing. A sleep that is over was in the second.
                let lost = self.losses.first(state.thread.host, None, since, t);
                let slept =
                    || timed_out(self.out.tables.names.get(left), ret).then(|| first_wait(state, since)).flatten();
                let start = lost.or_else(slept);
                self.end_unseen(thread, start.unwrap_or(t));
                self.inconsistent(t);
                self.begin_unseen(thread, start.filter(|start| *start < t), left);
            }
            (None, Some(left)) => {
                let before = state.rows.calls.last().map_or(state.thread.life.start, |call| call.span.end);
                let lost = self.losses.first(state.thread.host, None, before, t);
                let creating = ret == 0 && CREATING.contains(&self.out.tables.names.get(left));
                // A thread that never entered a call here began inside it: before the recording, or by a fork.
                let start = if creating && (state.has_called || state.thread.parent.is_none()) {
                    // The creation was not recorded, so it began some time before.
                    None
                } else if state.has_called {
                    lost.or_else(|| first_wait(state, before))
                } else {
                    Some(before.max(state.lost_at))
                };
                self.begin_unseen(thread, start.filter(|start| *start < t), left);
            }
            _ => {}
        }
        self.relabel_timed_out_wait(thread, ret);
        let state = &mut self.threads[thread];
        state.end_call(t, Some(ret));
        state.has_called = true;
    }

    /// A thread is in a call whose entry was not recorded, since `start` where that is known. A thread that it woke
    /// since its last call was woken in this one.
    fn begin_unseen(&mut self, thread: ThreadId, start: Option<Timestamp>, name: NameId) {
        let state = &mut self.threads[thread];
        state.call = start.map(|since| OpenCall { since, name, descriptor: None });
        let before = state.rows.calls.last().map_or(Timestamp::MIN, |call| call.span.end);
        let Some(wake) = state.woke_outside.take().filter(|wake| wake.at >= before) else { return };
        let WakeOutsideCall { woken, segment, at } = wake;
        self.change_segment(woken, segment, SegmentChange::WokenInCall(Waker { thread, at }));
    }

    /// The open call of a thread returns: if a timer ended it, its last wait was for that timer. A call that does
    /// nothing but sleep did sleep even where the switches are missing.
    fn relabel_timed_out_wait(&mut self, thread: ThreadId, ret: i64) {
        let state = &mut self.threads[thread];
        let Some(OpenCall { since, name, .. }) = state.call else { return };
        let name = self.out.tables.names.get(name);
        let is_certain = timed_out(name, ret);
        if !is_certain && !may_have_timed_out(name, ret) {
            return;
        }
        let mut inside = state.rows.segments.iter_mut().rev().take(NEAR).take_while(|segment| segment.span.end > since);
        let slept = |segment: &&mut Segment| {
            is_wait(segment.kind) || segment.kind == SegmentKind::Unknown && segment.span.start >= since
        };
        let wait = if is_sleep(name) { inside.find(slept) } else { inside.find(|segment| is_wait(segment.kind)) };
        if let Some(wait) = wait.filter(|wait| is_certain || wait.span.len() >= TICK) {
            (wait.kind, wait.waker, wait.qualifier) = (SegmentKind::Timer, None, None);
        }
    }
}

/// True for a thread that waits and is not stopped.
fn is_wait(kind: SegmentKind) -> bool {
    kind.is_wait() && kind != SegmentKind::Stopped
}

/// The start of the first wait of a thread, or of the first segment that may be one, since `before`: threads wait in
/// calls.
fn first_wait(state: &ThreadState, before: Timestamp) -> Option<Timestamp> {
    let since = state.rows.segments.iter().rev().take(NEAR).take_while(|segment| segment.span.start >= before);
    since
        .filter(|segment| is_wait(segment.kind) || segment.kind == SegmentKind::Unknown)
        .last()
        .map(|segment| segment.span.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_may_have_reached_the_time_limit_of_their_socket() {
        for (call, ret, wanted) in
            [("recvfrom", -11, true), ("recvfrom", 0, false), ("connect", -115, true), ("sendto", -11, false)]
        {
            assert_eq!(may_have_timed_out(call, ret), wanted, "{call} {ret}");
        }
    }

    #[test]
    fn timed_out_depends_on_the_call_and_its_result() {
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
