//! TSDL text to tokens, on demand: the parser asks for one at a time and may look one ahead.
//!
//! Tokens borrow the text. Numbers keep their sign apart (the parser puts `-` and `+` before them); strings with escapes are the
//! only tokens that own memory. CTF 1.8.3 section 7.3.

use super::Trouble;
use std::borrow::Cow;

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'t> {
    /// A word: keyword, type or member name.
    Word(&'t str),
    /// An integer without sign.
    Number(u64),
    /// A number with a fraction or an exponent (only to be refused where it stands).
    Fraction,
    /// A string between double quotes, escapes undone.
    Quoted(Cow<'t, str>),
    /// A punctuation mark: one of `{}[]()<>;:,.=*+-` or `...`, `:=`, `->`.
    Mark(&'static str),
    /// The end of the text.
    End,
}

impl Token<'_> {
    /// For "expected X, found Y".
    pub(super) fn describe(&self) -> String {
        match self {
            Token::Word(w) => format!("`{w}`"),
            Token::Number(n) => format!("`{n}`"),
            Token::Fraction => "a number that is no integer".to_owned(),
            Token::Quoted(_) => "a string".to_owned(),
            Token::Mark(m) => format!("`{m}`"),
            Token::End => "the end of the metadata".to_owned(),
        }
    }
}

const MARKS: [&str; 19] =
    ["...", ":=", "->", "{", "}", "[", "]", "(", ")", "<", ">", ";", ":", ",", ".", "=", "*", "+", "-"];

/// Cuts tokens from a text.
#[derive(Clone, Copy)]
pub(super) struct Tokens<'t> {
    text: &'t str,
    /// Where the next token, or the space before it, begins.
    pub(super) at: usize,
}

impl<'t> Tokens<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Tokens { text, at: 0 }
    }

    /// A piece of the text; empty where it does not lie on token borders.
    pub(super) fn slice(&self, start: usize, end: usize) -> &'t str {
        self.text.get(start..end).unwrap_or("")
    }

    /// The next token and where it begins.
    pub(super) fn next(&mut self) -> Result<(usize, Token<'t>), Trouble> {
        self.skip_space()?;
        let start = self.at;
        let bytes = self.text.as_bytes();
        let token = match bytes.get(start).copied() {
            None => Token::End,
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_') => Token::Word(self.word(start)),
            Some(b'0'..=b'9') => self.number(start)?,
            Some(b'"') => self.quoted(start + 1, b'"')?,
            Some(b'\'') => match self.quoted(start + 1, b'\'')? {
                Token::Quoted(text) if text.chars().count() == 1 => {
                    Token::Number(text.chars().next().map_or(0, |c| c as u64))
                }
                _ => return Err(Trouble::at(start, "a character constant holds one character")),
            },
            Some(other) => match MARKS.iter().find(|m| bytes[start..].starts_with(m.as_bytes())) {
                Some(mark) => {
                    self.at += mark.len();
                    Token::Mark(mark)
                }
                None => {
                    let shown = self.text[start..].chars().next().map_or(char::from(other), |c| c);
                    return Err(Trouble::at(start, format!("the character {shown:?} has no place in metadata")));
                }
            },
        };
        Ok((start, token))
    }

    fn skip_space(&mut self) -> Result<(), Trouble> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at..) {
                Some([b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c, ..]) => self.at += 1,
                Some([b'/', b'*', rest @ ..]) => match memchr::memmem::find(rest, b"*/") {
                    Some(end) => self.at += end + 4,
                    None => return Err(Trouble::at(self.at, "the comment that begins here is never closed")),
                },
                Some([b'/', b'/', rest @ ..]) => self.at += 2 + memchr::memchr(b'\n', rest).unwrap_or(rest.len()),
                _ => return Ok(()),
            }
        }
    }

    fn word(&mut self, start: usize) -> &'t str {
        let rest = &self.text.as_bytes()[start..];
        let length = rest.iter().position(|b| !(b.is_ascii_alphanumeric() || *b == b'_')).unwrap_or(rest.len());
        self.at = start + length;
        &self.text[start..self.at]
    }

    fn number(&mut self, start: usize) -> Result<Token<'t>, Trouble> {
        let word = self.word(start);
        let rest = &self.text.as_bytes()[self.at..];
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
                Err(Trouble::at(start, format!("`{word}` does not fit 64 bits")))
            }
            _ => Err(Trouble::at(start, format!("`{word}` is no integer"))),
        }
    }

    fn quoted(&mut self, start: usize, quote: u8) -> Result<Token<'t>, Trouble> {
        let bytes = self.text.as_bytes();
        let open = |at| Trouble::at(at, "the string that begins here is never closed");
        let mut at = start;
        while let Some(b) = bytes.get(at).copied() {
            match b {
                b'\n' => return Err(open(start - 1)),
                b'\\' => return self.escaped(start, quote),
                b if b == quote => {
                    self.at = at + 1;
                    return Ok(Token::Quoted(Cow::Borrowed(&self.text[start..at])));
                }
                _ => at += 1,
            }
        }
        Err(open(start - 1))
    }

    fn escaped(&mut self, start: usize, quote: u8) -> Result<Token<'t>, Trouble> {
        let mut chars = self.text[start..].char_indices().peekable();
        let mut text = String::new();
        while let Some((i, c)) = chars.next() {
            if c == char::from(quote) {
                self.at = start + i + 1;
                return Ok(Token::Quoted(Cow::Owned(text)));
            }
            if c == '\n' {
                break;
            }
            if c != '\\' {
                text.push(c);
                continue;
            }
            let Some((_, escape)) = chars.next() else { break };
            let mut code = |radix: u32, first: u32, most: usize| {
                let mut value = first;
                let mut n = 0;
                while let Some(digit) = chars.peek().and_then(|(_, c)| c.to_digit(radix)).filter(|_| n < most) {
                    value = value * radix + digit;
                    n += 1;
                    chars.next();
                }
                char::from_u32(value)
            };
            let plain = match escape {
                'a' => Some('\x07'),
                'b' => Some('\x08'),
                'f' => Some('\x0c'),
                'n' => Some('\n'),
                'r' => Some('\r'),
                't' => Some('\t'),
                'v' => Some('\x0b'),
                '\\' | '\'' | '"' | '?' => Some(escape),
                'x' => code(16, 0, 2),
                '0'..='7' => code(8, escape.to_digit(8).unwrap_or(0), 2),
                _ => None,
            };
            match plain {
                Some(c) => text.push(c),
                None => return Err(Trouble::at(start + i, format!("`\\{escape}` is no escape sequence"))),
            }
        }
        Err(Trouble::at(start - 1, "the string that begins here is never closed"))
    }
}
