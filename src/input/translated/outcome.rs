//! What becomes of each record of a file that is translated: a line, a message, an event of a list, a sample.
//!
//! A reader begins a record, and ends it when it has done with it; what the translation gained between the two is what
//! became of the record. A record of which nothing became is missing in the sums of the [`Account`], so a reader cannot
//! drop one without a word.

use crate::base::notice::Notice;
use crate::input::account::Account;

/// What has become of a record so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Outcome {
    #[default]
    Nothing,
    Description,
    Skipped(Notice),
    /// It is kept, and its account is made when the file was read.
    Kept,
    Event,
}

/// The account of a translation, and what has become of the record that is read.
#[derive(Debug, Default)]
pub(super) struct RecordAccount {
    pub account: Account,
    pub outcome: Outcome,
}

impl RecordAccount {
    /// An event was added.
    #[inline]
    pub fn event(&mut self) {
        self.account.events += 1;
        self.outcome = Outcome::Event;
    }

    /// Something was learnt: a name, a loss, a clock.
    #[inline]
    pub fn description(&mut self) {
        if self.outcome == Outcome::Nothing {
            self.outcome = Outcome::Description;
        }
    }

    /// A notice of this kind was added.
    pub fn skipped(&mut self, reason: Notice) {
        if !matches!(self.outcome, Outcome::Event | Outcome::Kept) {
            self.outcome = Outcome::Skipped(reason);
        }
    }

    /// Take back events that were given, each of a record of its own.
    pub fn take_back(&mut self, events: u64, reason: Notice) {
        self.account.events -= events;
        self.account.given -= events;
        self.account.skip(reason, events);
    }
}
