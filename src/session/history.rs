//! The state history of traces: for `query`, and for the questions of the interface about a whole recording.

use crate::base::ctx::{Cancelled, Ctx};
use crate::base::notice::Notices;
use crate::base::time::Span;
use crate::explain::overview;
use crate::model::overview::RecordingOverview;
use crate::timeline::Timeline;
use crate::timeline::history::StateHistory;

/// The state history of a kernel recording.
pub struct RecordedHistory {
    /// The states of all threads and CPUs.
    pub history: StateHistory,
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

impl RecordedHistory {
    /// Of states; up to the end of a span that they begin with, where one is given.
    pub(super) fn new(timeline: Timeline, beginning: Option<Span>, notices: Notices) -> RecordedHistory {
        let window = beginning.unwrap_or(timeline.span());
        let mut requests = overview::disk_requests(&timeline);
        requests.retain(|span| span.start < window.end || beginning.is_none());
        if beginning.is_some() {
            requests.iter_mut().for_each(|span| span.end = span.end.min(window.end));
        }
        let lossy = timeline.lossy().to_vec();
        RecordedHistory { history: StateHistory::new(timeline, beginning), lossy, requests, notices }
    }

    /// True where another one gives the same answers.
    pub(super) fn is_same(&self, other: &RecordedHistory, ctx: &Ctx) -> Result<bool, Cancelled> {
        let beside = |of: &RecordedHistory| (of.lossy.clone(), of.requests.clone());
        let same = beside(self) == beside(other) && self.history.is_same(&other.history, &ctx.cancel);
        ctx.cancel.check()?;
        Ok(same)
    }
}
