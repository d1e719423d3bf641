//! Joins stream files to streams: their order, the times of their packets, their losses.

use super::packet::PacketRange;
use super::plan::CtfPlan;
use super::reader::{CarriedClocks, CtfReader};
use super::roles::size_of_role;
use super::schema::Role;
use super::trace::{CtfTrace, StreamPacket};
use crate::base::notice::Notice;
use crate::base::time::Timestamp;
use crate::input::record::{Projection, StreamId};
use crate::input::stream::{Loss, Packet, Stream};
use foldhash::HashMap;

/// The packets of one stream file.
pub(super) struct FilePackets {
    pub(super) file: u32,
    pub(super) class: usize,
    pub(super) instance: Option<u64>,
    pub(super) packets: Vec<PacketRange>,
}

impl CtfTrace {
    /// Groups the files of each stream, in the order of their packets; streams in the order of ALGORITHMS.md section 1.
    pub(super) fn group(&mut self, found: Vec<FilePackets>) {
        let name = |f: &FilePackets| self.files.get(f.file as usize).map_or("", |file| file.name.as_str());
        let mut groups: Vec<Vec<FilePackets>> = Vec::new();
        // If packets name their stream instance, the file name may change from file to file.
        let mut known: HashMap<(usize, Option<u64>, Option<&str>), usize> = HashMap::default();
        for file in found {
            let key = (file.class, file.instance, file.instance.is_none().then(|| name(&file)));
            let at = *known.entry(key).or_insert(groups.len());
            match groups.get_mut(at) {
                Some(group) => group.push(file),
                None => groups.push(vec![file]),
            }
        }
        for group in &mut groups {
            group.sort_by_key(|f| f.packets.first().and_then(|p| p.begin));
        }
        let id = |f: &FilePackets| self.schema.streams.get(f.class).map_or(0, |s| s.id);
        groups.sort_by_cached_key(|group| group.first().map(|f| (id(f), f.instance, name(f).to_owned(), f.class)));
        for group in groups {
            let mut packets = Vec::new();
            let (mut stream_name, mut class) = (String::new(), 0);
            for (i, found) in group.into_iter().enumerate() {
                if i == 0 {
                    stream_name = name(&found).to_owned();
                    class = found.class;
                }
                packets.extend(found.packets.into_iter().map(|range| StreamPacket { file: found.file, range }));
            }
            let cpu = packets.first().and_then(|packet: &StreamPacket| packet.range.cpu);
            self.packets.push(packets);
            self.streams.push(Stream {
                name: stream_name,
                stream_class: class as u32,
                cpu,
                packets: Vec::new(),
                losses: Vec::new(),
                lost_packets: 0,
            });
        }
    }

    /// Set the times of packets and losses, on the common time line as it is now.
    pub(super) fn time_packets(&mut self) {
        let mut streams = std::mem::take(&mut self.streams);
        for (stream, recorded) in streams.iter_mut().zip(&self.packets) {
            let class = stream.stream_class as usize;
            stream.packets = recorded.iter().map(|packet| self.timed(class, packet)).collect();
            let context = self.schema.streams.get(class).and_then(|s| s.packet_context.as_ref());
            let width = size_of_role(context, Role::Discarded);
            (stream.losses, stream.lost_packets) = losses(recorded, &stream.packets, width);
        }
        self.streams = streams;
    }

    /// A packet of a stream class with its times.
    fn timed(&self, class: usize, StreamPacket { file, range }: &StreamPacket) -> Packet {
        let file = self.files.get(*file as usize);
        let clock = file.and_then(|file| self.chunk_clock(file.chunk, class)).map(|clock| clock.common);
        Packet {
            begin: clock.zip(range.begin).map(|(clock, cycles)| clock.ns(cycles)),
            end: clock.zip(range.end).map(|(clock, cycles)| clock.ns(cycles)),
            bytes: range.content.div_ceil(8),
        }
    }

