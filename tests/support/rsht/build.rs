//! The bulk build of a plain R-SHT: sort-tile packing in two dimensions, time first and attribute second.
//!
//! In: a run of intervals in any order. Out: a [`Tree`].
//!
//! 1. *Bands.* Intervals are separated by duration: band *b* begins at `D * 4^b`, where `D` is the mean time span of an
//!    R-tree. A long interval never widens the bounds of a leaf of short ones.
//! 2. *Slabs.* Each band, in order of end, is cut into slabs of `Shape::slab` intervals.
//! 3. *Leaves.* Each slab is sorted by attribute and start and cut into leaves of [`Shape::node`]; these are the
//!    leaves of one R-tree.
//! 4. *Upper levels.* The roots of the R-trees, in order of band and start, are grouped level by level up to the root.
//!    (Band first: an R-tree of long intervals among those of short ones would widen its group.)
//!
//! Cost: O(N log N), serial.

use super::columns::Columns;
use super::interval::Run;
use super::tree::{BandRoot, Packing, Shape, Tree};

/// Bands of duration.
pub(super) const BANDS: usize = 8;

/// The band of a duration, where the mean time span of an R-tree is `mean`.
fn band(duration: u64, mean: u64) -> usize {
    (1..BANDS as u32).take_while(|band| duration >= mean.max(1).saturating_mul(4_u64.saturating_pow(*band))).count()
}

/// The tree of a run.
pub fn build(run: Run, shape: Shape) -> Tree {
    let Run { items, aside, span, attributes } = run;
    let slab = shape.slab(attributes);
    let whole = u128::from(span.end.abs_diff(span.start));
    let mean = u64::try_from(whole * slab as u128 / items.len().max(1) as u128).unwrap_or(u64::MAX);
    let mut bands = [const { Vec::new() }; BANDS];
    items.into_iter().for_each(|item| bands[band(item.length(), mean)].push(item));
    let (mut packing, mut roots) = (Packing::default(), Vec::new());
    for (band, items) in bands.iter_mut().enumerate() {
        items.sort_unstable_by(|a, b| a.by_end(b, &aside));
        for slab in items.chunks_mut(slab) {
            slab.sort_unstable_by(|a, b| a.attribute.cmp(&b.attribute).then_with(|| a.by_start(b, &aside)));
            let leaves = slab.chunks(shape.node.max(1)).map(|leaf| Columns::encode(leaf, &aside)).collect();
            roots.extend(packing.slab(leaves, shape.fanout).map(|node| BandRoot { band, node }));
        }
    }
    packing.join_bands(roots, shape)
}
