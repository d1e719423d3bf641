//! What becomes of each record of a file that is translated: a line, a message, an event of a list, a sample.
//!
//! A reader begins a record, and ends it when it has done with it; what the translation gained between the two is what
//! became of the record. A record of which nothing became is missing in the sums of the [`Account`], so a reader cannot
//! drop one without a word.

use super::translation::Translation;
use crate::base::notice::Notice;
use crate::input::account::Account;

/// What has become of a record so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Outcome {
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
    outcome: Outcome,
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

impl Translation {
    /// The next record begins.
    #[inline]
    pub fn begin_record(&mut self) {
        self.records.account.read += 1;
        self.records.outcome = Outcome::Nothing;
    }

    #[inline]
    pub fn end_record(&mut self) {
        let RecordAccount { account, outcome } = &mut self.records;
        match outcome {
            Outcome::Nothing | Outcome::Kept => {}
            Outcome::Event => account.given += 1,
            Outcome::Description => account.described += 1,
            Outcome::Skipped(reason) => account.skip(*reason, 1),
        }
    }

    /// The record describes others, or the file.
    pub fn describes(&mut self) {
        self.records.description();
    }

    /// The record is kept for later.
    pub fn keeps(&mut self) {
        self.records.outcome = Outcome::Kept;
    }

    /// A record that contradicts its format.
    pub fn unreadable_record(&mut self, place: impl FnOnce() -> String) {
        self.begin_record();
        self.unreadable(place);
        self.end_record();
    }

    /// Records that no analysis uses.
    pub fn unused_records(&mut self, records: u64, what: impl FnOnce() -> String) {
        self.notices.add(Notice::RecordsUnused, records, what);
        self.records.account.read += records;
        self.records.account.skip(Notice::RecordsUnused, records);
    }

    /// The same of records that were kept.
    pub fn unused_kept(&mut self, records: u64, what: impl FnOnce() -> String) {
        self.notices.add(Notice::RecordsUnused, records, what);
        self.records.account.skip(Notice::RecordsUnused, records);
    }

    /// Records that were kept became events.
    pub fn used_kept(&mut self, records: u64) {
        self.records.account.given += records;
    }
}
