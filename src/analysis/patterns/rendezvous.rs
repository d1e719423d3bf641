//! Sends that had to wait until their receiver was there.
//!
//! A small message is copied and its sender goes on (*eager*); a large one is handed over once its receive is posted
//! (*rendezvous*), and until then the sender stays in its call, or in the one that completes the send. Archives do not tell
//! which it was, but times do: a send that was left before its receive was posted was eager, and so are those by the same call
//! that are no larger. Of the others the receiver is asked what it did until it posted the receive.
//!
//! In: for each message the call that its sender left and the call that posted its receive; clocks. Out: a message back
//! ([`Via::Rendezvous`]) from the posting call to each call that was held, which waits ([`Kind::Send`]). Held is a call whose receive
//! was posted in its second half: before, most of it is the transfer. Where clocks are not bounded nothing is
//! held. Cost: two passes over the messages, and sorting those that are added.

use crate::analysis::offsets::Clock;
use crate::base::names::NameId;
use crate::base::time::{Ns, Span};
use crate::event::operation::{Handover, Kind, Message, Operation, Operations, Via};
use foldhash::HashMap;

/// When a send was in its call and when its receive was posted, on the common time line.
struct Seen {
    /// The call that sent.
    symbol: NameId,
    /// The call that was left when the send was done.
    call: Span,
    posted: Ns,
    /// How far the two clocks may be off.
    error: Ns,
}

fn see(operations: &Operations, clocks: &[Clock], handover: &Handover) -> Option<Seen> {
    let (mine, theirs) = (clocks.get(handover.from.stream as usize)?, clocks.get(handover.posted.stream as usize)?);
    let (call, posted): (&Operation, &Operation) = (operations.get(handover.left())?, operations.get(handover.posted)?);
    Some(Seen {
        symbol: operations.get(handover.from)?.symbol,
        call: Span::new(mine.common(call.start), mine.common(call.end)),
        posted: theirs.common(posted.start),
        error: mine.error?.saturating_add(theirs.error?),
    })
}

/// Add what held sends. The handovers are used up.
pub fn find(operations: &mut Operations, clocks: &[Clock]) {
    let handovers = std::mem::take(&mut operations.handovers);
    let seen = |h: &&Handover| see(operations, clocks, h);
    let mut eager: HashMap<NameId, u32> = HashMap::default();
    for handover in &handovers {
        if let Some(s) = seen(&handover).filter(|s| s.call.end.saturating_add(s.error) < s.posted) {
            let largest = eager.entry(s.symbol).or_default();
            *largest = handover.bytes.max(*largest);
        }
    }
    let is_held = |h: &&Handover| {
        h.from.stream != h.posted.stream
            && seen(h).is_some_and(|s| {
                let large = eager.get(&s.symbol).is_none_or(|largest| h.bytes > *largest);
                let last = s.call.end.saturating_add(s.error);
                large && (s.posted - s.call.start).saturating_mul(2) >= s.call.len() && s.posted <= last
            })
    };
    let back = |h: &Handover| {
        let (posted, call) = (operations.get(h.posted)?, operations.get(h.left())?);
        Some(Message { via: Via::Rendezvous, from: h.posted, to: h.left(), sent: posted.start, received: call.end })
    };
    let held: Vec<Message> = handovers.iter().filter(is_held).filter_map(back).collect();
    for message in &held {
        if let Some(call) = operations.get_mut(message.to).filter(|call| call.kind == Kind::Work) {
            call.kind = Kind::Send;
        }
    }
    operations.messages.extend(held);
    operations.messages.sort_by_key(|m| (m.to, m.received, m.from));
}
