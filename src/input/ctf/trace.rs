//! An opened trace: its schema, its files and the packets of each stream.

use super::clock::CycleScale;
use super::decode::DecodeError;
use super::ids::EventIds;
use super::packet::{PacketHeaderReader, PacketRange};
use super::schema::{Clock, Count, Field, Kind, Schema, StreamClass};
use crate::base::mapped::Mapped;
use crate::base::notice::{Notice, Notices};
use crate::base::time::{Ns, Timestamp};
use crate::input::error::LeftOut;
use crate::input::record::{ClassId, Scope, StreamId};
use crate::input::stream::{CanonicalTime, Class, SimpleField, Stream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A metadata file and what was compiled from it.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) path: PathBuf,
    pub(super) headers: PacketHeaderReader,
    /// The stream class of the joined schema for each of its own.
    pub(super) streams: Vec<usize>,
    pub(super) clocks: Vec<ChunkClock>,
}

/// A clock of a chunk.
#[derive(Debug)]
pub(super) struct ChunkClock {
    /// As the chunk's metadata describes it.
    pub(super) clock: Clock,
    /// From its cycles to the common time line.
    pub(super) common: CycleScale,
}

/// A file of packets.
#[derive(Debug)]
pub(super) struct StreamFile {
    pub(super) mapped: Mapped,
    pub(super) name: String,
    pub(super) chunk: usize,
}

/// A packet of a stream.
#[derive(Debug)]
pub(super) struct StreamPacket {
    /// Position of its file in [`CtfTrace::files`].
    pub(super) file: u32,
    /// Its place in the file, and the values of its header.
    pub(super) range: PacketRange,
}

/// The record classes of a schema, in the order of its stream classes.
#[derive(Debug, Default)]
pub(super) struct ClassTables {
    pub(super) classes: Vec<Class>,
    /// By stream class.
    pub(super) ids: Vec<EventIds>,
    /// By stream class: its first record class.
    pub(super) firsts: Vec<usize>,
}

/// An opened trace.
#[derive(Debug)]
pub struct CtfTrace {
    pub(super) schema: Arc<Schema>,
    pub(super) chunks: Vec<Chunk>,
    pub(super) files: Vec<StreamFile>,
    /// By stream: its packets in order.
    pub(super) packets: Vec<Vec<StreamPacket>>,
    /// Shared by the traces that share the schema.
    pub(super) tables: Arc<ClassTables>,
    pub(super) streams: Vec<Stream>,
    pub(super) notices: Notices,
    /// The first file or folder that could not be opened, and why.
    pub(super) unopened: Option<String>,
}

impl CtfTrace {
    /// The files that hold its records.
    pub fn files(&self) -> Vec<&Mapped> {
        self.files.iter().map(|file| &file.mapped).collect()
    }

    /// Record classes by [`ClassId`].
    pub fn classes(&self) -> &[Class] {
        &self.tables.classes
    }

    /// True where records of the class can have the field.
    pub fn has_field(&self, class: ClassId, scope: Scope, dotted: &str) -> bool {
        self.root(class, scope).is_some_and(|root| has_path(root, Some(dotted)))
    }

