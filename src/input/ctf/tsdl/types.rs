//! The grammar of types: integers, floating point numbers, strings, enumerations, structures, variants, names.
//!
//! Metadata of a kernel tracer writes the same dozen integers thousands of times. An integer's braces are therefore
//! looked up by their text before they are parsed: equal text has equal tokens, hence the same meaning. Integers with a
//! clock or an unknown attribute are parsed each time, because their errors and warnings name their place.

use super::attributes::{alignment, byte_order, encoding_is_text};
use super::parse::{Parsed, Parser, is_keyword};
use super::syntax::{Integer, Label, Spec, Typed, Value, WrittenAlignment};
use super::token::{Token, unescape};
use crate::input::ctf::error::{MetadataError, MetadataWarning};
use crate::input::ctf::schema::ValueRange;
use foldhash::HashSet;
use std::borrow::Cow;

/// The number of known attributes of an integer, and one more.
const ATTRIBUTES: usize = 8;

/// The words that name C's types, alone or together.
const C_TYPES: [&str; 12] = [
    "void",
    "char",
    "short",
    "int",
    "long",
    "float",
    "double",
    "signed",
    "unsigned",
    "_Bool",
    "_Complex",
    "_Imaginary",
];

/// The names of the bases in which an integer may be shown.
const BASES: [&str; 19] = [
    "decimal",
    "dec",
    "d",
    "i",
    "u",
    "hexadecimal",
    "hex",
    "x",
    "X",
    "p",
    "octal",
    "oct",
    "o",
    "binary",
    "bin",
    "b",
    "symbol",
    "symbolic",
    "character",
];

