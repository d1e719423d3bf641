//! The text of a JSON file, readable also where a part of it is no Unicode.
//!
//! In: the bytes of a file. Out: the same bytes, with U+FFFD in place of each escape of half a surrogate pair
//! (JavaScript cuts names so) and of each sequence of bytes that is no UTF-8. A parser ends at the first of them, so
//! that one name would cost all events after it. Cost: two scans and a copy of the reader's buffer; escapes of
//! halves, and what is cut by the end of a buffer, are taken byte by byte, of which at most twelve are held back.

use memchr::memchr;
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};

/// The digits of the escape that replaces another.
const REPLACED: &[u8] = b"fffd";

/// See the module.
pub(super) struct UnicodeText<R> {
    from: R,
    /// Number of bytes at the beginning of the reader's buffer that are given as they are.
    plain: usize,
    /// Bytes that were read ahead.
    ahead: VecDeque<u8>,
    /// Bytes that are ready to be given.
    ready: VecDeque<u8>,
}

impl<R: BufRead> UnicodeText<R> {
    /// The text of `from`. The parser asks for one byte after the other, so blocks are read for it.
    pub fn buffered(from: R) -> BufReader<UnicodeText<R>> {
        BufReader::new(UnicodeText { from, plain: 0, ahead: VecDeque::new(), ready: VecDeque::new() })
    }

    fn next(&mut self) -> io::Result<Option<u8>> {
        if let Some(byte) = self.ahead.pop_front() {
            return Ok(Some(byte));
        }
        let byte = self.from.fill_buf()?.first().copied();
        self.from.consume(usize::from(byte.is_some()));
        Ok(byte)
    }

    /// The next bytes as long as they are wanted, at most `most` of them.
    fn next_while(&mut self, most: usize, is_wanted: impl Fn(usize, u8) -> bool) -> io::Result<Vec<u8>> {
        let mut taken = Vec::with_capacity(most);
        while taken.len() < most {
            let Some(byte) = self.next()? else { break };
            if !is_wanted(taken.len(), byte) {
                self.ahead.push_front(byte);
                break;
            }
            taken.push(byte);
        }
        Ok(taken)
    }

    /// The bytes after a backslash.
    fn escape(&mut self) -> io::Result<()> {
        self.ready.push_back(b'\\');
        let Some(kind) = self.next()? else { return Ok(()) };
        self.ready.push_back(kind);
        if kind != b'u' {
            return Ok(());
        }
        let digits = self.next_while(4, |_, byte| byte.is_ascii_hexdigit())?;
        if half(&digits) != Some(Half::First) {
            self.ready.extend(if half(&digits).is_none() { digits.as_slice() } else { REPLACED });
            return Ok(());
        }
        let is_escape = |at, byte: u8| match at {
            0 => byte == b'\\',
            1 => byte == b'u',
            _ => byte.is_ascii_hexdigit(),
        };
        let second = self.next_while(6, is_escape)?;
        if second.get(2..).and_then(half) == Some(Half::Second) {
            self.ready.extend(digits.iter().chain(&second));
        } else {
            self.ready.extend(REPLACED);
            second.iter().rev().for_each(|byte| self.ahead.push_front(*byte));
        }
        Ok(())
    }

    /// A character that is no ASCII, from its first byte.
    fn character(&mut self, first: u8) -> io::Result<()> {
        let rest = match first {
            0xc2..=0xdf => 1,
            0xe0..=0xef => 2,
            0xf0..=0xf4 => 3,
            _ => 0,
        };
        let mut bytes = vec![first];
        bytes.extend(self.next_while(rest, |_, byte| byte & 0xc0 == 0x80)?);
        self.ready.extend(String::from_utf8_lossy(&bytes).as_bytes());
        Ok(())
    }
}

/// Half a surrogate pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    First,
    Second,
}

/// The half that the four digits of an escape mean.
fn half(digits: &[u8]) -> Option<Half> {
    let value = |unit: u32, digit: &u8| Some(unit << 4 | char::from(*digit).to_digit(16)?);
    match digits.iter().try_fold(0u32, value).filter(|_| digits.len() == 4)? {
        0xd800..=0xdbff => Some(Half::First),
        0xdc00..=0xdfff => Some(Half::Second),
        _ => None,
    }
}

/// Number of bytes at the beginning of a part of a text that are given as they are: up to an escape that may be half a
/// pair, or to bytes that are no UTF-8 or not yet.
fn plain(text: &[u8]) -> usize {
    let mut end = 0;
    let before_half = loop {
        let Some(at) = text.get(end..).and_then(|rest| memchr(b'\\', rest)).map(|at| end + at) else {
            break text.len();
        };
        match text.get(at + 1..at + 3) {
            None | Some([b'u', b'd' | b'D']) => break at,
            Some(_) => end = at + 2,
        }
    };
    let text = text.get(..before_half).unwrap_or(text);
    std::str::from_utf8(text).map_or_else(|invalid| invalid.valid_up_to(), str::len)
}

impl<R: BufRead> Read for UnicodeText<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ready.is_empty() && self.ahead.is_empty() {
            if self.plain == 0 {
                self.plain = plain(self.from.fill_buf()?);
            }
            if self.plain > 0 {
                let count = self.plain.min(buffer.len());
                let count = self.from.by_ref().take(count as u64).read(buffer)?;
                self.plain -= count;
                return Ok(count);
            }
        }
        if self.ready.is_empty() {
            match self.next()? {
                None => return Ok(0),
                Some(b'\\') => self.escape()?,
                Some(byte) if byte.is_ascii() => self.ready.push_back(byte),
                Some(byte) => self.character(byte)?,
            }
        }
        self.ready.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mended(text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        UnicodeText::buffered(text).read_to_end(&mut out).unwrap();
        out
    }

    #[test]
    fn unicode_text_replaces_what_is_no_unicode_and_nothing_else() {
        for (text, expected) in [
            (&br#""\ud800""#[..], r#""\ufffd""#),
            (br#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (br#""\ud83d\ud83d\ude00\ude00""#, r#""\ufffd\ud83d\ude00\ufffd""#),
            (br#""\ud800\n\\ud800\"\udfff""#, r#""\ufffd\n\\ud800\"\ufffd""#),
            (b"\"caf\xe9\", \"\xe2\x82\"", "\"caf\u{fffd}\", \"\u{fffd}\""),
            // Cut off, and wrong: the parser says so.
            (br#""\ud8"#, r#""\ud8"#),
            (br#""\ud800\"#, r#""\ufffd\"#),
            (br#""\u12x4""#, r#""\u12x4""#),
        ] {
            assert_eq!(String::from_utf8(mended(text)).unwrap(), expected, "{}", text.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn unicode_text_gives_what_utf16_and_utf8_mean(
            units in prop::collection::vec(prop_oneof![0xd7f0u16..0xe010, any::<u16>()], 0..12),
            bytes in prop::collection::vec(prop_oneof![0x80u8..=0xff, Just(b'a')], 0..12),
        ) {
            let escaped: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let text = mended(format!("\"{escaped}\"").as_bytes());
            prop_assert_eq!(serde_json::from_slice::<String>(&text).unwrap(), String::from_utf16_lossy(&units));
            let raw = [b"\"", &bytes[..], b"\""].concat();
            let text: String = serde_json::from_slice(&mended(&raw)).unwrap();
            let ours = String::from_utf8_lossy(&bytes);
            prop_assert_eq!(text.replace('\u{fffd}', ""), ours.replace('\u{fffd}', ""));
        }
    }
}
