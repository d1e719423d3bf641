//! Tokens to the syntax tree, by recursive descent. One token of lookahead, two where a declaration and an attribute
//! begin alike. CTF 1.8.3, appendix C.

use super::syntax::{Attribute, Count, Declarator, Integer, Item, Label, Spec, Typed, Value, Word};
use super::token::{Token, Tokens};
use super::{Oddity, Trouble};
use std::borrow::Cow;

/// Deeper nesting is refused: it protects the stack, and no tracer comes near.
const DEEPEST: usize = 64;

/// The words that name C's types, alone or together.
const C_TYPES: [&str; 11] =
    ["void", "char", "short", "int", "long", "float", "double", "signed", "unsigned", "_Bool", "_Complex"];

/// Words that name nothing else.
const KEYWORDS: [&str; 26] = [
    "align",
    "const",
    "char",
    "clock",
    "double",
    "enum",
    "env",
    "event",
    "floating_point",
    "float",
    "integer",
    "int",
    "long",
    "short",
    "signed",
    "stream",
    "string",
    "struct",
    "trace",
    "callsite",
    "typealias",
    "typedef",
    "unsigned",
    "variant",
    "void",
    "_Bool",
];

const BLOCKS: [&str; 6] = ["trace", "env", "clock", "stream", "event", "callsite"];

type Parsed<T> = Result<T, Trouble>;

struct Parser<'t> {
    tokens: Tokens<'t>,
    token: Token<'t>,
    at: usize,
    depth: usize,
    oddities: Vec<Oddity>,
}

/// The items of a metadata text, and the attributes that mean nothing.
pub(super) fn parse(text: &str) -> Parsed<(Vec<Item<'_>>, Vec<Oddity>)> {
    let mut tokens = Tokens::new(text);
    let (at, token) = tokens.next()?;
    let mut parser = Parser { tokens, token, at, depth: 0, oddities: Vec::new() };
    let mut items = Vec::new();
    while parser.token != Token::End {
        if parser.accept(";")? {
            continue;
        }
        items.push(parser.item(true)?);
    }
    Ok((items, parser.oddities))
}

fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

