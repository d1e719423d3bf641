//! Which fields of which classes are taken out of records, and how.
//!
//! A field is a fixed place in the record, or something that the walk tells of it. A plan that shows everything has, for
//! writers, a node for each field as the plans of CTF traces have.

use super::format::{Field, Shape};
use super::threads::Threads;
use super::{Context, Face, Raw, Walk, bytes_of};
use crate::base::cursor::bits;
use crate::input::ctf::{self, Appearance, Node, Sink};
use crate::input::record::{ClassId, FieldPath, Projection, Scope, Value, Words};

/// How a value is got.
#[derive(Clone, Debug)]
pub(super) enum Get {
    /// From the record.
    Field(Field),
    /// From the walk.
    Context(Context),
    /// The class has no such field.
    Nowhere,
}

/// A compiled projection, or everything.
#[derive(Debug)]
pub struct Plan {
    /// By class; `None`: of no interest.
    wanted: Vec<Option<Vec<Get>>>,
    most: usize,
    nodes: Vec<Node>,
    shows: Vec<Show>,
}

/// How the records of a class are shown: the nodes of its three structures and of their members.
#[derive(Debug)]
pub(super) struct Show {
    scopes: [u32; 3],
    context: Vec<(u32, Get)>,
    fields: Vec<(u32, Get)>,
}

impl Plan {
    pub(super) fn new(faces: &[Face], projection: &Projection) -> Plan {
        let gets = |(face, wanted): (&Face, &Option<Vec<FieldPath>>)| {
            wanted.as_ref().map(|paths| paths.iter().map(|path| get(face, path)).collect::<Vec<_>>())
        };
        let wanted: Vec<Option<Vec<Get>>> = faces.iter().zip(&projection.wanted).map(gets).collect();
        let most = wanted.iter().flatten().map(Vec::len).max().unwrap_or(0);
        Plan { wanted, most, nodes: Vec::new(), shows: Vec::new() }
    }

    pub(super) fn whole(faces: &[Face]) -> Plan {
        let mut plan = Plan { wanted: Vec::new(), most: 0, nodes: Vec::new(), shows: Vec::new() };
        for face in faces {
            let scopes = [Scope::CommonContext, Scope::SpecificContext, Scope::Payload];
            let mut show = Show { scopes: [0; 3], context: Vec::new(), fields: Vec::new() };
            for (position, scope) in scopes.into_iter().enumerate() {
                show.scopes[position] = plan.node(None, position, ctf::Shape::Scope(scope));
            }
            for context in face.contexts() {
                let shape = match context {
                    Context::Thread | Context::Process => ctf::Shape::Number(Appearance::Decimal),
                    Context::Name => ctf::Shape::Text,
                    Context::KernelStack | Context::UserStack => words(),
                };
                let node = plan.node(Some(context.name()), show.context.len(), shape);
                show.context.push((node, Get::Context(context)));
            }
            for field in &face.common {
                let node = plan.node(Some(&field.name), show.context.len(), shape(field));
                show.context.push((node, Get::Field(field.clone())));
            }
            for (position, field) in face.fields.iter().enumerate() {
                let node = plan.node(Some(&field.name), position, shape(field));
                show.fields.push((node, Get::Field(field.clone())));
            }
            plan.shows.push(show);
        }
        plan
    }

    fn node(&mut self, name: Option<&str>, position: usize, shape: ctf::Shape) -> u32 {
        self.nodes.push(Node { name: name.map(str::to_owned), position, shape });
        (self.nodes.len() - 1) as u32
    }

