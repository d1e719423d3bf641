//! What streams did over a time, by region: the events behind delay costs, imbalance and the critical path.
//!
//! In: operations and clocks. Out: pieces of time, each with its region. A region is the operation's name, or the innermost
//! region around the time between two operations. Cost: a search per question, then one step per event.

use crate::analysis::offsets::Clock;
use crate::base::names::NameId;
use crate::base::time::{Ns, Span};
use crate::event::operation::{EventKind, NO_PATH, Operations, Place, Sequence};

/// What was done: by name, the same on all streams.
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
pub struct Piece {
    /// Twice the position of its operation, one more for the time behind that.
    pub event: u32,
    /// When.
    pub span: Span,
    /// What it is.
    pub kind: EventKind,
    /// Where.
    pub region: Region,
    /// Its call path; the outermost where it is known no better.
    pub path: u32,
    /// The program computed; else a library was called.
    pub useful: bool,
}

/// Streams on the common time line.
pub struct Streams<'a> {
    /// What they did.
    pub operations: &'a Operations,
    /// By stream.
    pub clocks: &'a [Clock],
}

impl Streams<'_> {
    /// A time of a stream on the common line.
    pub fn common(&self, stream: u32, local: Ns) -> Ns {
        self.clocks.get(stream as usize).map_or(local, |c| c.common(local))
    }

    /// When an operation began, on the common time line.
    pub fn start(&self, place: Place) -> Ns {
        self.operations.get(place).map_or(0, |o| self.common(place.stream, o.start))
    }

    /// An event of a stream.
    pub fn piece(&self, stream: u32, event: u32) -> Option<Piece> {
        let clock = self.clocks.get(stream as usize).copied().unwrap_or_default();
        self.piece_of(self.operations.sequences.get(stream as usize)?, &clock, event)
    }

    fn piece_of(&self, sequence: &Sequence, clock: &Clock, event: u32) -> Option<Piece> {
        let at = event as usize / 2;
        let operation = sequence.operations.get(at)?;
        let way = sequence.ways.get(at);
        if event.is_multiple_of(2) {
            let kind = EventKind::from(operation.kind);
            let span = Span::new(clock.common(operation.start), clock.common(operation.end));
            let region = Region { name: operation.symbol, after: false };
            let useful = kind == EventKind::Operation && self.operations.is_program(operation.symbol);
            return Some(Piece { event, span, kind, region, path: way.map_or(NO_PATH, |w| w.path), useful });
        }
        let next = sequence.operations.get(at + 1)?;
        let start = clock.common(operation.end);
        let span = Span::new(start, clock.common(next.start).max(start));
        let path = way.map_or(NO_PATH, |w| w.after);
        let kind = EventKind::Gap;
        let region = match self.operations.paths.get(path) {
            Some((above, name)) if above != NO_PATH => Region { name, after: false },
            _ => Region { name: operation.symbol, after: true },
        };
        // Inside a call that waits or communicates nothing is computed, whatever it encloses.
        let useful = region.after || self.operations.is_program(region.name);
        Some(Piece { event, span, kind, region, path, useful })
    }

    /// The events of a stream that lie in a span, latest first, cut to it.
    pub fn back(&self, stream: u32, within: Span) -> impl Iterator<Item = Piece> {
        let sequence = self.operations.sequences.get(stream as usize);
        let clock = self.clocks.get(stream as usize).copied().unwrap_or_default();
        let operations = sequence.map_or(&[][..], |s| &s.operations);
        let first = operations.partition_point(|o| clock.common(o.start) < within.end) as u32;
        let pieces = (0..2 * first).rev().filter_map(move |event| self.piece_of(sequence?, &clock, event));
        let cut = move |mut piece: Piece| {
            piece.span = Span::new(piece.span.start.max(within.start), piece.span.end.min(within.end));
            piece
        };
        pieces.take_while(move |p| p.span.end > within.start).map(cut).filter(|p| p.span.end > p.span.start)
    }
}
