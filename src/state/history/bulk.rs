//! The bulk build: unsorted runs of intervals into an R-SHT, on all workers, the same tree whatever the order of the runs.
//!
//! The parallel analysis gives intervals chunk by chunk, sorted by nothing; the tree of the thesis wants them by end.
//! This is what lies between (ALGORITHMS.md 8.6): a sort-tile packing in two dimensions, time first, attribute second.
//!
//! 1. *Bands.* Intervals are put apart by duration: band *b* begins at `D * 4^b`, where `D` is the mean time span of an
//!    R-tree. A long interval never widens the bounds of a leaf of short ones.
//! 2. *Slabs.* Each band, in order of end, is cut into slabs of `Shape::slab` intervals. The cuts are exact positions in
//!    the total order (end, attribute, start, value) over all runs, found by bisection: nothing is merged
//!    and nothing but the intervals that end where a cut falls is compared beyond its end.
//! 3. *Leaves.* Each slab is sorted by attribute and start and cut into leaves of [`Shape::node`]; these are the leaves of one
//!    R-tree. Workers take parts of about `PART` intervals, whole slabs each.
//! 4. *Roof.* The roots of the R-trees stand in order of band and start and are grouped up to the root. (Band first: an
//!    R-tree of long intervals among those of short ones would widen each group that it falls into.)
//!
//! Cost: each run is sorted by end (free where the machine closed its intervals in order), each slab by counting over its
//! attributes: about linear. Memory: the runs and the tree, and one part per worker.
//!
//! The handbook measures slabs and nodes in bytes, for pages of a file. In memory there is no page to fill, so both are
//! counted in intervals: cuts are exact, every leaf but the last of an R-tree is full.

use super::columns::{Bounds, Columns};
use super::interval::{Packed, Run, Value};
use super::tree::{Packing, Shape, Tree};
use crate::base::time::Span;
use crate::base::work::{Cancelled, Work, in_order};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Why a tree could not be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// It was asked to stop.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// Positions are 30 bits.
    #[error("a state history of {0} intervals is too large: analyse a shorter part of the trace")]
    TooMany(usize),
}

/// Intervals one worker takes at a time: small enough to stay in its cache, large enough that the cuts between them
/// cost nothing.
const PART: usize = 1 << 17;

/// Bands of duration.
pub(super) const BANDS: usize = 8;

/// Where the bands begin.
#[derive(Clone)]
pub(super) struct Bands([u64; BANDS - 1]);

impl Bands {
    /// `first`: the mean time span of an R-tree, *D*.
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
    let whole = u128::from((span.end as u64).wrapping_sub(span.start as u64));
    u64::try_from(whole * slab as u128 / total.max(1) as u128).unwrap_or(u64::MAX)
}

/// Some intervals of one slab or several of one band: where they lie in each run of that band.
struct Part {
    band: usize,
    pieces: Vec<Range<usize>>,
}

/// Build the tree of `runs`.
pub fn build(mut runs: Vec<Run>, shape: Shape, work: &Work) -> Result<Tree, BuildError> {
    let total: usize = runs.iter().map(Run::len).sum();
    if total > Run::MOST {
        return Err(BuildError::TooMany(total));
    }
    let work = &workers_for(total, work);
    runs.retain(|run| !run.is_empty());
    let mut attributes = 0;
    let highest = |i: usize| runs[i].items.iter().map(|item| item.attribute as usize).max();
    in_order(work, runs.len(), highest, |_, highest| attributes = attributes.max(highest.map_or(0, |h| h + 1)))?;
    let slab = shape.slab(attributes);
    let start = runs.iter().map(|run| run.span.start).min().unwrap_or(0);
    let end = runs.iter().map(|run| run.span.end).max().unwrap_or(0);
    let bands = Bands::new(mean_span(Span::new(start, end), slab, total));

    let mut aside = Vec::new();
    let mut offsets = Vec::with_capacity(runs.len());
    for run in &mut runs {
        offsets.push(aside.len());
        aside.append(&mut run.aside);
    }
    let split = map(work, runs.into_iter().zip(offsets).collect(), |(mut run, offset)| {
        run.rebase(offset);
        by_band(run.items, &bands)
    })?;
    let mut banded: [Vec<Vec<Packed>>; BANDS] = Default::default();
    for pieces in split {
        for (band, piece) in banded.iter_mut().zip(pieces) {
            if !piece.is_empty() {
                band.push(piece);
            }
        }
    }

    let mut parts = Vec::new();
    for (band, runs) in banded.iter_mut().enumerate() {
        let cuts = cut(runs, slab.saturating_mul((PART / slab).max(1)), &aside, work)?;
        parts.extend(cuts.into_iter().map(|pieces| Part { band, pieces }));
    }
    let mut packing = Packing::default();
    let mut roots = Vec::new();
    let make = |i: usize| {
        let part: &Part = &parts[i];
        let mut items = Vec::with_capacity(part.pieces.iter().map(Range::len).sum());
        for (piece, run) in part.pieces.iter().zip(&banded[part.band]) {
            items.extend_from_slice(&run[piece.clone()]);
        }
        pack(items, slab, shape.node, &aside)
    };
    in_order(work, parts.len(), make, |i, slabs| {
        let slabs = slabs.into_iter().filter_map(|leaves| packing.slab(leaves, shape.fanout));
        roots.extend(slabs.map(|root| (parts[i].band, root)));
    })?;
    drop(banded);
    Ok(packing.roof(roots, shape, work)?)
}

