//! The fields that are read from records, by class.
//!
//! A field has a fixed place in the record, or a value that the walk computes. A plan that shows everything has a node
//! for each field, like the plans of CTF traces.

use super::format::{Field, FieldType};
use super::threads::Threads;
use super::{ClassSchema, ContextField, Raw, StackSide, Walk, bytes_of};
use crate::base::cursor::{ByteOrder, bits};
use crate::input::ctf::{self, ElementFormat, FieldNode, NumberFormat, Sink};
use crate::input::record::{ClassId, FieldPath, IntegerArray, Projection, Scope, Value};

/// The source of a value.
#[derive(Clone, Debug)]
pub(super) enum Get {
    /// From the record.
    Field(Field),
    /// From the walk.
    ContextField(ContextField),
    /// The class has no such field.
    Nowhere,
}

/// A compiled projection, or everything.
#[derive(Debug)]
pub struct TracepointPlan {
    /// By class; `None`: not wanted.
    wanted: Vec<Option<Vec<Get>>>,
    most: usize,
    nodes: Vec<FieldNode>,
    shows: Vec<Show>,
}

/// How the records of a class are shown: the nodes of its three structures and of their members.
#[derive(Debug)]
pub(super) struct Show {
    scopes: [u32; 3],
    context: Vec<ShownField>,
    fields: Vec<ShownField>,
}

/// The node of a field, and the way to its value.
#[derive(Debug)]
struct ShownField {
    node: u32,
    get: Get,
}

impl TracepointPlan {
    pub(super) fn new(schemas: &[ClassSchema], projection: &Projection) -> TracepointPlan {
        let gets = |(schema, wanted): (&ClassSchema, &Option<Vec<FieldPath>>)| {
            wanted.as_ref().map(|paths| paths.iter().map(|path| get(schema, path)).collect::<Vec<_>>())
        };
        let wanted: Vec<Option<Vec<Get>>> = schemas.iter().zip(&projection.wanted).map(gets).collect();
        let most = wanted.iter().flatten().map(Vec::len).max().unwrap_or(0);
        TracepointPlan { wanted, most, nodes: Vec::new(), shows: Vec::new() }
    }

    pub(super) fn whole(schemas: &[ClassSchema]) -> TracepointPlan {
        let mut plan = TracepointPlan { wanted: Vec::new(), most: 0, nodes: Vec::new(), shows: Vec::new() };
        for schema in schemas {
            let scopes = [Scope::CommonContext, Scope::SpecificContext, Scope::Payload];
            let mut show = Show { scopes: [0; 3], context: Vec::new(), fields: Vec::new() };
            for (position, scope) in scopes.into_iter().enumerate() {
                show.scopes[position] = plan.node(None, position, ctf::FieldShape::Scope(scope));
            }
            for context in schema.contexts() {
                let field_type = match context {
                    ContextField::Thread
                    | ContextField::Process
                    | ContextField::VirtualThread
                    | ContextField::VirtualProcess => ctf::FieldShape::Number(NumberFormat::Decimal),
                    ContextField::Name => ctf::FieldShape::Text,
                    ContextField::KernelStack | ContextField::UserStack => words(),
                };
                let node = plan.node(Some(context.name()), show.context.len(), field_type);
                show.context.push(ShownField { node, get: Get::ContextField(context) });
            }
            for field in &schema.common {
                let node = plan.node(Some(&field.name), show.context.len(), field_type(field));
                show.context.push(ShownField { node, get: Get::Field(field.clone()) });
            }
            for (position, field) in schema.fields.iter().enumerate() {
                let node = plan.node(Some(&field.name), position, field_type(field));
                show.fields.push(ShownField { node, get: Get::Field(field.clone()) });
            }
            plan.shows.push(show);
        }
        plan
    }

    fn node(&mut self, name: Option<&str>, position: usize, shape: ctf::FieldShape) -> u32 {
        self.nodes.push(FieldNode { name: name.map(str::to_owned), position, shape });
        (self.nodes.len() - 1) as u32
    }

    /// The nodes of a plan that shows everything.
    pub fn nodes(&self) -> &[FieldNode] {
        &self.nodes
    }

    pub(super) fn most(&self) -> usize {
        self.most
    }

    #[inline(always)]
    pub(super) fn wanted(&self, class: ClassId) -> Option<&[Get]> {
        self.wanted.get(class.index())?.as_deref()
    }

    pub(super) fn show(&self, class: ClassId) -> Option<&Show> {
        self.shows.get(class.index())
    }
}

fn get(schema: &ClassSchema, path: &FieldPath) -> Get {
    let name = &*path.dotted;
    if name.contains('.') {
        return Get::Nowhere;
    }
    let field = |fields: &[Field]| fields.iter().find(|f| f.name == name).cloned().map(Get::Field);
    let found = match path.scope {
        Scope::Payload => field(&schema.fields).or_else(|| field(&schema.common)),
        Scope::CommonContext => schema.contexts().find(|c| c.name() == name).map(Get::ContextField),
        Scope::SpecificContext => None,
    };
    found.unwrap_or(Get::Nowhere)
}

