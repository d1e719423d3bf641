//! Operations: what threads and ranks do one after another, and the dependencies between them. The neutral input of
//! pattern mining and propagation: MPI calls, function calls, system calls, user-chosen begin/end pairs all become
//! this.
//!
//! Times of operations are on their stream's own clock, as recorded; putting the streams on one time line is a later
//! step (`analysis/offsets`), because in MPI archives it needs the messages found here.

pub use super::call_path::{CallPathNode, CallPaths, CallSites, NO_PATH};
use crate::base::names::{NameId, Names};
use crate::base::time::{Ns, Span, Timestamp};
use crate::model::carrier::Carrier;
use crate::model::event_kind::EventKind;
use crate::model::thread::ThreadIdentity;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The way in which an operation can be late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperationKind {
    /// By its own work.
    Work,
    /// It was off the CPU for most of its time, and no thread is known to be the cause: a timer, a disk, a device.
    Wait,
    /// It waits for a message (or a wake-up, or a packet).
    Receive,
    /// It waits for the other members of a collective operation.
    Collective,
    /// It waited until its message was received.
    Send,
}

impl From<OperationKind> for EventKind {
    fn from(kind: OperationKind) -> Self {
        match kind {
            OperationKind::Work => EventKind::Operation,
            OperationKind::Wait => EventKind::Wait,
            OperationKind::Receive => EventKind::Receive,
            OperationKind::Collective => EventKind::Collective,
            OperationKind::Send => EventKind::Send,
        }
    }
}

/// One operation. Those of one stream are sorted by start and do not overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its name: what patterns are made of.
    pub symbol: NameId,
    /// The kind of wait that it can be.
    pub kind: OperationKind,
    /// From, to, on the stream's own clock.
    pub start: Timestamp,
    /// See `start`.
    pub end: Timestamp,
}

impl Operation {
    pub fn span(&self) -> Span {
        Span::new(self.start, self.end)
    }
}

/// A metric of one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readings {
    pub name: NameId,
    /// Values are totals since the beginning; else each is a measurement of its own.
    pub counts: bool,
    /// By operation: the last value until its end; `None` before the first.
    pub values: Vec<Option<i64>>,
}

/// The operations of one stream: a thread, or a rank.
#[derive(Clone, Debug, Default)]
pub struct Sequence {
    /// Name of the stream.
    pub stream: String,
    /// The label shown, if it is not the name: `rank 2`, `rank 2 thread 1`.
    pub label: String,
    /// MPI rank of its process, where it has one.
    pub rank: Option<u32>,
    /// Position of its process; streams of one process have one clock.
    pub process: Option<u32>,
    /// A worker of a team, which another thread of its process leads: it has no iterations of its own.
    pub worker: bool,
    /// When the tracer wrote out its buffer, which is not the program's work.
    pub flushes: Vec<Span>,
    /// Readings of metrics.
    pub readings: Vec<Readings>,
    /// Parameters, in order of their operations.
    pub parameters: Vec<NamedParameter>,
    /// By operation, where call paths are known for each: where it was called.
    pub call_sites: CallSites,
    /// The thread, where it is one of a kernel recording.
    pub thread: Option<ThreadIdentity>,
    /// In order.
    pub operations: Vec<Operation>,
    /// The innermost region over time, where that was asked for: from the first record of the stream to its last.
    pub regions: Vec<RegionChange>,
    /// Recorded call stacks; sorted, disjoint.
    pub stacks: Vec<StackSpan>,
}

/// From a moment on, on the stream's own clock, another region is the innermost one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionChange {
    pub time: Timestamp,
    /// Until the next change; `None` outside all regions.
    pub region: Option<NameId>,
}

/// A parameter of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedParameter {
    /// Position of the operation that follows its record.
    pub operation: u32,
    /// Its name and value: `name=value`.
    pub name: NameId,
}

/// A time over which one call stack was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackSpan {
    /// The time, on the stream's own clock.
    pub span: Span,
    /// Position of the stack in [`Operations::stacks`].
    pub stack: u32,
}

impl Sequence {
    /// The label shown.
    pub fn label(&self) -> &str {
        if self.label.is_empty() { &self.stream } else { &self.label }
    }
}