    /// What each node of a plan that shows everything is.
    pub fn nodes(&self) -> &[Node] {
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

fn get(face: &Face, path: &FieldPath) -> Get {
    let [name] = path.path.as_slice() else { return Get::Nowhere };
    let field = |fields: &[Field]| fields.iter().find(|f| f.name == *name).cloned().map(Get::Field);
    let found = match path.scope {
        Scope::Payload => field(&face.fields).or_else(|| field(&face.common)),
        Scope::CommonContext => face.contexts().find(|c| c.name() == *name).map(Get::Context),
        Scope::SpecificContext => None,
    };
    found.unwrap_or(Get::Nowhere)
}

fn words() -> ctf::Shape {
    ctf::Shape::Array { element: Some((Appearance::Decimal, false)) }
}

fn shape(field: &Field) -> ctf::Shape {
    match field.shape {
        Shape::Number { .. } | Shape::Given(_) => ctf::Shape::Number(Appearance::Decimal),
        Shape::Text | Shape::Elsewhere { width: None, .. } | Shape::Rest { width: None } => ctf::Shape::Text,
        Shape::Words { .. } | Shape::Elsewhere { .. } | Shape::Rest { .. } => words(),
    }
}

impl Get {
    /// Its values are integers side by side.
    fn is_several(&self) -> bool {
        match self {
            Get::Field(field) => matches!(
                field.shape,
                Shape::Words { .. } | Shape::Elsewhere { width: Some(_), .. } | Shape::Rest { width: Some(_) }
            ),
            Get::Context(context) => matches!(context, Context::KernelStack | Context::UserStack),
            Get::Nowhere => false,
        }
    }

    /// The value of a record; absent where the record is too short for it.
    #[inline(always)]
    pub(super) fn value<'a>(&self, walk: &impl Walk<'a>, raw: &Raw<'a>, threads: &'a Threads, big: bool) -> Value<'a> {
        match self {
            Get::Field(field) => value(field, raw.body, big).unwrap_or_default(),
            Get::Context(context) => computed(*context, walk, raw, threads).unwrap_or_default(),
            Get::Nowhere => Value::Absent,
        }
    }
}

#[inline(always)]
fn value<'a>(field: &Field, body: &'a [u8], big: bool) -> Option<Value<'a>> {
    if let Shape::Number { signed } = field.shape {
        let unsigned = bits(body, field.at as u64 * 8, field.size as u32 * 8, big)?;
        let unused = 64 - field.size as u32 * 8;
        return Some(if signed {
            Value::Signed((unsigned << unused) as i64 >> unused)
        } else {
            Value::Unsigned(unsigned)
        });
    }
    if let Shape::Given(value) = field.shape {
        return Some(Value::Unsigned(value));
    }
    let bytes = bytes_of(body, field, big)?;
    Some(match field.shape {
        Shape::Words { width } | Shape::Elsewhere { width: Some(width), .. } | Shape::Rest { width: Some(width) } => {
            Value::Words(Words { bytes, width, big_endian: big })
        }
        _ => Value::Text(bytes.get(..memchr::memchr(0, bytes).unwrap_or(bytes.len())).unwrap_or(bytes)),
    })
}

fn computed<'a>(context: Context, walk: &impl Walk<'a>, raw: &Raw<'a>, threads: &'a Threads) -> Option<Value<'a>> {
    let number = |id: i32| Value::Signed(i64::from(id));
    let thread = walk.thread(raw);
    match context {
        Context::Thread => thread.map(number),
        Context::Process => walk.process(raw).or_else(|| threads.process(thread?, raw.clock)).map(number),
        Context::Name => threads.name(thread?, raw.clock).map(Value::Text),
        Context::KernelStack => walk.stack(raw, false).map(Value::Words),
        Context::UserStack => walk.stack(raw, true).map(Value::Words),
    }
}

impl Show {
    /// All of a record into `sink`.
    pub(super) fn write<'a, S: Sink<'a>>(
        &self,
        walk: &impl Walk<'a>,
        raw: &Raw<'a>,
        threads: &'a Threads,
        big: bool,
        sink: &mut S,
    ) {
        let [common, specific, payload] = self.scopes;
        let mut members = |node: u32, members: &[(u32, Get)]| {
            if members.is_empty() {
                return sink.missing(node);
            }
            sink.open(node);
            for (node, get) in members {
                match get.value(walk, raw, threads, big) {
                    Value::Unsigned(n) => sink.unsigned(*node, n),
                    Value::Signed(n) => sink.signed(*node, n),
                    Value::Text(text) => sink.text(*node, text, 1, big),
                    Value::Words(words) => sink.words(*node, words),
                    Value::Absent | Value::Real(_) if get.is_several() => {
                        sink.words(*node, Words { bytes: &[], width: 8, big_endian: big });
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
