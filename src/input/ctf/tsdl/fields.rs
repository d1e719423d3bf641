//! Resolves types to fields: looks up names by scope, interprets attributes, and keeps lengths and selectors as
//! locations.
//!
//! Scopes are a stack of tables; a name refers to the innermost declaration before its use (7.3.1). A named type is
//! cloned where it is used, because the lengths and selectors inside it are bound per use. The number of fields of all
//! clones is bounded (`extent`).

use super::attributes::{Resolved, alignment, byte_order, encoding_is_text, once};
use super::known::Declared;
use super::resolve::Resolver;
use super::syntax::{
    Attribute, Count as WrittenCount, Declarator, Integer, Item, Label, Spec, Typed, Value, Word, WrittenAlignment,
};
use super::token::names;
use crate::input::ctf::error::MetadataError;
use crate::input::ctf::extent::{FieldSize, check_depth, size};
use crate::input::ctf::schema::{
    Bits, ByteMeaning, Choice, Count, Field, Kind, Label as Named, Location, Member, Root, Show, Source, TextUnit,
    ValueRange,
};
use foldhash::{HashMap, HashMapExt, HashSet};
use std::borrow::Cow;
use std::sync::Arc;

/// The beginnings of absolute references (7.3.2).
const PREFIXES: [(&[&str], Root); 6] = [
    (&["trace", "packet", "header"], Root::PacketHeader),
    (&["stream", "packet", "context"], Root::PacketContext),
    (&["stream", "event", "header"], Root::EventHeader),
    (&["stream", "event", "context"], Root::CommonContext),
    (&["event", "context"], Root::SpecificContext),
    (&["event", "fields"], Root::Payload),
];

impl<'t> Resolver<'t> {
    fn declare(&mut self, name: Cow<'t, str>, field: Field, at: usize) -> Resolved<()> {
        let FieldSize { fields, depth } = size(&field);
        check_depth(depth, at)?;
        let declared = Declared { field, fields };
        let scope = self.scopes.last_mut();
        if scope.is_some_and(|scope| scope.insert(name.clone(), declared).is_some()) {
            return Err(MetadataError::at(at, format!("the type `{name}` is declared twice in one scope")));
        }
        Ok(())
    }

    /// Declares the types of an item that declares no members.
    pub(super) fn declare_types(&mut self, item: &Item<'t>) -> Resolved<()> {
        match item {
            Item::Typedef(typed, declarators) => self.each_declared(typed, declarators, |resolver, name, field| {
                resolver.declare(Cow::Borrowed(name.text), field, name.at)
            }),
            Item::Typealias(typed, counts, name) => {
                let base = self.field(typed)?;
                let field = self.dimensions(base, counts)?;
                self.declare(name.clone(), field, typed.at)
            }
            Item::Declaration(typed, declarators) if declarators.is_empty() => self.tagged(typed),
            Item::Declaration(typed, _) => Err(MetadataError::at(typed.at, "a field may not be here")),
            Item::Attribute(Attribute { at, .. })
            | Item::Assigned { at, .. }
            | Item::Block { at, .. }
            | Item::Known { at, .. } => Err(MetadataError::at(*at, "only types and fields may be here")),
        }
    }

    /// `struct name { ... };` alone: declared for later.
    fn tagged(&mut self, typed: &Typed<'t>) -> Resolved<()> {
        if let Spec::Variant { name: Some(_), tag: None, body: Some(_) } = &typed.spec {
            return self.variant_type(typed).map(drop);
        }
        match &typed.spec {
            Spec::Struct { body: Some(_), .. } | Spec::Enum { labels: Some(_), .. } => self.field(typed).map(drop),
            _ => Err(MetadataError::at(typed.at, "this declares nothing")),
        }
    }

    /// Declares a type where it is used.
    fn declare_used(&mut self, kind: &str, name: &str, field: &Field, at: usize) -> Resolved<()> {
        let copy = self.copy(field, at)?;
        self.declare(Cow::Owned(format!("{kind} {name}")), copy, at)
    }

    /// A copy, where the extent allows one more.
    fn copy(&mut self, field: &Field, at: usize) -> Resolved<Field> {
        self.extent.add(size(field).fields, at)?;
        Ok(field.clone())
    }

