//! The state history of traces: for `query`, and for the questions of the interface about a whole recording.

use crate::analysis::leaders::Leaders;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::notice::Notices;
use crate::base::time::{Span, Timestamp};
use crate::explain::overview;
use crate::explain::thread_lanes::{LaneSource, MomentSymbols};
use crate::model::overview::RecordingOverview;
use crate::model::thread_lanes::ThreadMoment;
use crate::symbols::files::SymbolPaths;
use crate::timeline::Timeline;
use crate::timeline::history::StateHistory;
use std::sync::OnceLock;

/// The state history of a kernel recording.
pub struct RecordedHistory {
    /// The states of all threads and CPUs.
    pub history: StateHistory,
    /// Where it ends, if it is the beginning of the states.
    beginning: Option<Span>,
    /// Disk requests in flight, by start; found for the first overview.
    requests: OnceLock<Vec<Span>>,
    /// The first threads of processes; found for the first lanes.
    leaders: OnceLock<Leaders>,
    /// What names functions; made for the first moment that is asked about.
    symbols: OnceLock<MomentSymbols>,
    /// Facts about the data that limit the answers.
    pub notices: Notices,
}

impl RecordedHistory {
    /// Of states; up to the end of a span that they begin with, where one is given.
    pub(super) fn new(timeline: Timeline, beginning: Option<Span>, notices: Notices) -> RecordedHistory {
        RecordedHistory {
            history: StateHistory::new(timeline, beginning),
            beginning,
            requests: OnceLock::new(),
            leaders: OnceLock::new(),
            symbols: OnceLock::new(),
            notices,
        }
    }

    fn requests(&self) -> &[Span] {
        self.requests.get_or_init(|| {
            let mut requests = overview::disk_requests(self.history.timeline());
            if let Some(Span { end, .. }) = self.beginning {
                requests.retain(|span| span.start < end);
                requests.iter_mut().for_each(|span| span.end = span.end.min(end));
            }
            requests
        })
    }

    /// A span of it in cells.
    pub fn overview(&self, span: Span, cells: usize, ctx: &Ctx) -> Result<RecordingOverview, Cancelled> {
        let beside = overview::Beside { lossy: self.history.timeline().lossy(), requests: self.requests() };
        overview::overview(&self.history, span, cells, beside, ctx)
    }

    /// Where lanes of threads come from.
    pub fn lanes(&self) -> LaneSource<'_> {
        let leaders = self.leaders.get_or_init(|| Leaders::new(self.history.timeline()));
        LaneSource { history: &self.history, leaders }
    }

    /// What a thread does at a moment; `places` says where symbols are, the first time.
    pub fn moment(
        &self,
        (number, at): (u32, Timestamp),
        places: impl FnOnce() -> anyhow::Result<SymbolPaths>,
        ctx: &Ctx,
    ) -> anyhow::Result<Option<ThreadMoment>> {
        let symbols = match self.symbols.get() {
            Some(symbols) => symbols,
            None => {
                let made = MomentSymbols::new(self.history.timeline(), places()?);
                self.symbols.get_or_init(|| made)
            }
        };
        Ok(self.lanes().moment(number, at, Some(symbols), ctx)?)
    }

    /// True where another one gives the same answers.
    pub(super) fn is_same(&self, other: &RecordedHistory, ctx: &Ctx) -> Result<bool, Cancelled> {
        let lossy = |of: &RecordedHistory| of.history.timeline().lossy().to_vec();
        let same = lossy(self) == lossy(other)
            && self.requests() == other.requests()
            && self.history.is_same(&other.history, &ctx.cancel);
        ctx.cancel.check()?;
        Ok(same)
    }
}
