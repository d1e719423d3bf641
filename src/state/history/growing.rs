//! The incremental build: an R-SHT of a trace that is still growing.
//!
//! In: intervals as they close, by increasing end (in another order the bounds of nodes are less tight). Out: a
//! [`Tree`] of all so far, on request. Each band of duration collects intervals until they fill an R-tree; it is packed
//! as the bulk build packs a slab and does not change again. A snapshot shares the packed columns with the growing
//! tree: it costs the number of nodes and the packing of the intervals that bands are still collecting.
//!
//! Neither the number of attributes nor the mean time span of an R-tree is known before the end. Both are estimated
//! again from the intervals so far whenever an R-tree is finished; R-trees never get smaller (ALGORITHMS.md 8.4, 8.5).
//! \[002\] keeps one open branch instead and moves long intervals into its inner nodes; those nodes then span much time
//! and are read by every query in it. With bands, long intervals are in R-trees of their own.

use super::bulk::{BANDS, Bands, BuildError, leaves, mean_span};
use super::interval::{Run, StateValue};
use super::tree::{BandRoot, Packing, Shape, Tree};
use crate::base::ctx::{Cancel, Ctx};
use crate::base::time::{Span, Timestamp};
use crate::state::attributes::AttributeId;

/// A tree that grows.
#[derive(Clone)]
pub struct Growing {
    shape: Shape,
    /// Number of intervals of the next R-tree.
    slab: usize,
    bands: Bands,
    /// The intervals that each band collects.
    open: [Run; BANDS],
    packing: Packing,
    /// Roots of finished R-trees.
    roots: Vec<BandRoot>,
    attributes: usize,
    total: usize,
    span: Span,
}

impl Growing {
    /// An empty tree.
    pub fn new(shape: Shape) -> Self {
        Growing {
            shape,
            slab: shape.slab(0),
            bands: Bands::new(u64::MAX),
            open: Default::default(),
            packing: Packing::default(),
            roots: Vec::new(),
            attributes: 0,
            total: 0,
            span: Span::new(Timestamp::MAX, Timestamp::MIN),
        }
    }

    /// Add an interval, which ends no earlier than those before.
    pub fn push(&mut self, attribute: AttributeId, span: Span, value: StateValue) {
        if span.is_empty() {
            return;
        }
        self.attributes = self.attributes.max(attribute.index() + 1);
        self.total += 1;
        self.span = Span::new(self.span.start.min(span.start), self.span.end.max(span.end));
        let length = span.end.abs_diff(span.start);
        let band = self.bands.of(length);
        self.open[band].push(attribute, span, value);
        if self.open[band].len() >= self.slab {
            self.roots.extend(finish(&mut self.packing, band, &mut self.open[band], self.shape, &Cancel::default()));
            self.slab = self.slab.max(self.shape.slab(self.attributes));
            self.bands = Bands::new(mean_span(self.span, self.slab, self.total));
        }
    }

    /// Number of intervals so far.
    pub fn len(&self) -> usize {
        self.total
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The tree of all intervals so far.
    pub fn snapshot(&self, ctx: &Ctx) -> Result<Tree, BuildError> {
        if self.total > Run::MOST {
            return Err(BuildError::TooMany(self.total));
        }
        let Growing { mut packing, mut roots, open, .. } = self.clone();
        for (band, mut run) in open.into_iter().enumerate() {
            ctx.cancel.check()?;
            roots.extend(finish(&mut packing, band, &mut run, self.shape, &ctx.cancel));
        }
        Ok(packing.join_bands(roots, self.shape, ctx)?)
    }
}

/// Pack the intervals that a band has collected.
fn finish(packing: &mut Packing, band: usize, open: &mut Run, shape: Shape, cancel: &Cancel) -> Option<BandRoot> {
    let run = std::mem::take(open);
    let leaves = leaves(&[&run.items], shape.node, &run.aside, cancel);
    packing.slab(leaves, shape.fanout).map(|node| BandRoot { band, node })
}
