//! Reads the file `metadata` into a schema: joins packets to a text, calls the reader of the text's version, and binds
//! lengths and selectors.
//!
//! Metadata is plain text, or packets of 37 bytes of header and a body each (CTF 1.8.3, section 7.1; CTF 2.0,
//! section 5); the magic number decides. Errors in the text have a line and column and the chain of constructs around
//! them; errors in the packets have a byte offset.

use super::error::{LineTable, MetadataError, MetadataTextError, MetadataWarning};
use super::locate;
use super::schema::Schema;
use super::{json, tsdl};
use crate::base::allocator::try_reserve;
use crate::base::cursor::{ByteOrder, Bytes};
use std::io;
use tsdl::Known;

const MAGIC: u32 = 0x75d1_1d57;
const HEADER_BYTES: usize = 37;

/// The text of a metadata file, joined from its packets where it has some. Always a copy: another process may write to
/// the file, and bytes that were checked to be UTF-8 must not change afterwards.
#[derive(Debug)]
pub(super) struct Text {
    text: String,
    /// The file holds plain text, without packets.
    plain: bool,
    trailing: Option<TrailingBytes>,
}

/// Bytes after the last packet of a metadata file.
#[derive(Clone, Copy, Debug)]
struct TrailingBytes {
    /// The byte of the file at which they begin.
    at: usize,
    bytes: usize,
}

/// The reason why a metadata file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum MetadataFileError {
    /// The system refuses it.
    #[error("{0}")]
    Io(io::Error),
    /// There is no memory for a copy.
    #[error("not enough memory for its {0} bytes")]
    Memory(usize),
    /// It is not text.
    #[error("byte {0} is not UTF-8 text")]
    NotUtf8(usize),
    /// A packet has an error.
    #[error("byte {at}: {error}")]
    Packet {
        /// Byte of the file at which the packet begins.
        at: usize,
        /// The fault.
        error: MetadataPacketError,
    },
    /// The text has an error.
    #[error("{0}")]
    Text(MetadataTextError),
}

/// The reason why a metadata packet cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetadataPacketError {
    /// The header passes the end of the file.
    #[error("a packet header was cut off")]
    CutHeader,
    /// Another magic number.
    #[error("the magic number is {0:#010x}, not {MAGIC:#010x}")]
    Magic(u32),
    /// A compression, encryption or checksum.
    #[error("the packet is compressed, encrypted or has a checksum of an unknown kind")]
    Scheme,
    /// Another version of the format.
    #[error("the metadata is CTF {major}.{minor}; 1.8 and 2.0 are known")]
    Version {
        /// Major version.
        major: u8,
        /// Minor version.
        minor: u8,
    },
    /// Sizes that do not fit each other.
    #[error("a packet of {packet} bits cannot have {content} bits of content")]
    Sizes {
        /// Bits of the packet.
        packet: usize,
        /// Bits of its content.
        content: usize,
    },
    /// A uuid other than that of the first packet.
    #[error("this packet has another uuid than the first")]
    Uuid,
    /// The packet passes the end of the file.
    #[error("the packet should have {size} bytes, the file has {left} left")]
    CutOff {
        /// Bytes of the packet.
        size: usize,
        /// Bytes left.
        left: usize,
    },
}

impl MetadataPacketError {
    fn at(self, at: usize) -> MetadataFileError {
        MetadataFileError::Packet { at, error: self }
    }
}

impl Text {
    /// Of the bytes of a file.
    pub(super) fn of(bytes: &[u8]) -> Result<Text, MetadataFileError> {
        let Unpacked { text, plain, trailing } = unpack(bytes)?;
        let text = String::from_utf8(text).map_err(|e| MetadataFileError::NotUtf8(e.utf8_error().valid_up_to()))?;
        Ok(Text { text, plain, trailing })
    }
}

/// The schema that a metadata text describes, and its event blocks where other texts may reuse them.
pub(super) fn read<'t>(
    whole: &'t Text,
    known: Option<&'t Known<'t>>,
) -> Result<(Schema, Option<tsdl::Blocks<'t>>), MetadataFileError> {
    let text = &*whole.text;
    let unsigned = if whole.plain && !text.starts_with('\x1e') { check_version(text) } else { Ok(None) };
    let tsdl = || tsdl::read(text, known).map(|(schema, found)| (schema, Some(found)));
    let read = match text.starts_with('\x1e') {
        true => json::read(text).map(|schema| (schema, None)),
        false => unsigned.and_then(|unsigned| {
            let (mut schema, found) = tsdl()?;
            schema.warnings.extend(unsigned);
            Ok((schema, found))
        }),
    };
    let bound = read.and_then(|(schema, found)| Ok((locate::bind(schema)?, found)));
    let (mut schema, found) = bound.map_err(|error| MetadataFileError::Text(error.located(text)))?;
    let mut lines = LineTable::new(text);
    for warning in &mut schema.warnings {
        warning.what = format!("{}: {}", lines.place(warning.at), warning.what);
    }
    let trailing = |TrailingBytes { at, bytes }| format!("byte {at}: {bytes} bytes that are no packet");
    schema.after = whole.trailing.map(trailing);
    Ok((schema, found))
}

