//! Sleeps between calls that fail.
//!
//! In: a segment of a path in which a timer ended the wait of its thread. Out: its time, below the name of a call that
//! failed right before the sleep and is made again right after it: the thread polls for what makes that call succeed
//! (a lock on a file, a server that comes up), and the sleep is only the pace. Calls of the same name may be between
//! (SQLite gives one lock back after it did not get another). Cost: the calls around the sleep.

use super::{OutlineId, OutlineStep, Walk};
use crate::analysis::path::PathSegment;
use crate::base::names::NameId;
use crate::event::waiting_calls::is_sleep;
use crate::model::wait_kind::WaitKind;
use crate::state::timeline::Call;

/// Results of calls that failed; the kernel's own numbers for calls that a signal interrupted are below.
const ERRORS: std::ops::Range<i64> = -511..0;
/// Calls of one name that are looked at before a sleep.
const MOST: usize = 8;
/// A signal interrupted the call.
const EINTR: i64 = -4;

impl Walk<'_, '_> {
    /// A wait that a timer ended.
    pub(super) fn add_timer(&mut self, node: OutlineId, segment: &PathSegment) {
        let Some(call) = self.polled(segment) else { return self.add_wait(node, WaitKind::Timer, segment) };
        let wait = self.outline.child(Some(node), OutlineStep::Wait(WaitKind::Timer, None));
        let polls = self.outline.child(Some(wait), OutlineStep::Polls(call));
        self.add(polls, segment.span.len() as u64);
    }

    /// The call that failed before this sleep and that the thread makes again after it.
    fn polled(&self, segment: &PathSegment) -> Option<NameId> {
        let names = self.sources.timeline.names();
        let mut calls = self.reader.calls(segment.thread);
        calls.at(segment.span.start).filter(|sleep| is_sleep(names.get(sleep.name)))?;
        let last = calls.previous_row()?.name;
        calls.at(segment.span.start)?;
        let before = std::iter::from_fn(|| calls.previous_row()).take_while(|call| call.name == last);
        let has_failed = before.take(MOST).any(|call| failed(&call));
        calls.at(segment.span.start)?;
        let after = calls.next_row()?;
        (has_failed && after.name == last && !is_sleep(names.get(last))).then_some(last)
    }
}

fn failed(call: &Call) -> bool {
    call.ret.is_some_and(|ret| ERRORS.contains(&ret) && ret != EINTR)
}
