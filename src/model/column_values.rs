//! The values of one metric, in as few bytes as they need.
//!
//! In: values one after the other. Out: each by its position. Blocks of 4,096 executions: one that has the same value
//! everywhere keeps it once, another keeps signed numbers of 1, 2, 4 or 8 bytes, as its largest needs. A time takes 4
//! bytes, a count one, a metric that does not occur none; a value eight times as long makes its own block wider and no
//! other. Invariant: the form depends on the values alone, so equal columns are equal. Cost: `get` is a division and a
//! comparison; a block that becomes wider is written again, three times at most.

use get_size2::GetSize;

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

/// Consecutive values. The least number of a width is [`ABSENT`].
#[derive(Clone, Debug, PartialEq, Eq, GetSize)]
enum Block {
    /// So many equal ones.
    Same(i64, usize),
    Bytes(Vec<i8>),
    Halves(Vec<i16>),
    Words(Vec<i32>),
    Doubles(Vec<i64>),
}

/// A signed number that values are kept in.
trait Width: Copy {
    fn of(value: i64) -> Option<Self>;
    fn value(self) -> i64;
}

macro_rules! widths {
    ($($width:ident),+) => {$(
        impl Width for $width {
            fn of(value: i64) -> Option<Self> {
                match value {
                    ABSENT => Some($width::MIN),
                    _ => $width::try_from(value).ok().filter(|kept| *kept != $width::MIN),
                }
            }

            fn value(self) -> i64 {
                if self == $width::MIN { ABSENT } else { i64::from(self) }
            }
        }
    )+};
}

widths!(i8, i16, i32);

/// Add a value if it has a form in this width.
fn add<W: Width>(list: &mut Vec<W>, value: i64) -> bool {
    W::of(value).is_some_and(|kept| {
        list.push(kept);
        true
    })
}

/// All of some values in this width.
fn all<W: Width>(values: impl Iterator<Item = i64>) -> Option<Vec<W>> {
    values.map(W::of).collect()
}

impl Block {
    fn len(&self) -> usize {
        match self {
            Block::Same(_, len) => *len,
            Block::Bytes(list) => list.len(),
            Block::Halves(list) => list.len(),
            Block::Words(list) => list.len(),
            Block::Doubles(list) => list.len(),
        }
    }

    fn get(&self, at: usize) -> Option<i64> {
        match self {
            Block::Same(value, len) => (at < *len).then_some(*value),
            Block::Bytes(list) => list.get(at).map(|kept| kept.value()),
            Block::Halves(list) => list.get(at).map(|kept| kept.value()),
            Block::Words(list) => list.get(at).map(|kept| kept.value()),
            Block::Doubles(list) => list.get(at).copied(),
        }
    }

    fn iter(&self) -> impl Iterator<Item = i64> + '_ {
        (0..self.len()).filter_map(|at| self.get(at))
    }

    fn push(&mut self, value: i64) {
        let fits = match self {
            Block::Same(same, len) if *same == value => {
                *len += 1;
                true
            }
            Block::Same(..) => false,
            Block::Bytes(list) => add(list, value),
            Block::Halves(list) => add(list, value),
            Block::Words(list) => add(list, value),
            Block::Doubles(list) => {
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
        if let Some(list) = all(values()) {
            return Block::Bytes(list);
        }
        if let Some(list) = all(values()) {
            return Block::Halves(list);
        }
        all(values()).map_or_else(|| Block::Doubles(values().collect()), Block::Words)
    }
}

impl ColumnValues {
    /// Add the next execution's value.
    pub fn push(&mut self, value: i64) {
        match self.blocks.last_mut().filter(|last| last.len() < BLOCK) {
            Some(last) => last.push(value),
            None => self.blocks.push(Block::Same(value, 1)),
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
    pub fn get(&self, at: usize) -> Option<i64> {
        self.blocks.get(at / BLOCK)?.get(at % BLOCK)
    }

    /// All values in order.
    pub fn iter(&self) -> impl Iterator<Item = i64> + '_ {
        self.blocks.iter().flat_map(Block::iter)
    }

    /// True if an execution has a value.
    pub fn any(&self) -> bool {
        let has_any = |block: &Block| block.iter().any(|value| value != ABSENT);
        self.blocks.iter().any(has_any)
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
        // One wide value widens its own block.
        let wide = |i: i64| if i == 0 { i64::MAX } else { i % 100 };
        assert!(bytes(&mut (0..3 * BLOCK as i64).map(wide)) <= 10 * BLOCK + blocks);
        let mut padded = ColumnValues::from(vec![1]);
        padded.pad(3);
        assert_eq!(padded.iter().collect::<Vec<_>>(), [1, ABSENT, ABSENT]);
    }
}
