//! An opened trace: its schema, its files and the packets of each stream.

use super::clock::CycleScale;
use super::decode::DecodeError;
use super::ids::EventIds;
use super::packet::{PacketHeaderReader, PacketRange};
use super::schema::{Clock, Count, Field, Kind, Schema, StreamClass};
use crate::base::heap::block;
use crate::base::mapped::Mapped;
use crate::base::notice::Notices;
use crate::input::record::{ClassId, Scope, StreamId};
use crate::input::stream::{Class, SimpleField, Stream};
use get_size2::GetSize;
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
#[derive(Debug, GetSize)]
pub(super) struct StreamPacket {
    /// Position of its file in [`CtfTrace::files`].
    pub(super) file: u32,
    /// Its place in the file, and the values of its header.
    pub(super) range: PacketRange,
}

/// The record classes of a schema, in the order of its stream classes.
#[derive(Debug, Default, GetSize)]
pub(super) struct ClassTables {
    pub(super) classes: Vec<Class>,
    /// By stream class.
    pub(super) ids: Vec<EventIds>,
    /// By stream class: its first record class.
    pub(super) firsts: Vec<usize>,
}

/// An opened trace.
#[derive(Debug, GetSize)]
pub struct CtfTrace {
    #[get_size(ignore)]
    pub(super) schema: Arc<Schema>,
    #[get_size(size_fn = block)]
    pub(super) chunks: Vec<Chunk>,
    #[get_size(size_fn = block)]
    pub(super) files: Vec<StreamFile>,
    /// By stream: its packets in order.
    pub(super) packets: Vec<Vec<StreamPacket>>,
    /// Shared by the traces that share the schema.
    #[get_size(ignore)]
    pub(super) tables: Arc<ClassTables>,
    pub(super) streams: Vec<Stream>,
    #[get_size(ignore)]
    pub(super) notices: Notices,
    /// The first file or folder that could not be opened, and why.
    pub(super) unopened: Option<String>,
}

impl CtfTrace {
    pub(super) fn fields(&self, class: ClassId, scope: Scope) -> impl Iterator<Item = SimpleField<'_>> {
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

    /// The directory of the (first) metadata.
    pub fn path(&self) -> &Path {
        self.chunks.first().map_or(Path::new(""), |c| &c.path)
    }

    /// The reason, where none of its files could be opened.
    pub fn nothing_left(&self) -> Option<&str> {
        self.unopened.as_deref().filter(|_| self.files.is_empty())
    }

    /// The clock of a packet, as the metadata of its chunk gives it.
    pub(super) fn clock(&self, stream: StreamId, packet: usize) -> Option<&ChunkClock> {
        let (file, _) = self.packet(stream, packet)?;
        let class = self.streams.get(stream.index())?.stream_class as usize;
        self.chunk_clock(file.chunk, class)
    }

    /// Equal for traces that share their schema, and with it their record classes.
    pub(super) fn schema_address(&self) -> usize {
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

    pub(super) fn root(&self, class: ClassId, scope: Scope) -> Option<&Field> {
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

pub(super) fn has_path(field: &Field, dotted: Option<&str>) -> bool {
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
