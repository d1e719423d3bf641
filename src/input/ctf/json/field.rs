//! Resolves CTF 2 field classes to fields (CTF 2.0, section 5.3).
//!
//! An alias is kept as JSON and read again at each use, because the meaning of a role depends on the structure in which
//! the field is used. The number of fields read and their depth are bounded, because aliases of aliases multiply
//! (`extent`).

use super::value::{Json, Node, Object};
use crate::base::cursor::ByteOrder;
use crate::input::ctf::error::MetadataError;
use crate::input::ctf::extent::{Extent, check_depth};
use crate::input::ctf::real;
use crate::input::ctf::schema::{
    Bits, ByteMeaning, Choice, Count, Field, Kind, Label, Location, Member, Role, Root, Show, Slot, Source, TextUnit,
    ValueRange,
};
use foldhash::HashMap;
use std::sync::Arc;

type Read<T> = Result<T, MetadataError>;

/// The values of an integer class.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Unsigned,
    Signed,
}

/// The aliases known so far.
pub(super) struct Aliases<'n, 't> {
    known: HashMap<String, &'n Node<'t>>,
    extent: Extent,
    /// Depth of the field being read.
    depth: usize,
}

/// The structure in which a field class is used; it decides the meaning of roles.
#[derive(Clone, Copy)]
pub(super) struct Use {
    pub(super) root: Option<Root>,
    /// The default clock.
    pub(super) clock: Option<usize>,
}

impl<'n, 't> Aliases<'n, 't> {
    /// No aliases yet, in a text of `text` bytes.
    pub(super) fn new(text: usize) -> Self {
        Aliases { known: HashMap::default(), extent: Extent::new(text), depth: 0 }
    }

    /// Declare an alias. Its field class is read once, so that an error is reported at its place.
    pub(super) fn declare(&mut self, name: &str, node: &'n Node<'t>) -> Read<()> {
        self.field(node, Use { root: None, clock: None })?;
        if self.known.insert(name.to_owned(), node).is_some() {
            return Err(MetadataError::at(node.at, format!("a second alias `{name}`")));
        }
        Ok(())
    }

    /// A structure, or the alias of one.
    pub(super) fn root(&mut self, node: &'n Node<'t>, usage: Use) -> Read<Field> {
        let field = self.field(node, usage)?;
        match field.kind {
            Kind::Struct(_) => Ok(field),
            _ => Err(MetadataError::at(node.at, "expected a structure")),
        }
    }

    fn field(&mut self, node: &'n Node<'t>, usage: Use) -> Read<Field> {
        self.extent.add(1, node.at)?;
        self.depth += 1;
        check_depth(self.depth, node.at)?;
        let read = self.field_within(node, usage);
        self.depth -= 1;
        read
    }

    fn field_within(&mut self, node: &'n Node<'t>, usage: Use) -> Read<Field> {
        if let Json::Text(name) = &node.json {
            let aliased = self.known.get(&**name).copied();
            let aliased =
                aliased.ok_or_else(|| MetadataError::at(node.at, format!("no alias `{name}` before this")))?;
            return self.field(aliased, usage);
        }
        let object = node.object()?;
        let kind = object.need("type")?;
        let name = kind.text()?;
        self.of_type(name, kind.at, object, usage).map_err(|t| t.within(format!("in a {name}"), node.at))
    }

