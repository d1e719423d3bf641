//! The same user-space events, delivered by two sessions at once.
//!
//! A tracepoint calls the probes of all sessions one after the other, on the thread that came by: each writes the event
//! with a time of its own. So the events of a thread alternate between the sessions' traces, and of what is equal in
//! content each trace delivers one. An event is a copy where another trace delivered an equal one of the same thread
//! before, which this trace has not delivered yet; of several the last one, because what one session lost or was not
//! asked for the other may have. Whatever the session that comes first, each event is followed once. Without the
//! kernel's events two threads in two containers may have the same ids: there a copy must also come from the same CPU
//! at nearly the same time.
//!
//! Only traces that can hold copies are looked at (same host, overlapping in time, with kinds of events in common).
//! Cost: a hash of the event's content, and a search among the last [`KEPT`] events of its thread.

use super::machine::{BatchIds, Machine};
use crate::base::notice::Notice;
use crate::base::time::{Ns, Timestamp};
use crate::event::host::TraceOrigin;
use crate::event::kind::{Event, Kind};
use crate::reading::batch::{Batch, MarkKey};
use crate::state::timeline::ThreadId;
use foldhash::HashMap;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Events of a thread of which copies are expected: sessions are a few events apart at most.
const KEPT: usize = 32;
/// Two probes of one tracepoint run within this time, unless their thread loses the CPU.
const TOGETHER: Ns = 100_000;

/// An event that is followed.
#[derive(Clone, Debug)]
struct Followed {
    content: u64,
    time: Timestamp,
    cpu: u16,
    /// The traces that have delivered it.
    traces: SmallVec<[u16; 2]>,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Copies {
    /// By trace: others may hold the same events.
    expected: Vec<bool>,
    threads: HashMap<ThreadId, VecDeque<Followed>>,
}

impl Copies {
    fn is_expected(&self, trace: u16) -> bool {
        self.expected.get(usize::from(trace)).copied().unwrap_or(false)
    }

    /// True for an event of `thread` that another trace has delivered. `exact`: the thread is known, not only its ids.
    fn meet(&mut self, thread: ThreadId, event: &Event, content: u64, exact: bool) -> bool {
        let last = self.threads.entry(thread).or_default();
        let same = |followed: &Followed| {
            let together = followed.cpu == event.cpu && event.time.saturating_sub(followed.time) <= TOGETHER;
            followed.content == content && (exact || together)
        };
        // What stands before the last event that this trace delivered it has delivered or will not deliver any more.
        let delivered = last.iter().rposition(|followed| followed.traces.contains(&event.trace));
        let left = last.iter_mut().skip(delivered.map_or(0, |at| at + 1));
        if let Some(original) = left.rev().find(|followed| same(followed)) {
            original.traces.push(event.trace);
            return true;
        }
        if last.len() == KEPT {
            last.pop_front();
        }
        let traces = SmallVec::from_slice(&[event.trace]);
        last.push_back(Followed { content, time: event.time, cpu: event.cpu, traces });
        false
    }
}

/// What an event says, but for its time; `None` for what may come twice without harm.
fn content(batch: &Batch, kind: Kind) -> Option<u64> {
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
            body.fields.iter().for_each(|(name, value)| (batch.text_of(*name), value).hash(&mut hash));
        }
        Kind::Function { enters, address } => (enters, address).hash(&mut hash),
        Kind::Stack { user, kernel, .. } => {
            for stack in [user, kernel].into_iter().flatten() {
                batch.stacks.get(stack).hash(&mut hash);
            }
        }
        Kind::CallEntry { name } => batch.text_of(name).hash(&mut hash),
        Kind::CallExit { name, ret } => (batch.text_of(name), ret).hash(&mut hash),
        _ => return None,
    }
    Some(hash.finish())
}

impl Machine {
    /// The user-space trace at this position may hold copies of what another one holds.
    pub fn expect_copies(&mut self, trace: usize) {
        let expected = &mut self.copies.expected;
        expected.resize(expected.len().max(trace + 1), false);
        expected[trace] = true;
    }

    /// True for an event of user space that was followed already, as another session recorded it.
    pub(super) fn is_copy(
        &mut self,
        event: &Event,
        origin: TraceOrigin,
        thread: Option<ThreadId>,
        ids: &BatchIds<'_>,
    ) -> bool {
        let Some(thread) = thread.filter(|_| self.copies.is_expected(event.trace)) else { return false };
        let Some(content) = content(ids.batch, event.kind) else { return false };
        let exact = self.kernel_traced.get(origin.host.index()) == Some(&true);
        let copy = self.copies.meet(thread, event, content, exact);
        if copy {
            self.notices.add(Notice::Copies, 1, || format!("at {} ns", event.time));
        }
        copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::kind::LossSource;
    use crate::event::kind::ThreadContextId;

    /// Letters are events of one thread, small ones of the first session, large ones of the second; gives those that
    /// are followed.
    fn followed(story: &str, exact: bool, apart: Ns) -> String {
        let mut copies = Copies::default();
        let event = |at: usize, letter: char| Event {
            time: at as Ns * apart,
            who: ThreadContextId::ABSENT,
            trace: u16::from(letter.is_uppercase()),
            cpu: 0,
            kind: Kind::Lost { source: LossSource::Reported, until: 0, resumes: 0 },
        };
        let mut kept = String::new();
        for (at, letter) in story.chars().enumerate() {
            let content = u64::from(letter.to_ascii_lowercase() as u32);
            if !copies.meet(ThreadId::at(1), &event(at, letter), content, exact) {
                kept.push(letter);
            }
        }
        kept
    }

    #[test]
    fn each_event_is_followed_once_whichever_session_has_it() {
        for (story, wanted) in [
            ("aAbBaAbB", "abab"),
            ("AabBAabB", "AbAb"),
            // What one did not record or lost, and a session that begins late or ends early.
            ("abaAbB", "abab"),
            ("aAbaAbB", "abab"),
            ("aAABb", "aAB"),
            ("aAbB", "ab"),
        ] {
            let story_kept = followed(story, true, 1_000_000);
            assert_eq!(story_kept, wanted, "{story}");
        }
        // By ids alone: only what comes together.
        assert_eq!(followed("aAbB", false, 1_000), "ab");
        assert_eq!(followed("aAbB", false, 1_000_000), "aAbB");
    }
}
