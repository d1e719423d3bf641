//! What became of the records of an archive.
//!
//! In: the event files of all locations. Out: an [`Account`]: records by their types and lengths alone, and what the
//! reader gives of them. Time stamps and lists of attributes describe the records after them. Where a chunk cannot be
//! read on, what is left of it counts as one record. Cost: each file is read twice, by all workers.

use super::bytes::{Chunks, Next};
use super::events::{ATTRIBUTE_LIST, TIMESTAMP, is_short};
use super::{Archive, LocationFiles, LocationId};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::notice::{Notice, Notices};
use crate::base::parallel::in_order;
use crate::input::account::Account;

/// The account of an archive, with the events that were read for it and what was said of them.
#[derive(Debug, Default)]
pub struct CountedArchive {
    pub account: Account,
    /// Events that the reader gave.
    pub events: u64,
    pub notices: Notices,
}

impl Archive {
    /// Account for all records.
    pub fn account(&self, ctx: &Ctx) -> Result<CountedArchive, Cancelled> {
        let mut all = CountedArchive { notices: self.notices.clone(), ..CountedArchive::default() };
        let make = |location: usize| {
            let files = self.open_location(LocationId::at(location));
            let mut found = CountedArchive { account: files.records(), ..CountedArchive::default() };
            let mut reader = files.reader();
            while reader.next().is_some() {
                found.events += 1;
            }
            if reader.notices().count(Notice::DamagedPacket) > 0 {
                let missing = found.account.given.saturating_sub(found.events);
                found.account.skip(Notice::DamagedPacket, missing);
                found.account.given -= missing;
                found.account.events -= missing;
            }
            found.notices = files.notices();
            found.notices.merge(reader.notices());
            found
        };
        in_order(ctx, self.definitions.locations.len(), make, |_, found| {
            all.account.merge(&found.account);
            all.events += found.events;
            all.notices.merge(&found.notices);
        })?;
        Ok(all)
    }
}

impl LocationFiles {
    /// The records of the event file.
    fn records(&self) -> Account {
        let mut account = Account::default();
        let mut chunks = Chunks::new(self.data(), self.chunk);
        // Events before the current chunk, and those that its header counts.
        let (mut before, mut declared) = (0, 0);
        loop {
            let read = match chunks.next() {
                end @ (Next::End | Next::Chunk) => {
                    let missing = u64::saturating_sub(declared, account.given - before);
                    account.read += missing;
                    account.skip(Notice::DamagedPacket, missing);
                    (before, declared) = (account.given, chunks.declared);
                    match end {
                        Next::End => return account,
                        _ => continue,
                    }
                }
                Next::Broken => None,
                Next::Type(TIMESTAMP) => chunks.bytes.full_u64().map(|_| account.described += 1),
                Next::Type(ATTRIBUTE_LIST) => chunks.bytes.payload().map(|_| account.described += 1),
                Next::Type(class) if is_short(class) => chunks.bytes.packed_u64().map(|_| account.give(1)),
                Next::Type(_) => chunks.bytes.payload().map(|_| account.give(1)),
            };
            account.read += 1;
            if read.is_none() {
                account.skip(Notice::DamagedPacket, 1);
                // The damage was counted in place of the records that are missing.
                declared = 0;
                chunks.skip();
            }
        }
    }
}
