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
    /// Facts about the data that limit the answers.
    pub notices: Notices,
}

impl Traces {
    /// The state history of the whole recording.
    pub fn history(&mut self, ctx: &Ctx) -> anyhow::Result<(History, Notices)> {
        self.fit_clocks(ctx)?;
        let (timeline, notices) = self.record(&[], ctx)?;
        Ok((History::of_recording(&timeline, ctx)?, notices))
    }

    /// The state history, and the spans in which events were lost.
    pub fn recorded_history(&mut self, ctx: &Ctx) -> anyhow::Result<RecordedHistory> {
        self.fit_clocks(ctx)?;
        let (timeline, notices) = self.record(&[], ctx)?;
        let history = History::of_recording(&timeline, ctx)?;
        Ok(RecordedHistory { history, lossy: timeline.lossy().to_vec(), notices })
    }
}
