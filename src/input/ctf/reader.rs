//! Records out of packets: the loop over packets, events, headers and bodies.
//!
//! A [`Plan`] holds the steps of each class for one projection (or of everything, for writers); a [`Reader`] runs them
//! over a run of packets of one stream. Damage ends the packet it is in; the next packet goes on.

use super::decode::{Damage, Machine, Sink, What};
use super::packet::Line;
use super::plan::{Body, Compiler, Node, Program};
use super::schema::{EventClass, Role, Schema};
use super::{Place, Trace};
use crate::base::notice::{Notice, Notices};
use crate::input::record::{ClassId, Projection, Record, StreamId, Value, Words};
use foldhash::HashMap;
use std::ops::Range;

/// A compiled projection, or a plan that shows everything.
#[derive(Debug)]
pub struct Plan {
    program: Program,
    /// By stream class.
    headers: Vec<Range<u32>>,
    /// By class; `None` where it is stepped over by `skips`.
    bodies: Vec<Option<Body>>,
    skips: Vec<Body>,
    most_values: usize,
    values: Vec<u32>,
}

/// Which class an event id means in a stream class.
#[derive(Debug)]
pub(super) enum Ids {
    /// Event headers have no id: there is one class.
    Only(ClassId),
    /// Ids are small: `table[id]`.
    Dense(Vec<Option<ClassId>>),
    /// Ids are far apart.
    Sparse(HashMap<u64, ClassId>),
}

impl Ids {
    /// The table of a stream class whose first event class is `first`.
    pub(super) fn new(events: &[EventClass], first: usize, has_id: bool) -> Ids {
        let class = |(i, event): (usize, &EventClass)| (event.id, ClassId::at(first + i));
        if let ([_], false) = (events, has_id) {
            return Ids::Only(ClassId::at(first));
        }
        let most = events.iter().map(|e| e.id).max().unwrap_or(0);
        if most < 4 * events.len() as u64 + 1024 {
            let mut table = vec![None; most as usize + 1];
            for (id, class) in events.iter().enumerate().map(class) {
                if let Some(place) = table.get_mut(id as usize) {
                    *place = Some(class);
                }
            }
            return Ids::Dense(table);
        }
        Ids::Sparse(events.iter().enumerate().map(class).collect())
    }

    #[inline(always)]
    fn find(&self, id: u64) -> Option<ClassId> {
        match self {
            Ids::Only(class) => Some(*class),
            Ids::Dense(table) => usize::try_from(id).ok().and_then(|id| table.get(id).copied().flatten()),
            Ids::Sparse(map) => map.get(&id).copied(),
        }
    }
}

impl Plan {
    /// The steps for some fields of some classes.
    pub(super) fn new(schema: &Schema, projection: &Projection) -> Plan {
        let time = projection.wanted.iter().any(Option::is_some);
        let mut compiler = Compiler::new(false);
        let (mut headers, mut bodies, mut skips, mut values) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for stream in &schema.streams {
            let (header, known) = compiler.event_header(stream, time);
            headers.push(header);
            for event in &stream.events {
                let roots = [stream.common_context.as_ref(), event.specific_context.as_ref(), event.payload.as_ref()];
                let wanted = projection.wanted.get(bodies.len()).and_then(Option::as_ref);
                values.push(wanted.map_or(0, |paths| paths.len() as u32));
                let body = compiler.body(roots, known, wanted.map_or(&[], Vec::as_slice));
                bodies.push(wanted.map(|_| body.clone()));
                skips.push(body);
            }
        }
        let most_values = values.iter().copied().max().unwrap_or(0) as usize;
        Plan { program: compiler.program, headers, bodies, skips, most_values, values }
    }

    /// The steps for all fields of all classes.
    pub(super) fn whole(schema: &Schema) -> Plan {
        let mut compiler = Compiler::new(true);
        let (mut headers, mut bodies) = (Vec::new(), Vec::new());
        for stream in &schema.streams {
            let (header, known) = compiler.event_header(stream, true);
            headers.push(header);
            for event in &stream.events {
                let roots = [stream.common_context.as_ref(), event.specific_context.as_ref(), event.payload.as_ref()];
                bodies.push(Some(compiler.whole_body(roots, known)));
            }
        }
        Plan { program: compiler.program, headers, bodies, skips: Vec::new(), most_values: 0, values: Vec::new() }
    }

    /// What each node of a plan that shows everything is.
    pub fn nodes(&self) -> &[Node] {
        &self.program.nodes
    }
}