/// An operation of a stream, by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationPlace {
    /// Position of the sequence.
    pub stream: u32,
    /// Position of the operation in it.
    pub operation: u32,
}

/// Something that one operation sent and that another received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The means by which it travelled.
    pub carrier: Carrier,
    /// The sending operation.
    pub from: OperationPlace,
    /// The receiving one: it cannot end before this was sent.
    pub to: OperationPlace,
    /// When, on the sender's clock.
    pub sent: Timestamp,
    /// When it was there, on the receiver's clock.
    pub received: Timestamp,
}

/// The completion of a send: the operation that the sender could leave then, and the one that posted the receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendCompletion {
    /// The sending operation.
    pub from: OperationPlace,
    /// The operation of the same stream that the sender left when the send was done: itself, or a wait for it.
    pub done: u32,
    /// The operation that posted the receive.
    pub posted: OperationPlace,
    /// Size of the message.
    pub bytes: u32,
}

impl SendCompletion {
    /// The operation that the sender left when the send was done.
    pub fn left(&self) -> OperationPlace {
        OperationPlace { operation: self.done, ..self.from }
    }
}

/// Which members of a collective operation wait for which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CollectiveKind {
    /// No data are passed: no member leaves before all have come.
    Barrier,
    /// A barrier of the threads of a team.
    TeamBarrier,
    /// Each member gets data from each: no member leaves before all have come.
    All,
    /// The member at this position sends data to all others.
    FromOne(Option<u32>),
    /// The member at this position receives data from all others.
    ToOne(Option<u32>),
    /// Each receives data from those before it.
    Prefix,
}

impl CollectiveKind {
    /// No member leaves before all have come (a barrier; not a broadcast).
    pub fn all_wait(self) -> bool {
        matches!(self, CollectiveKind::Barrier | CollectiveKind::TeamBarrier | CollectiveKind::All)
    }

    /// The carrier of a delay from member to member.
    pub fn carrier(self) -> Carrier {
        if self == CollectiveKind::TeamBarrier { Carrier::Barrier } else { Carrier::Collective }
    }
}

/// Operations that belong together: one collective operation over all its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectiveInstance {
    /// The kind of operation.
    pub exchange: CollectiveKind,
    /// One operation per member, by stream.
    pub members: Vec<OperationPlace>,
}

/// Everything that mining and propagation need to know.
#[derive(Clone, Debug, Default)]
pub struct Operations {
    /// Names of operations.
    pub names: Names,
    /// All streams are on one time line already; else it is fitted from messages and collective operations.
    pub one_clock: bool,
    /// One per stream.
    pub sequences: Vec<Sequence>,
    /// Sorted by receiving place, then by time of arrival.
    pub messages: Vec<Message>,
    /// In order of their first members.
    pub collectives: Vec<CollectiveInstance>,
    /// Of messages whose sender may have had to wait; empty once it is known which had to.
    pub send_completions: Vec<SendCompletion>,
    /// Functions of each distinct call stack, outermost first.
    pub stacks: Vec<Vec<NameId>>,
    /// Call paths of operations, where they are known for each.
    pub paths: CallPaths,
    /// By name: it is the program's own work and no library's.
    pub program: Vec<bool>,
    /// By name: it asks whether something has happened, and is asked again when it has not.
    pub polls: Vec<bool>,
}

impl Operations {
    /// The label of a stream.
    pub fn label(&self, stream: u32) -> &str {
        self.sequences.get(stream as usize).map_or("", Sequence::label)
    }

    /// The kind of an event of a stream: event `2i` is operation `i`, event `2i + 1` the gap after it.
    pub fn kind_of(&self, stream: u32, event: u32) -> EventKind {
        match event % 2 {
            0 => self
                .get(OperationPlace { stream, operation: event / 2 })
                .map_or(EventKind::Operation, |o| o.kind.into()),
            _ => EventKind::Gap,
        }
    }

    /// It is the program's own work, as far as the recording shows.
    pub fn is_program(&self, symbol: NameId) -> bool {
        self.program.get(symbol.index()).copied().unwrap_or(false)
    }

    /// It asks whether something has happened, and is asked again when it has not.
    pub fn is_poll(&self, symbol: NameId) -> bool {
        self.polls.get(symbol.index()).copied().unwrap_or(false)
    }

