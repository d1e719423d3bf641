//! The trees that the R-SHT is compared with: the classic state history tree and the eSHT, packed as [002] describes.
//!
//! In: intervals by increasing end. Out: a [`Tree`] with the same nodes, bounds and searches as the R-SHT's, so that
//! differences come from the packing alone. One branch is open from the root to a leaf; an interval goes to the deepest
//! open node that had begun when the interval did, a full node is closed with all below it, and a sibling opened.
//!
//! - *classic*: a sibling begins where the one before it ended. Where many attributes hold on past that instant their
//!   intervals go up and up: the tree becomes a comb of depth A/n.
//! - *eSHT*: a sibling begins with its first interval, so siblings overlap and the tree stays packed.

use super::random::Random;
use super::rsht::columns::{Bounds, Columns};
use super::rsht::interval::{Interval, Run};
use super::rsht::tree::{Packing, Shape, Tree};
use whyslow::parts::base::time::{Ns, Span, Timestamp};
use whyslow::parts::timeline::attributes::AttributeId;
use whyslow::parts::timeline::history::StateValue;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Classic,
    Esht,
}

#[derive(Default)]
struct Open {
    /// `None` until the first interval.
    start: Option<Timestamp>,
    own: Run,
    children: Vec<u32>,
}

/// Pack `intervals`, given by increasing end.
pub fn pack(intervals: impl Iterator<Item = Interval>, kind: Kind, shape: Shape) -> Tree {
    let mut packing = Packing::default();
    // The leaf first, the root last.
    let mut branch = vec![Open::default()];
    for interval in intervals {
        let top = branch.len() - 1;
        let begun = |open: &Open| open.start.is_none_or(|start| start <= interval.span.start);
        let level = branch.iter().position(begun).unwrap_or(top);
        for open in &mut branch[level..] {
            open.start = Some(open.start.map_or(interval.span.start, |start| start.min(interval.span.start)));
        }
        branch[level].own.extend([interval]);
        if branch[level].own.len() == shape.node {
            let end = (kind == Kind::Classic).then_some(interval.span.end);
            close(&mut packing, &mut branch, level, shape, end);
        }
    }
    for level in 0..branch.len() {
        let node = node(&mut packing, std::mem::take(&mut branch[level]));
        if let Some(above) = branch.get_mut(level + 1) {
            above.children.push(node);
        } else {
            return packing.seal(Some(node), shape);
        }
    }
    packing.seal(None, shape)
}

/// Close the open nodes up to `level`, and further up as long as a parent has all its children.
fn close(packing: &mut Packing, branch: &mut Vec<Open>, level: usize, shape: Shape, begin: Option<Timestamp>) {
    let mut at = 0;
    let mut up_to = level;
    while at <= up_to {
        let fresh = Open { start: begin, ..Open::default() };
        let node = node(packing, std::mem::replace(&mut branch[at], fresh));
        if at + 1 == branch.len() {
            branch.push(Open { start: Some(packing.bounds(node).start), ..Open::default() });
        }
        branch[at + 1].children.push(node);
        if branch[at + 1].children.len() == shape.fanout {
            up_to = up_to.max(at + 1);
        }
        at += 1;
    }
}

fn node(packing: &mut Packing, open: Open) -> u32 {
    let mut intervals: Vec<Interval> = open.own.iter().collect();
    intervals.sort_unstable();
    let leaf: (Bounds, Columns) = Columns::of_sorted(&intervals);
    packing.node(leaf, open.children)
}

/// The interval model of [002] Fig. 4.6, by increasing end: every attribute's life is cut into `each` equal intervals,
/// those of different attributes are shifted evenly, attributes are shuffled.
pub fn model(attributes: u32, each: u32) -> impl Iterator<Item = Interval> {
    const STEP: Ns = 1000;
    let shuffled = shuffled(attributes);
    let period = Ns::from(attributes) * STEP;
    let last = period * Ns::from(each);
    (0..=each).flat_map(move |i| {
        let shuffled = shuffled.clone();
        (0..attributes as usize).filter_map(move |slot| {
            let end = Ns::from(i) * period + slot as Ns * STEP;
            let span = Span::new(Timestamp::new((end - period).max(0)), Timestamp::new(end.min(last)));
            let attribute = AttributeId::from_raw(shuffled[slot]);
            let value = StateValue::Code(((attribute.raw() + i) % 5) as u16);
            (!span.is_empty()).then_some(Interval { attribute, span, value })
        })
    })
}

fn shuffled(n: u32) -> std::sync::Arc<[u32]> {
    let mut random = Random::new(1);
    let mut all: Vec<u32> = (0..n).collect();
    for at in (1..all.len()).rev() {
        all.swap(at, random.below(at + 1));
    }
    all.into()
}
