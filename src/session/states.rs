//! The states of a recording, asked of its traces, of its archive, or of its history file.

use super::Traces;
use super::history::RecordedHistory;
use super::run::MpiRuns;
use crate::analysis::mpi::lines;
use crate::base::ctx::Ctx;
use crate::base::notice::Notices;
use crate::event::mpi;
use crate::model::stored::StoredRows;
use crate::timeline::RecordedTimeline;

impl MpiRuns {
    /// The states of the ranks of a run, and their regions.
    pub(super) fn states(&self, ctx: &Ctx) -> anyhow::Result<(RecordedTimeline, Notices)> {
        let (operations, notices) = mpi::operations_with_regions(&self.archive, ctx)?;
        self.has_operations(&operations)?;
        Ok((lines::timeline(operations, &self.archive.anchor.machine, ctx)?, notices))
    }

    /// Their state history, for a command.
    pub fn recorded_history(&self, command: &str, ctx: &Ctx) -> anyhow::Result<RecordedHistory> {
        self.alone(command)?;
        let (timeline, notices) = self.states(ctx)?;
        Ok(RecordedHistory::new(timeline.seal(), None, notices))
    }
}

impl Traces {
    /// The state history for a command, and the spans in which events were lost.
    pub fn recorded_history(&mut self, command: &str, ctx: &Ctx) -> anyhow::Result<RecordedHistory> {
        self.alone(command)?;
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
