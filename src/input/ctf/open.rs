//! Opening a trace: metadata to schema, directory to streams, packets to their order, counters to losses.

use super::packet::{Hops, Line, Place, agrees, has_role, hop, outline, read_index, size_of_role};
use super::reader::Ids;
use super::schema::{Role, Schema};
use super::{Chunk, Class, ClockLine, Directory, OpenError, Packet, Places, Stream, StreamFile, Trace};
use crate::base::notice::{Notice, Notices};
use crate::base::time::Ns;
use crate::input::ctf::packet::Preludes;
use crate::input::mapped::Mapped;
use crate::input::record::{Projection, StreamId};
use std::path::Path;
use std::sync::Arc;

/// How far streams are looked into when a trace is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Believe an index that fits its file; for those who read no events.
    Outline,
    /// Look at the header of each packet.
    Headers,
}

/// A stream file that was looked through.
struct Found {
    file: u32,
    class: usize,
    instance: Option<u64>,
    places: Vec<Place>,
}

impl Trace {
    /// Open a trace that was recorded in several directories, in this order.
    pub fn open_chunks<'d>(directories: impl IntoIterator<Item = &'d Directory>, how: How) -> Result<Trace, OpenError> {
        let mut trace: Option<Trace> = None;
        let mut found = Vec::new();
        for directory in directories {
            match &mut trace {
                None => trace = Some(Trace::bare(directory)),
                Some(trace) => trace.join(directory),
            }
            if let Some(trace) = &mut trace {
                trace.find_streams(&directory.path, how, &mut found)?;
            }
        }
        let mut trace = trace.ok_or_else(|| OpenError("no trace was named".to_owned()))?;
        trace.make_classes();
        trace.group(found);
        trace.tell_streams();
        trace.follow_clocks();
        Ok(trace)
    }

    fn bare(directory: &Directory) -> Trace {
        let Directory { path, schema, .. } = directory;
        let chunk = Chunk::new(path, schema, (0..schema.streams.len()).collect());
        let mut notices = Notices::default();
        for oddity in &schema.oddities {
            notices.add(Notice::SchemaLenient, 1, || format!("{}: {}", path.join("metadata").display(), oddity.what));
        }
        Trace {
            schema: schema.clone(),
            chunks: vec![chunk],
            files: Vec::new(),
            places: Vec::new(),
            classes: Vec::new(),
            ids: Vec::new(),
            streams: Vec::new(),
            notices,
        }
    }

    /// Add a chunk's schema: equal stream classes are one, and get the event classes they lack.
    fn join(&mut self, directory: &Directory) {
        let schema = &directory.schema;
        let mut chunk = Chunk::new(&directory.path, schema, Vec::new());
        let joined = Arc::make_mut(&mut self.schema);
        joined.slots = joined.slots.max(schema.slots);
        for theirs in &schema.streams {
            let same = |ours: &super::schema::StreamClass| {
                ours.id == theirs.id
                    && ours.clock == theirs.clock
                    && ours.packet_context == theirs.packet_context
                    && ours.event_header == theirs.event_header
                    && ours.common_context == theirs.common_context
                    && theirs
                        .events
                        .iter()
                        .all(|e| ours.events.iter().find(|o| o.id == e.id).is_none_or(|o| Arc::ptr_eq(o, e) || o == e))
            };
            match joined.streams.iter().position(same) {
                Some(place) => {
                    chunk.streams.push(place);
                    if let Some(ours) = joined.streams.get_mut(place) {
                        let known: foldhash::HashSet<u64> = ours.events.iter().map(|e| e.id).collect();
                        ours.events.extend(theirs.events.iter().filter(|e| !known.contains(&e.id)).cloned());
                    }
                }
                None => {
                    chunk.streams.push(joined.streams.len());
                    joined.streams.push(theirs.clone());
                }
            }
        }
        self.chunks.push(chunk);
    }

    fn make_classes(&mut self) {
        for (number, stream) in self.schema.streams.iter().enumerate() {
            let has_id = has_role(stream.event_header.as_ref(), Role::EventClass);
            self.ids.push(Ids::new(&stream.events, self.classes.len(), has_id));
            let class = |event: &Arc<super::schema::EventClass>| Class {
                name: event.name.as_deref().unwrap_or("").to_owned(),
                stream_class: number as u32,
            };
            self.classes.extend(stream.events.iter().map(class));
        }
    }

    /// Look through the files of a directory.
    fn find_streams(&mut self, path: &Path, how: How, found: &mut Vec<Found>) -> Result<(), OpenError> {
        let chunk = self.chunks.len() - 1;
        let unreadable = |e: std::io::Error| OpenError(format!("{}: {e}", path.display()));
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name != "metadata" && !name.starts_with('.') && !entry.path().is_dir() {
                names.push(name);
            }
        }
        names.sort_unstable();
        let indexed = path.join("index").is_dir();
        for name in names {
            let full = path.join(&name);
            let mapped = match Mapped::open(&full) {
                Ok(mapped) => mapped,
                Err(e) => {
                    self.notices.add(Notice::DamagedStream, 1, || format!("{}: {e}", full.display()));
                    continue;
                }
            };
            if mapped.bytes().is_empty() {
                continue;
            }
            let Some(chunk_info) = self.chunks.get(chunk) else { continue };
            let index = Mapped::open(&path.join("index").join(format!("{name}.idx"))).ok();
            let entries = index.and_then(|index| read_index(index.bytes()));
            let (preludes, slots) = (&chunk_info.preludes, self.schema.slots);
            let known = entries.as_ref().filter(|_| how == How::Outline);
            let outlined = known.and_then(|entries| outline(preludes, slots, mapped.bytes(), entries));
            let Hops { places, first, damage } = outlined.unwrap_or_else(|| hop(preludes, slots, mapped.bytes()));
            if let Some((offset, damage)) = damage {
                let what = if places.is_empty() { Notice::DamagedStream } else { Notice::DamagedPacket };
                self.notices.add(what, 1, || {
                    format!(
                        "{}: packet {} at byte {offset}, bit {}: {}",
                        full.display(),
                        places.len(),
                        damage.at,
                        damage.what
                    )
                });
            }
            match entries {
                Some(entries) if agrees(&entries, &places) => {}
                Some(_) => self.notices.add(Notice::IndexStale, 1, || full.display().to_string()),
                None if indexed => self.notices.add(Notice::IndexMissing, 1, || full.display().to_string()),
                None => {}
            }
            let Some(first) = first else { continue };
            if first.foreign {
                self.notices.add(Notice::ForeignUuid, 1, || full.display().to_string());
            }
            let class = chunk_info.streams.get(first.stream).copied().unwrap_or(0);
            let file = self.files.len() as u32;
            self.files.push(StreamFile { mapped, name, chunk });
            found.push(Found { file, class, instance: first.get(Role::StreamInstance), places });
        }
        Ok(())
    }

    /// Files of one stream together, in the order of their packets; streams in the order of ALGORITHMS section 1.
    fn group(&mut self, found: Vec<Found>) {
        let name = |f: &Found| self.files.get(f.file as usize).map_or("", |file| file.name.as_str());
        let mut groups: Vec<Vec<Found>> = Vec::new();
        for file in found {
            let same = |group: &&mut Vec<Found>| {
                group.first().is_some_and(|first| {
                    first.class == file.class
                        && first.instance == file.instance
                        && (file.instance.is_some() || name(first) == name(&file))
                })
            };
            match groups.iter_mut().find(same) {
                Some(group) => group.push(file),
                None => groups.push(vec![file]),
            }
        }
        for group in &mut groups {
            group.sort_by_key(|f| f.places.first().and_then(|p| p.begin));
        }
        let id = |f: &Found| self.schema.streams.get(f.class).map_or(0, |s| s.id);
        groups.sort_by_cached_key(|group| group.first().map(|f| (id(f), f.instance, name(f).to_owned(), f.class)));
        for group in groups {
            let mut places: Places = Vec::new();
            let (mut stream_name, mut class) = (String::new(), 0);
            for (i, found) in group.into_iter().enumerate() {
                if i == 0 {
                    stream_name = name(&found).to_owned();
                    class = found.class;
                }
                places.extend(found.places.into_iter().map(|place| (found.file, place)));
            }
            let cpu = places.first().and_then(|(_, place)| place.cpu);
            self.places.push(places);
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

    /// Times of packets and losses, on the common time line as it is now.
    pub(super) fn tell_streams(&mut self) {
        let mut streams = std::mem::take(&mut self.streams);
        for (stream, places) in streams.iter_mut().zip(&self.places) {
            let class = stream.stream_class as usize;
            let ns = |file: u32, cycles: Option<u64>| {
                let chunk = self.files.get(file as usize)?.chunk;
                Some(self.line(chunk, class)?.common.ns(cycles?))
            };
            let packet = |(file, place): &(u32, Place)| Packet {
                begin: ns(*file, place.begin),
                end: ns(*file, place.end),
                bytes: place.content.div_ceil(8),
            };
            stream.packets = places.iter().map(packet).collect();
            let context = self.schema.streams.get(class).and_then(|s| s.packet_context.as_ref());
            let width = size_of_role(context, Role::Discarded);
            (stream.losses, stream.lost_packets) = losses(places, &stream.packets, width);
        }
        self.streams = streams;
    }

    /// Where packets do not say at which clock value they begin, it is what the packet before ended with.
    fn follow_clocks(&mut self) {
        for stream in 0..self.places.len() {
            let class = self.streams.get(stream).map_or(0, |s| s.stream_class as usize);
            let has_clock = self.schema.streams.get(class).is_some_and(|s| s.clock.is_some());
            let unknown = self.places.get(stream).is_some_and(|p| p.iter().any(|(_, place)| place.begin.is_none()));
            if !has_clock || !unknown {
                continue;
            }
            let clocks = self.clocks_at_begin(stream);
            for ((_, place), clock) in self.places.get_mut(stream).into_iter().flatten().zip(clocks) {
                if place.begin.is_none() {
                    place.clock = clock;
                }
            }
        }
    }

    fn clocks_at_begin(&self, stream: usize) -> Vec<u64> {
        let wanted = vec![Some(Vec::new()); self.classes.len()];
        let plan = self.compile(&Projection { wanted });
        let packets = self.places.get(stream).map_or(0, Vec::len);
        let mut reader = self.reader(&plan, StreamId::at(stream), 0..packets);
        reader.clocks_at_begin()
    }
}

impl Chunk {
    fn new(path: &Path, schema: &Schema, streams: Vec<usize>) -> Chunk {
        let line = |clock: &super::schema::Clock| ClockLine { common: Line::of(clock), clock: clock.clone() };
        let lines = schema.clocks.iter().map(line).collect();
        Chunk { path: path.to_owned(), preludes: Preludes::new(schema), streams, lines }
    }
}

/// Losses between packets: growth of the counter of discarded events, and gaps in the packets' numbers.
fn losses(places: &Places, packets: &[Packet], width: u8) -> (Vec<(Ns, Ns, Option<u64>)>, u64) {
    let mut losses = Vec::new();
    let mut lost_packets = 0u64;
    let mask = if width >= 64 { u64::MAX } else { (1 << width) - 1 };
    let mut before: Option<(&Place, &Packet)> = None;
    for ((_, place), packet) in places.iter().zip(packets) {
        let from = before.and_then(|(_, p)| p.end).unwrap_or(Ns::MIN);
        let to = packet.end.unwrap_or(Ns::MAX);
        if let Some(now) = place.discarded {
            let then = before.and_then(|(place, _)| place.discarded);
            let grown = then.map_or(0, |then| now.wrapping_sub(then) & mask);
            if grown > 0 {
                losses.push((from, to, Some(grown)));
            }
        }
        if let (Some(now), Some(then)) = (place.sequence, before.and_then(|(p, _)| p.sequence)) {
            let gap = now.wrapping_sub(then).wrapping_sub(1);
            if now > then && gap > 0 {
                lost_packets = lost_packets.saturating_add(gap);
                losses.push((from, packet.begin.unwrap_or(to), None));
            }
        }
        before = Some((place, packet));
    }
    (losses, lost_packets)
}
