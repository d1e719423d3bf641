//! What became of the records of a recording: each is an event, describes others, or was skipped for a reason.
//!
//! In: the records to which the format leads, counted by a walk that decodes nothing; what the reader gives of them;
//! the notices. Out: an [`Account`]. [`Account::broken`] compares its sums, so that a record that a reader drops
//! without a word is found. The account is made when it is asked for (`--check`, tests, fuzz targets): what reads
//! events for answers counts nothing but what it skips.

use crate::base::notice::{Notice, Notices};
use std::collections::BTreeMap;
use std::fmt;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Records in the bytes of the recording.
    pub read: u64,
    /// Those that became events.
    pub given: u64,
    /// Those that describe others, or the recording: names, formats, clocks, frames around other records.
    pub described: u64,
    /// Those that were skipped, by the notice that says why.
    pub skipped: BTreeMap<Notice, u64>,
    /// Events that the reader has to give: as many as records, where the format has a record for each.
    pub events: u64,
}

impl Account {
    /// Count records that were skipped for a reason.
    pub fn skip(&mut self, reason: Notice, records: u64) {
        if records > 0 {
            *self.skipped.entry(reason).or_default() += records;
        }
    }

    /// Records that became events one by one.
    pub fn give(&mut self, records: u64) {
        self.given += records;
        self.events += records;
    }

    /// Add another account.
    pub fn merge(&mut self, other: &Account) {
        self.read += other.read;
        self.given += other.given;
        self.described += other.described;
        self.events += other.events;
        other.skipped.iter().for_each(|(reason, records)| self.skip(*reason, *records));
    }

    /// The first sum that is wrong. `counted`: the events that the reader counts; `notices`: all that was said.
    pub fn broken(&self, counted: u64, notices: &Notices) -> Option<String> {
        let Account { read, given, described, ref skipped, events } = *self;
        let sum = given + described + skipped.values().sum::<u64>();
        if read != sum {
            return Some(format!("{read} records were read, and what became of {sum} of them is known ({self})"));
        }
        if events != counted {
            return Some(format!("{events} events have to be there, and {counted} are ({self})"));
        }
        // One notice of damage is for all that follows it in its packet or stream, whatever that is.
        let is_damaged = [Notice::DamagedPacket, Notice::DamagedStream].iter().any(|damage| notices.count(*damage) > 0);
        skipped.iter().find_map(|(reason, records)| {
            let (name, said) = (reason.name(), notices.count(*reason));
            let is_damage = matches!(reason, Notice::DamagedPacket | Notice::DamagedStream);
            let is_said = said >= *records || is_damaged && (!is_damage || said > 0);
            (!is_said).then(|| format!("{records} records were skipped ({name}), and {said} of them were said"))
        })
    }
}

impl fmt::Display for Account {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Account { read, given, described, skipped, .. } = self;
        write!(to, "{read} records: {given} are events, {described} describe others")?;
        skipped.iter().try_for_each(|(reason, records)| write!(to, ", {records} skipped ({})", reason.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_finds_records_that_nobody_accounts_for() {
        let mut account = Account { read: 5, described: 1, ..Account::default() };
        account.give(2);
        account.skip(Notice::RecordsUnused, 2);
        let mut notices = Notices::default();
        assert!(account.broken(2, &notices).is_some_and(|what| what.contains("0 of them were said")));
        notices.add(Notice::RecordsUnused, 2, String::new);
        assert_eq!(account.broken(2, &notices), None);
        assert!(account.broken(1, &notices).is_some_and(|what| what.contains("2 events have to be there, and 1 are")));
        account.read += 1;
        assert!(account.broken(2, &notices).is_some_and(|what| what.contains("6 records were read")));
        assert_eq!(account.to_string(), "6 records: 2 are events, 1 describe others, 2 skipped (RecordsUnused)");
    }
}
