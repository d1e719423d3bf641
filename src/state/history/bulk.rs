//! The bulk build: an R-SHT from unsorted runs of intervals, on all workers, the same tree for any order of the runs.
//!
//! The parallel analysis produces unsorted intervals chunk by chunk; the tree of the thesis needs them by end. This
//! module packs them by sort-tile packing in two dimensions (ALGORITHMS.md 8.6): time first, attribute second.
//!
//! 1. *Bands.* Intervals are separated by duration: band *b* begins at `D * 4^b`, where `D` is the mean time span of an
//!    R-tree. A long interval never widens the bounds of a leaf of short ones.
//! 2. *Slabs.* Each band, in order of end, is cut into slabs of `Shape::slab` intervals. The cuts are exact
//!    positions in the total order (end, attribute, start, value) over all runs, found by counting (`cuts.rs`): no run
//!    is sorted or merged, and only intervals that end near a cut are compared.
//! 3. *Leaves.* Each slab is sorted by attribute and start and cut into leaves of [`Shape::node`]; these are the
//!    leaves of one R-tree. Workers take parts of about `PART` intervals, whole slabs each.
//! 4. *Upper levels.* The roots of the R-trees, in order of band and start, are grouped level by level up to the root.
//!    (Band first: an R-tree of long intervals among those of short ones would widen its group.)
//!
//! Cost: linear, except for finding the place of each interval among the cuts (free where a run is in order of end) and
//! for sorting the intervals of one attribute within a slab. Memory: the runs and the tree, and one part per worker.
//!
//! The handbook measures slabs and nodes in bytes, for pages of a file. In memory there is no page to fill, so both are
//! counted in intervals: cuts are exact, every leaf but the last of an R-tree is full.

use super::columns::{Bounds, Columns};
use super::cuts::{Bucketed, Parts, Splitters, arrange, split};
use super::interval::{Packed, Run, StateValue};
use super::tree::{BandRoot, Packing, Shape, Tree};
use crate::base::ctx::{Cancel, Cancelled, Ctx};
use crate::base::parallel::in_order;
use crate::base::time::Span;
use std::sync::{Mutex, PoisonError};

/// The reason why a tree could not be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The build was cancelled.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// There are more intervals than positions of 30 bits.
    #[error("a state history of {0} intervals is too large: analyse a shorter part of the trace")]
    TooMany(usize),
}

/// Intervals that one worker takes at a time, unless a slab has more: few enough to stay in its cache, enough to make
/// the cost of the cuts negligible.
const PART: usize = 1 << 13;

/// Intervals for which another worker is used.
const SHARE: usize = 1 << 17;

/// Bands of duration.
pub(super) const BANDS: usize = 8;

/// The shortest durations of all bands but the first.
#[derive(Clone)]
pub(super) struct Bands([u64; BANDS - 1]);

impl Bands {
    /// `first` is the mean time span of an R-tree, *D*.
    pub fn new(first: u64) -> Self {
        let mut from = first.max(1);
        Bands(std::array::from_fn(|_| {
            from = from.saturating_mul(4);
            from
        }))
    }

    /// The band of a duration.
    pub fn of(&self, duration: u64) -> usize {
        self.0.iter().take_while(|from| duration >= **from).count()
    }
}

/// The time that a slab covers on average, in ns: the width of the first band, *D*.
pub(super) fn mean_span(span: Span, slab: usize, total: usize) -> u64 {
    let whole = u128::from(span.end.abs_diff(span.start));
    u64::try_from(whole * slab as u128 / total.max(1) as u128).unwrap_or(u64::MAX)
}

/// Build the tree of `runs`.
pub fn build(mut runs: Vec<Run>, shape: Shape, ctx: &Ctx) -> Result<Tree, BuildError> {
    let total: usize = runs.iter().map(Run::len).sum();
    if total > Run::MOST {
        return Err(BuildError::TooMany(total));
    }
    let ctx = &workers_for(total, ctx);
    runs.retain(|run| !run.is_empty());
    let slab = shape.slab(runs.iter().map(|run| run.attributes).max().unwrap_or(0));
    let size = slab.saturating_mul((PART / slab).max(1));
    let start = runs.iter().map(|run| run.span.start).min().unwrap_or_default();
    let end = runs.iter().map(|run| run.span.end).max().unwrap_or_default();
    let bands = Bands::new(mean_span(Span::new(start, end), slab, total));
    let splitters = Splitters::sample(&runs, total.div_ceil(size));

    let mut aside = Vec::new();
    let mut offsets = Vec::with_capacity(runs.len());
    for run in &mut runs {
        offsets.push((!run.aside.is_empty()).then_some(aside.len()));
        aside.append(&mut run.aside);
    }
    let split = map(ctx, runs.into_iter().zip(offsets).collect(), |(mut run, offset)| {
        if let Some(offset) = offset {
            run.rebase(offset);
        }
        by_band(run.items, &bands).map(|items| (!items.is_empty()).then(|| Bucketed::new(items, &splitters)))
    })?;
    let mut banded: [Vec<Bucketed>; BANDS] = Default::default();
    for pieces in split {
        banded.iter_mut().zip(pieces).for_each(|(band, piece)| band.extend(piece));
    }
    let mut bands = banded.map(|runs| Parts::new(runs, size));
    arrange(&mut bands, &aside, ctx)?;

    let parts: Vec<(usize, usize)> =
        bands.iter().enumerate().flat_map(|(band, parts)| (0..parts.len()).map(move |part| (band, part))).collect();
    let mut packing = Packing::default();
    let mut roots = Vec::new();
    let make = |i: usize| {
        let (band, part) = parts[i];
        pack(&bands[band].part(part), slab, shape.node, &aside, &ctx.cancel)
    };
    in_order(ctx, parts.len(), make, |i, slabs| {
        let slabs = slabs.into_iter().filter_map(|leaves| packing.slab(leaves, shape.fanout));
        roots.extend(slabs.map(|node| BandRoot { band: parts[i].0, node }));
    })?;
    drop(bands);
    Ok(packing.join_bands(roots, shape, ctx)?)
}

