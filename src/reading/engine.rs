//! The parallel engine: workers read the chunks of a recording; one thread at a time joins their results in the order
//! of the chunks while later ones are still being read. The rest of each chunk's work (rows to leaves) runs in parallel
//! with later joins.
//!
//! ALGORITHMS.md 10.1 and 10.2. [`super::chunks`] cuts the time line. An [`Analysis`] computes a partial result from a
//! chunk without its carried-in state, and joins it to the result so far. Where that cannot be exact (recordings that
//! contradict themselves), it refuses the partial result, and the chunk is run again from the state before it: slower,
//! counted, and exact. No result may depend on the [`EngineOptions`]. Counting headers needs neither
//! state nor order: it takes runs of packets of one stream (`input/count.rs`).

use super::chunks::{Chunk, ChunkTarget, cut, cut_by};
use super::packet_times::PacketTimes;
use crate::base::ctx::{Cancel, Cancelled, Ctx};
use crate::base::parallel::in_order_then;
use crate::input::trace::Trace;
use std::sync::atomic::Ordering;

/// The knowledge with which a worker begins a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkStart {
    /// Which thread ran, by the last switch before the chunk: it is in a packet that the worker decodes anyway.
    AfterLastSwitch,
    /// Nothing.
    Unknown,
}

/// How the engine works. Results depend on none of it: `tests/workers/` varies all of it.
#[derive(Clone, Copy, Debug)]
pub struct EngineOptions {
    /// Size of chunks.
    pub chunks: ChunkTarget,
    /// How a worker begins a chunk.
    pub start: ChunkStart,
    /// Changes that tests make.
    #[doc(hidden)]
    pub hooks: Hooks,
}

impl Default for EngineOptions {
    fn default() -> Self {
        EngineOptions { chunks: ChunkTarget::default(), start: ChunkStart::AfterLastSwitch, hooks: Hooks::default() }
    }
}

/// Functions by which tests change the engine; by default they do nothing.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Hooks {
    /// Chunks, by number, that are run again although their partial result fits.
    pub run_again: fn(usize) -> bool,
    /// Called by the worker of each step of a chunk, by the chunk's number.
    pub step: fn(ChunkStep, usize),
}

/// A moment in the work on a chunk.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChunkStep {
    /// A worker begins to read it.
    Begin,
    /// It is read; its partial result can be joined after this.
    Read,
    /// A worker begins to join it.
    Joins,
    /// It is joined; the next one can be joined after this.
    Joined,
    /// What was left to do is done.
    Finished,
}

impl Default for Hooks {
    fn default() -> Self {
        Hooks { run_again: |_| false, step: |_, _| {} }
    }
}

/// A computation over chunks.
pub trait Analysis: Sync {
    /// The result of one chunk, without its carried-in state.
    type Partial: Send;
    /// The result of all chunks so far.
    type Whole: Send;
    /// What is left to do of a chunk once it is joined.
    type Rest;

    /// Read a chunk; runs on a worker. Once cancelled, the result is dropped.
    fn chunk(&self, traces: &[&Trace], chunk: &Chunk, start: ChunkStart, cancel: &Cancel) -> Self::Partial;

    /// True when joining the next chunk gives exactly what running it from `whole` would.
    fn fits(&self, _whole: &Self::Whole, _next: &Self::Partial) -> bool {
        true
    }

    /// Join the next chunk, which fits; runs in order, on one thread, while later chunks are being read. What needs no
    /// order is left to [`Analysis::finish`].
    fn merge(&self, whole: &mut Self::Whole, next: Self::Partial) -> Self::Rest;

    /// When the events of crowded packets are, where that was measured: chunks are cut by it.
    fn packet_times(&self) -> Option<&PacketTimes> {
        None
    }

    /// Do what is left of a chunk, while the next ones are being joined.
    fn finish(&self, rest: Self::Rest);

    /// Run the next chunk from the state before it.
    fn run_again(&self, whole: &mut Self::Whole, traces: &[&Trace], chunk: &Chunk, cancel: &Cancel) -> Self::Rest {
        self.merge(whole, self.chunk(traces, chunk, ChunkStart::Unknown, cancel))
    }
}

/// Run an analysis over the chunks of `traces`, from `whole` on; the caller closes the result.
pub fn run<A: Analysis>(
    analysis: &A,
    mut whole: A::Whole,
    traces: &[&Trace],
    options: &EngineOptions,
    ctx: &Ctx,
) -> Result<A::Whole, Cancelled> {
    let chunks = match analysis.packet_times() {
        Some(times) => cut_by(traces, times, options.chunks, ctx.threads),
        None => cut(traces, options.chunks, ctx.threads),
    };
    ctx.progress.enter("reading", chunks.iter().map(|c| c.bytes).sum());
    let read = |i: usize| {
        (options.hooks.step)(ChunkStep::Begin, i);
        let partial = analysis.chunk(traces, &chunks[i], options.start, &ctx.cancel);
        ctx.progress.step(chunks[i].bytes);
        (options.hooks.step)(ChunkStep::Read, i);
        partial
    };
    let join = |i: usize, partial: A::Partial| {
        // The partial result of a cancelled chunk is incomplete; `in_order_then` returns the error.
        if ctx.cancel.is_cancelled() {
            return None;
        }
        (options.hooks.step)(ChunkStep::Joins, i);
        let rest = if analysis.fits(&whole, &partial) && !(options.hooks.run_again)(i) {
            analysis.merge(&mut whole, partial)
        } else {
            drop(partial);
            ctx.progress.replayed.fetch_add(1, Ordering::Relaxed);
            analysis.run_again(&mut whole, traces, &chunks[i], &ctx.cancel)
        };
        (options.hooks.step)(ChunkStep::Joined, i);
        Some(rest)
    };
    let finish = |i: usize, rest: Option<A::Rest>| {
        rest.into_iter().for_each(|rest| analysis.finish(rest));
        (options.hooks.step)(ChunkStep::Finished, i);
    };
    in_order_then(ctx, chunks.len(), read, join, finish)?;
    ctx.progress.done.store(ctx.progress.total.load(Ordering::Relaxed), Ordering::Relaxed);
    Ok(whole)
}
