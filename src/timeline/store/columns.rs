//! Columns of numbers.
//!
//! In: the numbers of some rows. Out: each column in as few bytes as its largest number needs (0 to 8 for each), or, if
//! that is smaller, only its numbers other than zero with a bitmap of their rows. Any number is read in constant time,
//! a block of them without a branch for each.

use std::ops::Range;

/// The numbers that are read at once.
pub(super) const BLOCK: usize = 16;
/// Rows for each word of a bitmap.
const WORD: usize = 64;
/// Bytes of a bitmap for each word: the word, and the number of ones before it.
const WORD_BYTES: usize = 8 + 2;

/// The place of a column among the bytes of its leaf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PackedColumn {
    offset: u32,
    /// Words of the bitmap; 0 for a dense column.
    words: u16,
    /// Bytes of a number; 0 where all are zero.
    width: u8,
    /// The bits of a number.
    mask: u64,
}

/// The bytes that a number needs.
fn width(largest: u64) -> usize {
    (u64::BITS - largest.leading_zeros()).div_ceil(8) as usize
}

#[inline(always)]
fn load(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..at + 8) {
        Some(&[a, b, c, d, e, f, g, h]) => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => 0,
    }
}

/// A number of at most `width` bytes has these bits.
fn mask(width: usize) -> u64 {
    u64::MAX >> (64 - 8 * width)
}

impl PackedColumn {
    /// Its place, as kept in the header of a leaf.
    pub fn to_bytes(self) -> [u8; 8] {
        let ([a, b, c, d], [e, f]) = (self.offset.to_le_bytes(), self.words.to_le_bytes());
        [a, b, c, d, e, f, self.width, 0]
    }

    /// The place of a column of `count` numbers; `None` where it is not inside `data`, or its bitmap has another number
    /// of rows than it says.
    pub fn from_bytes(place: [u8; 8], bytes: &[u8], data: Range<usize>, count: usize) -> Option<PackedColumn> {
        let [a, b, c, d, e, f, width, zero] = place;
        let (offset, words) = (u32::from_le_bytes([a, b, c, d]), u16::from_le_bytes([e, f]));
        if width == 0 {
            return (place == [0; 8]).then(PackedColumn::default);
        }
        let column = PackedColumn { offset, words, width, mask: mask(usize::from(width).min(8)) };
        let numbers = match words {
            0 => count,
            _ => column.count_present(bytes, count)?,
        };
        let long = usize::from(words) * WORD_BYTES + numbers.checked_mul(usize::from(width))?;
        let from = offset as usize;
        let is_inside = from >= data.start && from.checked_add(long)? <= data.end;
        (zero == 0 && width <= 8 && is_inside).then_some(column)
    }

    /// Numbers other than zero of a column with a bitmap; `None` where it is inconsistent.
    fn count_present(self, bytes: &[u8], count: usize) -> Option<usize> {
        let (from, words) = (self.offset as usize, usize::from(self.words));
        let last_bit = count.checked_sub(1)? % WORD;
        if words != count.div_ceil(WORD) {
            return None;
        }
        let bitmap = bytes.get(from..)?.get(..words * 8)?.chunks_exact(8);
        let before = bytes.get(from + words * 8..)?.get(..words * 2)?.chunks_exact(2);
        let mut present = 0;
        for (word, before) in bitmap.zip(before) {
            if present != usize::from(u16::from_le_bytes(before.try_into().ok()?)) {
                return None;
            }
            present += u64::from_le_bytes(word.try_into().ok()?).count_ones() as usize;
        }
        let last = load(bytes, from + words.checked_sub(1)? * 8);
        let after = last.checked_shr(last_bit as u32 + 1).unwrap_or(0);
        (after == 0).then_some(present)
    }

