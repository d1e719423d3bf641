//! Activities of streams over a time, by region: the events behind delay costs, imbalance and the critical path.
//!
//! In: operations and clocks. Out: activities with their region, latest first, and sums by region. A region is the
//! operation's name, or the innermost region around the time between two operations. Cost: a search per query, then
//! one step per event, without a look-up or an allocation.

use crate::analysis::offsets::StreamClock;
use crate::base::names::NameId;
use crate::base::search::partition_point_near;
use crate::base::time::{Ns, Span, Timestamp};
use crate::event::call_path::CallSites;
use crate::event::operation::{NO_PATH, Operation, Operations};
use crate::model::event_kind::EventKind;

/// An activity by name, the same on all streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Region {
    pub name: NameId,
    /// It is the computation after a call of this name, in no known region except the outermost.
    pub after: bool,
}

impl Region {
    pub fn words(self, operations: &Operations) -> String {
        let name = operations.names.get(self.name);
        if self.after { format!("computation after {name}") } else { name.to_owned() }
    }
}

/// An activity of a stream, on the common time line.
#[derive(Clone, Copy, Debug)]
pub struct ActivitySpan {
    /// Twice the position of its operation, plus one for the time after it.
    pub event: u32,
    pub span: Span,
    /// The kind of the event.
    pub kind: EventKind,
    pub region: Region,
}

/// Streams on the common time line.
pub struct Streams<'a> {
    operations: &'a Operations,
    /// By stream.
    clocks: &'a [StreamClock],
    /// By call path: the region of the time spent in it; none where the path is outermost.
    inside: Vec<Option<NameId>>,
}

impl<'a> Streams<'a> {
    /// The streams of a run. Cost: linear in the call paths.
    pub fn new(operations: &'a Operations, clocks: &'a [StreamClock]) -> Streams<'a> {
        let name =
            |path: usize| operations.paths.get(path as u32).filter(|node| node.parent != NO_PATH).map(|node| node.name);
        Streams { operations, clocks, inside: (0..operations.paths.len()).map(name).collect() }
    }

    /// Their activities.
    pub fn operations(&self) -> &'a Operations {
        self.operations
    }

    /// A time of a stream on the common line.
    #[inline]
    pub fn common(&self, stream: u32, local: Timestamp) -> Timestamp {
        self.clocks.get(stream as usize).map_or(local, |c| c.common(local))
    }

    /// The call path of an event; the outermost where it is unknown.
    pub fn path(&self, stream: u32, event: u32) -> u32 {
        let site = self.operations.sequences.get(stream as usize).and_then(|s| s.call_sites.get(event as usize / 2));
        site.map_or(NO_PATH, |site| if event.is_multiple_of(2) { site.path } else { site.after })
    }

    /// The region of the time after an operation.
    pub fn region_after(&self, stream: u32, operation: usize) -> Option<Region> {
        let sequence = self.operations.sequences.get(stream as usize)?;
        let path = sequence.call_sites.get(operation).map_or(NO_PATH, |site| site.after);
        Some(region_of_gap(&self.inside, path, sequence.operations.get(operation)?.symbol))
    }

    /// True where the program computed, false where it was in a library. Nothing inside a call that waits or
    /// communicates counts as computation.
    pub fn is_useful(&self, activity: &ActivitySpan) -> bool {
        let is_program = || self.operations.is_program(activity.region.name);
        match activity.kind {
            EventKind::Gap => activity.region.after || is_program(),
            kind => kind == EventKind::Operation && is_program(),
        }
    }

    /// The events of a stream in a span, latest first, cut to it.
    pub fn back(&self, stream: u32, within: Span) -> Backward<'_> {
        self.back_near(stream, within, u32::MAX)
    }

    /// [`back`](Self::back), by an operation `near` which begins near the end of the span.
    pub fn back_near(&self, stream: u32, within: Span, near: u32) -> Backward<'_> {
        let sequence = self.operations.sequences.get(stream as usize);
        let clock = self.clocks.get(stream as usize).copied().unwrap_or_default();
        let operations = sequence.map_or(&[][..], |s| &s.operations);
        let call_sites = sequence.map(|s| &s.call_sites);
        let begins_before = |o: &Operation| clock.common(o.start) < within.end;
        let left = partition_point_near(operations, near as usize, begins_before);
        let next = operations.get(left).map(|o| clock.common(o.start));
        Backward { inside: &self.inside, operations, call_sites, clock, within, left, gap_is_next: true, next }
    }
}

/// The region of the time spent in a call path: its innermost one, else the computation after a call.
#[inline]
fn region_of_gap(inside: &[Option<NameId>], path: u32, call: NameId) -> Region {
    match inside.get(path as usize) {
        Some(Some(name)) => Region { name: *name, after: false },
        _ => Region { name: call, after: true },
    }
}

/// The events of a stream, latest first.
pub struct Backward<'a> {
    inside: &'a [Option<NameId>],
    operations: &'a [Operation],
    call_sites: Option<&'a CallSites>,
    clock: StreamClock,
    within: Span,
    /// The number of operations that are still to come.
    left: usize,
    /// The time after the last of them is still to come.
    gap_is_next: bool,
    /// The begin of the operation after that time.
    next: Option<Timestamp>,
}

