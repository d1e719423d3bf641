//! The nodes of the R-SHT above the leaves of a store: what is in which leaf, without reading it.
//!
//! ```text
//!  level 2                 ( lines 0..90, 0..40 ms )
//!  level 1      ( lines 0..90, 0..16 ms )  ( lines 0..90, 12..40 ms )       ...      16 children each
//!  level 0, a leaf each:   lines 0..40     41..90   |  0..38    39..90  |            sealed together: |
//! ```
//! Leaves are numbered in the order in which they were sealed, those of one slab by line: so the tree is ordered by
//! time above and by line below, as \[002\] packs it. A node has the bounds of all rows below it in line and time, and
//! for states the time in each of them. A few rows that begin long before the others of their leaf would widen these
//! bounds: they are *lifted* out of the leaf's node into lists by duration, each in order of end, in which those that
//! meet a span follow each other nearly (\[002\] 4.6.2 lifts such rows into inner nodes).
//!
//! In: the rows of each leaf, on the worker that seals it; the nodes of leaves in order, while the pass runs. Out: the
//! leaves that may have rows of some lines in a span. Cost: a selection among the starts of a leaf; 24 bytes a node and
//! 8 for each state, and 32 for a lifted row, at most one in 64; a search reads the nodes that meet its span and their
//! siblings.

use super::leaf::StoredRow;
use super::leaf_bytes::names_lines;
use crate::base::time::{Span, Timestamp};
use get_size2::GetSize;
use std::ops::Range;

/// Children of a node.
const FANOUT: usize = 16;
/// At most one row in so many of a leaf is lifted.
const LIFTED: usize = 64;
/// A list has rows of durations up to four times as long as the shortest.
const BAND: u32 = 2;

/// The lines and the time of some rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, GetSize)]
pub struct NodeBounds {
    /// First start to last end, of rows that are not lifted.
    pub span: Span,
    /// The lowest line.
    pub low: u32,
    /// The highest line.
    pub high: u32,
}

impl NodeBounds {
    fn join(&mut self, other: &NodeBounds) {
        self.span = Span::new(self.span.start.min(other.span.start), self.span.end.max(other.span.end));
        (self.low, self.high) = (self.low.min(other.low), self.high.max(other.high));
    }

    /// False where no row of these lines meets a span.
    fn may_meet(&self, lines: &Range<u32>, span: Span) -> bool {
        meets(self.span, span) && self.low < lines.end && lines.start <= self.high
    }
}

/// True where a row meets a span; one without length, where it is inside or at its start.
pub(super) fn meets(row: Span, span: Span) -> bool {
    row.start < span.end && (row.end > span.start || row.start >= span.start)
}

/// A row outside the bounds of its leaf's node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, GetSize)]
pub struct LiftedRow {
    pub span: Span,
    pub line: u32,
    /// Its position in the leaf.
    pub row: u16,
}

/// A row in a [`Band`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, GetSize)]
struct BandRow {
    row: LiftedRow,
    leaf: u32,
}

/// The node of one leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafNode {
    pub bounds: NodeBounds,
    /// Nanoseconds in each state of the rows that are not lifted.
    pub times: Box<[u64]>,
    /// The rows that begin before its bounds.
    pub lifted: Vec<LiftedRow>,
}

impl LeafNode {
    /// Of the rows of a leaf; `parts` has the line and the position of the first row of each of its parts.
    pub fn new<R: StoredRow>(rows: &[R], parts: impl Iterator<Item = (u32, usize)> + Clone) -> LeafNode {
        let lines = || parts.clone().map(|(line, _)| line);
        let (begin, low, high) = match names_lines(R::FAMILY) {
            true => (begin_of(rows), lines().min().unwrap_or(0), lines().max().unwrap_or(0)),
            // The numbers of the lines are not known yet.
            false => (rows.iter().map(|row| row.span().start).min().unwrap_or_default(), 0, u32::MAX),
        };
        let mut bounds = NodeBounds { span: Span::new(begin, Timestamp::MIN), low, high };
        let mut node = LeafNode { bounds, times: vec![0; R::STATES].into_boxed_slice(), lifted: Vec::new() };
        let mut parts = parts.peekable();
        let mut line = 0;
        for (at, row) in rows.iter().enumerate() {
            if let Some((next, _)) = parts.next_if(|(_, first)| *first == at) {
                line = next;
            }
            let span = row.span();
            if span.start < begin {
                node.lifted.push(LiftedRow { span, line, row: at as u16 });
                continue;
            }
            bounds.span.end = bounds.span.end.max(span.end);
            if let Some(time) = node.times.get_mut(row.state()) {
                *time = time.saturating_add(span.end.abs_diff(span.start));
            }
        }
        bounds.span.end = bounds.span.end.max(begin);
        node.lifted.shrink_to_fit();
        LeafNode { bounds, ..node }
    }