    /// Add a column to `bytes`.
    pub fn append(bytes: &mut Vec<u8>, numbers: &[u64]) -> PackedColumn {
        let largest = numbers.iter().fold(0, |all, number| all | *number);
        let width = width(largest);
        if width == 0 {
            return PackedColumn::default();
        }
        let present = numbers.iter().filter(|number| **number != 0).count();
        let words = numbers.len().div_ceil(WORD);
        let mask = mask(width);
        let column = PackedColumn { offset: bytes.len() as u32, width: width as u8, words: 0, mask };
        let is_counted = present <= usize::from(u16::MAX) && words <= usize::from(u16::MAX);
        if !is_counted || words * WORD_BYTES + present * width >= numbers.len() * width {
            write(bytes, width, numbers.len(), numbers.iter().copied());
            return column;
        }
        let is_present = |word: u64, (at, number): (usize, &u64)| word | u64::from(*number != 0) << at;
        let bitmap = numbers.chunks(WORD).map(|rows| rows.iter().enumerate().fold(0, is_present));
        let mut ones = Vec::with_capacity(words);
        for word in bitmap {
            bytes.extend_from_slice(&word.to_le_bytes());
            ones.push(word.count_ones() as u16);
        }
        let mut before = 0u16;
        for ones in ones {
            bytes.extend_from_slice(&before.to_le_bytes());
            before += ones;
        }
        write(bytes, width, present, numbers.iter().copied().filter(|number| *number != 0));
        PackedColumn { words: words as u16, ..column }
    }

    /// The number of a row.
    #[inline(always)]
    pub fn get(self, bytes: &[u8], row: usize) -> u64 {
        let (offset, width) = (self.offset as usize, usize::from(self.width));
        if self.words == 0 {
            return load(bytes, offset + row * width) & self.mask;
        }
        let (words, at) = (usize::from(self.words), row / WORD);
        let (word, bit) = (load(bytes, offset + at * 8), 1u64 << (row % WORD));
        if word & bit == 0 {
            return 0;
        }
        let before = load(bytes, offset + words * 8 + at * 2) & 0xffff;
        let rank = before as usize + (word & (bit - 1)).count_ones() as usize;
        load(bytes, offset + words * WORD_BYTES + rank * width) & self.mask
    }

    /// The numbers of the rows from `row` on; those beyond the last row mean nothing.
    #[inline]
    pub fn fill(self, bytes: &[u8], row: usize, numbers: &mut [u64; BLOCK]) {
        let (offset, width) = (self.offset as usize, usize::from(self.width));
        match self.words {
            _ if width == 0 => *numbers = [0; BLOCK],
            0 => self.fill_dense(bytes, offset + row * width, numbers),
            _ => self.fill_sparse(bytes, row, numbers),
        }
    }

    /// The numbers that follow each other from a place on.
    #[inline]
    fn fill_dense(self, bytes: &[u8], from: usize, numbers: &mut [u64; BLOCK]) {
        let dense = bytes.get(from..).unwrap_or(&[]);
        match self.width {
            1 => widen::<1>(dense, numbers),
            2 => widen::<2>(dense, numbers),
            3 => widen::<3>(dense, numbers),
            4 => widen::<4>(dense, numbers),
            5 => widen::<5>(dense, numbers),
            6 => widen::<6>(dense, numbers),
            7 => widen::<7>(dense, numbers),
            _ => widen::<8>(dense, numbers),
        }
    }

    /// The numbers of a column with a bitmap: those other than zero are read as a dense column, and each row takes
    /// the next of them or none by its bit. A branch on the bit would be predicted wrongly for every other row.
    fn fill_sparse(self, bytes: &[u8], row: usize, numbers: &mut [u64; BLOCK]) {
        let (offset, words, width) = (self.offset as usize, usize::from(self.words), usize::from(self.width));
        let (at, bit) = (row / WORD, row % WORD);
        let word = load(bytes, offset + at * 8);
        let next = if at + 1 < words { load(bytes, offset + at * 8 + 8) } else { 0 };
        let mut bits = word >> bit | next << 1 << (WORD - 1 - bit);
        let before = load(bytes, offset + words * 8 + at * 2) & 0xffff;
        let rank = before as usize + (word & ((1 << bit) - 1)).count_ones() as usize;
        let mut present = [0; BLOCK];
        self.fill_dense(bytes, offset + words * WORD_BYTES + rank * width, &mut present);
        let mut rank = 0;
        for number in numbers {
            let is_present = bits & 1;
            *number = present[rank % BLOCK] & is_present.wrapping_neg();
            rank += is_present as usize;
            bits >>= 1;
        }
    }
}