/// The workers for so many intervals: what one takes at a time is not worth waking another for.
pub(super) fn workers_for(intervals: usize, work: &Work) -> Work {
    let threads = work.threads.min(intervals.div_ceil(PART)).max(1);
    Work { threads, ..work.clone() }
}

/// `f` of each, on the workers; each is given away, so that its memory is free once it is done with.
pub(super) fn map<T: Send, U: Send>(work: &Work, of: Vec<T>, f: impl Fn(T) -> U + Sync) -> Result<Vec<U>, Cancelled> {
    let of: Vec<Mutex<Option<T>>> = of.into_iter().map(|one| Mutex::new(Some(one))).collect();
    let make = |i: usize| of[i].lock().unwrap_or_else(PoisonError::into_inner).take().map(&f);
    let mut results = Vec::with_capacity(of.len());
    in_order(work, of.len(), make, |_, result| results.extend(result))?;
    Ok(results)
}

/// The intervals of a run by band, each in order of end. Most are in the first band: they stay where they are.
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
    for items in &mut banded {
        // Stable sorting makes use of the order that is there already.
        items.sort_by_key(|item| item.end);
    }
    banded
}

/// Cut `runs`, each in order of end, into parts of `size` intervals in the total order; the last may be smaller. What
/// ends where a cut falls is brought into that order.
fn cut(
    runs: &mut [Vec<Packed>],
    size: usize,
    aside: &[Value],
    work: &Work,
) -> Result<Vec<Vec<Range<usize>>>, Cancelled> {
    let total: usize = runs.iter().map(Vec::len).sum();
    let mut parts = Vec::with_capacity(total.div_ceil(size));
    let mut from = vec![0; runs.len()];
    let mut ties = Ties::default();
    while from.iter().sum::<usize>() < total {
        work.cancel.check()?;
        let wanted = (parts.len() + 1).saturating_mul(size);
        let to = if wanted < total {
            ties.positions(runs, &from, wanted, aside)
        } else {
            runs.iter().map(Vec::len).collect()
        };
        parts.push(from.iter().zip(&to).map(|(from, to)| *from..*to).collect());
        from = to;
    }
    Ok(parts)
}

/// What ends at one instant, in total order: kept from one cut to the next, for many cuts may fall there.
#[derive(Default)]
struct Ties {
    end: Option<i64>,
    items: Vec<Packed>,
}

