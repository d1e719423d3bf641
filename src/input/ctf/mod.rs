//! The Common CtfTrace Format, 1.8 and 2: a directory of streams and its metadata, opened, indexed, decoded.
//!
//! ```text
//! metadata -> tsdl / json -> schema -> locate -> plan -> decode -> reader -> records
//! stream files, index files -> packet -> table of packets --------^
//! ```
//! [`CtfTrace::open`] reads metadata, packet indexes and packet headers. [`CtfTrace::compile`] turns a projection into a
//! decode plan; [`CtfTrace::reader`] runs the plan over a run of packets of one stream. DecodeError ends a packet, never a trace.
//!
//! A trace may be recorded in several directories (the chunks of a rotated session): their schemas are joined, and
//! streams go on from one to the next.

mod compile;
mod decode;
mod directory;
mod extent;
mod json;
mod locate;
mod metadata;
mod open;
mod packet;
mod plan;
mod reader;
mod real;
mod schema;
mod steps;
mod stride;
mod tsdl;

pub use decode::{DecodeError, DecodeErrorKind, Sink};
pub use directory::Directory;
pub use open::{How, Opening, open_all};
pub use plan::CtfPlan;
pub use reader::CtfReader;
pub use real::Real;
pub use steps::{FieldNode, FieldShape, NumberFormat, RangeLabels};

use super::record::{ClassId, Projection, Scope, StreamId};
use super::stream::{Class, Stream};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::mapped::Mapped;
use crate::base::notice::{Notice, Notices};
use crate::base::time::{Ns, Shift, canonical_ns};
use packet::{ClockTransform, PacketHeaderReader, PacketRange};
use schema::{Count, Field, Kind, Schema, StreamClass};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why a directory is not a readable trace: one line with file, place, expectation and remedy.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct OpenError(pub String);

/// What was left out, and where and why in words.
pub type LeftOut = (Notice, String);

impl From<Cancelled> for OpenError {
    fn from(cancelled: Cancelled) -> Self {
        OpenError(cancelled.to_string())
    }
}

/// A metadata file and what was compiled from it.
#[derive(Debug)]
struct Chunk {
    path: PathBuf,
    headers: PacketHeaderReader,
    /// The stream class of the joined schema for each of its own.
    streams: Vec<usize>,
    /// For each of its clocks: the way to the common time line, and its own as recorded.
    lines: Vec<ChunkClock>,
}

#[derive(Debug)]
struct ChunkClock {
    clock: schema::Clock,
    common: ClockTransform,
}

/// A file of packets.
#[derive(Debug)]
struct StreamFile {
    mapped: Mapped,
    name: String,
    chunk: usize,
}

/// The packets of a stream: position of the file, and where in it.
type Places = Vec<(u32, PacketRange)>;

/// An opened trace.
#[derive(Debug)]
pub struct CtfTrace {
    schema: Arc<Schema>,
    chunks: Vec<Chunk>,
    files: Vec<StreamFile>,
    places: Vec<Places>,
    classes: Vec<Class>,
    ids: Vec<reader::EventIds>,
    /// By stream class: its first record class.
    firsts: Vec<usize>,
    streams: Vec<Stream>,
    notices: Notices,
    /// The first file or folder that could not be opened, and why.
    unopened: Option<String>,
}

impl CtfTrace {
    /// Open a trace directory (one that holds `metadata`).
    pub fn open(path: &Path) -> Result<CtfTrace, OpenError> {
        let ctx = Ctx::new(1);
        let directories: Result<Vec<Directory>, OpenError> =
            Directory::read_all(vec![path.to_owned()], &ctx)?.into_iter().collect();
        let opening = Opening::of(&directories?)?;
        open_all(vec![opening], How::Headers, &ctx)?.pop().ok_or_else(|| OpenError("no trace was named".to_owned()))
    }

    /// Record classes by [`ClassId`].
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// True where records of the class can have the field.
    pub fn has_field(&self, class: ClassId, scope: Scope, dotted: &str) -> bool {
        self.root(class, scope).is_some_and(|root| has_path(root, Some(dotted)))
    }

    /// Names of the payload's direct members that are integers (`true`) or text (`false`).
    pub fn payload_fields(&self, class: ClassId) -> impl Iterator<Item = (&str, bool)> {
        self.fields(class, Scope::Payload)
    }

    /// The same of the contexts.
    pub fn context_fields(&self, class: ClassId) -> impl Iterator<Item = (&str, bool)> {
        self.fields(class, Scope::CommonContext).chain(self.fields(class, Scope::SpecificContext))
    }