/// Add `count` numbers of `width` bytes each.
fn write(bytes: &mut Vec<u8>, width: usize, count: usize, numbers: impl Iterator<Item = u64>) {
    let from = bytes.len();
    bytes.resize(from + count * width, 0);
    let places = bytes.get_mut(from..).unwrap_or(&mut []);
    match width {
        1 => narrow::<1>(places, numbers),
        2 => narrow::<2>(places, numbers),
        3 => narrow::<3>(places, numbers),
        4 => narrow::<4>(places, numbers),
        5 => narrow::<5>(places, numbers),
        6 => narrow::<6>(places, numbers),
        7 => narrow::<7>(places, numbers),
        _ => narrow::<8>(places, numbers),
    }
}

/// Numbers as `W` bytes each.
#[inline(always)]
fn narrow<const W: usize>(places: &mut [u8], numbers: impl Iterator<Item = u64>) {
    for (place, number) in places.as_chunks_mut::<W>().0.iter_mut().zip(numbers) {
        for (at, byte) in place.iter_mut().enumerate() {
            *byte = (number >> (8 * at)) as u8;
        }
    }
}

/// Numbers of `W` bytes each.
#[inline(always)]
fn widen<const W: usize>(bytes: &[u8], numbers: &mut [u64; BLOCK]) {
    for (to, place) in numbers.iter_mut().zip(bytes.as_chunks::<W>().0) {
        let mut number = 0;
        // Shifts: a copy of `W` bytes may be a call for each number.
        for (at, byte) in place.iter().enumerate() {
            number |= u64::from(*byte) << (8 * at);
        }
        *to = number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that follow the last column, so that every number can be read as eight bytes.
    const PADDING: usize = 8;

    fn packed(numbers: &[u64]) -> (PackedColumn, Vec<u8>) {
        let mut bytes = vec![7; 3];
        let column = PackedColumn::append(&mut bytes, numbers);
        bytes.resize(bytes.len() + PADDING, 0);
        let back: Vec<u64> = (0..numbers.len()).map(|row| column.get(&bytes, row)).collect();
        assert_eq!(back, numbers);
        for from in 0..numbers.len().min(70) {
            let (mut some, count) = ([7; BLOCK], (numbers.len() - from).min(BLOCK));
            column.fill(&bytes, from, &mut some);
            assert_eq!(some[..count], numbers[from..from + count]);
        }
        (column, bytes)
    }

    #[test]
    fn append_keeps_numbers_of_any_width() {
        for width in 0..=8 {
            let largest = if width == 0 { 0 } else { u64::MAX >> (64 - 8 * width) };
            let numbers: Vec<u64> = (0..300).map(|n| largest.saturating_sub(n * 3)).collect();
            packed(&numbers);
        }
        packed(&[]);
    }

    #[test]
    fn append_keeps_more_numbers_than_a_bitmap_can_count() {
        packed(&(0..200_000).map(|n| u64::from(n % 2 == 0) << 60).collect::<Vec<_>>());
    }

    #[test]
    fn append_keeps_few_numbers_with_a_bitmap() {
        for distance in [2, 7, 63, 64, 65, 500] {
            let numbers: Vec<u64> = (0..1_000).map(|n| if n % distance == 1 { n << 20 } else { 0 }).collect();
            packed(&numbers);
        }
        let (column, bytes) = packed(&(0..640).map(|n| u64::from(n == 639) << 60).collect::<Vec<_>>());
        assert_eq!((column.words, bytes.len()), (10, 3 + 10 * WORD_BYTES + 8 + PADDING));
        let (column, bytes) = packed(&[0; 640]);
        assert_eq!((column.width, bytes.len()), (0, 3 + PADDING));
    }
}