impl<'t> Parser<'t> {
    fn advance(&mut self) -> Parsed<Token<'t>> {
        let (at, token) = self.tokens.next()?;
        self.at = at;
        Ok(std::mem::replace(&mut self.token, token))
    }

    /// The token after the current one.
    fn ahead(&self) -> Parsed<Token<'t>> {
        let mut tokens = self.tokens;
        Ok(tokens.next()?.1)
    }

    fn unexpected<T>(&self, expected: &str) -> Parsed<T> {
        Err(Trouble::at(self.at, format!("expected {expected}, found {}", self.token.describe())))
    }

    fn is(&self, mark: &str) -> bool {
        matches!(self.token, Token::Mark(m) if m == mark)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.token, Token::Word(w) if w == word)
    }

    fn accept(&mut self, mark: &str) -> Parsed<bool> {
        let found = self.is(mark);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, mark: &str) -> Parsed<()> {
        if self.accept(mark)? { Ok(()) } else { self.unexpected(&format!("`{mark}`")) }
    }

    /// A word that is no keyword.
    fn name(&mut self, what: &str) -> Parsed<Word<'t>> {
        match self.token {
            Token::Word(text) if !is_keyword(text) => {
                let word = Word { text, at: self.at };
                self.advance()?;
                Ok(word)
            }
            _ => self.unexpected(what),
        }
    }

    fn item(&mut self, top: bool) -> Parsed<Item<'t>> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Trouble::at(self.at, format!("types and blocks are nested deeper than {DEEPEST}")));
        }
        let item = self.item_within(top);
        self.depth -= 1;
        item
    }

    fn item_within(&mut self, top: bool) -> Parsed<Item<'t>> {
        let at = self.at;
        match self.token {
            Token::Word("typedef") => {
                self.advance()?;
                let typed = self.typed()?;
                let declarators = self.declarators()?;
                Ok(Item::Typedef(typed, declarators))
            }
            Token::Word("typealias") => {
                self.advance()?;
                self.typealias()
            }
            Token::Word(kind) if top && BLOCKS.contains(&kind) && self.ahead()? == Token::Mark("{") => {
                self.advance()?;
                let body = self.body().map_err(|t| t.within(format!("in the {kind} block"), at))?;
                if !self.is(";") && self.token != Token::End {
                    return self.unexpected(&format!("`;` after the {kind} block"));
                }
                Ok(Item::Block { kind, at, body })
            }
            Token::Word(_) => {
                let ahead = self.ahead()?;
                let assigns = matches!(ahead, Token::Mark("=" | ":=" | "."));
                if assigns && !top { self.assignment() } else { self.declaration() }
            }
            Token::Quoted(_) if !top => self.assignment(),
            _ => self.unexpected("a declaration"),
        }
    }

    /// `name = value;`, `name := type;`, where a name may be dotted or quoted.
    fn assignment(&mut self) -> Parsed<Item<'t>> {
        let at = self.at;
        let name = match self.advance()? {
            Token::Quoted(text) => text.into_owned(),
            Token::Word(word) => self.dotted(word)?,
            _ => return self.unexpected("a name"),
        };
        if self.accept("=")? {
            let attribute = self.attribute_value(name, at)?;
            self.expect(";")?;
            return Ok(Item::Attribute(attribute));
        }
        self.expect(":=")?;
        let typed = self.typed().map_err(|t| t.within(format!("in {name}"), at))?;
        if self.is("[") {
            return self.unexpected("`;` (an array has no place here)");
        }
        self.expect(";")?;
        Ok(Item::Assigned { name, at, typed })
    }

    /// What follows a first word: `.word` any number of times.
    fn dotted(&mut self, first: &str) -> Parsed<String> {
        let mut name = first.to_owned();
        while self.accept(".")? {
            let Token::Word(word) = self.token else { return self.unexpected("a name after `.`") };
            name.push('.');
            name.push_str(word);
            self.advance()?;
        }
        Ok(name)
    }

    fn attribute_value(&mut self, name: String, at: usize) -> Parsed<Attribute<'t>> {
        let value_at = self.at;
        let value = match self.token.clone() {
            Token::Quoted(text) => {
                self.advance()?;
                Value::Text(text)
            }
            Token::Word(word) => {
                self.advance()?;
                Value::Word(self.dotted(word)?)
            }
            _ => Value::Number(self.signed_number()?),
        };
        Ok(Attribute { name, at, value, value_at })
    }

    fn signed_number(&mut self) -> Parsed<i128> {
        let negative = self.accept("-")?;
        if !negative {
            self.accept("+")?;
        }
        match self.token {
            Token::Number(n) => {
                self.advance()?;
                Ok(if negative { -i128::from(n) } else { i128::from(n) })
            }
            _ => self.unexpected("an integer"),
        }
    }

    fn declaration(&mut self) -> Parsed<Item<'t>> {
        let typed = self.typed()?;
        let only_names = matches!(
            &typed.spec,
            Spec::Struct { name: Some(_), .. } | Spec::Variant { name: Some(_), .. } | Spec::Enum { name: Some(_), .. }
        );
        // Some writers leave out the semicolon behind a named type at the top.
        let ends = matches!(self.token, Token::Word(word) if is_keyword(word) && word != "const");
        if only_names && (self.accept(";")? || ends) {
            return Ok(Item::Declaration(typed, Vec::new()));
        }
        let declarators = self.declarators()?;
        Ok(Item::Declaration(typed, declarators))
    }

    /// `a, *b, c[3][len];`
    fn declarators(&mut self) -> Parsed<Vec<Declarator<'t>>> {
        let mut all = Vec::with_capacity(1);
        loop {
            let mut pointers = 0;
            while self.accept("*")? {
                pointers += 1;
            }
            let name = self.name("a name")?;
            all.push(Declarator { name, pointers, counts: self.counts()? });
            if !self.accept(",")? {
                self.expect(";")?;
                return Ok(all);
            }
        }
    }

    fn counts(&mut self) -> Parsed<Vec<Count<'t>>> {
        let mut counts = Vec::new();
        while self.accept("[")? {
            counts.push(match self.token {
                Token::Number(n) => {
                    self.advance()?;
                    Count::Fixed(n)
                }
                _ => Count::Held(self.reference("the number of elements, or the field that holds it")?),
            });
            self.expect("]")?;
            if counts.len() > DEEPEST {
                return Err(Trouble::at(self.at, format!("more than {DEEPEST} dimensions")));
            }
        }
        Ok(counts)
    }

    /// `a.b.c`, keywords allowed (`stream.event.context.len`), as one borrowed text.
    fn reference(&mut self, what: &str) -> Parsed<Word<'t>> {
        let start = self.at;
        let Token::Word(first) = self.token else { return self.unexpected(what) };
        let mut end = start + first.len();
        self.advance()?;
        while self.accept(".")? {
            let Token::Word(word) = self.token else { return self.unexpected("a name after `.`") };
            end = self.at + word.len();
            self.advance()?;
        }
        Ok(Word { text: self.tokens.slice(start, end), at: start })
    }

    fn typealias(&mut self) -> Parsed<Item<'t>> {
        let mut typed = self.typed()?;
        while self.accept("*")? {
            typed.spec = Spec::Named(Cow::Owned(format!("{} *", type_name(&typed))));
        }
        if let Token::Word(word) = self.token
            && !is_keyword(word)
        {
            self.advance()?;
        }
        let counts = self.counts()?;
        self.expect(":=")?;
        let mut alias = match self.token {
            Token::Word(word) if C_TYPES.contains(&word) || word == "const" => self.c_type()?,
            Token::Word(word @ ("struct" | "enum" | "variant")) => {
                self.advance()?;
                Cow::Owned(format!("{word} {}", self.name("a name")?.text))
            }
            _ => Cow::Borrowed(self.name("a new name for the type")?.text),
        };
        while self.accept("*")? {
            alias = Cow::Owned(format!("{alias} *"));
        }
        self.expect(";")?;
        Ok(Item::Typealias(typed, counts, alias))
    }

    /// `unsigned long`, `const char` ... as one name with single spaces.
    fn c_type(&mut self) -> Parsed<Cow<'t, str>> {
        let mut name = Cow::Borrowed("");
        while let Token::Word(word) = self.token
            && (C_TYPES.contains(&word) || word == "const")
        {
            if word != "const" {
                name = if name.is_empty() { Cow::Borrowed(word) } else { Cow::Owned(format!("{name} {word}")) };
            }
            self.advance()?;
        }
        if name.is_empty() { Ok(Cow::Borrowed(self.name("the name of a type")?.text)) } else { Ok(name) }
    }

    fn typed(&mut self) -> Parsed<Typed<'t>> {
        let at = self.at;
        while self.is_word("const") {
            self.advance()?;
        }
        let spec = match self.token {
            Token::Word("integer") => {
                self.advance()?;
                Spec::Integer(self.integer().map_err(|t| t.within("in an integer", at))?)
            }
            Token::Word("floating_point") => {
                self.advance()?;
                Spec::Float(self.attributes().map_err(|t| t.within("in a floating_point", at))?)
            }
            Token::Word("string") => {
                self.advance()?;
                Spec::Text(if self.is("{") { self.attributes()? } else { Vec::new() })
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
            Token::Word(word) if C_TYPES.contains(&word) => Spec::Named(self.c_type()?),
            _ => Spec::Named(Cow::Borrowed(self.name("the name of a type")?.text)),
        };
        while self.is_word("const") {
            self.advance()?;
        }
        Ok(Typed { spec, at })
    }

    fn attributes(&mut self) -> Parsed<Vec<Attribute<'t>>> {
        self.expect("{")?;
        let mut all = Vec::new();
        while !self.accept("}")? {
            if self.accept(";")? {
                continue;
            }
            let at = self.at;
            let Token::Word(word) = self.token else { return self.unexpected("an attribute") };
            self.advance()?;
            self.expect("=")?;
            let attribute = self.attribute_value(word.to_owned(), at)?;
            self.expect(";")?;
            all.push(attribute);
        }
        Ok(all)
    }

    fn integer(&mut self) -> Parsed<Integer<'t>> {
        let mut integer = Integer::default();
        let mut seen: Vec<&str> = Vec::with_capacity(8);
        self.expect("{")?;
        while !self.accept("}")? {
            if self.accept(";")? {
                continue;
            }
            let at = self.at;
            let Token::Word(name) = self.token else { return self.unexpected("an attribute") };
            if seen.contains(&name) {
                return Err(Trouble::at(at, format!("`{name}` is given twice")));
            }
            seen.push(name);
            self.advance()?;
            self.expect("=")?;
            self.integer_attribute(&mut integer, name, at)?;
            self.expect(";")?;
        }
        if integer.size.is_none() {
            return Err(Trouble::at(self.at, "an integer needs a `size`"));
        }
        Ok(integer)
    }

    fn integer_attribute(&mut self, integer: &mut Integer<'t>, name: &str, at: usize) -> Parsed<()> {
        let refuse = |what: &str| Err(Trouble::at(at, what.to_owned()));
        match name {
            "size" => match self.signed_number()? {
                size @ 1..=64 => integer.size = Some(size as u8),
                size => return refuse(&format!("the size of an integer is 1 to 64 bits, not {size}")),
            },
            "align" => integer.align = Some(alignment(self.signed_number()?, at)?),
            "signed" => {
                integer.signed = match self.token {
                    Token::Number(n @ (0 | 1)) => n == 1,
                    Token::Word("true" | "TRUE") => true,
                    Token::Word("false" | "FALSE") => false,
                    _ => return self.unexpected("`true` or `false`"),
                };
                self.advance()?;
            }
            "byte_order" => {
                let order = self.attribute_value(String::new(), at)?;
                integer.big_endian = byte_order(&order)?;
            }
            "base" => {
                let ok = match &self.token {
                    Token::Number(2 | 8 | 10 | 16) => true,
                    Token::Word(w) => BASES.contains(w),
                    _ => false,
                };
                if !ok {
                    return self.unexpected("a base (2, 8, 10, 16 or its name)");
                }
                self.advance()?;
            }
            "encoding" => {
                let encoding = self.attribute_value(String::new(), at)?;
                integer.character = encoding_is_text(&encoding)?;
            }
            "map" => {
                let whole = self.reference("`clock.NAME.value`")?;
                let clock = whole.text.strip_prefix("clock.").and_then(|rest| rest.strip_suffix(".value"));
                match clock {
                    Some(text) if !text.is_empty() => integer.clock = Some(Word { text, at: whole.at }),
                    _ => return refuse(&format!("`{}` is no clock: `clock.NAME.value` is meant", whole.text)),
                }
            }
            other => {
                self.oddities.push(Oddity { at, what: format!("an integer has no attribute `{other}`") });
                self.attribute_value(String::new(), at)?;
            }
        }
        Ok(())
    }

    fn enumeration(&mut self) -> Parsed<Spec<'t>> {
        let name = self.optional_name()?;
        let container = if self.accept(":")? { Some(Box::new(self.typed()?)) } else { None };
        let labels = if self.accept("{")? { Some(self.labels()?) } else { None };
        if name.is_none() && labels.is_none() {
            return self.unexpected("a name or `{` after `enum`");
        }
        Ok(Spec::Enum { name, container, labels })
    }

    fn labels(&mut self) -> Parsed<Vec<Label<'t>>> {
        let mut labels = Vec::new();
        while !self.accept("}")? {
            let at = self.at;
            let name = match self.advance()? {
                Token::Quoted(text) => text,
                Token::Word(word) => Cow::Borrowed(word),
                other => {
                    return Err(Trouble::at(at, format!("expected a label or `}}`, found {}", other.describe())));
                }
            };
            let mut range = None;
            if self.accept("=")? {
                let first = self.signed_number()?;
                let last = if self.accept("...")? { self.signed_number()? } else { first };
                if last < first {
                    return Err(Trouble::at(at, format!("the range {first} ... {last} ends before it begins")));
                }
                range = Some((first, last));
            }
            labels.push(Label { name, at, range });
            if !self.accept(",")? {
                self.expect("}")?;
                break;
            }
        }
        if labels.is_empty() {
            return Err(Trouble::at(self.at, "an enumeration needs a label"));
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
            if self.is("{") { Some(self.body().map_err(|t| t.within(named("struct", name), at))?) } else { None };
        if name.is_none() && body.is_none() {
            return self.unexpected("a name or `{` after `struct`");
        }
        let mut align = None;
        if self.is_word("align") {
            let at = self.at;
            self.advance()?;
            self.expect("(")?;
            align = Some((at, self.signed_number()?));
            self.expect(")")?;
        }
        Ok(Spec::Struct { name, body, align })
    }

    fn variant(&mut self) -> Parsed<Spec<'t>> {
        let at = self.at;
        let name = self.optional_name()?;
        let mut tag = None;
        if self.accept("<")? {
            tag = Some(self.reference("the selector of the variant")?);
            self.expect(">")?;
        }
        let body =
            if self.is("{") { Some(self.body().map_err(|t| t.within(named("variant", name), at))?) } else { None };
        if name.is_none() && body.is_none() {
            return self.unexpected("a name or `{` after `variant`");
        }
        Ok(Spec::Variant { name, tag, body })
    }

    fn body(&mut self) -> Parsed<Vec<Item<'t>>> {
        self.expect("{")?;
        let mut items = Vec::new();
        while !self.accept("}")? {
            if !self.accept(";")? {
                items.push(self.item(false)?);
            }
        }
        Ok(items)
    }
}

