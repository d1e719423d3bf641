//! The length of a run on an ideal network, which delivers every message at once: what POP's serialisation and transfer
//! efficiencies are measured against.
//!
//! In: operations, messages, collectives and clocks. Out: nanoseconds. Each stream repeats its operations in order.
//! Computation, I/O and everything else that is not communication takes the time that was recorded, cut to the window.
//! A call that communicates takes no time of its own: it ends as soon as it has begun and the things that it waits for
//! have happened. A receive needs the begin of the sending call, a synchronous send the begin of the call that posted
//! the receive, a collective the ranks that its kind waits for, a thread its fork, task, lock or accelerator. Buffers
//! are unlimited, so flow control costs nothing.
//!
//! A stream runs until something that it needs has not happened yet; the stream that it needs wakes it. Where
//! dependencies contradict each other (clocks that could not be fitted), all blocked streams drop what they wait for.
//! Cost: linear in operations, messages and members of collectives, with a heap for the streams that wait for one
//! stream; 8 bytes per operation and 12 per member of a collective.

use super::profile::Streams;
use crate::base::ctx::{Cancel, Cancelled};
use crate::base::names::NameId;
use crate::base::time::{Ns, Span};
use crate::event::operation::{CollectiveKind, Message, Operation, OperationPlace, Sequence};
use crate::model::carrier::Carrier;
use crate::model::event_kind::EventKind;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The time from the begin of the window until the last stream is done, on an ideal network.
pub fn ideal_length(streams: &Streams<'_>, window: Span, cancel: &Cancel) -> Result<Ns, Cancelled> {
    let mut replay = Replay::new(streams, window);
    let mut ready: VecDeque<u32> = (0..replay.progress.len() as u32).collect();
    loop {
        while let Some(stream) = ready.pop_front() {
            cancel.check()?;
            replay.run(stream, &mut ready);
        }
        let blocked = |stream: &u32| !replay.progress[*stream as usize].is_done;
        let left: Vec<u32> = (0..replay.progress.len() as u32).filter(blocked).collect();
        if left.is_empty() {
            return Ok(replay.progress.iter().map(|p| p.now).max().unwrap_or(0));
        }
        for stream in &left {
            replay.progress[*stream as usize].drops_dependencies = true;
        }
        ready.extend(left);
    }
}

/// A collective that an operation takes part in.
#[derive(Clone, Copy)]
struct Membership {
    operation: u32,
    collective: u32,
    /// Position among its members.
    member: u32,
}

/// The members of a collective that have come.
#[derive(Clone, Copy, Default)]
struct Arrivals {
    count: usize,
    last: Ns,
}

/// The progress of one stream.
#[derive(Default)]
struct Progress {
    /// Ideal time at which the next operation begins; at the end the time at which the stream is done.
    now: Ns,
    /// The ideal ends of the operations that are done.
    ends: Vec<Ns>,
    /// Ideal end of the next operation, as far as its dependencies are known.
    until: Ns,
    /// Position of the next message that the stream receives.
    message: usize,
    memberships: Vec<Membership>,
    membership: usize,
    /// The next operation has begun and is counted by its collective.
    has_begun: bool,
    drops_dependencies: bool,
    is_done: bool,
    /// Streams that wait until this one has done this many operations.
    waiters: BinaryHeap<Reverse<(usize, u32)>>,
}

/// Something that an operation needs.
enum Need {
    /// It happened at this ideal time.
    Met(Ns),
    /// It happens once a stream has done this many operations.
    Stream { stream: u32, done: usize },
    /// It happens once other members of the collective have come, which wake this one.
    Members,
}

struct Replay<'a> {
    streams: &'a Streams<'a>,
    window: Span,
    /// By name: a call that communicates, of a library.
    communicates: Vec<bool>,
    /// By name: a call that transfers data from or to files.
    is_file: Vec<bool>,
    progress: Vec<Progress>,
    arrivals: Vec<Arrivals>,
}

