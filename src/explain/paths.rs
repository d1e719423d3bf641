//! The critical paths of a task's executions, in parallel chunks, accumulated into one outline.
//!
//! In: executions. Out: [`ExplainedExecutions`], whose contexts are nodes of one outline. Chunks are merged in order of
//! the executions, so every number of workers, and every size of chunks, gives the same outline. The times of an
//! execution are added up by node as soon as its path ends: a chunk holds as much as its executions have nodes, however
//! often their threads alternate.

use super::holders::{self, HeldContext};
use crate::analysis::counters;
use crate::analysis::counts::{PathCounter, PathCounts};
use crate::analysis::ecct::{EcctInputs, NodeTime, TimeOrder, TreeBuilder, add_equal_nodes};
use crate::analysis::executions::Execution;
use crate::analysis::hops::Hops;
use crate::analysis::outline::Outline;
use crate::analysis::path::{self, PathSegment};
use crate::base::block_list::{BlockList, BlockRoom};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::memory_error::MemoryError;
use crate::base::packed::{self, packed};
use crate::base::parallel::in_order;
use crate::base::spill::SpillError;
use crate::model::execution::ExecutionId;
use crate::timeline::SegmentKind;
use crate::timeline::questions::Asker;

/// Executions that a worker takes at once, at most.
const CHUNK: usize = 64;
/// Where executions are few, a worker takes their number divided by this: each may have a long path.
const CHUNKS: usize = 64;

/// Chunks that a worker unpacks at once: unpacking one takes hardly longer than being handed the next.
const UNPACKED: usize = 16;
/// Chunks that are unpacked beside each other before more are read back.
const BATCH: usize = 16 * UNPACKED;

/// Whether the threads that delayed each execution are wanted, with times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holders {
    /// Contexts are enough.
    Omitted,
    /// By context and hop.
    Wanted,
}

/// All executions of a task.
pub(super) struct ExplainedExecutions {
    /// Their contexts.
    pub(super) outline: Outline,
    /// Threads that delayed them.
    pub(super) hops: Hops,
    /// How many, of threads to executions.
    pub(super) contributions: usize,
    /// In order, each chunk's as bytes: they wait for the last path, and take a fifth of the memory so.
    pub(super) chunks: BlockList,
}

/// The executions of a chunk, whose contexts and hops are the chunk's.
struct ExplainedChunk {
    outline: Outline,
    hops: Hops,
    executions: Vec<Explained>,
}

/// One execution.
pub(super) struct Explained {
    /// Where its time was spent; in order of time if its timeline is wanted, else each node once.
    pub(super) own: Vec<NodeTime>,
    pub(super) counts: PathCounts,
    pub(super) counters: Vec<Option<i64>>,
    /// Waits without a cause.
    pub(super) unresolved: u64,
    /// Its segments cover it without gaps or overlaps.
    pub(super) tiled: bool,
    /// By holder, where these are asked for.
    pub(super) contributions: Vec<HeldContext>,
}

packed! {
    Explained { own, counts, counters, unresolved, tiled, contributions }
}

/// Walk and accumulate the paths of all executions. `timelines`: those whose own times stay in order of time.
pub(super) fn explain(
    found: &[Execution],
    timelines: &[ExecutionId],
    sources: &EcctInputs<'_>,
    counter: &PathCounter,
    holders: Holders,
    ctx: &Ctx,
) -> Result<ExplainedExecutions, Cancelled> {
    ctx.progress.enter("paths", found.len() as u64);
    let size = chunk_size(found);
    let chunks: Vec<&[Execution]> = found.chunks(size).collect();
    let mut all = ExplainedExecutions {
        outline: Outline::default(),
        hops: Hops::default(),
        contributions: 0,
        chunks: BlockList::new(&BlockRoom::of(ctx)),
    };
    let order =
        |number: usize| if timelines.contains(&ExecutionId::at(number)) { TimeOrder::Kept } else { TimeOrder::ByNode };
    in_order(
        ctx,
        chunks.len(),
        |i| accumulate(chunks[i], &|at| order(i * size + at), sources, counter, holders),
        |i, chunk| {
            if let Err(why) = all.append(chunk, |at| order(i * size + at)) {
                ctx.cancel.fail(MemoryError::Spill(why));
            }
            ctx.progress.step(chunks[i].len() as u64);
        },
    )?;
    Ok(all)
}