impl Backward<'_> {
    /// The number of operations that are still to come.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Look at the events from the last down to the begin of an operation, which takes less time than one by one; the
    /// iterator must be at the begin of an operation, too. None are left where the span begins later.
    #[inline]
    pub fn each_down_to(&mut self, first: usize, mut look: impl FnMut(ActivitySpan)) {
        let Span { start: from, end: to } = self.within;
        let Some(operations) = self.operations.get(first..self.left) else { return };
        for (at, operation) in (first..self.left).zip(operations).rev() {
            let (start, end) = (self.clock.common(operation.start), self.clock.common(operation.end));
            if let Some(next) = self.next.replace(start) {
                let next = next.max(end);
                if next <= from {
                    self.left = 0;
                    return;
                }
                let span = Span::new(end.max(from), next.min(to));
                if span.end > span.start {
                    let region = self.region_of_gap(at, operation.symbol);
                    look(ActivitySpan { event: 2 * at as u32 + 1, span, kind: EventKind::Gap, region });
                }
            }
            if end <= from {
                self.left = 0;
                return;
            }
            let span = Span::new(start.max(from), end.min(to));
            if span.end > span.start {
                let region = Region { name: operation.symbol, after: false };
                look(ActivitySpan { event: 2 * at as u32, span, kind: EventKind::from(operation.kind), region });
            }
        }
        (self.left, self.gap_is_next) = (first, true);
    }

    /// The first operation that begins within the span.
    pub fn first_within(&self) -> usize {
        self.operations.partition_point(|o| self.clock.common(o.start) <= self.within.start)
    }

    /// Leave out the events up to the begin of an operation, which is within the span.
    pub fn continue_before(&mut self, operation: usize) {
        self.next = self.operations.get(operation).map(|o| self.clock.common(o.start));
        (self.left, self.gap_is_next) = (operation, true);
    }

    #[inline]
    fn region_of_gap(&self, at: usize, call: NameId) -> Region {
        let path = self.call_sites.and_then(|sites| sites.get(at)).map_or(NO_PATH, |site| site.after);
        region_of_gap(self.inside, path, call)
    }

    /// The time after an operation, until `next`.
    #[inline]
    fn gap(&self, at: usize, operation: &Operation, next: Timestamp) -> ActivitySpan {
        let start = self.clock.common(operation.end);
        let region = self.region_of_gap(at, operation.symbol);
        ActivitySpan { event: 2 * at as u32 + 1, span: Span::new(start, next.max(start)), kind: EventKind::Gap, region }
    }
}

impl Iterator for Backward<'_> {
    type Item = ActivitySpan;

    #[inline]
    fn next(&mut self) -> Option<ActivitySpan> {
        loop {
            let at = self.left.checked_sub(1)?;
            let operation = self.operations.get(at)?;
            let mut activity = if std::mem::take(&mut self.gap_is_next) {
                let Some(next) = self.next else { continue };
                self.gap(at, operation, next)
            } else {
                let span = Span::new(self.clock.common(operation.start), self.clock.common(operation.end));
                (self.left, self.gap_is_next, self.next) = (at, true, Some(span.start));
                let region = Region { name: operation.symbol, after: false };
                ActivitySpan { event: 2 * at as u32, span, kind: EventKind::from(operation.kind), region }
            };
            if activity.span.end <= self.within.start {
                self.left = 0;
                return None;
            }
            activity.span =
                Span::new(activity.span.start.max(self.within.start), activity.span.end.min(self.within.end));
            if activity.span.end > activity.span.start {
                return Some(activity);
            }
        }
    }
}

/// Activity in a region.
#[derive(Clone, Copy, Debug, Default)]
pub struct RegionSum {
    pub ns: Ns,
    /// The number of activities that were added one by one.
    pub count: u32,
}

/// Sums of time by region. They are allocated once and cleared between queries.
pub struct RegionSums {
    /// By region: twice the name, plus one for the computation after it.
    sums: Vec<RegionSum>,
    /// The regions with time, in the order in which they were added.
    added: Vec<Region>,
}

impl RegionSums {
    /// Sums for the regions of these operations.
    pub fn new(operations: &Operations) -> RegionSums {
        RegionSums { sums: vec![RegionSum::default(); 2 * operations.names.len()], added: Vec::new() }
    }

    /// Set all sums to zero.
    pub fn clear(&mut self) {
        for region in self.added.drain(..) {
            self.sums[position(region)] = RegionSum::default();
        }
    }

    /// Add an activity.
    #[inline]
    pub fn add(&mut self, activity: &ActivitySpan) {
        self.add_time(activity.region, activity.span.len());
        if let Some(sum) = self.sums.get_mut(position(activity.region)) {
            sum.count = sum.count.saturating_add(1);
        }
    }

    /// Add time, which is not zero.
    #[inline]
    pub fn add_time(&mut self, region: Region, ns: Ns) {
        let Some(sum) = self.sums.get_mut(position(region)) else { return };
        if sum.ns == 0 {
            self.added.push(region);
        }
        sum.ns += ns;
    }

    /// The time in a region.
    #[inline]
    pub fn ns(&self, region: Region) -> Ns {
        self.sums.get(position(region)).map_or(0, |sum| sum.ns)
    }

    /// The regions in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = (Region, RegionSum)> {
        self.added.iter().map(|region| (*region, self.sums[position(*region)]))
    }
}

#[inline]
fn position(region: Region) -> usize {
    2 * region.name.index() + usize::from(region.after)
}