    /// First start to last end of all rows.
    pub fn span(&self) -> Span {
        let lifted = self.lifted.iter().map(|row| row.span);
        lifted.fold(self.bounds.span, |all, span| Span::new(all.start.min(span.start), all.end.max(span.end)))
    }
}

/// Where the bounds of the node of some rows begin: at the first start, or, where that makes them less than half as
/// long, at that of the first row that cannot be lifted any more.
fn begin_of<R: StoredRow>(rows: &[R]) -> Timestamp {
    let first = rows.iter().map(|row| row.span().start).min().unwrap_or_default();
    let end = rows.iter().map(|row| row.span().end).max().unwrap_or_default();
    let most = rows.len() / LIFTED;
    if most == 0 {
        return first;
    }
    let mut starts: Vec<Timestamp> = rows.iter().map(|row| row.span().start).collect();
    let (_, begin, _) = starts.select_nth_unstable(most);
    if begin.abs_diff(first) > end.abs_diff(*begin) { *begin } else { first }
}

/// The lifted rows of like duration.
#[derive(Clone, Debug, Default, PartialEq, Eq, GetSize)]
struct Band {
    /// By end, then line, leaf and row.
    rows: Vec<BandRow>,
    /// The longest duration in nanoseconds.
    longest: u64,
}

impl Band {
    /// The rows that may meet a span: those that end in it, or so shortly after that they may begin before its end.
    fn near(&self, span: Span) -> &[BandRow] {
        let from = self.rows.partition_point(|of| of.row.span.end < span.start);
        let rest = self.rows.get(from..).unwrap_or(&[]);
        let last = span.end.ns().saturating_add(i64::try_from(self.longest).unwrap_or(i64::MAX));
        rest.get(..rest.partition_point(|of| of.row.span.end.ns() < last)).unwrap_or(&[])
    }
}

/// The nodes of one level.
#[derive(Clone, Debug, Default, PartialEq, Eq, GetSize)]
struct Level {
    bounds: Vec<NodeBounds>,
    /// For each node the nanoseconds in each state.
    times: Vec<u64>,
}

impl Level {
    fn times(&self, node: usize, states: usize) -> &[u64] {
        self.times.get(node * states..(node + 1) * states).unwrap_or(&[])
    }

    fn push(&mut self, bounds: NodeBounds, times: &[u64]) {
        self.bounds.push(bounds);
        self.times.extend_from_slice(times);
    }

    /// Add to a node, which is the next one where it is not there yet.
    fn join(&mut self, node: usize, bounds: &NodeBounds, times: &[u64]) {
        let Some(own) = self.bounds.get_mut(node) else { return self.push(*bounds, times) };
        own.join(bounds);
        for (own, time) in self.times.iter_mut().skip(node * times.len()).zip(times) {
            *own = own.saturating_add(*time);
        }
    }
}

/// The nodes above the leaves of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq, GetSize)]
pub struct Nodes {
    /// The leaves first, the root last; empty without leaves.
    levels: Vec<Level>,
    /// By the logarithm of the duration.
    bands: Vec<Band>,
    /// Number of states of a row.
    states: usize,
}

