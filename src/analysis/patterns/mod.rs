//! Pattern mining: repeated sequences, their abnormal occurrences, and the origin of the delay.
//!
//! ```text
//! operations -> rendezvous -> grammar (per stream) -> table (all streams) -> measure -> late -> follow -> spread
//! ```
//! [`PatternAnalysis::new`] does what depends on the recording alone and every question needs; durations and waiting in
//! totals, which iterations do without, are computed when they are asked for. [`PatternAnalysis::lateness`] does what
//! depends on q and s, so that the interface can change them at once; `explain::anomalies` names the results. Nothing
//! here knows what the operations are: MPI calls, system calls, functions. Source: the COMPAS 2015 paper, ALGORITHMS.md
//! section 9.

mod analysis;
mod follow;
pub mod grammar;
pub mod iterations;
pub mod late;
pub mod measure;
pub mod rendezvous;
pub mod routes;
pub mod spread;
pub mod table;
pub mod triggers;

pub use analysis::PatternAnalysis;
pub use late::Treatment;

use crate::base::ctx::{Cancelled, Ctx};
use crate::model::settings::Settings;
use late::{LateOccurrence, ResponsibleEvent};
use measure::PatternLimits;
use spread::DelayForest;

/// Results that depend on q and s.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    /// By pattern of the table.
    pub limits: Vec<PatternLimits>,
    pub late: Vec<LateOccurrence>,
    /// Their causes among each other.
    pub spread: DelayForest,
}

impl PatternAnalysis {
    /// Anomalies and their causes, for one choice of settings.
    pub fn lateness(&self, settings: &Settings, ctx: &Ctx) -> Result<Lateness, Cancelled> {
        self.lateness_of(settings, |_, _| Treatment::Responsible, ctx)
    }

    /// Anomalies and their causes where not every late event is responsible: `treat` classifies them by stream and
    /// event.
    pub fn lateness_of(
        &self,
        settings: &Settings,
        treat: impl Fn(u32, &ResponsibleEvent) -> Treatment,
        ctx: &Ctx,
    ) -> Result<Lateness, Cancelled> {
        let durations = self.durations(ctx)?;
        let limits: Vec<PatternLimits> = durations.iter().map(|d| d.limits(settings)).collect();
        let mut late = late::find(&self.table, durations, &limits, &self.operations, settings.s, &ctx.cancel);
        ctx.cancel.check()?;
        follow::extend(self, &limits, settings.s, &mut late, &ctx.cancel);
        late.retain_mut(|late| late.classify(&treat));
        ctx.cancel.check()?;
        let spread = spread::find(&self.operations, &self.clocks, &late, &limits, &ctx.cancel);
        ctx.cancel.check()?;
        Ok(Lateness { limits, late, spread })
    }
}