    fn fields(&self, class: ClassId, scope: Scope) -> impl Iterator<Item = (&str, bool)> {
        let members = match self.root(class, scope) {
            Some(Field { kind: Kind::Struct(members), .. }) => members.as_slice(),
            _ => &[],
        };
        members.iter().filter_map(|member| {
            let number = match &member.field.kind {
                Kind::Bits(_) | Kind::Variable { .. } => true,
                Kind::Text(_) | Kind::SizedText(..) => false,
                Kind::Array { element, .. } if matches!(&element.kind, Kind::Bits(bits) if bits.character) => false,
                _ => return None,
            };
            Some((member.name(), number))
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

    /// What was odd when the trace was opened, and what was cut off under our hands since: ask when all is read.
    pub fn notices(&self) -> Notices {
        let mut notices = self.notices.clone();
        for file in self.files.iter().filter(|file| file.mapped.lost()) {
            notices.add(Notice::MappingLost, 1, || file.name.clone());
        }
        notices
    }

    /// Something else that the user named cannot be opened.
    pub fn left_out(&mut self, (what, place): LeftOut) {
        self.notices.add(what, 1, || place);
    }

    /// Why nothing is left of it, where none of its files could be opened.
    pub fn nothing_left(&self) -> Option<&str> {
        self.unopened.as_deref().filter(|_| self.files.is_empty())
    }

    /// Compile a projection.
    pub fn compile(&self, projection: &Projection) -> CtfPlan {
        CtfPlan::new(self, projection)
    }

    /// Compile everything, for a reader that shows whole records.
    pub fn compile_whole(&self) -> CtfPlan {
        CtfPlan::whole(self)
    }

    /// Read some packets of a stream.
    pub fn reader<'a>(&'a self, plan: &'a CtfPlan, stream: StreamId, packets: Range<usize>) -> CtfReader<'a> {
        CtfReader::new(self, plan, stream, packets)
    }

    /// The time of a clock value in a packet as `dump --canonical` tells it: with the offset that the packet's own
    /// metadata gives, in double precision. `None`: the stream class has no clock; `Some(None)`: overflow.
    pub fn canonical_time(&self, stream: StreamId, packet: usize, cycles: u64) -> Option<Option<i64>> {
        let (file, _) = self.packet(stream, packet)?;
        let class = self.streams.get(stream.index())?.stream_class as usize;
        let clock = &self.line(file.chunk, class)?.clock;
        let ns = || {
            let seconds = i128::from(clock.offset_seconds) * 1_000_000_000;
            let offset = canonical_ns(clock.offset_cycles, clock.frequency)?;
            let value = canonical_ns(cycles, clock.frequency)?;
            i64::try_from(seconds + offset + value).ok()
        };
        Some(ns())
    }

    /// The time of a clock value in a packet, on the common time line. `None`: the stream class has no clock.
    pub fn exact_time(&self, stream: StreamId, packet: usize, cycles: u64) -> Option<Ns> {
        let (file, _) = self.packet(stream, packet)?;
        let class = self.streams.get(stream.index())?.stream_class as usize;
        Some(self.line(file.chunk, class)?.common.ns(cycles))
    }

    /// The CPU that a packet names.
    pub fn packet_cpu(&self, stream: StreamId, packet: usize) -> Option<u32> {
        self.packet(stream, packet).and_then(|(_, place)| place.cpu)
    }

    /// Lay the clocks whose uuids have an offset (in cycles from the origin) in another trace on that.
    pub fn set_clock_offsets(&mut self, offset: impl Fn(&str) -> Option<i128>) {
        let mut changed = false;
        for line in self.chunks.iter_mut().flat_map(|chunk| &mut chunk.lines) {
            if let Some(base) = line.clock.uuid.as_deref().and_then(&offset)
                && base != line.common.base
            {
                line.common.base = base;
                changed = true;
            }
        }
        if changed {
            self.tell_streams();
        }
    }

    /// Lay all clocks of the trace on another time line, which becomes the common one.
    pub fn shift_clocks(&mut self, shift: Shift) {
        for line in self.chunks.iter_mut().flat_map(|c| &mut c.lines) {
            line.common.shift = Some(shift);
        }
        self.tell_streams();
    }

    /// The uuids of the clocks, each with its first offset (in cycles from the origin).
    pub fn clock_offsets(&self) -> impl Iterator<Item = (&str, i128)> {
        let lines = self.chunks.iter().flat_map(|c| &c.lines);
        lines.filter_map(|line| Some((line.clock.uuid.as_deref()?, line.common.base)))
    }

    fn slots(&self) -> usize {
        self.schema.slots
    }

    fn packet(&self, stream: StreamId, number: usize) -> Option<(&StreamFile, &PacketRange)> {
        let (file, place) = self.places.get(stream.index())?.get(number)?;
        Some((self.files.get(*file as usize)?, place))
    }

    /// The way from a stream class's clock, as a chunk's metadata has it, to the common time line.
    fn line(&self, chunk: usize, class: usize) -> Option<&ChunkClock> {
        let clock = self.schema.streams.get(class)?.clock?;
        self.chunks.get(chunk)?.lines.get(clock)
    }

    /// "stream file, packet number, bit: what".
    fn place_in_words(&self, stream: StreamId, number: usize, error: DecodeError) -> String {
        let name = self.packet(stream, number).map_or("", |(file, _)| &file.name);
        let offset = self.packet(stream, number).map_or(0, |(_, place)| place.offset);
        let path = self.path().join(name);
        format!("{}: packet {number} at byte {offset}, bit {} of it: {}", path.display(), error.at, error.kind)
    }

    fn root(&self, class: ClassId, scope: Scope) -> Option<&Field> {
        let class_info = self.classes.get(class.index())?;
        let stream: &StreamClass = self.schema.streams.get(class_info.stream_class as usize)?;
        let first = self.firsts.get(class_info.stream_class as usize)?;
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
        (Kind::Array { element, count: Count::Fixed(_) | Count::Held(_), .. }, None) => {
            matches!(element.kind, Kind::Bits(_))
        }
        (_, None) => true,
    }
}