/// What a search finds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'n, P> {
    /// The rows below a node are taken as a whole: where, and the time in each state.
    Inside(P, &'n [u64]),
    /// A leaf that may have rows that meet the span.
    Leaf(u32),
    /// A lifted row that meets the span, and its leaf.
    Lifted(u32, &'n LiftedRow),
}

impl Nodes {
    /// Of leaves in order.
    pub fn of(leaves: impl IntoIterator<Item = LeafNode>) -> Nodes {
        let mut nodes = Nodes::default();
        leaves.into_iter().for_each(|leaf| nodes.push(leaf));
        nodes.seal();
        nodes
    }

    /// Add the node of the next leaf.
    pub fn push(&mut self, LeafNode { bounds, times, lifted }: LeafNode) {
        self.states = times.len();
        let mut node = self.len();
        for row in lifted {
            self.lift(BandRow { row, leaf: node as u32 });
        }
        if self.levels.is_empty() {
            self.levels.push(Level::default());
        }
        for level in &mut self.levels {
            level.join(node, &bounds, &times);
            node /= FANOUT;
        }
        // One node holds all others.
        while self.levels.last().is_some_and(|top| top.bounds.len() > 1) {
            let above = self.levels.last().map(|top| above(top, self.states)).unwrap_or_default();
            self.levels.push(above);
        }
    }

    fn lift(&mut self, of: BandRow) {
        let duration = of.row.span.end.abs_diff(of.row.span.start);
        let band = ((u64::BITS - duration.leading_zeros()) / BAND) as usize;
        if self.bands.len() <= band {
            self.bands.resize(band + 1, Band::default());
        }
        if let Some(band) = self.bands.get_mut(band) {
            band.rows.push(of);
            band.longest = band.longest.max(duration);
        }
    }

    /// Once all leaves are there: put lifted rows in order, and return memory that is not used.
    pub fn seal(&mut self) {
        for band in &mut self.bands {
            band.rows.sort_unstable_by_key(|BandRow { row, leaf }| (row.span.end, row.line, *leaf, row.row));
            band.rows.shrink_to_fit();
        }
        for level in &mut self.levels {
            level.bounds.shrink_to_fit();
            level.times.shrink_to_fit();
        }
    }

    /// Number of leaves.
    pub fn len(&self) -> usize {
        self.levels.first().map_or(0, |leaves| leaves.bounds.len())
    }

    /// Number of levels, of which the lowest has a node for each leaf.
    pub fn levels(&self) -> usize {
        self.levels.len()
    }

    /// The bounds of the node of a leaf.
    pub fn bounds(&self, leaf: u32) -> Option<&NodeBounds> {
        self.levels.first()?.bounds.get(leaf as usize)
    }

    /// The nodes of the leaves in order, of which the tree can be made again.
    pub fn leaves(&self) -> Vec<LeafNode> {
        let Some(level) = self.levels.first() else { return Vec::new() };
        let node = |(leaf, bounds): (usize, &NodeBounds)| LeafNode {
            bounds: *bounds,
            times: level.times(leaf, self.states).into(),
            lifted: Vec::new(),
        };
        let mut leaves: Vec<LeafNode> = level.bounds.iter().enumerate().map(node).collect();
        for BandRow { row, leaf } in self.bands.iter().flat_map(|band| &band.rows) {
            if let Some(leaf) = leaves.get_mut(*leaf as usize) {
                leaf.lifted.push(*row);
            }
        }
        leaves.iter_mut().for_each(|leaf| leaf.lifted.sort_unstable_by_key(|row| row.row));
        leaves
    }

    /// All that may meet a span in some lines; the number of nodes that were looked at. `inside` says which nodes are
    /// taken as a whole, by their bounds and the time in each state.
    pub(super) fn search<'n, P>(
        &'n self,
        lines: Range<u32>,
        span: Span,
        inside: impl Fn(&NodeBounds, &'n [u64]) -> Option<P>,
        mut each: impl FnMut(Step<'n, P>),
    ) -> u32 {
        for band in &self.bands {
            for BandRow { row, leaf } in band.near(span) {
                if lines.contains(&row.line) && meets(row.span, span) {
                    each(Step::Lifted(*leaf, row));
                }
            }
        }
        let Some(top) = self.levels.len().checked_sub(1) else { return 0 };
        let mut looked = 0;
        let mut open: Vec<(usize, usize)> = vec![(top, 0)];
        while let Some((level, node)) = open.pop() {
            let Some((of, bounds)) = self.levels.get(level).and_then(|of| Some((of, of.bounds.get(node)?))) else {
                continue;
            };
            looked += 1;
            if !bounds.may_meet(&lines, span) {
                continue;
            }
            let times = of.times(node, self.states);
            if let Some(place) = inside(bounds, times) {
                each(Step::Inside(place, times));
            } else if level == 0 {
                each(Step::Leaf(node as u32));
            } else {
                let below = self.levels.get(level - 1).map_or(0, |below| below.bounds.len());
                // The first child is taken first.
                let children = node * FANOUT..((node + 1) * FANOUT).min(below);
                open.extend(children.rev().map(|child| (level - 1, child)));
            }
        }
        looked
    }
}

/// The level above another.
fn above(level: &Level, states: usize) -> Level {
    let mut above = Level::default();
    for (node, bounds) in level.bounds.iter().enumerate() {
        above.join(node / FANOUT, bounds, level.times(node, states));
    }
    above
}