impl ExplainedExecutions {
    /// The next executions, their contexts and hops renumbered.
    fn append(&mut self, mut chunk: ExplainedChunk, order: impl Fn(usize) -> TimeOrder) -> Result<(), SpillError> {
        let (ids, hop_ids) = (self.outline.merge(&chunk.outline), self.hops.merge(&chunk.hops));
        for (at, execution) in chunk.executions.iter_mut().enumerate() {
            execution.own.iter_mut().for_each(|time| time.node = ids[time.node.index()]);
            // Other ids, another order.
            if order(at) == TimeOrder::ByNode {
                add_equal_nodes(&mut execution.own);
            }
            self.contributions += execution.contributions.len();
            for held in &mut execution.contributions {
                (held.node, held.hop) = (ids[held.node.index()], hop_ids[held.hop.index()]);
            }
        }
        self.chunks.push(&mut packed::bytes_of(&chunk.executions))
    }
}

/// Executions of a chunk.
fn chunk_size(found: &[Execution]) -> usize {
    found.len().div_ceil(CHUNKS).clamp(1, CHUNK)
}

/// What `prepare` makes of the executions of a chunk, on the workers, handed to `take` by execution in order; the bytes
/// of those that were taken are gone. None come after bytes that cannot be read back, whose error is the one of the
/// job.
pub(super) fn each<T: Send>(
    chunks: BlockList,
    found: &[Execution],
    prepare: impl Fn(&[Execution], Vec<Explained>) -> Vec<T> + Sync + Send,
    mut take: impl FnMut(usize, T) + Send,
    ctx: &Ctx,
) -> Result<(), Cancelled> {
    let failed = |why| ctx.cancel.fail(MemoryError::Spill(why));
    let mut readable = chunks.take().map_while(|bytes| bytes.map_err(failed).ok());
    let mut executions = found.chunks(chunk_size(found));
    let mut taken = 0;
    loop {
        let batch: Vec<(&[Execution], Vec<u8>)> = executions.by_ref().zip(readable.by_ref()).take(BATCH).collect();
        if batch.is_empty() {
            return ctx.cancel.check();
        }
        let parts: Vec<_> = batch.chunks(UNPACKED).collect();
        let make = |i: usize| {
            // What was packed here can be read.
            let of_chunk = |(executions, bytes): &(&[Execution], Vec<u8>)| {
                prepare(executions, packed::value_of(bytes).unwrap_or_default())
            };
            parts[i].iter().flat_map(of_chunk).collect::<Vec<T>>()
        };
        in_order(ctx, parts.len(), make, |_, prepared| {
            ctx.progress.step(prepared.len() as u64);
            for one in prepared {
                take(taken, one);
                taken += 1;
            }
        })?;
    }
}

fn accumulate(
    chunk: &[Execution],
    order: &dyn Fn(usize) -> TimeOrder,
    sources: &EcctInputs<'_>,
    counter: &PathCounter,
    holders: Holders,
) -> ExplainedChunk {
    let (mut outline, mut hops) = (Outline::default(), Hops::default());
    let [walks, trees, counts] = [Asker::Path, Asker::Ecct, Asker::Counts].map(|asker| sources.timeline.reader(asker));
    let (mut builder, mut walker) = (TreeBuilder::new(sources, &trees), path::Walker::new(&walks));
    let one = |(at, execution): (usize, &Execution)| {
        let path = walker.walk(execution.thread, execution.span);
        let (own, contributions) = if holders == Holders::Wanted {
            let (mut own, spent_by) = builder.accumulate_with_hops(path, &mut outline, &mut hops);
            let contributions = holders::add_up(execution.span.start, &own, &spent_by);
            if order(at) == TimeOrder::ByNode {
                add_equal_nodes(&mut own);
                own.shrink_to_fit();
            }
            (own, contributions)
        } else {
            (builder.accumulate(path, order(at), &mut outline), Vec::new())
        };
        let unresolved = path.iter().filter(|s| is_unresolved(s)).count() as u64;
        let tiled = path::tiles(path, execution.span);
        let counters = counters::along(&counts, path);
        Explained { own, counts: counter.count(&counts, path), counters, unresolved, tiled, contributions }
    };
    let executions = chunk.iter().enumerate().map(one).collect();
    ExplainedChunk { outline, hops, executions }
}

/// A wait with an unknown waker, or time in an unknown state.
fn is_unresolved(segment: &PathSegment) -> bool {
    matches!(segment.kind, SegmentKind::Blocked | SegmentKind::Unknown) && !segment.span.is_empty()
}