/// The workers for so many intervals.
pub(super) fn workers_for(intervals: usize, ctx: &Ctx) -> Ctx {
    let threads = ctx.threads.min(intervals.div_ceil(SHARE)).max(1);
    Ctx { threads, ..ctx.clone() }
}

/// `f` of each item, on the workers; `f` owns the item, so that its memory is free after the call.
pub(super) fn map<T: Send, U: Send>(ctx: &Ctx, of: Vec<T>, f: impl Fn(T) -> U + Sync) -> Result<Vec<U>, Cancelled> {
    let of: Vec<Mutex<Option<T>>> = of.into_iter().map(|one| Mutex::new(Some(one))).collect();
    let make = |i: usize| of[i].lock().unwrap_or_else(PoisonError::into_inner).take().map(&f);
    let mut results = Vec::with_capacity(of.len());
    in_order(ctx, of.len(), make, |_, result| results.extend(result))?;
    Ok(results)
}

/// The intervals of a run by band. Most are in the first one and are not moved.
fn by_band(mut items: Vec<Packed>, bands: &Bands) -> [Vec<Packed>; BANDS] {
    let mut banded: [Vec<Packed>; BANDS] = Default::default();
    items.retain(|item| {
        let band = bands.of(item.length());
        if band > 0 {
            banded[band].push(*item);
        }
        band == 0
    });
    banded[0] = items;
    banded
}

/// The leaves of each slab of a part, which is whole slabs of one band and is given in pieces.
fn pack(
    pieces: &[&[Packed]],
    slab: usize,
    node: usize,
    aside: &[StateValue],
    cancel: &Cancel,
) -> Vec<Vec<(Bounds, Columns)>> {
    let count = pieces.iter().map(|piece| piece.len()).sum();
    if count <= slab {
        return vec![leaves(pieces, node, aside, cancel)];
    }
    let mut items = pieces.concat();
    let cuts: Vec<usize> = (slab..count).step_by(slab).collect();
    split(&mut items, 0, &cuts, aside);
    items.chunks(slab).map(|slab| leaves(&[slab], node, aside, cancel)).collect()
}

/// The leaves of one slab, which is given in pieces. Some are missing after a cancel.
pub(super) fn leaves(
    pieces: &[&[Packed]],
    node: usize,
    aside: &[StateValue],
    cancel: &Cancel,
) -> Vec<(Bounds, Columns)> {
    let sorted = by_attribute(pieces, aside);
    let leaves = sorted.chunks(node.max(1)).take_while(|_| !cancel.is_cancelled());
    leaves.map(|leaf| Columns::encode(leaf, aside)).collect()
}

/// The intervals in order of attribute and start. Attributes are dense, so a counting sort is the fastest; it is not
/// used where a slab has few intervals of many attributes, because most counts would be zero.
fn by_attribute(pieces: &[&[Packed]], aside: &[StateValue]) -> Vec<Packed> {
    let (mut low, mut high, mut count) = (u32::MAX, 0, 0);
    for piece in pieces {
        count += piece.len();
        for item in *piece {
            (low, high) = (low.min(item.attribute), high.max(item.attribute));
        }
    }
    let different = (high.max(low) - low) as usize + 1;
    let mut sorted = pieces.concat();
    if different > 4 * count {
        sorted.sort_unstable_by(|a, b| a.attribute.cmp(&b.attribute).then_with(|| a.by_start(b, aside)));
        return sorted;
    }
    let mut places = vec![0u32; different];
    for item in &sorted {
        places[(item.attribute - low) as usize] += 1;
    }
    let mut place = 0;
    for slot in &mut places {
        place += std::mem::replace(slot, place);
    }
    for piece in pieces {
        for item in *piece {
            let place = &mut places[(item.attribute - low) as usize];
            sorted[*place as usize] = *item;
            *place += 1;
        }
    }
    for group in sorted.chunk_by_mut(|a, b| a.attribute == b.attribute) {
        if !group.is_sorted_by(|a, b| a.by_start(b, aside).is_le()) {
            group.sort_unstable_by(|a, b| a.by_start(b, aside));
        }
    }
    sorted
}
