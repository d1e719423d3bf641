//! The state history of traces: for `query`, and for the questions of the interface about a whole recording.

use super::Traces;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::notice::Notices;
use crate::base::time::Span;
use crate::explain::overview;
use crate::model::overview::RecordingOverview;
use crate::state::history::History;

/// The state history of a kernel recording.
pub struct RecordedHistory {
    /// The states of all threads and CPUs.
    pub history: History,
    /// Spans in which events were lost.
    pub lossy: Vec<Span>,
    /// Disk requests in flight, by start.
    pub requests: Vec<Span>,
    /// Facts about the data that limit the answers.
    pub notices: Notices,
}

impl RecordedHistory {
    /// A span of it in cells.
    pub fn overview(&self, span: Span, cells: usize, ctx: &Ctx) -> Result<RecordingOverview, Cancelled> {
        let beside = overview::Beside { lossy: &self.lossy, requests: &self.requests };
        overview::overview(&self.history, span, cells, beside, ctx)
    }
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
        let (lossy, requests) = (timeline.lossy().to_vec(), overview::disk_requests(&timeline));
        Ok(RecordedHistory { history, lossy, requests, notices })
    }
}
