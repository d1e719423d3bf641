//! What is known of one value of the rows of a part.

use super::leaf::MOST_SHOWN;

/// What is known of one value of the rows of a part; nothing by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartValue(pub(super) u8);

pub type PartValues = [PartValue; MOST_SHOWN];

impl PartValue {
    /// The other facts hold.
    pub(super) const SURE: u8 = 1;
    /// The first row touches the one before it in the line, and both show the same known value.
    pub(super) const JOINS: u8 = 2;
    /// All rows touch and show the same known value.
    pub(super) const ONE: u8 = 4;
    /// No row shows a known value.
    pub(super) const UNKNOWN: u8 = 8;
    /// The first row has a length and shows a known value: the start of the part is that of the value.
    pub(super) const STARTS: u8 = 16;
    /// The facts of a part that has no row with a length.
    pub(super) const EMPTY: u8 = Self::SURE | Self::UNKNOWN;
    pub(super) const ALL: u8 = 31;
    /// Bits of these facts.
    pub(super) const BITS: u8 = 5;

    /// Those of a part as one number.
    pub fn to_number(values: PartValues) -> u64 {
        values.iter().rev().fold(0, |all, value| all << Self::BITS | u64::from(value.0))
    }

    /// Those of a number; `None` for one that is none.
    pub fn of_number(number: u64) -> Option<PartValues> {
        let bits = u32::from(Self::BITS);
        let values = std::array::from_fn(|at| PartValue((number >> (at as u32 * bits)) as u8 & Self::ALL));
        (number >> (MOST_SHOWN as u32 * bits) == 0).then_some(values)
    }

    fn is(self, fact: u8) -> bool {
        self.0 & fact != 0
    }

    /// True where anything is known.
    pub fn is_sure(self) -> bool {
        self.is(Self::SURE)
    }

    /// The first row continues the value of the one before it in the line.
    pub fn joins(self) -> bool {
        self.is(Self::JOINS)
    }

    /// All rows are one interval.
    pub fn is_one(self) -> bool {
        self.is(Self::ONE)
    }

    /// No row shows a known value.
    pub fn is_unknown(self) -> bool {
        self.is(Self::UNKNOWN)
    }

    /// The first known value begins where the part does.
    pub fn starts(self) -> bool {
        self.is(Self::STARTS)
    }

    pub(super) fn with_joins(self, joins: bool) -> PartValue {
        PartValue(if joins { self.0 | Self::JOINS } else { self.0 & !Self::JOINS })
    }
}
