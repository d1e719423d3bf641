//! The table of a stream file's packets: from its index file, or by scanning from packet header to packet header.
//!
//! Both produce the same table of [`PacketRange`]s. Commands that read no events trust an index that covers the
//! file without gap ([`outline`]); before events are read, each packet header is read too, and where the index
//! disagrees with it the table is made by scanning. A header that cannot be read ends a chain of packets: the next
//! magic number begins a new one.

use super::compile::Compiler;
use super::decode::{DecodeError, DecodeErrorKind, Decoder, Sink, extend};
use super::orders::ByteOrders;
use super::real::Real;
use super::roles::{roles_of, size_of_role};
use super::schema::{Kind, Role, Schema, StreamClass};
use super::steps::Program;
use crate::base::cursor::{ByteOrder, Bytes};
use crate::input::record::IntegerArray;
use get_size2::GetSize;
use std::ops::Range;

/// The magic number of packets.
const MAGIC: u32 = 0xc1fc_1fc1;

/// The magic number of index files.
const INDEX_MAGIC: u32 = 0xc1f1_dcc1;

/// A packet: its place in the file, and the values of its header and context.
#[derive(Clone, Debug, PartialEq, GetSize)]
pub(super) struct PacketRange {
    /// Bytes from the beginning of the file.
    pub(super) offset: u64,
    /// Bytes of the packet that the file has.
    pub(super) bytes: u64,
    /// Bits of content, at most `bytes * 8`.
    pub(super) content: u64,
    /// Clock at the beginning and the end.
    pub(super) begin: Option<u64>,
    /// See `begin`.
    pub(super) end: Option<u64>,
    /// Clock before the first event.
    pub(super) clock: u64,
    /// The running counter of discarded events.
    pub(super) discarded: Option<u64>,
    /// The packet's number.
    pub(super) sequence: Option<u64>,
    /// The packet's CPU.
    pub(super) cpu: Option<u32>,
}

/// The values of a packet header and context.
#[derive(Clone, Debug)]
pub(super) struct PacketHeader {
    /// Position of the stream class.
    pub(super) stream: usize,
    values: [Option<u64>; Role::COUNT as usize],
    /// True where the header carries another uuid than the metadata.
    pub(super) foreign: bool,
}

impl PacketHeader {
    /// The value of the field with a role.
    pub(super) fn get(&self, role: Role) -> Option<u64> {
        self.values.get(role.slot() as usize).copied().flatten()
    }
}

/// The compiled packet header and contexts of one metadata.
#[derive(Debug)]
pub(super) struct PacketHeaderReader {
    program: Program,
    header: Range<u32>,
    header_roles: u32,
    uuid: Option<[u8; 16]>,
    /// Magic bytes at the beginning of a packet.
    magic: Option<[u8; 4]>,
    streams: Vec<Context>,
}

#[derive(Debug)]
struct Context {
    id: u64,
    steps: Range<u32>,
    roles: u32,
    end_size: u8,
}

/// The bytes of the magic number, if packets begin with one.
fn magic_of(schema: &Schema) -> Option<[u8; 4]> {
    let Kind::Struct(members) = &schema.packet_header.as_ref()?.kind else { return None };
    match &members.first()?.field.kind {
        Kind::Bits(bits) if bits.size == 32 && !bits.reversed && bits.saves.contains(&Role::Magic.slot()) => {
            Some(match bits.byte_order {
                ByteOrder::Little => MAGIC.to_le_bytes(),
                ByteOrder::Big => MAGIC.to_be_bytes(),
            })
        }
        _ => None,
    }
}

/// Remembers a uuid and nothing else.
#[derive(Default)]
struct UuidSeen<'a>(Option<&'a [u8]>);

