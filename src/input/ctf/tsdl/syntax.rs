//! The syntax tree of TSDL, before names are resolved; it borrows the text.

use super::known::KnownEvent;
use crate::base::cursor::ByteOrder;
use crate::input::ctf::schema::ValueRange;
use smallvec::SmallVec;
use std::borrow::Cow;

/// A word and its byte offset in the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
}

/// The value of an attribute.
#[derive(Clone, Debug)]
pub(super) enum Value<'t> {
    Number(i128),
    Text(Cow<'t, str>),
    /// A word, or words joined by dots (`clock.monotonic.value`).
    Word(Cow<'t, str>),
}

/// `name = value;` in a block or a type; names may be dotted (`event.header`) or quoted.
#[derive(Clone, Debug)]
pub(super) struct Attribute<'t> {
    pub(super) name: Cow<'t, str>,
    pub(super) at: usize,
    pub(super) value: Value<'t>,
    pub(super) value_at: usize,
}

/// A type as written.
#[derive(Clone, Debug)]
pub(super) enum Spec<'t> {
    /// The name of a type, words joined by spaces (`unsigned long`).
    Named(Cow<'t, str>),
    Integer(Integer<'t>),
    Float(Vec<Attribute<'t>>),
    Text(Vec<Attribute<'t>>),
    Enum {
        name: Option<&'t str>,
        container: Option<Box<Typed<'t>>>,
        labels: Option<Vec<Label<'t>>>,
    },
    Struct {
        name: Option<&'t str>,
        body: Option<Vec<Item<'t>>>,
        align: Option<WrittenAlignment>,
    },
    Variant {
        name: Option<&'t str>,
        tag: Option<Word<'t>>,
        body: Option<Vec<Item<'t>>>,
    },
}

/// `align(bits)` after a structure.
#[derive(Clone, Copy, Debug)]
pub(super) struct WrittenAlignment {
    pub(super) at: usize,
    pub(super) bits: i128,
}

impl Spec<'_> {
    /// The name under which pointers to this type are declared; empty for a type without a name.
    pub(super) fn name(&self) -> String {
        let tagged = |kind: &str, name: &Option<&str>| format!("{kind} {}", name.unwrap_or(""));
        match self {
            Spec::Named(name) => name.to_string(),
            Spec::Enum { name, .. } => tagged("enum", name),
            Spec::Struct { name, .. } => tagged("struct", name),
            Spec::Variant { name, .. } => tagged("variant", name),
            Spec::Integer(_) | Spec::Float(_) | Spec::Text(_) => String::new(),
        }
    }
}

/// A type and its byte offset.
#[derive(Clone, Debug)]
pub(super) struct Typed<'t> {
    pub(super) spec: Spec<'t>,
    pub(super) at: usize,
}

/// The attributes of an `integer`, each at most once; kept flat because metadata has tens of thousands of these.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Integer<'t> {
    pub(super) size: Option<u8>,
    pub(super) align: Option<u64>,
    pub(super) signed: bool,
    pub(super) byte_order: Option<ByteOrder>,
    pub(super) character: bool,
    /// The clock that it maps to: `clock.NAME.value`.
    pub(super) clock: Option<Word<'t>>,
}

/// `name = first ... last`, in an enumeration.
#[derive(Clone, Debug)]
pub(super) struct Label<'t> {
    pub(super) name: Cow<'t, str>,
    pub(super) at: usize,
    pub(super) range: Option<ValueRange>,
}

/// The number of elements of an array.
#[derive(Clone, Debug)]
pub(super) enum Count<'t> {
    Fixed(u64),
    /// A reference, words joined by dots.
    Reference(Word<'t>),
}

/// A declared name and the array dimensions after it.
#[derive(Clone, Debug)]
pub(super) struct Declarator<'t> {
    pub(super) name: Word<'t>,
    /// ` *`, ` * const` and so on, where the declared name is a pointer.
    pub(super) pointers: Option<String>,
    pub(super) counts: Vec<Count<'t>>,
}

/// The declarators of a declaration, mostly one.
pub(super) type Declarators<'t> = SmallVec<[Declarator<'t>; 1]>;

/// An item of a structure, a block, or the text itself.
#[derive(Clone, Debug)]
pub(super) enum Item<'t> {
    /// `type a, b[3];`
    Declaration(Typed<'t>, Declarators<'t>),
    /// `typedef type a, b[3];`
    Typedef(Typed<'t>, Declarators<'t>),
    /// `typealias type a[3] := name;`: the type, its dimensions, the new name.
    Typealias(Typed<'t>, Vec<Count<'t>>, Cow<'t, str>),
    /// `name = value;`
    Attribute(Attribute<'t>),
    /// `name := type;`
    Assigned { name: Cow<'t, str>, at: usize, typed: Typed<'t> },
    /// `trace { ... };` and the other blocks.
    Block { kind: &'t str, at: usize, text: &'t str, body: Vec<Item<'t>> },
    /// An event block that was read in another metadata.
    Known { at: usize, event: &'t KnownEvent },
}
