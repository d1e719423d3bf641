//! Lines of a text, one at a time, each of at most [`MOST`] bytes; numbers and comma-separated values in them.

use super::translation::Translation;
use crate::base::text::{copied, with_copy};
use std::io::{self, BufRead, Read};

/// The longest line; what is longer is skipped to its end.
const MOST: u64 = 1 << 16;

/// A line without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextLine<'l> {
    Whole(&'l [u8]),
    /// It has more than [`MOST`] bytes.
    TooLong,
}

/// Reads lines.
pub(super) struct TextLines<'a, R> {
    from: &'a mut R,
    line: Vec<u8>,
    /// The number of the last line, from 1.
    pub number: u64,
}

impl<'a, R: BufRead> TextLines<'a, R> {
    pub fn new(from: &'a mut R) -> Self {
        TextLines { from, line: Vec::new(), number: 0 }
    }

    /// The next line, `None` after the last.
    pub fn read_next(&mut self) -> io::Result<Option<TextLine<'_>>> {
        self.line.clear();
        self.number += 1;
        let mut read = self.from.by_ref().take(MOST).read_until(b'\n', &mut self.line)?;
        if read == 0 {
            return Ok(None);
        }
        if self.line.last() != Some(&b'\n') && read as u64 == MOST {
            while self.line.last() != Some(&b'\n') && read > 0 {
                self.line.clear();
                read = self.from.by_ref().take(MOST).read_until(b'\n', &mut self.line)?;
            }
            return Ok(Some(TextLine::TooLong));
        }
        Ok(Some(TextLine::Whole(self.line.trim_ascii_end())))
    }

    /// The next line that is not empty, with its number; `None` after the last. Lines that are too long are counted as
    /// not read.
    pub fn next_record(&mut self, translation: &mut Translation) -> io::Result<Option<(u64, &[u8])>> {
        loop {
            match self.read_next()? {
                None => return Ok(None),
                Some(TextLine::Whole([])) => {}
                Some(TextLine::Whole(_)) => break,
                Some(TextLine::TooLong) => {
                    let number = self.number;
                    translation.unreadable_record(|| format!("line {number} is too long"));
                }
            }
        }
        Ok(Some((self.number, self.line.trim_ascii_end())))
    }
}

/// Digits of a number that are fewer than those of the largest one.
const SHORT: usize = 19;

/// A number of decimal digits alone.
#[inline]
pub(super) fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    if text.len() <= SHORT {
        let (mut number, mut is_number) = (0u64, true);
        for byte in text {
            is_number &= byte.is_ascii_digit();
            number = number.wrapping_mul(10).wrapping_add(u64::from(byte.wrapping_sub(b'0')));
        }
        return is_number.then_some(number);
    }
    let step = |number: u64, byte: &u8| {
        byte.is_ascii_digit().then(|| number.checked_mul(10)?.checked_add(u64::from(byte - b'0')))?
    };
    text.iter().try_fold(0, step)
}

/// A number in decimal digits, or in hexadecimal ones after `0x`.
pub(super) fn number(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii();
    if let Some(number) = digits(text) {
        return Some(number);
    }
    with_copy(text, |text| match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    })
}

/// A signed number.
#[inline]
pub(super) fn signed(text: &[u8]) -> Option<i64> {
    let text = text.trim_ascii();
    match text.strip_prefix(b"-") {
        Some(positive) => number(positive).and_then(|n| 0i64.checked_sub_unsigned(n)),
        None => number(text).map(|n| n as i64),
    }
}

/// An id of a thread or process.
pub(super) fn id(text: &[u8]) -> Option<i32> {
    number(text).and_then(|id| i32::try_from(id).ok())
}

/// Comma-separated values without the space around them and without quotes.
pub(super) fn values(line: &[u8]) -> Vec<&[u8]> {
    let (mut values, mut begin, mut quoted) = (Vec::new(), 0, false);
    let value = |from: usize, to: usize| {
        let text = line.get(from..to).unwrap_or(&[]).trim_ascii();
        text.strip_prefix(b"\"").and_then(|t| t.strip_suffix(b"\"")).unwrap_or(text).trim_ascii()
    };
    for (at, byte) in line.iter().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b',' if !quoted => {
                values.push(value(begin, at));
                begin = at + 1;
            }
            _ => {}
        }
    }
    values.push(value(begin, line.len()));
    values
}

/// Letters, digits and `_ . : / -` of a name; others become `_`, so that names of events stay plain words.
pub(super) fn plain(name: &[u8]) -> String {
    copied(name.get(..200).unwrap_or(name))
        .chars()
        .map(|c| if c.is_alphanumeric() || "_.:/-".contains(c) { c } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_numbers_are_read_as_written() {
        assert_eq!(values(b"  a, \"b, c\" ,, d (  4)"), [&b"a"[..], b"b, c", b"", b"d (  4)"]);
        assert_eq!((number(b" 12 "), number(b"0x1F"), number(b"x"), number(b"-1")), (Some(12), Some(31), None, None));
        assert_eq!((signed(b"-12"), signed(b"7"), signed(b"-")), (Some(-12), Some(7), None));
        assert_eq!(id(b"4294967295"), None);
        let largest = u64::MAX.to_string();
        assert_eq!((number(largest.as_bytes()), digits(b"007"), digits(b"+7")), (Some(u64::MAX), Some(7), None));
        assert_eq!((digits(b"18446744073709551616"), digits(b""), digits(b"9999999999999999:")), (None, None, None));
    }

    #[test]
    fn lines_that_are_too_long_are_counted() {
        let text = [b"a\r\n".to_vec(), vec![b'x'; 200_000], b"\nb".to_vec()].concat();
        let mut text = &text[..];
        let mut lines = TextLines::new(&mut text);
        let mut all = Vec::new();
        while let Some(line) = lines.read_next().unwrap() {
            all.push(match line {
                TextLine::Whole(line) => Some(line.to_vec()),
                TextLine::TooLong => None,
            });
        }
        assert_eq!(all, [Some(b"a".to_vec()), None, Some(b"b".to_vec())]);
    }
}
