//! Numbers and strings of OTF2, and the chunks that hold records: bytes in, values or `None` out, never a panic.
//!
//! OTF2-FACTS.md sections 2 and 3. Every read checks the end of its data and allocates nothing. A chunk is the unit of
//! damage: data that cannot be read end their chunk, and reading goes on with the next one.

use crate::base::cursor::ByteOrder;

/// Type byte: the rest of this chunk is padding.
const END_OF_CHUNK: u8 = 0;
/// Type byte: nothing follows.
const END_OF_FILE: u8 = 2;
/// First byte of every chunk.
const CHUNK_HEADER: u8 = 3;
const LITTLE_ENDIAN: u8 = 0x42;
const BIG_ENDIAN: u8 = 0x23;

/// Reads one run of bytes from front to back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes<'a> {
    rest: &'a [u8],
    byte_order: ByteOrder,
}

impl<'a> Bytes<'a> {
    /// The bytes after the two with which every file and chunk begins; `None` where it begins otherwise.
    pub(super) fn after_mark(data: &'a [u8]) -> Option<Self> {
        match data {
            [CHUNK_HEADER, LITTLE_ENDIAN, rest @ ..] => Some(Bytes { rest, byte_order: ByteOrder::Little }),
            [CHUNK_HEADER, BIG_ENDIAN, rest @ ..] => Some(Bytes { rest, byte_order: ByteOrder::Big }),
            _ => None,
        }
    }

    /// Bytes not read yet.
    pub(super) fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The next `n` bytes.
    pub(super) fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(n)?;
        self.rest = rest;
        Some(head)
    }

    /// One byte.
    pub(super) fn u8(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// `n` bytes, at most 8, as an unsigned number.
    #[inline]
    fn number(&mut self, n: usize) -> Option<u64> {
        if let Some(word) = self.rest.first_chunk::<8>() {
            // Eight bytes at once, of which the first `n` are used.
            self.rest = self.rest.get(n..)?;
            let unused = 64 - 8 * n as u32;
            let word = match self.byte_order {
                ByteOrder::Big => u64::from_be_bytes(*word).checked_shr(unused),
                ByteOrder::Little => u64::from_le_bytes(*word).checked_shl(unused).map(|shifted| shifted >> unused),
            };
            return Some(word.unwrap_or(0));
        }
        let bytes = self.take(n)?;
        let word = |v: u64, b: &u8| v << 8 | u64::from(*b);
        Some(if self.byte_order == ByteOrder::Big {
            bytes.iter().fold(0, word)
        } else {
            bytes.iter().rev().fold(0, word)
        })
    }

    /// A full 32-bit number.
    pub(super) fn full_u16(&mut self) -> Option<u16> {
        self.number(2).map(|n| n as u16)
    }

    /// A full number of 32 bits.
    pub(super) fn full_u32(&mut self) -> Option<u32> {
        self.number(4).map(|v| v as u32)
    }

    /// A full 64-bit number.
    pub(super) fn full_u64(&mut self) -> Option<u64> {
        let bytes = self.rest.first_chunk::<8>()?;
        self.rest = &self.rest[8..];
        Some(if self.byte_order == ByteOrder::Big { u64::from_be_bytes(*bytes) } else { u64::from_le_bytes(*bytes) })
    }

    /// A packed 32-bit number; all ones means "undefined".
    pub(super) fn packed_u32(&mut self) -> Option<u32> {
        match self.u8()? {
            0xff => Some(u32::MAX),
            n @ 0..=4 => self.number(usize::from(n)).map(|v| v as u32),
            _ => None,
        }
    }

    /// A packed 64-bit number; all ones means "undefined".
    pub(super) fn packed_u64(&mut self) -> Option<u64> {
        match self.u8()? {
            0xff => Some(u64::MAX),
            n @ 0..=8 => self.number(usize::from(n)),
            _ => None,
        }
    }

    /// A string, without the zero byte that ends it.
    pub(super) fn string(&mut self) -> Option<&'a [u8]> {
        let end = memchr::memchr(0, self.rest)?;
        let text = self.take(end)?;
        self.u8()?;
        Some(text)
    }

    /// The payload of a record: its length, then as many bytes.
    pub(super) fn payload(&mut self) -> Option<Bytes<'a>> {
        let length = match self.u8()? {
            0xff => usize::try_from(self.full_u64()?).ok()?,
            short => usize::from(short),
        };
        Some(Bytes { rest: self.take(length)?, byte_order: self.byte_order })
    }
}

/// The item at the current place of a chunked file.
pub(super) enum Next {
    /// A record (or a time stamp, or an attribute list) of this type.
    Type(u8),
    /// A chunk begins: the last time stamp is no longer valid.
    Chunk,
    /// The end of the file, by its end record.
    End,
    /// Neither a record nor a chunk: the file is damaged, or ends without an end record.
    Broken,
}