    fn of_type(&mut self, name: &str, at: usize, object: Object<'n, 't>, usage: Use) -> Read<Field> {
        match name {
            "fixed-length-bit-array" => bits(object, &[], usage, |_| Ok(Show::Flags(Arc::from([])))),
            "fixed-length-bit-map" => bits(object, &["flags"], usage, |o| {
                let flags = labels(o.need("flags")?, Sign::Unsigned)?;
                if flags.is_empty() {
                    return Err(MetadataError::at(o.at, "`flags` is empty"));
                }
                Ok(Show::Flags(Arc::from(flags)))
            }),
            "fixed-length-boolean" => bits(object, &[], usage, |_| Ok(Show::Boolean)),
            "fixed-length-unsigned-integer" => {
                bits(object, &["preferred-display-base", "mappings", "roles"], usage, |o| mappings(o, Sign::Unsigned))
            }
            "fixed-length-signed-integer" => {
                let mut field =
                    bits(object, &["preferred-display-base", "mappings"], usage, |o| mappings(o, Sign::Signed))?;
                if let Kind::Bits(bits) = &mut field.kind {
                    bits.signed = true;
                }
                Ok(field)
            }
            "fixed-length-floating-point-number" => real_number(object),
            "variable-length-unsigned-integer" => variable(object, Sign::Unsigned, usage),
            "variable-length-signed-integer" => variable(object, Sign::Signed, usage),
            "null-terminated-string" => {
                object.only(&["type", "encoding"])?;
                Ok(Field { align: 8, kind: Kind::Text(encoding(object)?) })
            }
            "static-length-string" => {
                object.only(&["type", "encoding", "length"])?;
                let count = Count::Fixed(object.need("length")?.unsigned()?);
                Ok(Field { align: 8, kind: Kind::SizedText(encoding(object)?, count) })
            }
            "dynamic-length-string" => {
                object.only(&["type", "encoding", "length-field-location"])?;
                let count = Count::Recorded(location(object.need("length-field-location")?)?);
                Ok(Field { align: 8, kind: Kind::SizedText(encoding(object)?, count) })
            }
            "static-length-blob" => static_blob(object, usage),
            "dynamic-length-blob" => {
                object.only(&["type", "media-type", "length-field-location"])?;
                object.get("media-type").map(Node::text).transpose()?;
                let count = Count::Recorded(location(object.need("length-field-location")?)?);
                Ok(Field { align: 8, kind: Kind::Blob { count, meaning: ByteMeaning::Data } })
            }
            "structure" => self.structure(object, usage),
            "static-length-array" => {
                object.only(&["type", "element-field-class", "minimum-alignment", "length"])?;
                let count = Count::Fixed(object.need("length")?.unsigned()?);
                self.array(object, count, usage)
            }
            "dynamic-length-array" => {
                object.only(&["type", "element-field-class", "minimum-alignment", "length-field-location"])?;
                let count = Count::Recorded(location(object.need("length-field-location")?)?);
                self.array(object, count, usage)
            }
            "optional" => {
                object.only(&["type", "field-class", "selector-field-location", "selector-field-ranges"])?;
                let by = location(object.need("selector-field-location")?)?;
                let ranges = object.get("selector-field-ranges").map(ranges).transpose()?;
                let field = Box::new(self.field(object.need("field-class")?, usage)?);
                Ok(Field { align: 1, kind: Kind::Optional { by, signed: false, ranges, field } })
            }
            "variant" => self.variant(object, usage),
            _ => Err(MetadataError::at(at, format!("no field class has the type `{name}`"))),
        }
    }

    fn structure(&mut self, object: Object<'n, 't>, usage: Use) -> Read<Field> {
        object.only(&["type", "member-classes", "minimum-alignment"])?;
        let mut align = alignment(object, "minimum-alignment")?;
        let mut members: Vec<Member> = Vec::new();
        let mut seen = foldhash::HashSet::default();
        for node in object.get("member-classes").map_or(Ok(&[][..]), Node::array)? {
            let member = node.object()?;
            member.only(&["name", "field-class"])?;
            let name = member.need("name")?.text()?;
            if !seen.insert(name) {
                return Err(MetadataError::at(node.at, format!("a second member `{name}`")));
            }
            let field = self.field(member.need("field-class")?, usage);
            let field = field.map_err(|t| t.within(format!("in member `{name}`"), node.at))?;
            align = align.max(field.align);
            members.push(Member { written: name.into(), escaped: false, field });
        }
        Ok(Field { align, kind: Kind::Struct(members) })
    }