impl<'a> Replay<'a> {
    fn new(streams: &'a Streams<'a>, window: Span) -> Replay<'a> {
        let operations = streams.operations();
        let starts = |word: &str| -> Vec<bool> {
            let name = |at| operations.names.get(NameId::at(at)).starts_with(word);
            (0..operations.names.len()).map(name).collect()
        };
        let (mpi, is_file) = (starts("MPI_"), starts("MPI_File_"));
        let communicates = mpi.iter().zip(&is_file).map(|(mpi, file)| *mpi && !file).collect();
        let first = |stream: usize| operations.messages.partition_point(|m| (m.to.stream as usize) < stream);
        let progress = |(stream, sequence): (usize, &Sequence)| {
            let ends = Vec::with_capacity(sequence.operations.len());
            Progress { ends, message: first(stream), ..Progress::default() }
        };
        let mut progress: Vec<Progress> = operations.sequences.iter().enumerate().map(progress).collect();
        for (collective, at) in operations.collectives.iter().zip(0_u32..) {
            for (place, member) in collective.members.iter().zip(0_u32..) {
                if let Some(progress) = progress.get_mut(place.stream as usize) {
                    let operation = place.operation;
                    progress.memberships.push(Membership { operation, collective: at, member });
                }
            }
        }
        progress.iter_mut().for_each(|p| p.memberships.sort_by_key(|m| m.operation));
        let arrivals = vec![Arrivals::default(); operations.collectives.len()];
        let mut replay = Replay { streams, window, communicates, is_file, progress, arrivals };
        for stream in 0..replay.progress.len() as u32 {
            replay.progress[stream as usize].now = replay.before_first(stream);
        }
        replay
    }

    fn operations(&self, stream: u32) -> &'a [Operation] {
        self.streams.operations().sequences.get(stream as usize).map_or(&[], |s| &s.operations)
    }

    /// The part of a span that is in the window.
    fn cut(&self, span: Span) -> Ns {
        (span.end.min(self.window.end) - span.start.max(self.window.start)).max(0)
    }

    /// Time before the first operation of a rank: it was not there. A worker comes when it is called.
    fn before_first(&self, stream: u32) -> Ns {
        let is_worker = self.streams.operations().sequences.get(stream as usize).is_some_and(|s| s.worker);
        let first = self.operations(stream).first().filter(|_| !is_worker);
        first.map_or(0, |o| self.cut(Span::new(self.window.start, self.streams.common(stream, o.start))))
    }

    /// The time that an operation takes on an ideal network, its waits apart.
    fn own_time(&self, stream: u32, operation: &Operation) -> Ns {
        let symbol = operation.symbol.index();
        let communicates = self.communicates.get(symbol).copied().unwrap_or(false);
        let is_file = self.is_file.get(symbol).copied().unwrap_or(false);
        if communicates || (EventKind::from(operation.kind).waits() && !is_file) {
            return 0;
        }
        let [start, end] = [operation.start, operation.end].map(|t| self.streams.common(stream, t));
        self.cut(Span::new(start, end))
    }

    /// The time between an operation and the next one: nothing inside of a call that communicates.
    fn gap_after(&self, stream: u32, at: usize) -> Ns {
        let operations = self.operations(stream);
        let (Some(operation), Some(next)) = (operations.get(at), operations.get(at + 1)) else { return 0 };
        let [end, start] = [operation.end, next.start];
        let ns = self.cut(Span::new(self.streams.common(stream, end), self.streams.common(stream, start)));
        if ns == 0 {
            return 0;
        }
        let inside = self.streams.region_after(stream, at).filter(|region| !region.after);
        let communicates = |name: NameId| self.communicates.get(name.index()).copied().unwrap_or(false);
        if inside.is_some_and(|region| communicates(region.name)) { 0 } else { ns }
    }

    /// The ideal begin of an operation whose predecessor is done.
    fn begin(&self, place: OperationPlace) -> Option<Ns> {
        let ends = &self.progress.get(place.stream as usize)?.ends;
        match (place.operation as usize).checked_sub(1) {
            Some(before) => Some(ends.get(before)? + self.gap_after(place.stream, before)),
            None => Some(self.before_first(place.stream)),
        }
    }

    fn need_begin(&self, place: OperationPlace) -> Need {
        let done = place.operation as usize;
        self.begin(place).map_or(Need::Stream { stream: place.stream, done }, Need::Met)
    }

    fn need_end(&self, place: OperationPlace) -> Need {
        let end = self.progress.get(place.stream as usize).and_then(|p| p.ends.get(place.operation as usize));
        end.map_or(Need::Stream { stream: place.stream, done: place.operation as usize + 1 }, |end| Need::Met(*end))
    }

    /// What the receiver of a message needs; `None` where an ideal network has it always.
    fn of_message(&self, message: &Message) -> Option<Need> {
        let from = message.from;
        let operation = self.streams.operations().get(from).filter(|_| from.stream != message.to.stream)?;
        match message.carrier {
            Carrier::FlowControl => None,
            Carrier::Message | Carrier::Rendezvous | Carrier::Post | Carrier::Complete => Some(self.need_begin(from)),
            // These are given at a moment that may be before, in or after the operation.
            _ if message.sent >= operation.end => Some(self.need_end(from)),
            _ => Some(match self.need_begin(from) {
                Need::Met(begin) => {
                    let [sent, start] = [message.sent, operation.start].map(|t| self.streams.common(from.stream, t));
                    let ns =
                        if sent < start { -self.cut(Span::new(sent, start)) } else { self.cut(Span::new(start, sent)) };
                    Need::Met((begin + ns.min(self.own_time(from.stream, operation))).max(0))
                }
                need => need,
            }),
        }
    }

    /// What a member of a collective needs beside its own arrival, which is counted.
    fn of_collective(&self, membership: Membership) -> Option<Need> {
        let collective = self.streams.operations().collectives.get(membership.collective as usize)?;
        let arrivals = self.arrivals.get(membership.collective as usize)?;
        let members = &collective.members;
        let all_but = |missing: usize| {
            if arrivals.count + missing >= members.len() { Need::Met(arrivals.last) } else { Need::Members }
        };
        match collective.exchange {
            CollectiveKind::Barrier | CollectiveKind::All | CollectiveKind::TeamBarrier => Some(all_but(0)),
            CollectiveKind::FromOne(root) if root != Some(membership.member) => {
                Some(self.need_begin(*members.get(root? as usize)?))
            }
            CollectiveKind::ToOne(root) if root == Some(membership.member) => Some(all_but(0)),
            CollectiveKind::FromOne(_) | CollectiveKind::ToOne(_) => None,
            CollectiveKind::Prefix => Some(self.need_end(*members.get(membership.member.checked_sub(1)? as usize)?)),
        }
    }

    /// Count the arrival of a member; the last one wakes the others.
    fn arrive(&mut self, membership: Membership, now: Ns, ready: &mut VecDeque<u32>) {
        let Some(arrivals) = self.arrivals.get_mut(membership.collective as usize) else { return };
        arrivals.count += 1;
        arrivals.last = arrivals.last.max(now);
        let Some(collective) = self.streams.operations().collectives.get(membership.collective as usize) else {
            return;
        };
        if arrivals.count == collective.members.len() {
            let others = collective.members.iter().map(|m| m.stream);
            match collective.exchange {
                exchange if exchange.all_wait() => ready.extend(others),
                CollectiveKind::ToOne(Some(root)) => {
                    ready.extend(collective.members.get(root as usize).map(|m| m.stream));
                }
                _ => {}
            }
        }
    }

    /// Repeat a stream's operations until one needs what has not happened.
    fn run(&mut self, stream: u32, ready: &mut VecDeque<u32>) {
        let at = stream as usize;
        while let Some(operation) = self.operations(stream).get(self.progress[at].ends.len()) {
            if !self.progress[at].has_begun {
                self.begin_next(stream, operation, ready);
            }
            match self.next_end(stream) {
                Need::Met(end) => self.end_next(stream, end),
                Need::Stream { stream: other, done } => {
                    if let Some(other) = self.progress.get_mut(other as usize) {
                        other.waiters.push(Reverse((done, stream)));
                    }
                    break;
                }
                Need::Members => break,
            }
        }
        let done = self.progress[at].ends.len();
        self.progress[at].is_done = done == self.operations(stream).len();
        let waiters = &mut self.progress[at].waiters;
        while waiters.peek().is_some_and(|Reverse((needed, _))| *needed <= done) {
            ready.extend(waiters.pop().map(|Reverse((_, waiter))| waiter));
        }
    }

    fn begin_next(&mut self, stream: u32, operation: &Operation, ready: &mut VecDeque<u32>) {
        let own = self.own_time(stream, operation);
        let progress = &mut self.progress[stream as usize];
        progress.until = progress.now + own;
        progress.has_begun = true;
        let (now, done) = (progress.now, progress.ends.len() as u32);
        let mut next = progress.membership;
        while let Some(membership) = self.progress[stream as usize].memberships.get(next).copied() {
            if membership.operation != done {
                break;
            }
            self.arrive(membership, now, ready);
            next += 1;
        }
    }

    /// The end of the next operation, or the first of the things that it still needs.
    fn next_end(&mut self, stream: u32) -> Need {
        let at = stream as usize;
        let operation = self.progress[at].ends.len() as u32;
        let place = OperationPlace { stream, operation };
        let drops = std::mem::take(&mut self.progress[at].drops_dependencies);
        let messages = &self.streams.operations().messages;
        while let Some(message) = messages.get(self.progress[at].message).filter(|m| m.to <= place) {
            match self.of_message(message).filter(|_| message.to == place) {
                Some(Need::Met(time)) => self.progress[at].until = self.progress[at].until.max(time),
                Some(need) if !drops => return need,
                _ => {}
            }
            self.progress[at].message += 1;
        }
        while let Some(membership) = self.progress[at].memberships.get(self.progress[at].membership).copied() {
            if membership.operation > operation {
                break;
            }
            match self.of_collective(membership).filter(|_| membership.operation == operation) {
                Some(Need::Met(time)) => self.progress[at].until = self.progress[at].until.max(time),
                Some(need) if !drops => return need,
                _ => {}
            }
            self.progress[at].membership += 1;
        }
        Need::Met(self.progress[at].until)
    }

    fn end_next(&mut self, stream: u32, end: Ns) {
        let gap = self.gap_after(stream, self.progress[stream as usize].ends.len());
        let progress = &mut self.progress[stream as usize];
        progress.ends.push(end);
        progress.now = end + gap;
        progress.has_begun = false;
    }
}
