//! JSON whose values keep their offsets, so that an error in metadata is reported by line and column.
//!
//! A recursive descent over RFC 8259, with a limit on depth; text is borrowed unless it holds escapes.

use crate::input::ctf::error::MetadataError;
use foldhash::HashSet;
use std::borrow::Cow;

/// The deepest nesting that is parsed; it protects the stack.
const DEEPEST: usize = 256;

/// The number of properties up to which names are compared one by one.
const FEW: usize = 16;

/// A value and the byte of the metadata at which it begins.
#[derive(Clone, Debug)]
pub(super) struct Node<'t> {
    pub(super) at: usize,
    pub(super) json: Json<'t>,
}

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Json<'t> {
    Null,
    Bool(bool),
    Integer(i128),
    /// A number with fraction or exponent; no property of CTF 2 takes one.
    Real,
    Text(Cow<'t, str>),
    Array(Vec<Node<'t>>),
    Object(Vec<(Cow<'t, str>, Node<'t>)>),
}

impl<'t> Node<'t> {
    fn refuse<T>(&self, expected: &str) -> Result<T, MetadataError> {
        let found = match &self.json {
            Json::Null => "null".to_owned(),
            Json::Bool(b) => b.to_string(),
            Json::Integer(n) => n.to_string(),
            Json::Real => "a number that is not an integer".to_owned(),
            Json::Text(text) => format!("the string \"{}\"", text.escape_debug()),
            Json::Array(_) => "an array".to_owned(),
            Json::Object(_) => "an object".to_owned(),
        };
        Err(MetadataError::at(self.at, format!("expected {expected}, found {found}")))
    }

    pub(super) fn text(&self) -> Result<&str, MetadataError> {
        if let Json::Text(text) = &self.json { Ok(text) } else { self.refuse("a string") }
    }

    pub(super) fn integer(&self) -> Result<i128, MetadataError> {
        if let Json::Integer(n) = self.json { Ok(n) } else { self.refuse("an integer") }
    }

    pub(super) fn unsigned(&self) -> Result<u64, MetadataError> {
        let n = self.integer()?;
        u64::try_from(n).or_else(|_| self.refuse("an unsigned integer of 64 bits"))
    }

    pub(super) fn array(&self) -> Result<&[Node<'t>], MetadataError> {
        if let Json::Array(nodes) = &self.json { Ok(nodes) } else { self.refuse("an array") }
    }

    pub(super) fn object(&self) -> Result<Object<'_, 't>, MetadataError> {
        if let Json::Object(members) = &self.json {
            Ok(Object { at: self.at, members })
        } else {
            self.refuse("an object")
        }
    }
}

/// The members of an object.
#[derive(Clone, Copy)]
pub(super) struct Object<'n, 't> {
    pub(super) at: usize,
    pub(super) members: &'n [(Cow<'t, str>, Node<'t>)],
}

impl<'n, 't> Object<'n, 't> {
    pub(super) fn get(&self, name: &str) -> Option<&'n Node<'t>> {
        self.members.iter().find(|(key, _)| key == name).map(|(_, node)| node)
    }

    pub(super) fn need(&self, name: &str) -> Result<&'n Node<'t>, MetadataError> {
        self.get(name).ok_or_else(|| MetadataError::at(self.at, format!("the property `{name}` is missing")))
    }

    /// Refuses properties that are not in `known`, and extensions: none is supported, and one may change the meaning
    /// of everything else (CTF 2.0, section 4.2).
    pub(super) fn only(&self, known: &[&str]) -> Result<(), MetadataError> {
        for (name, node) in self.members {
            match &**name {
                "attributes" => {
                    node.object()?;
                }
                "extensions" => {
                    if let Some((extension, inner)) = node.object()?.members.first() {
                        return Err(MetadataError::at(
                            inner.at,
                            format!("the extension `{extension}` is not supported"),
                        ));
                    }
                }
                name if known.contains(&name) => {}
                name => return Err(MetadataError::at(node.at, format!("the property `{name}` has no meaning here"))),
            }
        }
        Ok(())
    }
}

/// The value that fills `text` from byte `start` to byte `end`.
pub(super) fn parse(text: &str, start: usize, end: usize) -> Result<Node<'_>, MetadataError> {
    let mut parser = Parser { text: text.get(..end).unwrap_or(text), at: start, depth: 0 };
    let node = parser.value()?;
    parser.space();
    if parser.at < end {
        return Err(MetadataError::at(parser.at, "something follows the end of the fragment's object"));
    }
    Ok(node)
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn unexpected<T>(&self, expected: &str) -> Result<T, MetadataError> {
        let rest = self.text.get(self.at..).and_then(|rest| rest.chars().next());
        let found = rest.map_or_else(|| "the end of the fragment".to_owned(), |c| format!("{c:?}"));
        Err(MetadataError::at(self.at, format!("expected {expected}, found {found}")))
    }

    fn expect(&mut self, mark: u8) -> Result<(), MetadataError> {
        self.space();
        if self.peek() == Some(mark) {
            self.at += 1;
            return Ok(());
        }
        self.unexpected(&format!("`{}`", char::from(mark)))
    }

    fn value(&mut self) -> Result<Node<'t>, MetadataError> {
        self.space();
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(MetadataError::at(self.at, format!("values are nested deeper than {DEEPEST}")));
        }
        let at = self.at;
        let json = match self.peek() {
            Some(b'{') => self.object()?,
            Some(b'[') => self.array()?,
            Some(b'"') => Json::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.word()?,
        };
        self.depth -= 1;
        Ok(Node { at, json })
    }

    fn word(&mut self) -> Result<Json<'t>, MetadataError> {
        let rest = self.text.get(self.at..).unwrap_or("");
        for (word, json) in [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))] {
            if rest.starts_with(word) {
                self.at += word.len();
                return Ok(json);
            }
        }
        self.unexpected("a JSON value")
    }

    fn object(&mut self) -> Result<Json<'t>, MetadataError> {
        self.expect(b'{')?;
        let mut members: Vec<(Cow<'t, str>, Node<'t>)> = Vec::new();
        let mut seen: HashSet<Cow<'t, str>> = HashSet::default();
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Json::Object(members));
        }
        loop {
            self.space();
            let at = self.at;
            if self.peek() != Some(b'"') {
                return self.unexpected("the name of a property");
            }
            let name = self.string()?;
            // Most objects have few properties, which are compared one by one.
            let known = match members.len() {
                few if few < FEW => members.iter().any(|(known, _)| *known == name),
                few => {
                    if few == FEW {
                        seen.extend(members.iter().map(|(known, _)| known.clone()));
                    }
                    !seen.insert(name.clone())
                }
            };
            if known {
                return Err(MetadataError::at(at, format!("the property `{name}` is given twice")));
            }
            self.expect(b':')?;
            members.push((name, self.value()?));
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Json::Object(members));
                }
                _ => return self.unexpected("`,` or `}`"),
            }
        }
    }

    fn array(&mut self) -> Result<Json<'t>, MetadataError> {
        self.expect(b'[')?;
        let mut nodes = Vec::new();
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Json::Array(nodes));
        }
        loop {
            nodes.push(self.value()?);
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Json::Array(nodes));
                }
                _ => return self.unexpected("`,` or `]`"),
            }
        }
    }

    fn number(&mut self) -> Result<Json<'t>, MetadataError> {
        let start = self.at;
        while let Some(b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        let digits = self.text.get(start..self.at).unwrap_or("");
        let unsigned = digits.strip_prefix('-').unwrap_or(digits);
        let leading_zero = unsigned.len() > 1 && unsigned.starts_with('0') && !unsigned.starts_with("0.");
        if digits.contains(['.', 'e', 'E']) && digits.parse::<f64>().is_ok() && !leading_zero {
            return Ok(Json::Real);
        }
        match digits.parse::<i128>() {
            Ok(n) if !leading_zero => Ok(Json::Integer(n)),
            _ => Err(MetadataError::at(start, format!("`{digits}` is not a number"))),
        }
    }

    fn string(&mut self) -> Result<Cow<'t, str>, MetadataError> {
        let open = self.at;
        self.at += 1;
        let start = self.at;
        let mut owned: Option<String> = None;
        loop {
            let piece = self.at;
            while !matches!(self.peek(), None | Some(b'"' | b'\\' | 0..=0x1f)) {
                self.at += 1;
            }
            let plain = self.text.get(piece..self.at).unwrap_or("");
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(match owned {
                        Some(text) => Cow::Owned(text + plain),
                        None => Cow::Borrowed(self.text.get(start..self.at - 1).unwrap_or("")),
                    });
                }
                Some(b'\\') => {
                    let text = owned.get_or_insert_with(String::new);
                    text.push_str(plain);
                    let escaped = self.escape()?;
                    owned.get_or_insert_with(String::new).push(escaped);
                }
                _ => return Err(MetadataError::at(open, "the string that begins here is never closed")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, MetadataError> {
        let at = self.at;
        let kind = self.text.as_bytes().get(at + 1).copied();
        self.at += 2;
        let plain = match kind {
            Some(b'"' | b'\\' | b'/') => kind.map(char::from),
            Some(b'b') => Some('\x08'),
            Some(b'f') => Some('\x0c'),
            Some(b'n') => Some('\n'),
            Some(b'r') => Some('\r'),
            Some(b't') => Some('\t'),
            Some(b'u') => {
                let mut units = vec![self.unit(at)?];
                if units.first().is_some_and(|u| (0xd800..0xdc00).contains(u))
                    && self.text.get(self.at..).is_some_and(|rest| rest.starts_with("\\u"))
                {
                    self.at += 2;
                    units.push(self.unit(at)?);
                }
                char::decode_utf16(units).next().and_then(Result::ok)
            }
            _ => None,
        };
        plain.ok_or_else(|| MetadataError::at(at, "this is not an escape sequence"))
    }

    fn unit(&mut self, at: usize) -> Result<u16, MetadataError> {
        let digits = self.text.get(self.at..self.at + 4).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        self.at += 4;
        let unit = digits.and_then(|d| u16::from_str_radix(d, 16).ok());
        unit.ok_or_else(|| MetadataError::at(at, "`\\u` must be followed by four hexadecimal digits"))
    }
}