    fn array(&mut self, object: Object<'n, 't>, count: Count, usage: Use) -> Read<Field> {
        let element = Box::new(self.field(object.need("element-field-class")?, usage)?);
        let align = alignment(object, "minimum-alignment")?.max(element.align);
        Ok(Field { align, kind: Kind::Array { count, element, meaning: ByteMeaning::Data } })
    }

    fn variant(&mut self, object: Object<'n, 't>, usage: Use) -> Read<Field> {
        object.only(&["type", "options", "selector-field-location"])?;
        let by = location(object.need("selector-field-location")?)?;
        let mut options: Vec<Choice> = Vec::new();
        let nodes = object.need("options")?;
        for node in nodes.array()? {
            let option = node.object()?;
            option.only(&["name", "field-class", "selector-field-ranges"])?;
            let written = option.get("name").map(Node::text).transpose()?.unwrap_or("");
            let ranges = ranges(option.need("selector-field-ranges")?)?;
            if !written.is_empty() && options.iter().any(|o| &*o.written == written) {
                return Err(MetadataError::at(node.at, format!("a second option `{written}`")));
            }
            let others = options.iter().flat_map(|o| &o.ranges);
            if others.into_iter().any(|other| ranges.iter().any(|range| range.overlaps(*other))) {
                return Err(MetadataError::at(node.at, "a selector value would select two options"));
            }
            let field = self.field(option.need("field-class")?, usage)?;
            options.push(Choice { written: written.into(), escaped: false, ranges, field });
        }
        if options.is_empty() {
            return Err(MetadataError::at(nodes.at, "a variant needs an option"));
        }
        Ok(Field { align: 1, kind: Kind::Variant { by, signed: false, options } })
    }
}

/// The properties of all field classes with a fixed number of bits.
const FIXED: [&str; 5] = ["type", "length", "byte-order", "bit-order", "alignment"];

/// The field of a class with a fixed number of bits.
fn bits(object: Object<'_, '_>, more: &[&str], usage: Use, show: impl Fn(Object<'_, '_>) -> Read<Show>) -> Read<Field> {
    object.only(&[&FIXED, more].concat())?;
    let length = object.need("length")?;
    let size = match length.unsigned()? {
        size @ 1..=64 => size as u8,
        size => {
            return Err(MetadataError::at(
                length.at,
                format!("a field of fixed length must have 1 to 64 bits, not {size}"),
            ));
        }
    };
    let (byte_order, reversed) = orders(object)?;
    let show = show(object)?;
    let (saves, clock) = roles(object, usage)?;
    let bits = Bits { size, byte_order, reversed, signed: false, show, character: false, saves, clock };
    Ok(Field { align: alignment(object, "alignment")?, kind: Kind::Bits(bits) })
}

/// The byte order, and whether the order of the bits is its opposite.
fn orders(object: Object<'_, '_>) -> Read<(ByteOrder, bool)> {
    let order = object.need("byte-order")?;
    let byte_order = match order.text()? {
        "little-endian" => ByteOrder::Little,
        "big-endian" => ByteOrder::Big,
        _ => return Err(MetadataError::at(order.at, "a byte order must be `little-endian` or `big-endian`")),
    };
    let reversed = match object.get("bit-order") {
        None => false,
        Some(node) => match node.text()? {
            "first-to-last" => byte_order == ByteOrder::Big,
            "last-to-first" => byte_order == ByteOrder::Little,
            _ => return Err(MetadataError::at(node.at, "a bit order must be `first-to-last` or `last-to-first`")),
        },
    };
    Ok((byte_order, reversed))
}

