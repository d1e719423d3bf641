//! Compressed parts of a trace.dat: whole zstd or zlib frames, of sections and of chunks of pages.
//!
//! The pages of a CPU come in chunks, each with its plain length before it. All are unpacked into one temporary file
//! before reading, so that pages follow each other as in a file that is not compressed. A chunk longer than [`LONGEST`]
//! is refused, and so is a file that unpacks to far more than its size, or whose CPUs share their chunks.

use crate::base::cursor::{ByteOrder, Bytes};
use std::io::{self, Read, Write};

/// Bytes of the number of chunks of a CPU.
pub(super) const CHUNK_COUNT: usize = 4;

/// Plain bytes of a chunk or section; trace-cmd's chunks have ten pages.
const LONGEST: usize = 256 << 20;

/// The largest number of plain bytes of a CPU's pages for each packed byte.
const RATIO: usize = 1000;
/// Plain bytes that are allowed in addition: nearly empty pages pack better than any data.
const BESIDES: usize = 16 << 20;

/// How parts are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// Zstandard.
    Zstd,
    /// RFC 1950.
    Zlib,
}

impl Compression {
    /// The compression that a file names.
    pub fn named(name: &str) -> Option<Compression> {
        match name {
            "none" | "" => Some(Compression::None),
            "zstd" => Some(Compression::Zstd),
            "zlib" => Some(Compression::Zlib),
            _ => None,
        }
    }
}

/// Unpacks a frame of exactly `plain` bytes; `None` where it has another size or is damaged.
pub fn whole(compression: Compression, packed: &[u8], plain: usize) -> Option<Vec<u8>> {
    if plain > LONGEST {
        return None;
    }
    // Grows with the unpacked bytes, so that a false size allocates nothing.
    let mut out = Vec::new();
    let most = plain as u64;
    match compression {
        Compression::None => out.extend_from_slice(packed),
        Compression::Zstd => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(packed).ok()?;
            decoder.take(most).read_to_end(&mut out).ok()?;
        }
        Compression::Zlib => {
            flate2::read::ZlibDecoder::new(packed).take(most).read_to_end(&mut out).ok()?;
        }
    }
    (out.len() == plain).then_some(out)
}

/// The result of unpacking the chunks of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnpackedChunks {
    /// Bytes written.
    pub bytes: usize,
    /// Packed bytes read.
    pub read: usize,
    /// All chunks could be unpacked.
    pub complete: bool,
}

/// Unpacks the chunks of a CPU into `out`, one after the other, up to the first that cannot be unpacked.
pub fn chunks(
    compression: Compression,
    packed: &[u8],
    byte_order: ByteOrder,
    out: &mut impl Write,
) -> io::Result<UnpackedChunks> {
    let mut bytes = Bytes::new(packed);
    let Some(n) = bytes.u32(byte_order) else {
        return Ok(UnpackedChunks { bytes: 0, read: 0, complete: false });
    };
    let most = packed.len().saturating_mul(RATIO).saturating_add(BESIDES);
    let mut written = 0;
    for _ in 0..n {
        let one = (|| {
            let (length, plain) = (bytes.u32(byte_order)? as usize, bytes.u32(byte_order)? as usize);
            let packed = bytes.take(length)?;
            whole(compression, packed, plain).filter(|plain| plain.len() <= most - written)
        })();
        let Some(plain) = one else {
            return Ok(UnpackedChunks { bytes: written, read: bytes.at(), complete: false });
        };
        out.write_all(&plain)?;
        written += plain.len();
    }
    Ok(UnpackedChunks { bytes: written, read: bytes.at(), complete: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chunk of zstd frame that repeats one byte `blocks` times 128 KiB.
    fn bomb(blocks: u32) -> Vec<u8> {
        let plain = blocks << 17;
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0xa0];
        frame.extend(plain.to_le_bytes());
        for i in 0..blocks {
            let header = (1u32 << 17) << 3 | 1 << 1 | u32::from(i + 1 == blocks);
            frame.extend(&header.to_le_bytes()[..3]);
            frame.push(7);
        }
        [(frame.len() as u32).to_le_bytes().to_vec(), plain.to_le_bytes().to_vec(), frame].concat()
    }

    #[test]
    fn chunks_bounds_the_bytes_that_a_small_file_unpacks_to() {
        let all = |n: u32| [n.to_le_bytes().to_vec(), bomb(80).repeat(n as usize)].concat();
        let one = chunks(Compression::Zstd, &all(1), ByteOrder::Little, &mut io::sink()).unwrap();
        assert_eq!(one, UnpackedChunks { bytes: 80 << 17, read: all(1).len(), complete: true });
        let nine = chunks(Compression::Zstd, &all(9), ByteOrder::Little, &mut io::sink()).unwrap();
        assert!(!nine.complete && nine.bytes <= 9 * bomb(80).len() * RATIO + BESIDES + 4 * RATIO, "{nine:?}");
    }
}
