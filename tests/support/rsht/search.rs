//! Queries of the tree: one attribute at an instant, all of them, some of them at many instants or over a range.
//!
//! [`Tree::at`] is the single query. [`Tree::search`] covers all others: an iterator over a list of nodes still to be
//! read, each with the attributes and instants that its bounds contain. So a node is read at most once for any number
//! of attributes and instants, and not before its intervals are requested; dropping the iterator ends the
//! search. Intervals come node by node, in no order of time.
//!
//! Cost: single, about two nodes per level and band; all attributes, the nodes whose bounds contain the instant; a
//! search over *k* attributes and *t* instants, at most every node once and at most *k t* single queries. ALGORITHMS.md
//! 8.7; \[002\] returned a map of all attributes (4.6.4) and names that as a weakness (6.1).

use super::columns::Bounds;
use super::interval::Interval;
use super::tree::Tree;
use std::ops::Range;
use whyslow::parts::base::time::{Span, Timestamp};
use whyslow::parts::timeline::attributes::AttributeId;

/// The attributes of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Which(AttributeSet);

#[derive(Clone, Debug, PartialEq, Eq)]
enum AttributeSet {
    /// From the first to the last of a range, both included.
    Range(u32, u32),
    /// Ascending, each once.
    List(Vec<AttributeId>),
}

impl Which {
    /// Every attribute.
    pub const ALL: Which = Which(AttributeSet::Range(0, u32::MAX));

    /// These attributes, in any order.
    pub fn these(attributes: impl IntoIterator<Item = AttributeId>) -> Self {
        let mut list: Vec<AttributeId> = attributes.into_iter().collect();
        list.sort_unstable();
        list.dedup();
        Which(AttributeSet::List(list))
    }

    /// The attributes `first` to `last`, both included.
    pub fn range(first: AttributeId, last: AttributeId) -> Self {
        Which(AttributeSet::Range(first.raw(), last.raw()))
    }
}

/// The time of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct When(TimeSet);

#[derive(Clone, Debug, PartialEq, Eq)]
enum TimeSet {
    /// The intervals that meet this span.
    Within(Span),
    /// The intervals at these instants, ascending, each once.
    Instants(Vec<Timestamp>),
}

impl When {
    /// The intervals at `t`.
    pub fn at(t: Timestamp) -> Self {
        // No interval contains the last nanosecond of time, because ends are exclusive.
        When(TimeSet::Within(Span::new(t, t.saturating_add(1))))
    }

    /// The intervals that meet `span`; none where it is empty.
    pub fn within(span: Span) -> Self {
        When(TimeSet::Within(span))
    }

    /// The intervals at `instants`, in any order.
    pub fn instants(instants: impl IntoIterator<Item = Timestamp>) -> Self {
        let mut list: Vec<Timestamp> = instants.into_iter().collect();
        list.sort_unstable();
        list.dedup();
        When(TimeSet::Instants(list))
    }

    fn is_instant(&self) -> bool {
        matches!(self.0, TimeSet::Within(span) if span.len() <= 1)
    }

    /// All intervals.
    pub const ALWAYS: When = When(TimeSet::Within(Span { start: Timestamp::MIN, end: Timestamp::MAX }));
}

/// With fewer attributes than one in this many intervals, each of them is on a cache line of its own.
const SPARSE: usize = 32;

/// A node to be read, and the requested attributes and instants: positions in the lists of [`Which`] and [`When`].
#[derive(Clone, Debug)]
struct Task {
    node: u32,
    attributes: Range<u32>,
    instants: Range<u32>,
}

/// The intervals that a search finds. Each node is read when its first interval is asked for.
#[derive(Clone, Debug)]
pub struct Search<'a> {
    tree: &'a Tree,
    which: Which,
    when: When,
    tasks: Vec<Task>,
    found: Vec<Interval>,
    given: usize,
    read: usize,
}

impl Tree {
    /// The interval of `attribute` at `t`; `None` where its value is unknown.
    pub fn at(&self, attribute: AttributeId, t: Timestamp) -> Option<Interval> {
        if !self.life(attribute)?.contains(t) {
            return None;
        }
        let key = attribute.raw();
        let holds = |b: &Bounds| b.start <= t && t < b.end && b.low <= key && key <= b.high;
        let mut pending = smallvec::SmallVec::<[u32; 32]>::new();
        pending.push(0);
        while let Some(node) = pending.pop().and_then(|at| self.nodes.get(at as usize)) {
            let columns = node.columns();
            if let Some(found) = columns.holding(columns.of(key, 0), t) {
                return Some(columns.get(found));
            }
            let children = node.children();
            let bounds = self.bounds.get(children.start as usize..children.end as usize).unwrap_or(&[]);
            pending.extend(children.zip(bounds).filter(|(_, bounds)| holds(bounds)).map(|(child, _)| child));
        }
        None
    }

    /// The intervals of `which` attributes `when`.
    pub fn search(&self, which: Which, when: When) -> Search<'_> {
        let mut search = Search { tree: self, which, when, tasks: Vec::new(), found: Vec::new(), given: 0, read: 0 };
        let attributes = match &search.which.0 {
            AttributeSet::Range(..) => 0..1,
            AttributeSet::List(list) => 0..list.len() as u32,
        };
        let instants = match &search.when.0 {
            TimeSet::Within(_) => 0..1,
            TimeSet::Instants(list) => 0..list.len() as u32,
        };
        if !self.is_empty() {
            search.tasks.extend(search.narrow(0, &attributes, &instants));
        }
        search
    }
}

