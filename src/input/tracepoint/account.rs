//! What became of the records of a recording of tracepoints.
//!
//! In: what the storage says of its records by their headers alone, over all bytes and by packet. Out: an [`Account`],
//! in which the reader itself, packet by packet, says how many it gives. A packet that has more records than the reader
//! gives was left at its damage. Cost: each packet is read twice, by all workers.

use super::reader::TracepointReader;
use super::{Storage, TracepointTrace};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::notice::Notice;
use crate::base::parallel::in_order;
use crate::input::account::Account;
use crate::input::record::{Projection, StreamId};
use crate::input::records::Records;
use crate::input::stream::Stream;

/// Packets that a worker reads at a time.
const RUN: usize = 64;

/// A storage that can say what its records are without decoding them.
pub trait CountedStorage: Storage {
    /// All records: those that have to become events are `given`.
    fn records(&self) -> Account;
    /// The records of a packet that have to become events.
    fn events_of(&self, stream: usize, packet: usize) -> u64;
}

impl<S: CountedStorage> TracepointTrace<S> {
    /// Account for all records by what the storage counts.
    pub fn counted(&self, ctx: &Ctx) -> Result<Account, Cancelled> {
        let plan = self.compile(&Projection::default());
        let of_stream = |(stream, described): (usize, &Stream)| {
            (0..described.packets.len()).step_by(RUN).map(move |first| (stream, first))
        };
        let runs: Vec<(usize, usize)> = self.streams.iter().enumerate().flat_map(of_stream).collect();
        let make = |run: usize| {
            let mut found = Account::default();
            let Some((stream, first)) = runs.get(run).copied() else { return found };
            let packets = self.streams.get(stream).map_or(0, |stream| stream.packets.len());
            for packet in first..packets.min(first + RUN) {
                let mut counts = vec![0u64; self.classes.len()];
                let mut reader = TracepointReader::new(self, &plan, StreamId::at(stream), packet..packet + 1);
                reader.count(&mut counts);
                let given: u64 = counts.iter().sum();
                found.give(given);
                if reader.notices().count(Notice::DamagedPacket) > 0 {
                    found.skip(Notice::DamagedPacket, self.storage.events_of(stream, packet).saturating_sub(given));
                }
            }
            found
        };
        let mut account = Account { given: 0, events: 0, ..self.storage.records() };
        in_order(ctx, runs.len(), make, |_, found| account.merge(&found))?;
        Ok(account)
    }
}
