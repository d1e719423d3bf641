//! The file `metadata` to a schema: packets to text, text to the reader of its version, lengths and selectors bound.
//!
//! Metadata is plain text, or packets of 37 bytes of header and a body each (CTF 1.8.3, section 7.1; CTF 2.0,
//! section 5); the magic number tells. Errors in the text are told by line and column with the chain of what was being
//! read, innermost last; errors in the packets by byte.

use super::locate;
use super::schema::Schema;
use super::{json, tsdl};
use crate::input::cursor::Bytes;
use std::borrow::Cow;
use std::fmt::Write;
use tsdl::Known;

const MAGIC: u32 = 0x75d1_1d57;
const HEADER_BYTES: usize = 37;

/// What is odd in a metadata text and can be passed over, and where.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Oddity {
    /// Byte of the text.
    pub(super) at: usize,
    /// In words.
    pub(super) what: String,
}

/// What is wrong in a metadata text, and where. Behind a pointer, because every step of parsing may return one.
#[derive(Debug)]
pub(super) struct Trouble(Box<Told>);

#[derive(Debug)]
struct Told {
    at: usize,
    what: String,
    within: Vec<(String, usize)>,
}

impl Trouble {
    /// Wrong at byte `at` of the text.
    #[cold]
    pub(super) fn at(at: usize, what: impl Into<String>) -> Self {
        Trouble(Box::new(Told { at, what: what.into(), within: Vec::new() }))
    }

    /// Seen while reading `outer`, which begins at byte `at`.
    #[cold]
    pub(super) fn within(mut self, outer: impl Into<String>, at: usize) -> Self {
        self.0.within.push((outer.into(), at));
        self
    }

    /// The same where only the trouble's own place is known.
    pub(super) fn within_here(self, outer: impl Into<String>) -> Self {
        let at = self.0.at;
        self.within(outer, at)
    }

    /// One line: place, what, and the chain around it.
    fn tell(&self, text: &str) -> String {
        let mut said = format!("{}: {}", place(text, self.0.at), self.0.what);
        for (outer, at) in &self.0.within {
            let _ = write!(said, ", {outer} ({})", place(text, *at));
        }
        said
    }
}

/// `line:column` of a byte offset, both from 1.
fn place(text: &str, at: usize) -> String {
    let before = text.as_bytes().get(..at.min(text.len())).unwrap_or(&[]);
    let line = 1 + memchr::memchr_iter(b'\n', before).count();
    let column = 1 + before.len() - memchr::memrchr(b'\n', before).map_or(0, |i| i + 1);
    format!("{line}:{column}")
}

/// The text of a metadata file, put together from its packets where it has some.
#[derive(Debug)]
pub(super) struct Text<'f>(Cow<'f, str>);

impl<'f> Text<'f> {
    /// Of the bytes of a file.
    pub(super) fn of(bytes: &'f [u8]) -> Result<Text<'f>, String> {
        let wrong = |e: std::str::Utf8Error| format!("byte {} is no UTF-8 text", e.valid_up_to());
        Ok(Text(match unpack(bytes)? {
            Cow::Borrowed(bytes) => Cow::Borrowed(std::str::from_utf8(bytes).map_err(wrong)?),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8(bytes).map_err(|e| wrong(e.utf8_error()))?),
        }))
    }
}

/// The schema that a metadata text describes, and its event blocks where other texts may take them over.
pub(super) fn read<'t>(
    whole: &'t Text<'_>,
    known: Option<&'t Known<'t>>,
) -> Result<(Schema, Option<tsdl::Blocks<'t>>), String> {
    let text = &*whole.0;
    let plain = matches!(whole.0, Cow::Borrowed(_));
    let tsdl = || tsdl::read(text, known).map(|(schema, found)| (schema, Some(found)));
    let read = match text.starts_with('\x1e') {
        true => json::read(text).map(|schema| (schema, None)),
        false if plain => check_version(text).and_then(|()| tsdl()),
        false => tsdl(),
    };
    let bound = read.and_then(|(schema, found)| Ok((locate::bind(schema)?, found)));
    let (mut schema, found) = bound.map_err(|trouble| trouble.tell(text))?;
    for oddity in &mut schema.oddities {
        oddity.what = format!("{}: {}", place(text, oddity.at), oddity.what);
    }
    Ok((schema, found))
}