impl<'a> Sink<'a> for UuidSeen<'a> {
    fn unsigned(&mut self, _: u32, _: u64) {}
    fn signed(&mut self, _: u32, _: i64) {}
    fn real(&mut self, _: u32, _: Real<'a>) {}
    fn text(&mut self, _: u32, _: &'a [u8], _: u8, _: ByteOrder) {}
    fn words(&mut self, _: u32, _: IntegerArray<'a>) {}
    fn blob(&mut self, _: u32, _: &'a [u8]) {}
    fn uuid(&mut self, bytes: &'a [u8]) {
        self.0 = Some(bytes);
    }
}

impl PacketHeaderReader {
    pub(super) fn new(schema: &Schema) -> Self {
        let mut compiler = Compiler::new(ByteOrders::Mixed);
        let header = compiler.packet_header(schema);
        let context = |stream: &StreamClass| Context {
            id: stream.id,
            steps: compiler.packet_context(stream),
            roles: roles_of(stream.packet_context.as_ref()),
            end_size: size_of_role(stream.packet_context.as_ref(), Role::End),
        };
        let streams = schema.streams.iter().map(context).collect();
        let header_roles = roles_of(schema.packet_header.as_ref());
        let magic = magic_of(schema);
        PacketHeaderReader { program: compiler.finish(), header, header_roles, uuid: schema.uuid_bytes, magic, streams }
    }

    /// Read the header and context of the packet that the decoder has entered.
    pub(super) fn read(&self, decoder: &mut Decoder<'_>) -> Result<PacketHeader, DecodeError> {
        let mut seen = UuidSeen::default();
        decoder.run(&self.program, self.header.clone(), &mut seen)?;
        let mut values = [None; Role::COUNT as usize];
        let mut take = |decoder: &Decoder<'_>, roles: u32| {
            for (slot, value) in values.iter_mut().enumerate().filter(|(slot, _)| roles >> slot & 1 == 1) {
                *value = decoder.slots.get(slot).copied();
            }
        };
        take(decoder, self.header_roles);
        let has = |role: Role| self.header_roles >> role.slot() & 1 == 1;
        if has(Role::Magic) && decoder.slot(Role::Magic.slot()) != u64::from(MAGIC) {
            return Err(DecodeError { at: 0, kind: DecodeErrorKind::Magic(decoder.slot(Role::Magic.slot())) });
        }
        let id = if has(Role::StreamClass) { Some(decoder.slot(Role::StreamClass.slot())) } else { None };
        let stream = match (id, self.streams.as_slice()) {
            (Some(id), streams) => streams.iter().position(|s| s.id == id),
            (None, [_]) => Some(0),
            (None, _) => None,
        };
        let stream =
            stream.ok_or(DecodeError { at: decoder.at, kind: DecodeErrorKind::NoStreamClass(id.unwrap_or(0)) })?;
        if let Some(context) = self.streams.get(stream) {
            decoder.run(&self.program, context.steps.clone(), &mut seen)?;
            take(decoder, context.roles);
        }
        let foreign = seen.0.is_some_and(|found| self.uuid.is_some_and(|expected| found != expected));
        Ok(PacketHeader { stream, values, foreign })
    }

    /// Offset of the next magic number, from byte `from` on.
    fn next_magic(&self, file: &[u8], from: u64) -> Option<u64> {
        let magic = self.magic.as_ref()?;
        let rest = file.get(usize::try_from(from).ok()?..)?;
        Some(from + memchr::memmem::find(rest, magic)? as u64)
    }

    /// The packet at `offset` of a file, with the decoder after its context.
    pub(super) fn place<'a>(
        &self,
        decoder: &mut Decoder<'a>,
        file: &'a [u8],
        offset: u64,
    ) -> Result<(PacketRange, PacketHeader), DecodeError> {
        let rest = usize::try_from(offset).ok().and_then(|o| file.get(o..)).unwrap_or(&[]);
        let left = rest.len() as u64 * 8;
        decoder.enter(rest);
        let header = self.read(decoder)?;
        let content = header.get(Role::ContentBits);
        let packet = header.get(Role::PacketBits).or(content).unwrap_or(left);
        let content = content.unwrap_or(packet);
        let sizes = DecodeError { at: decoder.at, kind: DecodeErrorKind::Sizes { content, packet, left } };
        if packet == 0 || packet % 8 != 0 || content > packet || content < decoder.at || packet < decoder.at {
            return Err(sizes);
        }
        let begin = header.get(Role::Begin).map(|_| decoder.clock);
        let end_size = self.streams.get(header.stream).map_or(64, |s| s.end_size);
        let end = header.get(Role::End).map(|end| extend(decoder.clock, end, end_size));
        let place = PacketRange {
            offset,
            bytes: packet.min(left) / 8,
            content,
            begin,
            end,
            clock: decoder.clock,
            discarded: header.get(Role::Discarded),
            sequence: header.get(Role::Sequence),
            cpu: header.get(Role::Cpu).and_then(|cpu| u32::try_from(cpu).ok()),
        };
        Ok((place, header))
    }
}

/// The packets of a file, and its faults.
pub(super) struct PacketTable {
    pub(super) packets: Vec<PacketRange>,
    /// Header of the first packet.
    pub(super) first: Option<PacketHeader>,
    /// The first header that cannot be read.
    pub(super) error: Option<UnreadableHeader>,
    /// The number of headers that cannot be read.
    pub(super) breaks: u64,
}

/// A packet header that cannot be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnreadableHeader {
    /// Bytes from the beginning of the file.
    pub(super) offset: u64,
    pub(super) error: DecodeError,
}

impl PacketTable {
    fn damaged(&mut self, offset: u64, error: DecodeError) {
        self.error.get_or_insert(UnreadableHeader { offset, error });
        self.breaks += 1;
    }
}

