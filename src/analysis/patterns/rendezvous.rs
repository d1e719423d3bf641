//! Sends that had to wait until their receiver was ready.
//!
//! A small message is copied and its sender continues (*eager*); a large one is transferred once its receive is posted
//! (*rendezvous*), and until then the sender stays in its call, or in the call that completes the send. Archives do not
//! record the protocol, but times show it: a send that returned before its receive was posted was eager, and so are
//! those by the same call that are no larger. For the others the cause is the receiver's activity until it posted the
//! receive.
//!
//! Small messages wait too once their receiver has no buffer left for them (*flow control*): a send that ends with the
//! receiver's next call into the library, after the receiver had made none for most of the send, was held until that
//! call, whatever protocol earlier sends show.
//!
//! In: for each message the call that its sender left and the call that posted its receive; clocks. Out: a message back
//! ([`Carrier::Rendezvous`], [`Carrier::FlowControl`]) from the posting call to each held call, which thus waits
//! ([`OperationKind::Send`]). A call counts as held if its receive was posted in its second half: if earlier, most of
//! the call is the transfer. Without bounds on the clocks no call counts as held. Cost: a pass over the messages, a
//! second over those that may have been held, a search per long send, and sorting the added messages.

use crate::analysis::offsets::StreamClock;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::names::NameId;
use crate::base::parallel::in_order;
use crate::base::search::{insert_sorted, partition_point_near};
use crate::base::time::{Ns, Span, Timestamp};
use crate::event::operation::{Message, Operation, OperationKind, OperationPlace, Operations, SendCompletion};
use crate::model::carrier::Carrier;
use foldhash::HashMap;

/// The times of a send's call and of the posting of its receive, on the common time line.
struct SendTiming {
    /// The call that sent.
    symbol: NameId,
    /// The call that was left when the send was done.
    call: Span,
    posted: Timestamp,
    /// The largest error of the two clocks together.
    error: Ns,
}

impl SendTiming {
    /// The latest time at which the call may have ended.
    fn last(&self) -> Timestamp {
        self.call.end.saturating_add(self.error)
    }

    /// The receive was posted in the second half of the call.
    fn is_posted_late(&self) -> bool {
        (self.posted - self.call.start).saturating_mul(2) >= self.call.len() && self.posted <= self.last()
    }

    /// The call was long enough to be held by flow control.
    fn is_long(&self) -> bool {
        self.call.len() >= SHORTEST.max(self.error.saturating_mul(4))
    }
}

fn timing(operations: &Operations, clocks: &[StreamClock], completion: &SendCompletion) -> Option<SendTiming> {
    let (own, other) = (clocks.get(completion.from.stream as usize)?, clocks.get(completion.posted.stream as usize)?);
    let (call, posted): (&Operation, &Operation) =
        (operations.get(completion.left())?, operations.get(completion.posted)?);
    Some(SendTiming {
        symbol: operations.get(completion.from)?.symbol,
        call: Span::new(own.common(call.start), own.common(call.end)),
        posted: other.common(posted.start),
        error: own.error?.saturating_add(other.error?),
    })
}

/// Shorter sends are not tested for flow control.
const SHORTEST: Ns = 20_000;
/// The number of the receiver's earlier calls that are searched for the end of a hold.
const CALLS: usize = 64;
/// A send that was left before its receive was posted by less than this may have been held: clocks are read one after
/// another.
const READING: Ns = 10_000;

/// By name: true for a call into the message-passing library.
fn library_calls(operations: &Operations) -> Vec<bool> {
    (0..operations.names.len()).map(|i| operations.names.get(NameId::at(i)).starts_with("MPI_")).collect()
}

