//! Values as bytes, field by field.
//!
//! In: a value. Out: its bytes ([`Pack`]), and the value of such bytes. Numbers of any type are packed integers, lists
//! have their length in front, a structure is its fields one after the other. Nothing in the bytes is trusted: reading
//! gives `None` where they are none of ours, and a list that claims more items than there are bytes is refused before
//! anything is allocated.

use super::pack::{Pack, Unpack};
use super::time::{ClockCorrection, Span, Timestamp};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// A value that has a form in bytes.
pub trait Packed: Sized {
    /// Add its bytes.
    fn pack(&self, pack: &mut Pack);
    /// The next value.
    fn unpack(unpack: &mut Unpack<'_>) -> Option<Self>;
}

/// Items of a list for which space is made before they are read.
const BELIEVED: usize = 32;

/// The bytes of a value.
pub fn bytes_of(value: &impl Packed) -> Vec<u8> {
    let mut pack = Pack::default();
    value.pack(&mut pack);
    pack.0
}

/// The value of which these are the bytes, all of them.
pub fn value_of<T: Packed>(bytes: &[u8]) -> Option<T> {
    let mut unpack = Unpack(bytes);
    T::unpack(&mut unpack).filter(|_| unpack.0.is_empty())
}

/// Structures whose fields are packed in the order in which they are listed.
macro_rules! packed {
    ($($name:ident { $($field:ident),+ $(,)? })+) => {$(
        impl $crate::base::packed::Packed for $name {
            fn pack(&self, pack: &mut $crate::base::pack::Pack) {
                let $name { $($field),+ } = self;
                $($crate::base::packed::Packed::pack($field, pack);)+
            }
            fn unpack(unpack: &mut $crate::base::pack::Unpack<'_>) -> Option<Self> {
                $(let $field = $crate::base::packed::Packed::unpack(unpack)?;)+
                Some($name { $($field),+ })
            }
        }
    )+};
}
pub(crate) use packed;

/// Enumerations, packed as the position of the variant in the list, and its fields in the order in which they are
/// listed.
macro_rules! packed_variants {
    ($($name:ident {
        $($variant:ident $({ $($field:ident),+ })? $(( $($item:ident),+ ))?),+ $(,)?
    })+) => {$(
        impl $crate::base::packed::Packed for $name {
            fn pack(&self, pack: &mut $crate::base::pack::Pack) {
                enum Position { $($variant),+ }
                match self {$(
                    $name::$variant $({ $($field),+ })? $(( $($item),+ ))? => {
                        pack.number(Position::$variant as u64);
                        $($($crate::base::packed::Packed::pack($field, pack);)+)?
                        $($($crate::base::packed::Packed::pack($item, pack);)+)?
                    }
                )+}
            }
            fn unpack(unpack: &mut $crate::base::pack::Unpack<'_>) -> Option<Self> {
                enum Position { $($variant),+ }
                let all = [$(Position::$variant),+];
                Some(match all.get(unpack.index(all.len())?)? {$(
                    Position::$variant => {
                        $($(let $field = $crate::base::packed::Packed::unpack(unpack)?;)+)?
                        $($(let $item = $crate::base::packed::Packed::unpack(unpack)?;)+)?
                        $name::$variant $({ $($field),+ })? $(( $($item),+ ))?
                    }
                )+})
            }
        }
    )+};
}
pub(crate) use packed_variants;

macro_rules! integers {
    ($($name:ident $way:ident $wide:ident;)+) => {$(
        impl Packed for $name {
            fn pack(&self, pack: &mut Pack) {
                pack.$way($wide::from(*self));
            }
            fn unpack(unpack: &mut Unpack<'_>) -> Option<Self> {
                $name::try_from(unpack.$way()?).ok()
            }
        }
    )+};
}

integers! {
    u8 number u64;
    u16 number u64;
    u32 number u64;
    u64 number u64;
    i32 signed i64;
    i64 signed i64;
}

impl Packed for bool {
    fn pack(&self, pack: &mut Pack) {
        pack.number(u64::from(*self));
    }

    fn unpack(unpack: &mut Unpack<'_>) -> Option<Self> {
        unpack.index(2).map(|bit| bit == 1)
    }
}

impl Packed for usize {
    fn pack(&self, pack: &mut Pack) {
        pack.number(*self as u64);
    }

    fn unpack(unpack: &mut Unpack<'_>) -> Option<Self> {
        usize::try_from(unpack.number()?).ok()
    }
}

impl Packed for i128 {
    fn pack(&self, pack: &mut Pack) {
        pack.0.extend(self.to_le_bytes());
    }

    fn unpack(unpack: &mut Unpack<'_>) -> Option<Self> {
        let (bytes, rest) = unpack.0.split_first_chunk()?;
        unpack.0 = rest;
        Some(i128::from_le_bytes(*bytes))
    }
}

impl Packed for String {
    fn pack(&self, pack: &mut Pack) {
        pack.text(self);
    }

