//! A translation that is complete: the records of each CPU in order of time, cut into packets.
//!
//! In: the records of each CPU as they were added. Out: what a recording is made of. Cost: linear; a CPU whose events
//! are not in order is sorted once, and events of one time keep their order.

use super::translation::{Translation, UNKNOWN_CPU};
use super::{CpuRecords, HEAD, RecordHead, TranslatedStorage};
use crate::base::notice::Notices;
use crate::input::tracepoint::{ClassSchema, CpuPacket, CpuStream, RecordedIds};
use std::ops::Range;

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
    pub fn seal(mut self) -> SealedTranslation {
        if self.thread_ids == RecordedIds::Initial {
            self.threads.named(0, 0, b"swapper");
        }
        self.threads.seal();
        let (mut cpus, mut cpu_streams) = (Vec::new(), Vec::new());
        for (cpu, records) in self.cpus {
            let bytes = if records.is_unordered { sorted(&records.bytes) } else { records.bytes };
            let mut stream = CpuStream { name: format!("cpu {cpu}"), cpu: Some(cpu), ..CpuStream::default() };
            if cpu == UNKNOWN_CPU {
                (stream.name, stream.cpu) = ("all CPUs".to_owned(), None);
            }
            stream.losses = records.losses;
            stream.losses.sort_by_key(|loss| (loss.to, loss.from));
            let mut packets: Vec<usize> = Vec::new();
            let mut at = 0;
            while let Some(RecordHead { size, time, .. }) = bytes.get(at..).and_then(RecordHead::read) {
                match (stream.packets.last_mut(), packets.last()) {
                    (Some(packet), Some(begin)) if at - begin < PACKET => {
                        (packet.end, packet.bytes) = (time, (at + size - begin) as u64);
                    }
                    _ => {
                        packets.push(at);
                        stream.packets.push(CpuPacket { begin: time, end: time, bytes: size as u64 });
                    }
                }
                at += size.max(HEAD);
            }
            cpus.push(CpuRecords { bytes, packets });
            cpu_streams.push(stream);
        }
        let storage = TranslatedStorage {
            format: self.format,
            name: self.name,
            cpus,
            threads: self.threads,
            frames: self.frames.names().collect(),
            kernel_symbols: self.frames.kernel_symbols(),
        };
        SealedTranslation { storage, schemas: self.schemas, cpu_streams, notices: self.notices }
    }
}

/// The places of records that follow one another.
pub(super) fn sized_records(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let RecordHead { size, .. } = bytes.get(at..).and_then(RecordHead::read)?;
        let begin = at;
        at += size.max(HEAD);
        Some(begin..begin + size)
    })
}

/// Records in order of time; those of one time keep their order.
fn sorted(bytes: &[u8]) -> Vec<u8> {
    let (mut places, mut at) = (Vec::new(), 0);
    while let Some(RecordHead { size, time, .. }) = bytes.get(at..).and_then(RecordHead::read) {
        places.push((time, at, size));
        at += size.max(HEAD);
    }
    places.sort_by_key(|(time, at, _)| (*time, *at));
    let mut out = Vec::with_capacity(bytes.len());
    for (_, at, size) in places {
        out.extend_from_slice(bytes.get(at..at + size).unwrap_or(&[]));
    }
    out
}
