//! What became of the records of a CTF trace.
//!
//! In: packets and files. Out: an [`Account`]: the events that stepping from header to header finds, which counting by
//! templates has to find as well; the record at which a damaged packet was left; and each part of a file that is in no
//! packet, as one record. Cost: reading the headers of all events, by all workers.

use super::plan::CtfPlan;
use super::reader::CtfReader;
use super::trace::CtfTrace;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::notice::Notice;
use crate::base::parallel::in_order;
use crate::input::account::Account;
use crate::input::record::{Projection, StreamId};
use crate::input::records::Records;

impl CtfTrace {
    /// Account for all records.
    pub fn account(&self, ctx: &Ctx) -> Result<Account, Cancelled> {
        let plan = CtfPlan::new(self, &Projection::default());
        let packets: Vec<(usize, usize)> = self
            .packets
            .iter()
            .enumerate()
            .flat_map(|(stream, packets)| (0..packets.len()).map(move |packet| (stream, packet)))
            .collect();
        let make = |at: usize| {
            let mut found = Account::default();
            let Some((stream, packet)) = packets.get(at).copied() else { return found };
            let mut reader = CtfReader::new(self, &plan, StreamId::at(stream), packet..packet + 1);
            while reader.step().is_some() {
                found.give(1);
            }
            let damaged = reader.notices().count(Notice::DamagedPacket);
            found.skip(Notice::DamagedPacket, damaged);
            found.read = found.given + damaged;
            found
        };
        let mut account = Account::default();
        in_order(ctx, packets.len(), make, |_, found| account.merge(&found))?;
        self.outside_of_packets(&mut account);
        Ok(account)
    }

    /// Count the files of which a part is in no packet.
    fn outside_of_packets(&self, account: &mut Account) {
        let mut inside = vec![0u64; self.files.len()];
        for packet in self.packets.iter().flatten() {
            if let Some(bytes) = inside.get_mut(packet.file as usize) {
                *bytes += packet.range.bytes;
            }
        }
        let parts = self.files.iter().zip(inside).filter(|(file, inside)| file.mapped.bytes().len() as u64 != *inside);
        let parts = parts.count() as u64;
        account.read += parts;
        // Of a file without any packet its stream is damaged.
        let said = [Notice::DamagedPacket, Notice::DamagedStream].into_iter().find(|one| self.notices.count(*one) > 0);
        said.into_iter().for_each(|reason| account.skip(reason, parts));
    }
}
