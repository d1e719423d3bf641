//! The values of one metric, or of one property of executions, in as few bytes as they need.
//!
//! In: values one after the other. Out: each by its position. Blocks of 4,096 executions: one that has the same value
//! everywhere keeps it once, another keeps the distances from its first value in 1, 2 or 4 bytes, as its largest needs,
//! or the values in 8. A time takes 4 bytes, a count one, a metric that does not occur none; a value eight times as
//! long makes its own block wider and no other. Invariant: the form depends on the values alone, so equal columns are
//! equal. Cost: `get` is a division and a comparison; a block that becomes wider is written again, three times at most.
//! A column that is consumed gives its blocks back one after the other.

use super::ids::{ThreadInfoId, TraceId};
use crate::base::time::Timestamp;
use get_size2::GetSize;
use std::marker::PhantomData;

/// Marks "no value" in a column.
pub const ABSENT: i64 = i64::MIN;

/// Values of a block.
const BLOCK: usize = 4096;

/// Values by execution; [`ABSENT`] where there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, GetSize)]
pub struct ColumnValues {
    blocks: Vec<Block>,
    len: usize,
}

/// Consecutive values.
#[derive(Clone, Debug, PartialEq, Eq, GetSize)]
struct Block {
    /// The first value that is there; [`ABSENT`] where none is.
    base: i64,
    kept: Kept,
}

/// The values of a block. The least number of a width is [`ABSENT`].
#[derive(Clone, Debug, PartialEq, Eq, GetSize)]
enum Kept {
    /// So many that equal the base.
    Same(usize),
    Bytes(Vec<i8>),
    Halves(Vec<i16>),
    Words(Vec<i32>),
    /// The values themselves.
    Doubles(Vec<i64>),
}

/// A signed number in which distances are kept.
trait Width: Copy {
    fn of(value: i64, base: i64) -> Option<Self>;
    fn value(self, base: i64) -> i64;
}

macro_rules! widths {
    ($($width:ident),+) => {$(
        impl Width for $width {
            #[inline]
            fn of(value: i64, base: i64) -> Option<Self> {
                match value {
                    ABSENT => Some($width::MIN),
                    _ => $width::try_from(value.checked_sub(base)?).ok().filter(|kept| *kept != $width::MIN),
                }
            }

            #[inline]
            fn value(self, base: i64) -> i64 {
                // A sum of two that were subtracted before.
                if self == $width::MIN { ABSENT } else { base.wrapping_add(i64::from(self)) }
            }
        }
    )+};
}

widths!(i8, i16, i32);

/// Add a value if it has a form in this width.
fn add<W: Width>(list: &mut Vec<W>, value: i64, base: i64) -> bool {
    W::of(value, base).is_some_and(|kept| {
        list.push(kept);
        true
    })
}

/// All of some values in this width.
fn all<W: Width>(values: impl Iterator<Item = i64>, base: i64) -> Option<Vec<W>> {
    values.map(|value| W::of(value, base)).collect()
}

impl Block {
    fn len(&self) -> usize {
        match &self.kept {
            Kept::Same(len) => *len,
            Kept::Bytes(list) => list.len(),
            Kept::Halves(list) => list.len(),
            Kept::Words(list) => list.len(),
            Kept::Doubles(list) => list.len(),
        }
    }

    /// The value at a place that the block has.
    #[inline]
    fn value(&self, at: usize) -> i64 {
        match &self.kept {
            Kept::Same(_) => self.base,
            Kept::Bytes(list) => list[at].value(self.base),
            Kept::Halves(list) => list[at].value(self.base),
            Kept::Words(list) => list[at].value(self.base),
            Kept::Doubles(list) => list[at],
        }
    }

