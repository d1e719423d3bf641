//! One thread's reads and writes, counted from the entries and exits of its system calls.
//!
//! In: entries and exits in order, from the beginning of a recording or of a chunk. Out: bytes and calls both ways. Old
//! recordings do not name the call in its exit: the entry tells. What a chunk cannot decide is at most its first exit,
//! if no entry came before (ALGORITHMS.md 10.4).

use crate::event::transfer::Transfer;
use crate::model::usage::Moved;

/// An entry or exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Into a call that moves bytes, or another.
    Entry(Option<Transfer>),
    /// Out of it; what it moves, where the event names the call at all; what it returned.
    Exit(Option<Option<Transfer>>, i64),
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

/// What is known of the call that a thread is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    /// Whatever the left says: no call was seen since.
    Left,
    /// Perhaps one that began before the recording, or while events were lost.
    Unseen,
    /// None.
    Outside,
    /// One that moves bytes, or another.
    Inside(Option<Transfer>),
}

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calls {
    /// The first exit, where the left must tell of what.
    head: Option<Step>,
    call: Call,
    pub read: Moved,
    pub written: Moved,
    /// Exits of another call than was entered.
    pub odd: u64,
}

impl Calls {
    /// `known`: nothing of it happened before.
    pub fn new(known: bool) -> Calls {
        let call = if known { Call::Unseen } else { Call::Left };
        Calls { head: None, call, read: Moved::default(), written: Moved::default(), odd: 0 }
    }

    pub fn step(&mut self, step: Step) {
        match step {
            // The exit of the call before was lost, or it is one that never returns here.
            Step::Entry(what) => self.call = Call::Inside(what),
            Step::Exit(named, ret) => {
                let before = std::mem::replace(&mut self.call, Call::Outside);
                match (before, named) {
                    (Call::Left, _) => self.head = Some(step),
                    (before, Some(what)) => {
                        // It happened, whatever entry was lost.
                        self.odd += u64::from(matches!(before, Call::Inside(entered) if entered != what));
                        self.count(what, ret);
                    }
                    (Call::Inside(what), None) => self.count(what, ret),
                    (Call::Unseen | Call::Outside, None) => {}
                }
            }
        }
    }

    /// Events were lost: it may be in any call.
    pub fn lose(&mut self) {
        self.call = Call::Unseen;
    }

    fn count(&mut self, what: Option<Transfer>, ret: i64) {
        let bytes = u64::try_from(ret).unwrap_or(0);
        match what {
            Some(Transfer::Read) => self.read.add(bytes, 1),
            Some(Transfer::Write) => self.written.add(bytes, 1),
            None => {}
        }
    }

    /// Join what a later chunk saw.
    pub fn append(&mut self, right: Calls) {
        if let Some(head) = right.head {
            self.step(head);
        }
        if right.call != Call::Left {
            self.call = right.call;
        }
        self.read.join(right.read);
        self.written.join(right.written);
        self.odd += right.odd;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_anywhere_changes_nothing() {
        let (read, write) = (Some(Transfer::Read), Some(Transfer::Write));
        let kinds = [
            Some(Step::Entry(read)),
            Some(Step::Entry(None)),
            Some(Step::Exit(Some(read), 10)),
            Some(Step::Exit(Some(write), 5)),
            Some(Step::Exit(None, 7)),
            None,
        ];
        let run = |calls: &mut Calls, steps: &[Option<Step>]| {
            for step in steps {
                match step {
                    Some(step) => calls.step(*step),
                    None => calls.lose(),
                }
            }
        };
        for number in 0..kinds.len().pow(5) {
            let steps: Vec<_> = (0..5).map(|i| kinds[number / kinds.len().pow(i) % kinds.len()]).collect();
            let mut whole = Calls::new(true);
            run(&mut whole, &steps);
            for cut in 0..=steps.len() {
                let (mut left, mut right) = (Calls::new(true), Calls::new(false));
                run(&mut left, &steps[..cut]);
                run(&mut right, &steps[cut..]);
                left.append(right);
                assert_eq!(format!("{left:?}"), format!("{whole:?}"), "{steps:?} cut at {cut}");
            }
        }
    }
}