impl Ties {
    /// Positions in the runs, all at or after `from`, before which the first `wanted` intervals of all stand.
    fn positions(&mut self, runs: &mut [Vec<Packed>], from: &[usize], wanted: usize, aside: &[Value]) -> Vec<usize> {
        let before = |run: &Vec<Packed>, from: usize, end: i64| from + run[from..].partition_point(|i| i.end < end);
        let count = |runs: &[Vec<Packed>], end: i64| -> usize {
            runs.iter().zip(from).map(|(run, from)| before(run, *from, end)).sum()
        };
        // The last instant before which fewer than `wanted` intervals end: the cut falls among those that end at it.
        let (mut low, mut high) = (i64::MAX, i64::MIN);
        for (run, from) in runs.iter().zip(from) {
            if let (Some(first), Some(last)) = (run.get(*from), run.last()) {
                (low, high) = (low.min(first.end), high.max(last.end));
            }
        }
        while low < high {
            let middle = low.wrapping_add((high as u64).wrapping_sub(low as u64).div_ceil(2) as i64);
            if count(runs, middle) < wanted { low = middle } else { high = middle - 1 }
        }
        let equal: Vec<Range<usize>> = runs
            .iter()
            .map(|run| run.partition_point(|i| i.end < low)..run.partition_point(|i| i.end <= low))
            .collect();
        if self.end != Some(low) {
            self.end = Some(low);
            self.items.clear();
            for (run, equal) in runs.iter_mut().zip(&equal) {
                let equal = &mut run[equal.clone()];
                equal.sort_unstable_by(|a, b| a.by_end(b, aside));
                self.items.extend_from_slice(equal);
            }
            self.items.sort_by(|a, b| a.by_end(b, aside));
        }
        let mut missing = wanted - equal.iter().map(|equal| equal.start).sum::<usize>();
        let Some(last) = self.items.get(missing.wrapping_sub(1)) else {
            return equal.iter().map(|equal| equal.start).collect();
        };
        let rank = |run: &Vec<Packed>, equal: &Range<usize>, up_to: std::cmp::Ordering| {
            run[equal.clone()].partition_point(|i| i.by_end(last, aside) < up_to)
        };
        let ranks: Vec<(usize, usize)> = runs
            .iter()
            .zip(&equal)
            .map(|(run, e)| (rank(run, e, std::cmp::Ordering::Equal), rank(run, e, std::cmp::Ordering::Greater)))
            .collect();
        missing -= ranks.iter().map(|(less, _)| less).sum::<usize>();
        // Several runs may hold the very interval that the cut falls on: which of them gives it makes no difference.
        ranks
            .iter()
            .zip(&equal)
            .map(|((less, same), equal)| {
                let taken = missing.min(same - less);
                missing -= taken;
                equal.start + less + taken
            })
            .collect()
    }
}

/// The leaves of each slab of `items`, which are whole slabs of one band.
fn pack(mut items: Vec<Packed>, slab: usize, node: usize, aside: &[Value]) -> Vec<Vec<(Bounds, Columns)>> {
    if items.len() > slab {
        items.sort_by_key(|item| item.end);
        // Only where a slab ends does it matter how intervals that end at once stand.
        let mut done = 0;
        for at in (slab..items.len()).step_by(slab) {
            if at < done {
                continue;
            }
            let end = items[at].end;
            let first = items[..at].iter().rposition(|item| item.end != end).map_or(0, |before| before + 1);
            done = at + items[at..].iter().position(|item| item.end != end).unwrap_or(items.len() - at);
            items[first..done].sort_unstable_by(|a, b| a.by_end(b, aside));
        }
    }
    items.chunks_mut(slab).map(|slab| leaves(slab, node, aside)).collect()
}

/// The leaves of one slab.
pub(super) fn leaves(slab: &mut [Packed], node: usize, aside: &[Value]) -> Vec<(Bounds, Columns)> {
    let sorted = by_attribute(slab, aside);
    sorted.chunks(node.max(1)).map(|leaf| Columns::encode(leaf, aside)).collect()
}

/// In order of attribute and start. Attributes are dense, so counting them is the fastest sort; where a slab has few
/// intervals of many attributes it would count mostly zeros.
fn by_attribute(items: &mut [Packed], aside: &[Value]) -> Vec<Packed> {
    let low = items.iter().map(|i| i.attribute).min().unwrap_or(0);
    let high = items.iter().map(|i| i.attribute).max().unwrap_or(0);
    let different = (high - low) as usize + 1;
    if different > 4 * items.len() {
        items.sort_unstable_by(|a, b| a.attribute.cmp(&b.attribute).then_with(|| a.by_start(b, aside)));
        return items.to_vec();
    }
    let mut places = vec![0u32; different];
    for item in items.iter() {
        places[(item.attribute - low) as usize] += 1;
    }
    let mut place = 0;
    for slot in &mut places {
        place += std::mem::replace(slot, place);
    }
    let mut sorted = items.to_vec();
    for item in items.iter() {
        let place = &mut places[(item.attribute - low) as usize];
        sorted[*place as usize] = *item;
        *place += 1;
    }
    for group in sorted.chunk_by_mut(|a, b| a.attribute == b.attribute) {
        if !group.is_sorted_by(|a, b| a.by_start(b, aside).is_le()) {
            group.sort_unstable_by(|a, b| a.by_start(b, aside));
        }
    }
    sorted
}
