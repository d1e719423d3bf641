//! Reads TSDL text as tokens, one at a time, on demand of the parser.
//!
//! Tokens borrow the text and are copied freely: no token owns memory. A sign is a token of its own, which the parser
//! joins with the number after it; strings keep their escapes until the text is wanted ([`unescape`]). A table of 256
//! entries maps a byte to the kind of token that it begins, so the cost is a few instructions a byte. CTF 1.8.3 section
//! 7.3.

use crate::input::ctf::error::MetadataError;
use std::borrow::Cow;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'t> {
    /// A word: keyword, type or member name.
    Word(&'t str),
    /// An integer without sign.
    Number(u64),
    /// A number with a fraction or an exponent (kept so that the error names its place).
    Fraction,
    /// Text between double quotes, with its escapes as written (they are valid).
    Quoted(&'t str),
    /// One of `{}[]()<>;:,.=*+-`.
    Mark(u8),
    /// `...`
    Dots,
    /// `:=`
    Becomes,
    /// `->`
    Arrow,
    /// The end of the text.
    End,
}

impl Token<'_> {
    /// For "expected X, found Y".
    pub(super) fn describe(&self) -> String {
        match self {
            Token::Word(w) => format!("`{w}`"),
            Token::Number(n) => format!("`{n}`"),
            Token::Fraction => "a number that is not an integer".to_owned(),
            Token::Quoted(_) => "a string".to_owned(),
            Token::Mark(m) => format!("`{}`", char::from(*m)),
            Token::Dots => "`...`".to_owned(),
            Token::Becomes => "`:=`".to_owned(),
            Token::Arrow => "`->`".to_owned(),
            Token::End => "the end of the metadata".to_owned(),
        }
    }
}

/// The kind of token that a byte begins.
#[derive(Clone, Copy, PartialEq)]
enum Begins {
    Nothing,
    Space,
    Word,
    Number,
    Quote,
    Mark,
    /// A comment, or nothing.
    Slash,
}

const BEGINS: [Begins; 256] = {
    let mut table = [Begins::Nothing; 256];
    let mut byte = 0usize;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => Begins::Space,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => Begins::Word,
            b'0'..=b'9' => Begins::Number,
            b'"' | b'\'' => Begins::Quote,
            b'{' | b'}' | b'[' | b']' | b'(' | b')' | b'<' | b'>' => Begins::Mark,
            b';' | b':' | b',' | b'.' | b'=' | b'*' | b'+' | b'-' => Begins::Mark,
            b'/' => Begins::Slash,
            _ => Begins::Nothing,
        };
        byte += 1;
    }
    table
};

/// A token and the byte at which it begins.
#[derive(Clone, Copy)]
pub(super) struct PlacedToken<'t> {
    pub(super) at: usize,
    pub(super) token: Token<'t>,
}

/// Reads the tokens of a text.
#[derive(Clone, Copy)]
pub(super) struct Tokens<'t> {
    text: &'t str,
    /// Offset of the next token, or of the space before it.
    at: usize,
}