/// The call with which a stream entered the library again before a send ended at the latest, if it had been outside for
/// most of the send's call. `near`: a call of the stream near that one.
fn next_call(
    operations: &Operations,
    clocks: &[StreamClock],
    library: &[bool],
    near: OperationPlace,
    send: &SendTiming,
) -> Option<OperationPlace> {
    let (stream, call, last) = (near.stream, send.call, send.last());
    let all = &operations.sequences.get(stream as usize)?.operations;
    let clock = clocks.get(stream as usize)?;
    let calls = |o: &Operation| library.get(o.symbol.index()).copied().unwrap_or(false);
    let end = partition_point_near(all, near.operation as usize, |o| clock.common(o.start) <= last);
    let long = |back: Timestamp, before: Timestamp| (back - before.max(call.start)).saturating_mul(2) >= call.len();
    let place = |at: usize| OperationPlace { stream, operation: at as u32 };
    // The call before which the stream may have been outside, with its begin.
    let mut next: Option<(usize, Timestamp)> = None;
    let mut looked_at = 0;
    for (at, operation) in all.get(..end)?.iter().enumerate().rev().filter(|(_, o)| calls(o)) {
        if let Some((later, back)) = next {
            let before = clock.common(operation.end);
            if long(back, before) {
                return Some(place(later));
            }
            // Calls that follow each other immediately end the same hold.
            looked_at += 1;
            if before <= call.start || looked_at == CALLS {
                return None;
            }
        }
        next = Some((at, clock.common(operation.start)));
    }
    next.filter(|(_, back)| long(*back, call.start)).map(|(at, _)| place(at))
}

/// Add a message for each held send. The send completions are consumed.
pub fn find(operations: &mut Operations, clocks: &[StreamClock], ctx: &Ctx) -> Result<(), Cancelled> {
    let send_completions = std::mem::take(&mut operations.send_completions);
    let chunks: Vec<&[SendCompletion]> = send_completions.chunks(CHUNK).collect();
    let timing_of = |h: &SendCompletion| timing(operations, clocks, h);
    let mut eager: HashMap<NameId, u32> = HashMap::default();
    // Positions of the sends that may have been held.
    let mut candidates: Vec<u32> = Vec::new();
    let classify = |i: usize| {
        let mut eager: HashMap<NameId, u32> = HashMap::default();
        let mut candidates = Vec::new();
        for (completion, at) in chunks[i].iter().zip((i * CHUNK) as u32..) {
            let Some(s) = timing_of(completion) else { continue };
            if s.call.end.saturating_add(s.error + READING) < s.posted {
                let largest = eager.entry(s.symbol).or_default();
                *largest = completion.bytes.max(*largest);
            }
            if s.is_posted_late() || s.is_long() {
                candidates.push(at);
            }
        }
        (eager, candidates)
    };
    in_order(ctx, chunks.len(), classify, |_, (found, held)| {
        for (symbol, bytes) in found {
            let largest = eager.entry(symbol).or_default();
            *largest = bytes.max(*largest);
        }
        candidates.extend(held);
    })?;
    let chunks: Vec<&[u32]> = candidates.chunks(CHUNK).collect();
    let library = library_calls(operations);
    // The call of the receiver that released a held send.
    let release = |h: &SendCompletion| -> Option<(Carrier, OperationPlace)> {
        let s = timing_of(h).filter(|_| h.from.stream != h.posted.stream)?;
        if s.is_posted_late() && eager.get(&s.symbol).is_none_or(|largest| h.bytes > *largest) {
            return Some((Carrier::Rendezvous, h.posted));
        }
        let call = s.is_long().then(|| next_call(operations, clocks, &library, h.posted, &s)).flatten()?;
        Some((Carrier::FlowControl, call))
    };
    let back = |at: &u32| {
        let h = send_completions.get(*at as usize)?;
        let (carrier, from) = release(h)?;
        let (released, call) = (operations.get(from)?, operations.get(h.left())?);
        Some(Message { carrier, from, to: h.left(), sent: released.start, received: call.end })
    };
    let mut held: Vec<Message> = Vec::new();
    in_order(
        ctx,
        chunks.len(),
        |i| chunks[i].iter().filter_map(back).collect::<Vec<_>>(),
        |_, found| held.extend(found),
    )?;
    for message in &held {
        if let Some(call) = operations.get_mut(message.to).filter(|call| call.kind == OperationKind::Work) {
            call.kind = OperationKind::Send;
        }
    }
    merge(&mut operations.messages, held);
    Ok(())
}

/// Insert messages into others.
fn merge(all: &mut Vec<Message>, mut more: Vec<Message>) {
    let key = |m: &Message| (m.to, m.received, m.from, m.carrier, m.sent);
    if more.is_empty() {
        return;
    }
    more.sort_unstable_by_key(key);
    if all.is_sorted_by_key(key) {
        insert_sorted(all, &more, key);
    } else {
        all.extend(more);
        all.sort_unstable_by_key(key);
    }
}

/// Send completions that a worker takes at once.
const CHUNK: usize = 1 << 15;