    fn iter(&self) -> impl Iterator<Item = i64> + '_ {
        (0..self.len()).map(|at| self.value(at))
    }

    fn push(&mut self, value: i64) {
        let base = self.base;
        let fits = match &mut self.kept {
            Kept::Same(len) if base == value => {
                *len += 1;
                true
            }
            Kept::Same(_) => false,
            Kept::Bytes(list) => add(list, value, base),
            Kept::Halves(list) => add(list, value, base),
            Kept::Words(list) => add(list, value, base),
            Kept::Doubles(list) => {
                list.push(value);
                true
            }
        };
        if !fits {
            *self = Block::narrowest(|| self.iter().chain([value]));
        }
    }

    /// The block of some values that are not all equal.
    fn narrowest<I: Iterator<Item = i64>>(values: impl Fn() -> I) -> Block {
        let base = values().find(|value| *value != ABSENT).unwrap_or(ABSENT);
        let kept = None
            .or_else(|| all(values(), base).map(Kept::Bytes))
            .or_else(|| all(values(), base).map(Kept::Halves))
            .or_else(|| all(values(), base).map(Kept::Words))
            .unwrap_or_else(|| Kept::Doubles(values().collect()));
        Block { base, kept }
    }
}

impl ColumnValues {
    /// Add the next execution's value.
    pub fn push(&mut self, value: i64) {
        match self.blocks.last_mut().filter(|last| last.len() < BLOCK) {
            Some(last) => last.push(value),
            None => self.blocks.push(Block { base: value, kept: Kept::Same(1) }),
        }
        self.len += 1;
    }

    /// Add executions without a value until there are `len`.
    pub fn pad(&mut self, len: usize) {
        (self.len..len).for_each(|_| self.push(ABSENT));
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value of an execution.
    #[inline]
    pub fn get(&self, at: usize) -> Option<i64> {
        (at < self.len).then(|| self.at(at))
    }

    /// The value of an execution which is there.
    ///
    /// # Panics
    ///
    /// If there is no such execution.
    #[inline]
    pub fn at(&self, at: usize) -> i64 {
        self.blocks[at / BLOCK].value(at % BLOCK)
    }

    /// All values in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = i64> + '_ {
        (0..self.len).map(|at| self.at(at))
    }

    /// True if an execution has a value.
    pub fn any(&self) -> bool {
        let has_any = |block: &Block| block.iter().any(|value| value != ABSENT);
        self.blocks.iter().any(has_any)
    }
}

impl IntoIterator for ColumnValues {
    type Item = i64;
    type IntoIter = Box<dyn Iterator<Item = i64>>;

    /// All values in order; a block is given back when its last value was taken.
    fn into_iter(self) -> Self::IntoIter {
        let values = |block: Block| (0..block.len()).map(move |at| block.value(at));
        Box::new(self.blocks.into_iter().flat_map(values))
    }
}

/// A value that a column keeps as a number.
pub trait Stored: Copy {
    /// The value as a number.
    fn number(self) -> i64;
    /// The value that [`Stored::number`] made this number of.
    fn from_number(number: i64) -> Self;
}

macro_rules! stored {
    ($($stored:ty: $value:ident => $number:expr, $from:expr;)+) => {$(
        impl Stored for $stored {
            #[inline]
            fn number(self) -> i64 {
                let $value = self;
                $number
            }

            #[inline]
            fn from_number($value: i64) -> Self {
                $from
            }
        }
    )+};
}

stored! {
    i64: value => value, value;
    u16: value => value.into(), value as u16;
    bool: value => value.into(), value != 0;
    Timestamp: value => value.ns(), Timestamp::new(value);
    ThreadInfoId: value => value.raw().into(), ThreadInfoId::from_raw(value as u32);
    TraceId: value => value.raw().into(), TraceId::from_raw(value as u32);
}

/// A property that each execution has, by execution.
#[derive(Clone, Debug, PartialEq, Eq, GetSize)]
pub struct PropertyValues<T> {
    numbers: ColumnValues,
    value: PhantomData<T>,
}

impl<T> Default for PropertyValues<T> {
    fn default() -> Self {
        PropertyValues { numbers: ColumnValues::default(), value: PhantomData }
    }
}