    /// The direct members of the payload that are integers or texts.
    pub fn payload_fields(&self, class: ClassId) -> impl Iterator<Item = SimpleField<'_>> {
        self.fields(class, Scope::Payload)
    }

    /// The same of the contexts.
    pub fn context_fields(&self, class: ClassId) -> impl Iterator<Item = SimpleField<'_>> {
        self.fields(class, Scope::CommonContext).chain(self.fields(class, Scope::SpecificContext))
    }

    fn fields(&self, class: ClassId, scope: Scope) -> impl Iterator<Item = SimpleField<'_>> {
        let members = match self.root(class, scope) {
            Some(Field { kind: Kind::Struct(members), .. }) => members.as_slice(),
            _ => &[],
        };
        members.iter().filter_map(|member| {
            let is_integer = match &member.field.kind {
                Kind::Bits(_) | Kind::Variable { .. } => true,
                Kind::Text(_) | Kind::SizedText(..) => false,
                Kind::Array { element, .. } if matches!(&element.kind, Kind::Bits(bits) if bits.character) => false,
                _ => return None,
            };
            Some(SimpleField { name: member.name(), is_integer })
        })
    }

    /// Streams by [`StreamId`].
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// A member of the trace environment (`hostname`, `kernel_release`, `domain` ...), numbers as text.
    pub fn environment(&self, name: &str) -> Option<&str> {
        self.schema.environment.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// Uuid of the clock, where there is exactly one clock and it has one.
    pub fn clock_uuid(&self) -> Option<&str> {
        match self.schema.clocks.as_slice() {
            [clock] => clock.uuid.as_deref(),
            _ => None,
        }
    }

    /// Name of the clock, where there is exactly one.
    pub fn clock_name(&self) -> Option<&str> {
        match self.schema.clocks.as_slice() {
            [clock] => Some(&clock.name),
            _ => None,
        }
    }

    /// What the common time line adds to the monotonic clock, if that is the only one: LTTng's default.
    pub fn monotonic(&self) -> Option<Ns> {
        let [clock] = self.schema.clocks.as_slice() else { return None };
        let is_monotonic = clock.name == "monotonic" && clock.frequency == 1_000_000_000;
        is_monotonic.then(|| CycleScale::of(clock).ns(0).ns())
    }

    /// Uuid of the trace: equal in all chunks of a session.
    pub fn uuid(&self) -> Option<&str> {
        self.schema.uuid.as_deref()
    }

    /// Version of the format: 1 (1.8) or 2.
    pub fn version(&self) -> u8 {
        self.schema.version
    }

    /// The directory of the (first) metadata.
    pub fn path(&self) -> &Path {
        self.chunks.first().map_or(Path::new(""), |c| &c.path)
    }

    /// Irregularities found when the trace was opened, and files truncated since: ask after reading everything.
    pub fn notices(&self) -> Notices {
        let mut notices = self.notices.clone();
        for file in self.files.iter().filter(|file| file.mapped.lost()) {
            notices.add(Notice::MappingLost, 1, || file.name.clone());
        }
        notices
    }

    /// Add the notice that another of the named inputs was left out.
    pub fn left_out(&mut self, LeftOut { notice, place }: &LeftOut) {
        self.notices.add(*notice, 1, || place.clone());
    }

    /// The reason, where none of its files could be opened.
    pub fn nothing_left(&self) -> Option<&str> {
        self.unopened.as_deref().filter(|_| self.files.is_empty())
    }

    /// The time of a clock value in a packet as `dump --canonical` prints it: with the offset that the packet's own
    /// metadata gives, in double precision.
    pub fn canonical_time(&self, stream: StreamId, packet: usize, cycles: u64) -> CanonicalTime {
        let Some(clock) = self.clock(stream, packet) else { return CanonicalTime::NoClock };
        clock.clock.canonical(cycles).map_or(CanonicalTime::Overflow, CanonicalTime::At)
    }

    /// The time of a clock value in a packet, on the common time line. `None`: the stream class has no clock.
    pub fn exact_time(&self, stream: StreamId, packet: usize, cycles: u64) -> Option<Timestamp> {
        Some(self.clock(stream, packet)?.common.ns(cycles))
    }

    /// The clock of a packet, as the metadata of its chunk gives it.
    fn clock(&self, stream: StreamId, packet: usize) -> Option<&ChunkClock> {
        let (file, _) = self.packet(stream, packet)?;
        let class = self.streams.get(stream.index())?.stream_class as usize;
        self.chunk_clock(file.chunk, class)
    }

    /// The CPU that a packet names.
    pub fn packet_cpu(&self, stream: StreamId, packet: usize) -> Option<u32> {
        self.packet(stream, packet).and_then(|(_, place)| place.cpu)
    }

    /// Equal for traces that share their schema, and with it their record classes.
    pub fn schema_key(&self) -> usize {
        Arc::as_ptr(&self.schema).addr()
    }

    pub(super) fn slots(&self) -> usize {
        self.schema.slots
    }

    pub(super) fn packet(&self, stream: StreamId, number: usize) -> Option<(&StreamFile, &PacketRange)> {
        let packet = self.packets.get(stream.index())?.get(number)?;
        Some((self.files.get(packet.file as usize)?, &packet.range))
    }

    /// The clock of a stream class, as a chunk's metadata describes it.
    pub(super) fn chunk_clock(&self, chunk: usize, class: usize) -> Option<&ChunkClock> {
        let clock = self.schema.streams.get(class)?.clock?;
        self.chunks.get(chunk)?.clocks.get(clock)
    }

    /// "stream file, packet number, bit: what".
    pub(super) fn place_in_words(&self, stream: StreamId, number: usize, error: DecodeError) -> String {
        let name = self.packet(stream, number).map_or("", |(file, _)| &file.name);
        let offset = self.packet(stream, number).map_or(0, |(_, place)| place.offset);
        let path = self.path().join(name);
        format!("{}: packet {number} at byte {offset}, bit {} of it: {}", path.display(), error.at, error.kind)
    }

    fn root(&self, class: ClassId, scope: Scope) -> Option<&Field> {
        let class_info = self.tables.classes.get(class.index())?;
        let stream: &StreamClass = self.schema.streams.get(class_info.stream_class as usize)?;
        let first = self.tables.firsts.get(class_info.stream_class as usize)?;
        let event = stream.events.get(class.index() - first)?;
        match scope {
            Scope::CommonContext => stream.common_context.as_ref(),
            Scope::SpecificContext => event.specific_context.as_ref(),
            Scope::Payload => event.payload.as_ref(),
        }
    }
}

fn has_path(field: &Field, dotted: Option<&str>) -> bool {
    let names = dotted.map(|names| names.split_once('.').map_or((names, None), |(first, rest)| (first, Some(rest))));
    match (&field.kind, names) {
        (Kind::Optional { field, .. }, _) => has_path(field, dotted),
        (Kind::Struct(members), Some((first, rest))) => {
            members.iter().any(|m| m.name() == first && has_path(&m.field, rest))
        }
        (Kind::Variant { options, .. }, Some((first, rest))) => {
            options.iter().any(|o| o.name() == first && has_path(&o.field, rest))
        }
        (Kind::Struct(_) | Kind::Variant { .. }, None) | (_, Some(_)) => false,
        (Kind::Array { element, count: Count::Fixed(_) | Count::Recorded(_), .. }, None) => {
            matches!(element.kind, Kind::Bits(_))
        }
        (_, None) => true,
    }
}