/// The values of one record of a projection.
#[derive(Debug)]
struct Values<'a>(Vec<Value<'a>>);

impl<'a> Values<'a> {
    #[inline(always)]
    fn set(&mut self, node: u32, value: Value<'a>) {
        if let Some(place) = self.0.get_mut(node as usize) {
            *place = value;
        }
    }
}

impl<'a> Sink<'a> for Values<'a> {
    #[inline(always)]
    fn unsigned(&mut self, node: u32, value: u64) {
        self.set(node, Value::Unsigned(value));
    }
    #[inline(always)]
    fn signed(&mut self, node: u32, value: i64) {
        self.set(node, Value::Signed(value));
    }
    fn real(&mut self, node: u32, bits: u64, size: u8) {
        let value = if size == 32 { f64::from(f32::from_bits(bits as u32)) } else { f64::from_bits(bits) };
        self.set(node, Value::Real(value));
    }
    fn text(&mut self, node: u32, bytes: &'a [u8], width: u8, _big_endian: bool) {
        let end = if width == 1 { memchr::memchr(0, bytes).unwrap_or(bytes.len()) } else { bytes.len() };
        self.set(node, Value::Text(bytes.get(..end).unwrap_or(bytes)));
    }
    fn words(&mut self, node: u32, words: Words<'a>) {
        self.set(node, Value::Words(words));
    }
    fn blob(&mut self, node: u32, bytes: &'a [u8]) {
        self.set(node, Value::Words(Words { bytes, width: 1, big_endian: false }));
    }
}

/// Decodes a run of packets of one stream.
#[derive(Debug)]
pub struct Reader<'a> {
    trace: &'a Trace,
    plan: &'a Plan,
    stream: StreamId,
    packets: Range<usize>,
    machine: Machine<'a>,
    values: Values<'a>,
    /// Of the packet being read.
    packet: Current,
    notices: Notices,
}

/// What is fixed within a packet.
#[derive(Clone, Copy, Debug, Default)]
struct Current {
    number: usize,
    class: usize,
    line: Option<Line>,
    cpu: u32,
}

/// An event whose header was read; its body is next.
struct Head {
    class: ClassId,
    at: u64,
}

impl<'a> Reader<'a> {
    pub(super) fn new(trace: &'a Trace, plan: &'a Plan, stream: StreamId, packets: Range<usize>) -> Self {
        let machine = Machine::new(trace.slots());
        let values = Values(vec![Value::Absent; plan.most_values]);
        let (packet, notices) = (Current::default(), Notices::default());
        Reader { trace, plan, stream, packets, machine, values, packet, notices }
    }

    /// The next record of a class of interest; `None` at the end. Damaged packets are left with a notice.
    #[allow(clippy::should_implement_trait)] // a lending iterator: the record borrows the reader's values
    pub fn next(&mut self) -> Option<Record<'_, 'a>> {
        loop {
            let Some(head) = self.head() else { if self.enter() { continue } else { return None } };
            let class = head.class.index();
            let wanted = self.plan.bodies.get(class).and_then(Option::as_ref);
            if let Some(body) = wanted {
                let count = self.plan.values.get(class).copied().unwrap_or(0) as usize;
                if let Some(values) = self.values.0.get_mut(..count) {
                    values.fill(Value::Absent);
                }
                match run_body(&mut self.machine, self.plan, body, &mut self.values) {
                    Ok(()) if self.machine.at > head.at => {
                        let time = self.packet.line.map_or(0, |line| line.ns(self.machine.clock));
                        let values = self.values.0.get(..count).unwrap_or(&[]);
                        return Some(Record { class: head.class, time, cpu: self.packet.cpu, values });
                    }
                    outcome => self.end_body(outcome, head.at),
                }
            } else if let Some(body) = self.plan.skips.get(class) {
                let outcome = run_body(&mut self.machine, self.plan, body, &mut self.values);
                if outcome.is_err() || self.machine.at == head.at {
                    self.end_body(outcome, head.at);
                }
            }
        }
    }

    /// Counts the events of each class into `counts`, without looking at their values.
    pub fn count(&mut self, counts: &mut [u64]) {
        loop {
            let Some(head) = self.head() else { if self.enter() { continue } else { return } };
            if let Some(body) = self.plan.skips.get(head.class.index()) {
                let outcome = run_body(&mut self.machine, self.plan, body, &mut self.values);
                if outcome.is_err() || self.machine.at == head.at {
                    self.end_body(outcome, head.at);
                    continue;
                }
            }
            if let Some(count) = counts.get_mut(head.class.index()) {
                *count += 1;
            }
        }
    }

