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
use std::sync::OnceLock;
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
    /// By pattern, once they were asked for.
    durations: OnceLock<Vec<Durations>>,
    /// Waiting in totals, once it was asked for.
    waiting: OnceLock<WaitAnalysis>,
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
    pub late: Vec<LateOccurrence>,
    /// Their causes among each other.
    pub spread: DelayForest,
}

impl PatternAnalysis {
    /// Fit clocks, mine all streams in parallel.
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
        let table = PatternTable::new(&grammars, &ctx.cancel)?;
        detection += started.elapsed();
        Ok(PatternAnalysis { operations, clocks, table, detection, ..PatternAnalysis::default() })
    }

    /// True for a run whose ranks and threads wait for each other. Threads of a kernel recording have tasks, and paths
    /// of their own.
    pub fn is_run(&self) -> bool {
        let operations = &self.operations;
        let is_connected = !operations.messages.is_empty() || !operations.collectives.is_empty();
        is_connected && operations.sequences.iter().all(|s| s.thread.is_none())
    }

    /// Waiting in totals; `None` where no rank or thread waits for another.
    pub fn waiting(&self, ctx: &Ctx) -> Result<Option<&WaitAnalysis>, Cancelled> {
        if self.waiting.get().is_none() && self.is_run() {
            let found = WaitAnalysis::new(&self.operations, &self.clocks, ctx)?;
            return Ok(Some(self.waiting.get_or_init(|| found)));
        }
        Ok(self.waiting.get())
    }

    /// By pattern.
    fn durations(&self, ctx: &Ctx) -> Result<&[Durations], Cancelled> {
        if let Some(known) = self.durations.get() {
            return Ok(known);
        }
        let found = measure(&self.table, &self.operations, ctx)?;
        Ok(self.durations.get_or_init(|| found))
    }

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

    /// The iterations of each stream's outermost loop.
    pub fn iterations(&self) -> Vec<Iterations> {
        iterations::find(self)
    }
}
