//! The state history of traces: for `query`, and for the questions of the interface about a whole recording.

use super::Traces;
use crate::base::ctx::Ctx;
use crate::base::notice::Notices;
use crate::base::time::Span;
use crate::state::history::History;

/// The state history of a kernel recording.
pub struct RecordedHistory {
    /// The states of all threads and CPUs.
    pub history: History,
    /// Spans in which events were lost.
    pub lossy: Vec<Span>,
}

impl Traces {
    /// The state history of the whole recording.
    pub fn history(&mut self, ctx: &Ctx) -> anyhow::Result<(History, Notices)> {
        self.fit_clocks(ctx)?;
        let (recording, notices) = self.record(&[], ctx)?;
        Ok((History::of_recording(&recording, ctx)?, notices))
    }

    /// The state history, and the spans in which events were lost.
    pub(super) fn recorded_history(&mut self, ctx: &Ctx) -> anyhow::Result<RecordedHistory> {
        self.fit_clocks(ctx)?;
        let (recording, _) = self.record(&[], ctx)?;
        Ok(RecordedHistory { history: History::of_recording(&recording, ctx)?, lossy: recording.lossy().to_vec() })
    }
}