    /// Where packets do not record the clock at their beginning, carry the clock from packet to packet.
    pub(super) fn follow_clocks(&mut self) {
        for stream in 0..self.packets.len() {
            let class = self.streams.get(stream).map_or(0, |s| s.stream_class as usize);
            let has_clock = self.schema.streams.get(class).is_some_and(|s| s.clock.is_some());
            let unknown = self.packets.get(stream).is_some_and(|all| all.iter().any(|p| p.range.begin.is_none()));
            if !has_clock || !unknown {
                continue;
            }
            let CarriedClocks { clocks, jumps_back } = self.clocks_at_begin(stream);
            if jumps_back {
                let name = self.streams.get(stream).map_or_else(String::new, |stream| stream.name.clone());
                self.notices.add(Notice::ClockJumpsBack, 1, || name);
            }
            for (packet, clock) in self.packets.get_mut(stream).into_iter().flatten().zip(clocks) {
                if packet.range.begin.is_none() {
                    packet.range.clock = clock;
                }
            }
        }
    }

    fn clocks_at_begin(&self, stream: usize) -> CarriedClocks {
        let wanted = vec![Some(Vec::new()); self.tables.classes.len()];
        let plan = CtfPlan::new(self, &Projection { wanted });
        let packets = self.packets.get(stream).map_or(0, Vec::len);
        let mut reader = CtfReader::new(self, &plan, StreamId::at(stream), 0..packets);
        reader.clocks_at_begin()
    }
}

/// Losses between packets, and the number of missing packets: growth of the counter of discarded events, which has
/// `width` bits, and gaps in the packets' numbers.
fn losses(recorded: &[StreamPacket], packets: &[Packet], width: u8) -> (Vec<Loss>, u64) {
    let mut losses = Vec::new();
    let mut lost_packets = 0u64;
    let mask = if width >= 64 { u64::MAX } else { (1 << width) - 1 };
    let mut previous: Option<(&PacketRange, &Packet)> = None;
    for (StreamPacket { range, .. }, packet) in recorded.iter().zip(packets) {
        let from = previous.and_then(|(_, p)| p.end).unwrap_or(Timestamp::MIN);
        let to = packet.end.unwrap_or(Timestamp::MAX);
        if let Some(now) = range.discarded {
            let then = previous.and_then(|(range, _)| range.discarded);
            let growth = then.map_or(0, |then| now.wrapping_sub(then) & mask);
            if growth > 0 {
                losses.push(Loss { from, to, events: Some(growth) });
            }
        }
        if let (Some(now), Some(then)) = (range.sequence, previous.and_then(|(range, _)| range.sequence)) {
            let gap = now.wrapping_sub(then).wrapping_sub(1);
            if now > then && gap > 0 {
                lost_packets = lost_packets.saturating_add(gap);
                losses.push(Loss { from, to: packet.begin.unwrap_or(to), events: None });
            }
        }
        previous = Some((range, packet));
    }
    (losses, lost_packets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ctx::Ctx;
    use crate::input::{self, Argument, Opened};

    const METADATA: &str = "/* CTF 1.8 */
        trace { major = 1; minor = 8; byte_order = le; }; clock { name = c; };
        stream { event.header := struct { integer { size = 64; map = clock.c.value; } timestamp; }; };
        event { name = e; };";

    #[test]
    fn clock_that_jumps_back_is_told() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("metadata"), METADATA).unwrap();
        for (times, expected) in [([5u64, 9, 12], 0), ([5, 9, 3], 1)] {
            let bytes: Vec<u8> = times.iter().flat_map(|time| time.to_le_bytes()).collect();
            std::fs::write(folder.path().join("stream"), bytes).unwrap();
            let argument = Argument::new(folder.path().to_owned());
            let Ok(Opened::Traces(sources)) = input::open(&[argument], &Ctx::new(1)) else { panic!("no trace") };
            assert_eq!(sources[0].trace.notices().count(Notice::ClockJumpsBack), expected, "{times:?}");
        }
    }
}