    fn unpack(unpack: &mut Unpack<'_>) -> Option<Self> {
        unpack.text()
    }
}

impl Packed for Box<str> {
    fn pack(&self, pack: &mut Pack) {
        pack.text(self);
    }

    fn unpack(unpack: &mut Unpack<'_>) -> Option<Self> {
        unpack.text().map(String::into_boxed_str)
    }
}

impl Packed for Range<u64> {
    fn pack(&self, pack: &mut Pack) {
        pack.number(self.start);
        pack.number(self.end);
    }

    fn unpack(unpack: &mut Unpack<'_>) -> Option<Self> {
        Some(unpack.number()?..unpack.number()?)
    }
}

impl Packed for Timestamp {
    fn pack(&self, pack: &mut Pack) {
        pack.moment(*self);
    }

    fn unpack(unpack: &mut Unpack<'_>) -> Option<Self> {
        unpack.moment()
    }
}

/// The start and the length, which never is negative.
impl Packed for Span {
    fn pack(&self, pack: &mut Pack) {
        pack.moment(self.start);
        pack.number(self.end.abs_diff(self.start));
    }

    fn unpack(unpack: &mut Unpack<'_>) -> Option<Self> {
        let start = unpack.moment()?;
        let end = Timestamp::checked(i128::from(start) + i128::from(unpack.number()?))?;
        Some(Span::new(start, end))
    }
}

impl<T: Packed> Packed for Option<T> {
    fn pack(&self, pack: &mut Pack) {
        pack.maybe(self.as_ref(), |pack, value| value.pack(pack));
    }

    fn unpack(unpack: &mut Unpack<'_>) -> Option<Self> {
        unpack.maybe(T::unpack).ok()
    }
}

impl<T: Packed> Packed for Vec<T> {
    fn pack(&self, pack: &mut Pack) {
        pack.number(self.len() as u64);
        self.iter().for_each(|value| value.pack(pack));
    }

    fn unpack(unpack: &mut Unpack<'_>) -> Option<Self> {
        // Each item takes a byte or more.
        let items = unpack.index(unpack.0.len().checked_add(1)?)?;
        let mut list = Vec::with_capacity(items.min(BELIEVED));
        for _ in 0..items {
            list.push(T::unpack(unpack)?);
        }
        Some(list)
    }
}

/// In order; one that is not, or has an item twice, is none of ours.
impl<T: Packed + Ord> Packed for BTreeSet<T> {
    fn pack(&self, pack: &mut Pack) {
        pack.number(self.len() as u64);
        self.iter().for_each(|value| value.pack(pack));
    }

    fn unpack(unpack: &mut Unpack<'_>) -> Option<Self> {
        let all: Vec<T> = Vec::unpack(unpack)?;
        all.is_sorted_by(|a, b| a < b).then(|| all.into_iter().collect())
    }
}

/// A list whose length never changes.
impl<T: Packed> Packed for Box<[T]> {
    fn pack(&self, pack: &mut Pack) {
        pack.number(self.len() as u64);
        self.iter().for_each(|value| value.pack(pack));
    }

    fn unpack(unpack: &mut Unpack<'_>) -> Option<Self> {
        Vec::unpack(unpack).map(Vec::into_boxed_slice)
    }
}

impl<T: Packed> Packed for Arc<T> {
    fn pack(&self, pack: &mut Pack) {
        T::pack(self, pack);
    }

    fn unpack(unpack: &mut Unpack<'_>) -> Option<Self> {
        T::unpack(unpack).map(Arc::new)
    }
}

packed! { ClockCorrection { origin, offset, drift } }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_of_reads_what_bytes_of_wrote() {
        let value = vec![Some((1u32 << 31, i64::MIN)), None].into_iter().map(|one| one.map(|(a, b)| vec![a as i64, b]));
        let value: Vec<Option<Vec<i64>>> = value.collect();
        assert_eq!(value_of::<Vec<Option<Vec<i64>>>>(&bytes_of(&value)), Some(value));
        for number in [i128::MIN, -1, 0, i128::MAX] {
            assert_eq!(value_of::<i128>(&bytes_of(&number)), Some(number));
        }
        let longest = Span::new(Timestamp::new(i64::MIN), Timestamp::MAX);
        assert_eq!(value_of::<Span>(&bytes_of(&longest)), Some(longest));
    }

    #[test]
    fn value_of_refuses_what_is_cut_off_too_long_or_out_of_range() {
        let bytes = bytes_of(&vec!["a text".to_owned(), String::new()]);
        for end in 0..bytes.len() {
            assert_eq!(value_of::<Vec<String>>(&bytes[..end]), None);
        }
        assert_eq!(value_of::<Vec<String>>(&[&bytes[..], &[0]].concat()), None);
        assert_eq!(value_of::<Vec<u8>>(&[0xff, 0xff, 0xff, 0xff, 0x0f]), None, "a list of 4 G items in no bytes");
        assert_eq!(value_of::<u8>(&bytes_of(&256u64)), None);
        assert_eq!(value_of::<bool>(&[2]), None);
    }
}
