//! The syntax tree to the schema: names of types by declaration scope, attributes to meaning, blocks to classes.
//!
//! Scopes are a stack of tables; a name means the innermost declaration before its use (7.3.1). A named type is cloned
//! where it is used, because the lengths and selectors inside it are bound per use. The size of all the clones together
//! is bounded, so that a few lines of nested type definitions cannot ask for more memory than the machine has.

use super::parse::{alignment, byte_order, encoding_is_text};
use super::syntax::{Attribute, Count as WrittenCount, Declarator, Integer, Item, Label, Spec, Typed, Value, Word};
use super::{Oddity, Trouble};
use crate::input::ctf::schema::{
    Bits, Choice, Clock, Count, EventClass, Field, Kind, Label as Named, Location, Member, Role, Root, Schema, Show,
    Source, StreamClass, Unit,
};
use foldhash::{HashMap, HashMapExt};
use std::borrow::Cow;
use std::sync::Arc;

/// Fields in one metadata, clones of named types included.
const MOST_FIELDS: usize = 4_000_000;

type Resolved<T> = Result<T, Trouble>;

/// The prefixes of absolute references (7.3.2), longest first where one begins another.
const PREFIXES: [(&str, Root); 6] = [
    ("trace.packet.header.", Root::PacketHeader),
    ("stream.packet.context.", Root::PacketContext),
    ("stream.event.header.", Root::EventHeader),
    ("stream.event.context.", Root::CommonContext),
    ("event.context.", Root::SpecificContext),
    ("event.fields.", Root::Payload),
];

struct Resolver<'t> {
    scopes: Vec<HashMap<Cow<'t, str>, Field>>,
    big_endian: bool,
    clocks: Vec<Clock>,
    environment: Vec<(String, String)>,
    fields: usize,
    oddities: Vec<Oddity>,
}

/// An event class that waits for its stream class.
struct PendingEvent {
    at: usize,
    stream: Option<u64>,
    class: EventClass,
}

