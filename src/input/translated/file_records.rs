//! The records of a file that is translated, from the begin of one to its end.
//!
//! In: what a reader says of the record that it reads. Out: the sums of the translation's account (`outcome.rs`).

use super::outcome::{Outcome, RecordAccount};
use super::translation::Translation;
use crate::base::notice::Notice;

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

    /// Records that were kept, and that no analysis uses.
    pub fn unused_kept(&mut self, records: u64, what: impl FnOnce() -> String) {
        self.notices.add(Notice::RecordsUnused, records, what);
        self.records.account.skip(Notice::RecordsUnused, records);
    }

    /// Records that were kept became events.
    pub fn used_kept(&mut self, records: u64) {
        self.records.account.given += records;
    }
}
