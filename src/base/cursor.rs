//! Cursors over bytes and bits that cannot panic: every read returns `None` where the data ends.
//!
//! [`Bytes`] walks whole bytes (headers, index files, archives); [`bits`] reads 1 to 64 bits at any bit offset, in
//! both byte orders, in one unaligned load of 8 bytes wherever the data has 8 bytes left.

use get_size2::GetSize;

/// The order of the bytes of a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, GetSize)]
pub enum ByteOrder {
    /// Least significant byte first.
    #[default]
    Little,
    /// Most significant byte first.
    Big,
}

impl ByteOrder {
    /// Both, in the order of their numbers.
    pub const BOTH: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];
}

/// A forward cursor over bytes.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'a> {
    rest: &'a [u8],
    at: usize,
}

impl<'a> Bytes<'a> {
    /// At the beginning of `data`.
    pub fn new(data: &'a [u8]) -> Self {
        Bytes { rest: data, at: 0 }
    }

    /// Bytes read so far.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Bytes left.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `n` bytes.
    pub fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(n)?;
        self.rest = rest;
        self.at += n;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    /// One byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[b]| b)
    }

    /// A number of 16 bits.
    pub fn u16(&mut self, byte_order: ByteOrder) -> Option<u16> {
        self.array().map(if byte_order == ByteOrder::Big { u16::from_be_bytes } else { u16::from_le_bytes })
    }

    /// A number of 32 bits.
    pub fn u32(&mut self, byte_order: ByteOrder) -> Option<u32> {
        self.array().map(if byte_order == ByteOrder::Big { u32::from_be_bytes } else { u32::from_le_bytes })
    }

    /// The text up to the next NUL; the cursor then is after the NUL.
    pub fn text(&mut self) -> Option<&'a [u8]> {
        let end = memchr::memchr(0, self.rest)?;
        let text = self.take(end)?;
        self.take(1)?;
        Some(text)
    }

    /// The bytes that follow their number, which has 32 bits.
    pub fn counted_u32(&mut self, byte_order: ByteOrder) -> Option<&'a [u8]> {
        let n = self.u32(byte_order)?;
        self.take(usize::try_from(n).ok()?)
    }

    /// The bytes that follow their number, which has 64 bits.
    pub fn counted_u64(&mut self, byte_order: ByteOrder) -> Option<&'a [u8]> {
        let n = self.u64(byte_order)?;
        self.take(usize::try_from(n).ok()?)
    }

    /// A number of 64 bits.
    pub fn u64(&mut self, byte_order: ByteOrder) -> Option<u64> {
        self.array().map(if byte_order == ByteOrder::Big { u64::from_be_bytes } else { u64::from_le_bytes })
    }
}

/// The `size` bits (1 to 64) that begin `at` bits into `data`. In little-endian order a field fills its bytes from the
/// low bits on, in big-endian order from the high bits on.
#[inline(always)]
pub fn bits(data: &[u8], at: u64, size: u32, byte_order: ByteOrder) -> Option<u64> {
    let start = usize::try_from(at >> 3).ok()?;
    let shift = (at & 7) as u32;
    match data.get(start..).and_then(|d| d.first_chunk::<8>()) {
        Some(word) if shift + size <= 64 => Some(extract(*word, shift, size, byte_order)),
        _ => bits_slowly(data, start, shift, size, byte_order),
    }
}

#[inline(always)]
fn extract(word: [u8; 8], shift: u32, size: u32, byte_order: ByteOrder) -> u64 {
    if byte_order == ByteOrder::Big {
        (u64::from_be_bytes(word) << shift) >> (64 - size)
    } else {
        (u64::from_le_bytes(word) >> shift) & (u64::MAX >> (64 - size))
    }
}

/// For numbers near the end of the data and for those that extend over nine bytes.
#[cold]
fn bits_slowly(data: &[u8], start: usize, shift: u32, size: u32, byte_order: ByteOrder) -> Option<u64> {
    let bytes = data.get(start..start.checked_add(((shift + size) as usize).div_ceil(8))?)?;
    let wide = if byte_order == ByteOrder::Big {
        let all = bytes.iter().fold(0u128, |v, b| v << 8 | u128::from(*b));
        all >> (bytes.len() as u32 * 8 - shift - size)
    } else {
        bytes.iter().rev().fold(0u128, |v, b| v << 8 | u128::from(*b)) >> shift
    };
    Some(wide as u64 & (u64::MAX >> (64 - size)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bit by bit, as the specification describes it.
    fn obvious(data: &[u8], at: u64, size: u32, byte_order: ByteOrder) -> Option<u64> {
        let mut value = 0u64;
        for i in 0..u64::from(size) {
            let (byte, bit) = ((at + i) / 8, (at + i) % 8);
            let byte = *data.get(byte as usize)?;
            if byte_order == ByteOrder::Big {
                value = value << 1 | u64::from(byte >> (7 - bit) & 1);
            } else {
                value |= u64::from(byte >> bit & 1) << i;
            }
        }
        Some(value)
    }

    #[test]
    fn bits_reads_any_size_at_any_offset_in_both_orders() {
        let data: Vec<u8> = (0..19u32).map(|i| (i * 151 + 43) as u8 ^ (i as u8) << 3).collect();
        // Bit by bit is slow under Miri: there a part of all offsets, with every size that begins or ends in another
        // byte.
        let step = if cfg!(miri) { 13 } else { 1 };
        for at in (0..160).step_by(step) {
            for size in (1..=64).step_by(step / 2 + 1) {
                for byte_order in ByteOrder::BOTH {
                    assert_eq!(
                        bits(&data, at, size, byte_order),
                        obvious(&data, at, size, byte_order),
                        "{size} bits at {at}"
                    );
                }
            }
        }
    }

    #[test]
    fn bytes_returns_none_at_the_end_of_the_data() {
        let mut cursor = Bytes::new(&[1, 2, 3, 4, 5]);
        assert_eq!(cursor.u32(ByteOrder::Big), Some(0x0102_0304));
        assert_eq!((cursor.u32(ByteOrder::Little), cursor.at()), (None, 4));
        assert_eq!((cursor.u8(), cursor.u8()), (Some(5), None));
    }
}