impl<'t> Tokens<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Tokens { text, at: 0 }
    }

    /// A piece of the text; empty where it does not lie on token borders.
    pub(super) fn slice(&self, start: usize, end: usize) -> &'t str {
        self.text.get(start..end).unwrap_or("")
    }

    /// The text from `start` up to and with the next `}`.
    pub(super) fn braces(&self, start: usize) -> Option<&'t str> {
        let end = memchr::memchr(b'}', self.text.as_bytes().get(start..)?)?;
        self.text.get(start..start + end + 1)
    }

    /// The end of the braces that open at `start`, if no comment or string contains a brace; otherwise an arbitrary
    /// offset.
    pub(super) fn closing(&self, start: usize) -> usize {
        let rest = self.text.as_bytes().get(start..).unwrap_or(&[]);
        let mut open = 0u32;
        for place in memchr::memchr2_iter(b'{', b'}', rest) {
            match rest.get(place) {
                Some(b'{') => open += 1,
                _ => open = open.saturating_sub(1),
            }
            if open == 0 {
                return start + place + 1;
            }
        }
        self.text.len()
    }

    /// Continue at byte `at`.
    pub(super) fn jump(&mut self, at: usize) {
        self.at = at;
    }

    /// The next token.
    pub(super) fn next(&mut self) -> Result<PlacedToken<'t>, MetadataError> {
        let bytes = self.text.as_bytes();
        loop {
            let start = self.at;
            let Some(byte) = bytes.get(start).copied() else {
                return Ok(PlacedToken { at: start, token: Token::End });
            };
            let token = match BEGINS[usize::from(byte)] {
                Begins::Space => {
                    self.at += 1;
                    continue;
                }
                Begins::Word => Token::Word(self.word(start)),
                Begins::Mark => self.mark(byte),
                Begins::Number => self.number(start)?,
                Begins::Quote => self.quoted(start, byte)?,
                Begins::Slash if self.comment(start)? => continue,
                Begins::Nothing if bytes.get(start..).and_then(universal).is_some() => Token::Word(self.word(start)),
                Begins::Slash | Begins::Nothing => {
                    let shown = self.text.get(start..).and_then(|rest| rest.chars().next()).unwrap_or(char::from(byte));
                    return Err(MetadataError::at(
                        start,
                        format!("metadata must not contain the character {shown:?} here"),
                    ));
                }
            };
            return Ok(PlacedToken { at: start, token });
        }
    }

    /// Step over the comment that begins here; false where none does.
    fn comment(&mut self, start: usize) -> Result<bool, MetadataError> {
        match self.text.as_bytes().get(start + 1..) {
            Some([b'*', rest @ ..]) => match memchr::memmem::find(rest, b"*/") {
                Some(end) => self.at = start + end + 4,
                None => return Err(MetadataError::at(start, "the comment that begins here is never closed")),
            },
            Some([b'/', rest @ ..]) => self.at = start + 2 + memchr::memchr(b'\n', rest).unwrap_or(rest.len()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn mark(&mut self, byte: u8) -> Token<'t> {
        let rest = self.text.as_bytes().get(self.at + 1..).unwrap_or(&[]);
        let (token, length) = match (byte, rest) {
            (b'.', [b'.', b'.', ..]) => (Token::Dots, 3),
            (b':', [b'=', ..]) => (Token::Becomes, 2),
            (b'-', [b'>', ..]) => (Token::Arrow, 2),
            _ => (Token::Mark(byte), 1),
        };
        self.at += length;
        token
    }

    fn word(&mut self, start: usize) -> &'t str {
        let goes_on = |b: &u8| matches!(BEGINS[usize::from(*b)], Begins::Word | Begins::Number);
        self.at = start;
        loop {
            let rest = self.text.as_bytes().get(self.at..).unwrap_or(&[]);
            let length = rest.iter().position(|b| !goes_on(b)).unwrap_or(rest.len());
            self.at += length;
            match rest.get(length..).and_then(universal) {
                Some(more) => self.at += more,
                None => return self.slice(start, self.at),
            }
        }
    }

    fn number(&mut self, start: usize) -> Result<Token<'t>, MetadataError> {
        let word = self.word(start);
        let rest = self.text.as_bytes().get(self.at..).unwrap_or(&[]);
        if matches!(rest, [b'.', b'0'..=b'9', ..])
            || (matches!(rest, [b'.', b, ..] if *b != b'.') && !word.starts_with("0x"))
        {
            self.at += 1;
            self.word(self.at);
            return Ok(Token::Fraction);
        }
        let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
        let suffix = word.len() - digits.len();
        let (digits, radix) = match digits.as_bytes() {
            [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
            [b'0', b'b' | b'B', ..] => (&digits[2..], 2),
            [b'0', _, ..] => (&digits[1..], 8),
            _ => (digits, 10),
        };
        match u64::from_str_radix(digits, radix) {
            Ok(n) if suffix <= 3 && !digits.starts_with('+') => Ok(Token::Number(n)),
            Err(e) if *e.kind() == std::num::IntErrorKind::PosOverflow => {
                Err(MetadataError::at(start, format!("`{word}` does not fit 64 bits")))
            }
            _ => Err(MetadataError::at(start, format!("`{word}` is not an integer"))),
        }
    }

    /// A string, or a character constant.
    fn quoted(&mut self, start: usize, quote: u8) -> Result<Token<'t>, MetadataError> {
        let rest = self.text.as_bytes().get(start + 1..).unwrap_or(&[]);
        let open = || MetadataError::at(start, "the string that begins here is never closed");
        let mut length = 0;
        let raw = loop {
            match rest.get(length) {
                None | Some(b'\n') => return Err(open()),
                Some(0) => return Err(nul(start + 1 + length)),
                Some(b'\\') => length += 2,
                Some(b) if *b == quote => break self.slice(start + 1, start + 1 + length),
                Some(_) => length += 1,
            }
        };
        self.at = start + length + 2;
        if raw.contains('\\') {
            check_escapes(raw, start + 1)?;
        }
        if quote == b'"' {
            return Ok(Token::Quoted(raw));
        }
        let text = unescape(raw);
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (Some(only), None) => Ok(Token::Number(only.into())),
            _ => Err(MetadataError::at(start, "a character constant must hold one character")),
        }
    }
}

