//! All that is mined once from the operations of a recording; what depends on settings is computed from it anew.
//!
//! In: operations, thread by thread. Out: clocks of the streams, patterns with their occurrences, and, once they are
//! asked for, durations and waiting in totals. Cost: linear in the operations, on all workers.

use super::measure::{Durations, measure};
use super::table::PatternTable;
use super::{grammar, rendezvous};
use crate::analysis::mpi::WaitAnalysis;
use crate::analysis::offsets::{StreamClock, fit};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::parallel::in_order;
use crate::event::operation::Operations;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

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
    pub(super) fn durations(&self, ctx: &Ctx) -> Result<&[Durations], Cancelled> {
        if let Some(known) = self.durations.get() {
            return Ok(known);
        }
        let found = measure(&self.table, &self.operations, ctx)?;
        Ok(self.durations.get_or_init(|| found))
    }
}
