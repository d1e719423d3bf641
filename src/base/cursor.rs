//! Cursors over bytes and bits that cannot panic: every read says `None` where the data ends.
//!
//! [`Bytes`] walks whole bytes (headers, index files, archives); [`bits`] reads 1 to 64 bits at any bit offset, in
//! both byte orders, in one unaligned load of 8 bytes wherever the data has 8 bytes left.

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

    /// 16 bits, most significant byte first if `big`.
    pub fn u16(&mut self, big: bool) -> Option<u16> {
        self.array().map(if big { u16::from_be_bytes } else { u16::from_le_bytes })
    }

    /// 32 bits, most significant byte first if `big`.
    pub fn u32(&mut self, big: bool) -> Option<u32> {
        self.array().map(if big { u32::from_be_bytes } else { u32::from_le_bytes })
    }

    /// Text up to a NUL, which is stepped over.
    pub fn text(&mut self) -> Option<&'a [u8]> {
        let end = memchr::memchr(0, self.rest)?;
        let text = self.take(end)?;
        self.take(1)?;
        Some(text)
    }

    /// As many bytes as a number before them says: of 32 bits (`wide`: 64), most significant byte first if `big`.
    pub fn counted(&mut self, wide: bool, big: bool) -> Option<&'a [u8]> {
        let n = if wide { self.u64(big)? } else { u64::from(self.u32(big)?) };
        self.take(usize::try_from(n).ok()?)
    }

    /// 64 bits, most significant byte first if `big`.
    pub fn u64(&mut self, big: bool) -> Option<u64> {
        self.array().map(if big { u64::from_be_bytes } else { u64::from_le_bytes })
    }
}

/// The `size` bits (1 to 64) that begin `at` bits into `data`. In little-endian order a field fills its bytes from the
/// low bits on, in big-endian order from the high bits on.
#[inline(always)]
pub fn bits(data: &[u8], at: u64, size: u32, big: bool) -> Option<u64> {
    let start = usize::try_from(at >> 3).ok()?;
    let shift = (at & 7) as u32;
    match data.get(start..).and_then(|d| d.first_chunk::<8>()) {
        Some(word) if shift + size <= 64 => Some(extract(*word, shift, size, big)),
        _ => bits_slowly(data, start, shift, size, big),
    }
}

#[inline(always)]
fn extract(word: [u8; 8], shift: u32, size: u32, big: bool) -> u64 {
    if big {
        (u64::from_be_bytes(word) << shift) >> (64 - size)
    } else {
        (u64::from_le_bytes(word) >> shift) & (u64::MAX >> (64 - size))
    }
}

/// Near the end of the data, or over nine bytes.
#[cold]
fn bits_slowly(data: &[u8], start: usize, shift: u32, size: u32, big: bool) -> Option<u64> {
    let bytes = data.get(start..start.checked_add(((shift + size) as usize).div_ceil(8))?)?;
    let wide = if big {
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
    fn obvious(data: &[u8], at: u64, size: u32, big: bool) -> Option<u64> {
        let mut value = 0u64;
        for i in 0..u64::from(size) {
            let (byte, bit) = ((at + i) / 8, (at + i) % 8);
            let byte = *data.get(byte as usize)?;
            if big {
                value = value << 1 | u64::from(byte >> (7 - bit) & 1);
            } else {
                value |= u64::from(byte >> bit & 1) << i;
            }
        }
        Some(value)
    }

    #[test]
    fn any_size_at_any_offset_in_both_orders() {
        let data: Vec<u8> = (0..19u32).map(|i| (i * 151 + 43) as u8 ^ (i as u8) << 3).collect();
        // Bit by bit is slow under Miri: there a part of all offsets, with every size that begins or ends in another
        // byte.
        let step = if cfg!(miri) { 13 } else { 1 };
        for at in (0..160).step_by(step) {
            for size in (1..=64).step_by(step / 2 + 1) {
                for big in [false, true] {
                    assert_eq!(bits(&data, at, size, big), obvious(&data, at, size, big), "{size} bits at {at}");
                }
            }
        }
    }

    #[test]
    fn bytes_end_with_none() {
        let mut cursor = Bytes::new(&[1, 2, 3, 4, 5]);
        assert_eq!(cursor.u32(true), Some(0x0102_0304));
        assert_eq!((cursor.u32(false), cursor.at()), (None, 4));
        assert_eq!((cursor.u8(), cursor.u8()), (Some(5), None));
    }
}
