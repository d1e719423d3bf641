//! The records of a perf.data, counted by their headers alone.
//!
//! In: the files of records. Out: how many there are, and how many of them are of a kind that becomes an event. Runs,
//! streams and merged packets are compared with it: what one of them loses is missing there.

use super::header::{RecordHeader, bytes_after, record};
use super::merged::records_in_order;
use super::record_types::{RecordOrigin, SAMPLE, SideClass, USER};
use super::runs::RecordFiles;
use super::side::is_description;
use super::storage::{DataFile, PerfStorage};
use super::unpack::is_packed;
use super::walk_rules::WalkRules;
use crate::base::notice::Notice;
use crate::input::account::Account;
use crate::input::tracepoint::account::CountedStorage;

impl CountedStorage for PerfStorage {
    fn records(&self) -> Account {
        let mut account = Account::default();
        for file in &self.files {
            account.merge(&records_of(&self.rules, file));
        }
        account
    }

    fn events_of(&self, stream: usize, packet: usize) -> u64 {
        let file = |number: u32| self.files.get(number as usize).map_or(&[][..], |file| file.mapped.bytes());
        let files = RecordFiles { rules: &self.rules, file: &file };
        match self.runs(stream, packet) {
            [run] => walked(&self.rules, files.bytes(run), false).given,
            runs => records_in_order(files, runs).len() as u64,
        }
    }
}

/// The records of a file.
fn records_of(rules: &WalkRules, file: &DataFile) -> Account {
    walked(rules, file.records().get(file.data.start..).unwrap_or(&[]), file.is_packed)
}

/// The records of some bytes. `is_packed_still`: compressed ones could not be unpacked.
fn walked(rules: &WalkRules, bytes: &[u8], is_packed_still: bool) -> Account {
    let (mut account, mut at) = (Account::default(), 0usize);
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        account.read += 1;
        let found = record(rest, rules.byte_order).and_then(|RecordHeader { kind, misc, size }| {
            let body = rest.get(8..size)?;
            Some((kind, misc, body, size.checked_add(bytes_after(kind, body, rules.byte_order)?)?))
        });
        let Some((kind, misc, body, size)) = found else {
            account.skip(Notice::DamagedStream, 1);
            break;
        };
        at = at.saturating_add(size);
        let time = || rules.attrs.of_record(body).and_then(|layout| layout.time_and_cpu(body).time);
        match kind {
            SAMPLE if rules.attrs.of_sample(body).is_none() => account.skip(Notice::EventsUndescribed, 1),
            SAMPLE => account.give(1),
            _ if is_packed(kind) && is_packed_still => account.skip(Notice::DamagedStream, 1),
            _ if kind < USER && SideClass::of(kind, misc, RecordOrigin::at(time())).is_some() => account.give(1),
            _ if is_description(kind) => account.described += 1,
            _ => account.skip(Notice::RecordsUnused, 1),
        }
    }
    account
}