/// Goes from packet header to packet header. Behind a header that cannot be read, the next magic number is searched
/// for, if packets have one; otherwise the rest of the file is lost.
pub(super) fn scan_packets(headers: &PacketHeaderReader, slots: usize, file: &[u8]) -> PacketTable {
    let mut decoder = Decoder::new(slots);
    let mut table = PacketTable { packets: Vec::new(), first: None, error: None, breaks: 0 };
    let (mut offset, mut searching) = (0, false);
    while offset < file.len() as u64 {
        let error = match headers.place(&mut decoder, file, offset) {
            Ok((place, header)) => {
                let cut_off = header.get(Role::PacketBits).filter(|bits| *bits > place.bytes * 8);
                let first = table.first.get_or_insert_with(|| header.clone());
                if first.stream != header.stream {
                    DecodeError {
                        at: 0,
                        kind: DecodeErrorKind::NoStreamClass(header.get(Role::StreamClass).unwrap_or(0)),
                    }
                } else if let (Some(packet), true) = (cut_off, searching) {
                    // Data in the middle of a packet that equals the magic number.
                    DecodeError {
                        at: 0,
                        kind: DecodeErrorKind::Sizes { content: place.content, packet, left: place.bytes * 8 },
                    }
                } else {
                    if let Some(packet) = cut_off {
                        let sizes = DecodeErrorKind::Sizes { content: place.content, packet, left: place.bytes * 8 };
                        table.damaged(offset, DecodeError { at: 0, kind: sizes });
                    }
                    offset += place.bytes.max(1);
                    table.packets.push(place);
                    searching = false;
                    continue;
                }
            }
            Err(error) => error,
        };
        if !searching {
            table.damaged(offset, error);
        }
        match headers.next_magic(file, offset + 1) {
            Some(next) => (offset, searching) = (next, true),
            None => break,
        }
    }
    table
}

/// An entry of an index file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) offset: u64,
    pub(super) packet: u64,
    pub(super) content: u64,
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) discarded: u64,
    pub(super) stream: u64,
    /// The packet's number; version 1.1.
    pub(super) sequence: Option<u64>,
}

/// The entries of an index file (all big-endian; 7 numbers an entry, 9 since version 1.1); `None` where the bytes are
/// not an index file.
pub(super) fn read_index(bytes: &[u8]) -> Option<Vec<Entry>> {
    let mut header = Bytes::new(bytes);
    let magic = header.u32(ByteOrder::Big)?;
    let major = header.u32(ByteOrder::Big)?;
    let _minor = header.u32(ByteOrder::Big)?;
    let entry_bytes = usize::try_from(header.u32(ByteOrder::Big)?).ok()?;
    if magic != INDEX_MAGIC || major != 1 || entry_bytes < 56 || !header.rest().len().is_multiple_of(entry_bytes) {
        return None;
    }
    let entry = |bytes: &[u8]| {
        let mut numbers = Bytes::new(bytes);
        Some(Entry {
            offset: numbers.u64(ByteOrder::Big)?,
            packet: numbers.u64(ByteOrder::Big)?,
            content: numbers.u64(ByteOrder::Big)?,
            begin: numbers.u64(ByteOrder::Big)?,
            end: numbers.u64(ByteOrder::Big)?,
            discarded: numbers.u64(ByteOrder::Big)?,
            stream: numbers.u64(ByteOrder::Big)?,
            sequence: numbers.u64(ByteOrder::Big).and_then(|_instance| numbers.u64(ByteOrder::Big)),
        })
    };
    header.rest().chunks_exact(entry_bytes).map(entry).collect()
}

impl Entry {
    /// True where the entry agrees with the packet itself.
    fn agrees(&self, place: &PacketRange) -> bool {
        self.offset == place.offset
            && self.packet == place.bytes * 8
            && self.content == place.content
            && place.begin.is_none_or(|begin| begin == self.begin)
            && place.end.is_none_or(|end| end == self.end)
            && place.discarded.is_none_or(|n| n == self.discarded)
    }
}

/// True where an index agrees with the packets.
pub(super) fn agrees(entries: &[Entry], places: &[PacketRange]) -> bool {
    entries.len() == places.len() && entries.iter().zip(places).all(|(entry, place)| entry.agrees(place))
}

/// The packets of a file from its index, if the index can be trusted after reading the first packet alone: the packets
/// cover the file without a gap, their times ascend, and the index has a value for each field of this class's packets.
pub(super) fn outline(
    headers: &PacketHeaderReader,
    slots: usize,
    file: &[u8],
    entries: &[Entry],
) -> Option<PacketTable> {
    let (place, first) = headers.place(&mut Decoder::new(slots), file, 0).ok()?;
    if !entries.first()?.agrees(&place) || place.begin.is_none() || place.end.is_none() {
        return None;
    }
    let (mut offset, mut time) = (0, 0);
    let mut places = Vec::with_capacity(entries.len());
    for entry in entries {
        let believable = entry.offset == offset
            && entry.packet > 0
            && entry.packet.is_multiple_of(8)
            && entry.content <= entry.packet
            && time <= entry.begin
            && entry.begin <= entry.end
            && first.get(Role::StreamClass).is_none_or(|id| id == entry.stream)
            && (place.sequence.is_none() || entry.sequence.is_some());
        if !believable {
            return None;
        }
        (offset, time) = (offset.checked_add(entry.packet / 8)?, entry.begin);
        places.push(PacketRange {
            offset: entry.offset,
            bytes: entry.packet / 8,
            content: entry.content,
            begin: Some(entry.begin),
            end: Some(entry.end),
            clock: entry.begin,
            discarded: place.discarded.map(|_| entry.discarded),
            sequence: place.sequence.and(entry.sequence),
            cpu: place.cpu,
        });
    }
    (offset == file.len() as u64).then_some(PacketTable { packets: places, first: Some(first), error: None, breaks: 0 })
}