fn variable(object: Object<'_, '_>, sign: Sign, usage: Use) -> Read<Field> {
    let mut known = vec!["type", "preferred-display-base", "mappings"];
    if sign == Sign::Unsigned {
        known.push("roles");
    }
    object.only(&known)?;
    let show = mappings(object, sign)?;
    let (saves, clock) = roles(object, usage)?;
    Ok(Field { align: 8, kind: Kind::Variable { signed: sign == Sign::Signed, show, saves, clock } })
}

fn static_blob(object: Object<'_, '_>, usage: Use) -> Read<Field> {
    object.only(&["type", "media-type", "length", "roles"])?;
    object.get("media-type").map(Node::text).transpose()?;
    let length = object.need("length")?;
    let count = length.unsigned()?;
    let mut meaning = ByteMeaning::Data;
    for node in object.get("roles").map_or(Ok(&[][..]), Node::array)? {
        if node.text()? == "metadata-stream-uuid" && usage.root == Some(Root::PacketHeader) {
            meaning = ByteMeaning::TraceUuid;
        }
    }
    if meaning == ByteMeaning::TraceUuid && count != 16 {
        return Err(MetadataError::at(length.at, format!("a uuid must have 16 bytes, not {count}")));
    }
    Ok(Field { align: 8, kind: Kind::Blob { count: Count::Fixed(count), meaning } })
}

/// The slots for the roles of an unsigned integer in the structure in which it is used.
fn roles(object: Object<'_, '_>, usage: Use) -> Read<(Vec<Slot>, Option<usize>)> {
    let (mut saves, mut clock) = (Vec::new(), None);
    for node in object.get("roles").map_or(Ok(&[][..]), Node::array)? {
        let is_time = matches!(node.text()?, "default-clock-timestamp" | "packet-end-default-clock-timestamp");
        let role = match (usage.root, node.text()?) {
            (Some(Root::PacketHeader), "packet-magic-number") => Role::Magic,
            (Some(Root::PacketHeader), "data-stream-class-id") => Role::StreamClass,
            (Some(Root::PacketHeader), "data-stream-id") => Role::StreamInstance,
            (Some(Root::PacketContext), "packet-total-length") => Role::PacketBits,
            (Some(Root::PacketContext), "packet-content-length") => Role::ContentBits,
            (Some(Root::PacketContext), "default-clock-timestamp") => Role::Begin,
            (Some(Root::PacketContext), "packet-end-default-clock-timestamp") => Role::End,
            (Some(Root::PacketContext), "discarded-event-record-counter-snapshot") => Role::Discarded,
            (Some(Root::PacketContext), "packet-sequence-number") => Role::Sequence,
            (Some(Root::EventHeader), "event-record-class-id") => Role::EventClass,
            (Some(Root::EventHeader), "default-clock-timestamp") => Role::Time,
            _ => continue,
        };
        if is_time {
            if usage.clock.is_none() {
                return Err(MetadataError::at(node.at, "a time stamp, but the data stream class has no default clock"));
            }
            clock = usage.clock;
        }
        saves.push(role.slot());
    }
    Ok((saves, clock))
}

fn mappings(object: Object<'_, '_>, sign: Sign) -> Read<Show> {
    if let Some(node) = object.get("preferred-display-base")
        && !matches!(node.unsigned()?, 2 | 8 | 10 | 16)
    {
        return Err(MetadataError::at(node.at, "a display base must be 2, 8, 10 or 16"));
    }
    match object.get("mappings") {
        Some(node) => Ok(Show::Labels(Arc::from(labels(node, sign)?))),
        None => Ok(Show::Number),
    }
}

fn labels(node: &Node<'_>, sign: Sign) -> Read<Vec<Label>> {
    let mut labels = Vec::new();
    for (name, node) in node.object()?.members {
        let ranges = ranges(node)?;
        if sign == Sign::Unsigned && ranges.iter().any(|range| range.first < 0) {
            return Err(MetadataError::at(node.at, "a range begins below 0"));
        }
        labels.push(Label { name: Box::from(&**name), ranges });
    }
    Ok(labels)
}

