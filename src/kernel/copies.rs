//! Copies: user-space events that two sessions recorded at once.
//!
//! A tracepoint calls the probes of all sessions one after the other, on the same thread: each writes the event with a
//! time of its own. So the events of a thread alternate between the traces of the sessions, and each trace delivers one
//! of two events of equal content. An event is a copy if another trace delivered an equal event of the same thread
//! before that this trace has not delivered yet; of several such events the last one, because one session may have
//! events that the other lost or did not request. So each event counts once, whichever session delivers it first.
//! Without kernel events two threads in two containers may have the same ids: there a copy must also come from the same
//! CPU at nearly the same time.
//!
//! Only traces that can hold copies are compared (same host, overlapping in time, with event classes in common). Cost:
//! a hash of the event's content, and a search among the last [`KEPT`] events of its thread.

use crate::base::time::{Ns, Timestamp};
use crate::event::kind::{Event, Kind};
use crate::reading::batch::{Batch, MarkKey};
use crate::timeline::ThreadId;
use foldhash::HashMap;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Events of a thread of which copies are expected: sessions are a few events apart at most.
const KEPT: usize = 32;
/// Two probes of one tracepoint run within this time, unless their thread loses the CPU.
const TOGETHER: Ns = 100_000;

/// An event that counts.
#[derive(Clone, Debug)]
struct Original {
    content: u64,
    time: Timestamp,
    cpu: u16,
    /// The traces that have delivered it.
    traces: SmallVec<[u16; 2]>,
}

/// The last events of each thread, to find their copies.
#[derive(Clone, Debug, Default)]
pub(super) struct Copies {
    /// By trace: true if another trace may hold the same events.
    pub expected: Vec<bool>,
    threads: HashMap<ThreadId, VecDeque<Original>>,
}

impl Copies {
    pub fn is_expected(&self, trace: u16) -> bool {
        self.expected.get(usize::from(trace)).copied().unwrap_or(false)
    }

    /// True for an event of `thread` that another trace has delivered. `exact`: the thread is known, not only its ids.
    pub fn take(&mut self, thread: ThreadId, event: &Event, content: u64, exact: bool) -> bool {
        let last = self.threads.entry(thread).or_default();
        let same = |original: &Original| {
            let together = original.cpu == event.cpu && event.time.since(original.time) <= TOGETHER;
            original.content == content && (exact || together)
        };
        // This trace delivers no event any more that precedes its last one.
        let delivered = last.iter().rposition(|original| original.traces.contains(&event.trace));
        let candidates = last.iter_mut().skip(delivered.map_or(0, |at| at + 1));
        if let Some(original) = candidates.rev().find(|original| same(original)) {
            original.traces.push(event.trace);
            return true;
        }
        if last.len() == KEPT {
            last.pop_front();
        }
        let traces = SmallVec::from_slice(&[event.trace]);
        last.push_back(Original { content, time: event.time, cpu: event.cpu, traces });
        false
    }
}

/// A hash of an event without its time; `None` for events that may be delivered twice without harm.
pub(super) fn content(batch: &Batch, kind: Kind) -> Option<u64> {
    let mut hash = DefaultHasher::new();
    std::mem::discriminant(&kind).hash(&mut hash);
    match kind {
        Kind::Mark(id) => {
            let body = batch.mark_of(id)?;
            (body.task, body.begins).hash(&mut hash);
            match body.key {
                Some(MarkKey::Number(number)) => number.hash(&mut hash),
                Some(MarkKey::Text(text)) => batch.text_of(text).hash(&mut hash),
                None => {}
            }
            body.kind.and_then(|kind| batch.text_of(kind)).hash(&mut hash);
            batch.fields_of(id).iter().for_each(|field| (batch.text_of(field.name), field.value).hash(&mut hash));
        }
        Kind::Function { enters, address } => (enters, address).hash(&mut hash),
        Kind::Stack { user, kernel, .. } => {
            for stack in [user, kernel].into_iter().flatten() {
                batch.stacks.get(stack).hash(&mut hash);
            }
        }
        Kind::CallEntry { name, .. } => batch.text_of(name).hash(&mut hash),
        Kind::CallExit { name, ret } => (batch.text_of(name), ret).hash(&mut hash),
        _ => return None,
    }
    Some(hash.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::kind::{LossSource, ThreadContextId};

    /// Letters are events of one thread, lower case of the first session, upper case of the second. Returns those that
    /// are no copies.
    fn originals(events: &str, exact: bool, apart: Ns) -> String {
        let mut copies = Copies::default();
        let event = |at: usize, letter: char| Event {
            time: Timestamp::new(at as Ns * apart),
            who: ThreadContextId::ABSENT,
            trace: u16::from(letter.is_uppercase()),
            cpu: 0,
            kind: Kind::Lost { source: LossSource::Reported, until: Timestamp::ZERO, resumes: Timestamp::ZERO },
        };
        let mut kept = String::new();
        for (at, letter) in events.chars().enumerate() {
            let content = u64::from(letter.to_ascii_lowercase() as u32);
            if !copies.take(ThreadId::at(1), &event(at, letter), content, exact) {
                kept.push(letter);
            }
        }
        kept
    }

    #[test]
    fn take_keeps_each_event_once_whichever_session_has_it() {
        for (events, wanted) in [
            ("aAbBaAbB", "abab"),
            ("AabBAabB", "AbAb"),
            // Events that one session lost or did not record; a session that begins late or ends early.
            ("abaAbB", "abab"),
            ("aAbaAbB", "abab"),
            ("aAABb", "aAB"),
            ("aAbB", "ab"),
        ] {
            assert_eq!(originals(events, true, 1_000_000), wanted, "{events}");
        }
        // By ids alone: only events at nearly the same time.
        assert_eq!(originals("aAbB", false, 1_000), "ab");
        assert_eq!(originals("aAbB", false, 1_000_000), "aAbB");
    }
}
