//! Parses tokens to the syntax tree by recursive descent: blocks, attributes, declarations. The grammar of types is in
//! `types`. One token of lookahead, two where a declaration and an attribute begin alike. The tree borrows the text and
//! allocates only its own lists. CTF 1.8.3, appendix C.

use super::known::Known;
use super::syntax::{Attribute, Count, Declarator, Declarators, Integer, Item, Spec, Value, Word};
use super::token::{PlacedToken, Token, Tokens, names, unescape};
use crate::input::ctf::error::{MetadataError, MetadataWarning};
use foldhash::HashMap;
use std::borrow::Cow;

/// The deepest nesting that is parsed. It protects the stack; the metadata of tracers is nested far less deeply.
const DEEPEST: usize = 64;

/// Reserved words.
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

pub(super) type Parsed<T> = Result<T, MetadataError>;

pub(super) struct Parser<'t> {
    pub(super) tokens: Tokens<'t>,
    pub(super) token: Token<'t>,
    /// Offset of the token.
    pub(super) at: usize,
    /// The token after it, once it was read.
    pub(super) ahead: Option<PlacedToken<'t>>,
    depth: usize,
    /// Integers that were parsed before, by the text between their braces.
    pub(super) integers: HashMap<&'t str, Integer<'t>>,
    /// Event blocks of another metadata.
    known: Option<&'t Known<'t>>,
    pub(super) warnings: Vec<MetadataWarning>,
}

/// Where an item is in a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    /// Outside of all braces.
    Top,
    /// In a block or a structure.
    Inside,
}

/// The items of a metadata text, and warnings about unknown attributes.
pub(super) fn parse<'t>(text: &'t str, known: Option<&'t Known<'t>>) -> Parsed<(Vec<Item<'t>>, Vec<MetadataWarning>)> {
    let mut tokens = Tokens::new(text);
    let PlacedToken { at, token } = tokens.next()?;
    let (integers, warnings) = (HashMap::default(), Vec::new());
    let mut parser = Parser { tokens, token, at, ahead: None, depth: 0, integers, known, warnings };
    let mut items = Vec::new();
    while parser.token != Token::End {
        if parser.accept(b';')? {
            continue;
        }
        items.push(parser.item(Level::Top)?);
    }
    Ok((items, parser.warnings))
}

pub(super) fn is_keyword(word: &str) -> bool {
    // LTTng writes names of members with a leading underscore, so this excludes most words at once.
    !(word.starts_with('_') && word != "_Bool") && KEYWORDS.contains(&word)
}

impl<'t> Parser<'t> {
    /// Go to the next token.
    pub(super) fn advance(&mut self) -> Parsed<()> {
        let next = match self.ahead.take() {
            Some(ahead) => ahead,
            None => self.tokens.next()?,
        };
        (self.at, self.token) = (next.at, next.token);
        Ok(())
    }

