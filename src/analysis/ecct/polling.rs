//! Sleeps between calls that fail.
//!
//! In: a segment of a path in which a timer ended the wait of its thread. Out: its time, below the name of a call that
//! failed right before the sleep and is made again right after it: the thread polls for what makes that call succeed
//! (a lock on a file, a server that comes up), and the sleep is only the pace. Calls of the same name may be between
//! (SQLite gives one lock back after it did not get another). Cost: the calls around the sleep.

use super::{OutlineId, OutlineStep, Walk};
use crate::analysis::path::PathSegment;
use crate::base::names::NameId;
use crate::event::errno;
use crate::event::waiting_calls::is_sleep;
use crate::model::wait_kind::WaitKind;
use crate::timeline::Call;

/// Calls of one name that are looked at before a sleep.
const MOST: usize = 8;

impl Walk<'_, '_> {
    /// A wait that a timer ended, below its reason: calls that fail, or an answer that did not come (`unanswered.rs`).
    pub(super) fn add_timer(&mut self, node: OutlineId, segment: &PathSegment) {
        let polled = self.polled(segment).map(OutlineStep::Polls);
        let reason = polled.or_else(|| self.unanswered(segment).map(OutlineStep::NoAnswer));
        let Some(reason) = reason else { return self.add_wait(node, WaitKind::Timer, segment) };
        let wait = self.outline.child(Some(node), OutlineStep::Wait(WaitKind::Timer, None));
        let below = self.outline.child(Some(wait), reason);
        self.add(below, segment.span.len() as u64);
    }

    /// The call that failed before this sleep and that the thread makes again after it.
    fn polled(&self, segment: &PathSegment) -> Option<NameId> {
        let names = self.sources.timeline.names();
        let mut calls = self.reader.calls(segment.thread);
        calls.at(segment.span.start).filter(|sleep| is_sleep(names.get(sleep.name)))?;
        let after = calls.next_row()?.name;
        calls.at(segment.span.start)?;
        let mut before = std::iter::from_fn(|| calls.previous_row()).take(MOST).take_while(|call| call.name == after);
        (!is_sleep(names.get(after)) && before.any(|call| failed(&call))).then_some(after)
    }
}

/// True for a call that failed, but for one that a signal interrupted.
fn failed(call: &Call) -> bool {
    call.ret.is_some_and(|ret| errno::failed(ret) && !errno::was_interrupted(ret))
}
