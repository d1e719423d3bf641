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
//! the call is the transfer. Without bounds on the clocks no call counts as held. Cost: two passes over the messages, a
//! search per long send, and sorting the added messages.

use crate::analysis::offsets::StreamClock;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::names::NameId;
use crate::base::parallel::in_order;
use crate::base::time::{Ns, Span};
use crate::event::operation::{Message, Operation, OperationKind, OperationPlace, Operations, SendCompletion};
use crate::model::carrier::Carrier;
use foldhash::HashMap;

/// When a send was in its call and when its receive was posted, on the common time line.
struct SendTiming {
    /// The call that sent.
    symbol: NameId,
    /// The call that was left when the send was done.
    call: Span,
    posted: Ns,
    /// How far the two clocks may be off.
    error: Ns,
}

fn see(operations: &Operations, clocks: &[StreamClock], completion: &SendCompletion) -> Option<SendTiming> {
    let (mine, theirs) = (clocks.get(completion.from.stream as usize)?, clocks.get(completion.posted.stream as usize)?);
    let (call, posted): (&Operation, &Operation) =
        (operations.get(completion.left())?, operations.get(completion.posted)?);
    Some(SendTiming {
        symbol: operations.get(completion.from)?.symbol,
        call: Span::new(mine.common(call.start), mine.common(call.end)),
        posted: theirs.common(posted.start),
        error: mine.error?.saturating_add(theirs.error?),
    })
}

/// Shorter sends are not asked whether flow control held them.
const SHORTEST: Ns = 20_000;
/// A hold is looked for so many of the receiver's calls back.
const CALLS: usize = 64;
/// A send that was left before its receive was posted by less than this may have been held: clocks are read one after
/// another.
const READING: Ns = 10_000;

/// By name: a call into the library that carries messages.
fn library(operations: &Operations) -> Vec<bool> {
    (0..operations.names.len()).map(|i| operations.names.get(NameId::at(i)).starts_with("MPI_")).collect()
}

/// The call by which a stream came back to the library before `last`, if it had been outside for most of `call`.
fn next_call(
    operations: &Operations,
    clocks: &[StreamClock],
    library: &[bool],
    stream: u32,
    call: Span,
    last: Ns,
) -> Option<OperationPlace> {
    let all = &operations.sequences.get(stream as usize)?.operations;
    let clock = clocks.get(stream as usize)?;
    let calls = |o: &Operation| library.get(o.symbol.index()).copied().unwrap_or(false);
    let end = all.partition_point(|o| clock.common(o.start) <= last);
    let long = |back: Ns, before: Ns| (back - before.max(call.start)).saturating_mul(2) >= call.len();
    let place = |at: usize| OperationPlace { stream, operation: at as u32 };
    // The call before which it may have been outside, and when that began.
    let mut next: Option<(usize, Ns)> = None;
    let mut looked_at = 0;
    for (at, operation) in all.get(..end)?.iter().enumerate().rev().filter(|(_, o)| calls(o)) {
        if let Some((later, back)) = next {
            let before = clock.common(operation.end);
            if long(back, before) {
                return Some(place(later));
            }
            // Calls that follow each other at once end the same hold.
            looked_at += 1;
            if before <= call.start || looked_at == CALLS {
                return None;
            }
        }
        next = Some((at, clock.common(operation.start)));
    }
    next.filter(|(_, back)| long(*back, call.start)).map(|(at, _)| place(at))
}

/// Add what held sends. The handovers are used up.
pub fn find(operations: &mut Operations, clocks: &[StreamClock], ctx: &Ctx) -> Result<(), Cancelled> {
    let send_completions = std::mem::take(&mut operations.send_completions);
    let pieces: Vec<&[SendCompletion]> = send_completions.chunks(PIECE).collect();
    let seen = |h: &&SendCompletion| see(operations, clocks, h);
    let mut eager: HashMap<NameId, u32> = HashMap::default();
    let largest_of = |i: usize| {
        let mut eager: HashMap<NameId, u32> = HashMap::default();
        for completion in pieces[i] {
            if let Some(s) = seen(&completion).filter(|s| s.call.end.saturating_add(s.error + READING) < s.posted) {
                let largest = eager.entry(s.symbol).or_default();
                *largest = completion.bytes.max(*largest);
            }
        }
        eager
    };
    in_order(ctx, pieces.len(), largest_of, |_, found| {
        for (symbol, bytes) in found {
            let largest = eager.entry(symbol).or_default();
            *largest = bytes.max(*largest);
        }
    })?;
    let library = library(operations);
    // The call of the receiver that let a held send go.
    let release = |h: &SendCompletion| -> Option<(Carrier, OperationPlace)> {
        let s = seen(&h).filter(|_| h.from.stream != h.posted.stream)?;
        let large = eager.get(&s.symbol).is_none_or(|largest| h.bytes > *largest);
        let last = s.call.end.saturating_add(s.error);
        if large && (s.posted - s.call.start).saturating_mul(2) >= s.call.len() && s.posted <= last {
            return Some((Carrier::Rendezvous, h.posted));
        }
        let long = s.call.len() >= SHORTEST.max(s.error.saturating_mul(4));
        let call = long.then(|| next_call(operations, clocks, &library, h.posted.stream, s.call, last)).flatten()?;
        Some((Carrier::FlowControl, call))
    };
    let back = |h: &SendCompletion| {
        let (carrier, from) = release(h)?;
        let (released, call) = (operations.get(from)?, operations.get(h.left())?);
        Some(Message { carrier, from, to: h.left(), sent: released.start, received: call.end })
    };
    let mut held: Vec<Message> = Vec::new();
    in_order(
        ctx,
        pieces.len(),
        |i| pieces[i].iter().filter_map(back).collect::<Vec<_>>(),
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

/// Put some messages between others, which are in order.
fn merge(all: &mut Vec<Message>, mut more: Vec<Message>) {
    let key = |m: &Message| (m.to, m.received, m.from, m.carrier, m.sent);
    if more.is_empty() {
        return;
    }
    more.sort_unstable_by_key(key);
    let is_in_order = all.is_sorted_by_key(key);
    let mut left = all.len();
    all.extend(&more);
    if !is_in_order {
        return all.sort_unstable_by_key(key);
    }
    // From the back: each goes after the last that precedes it.
    for (missing, message) in more.iter().enumerate().rev() {
        let from = all[..left].partition_point(|m| key(m) <= key(message));
        all.copy_within(from..left, from + missing + 1);
        all[from + missing] = *message;
        left = from;
    }
}

/// Handovers looked at in one go.
const PIECE: usize = 1 << 15;