    /// The next event into `sink`, all of its fields: its class and the full value of the clock.
    pub fn show<S: Sink<'a>>(&mut self, sink: &mut S) -> Option<(ClassId, u64)> {
        loop {
            let Some(head) = self.head() else { if self.enter() { continue } else { return None } };
            let Some(Some(body)) = self.plan.bodies.get(head.class.index()) else { continue };
            match run_body(&mut self.machine, self.plan, body, sink) {
                Ok(()) if self.machine.at > head.at => return Some((head.class, self.machine.clock)),
                outcome => {
                    sink.void();
                    self.end_body(outcome, head.at);
                }
            }
        }
    }

    /// The clock before the first event of each packet, followed from one packet to the next.
    pub(super) fn clocks_at_begin(&mut self) -> Vec<u64> {
        let mut clocks = Vec::new();
        let mut ended = None;
        loop {
            let followed = ended.take().unwrap_or(self.machine.clock);
            if !self.enter() {
                return clocks;
            }
            ended = self.trace.packet(self.stream, self.packet.number).and_then(|(_, place)| place.end);
            self.machine.clock = followed;
            clocks.push(followed);
            while let Some(head) = self.head() {
                let Some(body) = self.plan.skips.get(head.class.index()) else { break };
                let outcome = run_body(&mut self.machine, self.plan, body, &mut self.values);
                if outcome.is_err() || self.machine.at == head.at {
                    self.end_body(outcome, head.at);
                }
            }
        }
    }

    /// Number of the packet that the last record was in.
    pub fn packet(&self) -> usize {
        self.packet.number
    }

    /// What was wrong in the packets read so far.
    pub fn notices(&self) -> Notices {
        self.notices.clone()
    }

    /// Read an event header; `None` at the end of a packet's content.
    #[inline(always)]
    fn head(&mut self) -> Option<Head> {
        let at = self.machine.at;
        if at >= self.machine.limit {
            return None;
        }
        let steps = self.plan.headers.get(self.packet.class).cloned().unwrap_or(0..0);
        if let Err(damage) = self.machine.run(&self.plan.program, steps, &mut self.values) {
            self.leave(damage);
            return None;
        }
        let id = self.machine.slot(Role::EventClass.slot());
        match self.trace.ids.get(self.packet.class).and_then(|ids| ids.find(id)) {
            Some(class) => Some(Head { class, at }),
            None => {
                self.leave(Damage { at, what: What::NoEventClass(id) });
                None
            }
        }
    }

    #[cold]
    fn end_body(&mut self, outcome: Result<(), Damage>, at: u64) {
        self.leave(outcome.err().unwrap_or(Damage { at, what: What::EmptyEvent }));
    }

    /// Leave the packet at its damage.
    #[cold]
    fn leave(&mut self, damage: Damage) {
        self.machine.at = self.machine.limit;
        let (trace, stream, number) = (self.trace, self.stream, self.packet.number);
        self.notices.add(Notice::DamagedPacket, 1, || trace.place_in_words(stream, number, damage));
    }

    /// Go to the next packet; false when there is none.
    fn enter(&mut self) -> bool {
        let Some(number) = self.packets.next() else { return false };
        self.packet.number = number;
        self.machine.limit = 0;
        self.machine.at = 0;
        let Some((file, place)) = self.trace.packet(self.stream, number) else { return true };
        let Place { offset, bytes, content, clock, cpu, .. } = *place;
        let range = offset as usize..(offset + bytes) as usize;
        let Some(data) = file.mapped.bytes().get(range) else { return true };
        self.machine.enter(data);
        let Some(chunk) = self.trace.chunks.get(file.chunk) else { return true };
        match chunk.preludes.read(&mut self.machine) {
            Ok(prelude) => {
                self.machine.clock = clock;
                self.machine.limit = content.min(data.len() as u64 * 8);
                self.packet.class = chunk.streams.get(prelude.stream).copied().unwrap_or(0);
                self.packet.line = self.trace.line(file.chunk, self.packet.class).map(|line| line.common);
                self.packet.cpu = cpu.unwrap_or(0);
            }
            Err(damage) => self.leave(damage),
        }
        true
    }
}

#[inline(always)]
fn run_body<'a, S: Sink<'a>>(machine: &mut Machine<'a>, plan: &Plan, body: &Body, sink: &mut S) -> Result<(), Damage> {
    match body {
        Body::Fixed(bits) => machine.skip(*bits),
        Body::Steps(steps) => machine.run(&plan.program, steps.clone(), sink),
    }
}