    /// The token after the current one.
    fn ahead(&mut self) -> Parsed<Token<'t>> {
        let ahead = match self.ahead {
            Some(ahead) => ahead,
            None => *self.ahead.insert(self.tokens.next()?),
        };
        Ok(ahead.token)
    }

    #[cold]
    pub(super) fn unexpected<T>(&self, expected: &str) -> Parsed<T> {
        Err(MetadataError::at(self.at, format!("expected {expected}, found {}", self.token.describe())))
    }

    pub(super) fn is(&self, mark: u8) -> bool {
        self.token == Token::Mark(mark)
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(self.token, Token::Word(w) if w == word)
    }

    pub(super) fn accept(&mut self, mark: u8) -> Parsed<bool> {
        let found = self.is(mark);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    pub(super) fn expect(&mut self, mark: u8) -> Parsed<()> {
        if self.accept(mark)? { Ok(()) } else { self.unexpected(&Token::Mark(mark).describe()) }
    }

    /// A word that is no keyword.
    pub(super) fn name(&mut self, what: &str) -> Parsed<Word<'t>> {
        match self.token {
            Token::Word(text) if !is_keyword(text) => {
                let word = Word { text, at: self.at };
                self.advance()?;
                Ok(word)
            }
            _ => self.unexpected(what),
        }
    }

    fn item(&mut self, level: Level) -> Parsed<Item<'t>> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(MetadataError::at(self.at, format!("types and blocks are nested deeper than {DEEPEST}")));
        }
        let item = self.item_within(level);
        self.depth -= 1;
        item
    }

    fn item_within(&mut self, level: Level) -> Parsed<Item<'t>> {
        let at = self.at;
        let token = self.token;
        match token {
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
            Token::Word(kind)
                if level == Level::Top && BLOCKS.contains(&kind) && self.ahead()? == Token::Mark(b'{') =>
            {
                self.advance()?;
                let item = match self.known_event(kind, at)? {
                    Some(known) => known,
                    None => {
                        let read = self.body().map_err(|t| t.within(format!("in the {kind} block"), at));
                        let (body, end) = read?;
                        Item::Block { kind, at, text: self.tokens.slice(at, end), body }
                    }
                };
                if !self.is(b';') {
                    return self.unexpected(&format!("`;` after the {kind} block"));
                }
                Ok(item)
            }
            Token::Word(_) => {
                let assigns = matches!(self.ahead()?, Token::Mark(b'=' | b'.') | Token::Becomes);
                if assigns && level == Level::Inside { self.assignment() } else { self.declaration(level) }
            }
            Token::Quoted(_) if level == Level::Inside => self.assignment(),
            _ => self.unexpected("a declaration"),
        }
    }

    /// `name = value;`, `name := type;`, where a name may be dotted or quoted.
    fn assignment(&mut self) -> Parsed<Item<'t>> {
        let at = self.at;
        let name = self.attribute_name()?;
        if self.accept(b'=')? {
            let attribute = self.attribute_value(name, at)?;
            self.expect(b';')?;
            return Ok(Item::Attribute(attribute));
        }
        if self.token != Token::Becomes {
            return self.unexpected("`:=`");
        }
        self.advance()?;
        let typed = self.typed().map_err(|t| t.within(format!("in {name}"), at))?;
        if self.is(b'[') {
            return self.unexpected("`;` (an array may not be here)");
        }
        self.expect(b';')?;
        Ok(Item::Assigned { name, at, typed })
    }

    /// Words joined by dots, as one text.
    fn dotted(&mut self) -> Parsed<Cow<'t, str>> {
        let (written, pure) = self.joined("a name")?;
        if pure {
            return Ok(Cow::Borrowed(written.text));
        }
        // There is space or a comment between the words.
        Ok(Cow::Owned(names(written.text).collect::<Vec<_>>().join(".")))
    }

    /// `a.b.c`, keywords allowed (`stream.event.context.len`), as one borrowed text; true where it consists of words
    /// and dots only.
    fn joined(&mut self, what: &str) -> Parsed<(Word<'t>, bool)> {
        let start = self.at;
        let Token::Word(first) = self.token else { return self.unexpected(what) };
        let (mut end, mut length) = (start + first.len(), first.len());
        self.advance()?;
        while self.accept(b'.')? {
            let Token::Word(word) = self.token else { return self.unexpected("a name after `.`") };
            end = self.at + word.len();
            length += 1 + word.len();
            self.advance()?;
        }
        Ok((Word { text: self.tokens.slice(start, end), at: start }, end - start == length))
    }

    /// `a.b.c` as written ([`names`] gives its parts), or the same in parentheses.
    pub(super) fn reference(&mut self, what: &str) -> Parsed<Word<'t>> {
        let open = self.parentheses()?;
        let written = self.joined(what)?.0;
        self.close(open)?;
        Ok(written)
    }

    /// Steps over opening parentheses; returns their number.
    fn parentheses(&mut self) -> Parsed<usize> {
        let mut open = 0;
        while self.accept(b'(')? {
            open += 1;
        }
        Ok(open)
    }

    fn close(&mut self, open: usize) -> Parsed<()> {
        (0..open).try_for_each(|_| self.expect(b')'))
    }

    pub(super) fn attribute_value(&mut self, name: Cow<'t, str>, at: usize) -> Parsed<Attribute<'t>> {
        let value_at = self.at;
        let value = match self.token {
            Token::Quoted(raw) => {
                self.advance()?;
                Value::Text(unescape(raw))
            }
            Token::Word(_) => Value::Word(self.dotted()?),
            _ => Value::Number(self.signed_number()?),
        };
        Ok(Attribute { name, at, value, value_at })
    }

    /// The name of an attribute: words joined by dots, or a string.
    pub(super) fn attribute_name(&mut self) -> Parsed<Cow<'t, str>> {
        match self.token {
            Token::Quoted(raw) => {
                self.advance()?;
                Ok(unescape(raw))
            }
            Token::Word(_) => self.dotted(),
            _ => self.unexpected("an attribute"),
        }
    }

    /// `5`, `-5`, `+5`, `(5)`, `-(5)`.
    pub(super) fn signed_number(&mut self) -> Parsed<i128> {
        let (mut negative, mut open) = (false, self.parentheses()?);
        if self.accept(b'-')? {
            negative = true;
        } else {
            self.accept(b'+')?;
        }
        open += self.parentheses()?;
        let Token::Number(n) = self.token else { return self.unexpected("an integer") };
        self.advance()?;
        self.close(open)?;
        Ok(if negative { -i128::from(n) } else { i128::from(n) })
    }

    fn declaration(&mut self, level: Level) -> Parsed<Item<'t>> {
        let typed = self.typed()?;
        if self.is_word("typedef") {
            self.advance()?;
            return Ok(Item::Typedef(typed, self.declarators()?));
        }
        let only_names = match &typed.spec {
            Spec::Struct { name, .. } | Spec::Variant { name, .. } | Spec::Enum { name, .. } => {
                level == Level::Top || name.is_some()
            }
            _ => false,
        };
        // Some writers omit the semicolon after a named type at the top level.
        let ends = matches!(self.token, Token::Word(word) if is_keyword(word) && word != "const");
        if only_names && (self.accept(b';')? || ends) {
            return Ok(Item::Declaration(typed, Declarators::new()));
        }
        let declarators = self.declarators()?;
        Ok(Item::Declaration(typed, declarators))
    }

    /// `a, *b, c[3][len];`
    fn declarators(&mut self) -> Parsed<Declarators<'t>> {
        let mut all = Declarators::new();
        loop {
            let pointers = self.pointers(String::new)?;
            let name = self.name("a name")?;
            all.push(Declarator { name, pointers, counts: self.counts()? });
            if !self.accept(b',')? {
                self.expect(b';')?;
                return Ok(all);
            }
        }
    }

    fn counts(&mut self) -> Parsed<Vec<Count<'t>>> {
        let mut counts = Vec::new();
        while self.accept(b'[')? {
            counts.push(self.count()?);
            self.expect(b']')?;
            if counts.len() > DEEPEST {
                return Err(MetadataError::at(self.at, format!("more than {DEEPEST} dimensions")));
            }
        }
        Ok(counts)
    }

    fn count(&mut self) -> Parsed<Count<'t>> {
        let at = self.at;
        let open = self.parentheses()?;
        let count = match self.token {
            Token::Number(_) | Token::Mark(b'+' | b'-') => match u64::try_from(self.signed_number()?) {
                Ok(n) => Count::Fixed(n),
                Err(_) => return Err(MetadataError::at(at, "the number of elements must not be negative")),
            },
            _ => Count::Reference(self.reference("the number of elements, or the field that holds it")?),
        };
        self.close(open)?;
        Ok(count)
    }

    fn typealias(&mut self) -> Parsed<Item<'t>> {
        let mut typed = self.typed()?;
        if let Some(pointer) = self.pointers(|| typed.spec.name())? {
            typed.spec = Spec::Named(Cow::Owned(pointer));
        }
        if let Token::Word(word) = self.token
            && !is_keyword(word)
        {
            self.advance()?;
        }
        let counts = self.counts()?;
        if self.token != Token::Becomes {
            return self.unexpected("`:=`");
        }
        self.advance()?;
        let alias = self.new_type_name()?;
        self.expect(b';')?;
        Ok(Item::Typealias(typed, counts, alias))
    }

    /// `{ attribute = value; ... }`
    pub(super) fn attributes(&mut self) -> Parsed<Vec<Attribute<'t>>> {
        self.expect(b'{')?;
        let mut all = Vec::new();
        while !self.accept(b'}')? {
            if self.accept(b';')? {
                continue;
            }
            let at = self.at;
            let name = self.attribute_name()?;
            self.expect(b'=')?;
            let attribute = self.attribute_value(name, at)?;
            self.expect(b';')?;
            all.push(attribute);
        }
        Ok(all)
    }

    /// `{ item item ... }`, and the byte after it.
    pub(super) fn body(&mut self) -> Parsed<(Vec<Item<'t>>, usize)> {
        self.expect(b'{')?;
        let mut items = Vec::new();
        while !self.is(b'}') {
            if !self.accept(b';')? {
                items.push(self.item(Level::Inside)?);
            }
        }
        let end = self.at + 1;
        self.advance()?;
        Ok((items, end))
    }

    /// The block that begins at byte `at`, whose brace is the current token, if it was read in another metadata.
    fn known_event(&mut self, kind: &str, at: usize) -> Parsed<Option<Item<'t>>> {
        let (Some(known), "event", None) = (self.known, kind, self.ahead) else { return Ok(None) };
        let end = self.tokens.closing(self.at);
        let Some(event) = known.event(self.tokens.slice(at, end)) else { return Ok(None) };
        self.tokens.jump(end);
        self.advance()?;
        Ok(Some(Item::Known { at, event }))
    }
}
