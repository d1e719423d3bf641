//! Reads CTF 2 metadata, a sequence of JSON fragments, each after a byte 0x1E, into the schema (CTF 2.0, section 5).
//!
//! A fragment may only refer to earlier fragments, so one pass builds everything.

mod field;
mod value;

use super::error::MetadataError;
use super::schema::{Bits, Clock, EventClass, Field, Kind, Role, Root, Schema, StreamClass};
use field::{Aliases, Use};
use foldhash::{HashMap, HashSet};
use std::sync::Arc;
use value::{Json, Node, Object, parse};

type Read<T> = Result<T, MetadataError>;

/// The schema that a sequence of fragments describes; `locate` has not run yet.
pub(super) fn read(text: &str) -> Read<Schema> {
    let mut fragments = Vec::new();
    let mut at = 0;
    for piece in text.split('\x1e') {
        let end = at + piece.len();
        if !piece.trim_ascii().is_empty() {
            fragments.push(parse(text, at, end)?);
        }
        at = end + 1;
    }
    let mut builder = Builder::new(text.len());
    for (number, fragment) in fragments.iter().enumerate() {
        builder.fragment(number, fragment)?;
    }
    if fragments.is_empty() {
        return Err(MetadataError::at(0, "there is no fragment"));
    }
    if builder.schema.streams.is_empty() {
        return Err(MetadataError::at(0, "there is no data stream class"));
    }
    check_ids(&builder.schema)?;
    Ok(builder.schema)
}

/// Identifies an event record class.
#[derive(PartialEq, Eq, Hash)]
struct EventKey {
    stream: u64,
    id: u64,
}

struct Builder<'n, 't> {
    schema: Schema,
    aliases: Aliases<'n, 't>,
    has_trace: bool,
    /// Positions of clocks by id.
    clocks: HashMap<String, usize>,
    /// Positions of data stream classes by id.
    streams: HashMap<u64, usize>,
    /// The event record classes so far.
    events: HashSet<EventKey>,
}