/// The length of a universal character name (`\u00e9`, `\U000000e9`) at the beginning of `rest`. Words keep it as it is
/// written.
#[inline]
fn universal(rest: &[u8]) -> Option<usize> {
    let digits = match rest {
        [b'\\', b'u', ..] => 4,
        [b'\\', b'U', ..] => 8,
        _ => return None,
    };
    rest.get(2..2 + digits)?.iter().all(u8::is_ascii_hexdigit).then_some(2 + digits)
}

/// The names in a text of words joined by dots, which may have space and comments between them.
pub(super) fn names(written: &str) -> impl Iterator<Item = &str> {
    let mut tokens = Tokens::new(written);
    std::iter::from_fn(move || {
        loop {
            match tokens.next().ok()?.token {
                Token::Word(name) => return Some(name),
                Token::Mark(b'.') => {}
                _ => return None,
            }
        }
    })
}

/// The text of a [`Token::Quoted`].
pub(super) fn unescape(raw: &str) -> Cow<'_, str> {
    if !raw.contains('\\') {
        return Cow::Borrowed(raw);
    }
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(place) = rest.find('\\') {
        text.push_str(&rest[..place]);
        match escape(&rest[place + 1..]) {
            Some((c, length)) => {
                text.push(c);
                rest = &rest[place + 1 + length..];
            }
            None => break,
        }
    }
    text.push_str(rest);
    Cow::Owned(text)
}

/// The error for a NUL byte inside a string; an escape sequence for it (`\0`) is allowed.
#[cold]
fn nul(at: usize) -> MetadataError {
    MetadataError::at(at, "a string must not contain a NUL")
}

fn check_escapes(raw: &str, at: usize) -> Result<(), MetadataError> {
    let mut from = 0;
    while let Some(place) = raw[from..].find('\\') {
        let after = &raw[from + place + 1..];
        match escape(after) {
            Some((_, length)) => from += place + 1 + length,
            None => {
                let what = format!("`\\{}` is not an escape sequence", after.chars().next().unwrap_or('\\'));
                return Err(MetadataError::at(at + from + place, what));
            }
        }
    }
    Ok(())
}

/// The character that an escape sequence means, and the bytes that it takes after the backslash.
fn escape(after: &str) -> Option<(char, usize)> {
    let code = |from: usize, radix: u32, most: usize| {
        let digits = after.get(from..)?.bytes().take(most).take_while(|b| char::from(*b).is_digit(radix)).count();
        let value = if digits == 0 { 0 } else { u32::from_str_radix(&after[from..from + digits], radix).ok()? };
        Some((char::from_u32(value)?, from + digits))
    };
    let plain = |c: char| Some((c, 1));
    match after.bytes().next()? {
        b'a' => plain('\x07'),
        b'b' => plain('\x08'),
        b'f' => plain('\x0c'),
        b'n' => plain('\n'),
        b'r' => plain('\r'),
        b't' => plain('\t'),
        b'v' => plain('\x0b'),
        c @ (b'\\' | b'\'' | b'"' | b'?') => plain(char::from(c)),
        b'x' => code(1, 16, 2),
        b'0'..=b'7' => code(0, 8, 3),
        _ => None,
    }
}
