//! The machine's part of [`copies`](super::copies): whether the event that it steps through is a copy.

use super::copies::content;
use super::machine::{BatchIds, Machine};
use crate::base::figure;
use crate::base::notice::Notice;
use crate::event::host::TraceOrigin;
use crate::event::kind::Event;
use crate::timeline::ThreadId;

impl Machine {
    /// The user-space trace at this position may hold copies of what another one holds.
    pub fn expect_copies(&mut self, trace: usize) {
        let expected = &mut self.copies.expected;
        expected.resize(expected.len().max(trace + 1), false);
        expected[trace] = true;
    }

    /// True for a user-space event that counts already, because another session recorded it.
    pub(super) fn is_copy(
        &mut self,
        event: &Event,
        origin: TraceOrigin,
        thread: Option<ThreadId>,
        ids: &BatchIds<'_>,
    ) -> bool {
        let Some(thread) = thread.filter(|_| self.copies.is_expected(event.trace)) else { return false };
        let Some(content) = content(ids.batch, event.kind) else { return false };
        let exact = self.kernel_traced.get(origin.host.index()) == Some(&true);
        let copy = self.copies.take(thread, event, content, exact);
        if copy {
            self.notices.add(Notice::Copies, 1, || figure::moment(event.time.ns()));
        }
        copy
    }
}
