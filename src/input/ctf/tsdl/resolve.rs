//! Resolves the syntax tree to the schema: blocks to clocks, stream classes and event classes.
//!
//! Types become fields in `fields`; members get their meaning in `meaning` when all blocks have been read. The byte
//! order and the clocks are read first, because types before their blocks use them too.

use super::attributes::{Resolved, attributes, byte_order, normal_offset, once, parse_uuid};
use super::known::{Block, Blocks, Context, Declared};
use super::meaning::assign_meaning;
use super::parse::is_keyword;
use super::syntax::{Attribute, Item, Typed, Value};
use crate::base::cursor::ByteOrder;
use crate::input::ctf::error::{MetadataError, MetadataWarning};
use crate::input::ctf::extent::{Extent, check_depth, size};
use crate::input::ctf::schema::{Clock, EventClass, Field, Kind, Schema, StreamClass};
use foldhash::{HashMap, HashMapExt, HashSet};
use std::borrow::Cow;
use std::sync::Arc;

pub(super) struct Resolver<'t> {
    pub(super) scopes: Vec<HashMap<Cow<'t, str>, Declared>>,
    pub(super) byte_order: ByteOrder,
    pub(super) clocks: Vec<Clock>,
    /// Positions of clocks by name.
    pub(super) clock_places: HashMap<String, usize>,
    pub(super) environment: Vec<(String, String)>,
    /// Positions in the environment by name.
    environment_places: HashMap<String, usize>,
    /// Ids of the stream classes.
    stream_ids: HashSet<u64>,
    pub(super) extent: Extent,
    /// Look-ups of numbers of the environment.
    pub(super) lookups: usize,
    pub(super) warnings: Vec<MetadataWarning>,
}

/// An event class that waits for its stream class.
struct PendingEvent<'t> {
    at: usize,
    stream: Option<u64>,
    class: Arc<EventClass>,
    /// The text of the block, where other texts may reuse it.
    text: Option<&'t str>,
}

/// The schema of the syntax tree of a text of `text` bytes.
pub(super) fn resolve<'t>(
    items: &[Item<'t>],
    warnings: Vec<MetadataWarning>,
    text: usize,
) -> Resolved<(Schema, Blocks<'t>)> {
    let mut resolver = Resolver {
        scopes: vec![HashMap::new()],
        byte_order: native_order(items)?,
        clocks: Vec::new(),
        clock_places: HashMap::new(),
        environment: Vec::new(),
        environment_places: HashMap::new(),
        stream_ids: HashSet::default(),
        extent: Extent::new(text),
        lookups: 0,
        warnings,
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
        warnings: Vec::new(),
        after: None,
    };
    for item in items {
        if let Item::Block { kind: kind @ ("clock" | "env"), at, body, .. } = item {
            let read = if *kind == "clock" { resolver.clock(body, *at) } else { resolver.environment(body) };
            read.map_err(|t| t.within(format!("in the {kind} block"), *at))?;
        }
    }
    let mut events = Vec::new();
    let (mut events_begun, mut types_first) = (false, true);
    for item in items {
        match item {
            Item::Known { at, event } => {
                events_begun = true;
                let class = event.class.clone();
                events.push(PendingEvent { at: *at, stream: event.stream, class, text: None });
            }
            Item::Block { kind, at, text, body } => {
                events_begun |= *kind == "event";
                resolver.scopes.push(HashMap::new());
                let read = match *kind {
                    "trace" => resolver.trace(&mut schema, body, *at),
                    "stream" => resolver.stream(&mut schema, body, *at),
                    "event" => resolver.event(&mut events, body, *at, text),
                    _ => Ok(()),
                };
                read.map_err(|t| t.within(block_title(kind, body), *at))?;
                resolver.scopes.pop();
            }
            Item::Attribute(a) => return Err(MetadataError::at(a.at, "an attribute may not be here")),
            Item::Assigned { at, .. } => return Err(MetadataError::at(*at, "a type assignment may not be here")),
            other => {
                types_first &= !events_begun;
                resolver.declare_types(other)?;
            }
        }
    }
    let context = Context {
        byte_order: resolver.byte_order,
        clocks: resolver.clocks.iter().map(|clock| clock.name.clone()).collect(),
        packet_header: schema.packet_header.clone(),
        streams: schema.streams.clone(),
        types: resolver.scopes.pop().unwrap_or_default(),
        types_first,
    };
    schema.clocks = resolver.clocks;
    schema.environment = resolver.environment;
    schema.warnings = resolver.warnings;
    let blocks = place_events(&mut schema, events)?;
    assign_meaning(&mut schema)?;
    Ok((schema, Blocks { context, blocks }))
}