    fn look_up(&mut self, name: &str, at: usize) -> Resolved<Field> {
        let find = |name: &str| self.scopes.iter().rev().find_map(|scope| scope.get(name));
        // A constant has the layout of a variable, unless a type of its own is declared for constants.
        let plain = || name.split(' ').filter(|word| *word != "const").collect::<Vec<_>>().join(" ");
        let found = find(name).or_else(|| if name.contains("const") { find(&plain()) } else { None });
        let found = found.ok_or_else(|| MetadataError::at(at, format!("no type `{name}` is declared before this")))?;
        self.extent.add(found.fields, at)?;
        Ok(found.field.clone())
    }

    pub(super) fn field(&mut self, typed: &Typed<'t>) -> Resolved<Field> {
        match &typed.spec {
            Spec::Named(name) => match self.look_up(name, typed.at)? {
                Field { kind: Kind::Variant { by: Source::At(location), .. }, .. } if location.path.is_empty() => {
                    Err(MetadataError::at(typed.at, format!("the variant `{name}` needs a selector")))
                }
                field => Ok(field),
            },
            Spec::Integer(integer) => self.integer(integer),
            Spec::Float(attributes) => self.float(attributes, typed.at),
            Spec::Text(attributes) => {
                let mut encoding = None;
                for a in attributes {
                    match &*a.name {
                        "encoding" => once(&mut encoding, encoding_is_text(a)?, "encoding", a.at)?,
                        _ => self.warnings.push(a.unknown("a string")),
                    }
                }
                Ok(Field { align: 8, kind: Kind::Text(TextUnit::Byte) })
            }
            Spec::Enum { name, container, labels } => {
                let Some(labels) = labels else {
                    return self.look_up(&format!("enum {}", name.unwrap_or("")), typed.at);
                };
                let field = self.enumeration(container.as_deref(), labels, typed.at)?;
                if let Some(name) = name {
                    self.declare_used("enum", name, &field, typed.at)?;
                }
                Ok(field)
            }
            Spec::Struct { name, body, align } => {
                let Some(body) = body else {
                    return self.look_up(&format!("struct {}", name.unwrap_or("")), typed.at);
                };
                let field = self.structure(body, *align)?;
                if let Some(name) = name {
                    self.declare_used("struct", name, &field, typed.at)?;
                }
                Ok(field)
            }
            Spec::Variant { tag, .. } => {
                let mut field = self.variant_type(typed)?;
                let tag =
                    tag.ok_or_else(|| MetadataError::at(typed.at, "the variant needs a selector: `variant <field>`"))?;
                if let Kind::Variant { by, .. } = &mut field.kind {
                    *by = self.location(&tag);
                }
                Ok(field)
            }
        }
    }

    fn integer(&mut self, integer: &Integer<'t>) -> Resolved<Field> {
        let size = integer.size.unwrap_or(8);
        let clock = match integer.clock {
            None => None,
            Some(written) => {
                let parts: Vec<&str> = names(written.text).collect();
                let ["clock", name @ .., "value"] = &*parts else {
                    let what = format!("`{}` is not a clock: expected `clock.NAME.value`", parts.join("."));
                    return Err(MetadataError::at(written.at, what));
                };
                let name = name.join(".");
                match self.clock_places.get(&name).copied() {
                    None => return Err(MetadataError::at(written.at, format!("no clock `{name}` is declared"))),
                    found => found,
                }
            }
        };
        let bits = Bits {
            size,
            byte_order: integer.byte_order.unwrap_or(self.byte_order),
            reversed: false,
            signed: integer.signed,
            show: Show::Number,
            character: integer.character && size == 8 && integer.align.unwrap_or(8) == 8,
            saves: Vec::new(),
            clock,
        };
        let align = integer.align.unwrap_or(if size.is_multiple_of(8) { 8 } else { 1 });
        Ok(Field { align, kind: Kind::Bits(bits) })
    }

