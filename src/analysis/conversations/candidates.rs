//! The requests and calls of all processes, as tasks for a user who named none.
//!
//! In: a timeline. Out: for each name of processes and side the spans of its exchanges. Where nothing shows which
//! side asks, the one whose exchanges are much shorter than the time between them is proposed: most processes rest.
//! Cost: linear in the calls that name descriptors.

use super::exchanges::{ExchangeLog, Kept};
use super::sockets::EndedConversations;
use super::{Certainty, Finder, certainty, family};
use crate::analysis::derived::tracers;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::names::NameId;
use crate::base::span_list::{SpanList, SpanRoom};
use crate::base::statistics::nearest_rank_of;
use crate::base::time::{Ns, Timestamp};
use crate::event::derived::{ConversationSide, Conversations};
use crate::timeline::Timeline;
use std::collections::BTreeMap;

/// The median of a side's exchanges is shorter than that of the times between them by this factor where it is proposed.
const SHORTER: Ns = 3;

/// Exchanges of both sides of conversations: as a server, as a client.
type BothSides = [SpanList; 2];

/// The exchanges of each task, without those of tracers.
pub fn candidates(
    timeline: &Timeline,
    room: &SpanRoom,
    ctx: &Ctx,
) -> Result<BTreeMap<Conversations, SpanList>, Cancelled> {
    let left_out = tracers(timeline);
    let mut finder = Finder::new(timeline, &ctx.progress);
    let mut all = finder.find_all(|_| Some(Kept::Spans(room)), ctx)?;
    let none = || [SpanList::new(room), SpanList::new(room)];
    let name_of = |at: usize| finder.processes.name(timeline, at, Timestamp::MAX);
    let mut known: BTreeMap<NameId, BothSides> = BTreeMap::new();
    let mut unknown: BTreeMap<NameId, BothSides> = BTreeMap::new();
    for at in 0..all.len() {
        let first = finder.processes.0[at].threads.first().copied();
        let Some(name) = name_of(at).filter(|_| first.is_some_and(|id| !left_out.contains(&id))) else { continue };
        let (accepts, connects) = family(&finder.processes, &all, |other| name_of(other) == Some(name), at);
        let Some(of) = all.get_mut(at).and_then(Option::as_mut) else { continue };
        for (known_side, EndedConversations { serves, calls }) in std::mem::take(&mut of.conversations) {
            let exchanges = [serves.log, calls.log];
            for ((side, exchanges), number) in ConversationSide::ALL.into_iter().zip(exchanges).zip(0..) {
                let into = match certainty(known_side, side, accepts, connects) {
                    Some(Certainty::Known) => &mut known,
                    Some(Certainty::Unknown) => &mut unknown,
                    Some(Certainty::Against) | None => continue,
                };
                let spans = into.entry(name).or_insert_with(none).get_mut(number);
                if let (Some(spans), ExchangeLog::Spans(more)) = (spans, exchanges) {
                    spans.append(more);
                }
            }
        }
    }
    for (name, spans) in unknown {
        let sides = known.entry(name).or_insert_with(none);
        let likely = likely(&spans);
        for ((side, spans), is_likely) in sides.iter_mut().zip(spans).zip(likely) {
            if is_likely && side.is_empty() {
                *side = spans;
            }
        }
    }
    let tasks = known.into_iter().flat_map(|(name, sides)| {
        let process = timeline.names().get(name).to_owned();
        ConversationSide::ALL.into_iter().zip(sides).map(move |(side, spans)| {
            // A server that gets no CPU is slow, too.
            let from_arrival = side == ConversationSide::Serves;
            (Conversations { side, process: process.clone(), from_arrival }, spans)
        })
    });
    Ok(tasks.filter(|(_, spans)| !spans.is_empty()).collect())
}

/// Which of two sides is likely: what is an exchange on one is the time between two on the other.
fn likely(sides: &BothSides) -> [bool; 2] {
    let [serves, calls] = sides.each_ref().map(|spans| {
        let [median] = spans.lengths_at([nearest_rank_of(spans.len(), 50.0)]);
        median
    });
    [serves.saturating_mul(SHORTER) <= calls, calls.saturating_mul(SHORTER) <= serves]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::time::Span;

    #[test]
    fn likely_is_the_side_that_mostly_rests() {
        let room = SpanRoom::of(&Ctx::new(1));
        let spans = |all: &[Ns]| {
            let mut spans = SpanList::new(&room);
            all.iter().for_each(|ns| spans.push(Span::of_ns(1, 1 + ns)));
            spans
        };
        assert_eq!(likely(&[spans(&[1, 2, 90]), spans(&[6, 7, 1])]), [true, false]);
        assert_eq!(likely(&[spans(&[50, 60]), spans(&[2, 20])]), [false, true]);
        assert_eq!(likely(&[spans(&[5]), spans(&[6])]), [false, false]);
    }
}
