//! Input of the search for anomalies: the repeated sequences of each thread or rank and, if a kernel recording has
//! executions, the threads that delayed these. Made once per recording; [`Mining::anomalies`] answers for any choice of
//! q and s.

use super::anomalies;
use super::mined_executions::MinedExecutions;
use crate::analysis::patterns::PatternAnalysis;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::notice::{Notice, Notices};
use crate::model::Model;
use crate::model::anomalies::Anomalies;
use crate::model::settings::Settings;

/// Notices that mean that operations are missing.
const LOSSES: [Notice; 5] = [
    Notice::DiscardedEvents,
    Notice::DiscardedPackets,
    Notice::DamagedPacket,
    Notice::DamagedStream,
    Notice::MappingLost,
];

/// A recording's operations with everything mined from them, and its executions.
#[derive(Debug, Default)]
pub struct Mining {
    /// Operations and patterns.
    pub mined: PatternAnalysis,
    /// Executions, in kernel recordings that have some.
    pub served: Option<MinedExecutions>,
    /// Notices about the events.
    pub notices: Notices,
    /// The recording's metadata declare system calls.
    pub declares_calls: bool,
    /// It is an archive of a run and no kernel recording.
    pub is_run: bool,
}

impl Mining {
    /// Patterns alone: of a run's archive.
    pub fn of_patterns(mined: PatternAnalysis, notices: Notices) -> Mining {
        Mining { mined, served: None, notices, declares_calls: false, is_run: true }
    }

    /// The executions that sources delay, where there are some.
    pub fn executions(&self) -> Option<&Model> {
        self.served.as_ref().map(|served| &served.model)
    }

    /// Anomalies under these settings, and their causes.
    pub fn anomalies(&self, settings: &Settings, ctx: &Ctx) -> Result<Anomalies, Cancelled> {
        let lossy = LOSSES.iter().any(|notice| self.notices.count(*notice) > 0);
        let completeness = if lossy { anomalies::Completeness::Lossy } else { anomalies::Completeness::Complete };
        let mut found = anomalies::find(&self.mined, self.served.as_ref(), completeness, settings, ctx)?;
        found.examined.declares_calls = self.declares_calls;
        found.examined.is_mpi |= self.is_run;
        Ok(found)
    }
}