impl Search<'_> {
    /// All remaining intervals at once, which is faster than one after the other.
    pub fn into_vec(mut self) -> Vec<Interval> {
        self.found.drain(..self.given);
        if let (AttributeSet::Range(low, high), true) = (&self.which.0, self.when.is_instant()) {
            // At one instant an attribute has at most one interval.
            let most = (high.saturating_sub(*low) as usize).saturating_add(1).min(self.tree.attributes());
            self.found.reserve(most);
        }
        while let Some(task) = self.next_task() {
            self.read(&task);
        }
        self.found
    }

    fn next_task(&mut self) -> Option<Task> {
        self.tasks.pop()
    }

    /// Nodes read so far.
    pub fn nodes_read(&self) -> usize {
        self.read
    }

    /// The query restricted to the bounds of `node`; `None` if nothing remains.
    fn narrow(&self, node: u32, attributes: &Range<u32>, instants: &Range<u32>) -> Option<Task> {
        let bounds = self.tree.bounds.get(node as usize)?;
        let attributes = match &self.which.0 {
            AttributeSet::Range(low, high) => {
                (*low <= bounds.high && bounds.low <= *high).then(|| attributes.clone())?
            }
            AttributeSet::List(list) => within(list, attributes, |a| a.raw() < bounds.low, |a| a.raw() <= bounds.high)
                .filter(|r| !r.is_empty())?,
        };
        let instants = match &self.when.0 {
            TimeSet::Within(span) => {
                let meets = span.start < bounds.end && bounds.start < span.end && !span.is_empty();
                meets.then(|| instants.clone())?
            }
            TimeSet::Instants(list) => {
                within(list, instants, |t| *t < bounds.start, |t| *t < bounds.end).filter(|r| !r.is_empty())?
            }
        };
        Some(Task { node, attributes, instants })
    }

    /// Read one node: its own intervals into `found`, its children onto the list.
    fn read(&mut self, task: &Task) {
        self.read += 1;
        let tree = self.tree;
        let Some(node) = tree.nodes.get(task.node as usize) else { return };
        // Children are pushed in reverse order, so that they are read from the first on.
        for child in node.children().rev() {
            let narrowed = self.narrow(child, &task.attributes, &task.instants);
            self.tasks.extend(narrowed);
        }
        let columns = node.columns();
        let found = &mut self.found;
        match (&self.which.0, &self.when.0) {
            (AttributeSet::Range(low, high), TimeSet::Within(span)) if low < high => {
                columns.scan(columns.between(*low, *high, 0), *span, found);
            }
            (AttributeSet::Range(low, high), when) => {
                let all = columns.between(*low, *high, 0);
                let mut at = all.start;
                while at < all.end {
                    let group = columns.of(columns.attribute(at), at);
                    at = group.end;
                    when.find(columns, group, &task.instants, &mut |at| found.push(columns.get(at)));
                }
            }
            (AttributeSet::List(list), when) => {
                let mut from = 0;
                let wanted = list.get(task.attributes.start as usize..task.attributes.end as usize).unwrap_or(&[]);
                if wanted.len() < columns.len() / SPARSE {
                    columns.touch(wanted.iter().map(|attribute| attribute.raw()));
                }
                for attribute in wanted {
                    let group = columns.of(attribute.raw(), from);
                    from = group.end;
                    when.find(columns, group, &task.instants, &mut |at| found.push(columns.get(at)));
                }
            }
        }
    }
}

impl TimeSet {
    /// Call `hit` with the positions in `group`, all of one attribute, that meet the time of the query.
    fn find(
        &self,
        columns: &super::columns::Columns,
        group: Range<usize>,
        instants: &Range<u32>,
        hit: &mut impl FnMut(usize),
    ) {
        match self {
            TimeSet::Within(span) => columns.meeting(group, *span).for_each(hit),
            TimeSet::Instants(list) => {
                let mut rest = list.get(instants.start as usize..instants.end as usize).unwrap_or(&[]);
                for at in group {
                    rest = &rest[rest.partition_point(|t| *t < columns.start(at))..];
                    match rest.first() {
                        None => break,
                        Some(t) if *t < columns.end(at) => hit(at),
                        Some(_) => {}
                    }
                }
            }
        }
    }
}

/// In `part` of a sorted list: from the first that is not `before` to the first that is not `inside`.
fn within<T>(
    list: &[T],
    part: &Range<u32>,
    before: impl Fn(&T) -> bool,
    inside: impl Fn(&T) -> bool,
) -> Option<Range<u32>> {
    let items = list.get(part.start as usize..part.end as usize)?;
    let start = items.partition_point(before);
    let end = start + items.get(start..)?.partition_point(inside);
    Some(part.start + start as u32..part.start + end as u32)
}

impl Iterator for Search<'_> {
    type Item = Interval;

    fn next(&mut self) -> Option<Interval> {
        loop {
            if let Some(interval) = self.found.get(self.given) {
                self.given += 1;
                return Some(*interval);
            }
            self.found.clear();
            self.given = 0;
            let task = self.next_task()?;
            self.read(&task);
        }
    }
}