fn named(kind: &str, name: Option<&str>) -> String {
    name.map_or_else(|| format!("in a {kind}"), |n| format!("in {kind} {n}"))
}

fn type_name<'a>(typed: &'a Typed<'_>) -> &'a str {
    if let Spec::Named(name) = &typed.spec { name } else { "" }
}

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

/// A power of two.
pub(super) fn alignment(align: i128, at: usize) -> Parsed<u64> {
    match u64::try_from(align) {
        Ok(align) if align.is_power_of_two() => Ok(align),
        _ => Err(Trouble::at(at, format!("an alignment is a power of two, not {align}"))),
    }
}

/// `le`, `be`, `network`; `native` is `None`.
pub(super) fn byte_order(attribute: &Attribute<'_>) -> Parsed<Option<bool>> {
    let word = match &attribute.value {
        Value::Word(word) => word.as_str(),
        Value::Text(text) => text,
        Value::Number(_) => "",
    };
    match word {
        "le" => Ok(Some(false)),
        "be" | "network" => Ok(Some(true)),
        "native" => Ok(None),
        _ => Err(Trouble::at(attribute.value_at, "a byte order is `le`, `be`, `network` or `native`")),
    }
}

/// True for `UTF8` and `ASCII`, false for `none`.
pub(super) fn encoding_is_text(attribute: &Attribute<'_>) -> Parsed<bool> {
    let word = match &attribute.value {
        Value::Word(word) => word.as_str(),
        Value::Text(text) => text,
        Value::Number(_) => "",
    };
    match word {
        "none" | "NONE" => Ok(false),
        "UTF8" | "utf8" | "UTF-8" | "utf-8" | "ASCII" | "ascii" => Ok(true),
        _ => Err(Trouble::at(attribute.value_at, "an encoding is `none`, `UTF8` or `ASCII`")),
    }
}
