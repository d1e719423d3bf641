//! When data had arrived that a thread receives.
//!
//! In: the calls of a process that wait for descriptors, and its receives, in order. Out: the moment at which the data
//! of a receive had arrived at the latest, as far as the recording shows it, so that the time until the thread ran and
//! came to the receive counts:
//!
//! - the wake-up of the thread by which its last wait in the receive ended;
//! - else, where the call that it made before to wait for some of many descriptors found at least as many ready as the
//!   thread has received from since: for the first of them the wake-up in that call, for the others its exit; its entry
//!   where it did not have to wait;
//! - else the same call of the thread that woke this one since its last receive, if that has not received from all that
//!   it found ready: it handed the connection over;
//! - else the entry of the receive.
//!
//! Where no thread waited, or another one than that at the other end woke it, data may have come before: then its send
//! counts, if the other end is known (`peers`).
//!
//! Cost: O(log segments) for each receive, less in order of time.

use super::peers::Peers;
use super::process_calls::CallMeanings;
use crate::base::time::{Span, Timestamp};
use crate::event::descriptor::Descriptor;
use crate::timeline::reader::{RowCursor, RowReader};
use crate::timeline::{Call, Segment, SegmentKind, ThreadId, Waker};
use foldhash::HashMap;
use smallvec::SmallVec;

/// The moment at which data had arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    pub at: Timestamp,
    /// A thread waited until then.
    pub was_awaited: bool,
}

/// A call that waited for some of many descriptors.
#[derive(Clone, Debug)]
struct Poll {
    span: Span,
    /// How many were ready of which none was received from since.
    left: i64,
    /// From which there was.
    taken: SmallVec<[Descriptor; 4]>,
    /// How its last wait ended, where that was asked for.
    woken: Option<WakeUp>,
}

/// Ready descriptors of one call that are followed, at most.
const READY: i64 = 1_024;

/// What a thread did last.
struct ThreadArrivals<'r> {
    segments: RowCursor<'r, Segment>,
    poll: Option<Poll>,
    /// The exit of its last receive.
    received: Timestamp,
}

/// The arrivals of data at the threads of a process.
pub(super) struct Arrivals<'r> {
    threads: Vec<ThreadArrivals<'r>>,
    positions: HashMap<ThreadId, usize>,
    peers: Peers<'r>,
}

/// How the last wait inside of a call ended.
#[derive(Clone, Copy, Debug)]
enum WakeUp {
    /// By a wake-up at that time, by a thread where that is known.
    At(Timestamp, Option<Waker>),
    /// The thread did not wait.
    None,
    /// It is unknown whether it did.
    Unknown,
}