/// The version of plain text, which should begin with it (7.1); packets have it in their headers. Text without a
/// version is read as 1.8, as other readers do, with a warning.
fn check_version(text: &str) -> Result<Option<MetadataWarning>, MetadataError> {
    let version = || {
        let rest = text.strip_prefix("/*")?.trim_start().strip_prefix("CTF")?.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        rest.get(..end).filter(|version| !version.is_empty())
    };
    match version() {
        Some("1.8") => Ok(None),
        Some(version) => Err(MetadataError::at(0, format!("the metadata is CTF {version}; 1.8 and 2.0 are known"))),
        None if text.trim_ascii().is_empty() => Err(MetadataError::at(0, "there is no metadata text")),
        None => Ok(Some(MetadataWarning { at: 0, what: "the text does not begin with `/* CTF 1.8 */`".to_owned() })),
    }
}

/// The bytes of a metadata text.
struct Unpacked {
    text: Vec<u8>,
    plain: bool,
    trailing: Option<TrailingBytes>,
}

/// The texts of all packets joined; plain text unchanged.
fn unpack(bytes: &[u8]) -> Result<Unpacked, MetadataFileError> {
    let mut text = Vec::new();
    try_reserve(&mut text, bytes.len()).map_err(|_| MetadataFileError::Memory(bytes.len()))?;
    let Some(byte_order) = bytes.first_chunk::<4>().and_then(|first| packet_byte_order(*first)) else {
        text.extend_from_slice(bytes);
        return Ok(Unpacked { text, plain: true, trailing: None });
    };
    let mut trailing = None;
    let mut rest = bytes;
    let mut uuid = None;
    while !rest.is_empty() {
        let at = bytes.len() - rest.len();
        // A few bytes after a packet that are no header: an editor's line feed, or a copy made while the tracer wrote.
        if at > 0
            && rest.len() < HEADER_BYTES
            && rest.first_chunk().is_none_or(|first| packet_byte_order(*first).is_none())
        {
            trailing = Some(TrailingBytes { at, bytes: rest.len() });
            break;
        }
        let header = Header::read(rest, byte_order).ok_or(MetadataPacketError::CutHeader.at(at))?;
        let PacketSizes { content, packet: size } = header.sizes().map_err(|error| error.at(at))?;
        if *uuid.get_or_insert(header.uuid) != header.uuid {
            return Err(MetadataPacketError::Uuid.at(at));
        }
        let (packet, after) =
            rest.split_at_checked(size).ok_or_else(|| MetadataPacketError::CutOff { size, left: rest.len() }.at(at))?;
        text.extend_from_slice(packet.get(HEADER_BYTES..content).unwrap_or(&[]));
        rest = after;
    }
    Ok(Unpacked { text, plain: false, trailing })
}

/// The byte order of a packet, from the magic number at its beginning.
fn packet_byte_order(first: [u8; 4]) -> Option<ByteOrder> {
    match (u32::from_be_bytes(first), u32::from_le_bytes(first)) {
        (MAGIC, _) => Some(ByteOrder::Big),
        (_, MAGIC) => Some(ByteOrder::Little),
        _ => None,
    }
}

/// Bytes of a packet.
struct PacketSizes {
    /// Without its padding.
    content: usize,
    packet: usize,
}

/// The header of a metadata packet.
struct Header {
    magic: u32,
    uuid: [u8; 16],
    content_bits: u32,
    packet_bits: u32,
    schemes: [u8; 3],
    version: [u8; 2],
}

impl Header {
    fn read(data: &[u8], byte_order: ByteOrder) -> Option<Header> {
        let mut bytes = Bytes::new(data);
        let magic = bytes.u32(byte_order)?;
        let uuid = bytes.take(16)?.try_into().ok()?;
        let _checksum = bytes.u32(byte_order)?;
        let content_bits = bytes.u32(byte_order)?;
        let packet_bits = bytes.u32(byte_order)?;
        let schemes = bytes.take(3)?.try_into().ok()?;
        let version = bytes.take(2)?.try_into().ok()?;
        Some(Header { magic, uuid, content_bits, packet_bits, schemes, version })
    }

    /// Bytes of content and of the whole packet, header included in both.
    fn sizes(&self) -> Result<PacketSizes, MetadataPacketError> {
        if self.magic != MAGIC {
            return Err(MetadataPacketError::Magic(self.magic));
        }
        if self.schemes != [0, 0, 0] {
            return Err(MetadataPacketError::Scheme);
        }
        if !matches!(self.version, [1, 8] | [2, 0]) {
            let [major, minor] = self.version;
            return Err(MetadataPacketError::Version { major, minor });
        }
        let (content, packet) = (self.content_bits as usize, self.packet_bits as usize);
        if content % 8 != 0 || packet % 8 != 0 || content > packet || content < HEADER_BYTES * 8 {
            return Err(MetadataPacketError::Sizes { packet, content });
        }
        Ok(PacketSizes { content: content / 8, packet: packet / 8 })
    }
}