/// Plain text must say what it is (7.1); packets say it in their headers.
fn check_version(text: &str) -> Result<(), Trouble> {
    let expected = || Trouble::at(0, "metadata begins with `/* CTF 1.8 */`, with packets, or with CTF 2 fragments");
    let rest = text.strip_prefix("/*").ok_or_else(expected)?.trim_start();
    let rest = rest.strip_prefix("CTF").ok_or_else(expected)?.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    match rest.get(..end) {
        Some("1.8") => Ok(()),
        Some(version) if !version.is_empty() => {
            Err(Trouble::at(0, format!("the metadata is CTF {version}; 1.8 and 2.0 are known")))
        }
        _ => Err(expected()),
    }
}

/// The text of packets put together; plain text as it is.
fn unpack(bytes: &[u8]) -> Result<Cow<'_, [u8]>, String> {
    let Some(first) = bytes.first_chunk::<4>() else { return Ok(Cow::Borrowed(bytes)) };
    let big = match (u32::from_be_bytes(*first), u32::from_le_bytes(*first)) {
        (MAGIC, _) => true,
        (_, MAGIC) => false,
        _ => return Ok(Cow::Borrowed(bytes)),
    };
    let mut text = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    let mut uuid = None;
    while !rest.is_empty() {
        let at = bytes.len() - rest.len();
        let header = Header::read(rest, big).ok_or_else(|| format!("byte {at}: a packet header was cut off"))?;
        let (content, size) = header.check().map_err(|what| format!("byte {at}: {what}"))?;
        if *uuid.get_or_insert(header.uuid) != header.uuid {
            return Err(format!("byte {at}: this packet has another uuid than the first"));
        }
        let (packet, behind) = rest.split_at_checked(size).ok_or_else(|| {
            format!("byte {at}: the packet should have {size} bytes, the file has {} left", rest.len())
        })?;
        text.extend_from_slice(packet.get(HEADER_BYTES..content).unwrap_or(&[]));
        rest = behind;
    }
    Ok(Cow::Owned(text))
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
    fn read(data: &[u8], big: bool) -> Option<Header> {
        let mut bytes = Bytes::new(data);
        let magic = bytes.u32(big)?;
        let uuid = bytes.take(16)?.try_into().ok()?;
        let _checksum = bytes.u32(big)?;
        let content_bits = bytes.u32(big)?;
        let packet_bits = bytes.u32(big)?;
        let schemes = bytes.take(3)?.try_into().ok()?;
        let version = bytes.take(2)?.try_into().ok()?;
        Some(Header { magic, uuid, content_bits, packet_bits, schemes, version })
    }

    /// Bytes of content and of the whole packet, header included in both.
    fn check(&self) -> Result<(usize, usize), String> {
        if self.magic != MAGIC {
            return Err(format!("the magic number is {:#010x}, not {MAGIC:#010x}", self.magic));
        }
        if self.schemes != [0, 0, 0] {
            return Err("the packet is compressed, encrypted or has a checksum of an unknown kind".to_owned());
        }
        if !matches!(self.version, [1, 8] | [2, 0]) {
            let [major, minor] = self.version;
            return Err(format!("the metadata is CTF {major}.{minor}; 1.8 and 2.0 are known"));
        }
        let (content, packet) = (self.content_bits as usize, self.packet_bits as usize);
        if content % 8 != 0 || packet % 8 != 0 || content > packet || content < HEADER_BYTES * 8 {
            return Err(format!("a packet of {packet} bits cannot have {content} bits of content"));
        }
        Ok((content / 8, packet / 8))
    }
}
