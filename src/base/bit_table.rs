//! A table of numbers in which a number has as many bits as those near it need.
//!
//! In: rows of `N` numbers, one by one. Out: any number of any row in constant time: one look at its block and one or
//! two words. Rows are in blocks of 128; in a block a column keeps the distances from its least number, and the numbers
//! of a row follow each other, so that a row is in one cache line mostly. A column may have bits reserved: its numbers
//! can be changed as far as they fit. Its bytes in a file are its blocks and words as they are.

use super::pack::{Pack, Unpack};
use super::packed::Packed;
use get_size2::GetSize;

/// Rows of a block.
const ROWS: usize = 128;
const BITS: usize = u64::BITS as usize;

#[derive(Clone, Debug, PartialEq, Eq, GetSize)]
struct Block<const N: usize> {
    /// The first bit of the first row.
    at: u64,
    least: [u64; N],
    /// In a row: after the last bit of each number.
    ends: [u16; N],
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, GetSize)]
pub struct BitTable<const N: usize> {
    blocks: Vec<Block<N>>,
    /// The rows of all blocks, and zeros after them, so that two words can be read at the last number.
    words: Vec<u64>,
    /// Bits of them that are used.
    used: u64,
    /// The last rows, which are in no block yet.
    open: Vec<[u64; N]>,
    rows: usize,
    /// By column: the bits that a number has at least.
    reserved: [u8; N],
}

impl<const N: usize> Default for BitTable<N> {
    fn default() -> Self {
        BitTable::with_reserved([0; N])
    }
}

/// So many ones; at most 64.
#[inline(always)]
fn ones(bits: usize) -> u64 {
    u64::MAX.checked_shr((BITS - bits) as u32).unwrap_or(0)
}

impl<const N: usize> BitTable<N> {
    /// A table without rows, whose columns have this many bits at least.
    pub const fn with_reserved(reserved: [u8; N]) -> Self {
        BitTable { blocks: Vec::new(), words: Vec::new(), used: 0, open: Vec::new(), rows: 0, reserved }
    }

