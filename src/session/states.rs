//! The states of a recording, asked of its traces or of its history file.

use super::Traces;
use super::history::RecordedHistory;
use crate::base::ctx::Ctx;
use crate::base::notice::Notices;
use crate::model::stored::StoredRows;
use crate::timeline::history::StateHistory;

impl Traces {
    /// The state history of the whole recording.
    pub fn history(&mut self, ctx: &Ctx) -> anyhow::Result<(StateHistory, Notices)> {
        let RecordedHistory { history, notices, .. } = self.recorded_history(ctx)?;
        Ok((history, notices))
    }

    /// The state history, and the spans in which events were lost.
    pub fn recorded_history(&mut self, ctx: &Ctx) -> anyhow::Result<RecordedHistory> {
        self.alone("query")?;
        if let Some(reopened) = &self.reopened {
            return reopened.history(ctx);
        }
        self.fit_clocks(ctx)?;
        let (timeline, notices) = self.record(&[], ctx)?;
        Ok(RecordedHistory::new(timeline.seal(), None, notices))
    }
    /// How large the store of the states is, with the events of the tasks that are tried where none is named.
    pub fn stored(&mut self, ctx: &Ctx) -> anyhow::Result<StoredRows> {
        if let Some(reopened) = &self.reopened {
            return reopened.stored(ctx);
        }
        self.fit_clocks(ctx)?;
        let (timeline, _) = self.record(&self.candidates(&[])?, ctx)?;
        Ok(timeline.stored())
    }
}