impl<'n, 't> Builder<'n, 't> {
    /// A builder for a text of `text` bytes.
    fn new(text: usize) -> Self {
        let schema = Schema {
            version: 2,
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
        let (clocks, streams, events) = Default::default();
        Builder { schema, aliases: Aliases::new(text), has_trace: false, clocks, streams, events }
    }

    fn fragment(&mut self, number: usize, node: &'n Node<'t>) -> Read<()> {
        let object = node.object()?;
        let kind = object.need("type")?;
        let name = kind.text()?;
        if (number == 0) != (name == "preamble") {
            return Err(MetadataError::at(kind.at, "the first fragment must be the preamble, and no other may be one"));
        }
        let read = match name {
            "preamble" => self.preamble(object),
            "field-class-alias" => self.alias(object),
            "trace-class" => self.trace(object),
            "clock-class" => self.clock(object),
            "data-stream-class" => self.stream(object),
            "event-record-class" => self.event(object),
            _ => Err(MetadataError::at(kind.at, format!("no fragment has the type `{name}`"))),
        };
        let title = match object.get("name").map(|n| &n.json) {
            Some(Json::Text(title)) => format!("in the {name} `{title}`"),
            _ => format!("in the {name}"),
        };
        read.map_err(|t| t.within(title, node.at))
    }

    fn preamble(&mut self, object: Object<'n, 't>) -> Read<()> {
        object.only(&["type", "version", "uuid"])?;
        let version = object.need("version")?;
        if version.unsigned()? != 2 {
            return Err(MetadataError::at(version.at, "the version is not 2"));
        }
        if let Some(node) = object.get("uuid") {
            let bytes: Vec<u8> =
                node.array()?.iter().filter_map(|b| b.unsigned().ok().and_then(|b| u8::try_from(b).ok())).collect();
            let all = bytes.len() == node.array()?.len();
            let uuid = bytes.try_into().ok().filter(|_| all);
            self.schema.uuid_bytes =
                Some(uuid.ok_or_else(|| MetadataError::at(node.at, "a uuid must be an array of 16 bytes"))?);
        }
        Ok(())
    }

    fn alias(&mut self, object: Object<'n, 't>) -> Read<()> {
        object.only(&["type", "name", "field-class"])?;
        self.aliases.declare(object.need("name")?.text()?, object.need("field-class")?)
    }

    fn trace(&mut self, object: Object<'n, 't>) -> Read<()> {
        object.only(&["type", "namespace", "name", "uid", "environment", "packet-header-field-class"])?;
        if std::mem::replace(&mut self.has_trace, true) || !self.schema.streams.is_empty() {
            return Err(MetadataError::at(
                object.at,
                "only one trace class is allowed, before the data stream classes",
            ));
        }
        self.schema.uuid = identity(object)?;
        if let Some(environment) = object.get("environment") {
            for (name, node) in environment.object()?.members {
                let value = match &node.json {
                    Json::Integer(n) => n.to_string(),
                    _ => node.text()?.to_owned(),
                };
                self.schema.environment.push((name.to_string(), value));
            }
        }
        let usage = Use { root: Some(Root::PacketHeader), clock: None };
        self.schema.packet_header = self.root(object, "packet-header-field-class", usage)?;
        if let Some(header) = &self.schema.packet_header {
            check_magic(header, object.at)?;
        }
        Ok(())
    }

    fn root(&mut self, object: Object<'n, 't>, name: &str, usage: Use) -> Read<Option<Field>> {
        let Some(node) = object.get(name) else { return Ok(None) };
        self.aliases.root(node, usage).map(Some).map_err(|t| t.within(format!("in `{name}`"), node.at))
    }

    fn clock(&mut self, object: Object<'n, 't>) -> Read<()> {
        let known = ["type", "id", "namespace", "name", "uid", "description", "frequency", "origin", "precision"];
        object.only(&[&known[..], &["accuracy", "offset-from-origin"]].concat())?;
        let id = object.need("id")?;
        let name = id.text()?.to_owned();
        if self.clocks.insert(name.clone(), self.schema.clocks.len()).is_some() {
            return Err(MetadataError::at(id.at, format!("a second clock class `{name}`")));
        }
        let frequency = object.need("frequency")?;
        let hertz = frequency.unsigned()?;
        if hertz == 0 {
            return Err(MetadataError::at(frequency.at, "the frequency is 0"));
        }
        object.get("description").map(Node::text).transpose()?;
        for number in ["precision", "accuracy"] {
            object.get(number).map(Node::unsigned).transpose()?;
        }
        if let Some(origin) = object.get("origin") {
            match &origin.json {
                Json::Text(text) if text == "unix-epoch" => {}
                Json::Object(_) => {
                    origin.object()?.only(&["namespace", "name", "uid"])?;
                    origin.object()?.need("name")?.text()?;
                    origin.object()?.need("uid")?.text()?;
                }
                _ => {
                    return Err(MetadataError::at(
                        origin.at,
                        "an origin must be `unix-epoch` or an object that names one",
                    ));
                }
            }
        }
        let (mut offset_seconds, mut offset_cycles) = (0, 0);
        if let Some(offset) = object.get("offset-from-origin") {
            let offset = offset.object()?;
            offset.only(&["seconds", "cycles"])?;
            if let Some(node) = offset.get("seconds") {
                let out_of_range = |_| MetadataError::at(node.at, "the seconds do not fit 64 bits");
                offset_seconds = i64::try_from(node.integer()?).map_err(out_of_range)?;
            }
            if let Some(node) = offset.get("cycles") {
                offset_cycles = node.unsigned()?;
                if offset_cycles >= hertz {
                    return Err(MetadataError::at(node.at, "the cycles of the offset must make less than a second"));
                }
            }
        }
        let uuid = identity(object)?;
        self.schema.clocks.push(Clock { name, uuid, frequency: hertz, offset_seconds, offset_cycles });
        Ok(())
    }

    fn stream(&mut self, object: Object<'n, 't>) -> Read<()> {
        let known = ["type", "id", "namespace", "name", "uid", "default-clock-class-id"];
        let roots = [
            "packet-context-field-class",
            "event-record-header-field-class",
            "event-record-common-context-field-class",
        ];
        object.only(&[&known[..], &roots[..]].concat())?;
        identity(object)?;
        let id = object.get("id").map(Node::unsigned).transpose()?.unwrap_or(0);
        if self.streams.insert(id, self.schema.streams.len()).is_some() {
            return Err(MetadataError::at(object.at, format!("a second data stream class with id {id}")));
        }
        let clock = match object.get("default-clock-class-id") {
            None => None,
            Some(node) => {
                let name = node.text()?;
                let found = self.clocks.get(name).copied();
                Some(found.ok_or_else(|| MetadataError::at(node.at, format!("no clock class `{name}` before this")))?)
            }
        };
        let [context, header, common] = roots;
        let usage = |root| Use { root: Some(root), clock };
        let mut packet_context = self.root(object, context, usage(Root::PacketContext))?;
        let event_header = self.root(object, header, usage(Root::EventHeader))?;
        let common_context = self.root(object, common, usage(Root::CommonContext))?;
        if let Some(Field { kind: Kind::Struct(members), .. }) = &mut packet_context {
            for member in members.iter_mut().filter(|m| &*m.written == "cpu_id") {
                if let Kind::Bits(Bits { signed: false, saves, .. }) | Kind::Variable { signed: false, saves, .. } =
                    &mut member.field.kind
                {
                    saves.push(Role::Cpu.slot());
                }
            }
        }
        let events = Vec::new();
        self.schema.streams.push(StreamClass { id, packet_context, event_header, common_context, clock, events });
        Ok(())
    }

    fn event(&mut self, object: Object<'n, 't>) -> Read<()> {
        let known = ["type", "id", "data-stream-class-id", "namespace", "name", "uid"];
        object.only(&[&known[..], &["specific-context-field-class", "payload-field-class"]].concat())?;
        identity(object)?;
        let id = object.get("id").map(Node::unsigned).transpose()?.unwrap_or(0);
        let stream_id = object.get("data-stream-class-id").map(Node::unsigned).transpose()?.unwrap_or(0);
        let name = object.get("name").map(Node::text).transpose()?.map(Box::from);
        let usage = |root| Use { root: Some(root), clock: None };
        let specific_context = self.root(object, "specific-context-field-class", usage(Root::SpecificContext))?;
        let payload = self.root(object, "payload-field-class", usage(Root::Payload))?;
        let stream = self.streams.get(&stream_id).and_then(|place| self.schema.streams.get_mut(*place));
        let no_stream =
            || MetadataError::at(object.at, format!("no data stream class with id {stream_id} before this"));
        let stream = stream.ok_or_else(no_stream)?;
        if !self.events.insert(EventKey { stream: stream_id, id }) {
            return Err(MetadataError::at(object.at, format!("a second event record class with id {id}")));
        }
        stream.events.push(Arc::new(EventClass { id, name, specific_context, payload, alone: true }));
        Ok(())
    }
}

/// The unique identifier of an object, where it has one.
fn identity(object: Object<'_, '_>) -> Read<Option<String>> {
    for name in ["namespace", "name"] {
        object.get(name).map(Node::text).transpose()?;
    }
    Ok(object.get("uid").map(Node::text).transpose()?.map(str::to_ascii_lowercase))
}

/// Checks that a magic number is the first member of the header and has 32 bits.
fn check_magic(header: &Field, at: usize) -> Read<()> {
    let Kind::Struct(members) = &header.kind else { return Ok(()) };
    for (position, member) in members.iter().enumerate() {
        let (Kind::Bits(Bits { saves, .. }) | Kind::Variable { saves, .. }) = &member.field.kind else { continue };
        let fits = position == 0 && matches!(member.field.kind, Kind::Bits(Bits { size: 32, .. }));
        if saves.contains(&Role::Magic.slot()) && !fits {
            return Err(MetadataError::at(
                at,
                "the magic number must have 32 bits and be the first member of the header",
            ));
        }
    }
    Ok(())
}

/// Checks that several classes have an id that distinguishes them.
fn check_ids(schema: &Schema) -> Read<()> {
    use super::roles::has_role;
    if schema.streams.len() > 1 && !has_role(schema.packet_header.as_ref(), Role::StreamClass) {
        return Err(MetadataError::at(0, "several data stream classes, but no packet header field with their id"));
    }
    for stream in &schema.streams {
        if stream.events.len() > 1 && !has_role(stream.event_header.as_ref(), Role::EventClass) {
            let what =
                format!("data stream class {} has several event record classes, but no field with their id", stream.id);
            return Err(MetadataError::at(0, what));
        }
    }
    Ok(())
}
