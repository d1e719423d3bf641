//! Activities of streams over a time, by region: the events behind delay costs, imbalance and the critical path.
//!
//! In: operations and clocks. Out: pieces of time, each with its region, and sums by region. A region is the
//! operation's name, or the innermost region around the time between two operations. Cost: a search per question, then
//! one step per event, without a look-up or an allocation.

use crate::analysis::offsets::StreamClock;
use crate::base::names::NameId;
use crate::base::time::{Ns, Span, Timestamp};
use crate::event::call_path::CallSite;
use crate::event::operation::{NO_PATH, Operation, OperationPlace, Operations};
use crate::model::event_kind::EventKind;

/// An activity by name, the same on all streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Region {
    /// Its name.
    pub name: NameId,
    /// It is the computation behind a call of this name, in no region that is known but the outermost.
    pub after: bool,
}

impl Region {
    /// For people.
    pub fn words(self, operations: &Operations) -> String {
        let name = operations.names.get(self.name);
        if self.after { format!("computation after {name}") } else { name.to_owned() }
    }
}

/// A piece of a stream's time, on the common time line.
#[derive(Clone, Copy, Debug)]
pub struct ActivitySpan {
    /// Twice the position of its operation, one more for the time behind that.
    pub event: u32,
    /// When.
    pub span: Span,
    /// The activity.
    pub kind: EventKind,
    /// The stream.
    pub region: Region,
}

/// Streams on the common time line.
pub struct Streams<'a> {
    operations: &'a Operations,
    /// By stream.
    clocks: &'a [StreamClock],
    /// By call path: the region of time that was spent in it; none where the path is outermost.
    inside: Vec<Option<NameId>>,
}

impl<'a> Streams<'a> {
    /// Those of a run. Cost: linear in the call paths.
    pub fn new(operations: &'a Operations, clocks: &'a [StreamClock]) -> Streams<'a> {
        let name = |path: usize| {
            operations.paths.get(path as u32).filter(|(above, _)| *above != NO_PATH).map(|(_, name)| name)
        };
        Streams { operations, clocks, inside: (0..operations.paths.len()).map(name).collect() }
    }

    /// Their activities.
    pub fn operations(&self) -> &'a Operations {
        self.operations
    }

    /// A time of a stream on the common line.
    pub fn common(&self, stream: u32, local: Timestamp) -> Timestamp {
        self.clocks.get(stream as usize).map_or(local, |c| c.common(local))
    }

    /// When an operation began, on the common time line.
    pub fn start(&self, place: OperationPlace) -> Timestamp {
        self.operations.get(place).map_or(Timestamp::ZERO, |o| self.common(place.stream, o.start))
    }

    /// The call path of an event; the outermost where it is known no better.
    pub fn path(&self, stream: u32, event: u32) -> u32 {
        let call_sites = self.operations.sequences.get(stream as usize).map_or(&[][..], |s| &s.call_sites);
        let way = call_sites.get(event as usize / 2);
        way.map_or(NO_PATH, |way| if event.is_multiple_of(2) { way.path } else { way.after })
    }

    /// The program computed; else a library was called. Inside a call that waits or communicates nothing is computed,
    /// whatever it encloses.
    pub fn is_useful(&self, piece: &ActivitySpan) -> bool {
        let is_program = || self.operations.is_program(piece.region.name);
        match piece.kind {
            EventKind::Gap => piece.region.after || is_program(),
            kind => kind == EventKind::Operation && is_program(),
        }
    }

    /// The events of a stream in a span, latest first, cut to it.
    pub fn back(&self, stream: u32, within: Span) -> Backward<'_> {
        let sequence = self.operations.sequences.get(stream as usize);
        let clock = self.clocks.get(stream as usize).copied().unwrap_or_default();
        let operations = sequence.map_or(&[][..], |s| &s.operations);
        let call_sites = sequence.map_or(&[][..], |s| &s.call_sites);
        let left = operations.partition_point(|o| clock.common(o.start) < within.end);
        let next = operations.get(left).map(|o| clock.common(o.start));
        Backward { inside: &self.inside, operations, call_sites, clock, within, left, behind: true, next }
    }
}

/// The events of a stream, latest first.
pub struct Backward<'a> {
    inside: &'a [Option<NameId>],
    operations: &'a [Operation],
    call_sites: &'a [CallSite],
    clock: StreamClock,
    within: Span,
    /// So many operations have not been passed.
    left: usize,
    /// The time behind the last of them has not been passed either.
    behind: bool,
    /// When the operation behind that time began.
    next: Option<Timestamp>,
}

impl Backward<'_> {
    /// The time behind an operation, until `next`.
    #[inline]
    fn gap(&self, at: usize, operation: &Operation, next: Timestamp) -> ActivitySpan {
        let start = self.clock.common(operation.end);
        let path = self.call_sites.get(at).map_or(NO_PATH, |way| way.after);
        let region = match self.inside.get(path as usize) {
            Some(Some(name)) => Region { name: *name, after: false },
            _ => Region { name: operation.symbol, after: true },
        };
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
            let mut piece = if std::mem::take(&mut self.behind) {
                let Some(next) = self.next else { continue };
                self.gap(at, operation, next)
            } else {
                let span = Span::new(self.clock.common(operation.start), self.clock.common(operation.end));
                (self.left, self.behind, self.next) = (at, true, Some(span.start));
                let region = Region { name: operation.symbol, after: false };
                ActivitySpan { event: 2 * at as u32, span, kind: EventKind::from(operation.kind), region }
            };
            if piece.span.end <= self.within.start {
                self.left = 0;
                return None;
            }
            piece.span = Span::new(piece.span.start.max(self.within.start), piece.span.end.min(self.within.end));
            if piece.span.end > piece.span.start {
                return Some(piece);
            }
        }
    }
}

/// Activity in a region.
#[derive(Clone, Copy, Debug, Default)]
pub struct RegionSum {
    /// How long.
    pub ns: Ns,
    /// In how many pieces.
    pub pieces: u32,
    /// The event that was met first.
    pub first: u32,
}

/// Time by region, added up. Made once and used for one question after the other.
pub struct RegionSums {
    /// By region: its name, then what is after it.
    of: Vec<RegionSum>,
    /// Those that have some, in the order in which they were met.
    met: Vec<Region>,
}

impl RegionSums {
    /// For the regions of these operations.
    pub fn new(operations: &Operations) -> RegionSums {
        RegionSums { of: vec![RegionSum::default(); 2 * operations.names.len()], met: Vec::new() }
    }

    /// Forget all.
    pub fn clear(&mut self) {
        for region in self.met.drain(..) {
            self.of[place(region)] = RegionSum::default();
        }
    }

    /// Add a piece.
    #[inline]
    pub fn add(&mut self, piece: &ActivitySpan) {
        let Some(sum) = self.of.get_mut(place(piece.region)) else { return };
        if sum.pieces == 0 {
            sum.first = piece.event;
            self.met.push(piece.region);
        }
        sum.pieces = sum.pieces.saturating_add(1);
        sum.ns += piece.span.len();
    }

    /// The time in a region.
    pub fn ns(&self, region: Region) -> Ns {
        self.of.get(place(region)).map_or(0, |sum| sum.ns)
    }

    /// Regions in the order in which they were met.
    pub fn iter(&self) -> impl Iterator<Item = (Region, RegionSum)> {
        self.met.iter().map(|region| (*region, self.of[place(*region)]))
    }
}

fn place(region: Region) -> usize {
    2 * region.name.index() + usize::from(region.after)
}
