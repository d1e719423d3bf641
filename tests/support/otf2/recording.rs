//! Operations of ranks as an archive, as a tracer would have recorded them.
//!
//! In: operations with their messages and collectives, on one clock. Out: an archive in which each operation is a call
//! inside `main`; a message leaves as its call begins, and has arrived as the receiving call ends.

use super::{ArchiveWriter, Events};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use whyslow::parts::base::names::NameId;
use whyslow::parts::event::operation::{CollectiveKind, OperationPlace, Operations};
use whyslow::parts::model::carrier::Carrier;

/// OTF2's number of a collective operation of this shape, and its root.
fn collective(exchange: CollectiveKind) -> (u8, Option<u32>) {
    match exchange {
        CollectiveKind::Barrier => (0, None),
        CollectiveKind::FromOne(root) => (1, root),
        CollectiveKind::ToOne(root) => (12, root),
        CollectiveKind::Prefix => (14, None),
        CollectiveKind::All | CollectiveKind::TeamBarrier => (11, None),
    }
}

/// Write the archive; each stream is a rank. Messages other than MPI's cannot be recorded.
pub fn record(operations: &Operations, folder: &Path) -> PathBuf {
    let mut writer = ArchiveWriter::new(folder);
    let main = writer.region("main");
    let regions: Vec<u32> =
        (0..operations.names.len()).map(|i| writer.region(operations.names.get(NameId::at(i)))).collect();
    let ranks: Vec<u64> = operations.sequences.iter().map(|_| writer.rank()).collect();
    let world = writer.world();
    let (mut sends, mut receives): (BTreeMap<OperationPlace, Vec<u32>>, BTreeMap<OperationPlace, Vec<u32>>) =
        Default::default();
    for message in &operations.messages {
        assert_eq!(message.carrier, Carrier::Message, "an archive of MPI records no other");
        sends.entry(message.from).or_default().push(message.to.stream);
        receives.entry(message.to).or_default().push(message.from.stream);
    }
    let collectives = operations.collectives.iter();
    let met: BTreeMap<OperationPlace, CollectiveKind> =
        collectives.flat_map(|m| m.members.iter().map(|place| (*place, m.exchange))).collect();
    for (stream, sequence) in (0_u32..).zip(&operations.sequences) {
        let mut events = Events::default();
        events.enter(0, main);
        for (operation, o) in (0_u32..).zip(&sequence.operations) {
            let place = OperationPlace { stream, operation };
            let (start, end) = (o.start.ns() as u64, o.end.ns() as u64);
            let region = regions[o.symbol.index()];
            events.enter(start, region);
            for to in sends.get(&place).into_iter().flatten() {
                events.send(start, *to, world, 0, 1_024);
            }
            if let Some((number, root)) = met.get(&place).map(|exchange| collective(*exchange)) {
                events.collective_begin(start);
                events.collective_end(end, number, world, root);
            }
            for from in receives.get(&place).into_iter().flatten() {
                events.recv(end, *from, world, 0, 1_024);
            }
            events.leave(end, region);
        }
        events.leave(events.last, main);
        writer.write_events(ranks[stream as usize], events);
    }
    writer.finish()
}