impl<'t> Parser<'t> {
    /// A type.
    pub(super) fn typed(&mut self) -> Parsed<Typed<'t>> {
        let at = self.at;
        let mut is_const = self.constant()?;
        let spec = match self.token {
            Token::Word("integer") => {
                self.advance()?;
                Spec::Integer(self.known_integer().map_err(|t| t.within("in an integer", at))?)
            }
            Token::Word("floating_point") => {
                self.advance()?;
                Spec::Float(self.attributes().map_err(|t| t.within("in a floating_point", at))?)
            }
            Token::Word("string") => {
                self.advance()?;
                Spec::Text(if self.is(b'{') { self.attributes()? } else { Vec::new() })
            }
            Token::Word("enum") => {
                self.advance()?;
                self.enumeration()?
            }
            Token::Word("struct") => {
                self.advance()?;
                self.structure()?
            }
            Token::Word("variant") => {
                self.advance()?;
                self.variant()?
            }
            Token::Word(word) if C_TYPES.contains(&word) => Spec::Named(self.c_type(&mut is_const)?),
            _ => Spec::Named(Cow::Borrowed(self.name("the name of a type")?.text)),
        };
        is_const |= self.constant()?;
        let spec = match spec {
            Spec::Named(name) if is_const => Spec::Named(Cow::Owned(format!("const {name}"))),
            spec => spec,
        };
        Ok(Typed { spec, at })
    }

    /// Step over `const`; true if it was there.
    fn constant(&mut self) -> Parsed<bool> {
        let found = self.is_word("const");
        while self.is_word("const") {
            self.advance()?;
        }
        Ok(found)
    }

    /// `*`, `* const`, `**`: the name of the pointer type, if there is one; `to` gives the name of the type that it
    /// points to.
    pub(super) fn pointers(&mut self, to: impl FnOnce() -> String) -> Parsed<Option<String>> {
        if !self.is(b'*') {
            return Ok(None);
        }
        let mut name = to();
        while self.accept(b'*')? {
            name.push_str(" *");
            if self.constant()? {
                name.push_str(" const");
            }
        }
        Ok(Some(name))
    }

    /// The new name that a `typealias` gives.
    pub(super) fn new_type_name(&mut self) -> Parsed<Cow<'t, str>> {
        let mut is_const = self.constant()?;
        let mut alias = match self.token {
            Token::Word(word) if C_TYPES.contains(&word) => self.c_type(&mut is_const)?,
            Token::Word(word @ ("struct" | "enum" | "variant")) => {
                self.advance()?;
                Cow::Owned(format!("{word} {}", self.name("a name")?.text))
            }
            _ => Cow::Borrowed(self.name("a new name for the type")?.text),
        };
        is_const |= self.constant()?;
        if is_const {
            alias = Cow::Owned(format!("const {alias}"));
        }
        Ok(self.pointers(|| alias.to_string())?.map_or(alias, Cow::Owned))
    }

    /// `unsigned long` ... as one name with single spaces; `const` between the words sets `is_const`.
    fn c_type(&mut self, is_const: &mut bool) -> Parsed<Cow<'t, str>> {
        let mut name = Cow::Borrowed("");
        while let Token::Word(word) = self.token {
            if C_TYPES.contains(&word) {
                name = if name.is_empty() { Cow::Borrowed(word) } else { Cow::Owned(format!("{name} {word}")) };
            } else if word == "const" {
                *is_const = true;
            } else {
                break;
            }
            self.advance()?;
        }
        Ok(name)
    }

    /// The braces of an integer; equal braces are parsed once.
    fn known_integer(&mut self) -> Parsed<Integer<'t>> {
        let start = self.at;
        let braces = if self.is(b'{') && self.ahead.is_none() { self.tokens.braces(start) } else { None };
        if let Some(text) = braces
            && let Some(integer) = self.integers.get(text).copied()
        {
            self.tokens.jump(start + text.len());
            self.advance()?;
            return Ok(integer);
        }
        let warnings = self.warnings.len();
        let (integer, end) = self.integer()?;
        let text = self.tokens.slice(start, end);
        if integer.clock.is_none() && self.warnings.len() == warnings && braces == Some(text) {
            self.integers.insert(text, integer);
        }
        Ok(integer)
    }

    /// An integer, and the byte after its braces.
    fn integer(&mut self) -> Parsed<(Integer<'t>, usize)> {
        let mut integer = Integer::default();
        let mut seen: Vec<Cow<'t, str>> = Vec::with_capacity(8);
        // There may be many unknown attributes.
        let mut unknown: HashSet<Cow<'t, str>> = HashSet::default();
        self.expect(b'{')?;
        while !self.is(b'}') {
            if self.accept(b';')? {
                continue;
            }
            let at = self.at;
            let name = self.attribute_name()?;
            if seen.contains(&name) || unknown.contains(&name) {
                return Err(MetadataError::at(at, format!("`{name}` is given twice")));
            }
            self.expect(b'=')?;
            self.integer_attribute(&mut integer, &name, at)?;
            self.expect(b';')?;
            if seen.len() < ATTRIBUTES {
                seen.push(name);
            } else {
                unknown.insert(name);
            }
        }
        let end = self.at + 1;
        self.advance()?;
        if integer.size.is_none() {
            return Err(MetadataError::at(self.at, "an integer needs a `size`"));
        }
        Ok((integer, end))
    }

    fn integer_attribute(&mut self, integer: &mut Integer<'t>, name: &str, at: usize) -> Parsed<()> {
        let refuse = |what: &str| Err(MetadataError::at(at, what.to_owned()));
        match name {
            "size" => match self.signed_number()? {
                size @ 1..=64 => integer.size = Some(size as u8),
                size => return refuse(&format!("the size of an integer must be 1 to 64 bits, not {size}")),
            },
            "align" => integer.align = Some(alignment(self.signed_number()?, at)?),
            "signed" => {
                integer.signed = match self.attribute_value(Cow::Borrowed(""), at)?.value {
                    Value::Number(n @ (0 | 1)) => n == 1,
                    Value::Word(w) | Value::Text(w) if matches!(&*w, "true" | "TRUE") => true,
                    Value::Word(w) | Value::Text(w) if matches!(&*w, "false" | "FALSE") => false,
                    _ => return refuse("`signed` must be `true` or `false`"),
                };
            }
            "byte_order" => {
                let order = self.attribute_value(Cow::Borrowed(""), at)?;
                integer.byte_order = byte_order(&order)?;
            }
            "base" => {
                let known = match self.attribute_value(Cow::Borrowed(""), at)?.value {
                    Value::Number(n) => matches!(n, 2 | 8 | 10 | 16),
                    Value::Word(w) | Value::Text(w) => BASES.contains(&&*w),
                };
                if !known {
                    return refuse("a base must be 2, 8, 10, 16 or the name of one");
                }
            }
            "encoding" => {
                let encoding = self.attribute_value(Cow::Borrowed(""), at)?;
                integer.character = encoding_is_text(&encoding)?;
            }
            "map" => integer.clock = Some(self.reference("`clock.NAME.value`")?),
            other => {
                self.warnings.push(MetadataWarning { at, what: format!("an integer has no attribute `{other}`") });
                self.attribute_value(Cow::Borrowed(""), at)?;
            }
        }
        Ok(())
    }

    fn enumeration(&mut self) -> Parsed<Spec<'t>> {
        let name = self.optional_name()?;
        let container = if self.accept(b':')? { Some(Box::new(self.typed()?)) } else { None };
        let labels = if self.accept(b'{')? { Some(self.labels()?) } else { None };
        if name.is_none() && labels.is_none() {
            return self.unexpected("a name or `{` after `enum`");
        }
        Ok(Spec::Enum { name, container, labels })
    }

    fn labels(&mut self) -> Parsed<Vec<Label<'t>>> {
        let mut labels = Vec::new();
        while !self.accept(b'}')? {
            let at = self.at;
            let name = match self.token {
                Token::Quoted(raw) => unescape(raw),
                Token::Word(word) if !is_keyword(word) => Cow::Borrowed(word),
                _ => return self.unexpected("a label or `}`"),
            };
            self.advance()?;
            let mut range = None;
            if self.accept(b'=')? {
                let first = self.signed_number()?;
                let last = if self.token == Token::Dots {
                    self.advance()?;
                    self.signed_number()?
                } else {
                    first
                };
                if last < first {
                    return Err(MetadataError::at(at, format!("the range {first} ... {last} ends before it begins")));
                }
                range = Some(ValueRange { first, last });
            }
            labels.push(Label { name, at, range });
            if !self.accept(b',')? {
                self.expect(b'}')?;
                break;
            }
        }
        if labels.is_empty() {
            return Err(MetadataError::at(self.at, "an enumeration needs a label"));
        }
        Ok(labels)
    }

    fn optional_name(&mut self) -> Parsed<Option<&'t str>> {
        match self.token {
            Token::Word(word) if !is_keyword(word) => {
                self.advance()?;
                Ok(Some(word))
            }
            _ => Ok(None),
        }
    }

    fn structure(&mut self) -> Parsed<Spec<'t>> {
        let at = self.at;
        let name = self.optional_name()?;
        let body =
            if self.is(b'{') { Some(self.body().map_err(|t| t.within(named("struct", name), at))?.0) } else { None };
        if name.is_none() && body.is_none() {
            return self.unexpected("a name or `{` after `struct`");
        }
        let mut align = None;
        if self.is_word("align") {
            let at = self.at;
            self.advance()?;
            self.expect(b'(')?;
            align = Some(WrittenAlignment { at, bits: self.signed_number()? });
            self.expect(b')')?;
        }
        Ok(Spec::Struct { name, body, align })
    }

    fn variant(&mut self) -> Parsed<Spec<'t>> {
        let at = self.at;
        let name = self.optional_name()?;
        let mut tag = None;
        if self.accept(b'<')? {
            tag = Some(self.reference("the selector of the variant")?);
            self.expect(b'>')?;
        }
        let body =
            if self.is(b'{') { Some(self.body().map_err(|t| t.within(named("variant", name), at))?.0) } else { None };
        if name.is_none() && body.is_none() {
            return self.unexpected("a name or `{` after `variant`");
        }
        Ok(Spec::Variant { name, tag, body })
    }
}

fn named(kind: &str, name: Option<&str>) -> String {
    name.map_or_else(|| format!("in a {kind}"), |n| format!("in {kind} {n}"))
}