/// "in event `sched_switch`": names help more than line numbers.
fn block_title(kind: &str, body: &[Item<'_>]) -> String {
    let name = body.iter().find_map(|item| match item {
        Item::Attribute(Attribute { name, value: Value::Text(text), .. }) if name == "name" => Some(text),
        _ => None,
    });
    name.map_or_else(|| format!("in the {kind} block"), |name| format!("in {kind} `{name}`"))
}

/// The byte order of the trace block: types before the block use it too.
fn native_order(items: &[Item<'_>]) -> Resolved<ByteOrder> {
    let mut order = None;
    let mut traces = 0;
    for item in items {
        let Item::Block { kind: "trace", at, body, .. } = item else { continue };
        traces += 1;
        if traces > 1 {
            return Err(MetadataError::at(*at, "a second trace block"));
        }
        for item in body {
            if let Item::Attribute(a) = item
                && a.name == "byte_order"
            {
                order = byte_order(a)?;
                if order.is_none() {
                    return Err(MetadataError::at(a.value_at, "the byte order of a trace must be `le` or `be`"));
                }
            }
        }
        if order.is_none() {
            return Err(MetadataError::at(*at, "the trace block gives no `byte_order`"));
        }
    }
    order.ok_or_else(|| MetadataError::at(0, "there is no trace block"))
}

impl<'t> Resolver<'t> {
    fn clock(&mut self, body: &[Item<'t>], at: usize) -> Resolved<()> {
        let (mut name, mut uuid, mut frequency, mut seconds, mut cycles) = (None, None, None, None, None);
        for attribute in attributes(body) {
            let a = attribute?;
            match &*a.name {
                "name" => match &a.value {
                    Value::Text(_) => once(&mut name, a.text()?.to_owned(), "name", a.at)?,
                    Value::Word(word) => once(&mut name, word.to_string(), "name", a.at)?,
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
                    Value::Word(w) if ["true", "TRUE", "false", "FALSE"].contains(&&**w) => {}
                    _ => return Err(a.refuse("`true` or `false`")),
                },
                _ => self.warnings.push(a.unknown("a clock")),
            }
        }
        let name = name.ok_or_else(|| MetadataError::at(at, "a clock needs a `name`"))?;
        let frequency = frequency.unwrap_or(1_000_000_000);
        let offset = normal_offset(seconds.unwrap_or(0), cycles.unwrap_or(0), frequency)
            .ok_or_else(|| MetadataError::at(at, "the offset of the clock does not fit 64 bits"))?;
        let clock = Clock { name, uuid, frequency, offset_seconds: offset.seconds, offset_cycles: offset.cycles };
        match self.clock_places.get(&clock.name).and_then(|place| self.clocks.get(*place)) {
            // babeltrace 2.0 writes the clock of each stream class anew.
            Some(same) if *same == clock => {
                let what = format!("the clock `{}` is declared again, with the same attributes", clock.name);
                self.warnings.push(MetadataWarning { at, what });
            }
            Some(_) => {
                return Err(MetadataError::at(at, format!("a second clock `{}` with other attributes", clock.name)));
            }
            None => {
                self.clock_places.insert(clock.name.clone(), self.clocks.len());
                self.clocks.push(clock);
            }
        }
        Ok(())
    }

    fn environment(&mut self, body: &[Item<'t>]) -> Resolved<()> {
        for attribute in attributes(body) {
            let a = attribute?;
            let value = match &a.value {
                Value::Number(n) => n.to_string(),
                Value::Text(text) => text.to_string(),
                Value::Word(_) => {
                    self.warnings.push(MetadataWarning {
                        at: a.at,
                        what: format!("`{}` is neither integer nor string", a.name),
                    });
                    continue;
                }
            };
            if is_keyword(&a.name) {
                return Err(MetadataError::at(a.at, format!("`{}` is a keyword and names nothing", a.name)));
            }
            match self.environment_places.get(&*a.name).and_then(|place| self.environment.get_mut(*place)) {
                Some((_, old)) => *old = value,
                None => {
                    self.environment_places.insert(a.name.to_string(), self.environment.len());
                    self.environment.push((a.name.to_string(), value));
                }
            }
        }
        Ok(())
    }

    /// A value of the environment, as text.
    pub(super) fn environment_value(&self, name: &str) -> Option<&str> {
        let place = self.environment_places.get(name)?;
        self.environment.get(*place).map(|(_, value)| value.as_str())
    }

    fn trace(&mut self, schema: &mut Schema, body: &[Item<'t>], at: usize) -> Resolved<()> {
        let (mut major, mut minor, mut header) = (None, None, None);
        for item in body {
            match item {
                Item::Attribute(a) => match &*a.name {
                    "major" => once(&mut major, a.number()?, "major", a.at)?,
                    "minor" => once(&mut minor, a.number()?, "minor", a.at)?,
                    "uuid" => {
                        let (text, bytes) = parse_uuid(a)?;
                        once(&mut schema.uuid, text, "uuid", a.at)?;
                        schema.uuid_bytes = Some(bytes);
                    }
                    "byte_order" => {}
                    _ => self.warnings.push(a.unknown("a trace")),
                },
                Item::Assigned { name, at, typed } if name == "packet.header" => {
                    once(&mut header, self.root(typed, name)?, name, *at)?;
                }
                Item::Assigned { name, at, .. } => self.warnings.push(unknown_type(name, *at, "a trace")),
                other => self.declare_types(other)?,
            }
        }
        match (major, minor) {
            (Some(1), Some(8)) => {}
            (Some(major), Some(minor)) => {
                return Err(MetadataError::at(at, format!("the trace is CTF {major}.{minor}; 1.8 and 2.0 are known")));
            }
            _ => return Err(MetadataError::at(at, "the trace block must give `major` and `minor`")),
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
                Item::Attribute(a) => self.warnings.push(a.unknown("a stream")),
                Item::Assigned { name, at, typed } => {
                    let place = match &**name {
                        "packet.context" => &mut packet_context,
                        "event.header" => &mut event_header,
                        "event.context" => &mut common_context,
                        _ => {
                            self.warnings.push(unknown_type(name, *at, "a stream"));
                            continue;
                        }
                    };
                    once(place, self.root(typed, name)?, name, *at)?;
                }
                other => self.declare_types(other)?,
            }
        }
        if id.is_some() && schema.packet_header.is_none() {
            return Err(MetadataError::at(
                at,
                "the stream class has an `id`, but packets have no header that could hold it",
            ));
        }
        let id = id.unwrap_or(0);
        if !self.stream_ids.insert(id) {
            return Err(MetadataError::at(at, format!("a second stream class with id {id}")));
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

    fn event(
        &mut self,
        events: &mut Vec<PendingEvent<'t>>,
        body: &[Item<'t>],
        at: usize,
        text: &'t str,
    ) -> Resolved<()> {
        let lookups = self.lookups;
        let (mut id, mut stream, mut title) = (None, None, None);
        let (mut specific_context, mut payload) = (None, None);
        for item in body {
            match item {
                Item::Attribute(a) => match &*a.name {
                    "name" => match &a.value {
                        Value::Text(_) => once(&mut title, Box::from(a.text()?), "name", a.at)?,
                        Value::Word(word) => once(&mut title, Box::from(&**word), "name", a.at)?,
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
                    _ => self.warnings.push(a.unknown("an event")),
                },
                Item::Assigned { name, at, typed } => {
                    let place = match &**name {
                        "context" => &mut specific_context,
                        "fields" => &mut payload,
                        _ => {
                            self.warnings.push(unknown_type(name, *at, "an event"));
                            continue;
                        }
                    };
                    once(place, self.root(typed, name)?, name, *at)?;
                }
                other => self.declare_types(other)?,
            }
        }
        let title = Some(title.ok_or_else(|| MetadataError::at(at, "an event needs a `name`"))?);
        let class = EventClass { id: id.unwrap_or(0), name: title, specific_context, payload, alone: true };
        let irregular = self.warnings.iter().any(|warning| (at..at + text.len()).contains(&warning.at));
        let text = (!irregular && self.lookups == lookups).then_some(text);
        events.push(PendingEvent { at, stream, class: Arc::new(class), text });
        Ok(())
    }

    /// A structure that a block assigns.
    fn root(&mut self, typed: &Typed<'t>, name: &str) -> Resolved<Field> {
        let field = self.field(typed).map_err(|t| t.within(format!("in {name}"), typed.at))?;
        check_depth(size(&field).depth, typed.at)?;
        match field.kind {
            Kind::Struct(_) => Ok(field),
            _ => Err(MetadataError::at(typed.at, format!("{name} must be a structure"))),
        }
    }
}

fn unknown_type(name: &str, at: usize, of: &str) -> MetadataWarning {
    MetadataWarning { at, what: format!("{of} has no type `{name}`") }
}

/// Moves event classes into their stream classes; returns the blocks that other texts may reuse.
fn place_events<'t>(schema: &mut Schema, events: Vec<PendingEvent<'t>>) -> Resolved<Vec<Block<'t>>> {
    let mut blocks = Vec::new();
    if schema.streams.is_empty() && !events.is_empty() {
        let (packet_context, event_header, common_context) = (None, None, None);
        let events = Vec::new();
        schema.streams.push(StreamClass { id: 0, packet_context, event_header, common_context, clock: None, events });
    }
    let mut ids: Vec<HashSet<u64>> = schema.streams.iter().map(|_| Default::default()).collect();
    let places: HashMap<u64, usize> = schema.streams.iter().enumerate().map(|(i, s)| (s.id, i)).collect();
    for event in events {
        let place = match event.stream {
            Some(id) => places.get(&id).copied().ok_or_else(|| format!("there is no stream class with id {id}")),
            None if schema.streams.len() == 1 => Ok(0),
            None => Err("several stream classes: `stream_id` is needed".to_owned()),
        };
        let title = || format!("in event `{}`", event.class.name.as_deref().unwrap_or(""));
        let place = place.map_err(|what| MetadataError::at(event.at, what).within(title(), event.at))?;
        if let (Some(seen), Some(stream)) = (ids.get_mut(place), schema.streams.get_mut(place)) {
            if !seen.insert(event.class.id) {
                let what = format!("a second event class with id {} in stream class {}", event.class.id, stream.id);
                return Err(MetadataError::at(event.at, what).within(title(), event.at));
            }
            if let Some(text) = event.text {
                let (stream_class, event_class) = (place, stream.events.len());
                blocks.push(Block { text, stream: event.stream, stream_class, event_class });
            }
            stream.events.push(event.class);
        }
    }
    Ok(blocks)
}