    /// The bits that a column has at least.
    pub fn reserved(&self, column: usize) -> u8 {
        self.reserved.get(column).copied().unwrap_or(0)
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Add a row.
    pub fn push(&mut self, row: [u64; N]) {
        self.open.push(row);
        self.rows += 1;
        if self.open.len() == ROWS {
            self.close();
        }
    }

    /// Once all rows are there: return memory that is not used.
    pub fn seal(&mut self) {
        self.close();
        self.open = Vec::new();
        self.blocks.shrink_to_fit();
        self.words.shrink_to_fit();
    }

    /// Make the open rows a block.
    fn close(&mut self) {
        let Some(first) = self.open.first() else { return };
        let (mut least, mut most) = (*first, *first);
        for row in &self.open {
            for ((least, most), number) in least.iter_mut().zip(&mut most).zip(row) {
                (*least, *most) = ((*least).min(*number), (*most).max(*number));
            }
        }
        let (mut ends, mut end) = ([0; N], 0);
        for (((least, most), reserved), place) in least.iter_mut().zip(&most).zip(&self.reserved).zip(&mut ends) {
            if *reserved > 0 {
                *least = 0;
            }
            end += (BITS - (most - *least).leading_zeros() as usize).max((*reserved).into());
            *place = end as u16;
        }
        let bits = self.used + (end * self.open.len()) as u64;
        self.blocks.push(Block { at: self.used, least, ends });
        self.words.truncate(self.used as usize / BITS + 1);
        self.words.reserve(bits as usize / BITS + 2 - self.words.len());
        let mut last = self.words.pop().unwrap_or(0);
        let mut filled = self.used as usize % BITS;
        for row in self.open.drain(..) {
            let mut from = 0;
            for ((number, least), end) in row.iter().zip(&least).zip(&ends) {
                let (number, bits) = (number - least, usize::from(end - from));
                from = *end;
                last |= number << filled;
                filled += bits;
                if let Some(rest) = filled.checked_sub(BITS) {
                    self.words.push(last);
                    // What did not fit; in two steps, since a word cannot be shifted by all of its bits.
                    last = if rest > 0 { number >> 1 >> (bits - rest - 1) } else { 0 };
                    filled = rest;
                }
            }
        }
        self.words.extend([last, 0]);
        self.used = bits;
    }

    /// Put a number of some bits to a place.
    fn put(&mut self, at: u64, bits: usize, number: u64) {
        let (word, shift) = (at as usize / BITS, at as usize % BITS);
        let mask = ones(bits);
        let Some([low, high]) = self.words.get_mut(word..word + 2) else { return };
        *low = *low & !(mask << shift) | number << shift;
        // In two steps, since a word cannot be shifted by all of its bits.
        let rest = BITS - 1 - shift;
        *high = *high & !(mask >> 1 >> rest) | number >> 1 >> rest;
    }

    /// Where a number is: its block, its first bit and its bits.
    #[inline(always)]
    fn place(&self, row: usize, column: usize) -> Option<(&Block<N>, u64, usize)> {
        let block = self.blocks.get(row / ROWS)?;
        let from = column.checked_sub(1).and_then(|before| block.ends.get(before)).copied().unwrap_or(0);
        let (end, long) = (block.ends.get(column)?, block.ends.last()?);
        let at = block.at + (row % ROWS) as u64 * u64::from(*long) + u64::from(from);
        Some((block, at, usize::from(end - from)))
    }

    /// A number of a row; 0 where there is none, and of rows that are in no block yet.
    #[inline(always)]
    pub fn get(&self, row: usize, column: usize) -> u64 {
        let Some((block, at, bits)) = self.place(row, column) else { return 0 };
        block.least.get(column).map_or(0, |least| least.wrapping_add(self.bits(at, bits)))
    }

    /// Some bits of a place.
    #[inline(always)]
    fn bits(&self, at: u64, bits: usize) -> u64 {
        let (word, shift) = (at as usize / BITS, at as usize % BITS);
        let Some([low, high]) = self.words.get(word..word + 2) else { return 0 };
        (low >> shift | high << 1 << (BITS - 1 - shift)) & ones(bits)
    }

    /// The numbers of a row.
    #[inline]
    pub fn row(&self, row: usize) -> [u64; N] {
        let Some((block, mut at, _)) = self.place(row, 0) else { return [0; N] };
        let (mut numbers, mut from) = (block.least, 0);
        for (number, end) in numbers.iter_mut().zip(&block.ends) {
            let bits = usize::from(end - from);
            if bits > 0 {
                *number = number.wrapping_add(self.bits(at, bits));
                at += bits as u64;
            }
            from = *end;
        }
        numbers
    }

    /// Change a number of a column with reserved bits, in which it fits.
    pub fn set(&mut self, row: usize, column: usize, number: u64) {
        let place = self.place(row, column).filter(|(.., bits)| row < self.rows && number <= ones(*bits));
        if let Some((_, at, bits)) = place {
            self.put(at, bits, number);
        }
    }

    /// The first row of a range for which `is_before` is false, by the number in a column; it is true up to some row.
    #[inline(always)]
    pub fn partition_point(
        &self,
        (mut low, mut high): (usize, usize),
        column: usize,
        is_before: impl Fn(u64) -> bool,
    ) -> usize {
        while low < high {
            let middle = low.midpoint(high);
            if is_before(self.get(middle, column)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// A table to which no rows are added any more: the number of rows; by column the reserved bits; by block the least
/// number and the bits of each column; the words.
impl<const N: usize> Packed for BitTable<N> {
    fn pack(&self, pack: &mut Pack) {
        self.rows.pack(pack);
        self.reserved.iter().for_each(|bits| bits.pack(pack));
        for Block { at: _, least, ends } in &self.blocks {
            least.iter().for_each(|least| least.pack(pack));
            ends.iter().for_each(|end| end.pack(pack));
        }
        self.words.iter().for_each(|word| pack.0.extend(word.to_le_bytes()));
    }

    fn unpack(unpack: &mut Unpack<'_>) -> Option<Self> {
        let rows = usize::unpack(unpack)?;
        let mut table = BitTable::with_reserved([0; N]);
        for bits in &mut table.reserved {
            *bits = u8::unpack(unpack)?;
        }
        while table.rows < rows {
            let mut block = Block { at: table.used, least: [0; N], ends: [0; N] };
            for least in &mut block.least {
                *least = u64::unpack(unpack)?;
            }
            let mut from = 0;
            for ((end, least), reserved) in block.ends.iter_mut().zip(block.least).zip(table.reserved) {
                *end = u16::unpack(unpack)?;
                let bits = usize::from(end.checked_sub(from)?);
                let is_right = reserved == 0 || least == 0 && usize::from(reserved) <= bits;
                from = Some(*end).filter(|_| is_right && bits <= BITS)?;
            }
            let more = ROWS.min(rows - table.rows);
            table.rows += more;
            table.used = table.used.checked_add(more as u64 * u64::from(from))?;
            table.blocks.push(block);
        }
        table.blocks.shrink_to_fit();
        if rows > 0 {
            let bytes = (usize::try_from(table.used).ok()? / BITS + 2).checked_mul(WORD)?;
            let (words, rest) = unpack.0.split_at_checked(bytes)?;
            table.words = words.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
            unpack.0 = rest;
        }
        Some(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::packed::{bytes_of, value_of};
    use crate::base::statistics::Random;

    #[test]
    fn bit_table_keeps_numbers_of_any_size() {
        let mut random = Random::new(4);
        for rows in [0, 1, 127, 128, 129, 1_000] {
            let mut table = BitTable::with_reserved([0, 0, 0, 7, 0]);
            let mut all = Vec::new();
            for row in 0..rows {
                let any = (random.below(1 << 30) as u64) << 34 | random.below(1 << 30) as u64;
                let large = [any, u64::MAX, 0][random.below(3)];
                let numbers = [random.below(9) as u64, large, row as u64 * 1_000 + 1, 5, u64::MAX - 3];
                table.push(numbers);
                all.push(numbers);
            }
            table.seal();
            for (row, numbers) in all.iter_mut().enumerate().filter(|(row, _)| row % 3 == 0) {
                numbers[3] = row as u64 % 128;
                table.set(row, 3, numbers[3]);
                // It does not fit.
                table.set(row, 3, 128);
            }
            table.set(rows, 3, 9);
            assert_eq!((0..table.len()).map(|row| table.row(row)).collect::<Vec<_>>(), all);
            let bytes = bytes_of(&table);
            assert_eq!(value_of(&bytes), Some(table.clone()));
            assert!((0..bytes.len()).all(|end| value_of::<BitTable<5>>(&bytes[..end]).is_none()));
            for wanted in [0, 1, 5_001, 1 << 40] {
                let found = table.partition_point((0, rows), 2, |number| number < wanted);
                assert_eq!(found, all.iter().filter(|numbers| numbers[2] < wanted).count());
            }
        }
    }

    #[test]
    fn numbers_that_are_alike_take_no_bits() {
        let mut table = BitTable::<2>::default();
        (0..12_800).for_each(|row| table.push([1 << 50, 900 + row / 128]));
        table.seal();
        assert!(table.get_heap_size() < 100 * 100, "{}", table.get_heap_size());
        assert_eq!(table.row(12_799), [1 << 50, 999]);
    }
}