    fn float(&mut self, attributes: &[Attribute<'t>], at: usize) -> Resolved<Field> {
        let (mut exponent, mut mantissa, mut align, mut order) = (None, None, None, None);
        for a in attributes {
            match &*a.name {
                "exp_dig" => once(&mut exponent, a.number()?, "exp_dig", a.at)?,
                "mant_dig" => once(&mut mantissa, a.number()?, "mant_dig", a.at)?,
                "align" => match &a.value {
                    Value::Number(n) => once(&mut align, alignment(*n, a.value_at)?, "align", a.at)?,
                    _ => return Err(a.refuse("a power of two")),
                },
                "byte_order" => once(&mut order, byte_order(a)?, "byte_order", a.at)?,
                _ => self.warnings.push(a.unknown("a floating_point")),
            }
        }
        let size = match (exponent, mantissa) {
            (Some(8), Some(24)) => 32,
            (Some(11), Some(53)) => 64,
            _ => {
                return Err(MetadataError::at(
                    at,
                    "a floating_point must have `exp_dig` 8 and `mant_dig` 24, or 11 and 53",
                ));
            }
        };
        let byte_order = order.flatten().unwrap_or(self.byte_order);
        Ok(Field { align: align.unwrap_or(8), kind: Kind::Real { size, byte_order, reversed: false } })
    }

    fn enumeration(&mut self, container: Option<&Typed<'t>>, labels: &[Label<'t>], at: usize) -> Resolved<Field> {
        let mut field = match container {
            Some(typed) => self.field(typed)?,
            None => self.look_up("int", at).map_err(|t| t.within("in an enum without container type", at))?,
        };
        let Kind::Bits(bits) = &mut field.kind else {
            return Err(MetadataError::at(at, "the container of an enumeration must be an integer"));
        };
        let mut named: Vec<Named> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut next = 0;
        for label in labels {
            let range = label.range.unwrap_or(ValueRange { first: next, last: next });
            let (least, most) = if bits.signed { (i64::MIN.into(), i64::MAX.into()) } else { (0, u64::MAX.into()) };
            if range.first < least || range.last > most {
                return Err(MetadataError::at(
                    label.at,
                    format!("the values of `{}` do not fit the container", label.name),
                ));
            }
            next = range.last + 1;
            let place = *places.entry(&label.name).or_insert(named.len());
            match named.get_mut(place) {
                Some(old) => old.ranges.push(range),
                None => named.push(Named { name: Box::from(&*label.name), ranges: vec![range] }),
            }
        }
        bits.show = Show::Labels(Arc::from(named));
        bits.character = false;
        Ok(field)
    }

