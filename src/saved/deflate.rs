//! Values in fewer bytes, by deflate.
//!
//! In: bytes. Out: fewer, or none where they are not fewer; and from these the bytes. Deflate makes of a kilobyte a
//! megabyte of zeros; so that a file unpacks in proportion to its length, a ratio is the most that is written and read.

use crate::base::allocator::try_reserve;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// The most bytes of a value for each byte of its block. A block that would be shorter is filled up with zeros.
pub(super) const MOST_RATIO: usize = 32;
/// How hard to deflate: more takes longer and saves a hundredth.
const LEVEL: u32 = 4;

/// Deflated bytes, which the same program always makes the same; `None` where they are not fewer.
pub(super) fn deflated(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut fewer = Vec::with_capacity(bytes.len());
    let status = Compress::new(Compression::new(LEVEL), false).compress_vec(bytes, &mut fewer, FlushCompress::Finish);
    (status.ok()? == Status::StreamEnd && fewer.len() < bytes.len()).then_some(())?;
    fewer.resize(fewer.len().max(bytes.len().div_ceil(MOST_RATIO)), 0);
    fewer.shrink_to_fit();
    Some(fewer)
}

/// As many bytes as were deflated.
pub(super) fn inflated(block: &[u8], length: usize) -> Option<Vec<u8>> {
    (length <= block.len().saturating_mul(MOST_RATIO)).then_some(())?;
    let mut bytes = Vec::new();
    try_reserve(&mut bytes, length).ok()?;
    let status = Decompress::new(false).decompress_vec(block, &mut bytes, FlushDecompress::Finish);
    (status.ok()? == Status::StreamEnd && bytes.len() == length).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inflated_refuses_what_was_not_deflated_or_is_longer_than_it_may_be() {
        let block = deflated(&[0; 100_000]).unwrap();
        assert_eq!(inflated(&block, 100_000), Some([0; 100_000].to_vec()));
        for length in [0, 99_999, 100_001, usize::MAX] {
            assert_eq!(inflated(&block, length), None, "{length}");
        }
        // A bomb: less than the block that is written of so many zeros.
        assert_eq!(inflated(&block[..block.len() / 2], 100_000), None);
    }
}
