//! Pattern mining: repeated sequences, their abnormal occurrences, and the origin of the delay.
//!
//! ```text
//! operations -> rendezvous -> grammar (per stream) -> table (all streams) -> measure -> late -> follow -> spread
//! ```
//! [`PatternAnalysis::new`] does what depends on the recording alone; [`PatternAnalysis::lateness`] what depends on q
//! and s, so that the interface can change them at once; `explain::anomalies` names the results. Nothing here knows
//! what the operations are: MPI calls, system calls, functions. Source: the COMPAS 2015 paper, ALGORITHMS.md section 9.

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

use super::offsets::{StreamClock, fit};
use crate::analysis::mpi::WaitAnalysis;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::parallel::in_order;
use crate::event::operation::Operations;
use crate::model::settings::Settings;
use iterations::Iterations;
use late::{LateOccurrence, ResponsibleEvent};
use measure::{Durations, PatternLimits, measure};
use spread::DelayForest;
use std::time::{Duration, Instant};
use table::PatternTable;

/// A recording's operations with everything mined from them.
#[derive(Debug, Default)]
pub struct PatternAnalysis {
    /// The input.
    pub operations: Operations,
    /// By stream.
    pub clocks: Vec<StreamClock>,
    /// Patterns and occurrences.
    pub table: PatternTable,
    durations: Vec<Durations>,
    /// Waiting in totals, of a run whose ranks and threads wait for each other.
    pub waiting: Option<WaitAnalysis>,
    /// Time that mining took, summed over streams.
    pub detection: Duration,
}

/// The treatment of an event that took longer than usual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// It is responsible, and its causes are searched.
    Responsible,
    /// A wait for work: neither a cause nor a delay.
    Idle,
    /// It is reported elsewhere, because it delayed executions.
    Reported,
}

/// Results that depend on q and s.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    /// By pattern of the table.
    pub limits: Vec<PatternLimits>,
    /// The late occurrences.
    pub late: Vec<LateOccurrence>,
    /// Their causes among each other.
    pub spread: DelayForest,
}

impl PatternAnalysis {
    /// Fit clocks, mine all streams in parallel, measure.
    pub fn new(mut operations: Operations, ctx: &Ctx) -> Result<Self, Cancelled> {
        let clocks = fit(&operations);
        rendezvous::find(&mut operations, &clocks, ctx)?;
        ctx.progress.enter("mining", operations.sequences.len() as u64);
        let (mut grammars, mut detection) = (Vec::new(), Duration::ZERO);
        let mine = |i: usize| {
            let started = Instant::now();
            let sequence = &operations.sequences[i];
            // A worker repeats what another thread assigns to it.
            let mined = if sequence.worker { &[][..] } else { &sequence.operations };
            let symbols: Vec<u32> = mined.iter().map(|o| o.symbol.raw()).collect();
            (grammar::mine(&symbols, &ctx.cancel), started.elapsed())
        };
        in_order(ctx, operations.sequences.len(), mine, |_, (grammar, took)| {
            ctx.progress.step(1);
            grammars.push(grammar);
            detection += took;
        })?;
        let started = Instant::now();
        let table = PatternTable::new(&grammars);
        detection += started.elapsed();
        let durations = measure(&table, &operations, ctx)?;
        // Threads of a kernel recording have tasks, and paths of their own.
        let waiting = operations.sequences.iter().all(|s| s.thread.is_none());
        let waiting = if waiting { WaitAnalysis::new(&operations, &clocks, ctx)? } else { None };
        Ok(PatternAnalysis { operations, clocks, table, durations, waiting, detection })
    }

    /// Anomalies and their causes, for one choice of settings.
    pub fn lateness(&self, settings: &Settings, ctx: &Ctx) -> Result<Lateness, Cancelled> {
        self.lateness_of(settings, |_, _| Treatment::Responsible, ctx)
    }

    /// The same, where not every late event is responsible: `treat` classifies them by stream and event.
    pub fn lateness_of(
        &self,
        settings: &Settings,
        treat: impl Fn(u32, &ResponsibleEvent) -> Treatment,
        ctx: &Ctx,
    ) -> Result<Lateness, Cancelled> {
        let limits: Vec<PatternLimits> = self.durations.iter().map(|d| d.limits(settings)).collect();
        let mut late = late::find(&self.table, &self.durations, &limits, &self.operations, settings.s, &ctx.cancel);
        ctx.cancel.check()?;
        follow::extend(self, &limits, settings.s, &mut late, &ctx.cancel);
        late.retain_mut(|late| late.classify(&treat));
        ctx.cancel.check()?;
        let spread = spread::find(&self.operations, &self.clocks, &late, &limits, &ctx.cancel);
        ctx.cancel.check()?;
        Ok(Lateness { limits, late, spread })
    }

    /// The iterations of each stream's outermost loop.
    pub fn iterations(&self) -> Vec<Iterations> {
        iterations::find(self)
    }
}
