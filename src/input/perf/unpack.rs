//! Compressed records: pieces of one zstd stream that never ends (`perf record -z`).
//!
//! Records straddle the pieces, so all pieces of a file together are unpacked into a temporary file, which is then read
//! as another data file. The stream has no last block, so an empty one is appended. A stream that unpacks to far more
//! than its size is refused.

use super::header::{RecordHeader, bytes_after, record};
use crate::base::cursor::{ByteOrder, bits};
use crate::base::mapped::Mapped;
use crate::base::temporary;
use ruzstd::decoding::StreamingDecoder;
use std::io::{self, Read};
use std::ops::Range;

const COMPRESSED: u32 = 81;
const COMPRESSED2: u32 = 83;
/// An empty last block.
const END: &[u8] = &[1, 0, 0];
/// The largest compression ratio; real recordings reach a tenth of it.
const MOST: u64 = 1000;

/// True for the types of records that are compressed.
pub fn is_packed(kind: u32) -> bool {
    matches!(kind, COMPRESSED | COMPRESSED2)
}

/// The compressed pieces among the records of a file; `None` for one that passes the end of its record.
fn pieces(byte_order: ByteOrder, bytes: &[u8], data: Range<usize>) -> impl Iterator<Item = Option<&[u8]>> {
    let mut at = data.start;
    let data = bytes.get(..data.end).unwrap_or(bytes);
    std::iter::from_fn(move || {
        loop {
            let rest = data.get(at..)?;
            let RecordHeader { kind, size, .. } = record(rest, byte_order)?;
            let body = rest.get(8..size)?;
            at = at.checked_add(size)?.checked_add(bytes_after(kind, body, byte_order)?)?;
            match kind {
                COMPRESSED => return Some(Some(body)),
                COMPRESSED2 => {
                    let n = bits(body, 0, 64, byte_order).and_then(|n| usize::try_from(n).ok());
                    return Some(n.and_then(|n| body.get(8..)?.get(..n)));
                }
                _ => {}
            }
        }
    })
}

/// The plain records of a file's compressed pieces; `None` where it has none.
pub fn unpack(byte_order: ByteOrder, bytes: &[u8], data: Range<usize>) -> io::Result<Option<Mapped>> {
    let mut pieces = pieces(byte_order, bytes, data).peekable();
    if pieces.peek().is_none() {
        return Ok(None);
    }
    let packed = Chained { pieces, now: &[], ended: false };
    let wrong = |e: &dyn std::fmt::Display| io::Error::new(io::ErrorKind::InvalidData, e.to_string());
    let mut plain = StreamingDecoder::new(packed).map_err(|e| wrong(&e))?;
    let unpacked = temporary::mapped(|file| {
        let (mut buffer, mut left) = (vec![0u8; 1 << 18], (bytes.len() as u64).saturating_mul(MOST));
        loop {
            let n = plain.read(&mut buffer)?;
            if n == 0 {
                return Ok(());
            }
            let rest = left.checked_sub(n as u64);
            left = rest.ok_or_else(|| wrong(&"it unpacks to more than a thousand times its size"))?;
            file.write_all(buffer.get(..n).unwrap_or(&[]))?;
        }
    });
    unpacked.map(Some)
}

/// The pieces as one stream, with its end.
struct Chained<'a, I: Iterator<Item = Option<&'a [u8]>>> {
    pieces: I,
    now: &'a [u8],
    ended: bool,
}

impl<'a, I: Iterator<Item = Option<&'a [u8]>>> Read for Chained<'a, I> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.now.is_empty() {
            match self.pieces.next() {
                Some(Some(piece)) => self.now = piece,
                Some(None) => return Err(io::Error::new(io::ErrorKind::InvalidData, "a piece passes its record")),
                None if self.ended => return Ok(0),
                None => (self.now, self.ended) = (END, true),
            }
        }
        let n = self.now.len().min(into.len());
        let (now, rest) = self.now.split_at(n);
        if let Some(place) = into.get_mut(..n) {
            place.copy_from_slice(now);
        }
        self.now = rest;
        Ok(n)
    }
}