/// `[[first, last], ...]`, at least one.
fn ranges(node: &Node<'_>) -> Read<Vec<ValueRange>> {
    let mut ranges = Vec::new();
    for node in node.array()? {
        let [first, last] = node.array()? else {
            return Err(MetadataError::at(node.at, "a range must be an array of two integers"));
        };
        let (first, last) = (first.integer()?, last.integer()?);
        if last < first {
            return Err(MetadataError::at(node.at, format!("the range {first} to {last} ends before it begins")));
        }
        ranges.push(ValueRange { first, last });
    }
    if ranges.is_empty() {
        return Err(MetadataError::at(node.at, "there is no range"));
    }
    Ok(ranges)
}

fn alignment(object: Object<'_, '_>, name: &str) -> Read<u64> {
    let Some(node) = object.get(name) else { return Ok(1) };
    match node.unsigned()? {
        align if align.is_power_of_two() => Ok(align),
        align => Err(MetadataError::at(node.at, format!("an alignment must be a power of two, not {align}"))),
    }
}

fn encoding(object: Object<'_, '_>) -> Read<TextUnit> {
    let Some(node) = object.get("encoding") else { return Ok(TextUnit::Byte) };
    match node.text()? {
        "utf-8" => Ok(TextUnit::Byte),
        "utf-16le" => Ok(TextUnit::Utf16Le),
        "utf-16be" => Ok(TextUnit::Utf16Be),
        "utf-32le" => Ok(TextUnit::Utf32Le),
        "utf-32be" => Ok(TextUnit::Utf32Be),
        _ => Err(MetadataError::at(node.at, "an encoding must be utf-8, utf-16le, utf-16be, utf-32le or utf-32be")),
    }
}

fn location(node: &Node<'_>) -> Read<Source> {
    let object = node.object()?;
    object.only(&["origin", "path"])?;
    let scope = match object.get("origin") {
        None => None,
        Some(origin) => Some(match origin.text()? {
            "packet-header" => Root::PacketHeader,
            "packet-context" => Root::PacketContext,
            "event-record-header" => Root::EventHeader,
            "event-record-common-context" => Root::CommonContext,
            "event-record-specific-context" => Root::SpecificContext,
            "event-record-payload" => Root::Payload,
            other => return Err(MetadataError::at(origin.at, format!("no structure is called `{other}`"))),
        }),
    };
    let steps = object.need("path")?;
    let mut path: Vec<Option<Box<str>>> = Vec::new();
    for step in steps.array()? {
        match &step.json {
            // A step up cancels the name before it; without a name before it, it leads up from the referring field.
            Json::Null if matches!(path.last(), Some(Some(_))) => {
                path.pop();
            }
            Json::Null => path.push(None),
            _ => path.push(Some(step.text()?.into())),
        }
    }
    if !matches!(path.last(), Some(Some(_))) {
        return Err(MetadataError::at(steps.at, "a path must end with the name of a member"));
    }
    Ok(Source::At(Box::new(Location { scope, path, climbs: false, at: node.at })))
}

/// A number of an IEEE 754 interchange format.
fn real_number(object: Object<'_, '_>) -> Read<Field> {
    object.only(&FIXED)?;
    let length = object.need("length")?;
    let size = match length.unsigned()? {
        bits if !real::is_format(bits) => {
            let what = "a floating point number must have 16, 32, 64, 128 bits, or a larger multiple of 32";
            return Err(MetadataError::at(length.at, what));
        }
        bits if bits > real::MOST_BITS.into() => {
            let what = format!("a floating point number of {bits} bits; at most {} are read", real::MOST_BITS);
            return Err(MetadataError::at(length.at, what));
        }
        bits => bits as u16,
    };
    let (byte_order, reversed) = orders(object)?;
    Ok(Field { align: alignment(object, "alignment")?, kind: Kind::Real { size, byte_order, reversed } })
}