impl<T: Stored> PropertyValues<T> {
    /// Add the value of the next execution.
    pub fn push(&mut self, value: T) {
        self.numbers.push(value.number());
    }

    /// The value of an execution.
    #[inline]
    pub fn get(&self, at: usize) -> Option<T> {
        self.numbers.get(at).map(T::from_number)
    }

    /// The value of an execution which is there.
    ///
    /// # Panics
    ///
    /// If there is no such execution.
    #[inline]
    pub fn at(&self, at: usize) -> T {
        T::from_number(self.numbers.at(at))
    }

    /// All values in order.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.numbers.iter().map(T::from_number)
    }

    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }
}

impl<T: Stored> IntoIterator for PropertyValues<T> {
    type Item = T;
    type IntoIter = std::iter::Map<<ColumnValues as IntoIterator>::IntoIter, fn(i64) -> T>;

    /// All values in order; memory is given back block by block.
    fn into_iter(self) -> Self::IntoIter {
        self.numbers.into_iter().map(T::from_number)
    }
}

impl<T: Stored> FromIterator<T> for PropertyValues<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        PropertyValues { numbers: values.into_iter().map(T::number).collect(), value: PhantomData }
    }
}

impl FromIterator<i64> for ColumnValues {
    fn from_iter<I: IntoIterator<Item = i64>>(values: I) -> Self {
        let mut column = ColumnValues::default();
        values.into_iter().for_each(|value| column.push(value));
        column
    }
}

impl From<Vec<i64>> for ColumnValues {
    fn from(values: Vec<i64>) -> Self {
        values.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn column_values_are_those_that_came(
            runs in proptest::collection::vec((any::<i64>(), 0_u32..64, 1_usize..3_000), 0..12),
        ) {
            let mut all: Vec<i64> = Vec::new();
            for (value, shift, times) in runs {
                // Values of every width, their bounds and none, alone and in runs.
                let value = match shift {
                    0 => ABSENT,
                    1..8 => [-128, 127, -32_768, 32_767, -2_147_483_648, 2_147_483_647, 0][shift as usize - 1],
                    _ => value >> shift,
                };
                all.extend(std::iter::repeat_n(value, times));
            }
            let column: ColumnValues = all.iter().copied().collect();
            prop_assert!(column.iter().eq(all.iter().copied()));
            prop_assert!((0..all.len() + 2).all(|i| column.get(i) == all.get(i).copied()));
            prop_assert!(column.clone().into_iter().eq(all.iter().copied()));
            prop_assert_eq!((column.len(), column.any()), (all.len(), all.iter().any(|v| *v != ABSENT)));
            prop_assert_eq!(&column, &ColumnValues::from(all));
        }
    }

    #[test]
    fn column_values_take_as_many_bytes_as_they_need() {
        let bytes = |values: &mut dyn Iterator<Item = i64>| values.collect::<ColumnValues>().get_heap_size();
        let blocks = size_of::<Block>() * 4;
        assert!(bytes(&mut std::iter::repeat_n(7, BLOCK)) <= blocks);
        assert!(bytes(&mut (0..BLOCK as i64).map(|i| i % 100)) <= BLOCK + blocks);
        assert!(bytes(&mut (0..BLOCK as i64).map(|i| i * 100_000)) <= 4 * BLOCK + blocks);
        // Times of day that follow each other.
        assert!(bytes(&mut (0..BLOCK as i64).map(|i| 1_700_000_000_000_000_000 + i * 100_000)) <= 4 * BLOCK + blocks);
        // One wide value widens its own block.
        let wide = |i: i64| if i == 0 { i64::MAX } else { i % 100 };
        assert!(bytes(&mut (0..3 * BLOCK as i64).map(wide)) <= 10 * BLOCK + blocks);
        let mut padded = ColumnValues::from(vec![1]);
        padded.pad(3);
        assert_eq!(padded.iter().collect::<Vec<_>>(), [1, ABSENT, ABSENT]);
    }
}