impl<'r> Arrivals<'r> {
    /// For the threads of a process.
    pub fn new(reader: &'r RowReader<'_>, meanings: &'r CallMeanings, threads: &[ThreadId]) -> Arrivals<'r> {
        let of_thread =
            |id: &ThreadId| ThreadArrivals { segments: reader.segments(*id), poll: None, received: Timestamp::MIN };
        Arrivals {
            threads: threads.iter().map(of_thread).collect(),
            positions: threads.iter().enumerate().map(|(at, id)| (*id, at)).collect(),
            peers: Peers::new(reader, meanings),
        }
    }

    /// A thread has waited for some of many descriptors.
    pub fn polled(&mut self, thread: usize, call: &Call) {
        let left = call.ret.filter(|ready| *ready > 0);
        if let Some(state) = self.threads.get_mut(thread) {
            let left = left.map(|left| left.min(READY));
            state.poll = left.map(|left| Poll { span: call.span, left, taken: SmallVec::new(), woken: None });
        }
    }

    /// The process has sent over a descriptor until then.
    pub fn sent(&mut self, over: Descriptor, until: Timestamp) {
        self.peers.moved(over, until);
    }

    /// The process has closed a descriptor, or all from it on.
    pub fn closed(&mut self, descriptor: Descriptor, and_all_above: bool) {
        self.peers.closed(descriptor, and_all_above);
    }

    /// A thread has tried to receive from a descriptor: the moment at which the data had arrived, if there was some.
    pub fn received(&mut self, thread: usize, call: &Call, from: Descriptor) -> Arrival {
        let (arrival, waker) = self.seen(thread, call, from);
        let has_data = call.ret.is_some_and(|bytes| bytes > 0);
        let until = match waker {
            _ if !arrival.was_awaited => Some(call.span.start),
            // A frozen thread is not woken by data but when it may go on.
            Some(waker) if self.peers.is_by_another(from, waker) => Some(arrival.at),
            _ => None,
        };
        let sent = until.filter(|_| has_data).and_then(|until| self.peers.sent(from, until));
        if let Some(waker) = waker.filter(|_| has_data) {
            self.peers.woken(from, waker);
        }
        self.peers.moved(from, call.span.end);
        Arrival { at: sent.map_or(arrival.at, |sent| sent.min(arrival.at)), ..arrival }
    }

    /// The moment at which the data of a receive had arrived at the latest by what the process did, and who woke the
    /// thread that waited for it alone.
    fn seen(&mut self, thread: usize, call: &Call, from: Descriptor) -> (Arrival, Option<Waker>) {
        let entry = Arrival { at: call.span.start, was_awaited: false };
        let Some(state) = self.threads.get_mut(thread) else { return (entry, None) };
        let before = std::mem::replace(&mut state.received, call.span.end);
        let inside = wake_up(&mut state.segments, call.span);
        let waker_of_poll = state.only_waker();
        let polled = state.take(from);
        match (inside, polled) {
            (WakeUp::At(at, waker), _) => (Arrival { at, was_awaited: true }, waker),
            (WakeUp::Unknown, None) => (Arrival { at: call.span.end, was_awaited: false }, None),
            (_, Some(arrival)) => (arrival, waker_of_poll),
            (WakeUp::None, None) => (self.handed_over(thread, before, call.span.start, from).unwrap_or(entry), None),
        }
    }

    /// The arrival of data at the thread that woke this one in a span.
    fn handed_over(&mut self, thread: usize, since: Timestamp, until: Timestamp, from: Descriptor) -> Option<Arrival> {
        let segments = &mut self.threads.get_mut(thread)?.segments;
        let mut segment = segments.first_after(until.saturating_sub(1))?;
        while !segment.kind.is_wait() {
            segment = segments.previous_row().filter(|segment| segment.span.end > since)?;
        }
        let waker = segment.waker.filter(|_| segment.span.end > since && segment.span.end <= until)?;
        let by = self.threads.get_mut(*self.positions.get(&waker.thread)?)?;
        by.poll.as_ref().filter(|poll| poll.span.end <= waker.at)?;
        by.take(from)
    }
}

impl ThreadArrivals<'_> {
    /// Who ended the last wait for some of many descriptors, if one of them alone was ready.
    fn only_waker(&mut self) -> Option<Waker> {
        let poll = self.poll.as_mut().filter(|poll| poll.left == 1 && poll.taken.is_empty())?;
        match *poll.woken.get_or_insert_with(|| wake_up(&mut self.segments, poll.span)) {
            WakeUp::At(_, waker) => waker,
            WakeUp::None | WakeUp::Unknown => None,
        }
    }

    /// The arrival of data at a descriptor, if that was one of those that the last call found ready.
    fn take(&mut self, from: Descriptor) -> Option<Arrival> {
        let poll = self.poll.as_mut().filter(|poll| poll.left > 0 && !poll.taken.contains(&from))?;
        poll.left -= 1;
        poll.taken.push(from);
        let (span, is_first) = (poll.span, poll.taken.len() == 1);
        let woken = *poll.woken.get_or_insert_with(|| wake_up(&mut self.segments, span));
        Some(match woken {
            WakeUp::At(at, _) if is_first => Arrival { at, was_awaited: true },
            WakeUp::At(..) => Arrival { at: span.end, was_awaited: true },
            WakeUp::None => Arrival { at: span.start, was_awaited: false },
            WakeUp::Unknown => Arrival { at: span.end, was_awaited: false },
        })
    }
}

/// How the last wait of a thread inside of a call ended.
fn wake_up(segments: &mut RowCursor<'_, Segment>, call: Span) -> WakeUp {
    let mut last = segments.first_after(call.end.saturating_sub(1));
    while let Some(segment) = last.filter(|segment| segment.span.end > call.start) {
        match segment.kind {
            SegmentKind::Unknown => return WakeUp::Unknown,
            kind if kind.is_wait() => return WakeUp::At(segment.span.end.min(call.end), segment.waker),
            _ => last = segments.previous_row(),
        }
    }
    WakeUp::None
}
