//! Integers and texts as bytes: small numbers take one byte, up to ten for the largest (LEB128).
//!
//! Numbers with a sign are folded first (0, -1, 1, -2 ... become 0, 1, 2, 3 ...), so that small ones of either sign
//! stay short. Reading cannot panic: `None` where the bytes end or are none of ours.

use super::text::copied_exactly;
use super::time::Timestamp;

/// Bytes being written.
#[derive(Debug, Default)]
pub struct Pack(pub Vec<u8>);

impl Pack {
    pub fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A number with a sign.
    pub fn signed(&mut self, value: i64) {
        self.number(fold(value));
    }

    pub fn moment(&mut self, value: Timestamp) {
        self.signed(value.ns());
    }

    /// A text and its length.
    pub fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    /// A value that may be missing, as a list of none or one.
    pub fn maybe<T>(&mut self, value: Option<T>, put: impl FnOnce(&mut Pack, T)) {
        self.number(value.is_some().into());
        if let Some(value) = value {
            put(self, value);
        }
    }
}

/// The bytes are no optional value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged;

/// Bytes being read.
#[derive(Clone, Copy, Debug)]
pub struct Unpack<'a>(pub &'a [u8]);

impl<'a> Unpack<'a> {
    /// A number; `None` where the bytes end or are none, here as below.
    #[inline]
    pub fn number(&mut self) -> Option<u64> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        if *first < 0x80 { Some((*first).into()) } else { self.long(u64::from(*first & 0x7f)) }
    }

    fn long(&mut self, mut value: u64) -> Option<u64> {
        for shift in (7..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            let bits = u64::from(*byte & 0x7f);
            value |= bits << shift;
            if *byte < 0x80 {
                return (bits << shift >> shift == bits).then_some(value);
            }
        }
        None
    }

    /// A number with a sign.
    #[inline]
    pub fn signed(&mut self) -> Option<i64> {
        self.number().map(unfold)
    }

    #[inline]
    pub fn moment(&mut self) -> Option<Timestamp> {
        self.signed().map(Timestamp::new)
    }

    /// A number below `end`: a position in a table of that length.
    #[inline]
    pub fn index(&mut self, end: usize) -> Option<usize> {
        usize::try_from(self.number()?).ok().filter(|i| *i < end)
    }

    /// A text, copied before it is checked: the bytes may be those of a file that others write to.
    pub fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        copied_exactly(text)
    }

    /// A value that may be absent.
    pub fn maybe<T>(&mut self, get: impl FnOnce(&mut Self) -> Option<T>) -> Result<Option<T>, Damaged> {
        match self.number() {
            Some(0) => Ok(None),
            Some(1) => get(self).map(Some).ok_or(Damaged),
            _ => Err(Damaged),
        }
    }
}

/// 0, -1, 1, -2 ... to 0, 1, 2, 3 ...
pub fn fold(value: i64) -> u64 {
    (value as u64) << 1 ^ (value >> 63) as u64
}

/// The way back.
pub fn unfold(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unpack_reads_what_pack_wrote() {
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), 1 << 62, 1 << 63, u64::MAX];
        let mut pack = Pack::default();
        numbers.iter().for_each(|n| pack.number(*n));
        numbers.iter().for_each(|n| pack.signed(*n as i64));
        pack.text("naïve");
        pack.maybe(Some(7), Pack::number);
        pack.maybe(None, Pack::number);
        let mut read = Unpack(&pack.0);
        assert!(numbers.iter().all(|n| read.number() == Some(*n)));
        assert!(numbers.iter().all(|n| read.signed() == Some(*n as i64)));
        assert_eq!((read.text(), read.maybe(Unpack::number)), (Some("naïve".to_owned()), Ok(Some(7))));
        assert_eq!((read.maybe(Unpack::number), read.number()), (Ok(None), None));
    }

    #[test]
    fn unpack_refuses_other_bytes() {
        for bytes in [&[0x80][..], &[0xff; 11], &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]] {
            assert_eq!(Unpack(bytes).number(), None, "{bytes:?}");
        }
        assert_eq!(Unpack(&[2, 0xc3, 0x28]).text(), None);
        assert_eq!(Unpack(&[200, 1]).text(), None);
        assert_eq!((Unpack(&[3]).index(3), Unpack(&[2]).index(3)), (None, Some(2)));
    }
}