/// A file of chunks, read record by record.
#[derive(Clone, Debug)]
pub(super) struct Chunks<'a> {
    data: &'a [u8],
    chunk_size: usize,
    /// Offset of the chunk after the current one.
    next: usize,
    /// The current chunk.
    pub(super) bytes: Bytes<'a>,
    /// Records of the current chunk, by its header; 0 where it does not say it, as in definition files.
    pub(super) declared: u64,
    ended: bool,
}

impl<'a> Chunks<'a> {
    /// At the front of the file. `chunk_size` is the anchor's.
    pub(super) fn new(data: &'a [u8], chunk_size: u64) -> Self {
        let chunk_size = usize::try_from(chunk_size).unwrap_or(usize::MAX);
        let nothing = Bytes { rest: &[], byte_order: ByteOrder::Little };
        Chunks { data, chunk_size, next: 0, bytes: nothing, declared: 0, ended: data.is_empty() }
    }

    /// The offset of the next item in the file.
    pub(super) fn offset(&self) -> usize {
        self.next.min(self.data.len()).saturating_sub(self.bytes.remaining())
    }

    /// Step over a type byte, into the next chunk where one ends.
    #[inline]
    pub(super) fn next(&mut self) -> Next {
        if self.ended {
            return Next::End;
        }
        match self.bytes.u8() {
            Some(END_OF_FILE) => {
                self.ended = true;
                Next::End
            }
            Some(END_OF_CHUNK) => self.enter(),
            Some(kind) => Next::Type(kind),
            None if self.next == 0 => self.enter(),
            None => self.skip(),
        }
    }

    /// Leave a damaged chunk: `Broken`, then reading goes on with the next one.
    pub(super) fn skip(&mut self) -> Next {
        self.bytes.rest = &[END_OF_CHUNK];
        if self.next >= self.data.len() {
            self.ended = true;
        }
        Next::Broken
    }

    fn enter(&mut self) -> Next {
        let end = self.next.saturating_add(self.chunk_size).min(self.data.len());
        let opened = self.data.get(self.next..end).and_then(Bytes::after_mark).and_then(|mut bytes| {
            let (first, last) = (bytes.full_u64()?, bytes.full_u64()?);
            // They begin at 1.
            self.declared = if first == 0 { 0 } else { last.wrapping_add(1).saturating_sub(first) };
            Some(bytes)
        });
        match opened {
            Some(bytes) => {
                (self.bytes, self.next) = (bytes, end);
                Next::Chunk
            }
            None => {
                self.ended = true;
                Next::Broken
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn little(data: &[u8]) -> Bytes<'_> {
        Bytes { rest: data, byte_order: ByteOrder::Little }
    }

    #[test]
    fn packed_numbers_are_read_in_both_byte_orders() {
        assert_eq!(little(&[0]).packed_u32(), Some(0));
        assert_eq!(little(&[0xff]).packed_u64(), Some(u64::MAX));
        assert_eq!(little(&[2, 1, 2]).packed_u32(), Some(0x0201));
        assert_eq!(Bytes { rest: &[2, 1, 2], byte_order: ByteOrder::Big }.packed_u64(), Some(0x0102));
        assert_eq!(little(&[5, 0, 0, 0, 0, 0]).packed_u32(), None, "a 32-bit number has at most 4 bytes");
        assert_eq!(little(&[9; 10]).packed_u64(), None);
        assert_eq!(little(&[3, 1, 2]).packed_u64(), None, "cut short");
    }

    #[test]
    fn payload_refuses_a_length_beyond_the_chunk() {
        assert!(little(&[3, 1, 2]).payload().is_none());
        assert!(little(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]).payload().is_none());
        assert_eq!(little(&[0xff, 1, 0, 0, 0, 0, 0, 0, 0, 7]).payload().map(|b| b.rest), Some(&[7_u8][..]));
    }

    fn chunk(body: &[u8], size: usize) -> Vec<u8> {
        let mut chunk = vec![CHUNK_HEADER, LITTLE_ENDIAN];
        chunk.extend([0; 16]);
        chunk.extend(body);
        chunk.resize(size.max(chunk.len()), 0);
        chunk
    }

    #[test]
    fn chunks_follow_each_other_at_multiples_of_their_size() {
        let mut file = chunk(&[7], 32);
        file.extend(chunk(&[8, 2, 1], 0));
        let mut chunks = Chunks::new(&file, 32);
        let mut seen = Vec::new();
        loop {
            match chunks.next() {
                Next::Type(t) => seen.push(t),
                Next::Chunk => seen.push(100),
                Next::End => break,
                Next::Broken => panic!("nothing is broken here"),
            }
        }
        assert_eq!(seen, [100, 7, 100, 8]);
    }

    #[test]
    fn chunks_end_for_any_prefix_of_a_file() {
        let mut file = chunk(&[7], 32);
        file.extend(chunk(&[8, 2, 1], 0));
        for end in 0..file.len() {
            for size in [0, 1, 17, 18, 32, u64::MAX] {
                let mut chunks = Chunks::new(&file[..end], size);
                let steps = std::iter::from_fn(|| (!matches!(chunks.next(), Next::End)).then_some(())).count();
                assert!(steps <= 40, "{steps} steps over {end} bytes");
            }
        }
    }
}
