//! One thread's reads and writes, counted from the entries and exits of its system calls.
//!
//! In: entries and exits in order, from the beginning of a recording or of a chunk. Out: bytes and calls, read and
//! written. Old recordings name the call in its entry only. In a chunk at most the first exit is of an unknown call, if
//! no entry precedes it (ALGORITHMS.md 10.4).

use crate::event::transfer::{Transfer, transfer};
use crate::model::usage::Moved;

/// The kind of a system call, as far as it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallKind {
    Reads,
    Writes,
    Other,
}

impl CallKind {
    /// The kind of the call `call`.
    pub fn of(call: &str) -> CallKind {
        match transfer(call) {
            Some(Transfer::Read) => CallKind::Reads,
            Some(Transfer::Write) => CallKind::Writes,
            None => CallKind::Other,
        }
    }
}

/// An entry or exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallStep {
    Entry(CallKind),
    /// With the kind of the call, where the event names it, and its result.
    Exit {
        call: Option<CallKind>,
        ret: i64,
    },
}

impl Moved {
    /// The sum of two.
    pub fn join(&mut self, other: Moved) {
        self.add(other.bytes, other.calls);
    }

    fn add(&mut self, bytes: u64, calls: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.calls += calls;
    }
}

/// The call that a thread is in, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallState {
    /// The call of the carried-in state, or none: the chunk has no entry or exit yet.
    CarriedIn,
    /// A call that began before the recording or while events were lost, or none.
    Unseen,
    /// No call.
    Outside,
    /// This call.
    Inside(CallKind),
}

/// The reads and writes of one thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calls {
    /// In a chunk: the first exit, if it is of the call of the carried-in state.
    first_exit: Option<CallStep>,
    call: CallState,
    pub read: Moved,
    pub written: Moved,
    /// Number of exits of another call than the last entry's.
    pub contradictions: u64,
}

impl Calls {
    /// `from_beginning`: the thread has no calls in previous chunks.
    pub fn new(from_beginning: bool) -> Calls {
        let call = if from_beginning { CallState::Unseen } else { CallState::CarriedIn };
        Calls { first_exit: None, call, read: Moved::default(), written: Moved::default(), contradictions: 0 }
    }

    pub fn step(&mut self, step: CallStep) {
        match step {
            // The exit of the previous call was lost, or that call never returns here.
            CallStep::Entry(call) => self.call = CallState::Inside(call),
            CallStep::Exit { call, ret } => {
                let before = std::mem::replace(&mut self.call, CallState::Outside);
                match (before, call) {
                    (CallState::CarriedIn, _) => self.first_exit = Some(step),
                    (before, Some(call)) => {
                        // This call returned, even if another entry precedes: its own entry was lost.
                        let other = matches!(before, CallState::Inside(entered) if entered != call);
                        self.contradictions += u64::from(other);
                        self.count(call, ret);
                    }
                    (CallState::Inside(call), None) => self.count(call, ret),
                    (CallState::Unseen | CallState::Outside, None) => {}
                }
            }
        }
    }

    /// Events were lost: the thread may be in any call.
    pub fn lose(&mut self) {
        self.call = CallState::Unseen;
    }

    fn count(&mut self, call: CallKind, ret: i64) {
        let bytes = u64::try_from(ret).unwrap_or(0);
        match call {
            CallKind::Reads => self.read.add(bytes, 1),
            CallKind::Writes => self.written.add(bytes, 1),
            CallKind::Other => {}
        }
    }

    /// Join the calls of the same thread in the next chunk.
    pub fn append(&mut self, next: Calls) {
        if let Some(exit) = next.first_exit {
            self.step(exit);
        }
        if next.call != CallState::CarriedIn {
            self.call = next.call;
        }
        self.read.join(next.read);
        self.written.join(next.written);
        self.contradictions += next.contradictions;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn append_gives_the_same_wherever_the_steps_are_cut() {
        let steps = [
            Some(CallStep::Entry(CallKind::Reads)),
            Some(CallStep::Entry(CallKind::Other)),
            Some(CallStep::Exit { call: Some(CallKind::Reads), ret: 10 }),
            Some(CallStep::Exit { call: Some(CallKind::Writes), ret: 5 }),
            Some(CallStep::Exit { call: None, ret: 7 }),
            None,
        ];
        let run = |calls: &mut Calls, steps: &[Option<CallStep>]| {
            for step in steps {
                match step {
                    Some(step) => calls.step(*step),
                    None => calls.lose(),
                }
            }
        };
        for number in 0..steps.len().pow(5) {
            let steps: Vec<_> = (0..5).map(|i| steps[number / steps.len().pow(i) % steps.len()]).collect();
            let mut whole = Calls::new(true);
            run(&mut whole, &steps);
            for cut in 0..=steps.len() {
                let (mut first, mut next) = (Calls::new(true), Calls::new(false));
                run(&mut first, &steps[..cut]);
                run(&mut next, &steps[cut..]);
                first.append(next);
                assert_eq!(format!("{first:?}"), format!("{whole:?}"), "{steps:?} cut at {cut}");
            }
        }
    }
}