    /// The call path of an event of a stream: of an operation the one around it, of a gap the one in which it was
    /// spent.
    pub fn around(&self, stream: u32, event: u32) -> u32 {
        let site = self.sequences.get(stream as usize).and_then(|s| s.call_sites.get(event as usize / 2));
        let Some(site) = site else { return NO_PATH };
        if event.is_multiple_of(2) { self.paths.parent(site.path) } else { site.after }
    }

    /// The function around an event of a stream: by its call path, else by the stacks recorded over a span of the
    /// stream's own clock.
    pub fn function_of(&self, stream: u32, event: u32, span: Span) -> Option<NameId> {
        let by_path = self.paths.get(self.around(stream, event)).map(|node| node.name);
        by_path.or_else(|| self.function(stream, span))
    }

    /// The deepest function in which a stream spent four fifths of a span, of the time whose stack is known; else half.
    /// Times are the stream's own.
    pub fn function(&self, stream: u32, span: Span) -> Option<NameId> {
        let all = &self.sequences.get(stream as usize)?.stacks;
        let first = all.partition_point(|s| s.span.end <= span.start);
        let within = all.iter().skip(first).take_while(|s| s.span.start < span.end);
        let mut open: Vec<(Ns, &[NameId])> = within
            .filter_map(|s| {
                let functions = self.stacks.get(s.stack as usize).filter(|f| !f.is_empty())?;
                Some((s.span.end.min(span.end) - s.span.start.max(span.start), functions.as_slice()))
            })
            .collect();
        let known: Ns = open.iter().map(|(ns, _)| ns).sum();
        let (mut most, mut half) = (None, None);
        loop {
            let mut by_function: BTreeMap<NameId, Ns> = BTreeMap::new();
            for (ns, functions) in &open {
                if let Some(function) = functions.first() {
                    *by_function.entry(*function).or_default() += ns;
                }
            }
            let heaviest = by_function.into_iter().max_by_key(|(function, ns)| (*ns, Reverse(*function)));
            let Some((function, ns)) = heaviest.filter(|(_, ns)| ns * 2 >= known) else { return most.or(half) };
            half = Some(function);
            if ns * 5 >= known * 4 {
                most = half;
            }
            open.retain_mut(|(_, functions)| match functions.split_first() {
                Some((first, below)) if *first == function => {
                    *functions = below;
                    true
                }
                _ => false,
            });
        }
    }

    /// An operation.
    pub fn get(&self, place: OperationPlace) -> Option<&Operation> {
        self.sequences.get(place.stream as usize)?.operations.get(place.operation as usize)
    }

    /// An operation, to be changed.
    pub fn get_mut(&mut self, place: OperationPlace) -> Option<&mut Operation> {
        self.sequences.get_mut(place.stream as usize)?.operations.get_mut(place.operation as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_is_the_deepest_that_covers_the_span() {
        let mut operations = Operations::default();
        let [main, serve, flush, read] = ["main", "serve", "flush", "read"].map(|n| operations.names.intern(n));
        operations.stacks = vec![vec![main, serve, flush], vec![main, serve, read], vec![]];
        let span = |from, to| Span::new(Timestamp::new(from), Timestamp::new(to));
        let stack_span = |from, to, stack| StackSpan { span: span(from, to), stack };
        let stacks =
            vec![stack_span(0, 80, 0), stack_span(80, 100, 1), stack_span(100, 200, 2), stack_span(200, 210, 1)];
        operations.sequences = vec![Sequence { stacks, ..Sequence::default() }];
        let mut rooted_elsewhere = operations.clone();
        rooted_elsewhere.stacks[1] = vec![read];
        let function = |from, to| operations.function(0, span(from, to));
        assert_eq!(function(0, 100), Some(flush), "80 of 100");
        assert_eq!(function(0, 200), Some(flush), "unknown stacks count for nothing");
        assert_eq!(function(40, 100), Some(serve), "40 of 60 are not enough for flush");
        assert_eq!(function(90, 205), Some(read));
        assert_eq!((function(120, 180), function(300, 400)), (None, None));
        let function = rooted_elsewhere.function(0, span(40, 100));
        assert_eq!(function, Some(flush), "a function that covers half, where none covers four fifths");
    }
}
