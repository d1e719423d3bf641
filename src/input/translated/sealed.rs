//! A translation that is complete: the records of each CPU in order of time, cut into packets.
//!
//! In: the records of each CPU as they were added. Out: what a recording is made of. Cost: linear; a CPU whose events
//! are not in order is sorted once, and events of one time keep their order.

use super::storage::{CpuRecords, HEAD, RecordHead, TranslatedStorage};
use super::translation::{Translation, UNKNOWN_CPU};
use crate::base::notice::Notices;
use crate::input::format::InputFormat;
use crate::input::tracepoint::{ClassSchema, CpuPacket, CpuStream, RecordedIds};

/// Bytes of a packet.
const PACKET: usize = 1 << 16;

/// A translation that is complete.
pub(super) struct SealedTranslation {
    pub storage: TranslatedStorage,
    pub schemas: Vec<ClassSchema>,
    pub cpu_streams: Vec<CpuStream>,
    pub notices: Notices,
}

impl Translation {
    /// Sort, cut into packets.
    pub fn seal(mut self, format: &'static InputFormat) -> SealedTranslation {
        if self.thread_ids == RecordedIds::Initial {
            self.threads.named(0, 0, b"swapper");
        }
        self.threads.seal();
        let (mut cpus, mut cpu_streams) = (Vec::new(), Vec::new());
        for (cpu, records) in self.cpus {
            let blocks = if records.is_unordered { vec![sorted(&records.blocks)] } else { records.blocks };
            let mut stream = CpuStream { name: format!("cpu {cpu}"), cpu: Some(cpu), ..CpuStream::default() };
            if cpu == UNKNOWN_CPU {
                (stream.name, stream.cpu) = ("all CPUs".to_owned(), None);
            }
            stream.losses = records.losses;
            stream.losses.sort_by_key(|loss| (loss.to, loss.from));
            let mut packets = Vec::new();
            for (number, block) in blocks.iter().enumerate() {
                for (begin, packet) in cut(block) {
                    packets.push((number, begin));
                    stream.packets.push(packet);
                }
            }
            cpus.push(CpuRecords { blocks, packets });
            cpu_streams.push(stream);
        }
        let storage = TranslatedStorage {
            format,
            name: self.name,
            cpus,
            threads: self.threads,
            frames: self.frames.names().collect(),
            kernel_symbols: self.frames.kernel_symbols(),
            account: self.records.account,
        };
        SealedTranslation { storage, schemas: self.schemas, cpu_streams, notices: self.notices }
    }
}

/// The packets of a block, with their begins.
fn cut(block: &[u8]) -> Vec<(usize, CpuPacket)> {
    let (mut packets, mut at): (Vec<(usize, CpuPacket)>, usize) = (Vec::new(), 0);
    while let Some(RecordHead { size, time, .. }) = block.get(at..).and_then(RecordHead::read) {
        match packets.last_mut() {
            Some((begin, packet)) if at - *begin < PACKET => {
                (packet.end, packet.bytes) = (time, (at + size - *begin) as u64);
            }
            _ => packets.push((at, CpuPacket { begin: time, end: time, bytes: size as u64 })),
        }
        at += size.max(HEAD);
    }
    packets
}

/// Records in order of time; those of one time keep their order.
fn sorted(blocks: &[Vec<u8>]) -> Vec<u8> {
    let mut places = Vec::new();
    for (number, block) in blocks.iter().enumerate() {
        let mut at = 0;
        while let Some(RecordHead { size, time, .. }) = block.get(at..).and_then(RecordHead::read) {
            places.push((time, number, at, size));
            at += size.max(HEAD);
        }
    }
    places.sort_by_key(|(time, number, at, _)| (*time, *number, *at));
    let mut out = Vec::with_capacity(blocks.iter().map(Vec::len).sum());
    for (_, number, at, size) in places {
        let record = blocks.get(number).and_then(|block| block.get(at..at + size));
        out.extend_from_slice(record.unwrap_or(&[]));
    }
    out
}
