//! Compressed parts of a trace.dat: whole zstd or zlib frames, of sections and of chunks of pages.
//!
//! The pages of a CPU come in chunks, each with its plain length before it. All are unpacked into one temporary file
//! before reading, so that pages lie side by side as in a file that is not compressed. A chunk longer than [`LONGEST`]
//! is refused, and so is a file that unpacks to far more than it takes.

use crate::base::cursor::{ByteOrder, Bytes};
use std::io::{self, Read, Write};

/// Plain bytes of a chunk or section; trace-cmd's chunks have ten pages.
const LONGEST: usize = 256 << 20;

/// Plain bytes of a CPU's pages for each packed byte, and besides: nearly empty pages pack better than any data.
const RATIO: usize = 1000;
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
    /// As the file names it.
    pub fn named(name: &str) -> Option<Compression> {
        match name {
            "none" | "" => Some(Compression::None),
            "zstd" => Some(Compression::Zstd),
            "zlib" => Some(Compression::Zlib),
            _ => None,
        }
    }
}

/// A frame that unpacks to exactly so many bytes.
pub fn whole(compression: Compression, packed: &[u8], plain: usize) -> Option<Vec<u8>> {
    if plain > LONGEST {
        return None;
    }
    // Grows with what really comes, not with what is claimed.
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

/// The chunks of a CPU, one behind the other, into `out`. Returns the bytes written, and whether all could be unpacked.
pub fn chunks(
    compression: Compression,
    packed: &[u8],
    byte_order: ByteOrder,
    out: &mut impl Write,
) -> io::Result<(usize, bool)> {
    let mut bytes = Bytes::new(packed);
    let Some(n) = bytes.u32(byte_order) else { return Ok((0, false)) };
    let most = packed.len().saturating_mul(RATIO).saturating_add(BESIDES);
    let mut written = 0;
    for _ in 0..n {
        let one = (|| {
            let (length, plain) = (bytes.u32(byte_order)? as usize, bytes.u32(byte_order)? as usize);
            let packed = bytes.take(length)?;
            whole(compression, packed, plain).filter(|plain| plain.len() <= most - written)
        })();
        let Some(plain) = one else { return Ok((written, false)) };
        out.write_all(&plain)?;
        written += plain.len();
    }
    Ok((written, true))
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
    fn a_small_file_cannot_fill_the_disk() {
        let all = |n: u32| [n.to_le_bytes().to_vec(), bomb(80).repeat(n as usize)].concat();
        let (written, whole) = chunks(Compression::Zstd, &all(1), ByteOrder::Little, &mut io::sink()).unwrap();
        assert_eq!((written, whole), (80 << 17, true));
        let (written, whole) = chunks(Compression::Zstd, &all(9), ByteOrder::Little, &mut io::sink()).unwrap();
        assert!(!whole && written <= 9 * bomb(80).len() * RATIO + BESIDES + 4 * RATIO, "{written}");
    }
}