/// The schema of a syntax tree.
pub(super) fn resolve(items: &[Item<'_>], oddities: Vec<Oddity>) -> Resolved<Schema> {
    let mut resolver = Resolver {
        scopes: vec![HashMap::new()],
        big_endian: native_order(items)?,
        clocks: Vec::new(),
        environment: Vec::new(),
        fields: 0,
        oddities,
    };
    let mut schema = Schema {
        version: 1,
        uuid: None,
        uuid_bytes: None,
        environment: Vec::new(),
        clocks: Vec::new(),
        packet_header: None,
        streams: Vec::new(),
        slots: 0,
        oddities: Vec::new(),
    };
    for item in items {
        if let Item::Block { kind: kind @ ("clock" | "env"), at, body } = item {
            let read = if *kind == "clock" { resolver.clock(body, *at) } else { resolver.environment(body) };
            read.map_err(|t| t.within(format!("in the {kind} block"), *at))?;
        }
    }
    let mut events = Vec::new();
    for item in items {
        match item {
            Item::Block { kind, at, body } => {
                resolver.scopes.push(HashMap::new());
                let read = match *kind {
                    "trace" => resolver.trace(&mut schema, body, *at),
                    "stream" => resolver.stream(&mut schema, body, *at),
                    "event" => resolver.event(&mut events, body, *at),
                    _ => Ok(()),
                };
                read.map_err(|t| t.within(block_title(kind, body), *at))?;
                resolver.scopes.pop();
            }
            Item::Attribute(a) => return Err(Trouble::at(a.at, "an attribute has no place here")),
            Item::Assigned { at, .. } => return Err(Trouble::at(*at, "a type assignment has no place here")),
            other => {
                resolver.declare_types(other)?;
            }
        }
    }
    schema.clocks = resolver.clocks;
    schema.environment = resolver.environment;
    schema.oddities = resolver.oddities;
    place_events(&mut schema, events)?;
    assign_meaning(&mut schema)?;
    Ok(schema)
}

/// "in event `sched_switch`": names tell more than line numbers.
fn block_title(kind: &str, body: &[Item<'_>]) -> String {
    let name = body.iter().find_map(|item| match item {
        Item::Attribute(Attribute { name, value: Value::Text(text), .. }) if name == "name" => Some(text),
        _ => None,
    });
    name.map_or_else(|| format!("in the {kind} block"), |name| format!("in {kind} `{name}`"))
}

/// The byte order of the trace block: types before the block use it too.
fn native_order(items: &[Item<'_>]) -> Resolved<bool> {
    let mut order = None;
    let mut traces = 0;
    for item in items {
        let Item::Block { kind: "trace", at, body } = item else { continue };
        traces += 1;
        if traces > 1 {
            return Err(Trouble::at(*at, "a second trace block"));
        }
        for item in body {
            if let Item::Attribute(a) = item
                && a.name == "byte_order"
            {
                order = byte_order(a)?;
                if order.is_none() {
                    return Err(Trouble::at(a.value_at, "the byte order of a trace is `le` or `be`"));
                }
            }
        }
        if order.is_none() {
            return Err(Trouble::at(*at, "the trace block gives no `byte_order`"));
        }
    }
    order.ok_or_else(|| Trouble::at(0, "there is no trace block"))
}

impl Attribute<'_> {
    fn number(&self) -> Resolved<u64> {
        match &self.value {
            Value::Number(n) => u64::try_from(*n).map_err(|_| self.refuse("an unsigned integer of 64 bits")),
            _ => Err(self.refuse("an unsigned integer")),
        }
    }

    fn text(&self) -> Resolved<&str> {
        match &self.value {
            Value::Text(text) => Ok(text),
            _ => Err(self.refuse("a string")),
        }
    }

    fn refuse(&self, expected: &str) -> Trouble {
        Trouble::at(self.value_at, format!("`{}` is {expected}", self.name))
    }

    fn unknown(&self, of: &str) -> Oddity {
        Oddity { at: self.at, what: format!("{of} has no attribute `{}`", self.name) }
    }
}

/// Puts a value where there was none.
fn once<T>(place: &mut Option<T>, value: T, name: &str, at: usize) -> Resolved<()> {
    if place.replace(value).is_some() {
        return Err(Trouble::at(at, format!("`{name}` is given twice")));
    }
    Ok(())
}

/// The attributes of a block that may say nothing else.
fn attributes<'a, 't>(body: &'a [Item<'t>]) -> impl Iterator<Item = Resolved<&'a Attribute<'t>>> {
    body.iter().map(|item| match item {
        Item::Attribute(attribute) => Ok(attribute),
        Item::Assigned { at, .. } | Item::Block { at, .. } => {
            Err(Trouble::at(*at, "only attributes have a place here"))
        }
        Item::Declaration(typed, _) | Item::Typedef(typed, _) | Item::Typealias(typed, ..) => {
            Err(Trouble::at(typed.at, "only attributes have a place here"))
        }
    })
}

impl<'t> Resolver<'t> {
    fn clock(&mut self, body: &[Item<'t>], at: usize) -> Resolved<()> {
        let (mut name, mut uuid, mut frequency, mut seconds, mut cycles) = (None, None, None, None, None);
        for attribute in attributes(body) {
            let a = attribute?;
            match a.name.as_str() {
                "name" => match &a.value {
                    Value::Text(text) => once(&mut name, text.to_string(), "name", a.at)?,
                    Value::Word(word) => once(&mut name, word.clone(), "name", a.at)?,
                    Value::Number(_) => return Err(a.refuse("a name")),
                },
                "uuid" => once(&mut uuid, parse_uuid(a)?.0, "uuid", a.at)?,
                "freq" => match a.number()? {
                    0 => return Err(a.refuse("a frequency above 0")),
                    hertz => once(&mut frequency, hertz, "freq", a.at)?,
                },
                "offset_s" => match &a.value {
                    Value::Number(n) => {
                        let n = i64::try_from(*n).map_err(|_| a.refuse("an integer of 64 bits"))?;
                        once(&mut seconds, n, "offset_s", a.at)?;
                    }
                    _ => return Err(a.refuse("an integer")),
                },
                "offset" => match &a.value {
                    Value::Number(n) => once(&mut cycles, *n, "offset", a.at)?,
                    _ => return Err(a.refuse("an integer")),
                },
                "precision" => {
                    a.number()?;
                }
                "description" => {
                    a.text()?;
                }
                "absolute" => match &a.value {
                    Value::Number(0 | 1) => {}
                    Value::Word(w) if ["true", "TRUE", "false", "FALSE"].contains(&w.as_str()) => {}
                    _ => return Err(a.refuse("`true` or `false`")),
                },
                _ => self.oddities.push(a.unknown("a clock")),
            }
        }
        let name = name.ok_or_else(|| Trouble::at(at, "a clock needs a `name`"))?;
        if self.clocks.iter().any(|c| c.name == name) {
            return Err(Trouble::at(at, format!("a second clock `{name}`")));
        }
        let frequency = frequency.unwrap_or(1_000_000_000);
        let (offset_seconds, offset_cycles) = normal_offset(seconds.unwrap_or(0), cycles.unwrap_or(0), frequency)
            .ok_or_else(|| Trouble::at(at, "the offset of the clock does not fit 64 bits"))?;
        self.clocks.push(Clock { name, uuid, frequency, offset_seconds, offset_cycles });
        Ok(())
    }

    fn environment(&mut self, body: &[Item<'t>]) -> Resolved<()> {
        for attribute in attributes(body) {
            let a = attribute?;
            let value = match &a.value {
                Value::Number(n) => n.to_string(),
                Value::Text(text) => text.to_string(),
                Value::Word(_) => return Err(a.refuse("an integer or a string")),
            };
            match self.environment.iter_mut().find(|(name, _)| *name == a.name) {
                Some((_, old)) => *old = value,
                None => self.environment.push((a.name.clone(), value)),
            }
        }
        Ok(())
    }

    fn trace(&mut self, schema: &mut Schema, body: &[Item<'t>], at: usize) -> Resolved<()> {
        let (mut major, mut minor, mut header) = (None, None, None);
        for item in body {
            match item {
                Item::Attribute(a) => match a.name.as_str() {
                    "major" => once(&mut major, a.number()?, "major", a.at)?,
                    "minor" => once(&mut minor, a.number()?, "minor", a.at)?,
                    "uuid" => {
                        let (text, bytes) = parse_uuid(a)?;
                        once(&mut schema.uuid, text, "uuid", a.at)?;
                        schema.uuid_bytes = Some(bytes);
                    }
                    "byte_order" => {}
                    _ => self.oddities.push(a.unknown("a trace")),
                },
                Item::Assigned { name, at, typed } if name == "packet.header" => {
                    once(&mut header, self.root(typed, name)?, name, *at)?;
                }
                Item::Assigned { name, at, .. } => self.oddities.push(unknown_type(name, *at, "a trace")),
                other => self.declare_types(other)?,
            }
        }
        match (major, minor) {
            (Some(1), Some(8)) => {}
            (Some(major), Some(minor)) => {
                return Err(Trouble::at(at, format!("the trace is CTF {major}.{minor}; 1.8 and 2.0 are known")));
            }
            _ => return Err(Trouble::at(at, "the trace block must give `major` and `minor`")),
        }
        schema.packet_header = header;
        Ok(())
    }

    fn stream(&mut self, schema: &mut Schema, body: &[Item<'t>], at: usize) -> Resolved<()> {
        let mut id = None;
        let (mut packet_context, mut event_header, mut common_context) = (None, None, None);
        for item in body {
            match item {
                Item::Attribute(a) if a.name == "id" => once(&mut id, a.number()?, "id", a.at)?,
                Item::Attribute(a) => self.oddities.push(a.unknown("a stream")),
                Item::Assigned { name, at, typed } => {
                    let place = match name.as_str() {
                        "packet.context" => &mut packet_context,
                        "event.header" => &mut event_header,
                        "event.context" => &mut common_context,
                        _ => {
                            self.oddities.push(unknown_type(name, *at, "a stream"));
                            continue;
                        }
                    };
                    once(place, self.root(typed, name)?, name, *at)?;
                }
                other => self.declare_types(other)?,
            }
        }
        if id.is_some() && schema.packet_header.is_none() {
            return Err(Trouble::at(at, "the stream class has an `id`, but packets have no header that could hold it"));
        }
        let id = id.unwrap_or(0);
        if schema.streams.iter().any(|s| s.id == id) {
            return Err(Trouble::at(at, format!("a second stream class with id {id}")));
        }
        let clock = None;
        schema.streams.push(StreamClass {
            id,
            packet_context,
            event_header,
            common_context,
            clock,
            events: Vec::new(),
        });
        Ok(())
    }

    fn event(&mut self, events: &mut Vec<PendingEvent>, body: &[Item<'t>], at: usize) -> Resolved<()> {
        let (mut id, mut stream, mut title) = (None, None, None);
        let (mut specific_context, mut payload) = (None, None);
        for item in body {
            match item {
                Item::Attribute(a) => match a.name.as_str() {
                    "name" => match &a.value {
                        Value::Text(text) => once(&mut title, Box::from(&**text), "name", a.at)?,
                        Value::Word(word) => once(&mut title, Box::from(word.as_str()), "name", a.at)?,
                        Value::Number(_) => return Err(a.refuse("a name")),
                    },
                    "id" => once(&mut id, a.number()?, "id", a.at)?,
                    "stream_id" => once(&mut stream, a.number()?, "stream_id", a.at)?,
                    "loglevel" => {
                        a.number()?;
                    }
                    "model.emf.uri" => {
                        a.text()?;
                    }
                    _ => self.oddities.push(a.unknown("an event")),
                },
                Item::Assigned { name, at, typed } => {
                    let place = match name.as_str() {
                        "context" => &mut specific_context,
                        "fields" => &mut payload,
                        _ => {
                            self.oddities.push(unknown_type(name, *at, "an event"));
                            continue;
                        }
                    };
                    once(place, self.root(typed, name)?, name, *at)?;
                }
                other => self.declare_types(other)?,
            }
        }
        let title = Some(title.ok_or_else(|| Trouble::at(at, "an event needs a `name`"))?);
        let class = EventClass { id: id.unwrap_or(0), name: title, specific_context, payload };
        events.push(PendingEvent { at, stream, class });
        Ok(())
    }

    /// A structure that a block assigns.
    fn root(&mut self, typed: &Typed<'t>, name: &str) -> Resolved<Field> {
        let field = self.field(typed).map_err(|t| t.within(format!("in {name}"), typed.at))?;
        match field.kind {
            Kind::Struct(_) => Ok(field),
            _ => Err(Trouble::at(typed.at, format!("{name} must be a structure"))),
        }
    }

    fn declare(&mut self, name: Cow<'t, str>, field: Field, at: usize) -> Resolved<()> {
        let scope = self.scopes.last_mut();
        if scope.is_some_and(|scope| scope.insert(name.clone(), field).is_some()) {
            return Err(Trouble::at(at, format!("the type `{name}` is declared twice in one scope")));
        }
        Ok(())
    }

    /// What declares types and no members.
    fn declare_types(&mut self, item: &Item<'t>) -> Resolved<()> {
        match item {
            Item::Typedef(typed, declarators) => {
                for declarator in declarators {
                    let base = self.field(typed)?;
                    let field = self.dimensions(base, &declarator.counts)?;
                    self.declare(pointed(declarator), field, declarator.name.at)?;
                }
                Ok(())
            }
            Item::Typealias(typed, counts, name) => {
                let base = self.field(typed)?;
                let field = self.dimensions(base, counts)?;
                self.declare(name.clone(), field, typed.at)
            }
            Item::Declaration(typed, declarators) if declarators.is_empty() => self.tagged(typed),
            Item::Declaration(typed, _) => Err(Trouble::at(typed.at, "a field has no place here")),
            Item::Attribute(Attribute { at, .. }) | Item::Assigned { at, .. } | Item::Block { at, .. } => {
                Err(Trouble::at(*at, "only types and fields have a place here"))
            }
        }
    }

    /// `struct name { ... };` alone: declared for later.
    fn tagged(&mut self, typed: &Typed<'t>) -> Resolved<()> {
        if let Spec::Variant { name: Some(_), tag: None, body: Some(_) } = &typed.spec {
            return self.variant_type(typed).map(drop);
        }
        match &typed.spec {
            Spec::Struct { body: Some(_), .. } | Spec::Enum { labels: Some(_), .. } => self.field(typed).map(drop),
            _ => Err(Trouble::at(typed.at, "this declares nothing")),
        }
    }

    fn count_fields(&mut self, field: &Field, at: usize) -> Resolved<()> {
        self.fields = self.fields.saturating_add(size_of_tree(field));
        if self.fields > MOST_FIELDS {
            return Err(Trouble::at(at, format!("the types hold more than {MOST_FIELDS} fields")));
        }
        Ok(())
    }

    fn look_up(&mut self, name: &str, at: usize) -> Resolved<Field> {
        let found = self.scopes.iter().rev().find_map(|scope| scope.get(name)).cloned();
        let field = found.ok_or_else(|| Trouble::at(at, format!("no type `{name}` is declared before this")))?;
        self.count_fields(&field, at)?;
        Ok(field)
    }

    fn field(&mut self, typed: &Typed<'t>) -> Resolved<Field> {
        match &typed.spec {
            Spec::Named(name) => match self.look_up(name, typed.at)? {
                Field { kind: Kind::Variant { by: Source::At(location), .. }, .. } if location.path.is_empty() => {
                    Err(Trouble::at(typed.at, format!("the variant `{name}` needs a selector")))
                }
                field => Ok(field),
            },
            Spec::Integer(integer) => self.integer(integer),
            Spec::Float(attributes) => self.float(attributes, typed.at),
            Spec::Text(attributes) => {
                for a in attributes {
                    match a.name.as_str() {
                        "encoding" => encoding_is_text(a).map(drop)?,
                        _ => self.oddities.push(a.unknown("a string")),
                    }
                }
                Ok(Field { align: 8, kind: Kind::Text(Unit::Byte) })
            }
            Spec::Enum { name, container, labels } => {
                let Some(labels) = labels else {
                    return self.look_up(&format!("enum {}", name.unwrap_or("")), typed.at);
                };
                let field = self.enumeration(container.as_deref(), labels, typed.at)?;
                if let Some(name) = name {
                    self.declare(Cow::Owned(format!("enum {name}")), field.clone(), typed.at)?;
                }
                Ok(field)
            }
            Spec::Struct { name, body, align } => {
                let Some(body) = body else {
                    return self.look_up(&format!("struct {}", name.unwrap_or("")), typed.at);
                };
                let field = self.structure(body, *align)?;
                if let Some(name) = name {
                    self.declare(Cow::Owned(format!("struct {name}")), field.clone(), typed.at)?;
                }
                Ok(field)
            }
            Spec::Variant { tag, .. } => {
                let mut field = self.variant_type(typed)?;
                let tag =
                    tag.ok_or_else(|| Trouble::at(typed.at, "the variant needs a selector: `variant <field>`"))?;
                if let Kind::Variant { by, .. } = &mut field.kind {
                    *by = self.location(tag.text, tag.at)?;
                }
                Ok(field)
            }
        }
    }

    fn integer(&mut self, integer: &Integer<'t>) -> Resolved<Field> {
        let size = integer.size.unwrap_or(8);
        let clock = match integer.clock {
            None => None,
            Some(name) => match self.clocks.iter().position(|c| c.name == name.text) {
                None => return Err(Trouble::at(name.at, format!("no clock `{}` is declared", name.text))),
                found => found,
            },
        };
        let bits = Bits {
            size,
            big_endian: integer.big_endian.unwrap_or(self.big_endian),
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
        let (mut exponent, mut mantissa, mut align, mut big_endian) = (None, None, None, None);
        for a in attributes {
            match a.name.as_str() {
                "exp_dig" => once(&mut exponent, a.number()?, "exp_dig", a.at)?,
                "mant_dig" => once(&mut mantissa, a.number()?, "mant_dig", a.at)?,
                "align" => match &a.value {
                    Value::Number(n) => once(&mut align, alignment(*n, a.value_at)?, "align", a.at)?,
                    _ => return Err(a.refuse("a power of two")),
                },
                "byte_order" => once(&mut big_endian, byte_order(a)?, "byte_order", a.at)?,
                _ => self.oddities.push(a.unknown("a floating_point")),
            }
        }
        let size = match (exponent, mantissa) {
            (Some(8), Some(24)) => 32,
            (Some(11), Some(53)) => 64,
            _ => return Err(Trouble::at(at, "a floating_point has `exp_dig` 8 and `mant_dig` 24, or 11 and 53")),
        };
        let big_endian = big_endian.flatten().unwrap_or(self.big_endian);
        Ok(Field { align: align.unwrap_or(8), kind: Kind::Real { size, big_endian, reversed: false } })
    }

    fn enumeration(&mut self, container: Option<&Typed<'t>>, labels: &[Label<'t>], at: usize) -> Resolved<Field> {
        let mut field = match container {
            Some(typed) => self.field(typed)?,
            None => self.look_up("int", at).map_err(|t| t.within("in an enum without container type", at))?,
        };
        let Kind::Bits(bits) = &mut field.kind else {
            return Err(Trouble::at(at, "the container of an enumeration is an integer"));
        };
        let mut named: Vec<Named> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut next = 0;
        for label in labels {
            let range = label.range.unwrap_or((next, next));
            let limits = if bits.signed { (i64::MIN.into(), i64::MAX.into()) } else { (0, i128::from(u64::MAX)) };
            if range.0 < limits.0 || range.1 > limits.1 {
                return Err(Trouble::at(label.at, format!("the values of `{}` do not fit the container", label.name)));
            }
            next = range.1 + 1;
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
                WrittenCount::Held(reference) if reference.text.starts_with("env.") => self.fixed_by(reference)?,
                WrittenCount::Held(reference) => Count::Held(self.location(reference.text, reference.at)?),
            };
            field = Field { align: field.align, kind: Kind::Array { count, element: Box::new(field), uuid: false } };
        }
        Ok(field)
    }

    /// `env.NAME`: a number of the environment.
    fn fixed_by(&self, reference: &Word<'_>) -> Resolved<Count> {
        let found = self.environment.iter().find(|(name, _)| reference.text.strip_prefix("env.") == Some(name));
        let number = found.and_then(|(_, value)| value.parse().ok()).map(Count::Fixed);
        number.ok_or_else(|| Trouble::at(reference.at, format!("`{}` is no unsigned integer", reference.text)))
    }

    fn location(&self, reference: &str, at: usize) -> Resolved<Source> {
        let absolute = PREFIXES.iter().find_map(|(prefix, root)| Some((*root, reference.strip_prefix(prefix)?)));
        let (scope, path) = absolute.map_or((None, reference), |(root, path)| (Some(root), path));
        let path = path.split('.').map(|name| Some(Box::from(name))).collect();
        Ok(Source::At(Box::new(Location { scope, path, climbs: true, at })))
    }

    fn structure(&mut self, body: &[Item<'t>], align: Option<(usize, i128)>) -> Resolved<Field> {
        let members = self.members(body)?;
        let own = match align {
            Some((at, n)) => alignment(n, at)?,
            None => 1,
        };
        let align = members.iter().fold(own, |most, (_, _, f)| most.max(f.align));
        let member =
            |(written, _, field): (&str, usize, Field)| Member { written: written.into(), escaped: true, field };
        Ok(Field { align, kind: Kind::Struct(members.into_iter().map(member).collect()) })
    }

    fn members(&mut self, body: &[Item<'t>]) -> Resolved<Vec<(&'t str, usize, Field)>> {
        self.scopes.push(HashMap::new());
        let mut members: Vec<(&'t str, usize, Field)> = Vec::with_capacity(body.len());
        for item in body {
            match item {
                Item::Declaration(typed, declarators) if !declarators.is_empty() => {
                    let base = self.field(typed)?;
                    for declarator in declarators {
                        self.count_fields(&base, typed.at)?;
                        let mut field = base.clone();
                        if declarator.pointers > 0 {
                            field = self.look_up(&pointer_name(typed, declarator.pointers), typed.at)?;
                        }
                        let field = self.dimensions(field, &declarator.counts)?;
                        members.push((declarator.name.text, declarator.name.at, field));
                    }
                }
                other => self.declare_types(other)?,
            }
        }
        self.scopes.pop();
        no_twins(&members)?;
        Ok(members)
    }

    /// A variant whose selector is not known yet.
    fn variant_type(&mut self, typed: &Typed<'t>) -> Resolved<Field> {
        let Spec::Variant { name, body, .. } = &typed.spec else {
            return Err(Trouble::at(typed.at, "a variant was expected"));
        };
        let Some(body) = body else {
            return self.look_up(&format!("variant {}", name.unwrap_or("")), typed.at);
        };
        let members = self.members(body)?;
        if members.is_empty() {
            return Err(Trouble::at(typed.at, "a variant needs an option"));
        }
        let option = |(written, _, field): (&str, usize, Field)| Choice {
            written: written.into(),
            escaped: true,
            ranges: Vec::new(),
            field,
        };
        let options = members.into_iter().map(option).collect();
        let nowhere = Location { scope: None, path: Vec::new(), climbs: true, at: typed.at };
        let kind = Kind::Variant { by: Source::At(Box::new(nowhere)), signed: false, options };
        let field = Field { align: 1, kind };
        if let Some(name) = name {
            self.declare(Cow::Owned(format!("variant {name}")), field.clone(), typed.at)?;
        }
        Ok(field)
    }
}

fn no_twins(members: &[(&str, usize, Field)]) -> Resolved<()> {
    let mut seen = foldhash::HashSet::default();
    match members.iter().find(|(name, ..)| members.len() > 1 && !seen.insert(*name)) {
        Some((name, at, _)) => Err(Trouble::at(*at, format!("a second member `{name}`"))),
        None => Ok(()),
    }
}

fn pointed<'t>(declarator: &Declarator<'t>) -> Cow<'t, str> {
    match declarator.pointers {
        0 => Cow::Borrowed(declarator.name.text),
        n => Cow::Owned(format!("{}{}", declarator.name.text, " *".repeat(n))),
    }
}

fn pointer_name(typed: &Typed<'_>, pointers: usize) -> String {
    let base = if let Spec::Named(name) = &typed.spec { name } else { "" };
    format!("{base}{}", " *".repeat(pointers))
}

fn unknown_type(name: &str, at: usize, of: &str) -> Oddity {
    Oddity { at, what: format!("{of} has no type `{name}`") }
}

fn size_of_tree(field: &Field) -> usize {
    1 + match &field.kind {
        Kind::Struct(members) => members.iter().map(|m| size_of_tree(&m.field)).sum(),
        Kind::Variant { options, .. } => options.iter().map(|o| size_of_tree(&o.field)).sum(),
        Kind::Array { element, .. } => size_of_tree(element),
        Kind::Optional { field, .. } => size_of_tree(field),
        _ => 0,
    }
}

/// A uuid as text (lower case) and bytes.
fn parse_uuid(a: &Attribute<'_>) -> Resolved<(String, [u8; 16])> {
    let wrong = || a.refuse("a uuid (32 hexadecimal digits in groups of 8, 4, 4, 4 and 12)");
    let text = a.text()?;
    let groups: Vec<usize> = text.split('-').map(str::len).collect();
    let digits: Vec<u8> = text.bytes().filter(|b| *b != b'-').collect();
    if groups != [8, 4, 4, 4, 12] || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(wrong());
    }
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let pair = std::str::from_utf8(pair).map_err(|_| wrong())?;
        *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
    }
    Ok((text.to_ascii_lowercase(), bytes))
}

/// Whole seconds leave the offset in cycles, so that it is below one second and not negative.
fn normal_offset(seconds: i64, cycles: i128, frequency: u64) -> Option<(i64, u64)> {
    if (0..i128::from(frequency)).contains(&cycles) {
        return Some((seconds, cycles as u64));
    }
    let frequency = i128::from(frequency);
    let whole = i64::try_from(cycles.div_euclid(frequency)).ok()?;
    Some((seconds.checked_add(whole)?, u64::try_from(cycles.rem_euclid(frequency)).ok()?))
}

fn place_events(schema: &mut Schema, events: Vec<PendingEvent>) -> Resolved<()> {
    if schema.streams.is_empty() && !events.is_empty() {
        let (packet_context, event_header, common_context) = (None, None, None);
        let events = Vec::new();
        schema.streams.push(StreamClass { id: 0, packet_context, event_header, common_context, clock: None, events });
    }
    let mut ids: Vec<foldhash::HashSet<u64>> = schema.streams.iter().map(|_| Default::default()).collect();
    let places: HashMap<u64, usize> = schema.streams.iter().enumerate().map(|(i, s)| (s.id, i)).collect();
    for event in events {
        let place = match event.stream {
            Some(id) => places.get(&id).copied().ok_or_else(|| format!("there is no stream class with id {id}")),
            None if schema.streams.len() == 1 => Ok(0),
            None => Err("several stream classes: `stream_id` must say which".to_owned()),
        };
        let title = || format!("in event `{}`", event.class.name.as_deref().unwrap_or(""));
        let place = place.map_err(|what| Trouble::at(event.at, what).within(title(), event.at))?;
        if let (Some(seen), Some(stream)) = (ids.get_mut(place), schema.streams.get_mut(place)) {
            if !seen.insert(event.class.id) {
                let what = format!("a second event class with id {} in stream class {}", event.class.id, stream.id);
                return Err(Trouble::at(event.at, what).within(title(), event.at));
            }
            stream.events.push(event.class);
        }
    }
    Ok(())
}

/// Gives roles to members by name, clocks to time stamps without one, and each stream class its default clock.
fn assign_meaning(schema: &mut Schema) -> Resolved<()> {
    const HEADER: [(&str, Role); 3] =
        [("magic", Role::Magic), ("stream_id", Role::StreamClass), ("stream_instance_id", Role::StreamInstance)];
    const CONTEXT: [(&str, Role); 7] = [
        ("packet_size", Role::PacketBits),
        ("content_size", Role::ContentBits),
        ("timestamp_begin", Role::Begin),
        ("timestamp_end", Role::End),
        ("events_discarded", Role::Discarded),
        ("packet_seq_num", Role::Sequence),
        ("cpu_id", Role::Cpu),
    ];
    let several = schema.streams.len() > 1;
    if let Some(header) = &mut schema.packet_header {
        mark_members(header, &HEADER, "trace.packet.header")?;
        check_header(header)?;
        if several && !saves(header, Role::StreamClass) {
            return Err(Trouble::at(0, "several stream classes, but packet headers have no `stream_id`"));
        }
    } else if several {
        return Err(Trouble::at(0, "several stream classes, but packets have no header to tell them apart"));
    }
    for stream in &mut schema.streams {
        let mut clocks = Vec::new();
        if let Some(context) = &mut stream.packet_context {
            mark_members(context, &CONTEXT, "stream.packet.context")?;
            for name in ["timestamp_begin", "timestamp_end"] {
                map_to_only_clock(context, name, &mut schema.clocks)?;
            }
            clocks_of(context, &mut clocks);
        }
        if let Some(header) = &mut stream.event_header {
            mark_everywhere(header, "id", Role::EventClass);
            map_to_only_clock(header, "timestamp", &mut schema.clocks)?;
            clocks_of(header, &mut clocks);
        }
        clocks.sort_unstable();
        clocks.dedup();
        if clocks.len() > 1 {
            let what = format!("stream class {} has time stamps of {} clocks", stream.id, clocks.len());
            return Err(Trouble::at(0, what));
        }
        stream.clock = clocks.first().copied();
        let has_id = stream.event_header.as_ref().is_some_and(|h| saves(h, Role::EventClass));
        if stream.events.len() > 1 && !has_id {
            let what = format!("stream class {} has several event classes, but event headers have no `id`", stream.id);
            return Err(Trouble::at(0, what));
        }
    }
    Ok(())
}

fn mark_members(root: &mut Field, roles: &[(&str, Role)], place: &str) -> Resolved<()> {
    let Kind::Struct(members) = &mut root.kind else { return Ok(()) };
    for member in members {
        let Some((name, role)) = roles.iter().find(|(name, _)| *name == &*member.written) else { continue };
        match &mut member.field.kind {
            Kind::Bits(bits) if !bits.signed => bits.saves.push(role.slot()),
            _ => return Err(Trouble::at(0, format!("`{name}` in {place} must be an unsigned integer"))),
        }
    }
    Ok(())
}

fn check_header(header: &mut Field) -> Resolved<()> {
    let Kind::Struct(members) = &mut header.kind else { return Ok(()) };
    for (place, member) in members.iter_mut().enumerate() {
        match (&*member.written, &mut member.field.kind) {
            ("magic", Kind::Bits(Bits { size: 32, .. })) if place == 0 => {}
            ("magic", _) => {
                return Err(Trouble::at(0, "`magic` must be an integer of 32 bits and the first member of the header"));
            }
            ("uuid", Kind::Array { count: Count::Fixed(16), element, uuid }) => {
                if !matches!(element.kind, Kind::Bits(Bits { size: 8, .. })) || element.align != 8 {
                    return Err(Trouble::at(0, "`uuid` in trace.packet.header must be an array of 16 bytes"));
                }
                *uuid = true;
            }
            ("uuid", _) => {
                return Err(Trouble::at(0, "`uuid` in trace.packet.header must be an array of 16 bytes"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Calls `see` on each integer, with the name of the member that it is.
fn each_integer(field: &mut Field, name: &str, see: &mut impl FnMut(&str, &mut Bits)) {
    match &mut field.kind {
        Kind::Bits(bits) => see(name, bits),
        Kind::Struct(members) => {
            for member in members {
                each_integer(&mut member.field, &member.written, see);
            }
        }
        Kind::Variant { options, .. } => {
            for option in options {
                each_integer(&mut option.field, &option.written, see);
            }
        }
        _ => {}
    }
}

fn mark_everywhere(root: &mut Field, name: &str, role: Role) {
    each_integer(root, "", &mut |member, bits| {
        if member == name && !bits.signed {
            bits.saves.push(role.slot());
        }
    });
}

/// A time stamp without clock belongs to the only clock there is, or to one made for it.
fn map_to_only_clock(root: &mut Field, name: &str, clocks: &mut Vec<Clock>) -> Resolved<()> {
    let mut unmapped = false;
    each_integer(root, "", &mut |member, bits| unmapped |= member == name && bits.clock.is_none());
    if !unmapped {
        return Ok(());
    }
    if clocks.is_empty() {
        let name = "default".to_owned();
        clocks.push(Clock { name, uuid: None, frequency: 1_000_000_000, offset_seconds: 0, offset_cycles: 0 });
    }
    if clocks.len() > 1 {
        return Err(Trouble::at(0, format!("`{name}` names no clock, and there are {}", clocks.len())));
    }
    each_integer(root, "", &mut |member, bits| {
        if member == name && bits.clock.is_none() {
            bits.clock = Some(0);
        }
    });
    Ok(())
}

fn clocks_of(root: &mut Field, clocks: &mut Vec<usize>) {
    each_integer(root, "", &mut |_, bits| clocks.extend(bits.clock));
}

fn saves(root: &Field, role: Role) -> bool {
    match &root.kind {
        Kind::Bits(bits) => bits.saves.contains(&role.slot()),
        Kind::Struct(members) => members.iter().any(|m| saves(&m.field, role)),
        Kind::Variant { options, .. } => options.iter().any(|o| saves(&o.field, role)),
        _ => false,
    }
}