fn words() -> ctf::FieldShape {
    ctf::FieldShape::Array { element: Some(ElementFormat { format: NumberFormat::Decimal, signed: false }) }
}

fn field_type(field: &Field) -> ctf::FieldShape {
    match field.field_type {
        FieldType::Number { .. } | FieldType::Given(_) => ctf::FieldShape::Number(NumberFormat::Decimal),
        FieldType::Text
        | FieldType::Marker(_)
        | FieldType::Elsewhere { width: None, .. }
        | FieldType::Rest { width: None } => ctf::FieldShape::Text,
        FieldType::Words { .. } | FieldType::Elsewhere { .. } | FieldType::Rest { .. } => words(),
    }
}

impl Get {
    /// True where its values are arrays of integers.
    fn is_several(&self) -> bool {
        match self {
            Get::Field(field) => matches!(
                field.field_type,
                FieldType::Words { .. }
                    | FieldType::Elsewhere { width: Some(_), .. }
                    | FieldType::Rest { width: Some(_) }
            ),
            Get::ContextField(context) => matches!(context, ContextField::KernelStack | ContextField::UserStack),
            Get::Nowhere => false,
        }
    }

    /// The value of a record; absent where the record is too short for it.
    #[inline(always)]
    pub(super) fn value<'a>(
        &self,
        walk: &impl Walk<'a>,
        raw: &Raw<'a>,
        threads: &'a Threads,
        byte_order: ByteOrder,
    ) -> Value<'a> {
        match self {
            Get::Field(field) => value(field, raw.body, byte_order).unwrap_or_default(),
            Get::ContextField(context) => computed(*context, walk, raw, threads).unwrap_or_default(),
            Get::Nowhere => Value::Absent,
        }
    }
}

#[inline(always)]
fn value<'a>(field: &Field, body: &'a [u8], byte_order: ByteOrder) -> Option<Value<'a>> {
    if let FieldType::Number { signed } = field.field_type {
        let unsigned = bits(body, field.at as u64 * 8, field.size as u32 * 8, byte_order)?;
        let unused = 64 - field.size as u32 * 8;
        return Some(if signed {
            Value::Signed((unsigned << unused) as i64 >> unused)
        } else {
            Value::Unsigned(unsigned)
        });
    }
    if let FieldType::Given(value) = field.field_type {
        return Some(Value::Unsigned(value));
    }
    let bytes = bytes_of(body, field, byte_order)?;
    Some(match field.field_type {
        FieldType::Words { width }
        | FieldType::Elsewhere { width: Some(width), .. }
        | FieldType::Rest { width: Some(width) } => Value::Words(IntegerArray { bytes, width, byte_order }),
        _ => Value::Text(bytes.get(..memchr::memchr(0, bytes).unwrap_or(bytes.len())).unwrap_or(bytes)),
    })
}

fn computed<'a>(context: ContextField, walk: &impl Walk<'a>, raw: &Raw<'a>, threads: &'a Threads) -> Option<Value<'a>> {
    let number = |id: i32| Value::Signed(i64::from(id));
    let thread = walk.thread(raw);
    match context {
        ContextField::Thread | ContextField::VirtualThread => thread.map(number),
        ContextField::Process | ContextField::VirtualProcess => {
            walk.process(raw).or_else(|| threads.process(thread?, raw.clock)).map(number)
        }
        ContextField::Name => threads.name(thread?, raw.clock).map(Value::Text),
        ContextField::KernelStack => walk.stack(raw, StackSide::Kernel).map(Value::Words),
        ContextField::UserStack => walk.stack(raw, StackSide::User).map(Value::Words),
    }
}

impl Show {
    /// Writes all fields of a record into `sink`.
    pub(super) fn write<'a, S: Sink<'a>>(
        &self,
        walk: &impl Walk<'a>,
        raw: &Raw<'a>,
        threads: &'a Threads,
        byte_order: ByteOrder,
        sink: &mut S,
    ) {
        let [common, specific, payload] = self.scopes;
        let mut members = |node: u32, members: &[ShownField]| {
            if members.is_empty() {
                return sink.missing(node);
            }
            sink.open(node);
            for ShownField { node, get } in members {
                match get.value(walk, raw, threads, byte_order) {
                    Value::Unsigned(n) => sink.unsigned(*node, n),
                    Value::Signed(n) => sink.signed(*node, n),
                    Value::Text(text) => sink.text(*node, text, 1, byte_order),
                    Value::Words(words) => sink.words(*node, words),
                    Value::Absent | Value::Real(_) if get.is_several() => {
                        sink.words(*node, IntegerArray { bytes: &[], width: 8, byte_order });
                    }
                    Value::Absent | Value::Real(_) => {
                        sink.open(*node);
                        sink.missing(*node);
                    }
                }
            }
            sink.close(node);
        };
        members(common, &self.context);
        members(specific, &[]);
        members(payload, &self.fields);
    }
}
