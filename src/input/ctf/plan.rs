//! The fields to decode of each event, compiled on the first event of its class.
//!
//! A [`CtfPlan`] belongs to one projection, or shows everything (for writers). A kernel tracer declares more than a
//! thousand classes of which a recording holds a few dozen, so bodies are compiled on first use and then shared by all
//! readers. Besides the steps that any event can be read by, a plan keeps for each event id a [`HeaderTemplate`]: the
//! shape of the event's header and, where nothing of the body is wanted, the length of the body or how to find its end.

use super::compile::{Compiler, TimeStamps};
use super::ids::EventIds;
use super::orders::ByteOrders;
use super::phase::Phase;
use super::schema::{Field, Schema, StreamClass};
use super::steps::{Body, FieldNode, Program};
use super::stride::{EventSkip, HeaderTemplate, IdLocator};
use super::trace::CtfTrace;
use crate::base::heap::block;
use crate::input::record::{ClassId, FieldPath, Projection};
use get_size2::GetSize;
use std::sync::{Arc, OnceLock};

/// A compiled projection, or a plan that shows everything.
#[derive(Debug, GetSize)]
pub struct CtfPlan {
    #[get_size(ignore)]
    schema: Arc<Schema>,
    /// `None`: everything is shown.
    #[get_size(ignore)]
    projection: Option<Projection>,
    /// By stream class.
    pub(super) headers: Vec<Header>,
    /// By class.
    #[get_size(size_fn = block)]
    pub(super) bodies: Vec<OnceLock<Body>>,
    #[get_size(ignore)]
    nodes: Vec<FieldNode>,
    #[get_size(ignore)]
    orders: ByteOrders,
}

/// How the events of a stream class begin.
#[derive(Debug, GetSize)]
pub(super) struct Header {
    /// Reads any header.
    #[get_size(ignore)]
    pub(super) program: Program,
    /// The known properties of the position after the header.
    #[get_size(ignore)]
    phase: Phase,
    /// The first record class of the stream class.
    first: usize,
    /// The place of the id, if headers with small ids can be read at once.
    #[get_size(ignore)]
    pub(super) locator: Option<IdLocator>,
    /// By event id; `None` inside: headers with this id are read by the program.
    #[get_size(size_fn = block)]
    pub(super) templates: Vec<OnceLock<Option<HeaderTemplate>>>,
}

impl CtfPlan {
    /// Some fields of some classes.
    pub fn new(trace: &CtfTrace, projection: &Projection) -> CtfPlan {
        let wanted = projection.wanted.iter().any(Option::is_some);
        let stamps = if wanted { TimeStamps::Followed } else { TimeStamps::Ignored };
        let mut plan = CtfPlan::bare(trace, Some(projection.clone()));
        let mut compiler = Compiler::new(plan.orders);
        plan.headers = headers(trace, |stream| compiler.event_header(stream, stamps), stamps, plan.orders);
        plan.bodies = trace.tables.classes.iter().map(|_| OnceLock::new()).collect();
        plan
    }

    /// All fields of all classes.
    pub fn whole(trace: &CtfTrace) -> CtfPlan {
        let mut plan = CtfPlan::bare(trace, None);
        let stamps = TimeStamps::Followed;
        let mut compiler = Compiler::new(ByteOrders::Mixed);
        plan.headers = headers(trace, |stream| compiler.event_header(stream, stamps), stamps, ByteOrders::Mixed);
        for (stream, header) in trace.schema.streams.iter().zip(&plan.headers) {
            for place in 0..stream.events.len() {
                let body = compiler.whole_body(roots(stream, place), header.phase);
                plan.bodies.push(OnceLock::from(body));
            }
        }
        plan.nodes = compiler.nodes;
        plan
    }

    fn bare(trace: &CtfTrace, projection: Option<Projection>) -> CtfPlan {
        let schema = trace.schema.clone();
        let orders = schema.byte_orders();
        CtfPlan { schema, projection, headers: Vec::new(), bodies: Vec::new(), nodes: Vec::new(), orders }
    }

    /// The nodes of a plan that shows everything.
    pub fn nodes(&self) -> &[FieldNode] {
        &self.nodes
    }

    /// The fields wanted of a class; `None` where it is of no interest.
    #[inline(always)]
    pub(super) fn wanted(&self, class: ClassId) -> Option<&[FieldPath]> {
        match &self.projection {
            Some(projection) => projection.wanted.get(class.index())?.as_deref(),
            None => Some(&[]),
        }
    }

    /// The most values that a record has.
    pub(super) fn most_values(&self) -> usize {
        let all = self.projection.iter().flat_map(|p| &p.wanted).flatten();
        all.map(Vec::len).max().unwrap_or(0)
    }

    /// The decode steps of the body of a class of a stream class.
    #[inline(always)]
    pub(super) fn body(&self, stream: usize, class: ClassId) -> Option<&Body> {
        let body = self.bodies.get(class.index())?;
        Some(body.get_or_init(|| self.compile(stream, class)))
    }

    #[cold]
    fn compile(&self, stream: usize, class: ClassId) -> Body {
        let (Some(stream), Some(header)) = (self.schema.streams.get(stream), self.headers.get(stream)) else {
            return Body::Fixed(0);
        };
        let place = class.index().saturating_sub(header.first);
        let paths = self.wanted(class).unwrap_or(&[]);
        Compiler::new(self.orders).body(roots(stream, place), header.phase, paths)
    }

    /// The template of an event id, made on the id's first occurrence.
    #[inline(always)]
    pub(super) fn template<'p>(
        &self,
        stream: usize,
        header: &'p Header,
        id: u64,
        ids: &EventIds,
    ) -> Option<&'p HeaderTemplate> {
        let place = header.templates.get(usize::try_from(id).ok()?)?;
        place.get_or_init(|| self.find_template(stream, header, id, ids)).as_ref()
    }

    #[cold]
    fn find_template(&self, stream: usize, header: &Header, id: u64, ids: &EventIds) -> Option<HeaderTemplate> {
        let class = ids.find(id)?;
        let shape = header.locator.as_ref()?.shape(self.schema.streams.get(stream)?, id)?;
        let body = self.body(stream, class)?;
        if shape.keeps.iter().any(|slot| body.needs(*slot)) {
            return None;
        }
        Some(HeaderTemplate { class, bits: shape.bits, stamp: shape.stamp, skip: EventSkip::over(body, shape.bits) })
    }
}

fn headers(
    trace: &CtfTrace,
    mut compile: impl FnMut(&StreamClass) -> (Program, Phase),
    stamps: TimeStamps,
    orders: ByteOrders,
) -> Vec<Header> {
    let mut first = 0;
    let header = |(stream, ids): (&StreamClass, &EventIds)| {
        let (program, phase) = compile(stream);
        let locator = IdLocator::new(stream, stamps, orders);
        let templates = (0..if locator.is_some() { ids.small() } else { 0 }).map(|_| OnceLock::new()).collect();
        let header = Header { program, phase, first, locator, templates };
        first += stream.events.len();
        header
    };
    trace.schema.streams.iter().zip(&trace.tables.ids).map(header).collect()
}

/// The structures of an event after its header.
fn roots(stream: &StreamClass, place: usize) -> [Option<&Field>; 3] {
    let event = stream.events.get(place);
    [
        stream.common_context.as_ref(),
        event.and_then(|e| e.specific_context.as_ref()),
        event.and_then(|e| e.payload.as_ref()),
    ]
}