    /// `counts` arrays around `base`, the last one innermost.
    fn dimensions(&mut self, base: Field, counts: &[WrittenCount<'t>]) -> Resolved<Field> {
        let mut field = base;
        for count in counts.iter().rev() {
            let count = match count {
                WrittenCount::Fixed(n) => Count::Fixed(*n),
                WrittenCount::Reference(reference) => match names(reference.text).next() {
                    Some("env") if names(reference.text).nth(1).is_some() => self.fixed_by(reference)?,
                    _ => Count::Recorded(self.location(reference)),
                },
            };
            field = Field {
                align: field.align,
                kind: Kind::Array { count, element: Box::new(field), meaning: ByteMeaning::Data },
            };
        }
        Ok(field)
    }

    /// `env.NAME`: a number of the environment.
    fn fixed_by(&mut self, reference: &Word<'_>) -> Resolved<Count> {
        self.lookups += 1;
        let asked = names(reference.text).skip(1).collect::<Vec<_>>().join(".");
        let found = self.environment_value(&asked);
        let number = found.and_then(|value| value.parse().ok()).map(Count::Fixed);
        number.ok_or_else(|| MetadataError::at(reference.at, format!("`env.{asked}` is not an unsigned integer")))
    }

    fn location(&self, reference: &Word<'_>) -> Source {
        let parts: Vec<&str> = names(reference.text).collect();
        let absolute = PREFIXES.iter().find_map(|(prefix, root)| match parts.strip_prefix(*prefix) {
            Some(path) if !path.is_empty() => Some((Some(*root), path)),
            _ => None,
        });
        let (scope, path) = absolute.unwrap_or((None, &parts));
        let path = path.iter().map(|name| Some(Box::from(*name))).collect();
        Source::At(Box::new(Location { scope, path, climbs: true, at: reference.at }))
    }

    fn structure(&mut self, body: &[Item<'t>], align: Option<WrittenAlignment>) -> Resolved<Field> {
        let members = self.members(body)?;
        let own = match align {
            Some(WrittenAlignment { at, bits }) => alignment(bits, at)?,
            None => 1,
        };
        let align = members.iter().fold(own, |most, member| most.max(member.field.align));
        Ok(Field { align, kind: Kind::Struct(members) })
    }

    fn members(&mut self, body: &[Item<'t>]) -> Resolved<Vec<Member>> {
        self.scopes.push(HashMap::new());
        let mut members = Members { list: Vec::with_capacity(body.len()), seen: HashSet::default() };
        for item in body {
            match item {
                Item::Declaration(typed, declarators) if !declarators.is_empty() => {
                    self.each_declared(typed, declarators, |_, name, field| members.add(name, field))?;
                }
                other => self.declare_types(other)?,
            }
        }
        self.scopes.pop();
        Ok(members.list)
    }

    /// `type a, *b, c[3];`: each name with its field.
    fn each_declared(
        &mut self,
        typed: &Typed<'t>,
        declarators: &[Declarator<'t>],
        mut take: impl FnMut(&mut Self, &Word<'t>, Field) -> Resolved<()>,
    ) -> Resolved<()> {
        // The type that a pointer points to may be unknown, unless it is declared here.
        let only_pointed = declarators.iter().all(|d| d.pointers.is_some()) && matches!(typed.spec, Spec::Named(_));
        let mut base = if only_pointed { None } else { Some(self.field(typed)?) };
        for (i, declarator) in declarators.iter().enumerate() {
            let last = i + 1 == declarators.len();
            let field = match &declarator.pointers {
                Some(stars) => Some(self.look_up(&format!("{}{stars}", typed.spec.name()), typed.at)?),
                None if last => base.take(),
                None => base.as_ref().map(|base| self.copy(base, typed.at)).transpose()?,
            };
            let Some(field) = field else { break };
            let field = self.dimensions(field, &declarator.counts)?;
            take(self, &declarator.name, field)?;
        }
        Ok(())
    }

    /// A variant whose selector is not known yet.
    fn variant_type(&mut self, typed: &Typed<'t>) -> Resolved<Field> {
        let Spec::Variant { name, body, .. } = &typed.spec else {
            return Err(MetadataError::at(typed.at, "a variant was expected"));
        };
        let Some(body) = body else {
            return self.look_up(&format!("variant {}", name.unwrap_or("")), typed.at);
        };
        let members = self.members(body)?;
        if members.is_empty() {
            return Err(MetadataError::at(typed.at, "a variant needs an option"));
        }
        let option = |Member { written, escaped, field }| Choice { written, escaped, ranges: Vec::new(), field };
        let options = members.into_iter().map(option).collect();
        let nowhere = Location { scope: None, path: Vec::new(), climbs: true, at: typed.at };
        let kind = Kind::Variant { by: Source::At(Box::new(nowhere)), signed: false, options };
        let field = Field { align: 1, kind };
        if let Some(name) = name {
            self.declare_used("variant", name, &field, typed.at)?;
        }
        Ok(field)
    }
}

/// The members of a structure; their names differ.
struct Members<'t> {
    list: Vec<Member>,
    /// The names of the members after the first [`Self::FEW`].
    seen: HashSet<&'t str>,
}

impl<'t> Members<'t> {
    /// The number of members up to which names are compared one by one.
    const FEW: usize = 16;

    fn add(&mut self, name: &Word<'t>, field: Field) -> Resolved<()> {
        let known = if self.list.len() < Self::FEW {
            self.list.iter().any(|member| *member.written == *name.text)
        } else {
            self.seen.contains(name.text) || self.list.iter().take(Self::FEW).any(|m| *m.written == *name.text)
        };
        if known {
            return Err(MetadataError::at(name.at, format!("a second member `{}`", name.text)));
        }
        if self.list.len() >= Self::FEW {
            self.seen.insert(name.text);
        }
        self.list.push(Member { written: name.text.into(), escaped: true, field });
        Ok(())
    }
}
