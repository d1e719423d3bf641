//! Decodes records: the loop over packets, events, headers and bodies.
//!
//! A [`CtfPlan`] holds the steps of each class for one projection (or of everything, for writers); a [`CtfReader`] runs
//! them over a run of packets of one stream. A decode error ends its packet; reading goes on with the next packet.

use super::clock::CycleScale;
use super::decode::{DecodeError, DecodeErrorKind, Decoder, Sink, extend};
use super::packet::PacketRange;
use super::plan::CtfPlan;
use super::real::Real;
use super::schema::Role;
use super::steps::Body;
use super::stride::{EventSkip, LocatedHeader};
use super::trace::CtfTrace;
use crate::base::cursor::ByteOrder;
use crate::base::notice::{Notice, Notices};
use crate::base::time::Timestamp;
use crate::input::record::{ClassId, IntegerArray, Record, StreamId, Value};
use crate::input::records::{PassedRecord, Records};
use crate::input::stream::{Passed, Position};
use std::ops::Range;

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
    fn real(&mut self, node: u32, number: Real<'a>) {
        self.set(node, Value::Real(number.value()));
    }
    fn text(&mut self, node: u32, bytes: &'a [u8], width: u8, _byte_order: ByteOrder) {
        let end = if width == 1 { memchr::memchr(0, bytes).unwrap_or(bytes.len()) } else { bytes.len() };
        self.set(node, Value::Text(bytes.get(..end).unwrap_or(bytes)));
    }
    fn words(&mut self, node: u32, words: IntegerArray<'a>) {
        self.set(node, Value::Words(words));
    }
    fn blob(&mut self, node: u32, bytes: &'a [u8]) {
        self.set(node, Value::Words(IntegerArray { bytes, width: 1, byte_order: ByteOrder::Little }));
    }
}

/// The clock of a stream, carried from packet to packet.
pub(super) struct CarriedClocks {
    /// Before the first event of each packet.
    pub clocks: Vec<u64>,
    /// Some event has an earlier clock than the one before it.
    pub jumps_back: bool,
}

/// Decodes a run of packets of one stream.
#[derive(Debug)]
pub struct CtfReader<'a> {
    trace: &'a CtfTrace,
    plan: &'a CtfPlan,
    stream: StreamId,
    packets: Range<usize>,
    decoder: Decoder<'a>,
    values: Values<'a>,
    /// Of the packet being read.
    packet: Current,
    /// Before the event that was shown or stepped over last.
    began: Position,
    notices: Notices,
}

/// Properties of the current packet.
#[derive(Clone, Copy, Debug, Default)]
struct Current {
    number: usize,
    class: usize,
    scale: Option<CycleScale>,
    cpu: u32,
}

/// An event whose header was read; its body is next.
struct Head<'a> {
    class: ClassId,
    /// Position of the header.
    at: u64,
    /// How the end of the event is found without decoding, if its header has a template.
    skip: Option<&'a EventSkip>,
}

impl<'a> Records<'a> for CtfReader<'a> {
    fn next(&mut self) -> Option<Record<'_, 'a>> {
        loop {
            let Some(head) = self.head() else { if self.enter() { continue } else { return None } };
            let Some(wanted) = self.plan.wanted(head.class) else {
                self.skip(&head);
                continue;
            };
            let count = wanted.len();
            if count == 0 {
                if self.skip(&head) {
                    return Some(Record { class: head.class, time: self.time(), cpu: self.packet.cpu, values: &[] });
                }
                continue;
            }
            if let Some(values) = self.values.0.get_mut(..count) {
                values.fill(Value::Absent);
            }
            let Some(body) = self.plan.body(self.packet.class, head.class) else { continue };
            match run_body(&mut self.decoder, body, &mut self.values) {
                Ok(()) if self.decoder.at > head.at => {
                    let (time, cpu) = (self.time(), self.packet.cpu);
                    return Some(Record {
                        class: head.class,
                        time,
                        cpu,
                        values: self.values.0.get(..count).unwrap_or(&[]),
                    });
                }
                outcome => self.end_body(outcome, head.at),
            }
        }
    }

    fn seek(&mut self, from: Timestamp, passed: &mut Passed, checkpoint: impl Fn(ClassId) -> bool) -> Position {
        loop {
            let here = self.position();
            let Some(head) = self.head() else { return here };
            let time = self.time();
            if time >= from {
                self.go(here);
                return here;
            }
            if self.plan.wanted(head.class).is_some() {
                passed.meet(time, head.class, here, &checkpoint);
            }
            if !self.skip(&head) {
                return here;
            }
        }
    }

    fn step(&mut self) -> Option<PassedRecord> {
        loop {
            self.began = self.position();
            let Some(head) = self.head() else { if self.enter() { continue } else { return None } };
            if self.skip(&head) {
                return Some(PassedRecord { class: head.class, clock: self.decoder.clock });
            }
        }
    }

    fn resume(&mut self, position: Option<Position>) {
        if self.enter() {
            position.into_iter().for_each(|position| self.go(position));
        }
    }

    fn began(&self) -> Position {
        self.began
    }

    fn position(&self) -> Position {
        let Decoder { at, clock, last_order, .. } = self.decoder;
        // At a byte boundary the byte order may change, so the order of the last number does not matter there.
        Position { at, clock, last_order: if at % 8 == 0 { ByteOrder::Little } else { last_order } }
    }

    fn go(&mut self, position: Position) {
        let Position { at, clock, last_order } = position;
        (self.decoder.at, self.decoder.clock, self.decoder.last_order) = (at, clock, last_order);
    }

    fn count(&mut self, counts: &mut [u64]) {
        loop {
            self.stride(counts);
            let Some(head) = self.head() else { if self.enter() { continue } else { return } };
            if self.skip(&head)
                && let Some(count) = counts.get_mut(head.class.index())
            {
                *count += 1;
            }
        }
    }

    fn show<S: Sink<'a>>(&mut self, sink: &mut S) -> Option<PassedRecord> {
        loop {
            self.began = self.position();
            let Some(head) = self.head() else { if self.enter() { continue } else { return None } };
            let Some(body) = self.plan.body(self.packet.class, head.class) else { continue };
            match run_body(&mut self.decoder, body, sink) {
                Ok(()) if self.decoder.at > head.at => {
                    return Some(PassedRecord { class: head.class, clock: self.decoder.clock });
                }
                outcome => {
                    sink.void();
                    self.end_body(outcome, head.at);
                }
            }
        }
    }

    fn packet(&self) -> usize {
        self.packet.number
    }

    fn notices(&self) -> Notices {
        self.notices.clone()
    }
}

impl<'a> CtfReader<'a> {
    pub fn new(trace: &'a CtfTrace, plan: &'a CtfPlan, stream: StreamId, packets: Range<usize>) -> Self {
        let decoder = Decoder::new(trace.slots());
        let values = Values(vec![Value::Absent; plan.most_values()]);
        let (packet, notices) = (Current::default(), Notices::default());
        let began = Position::BEGIN;
        CtfReader { trace, plan, stream, packets, decoder, values, packet, began, notices }
    }

    /// The time of the event whose header was read last.
    #[inline(always)]
    fn time(&self) -> Timestamp {
        self.packet.scale.map_or(Timestamp::ZERO, |scale| scale.ns(self.decoder.clock))
    }

    /// Count events as long as each has a template and ends before the content does. The caller decodes the event at
    /// which this stops.
    fn stride(&mut self, counts: &mut [u64]) {
        let Some(header) = self.plan.headers.get(self.packet.class) else { return };
        let Some(locator) = &header.locator else { return };
        let (data, limit) = (self.decoder.data, self.decoder.limit);
        let mut at = self.decoder.at;
        while at < limit {
            let Some(LocatedHeader { start, id }) = locator.enter(data, at, limit) else { break };
            let template = header.templates.get(id as usize).and_then(|template| template.get()?.as_ref());
            let Some(template) = template else { break };
            let Some(end) = template.skip.end(data, start, start + template.bits, limit) else { break };
            let Some(count) = counts.get_mut(template.class.index()) else { break };
            *count += 1;
            at = end;
        }
        self.decoder.at = at;
    }

    /// The clock before the first event of each packet, carried from one packet to the next, and whether it jumps back
    /// from one event to another.
    pub(super) fn clocks_at_begin(&mut self) -> CarriedClocks {
        let (mut clocks, mut jumps_back, mut last) = (Vec::new(), false, 0);
        let mut ended = None;
        loop {
            let followed = ended.take().unwrap_or(self.decoder.clock);
            if !self.enter() {
                return CarriedClocks { clocks, jumps_back };
            }
            ended = self.trace.packet(self.stream, self.packet.number).and_then(|(_, place)| place.end);
            self.decoder.clock = followed;
            clocks.push(followed);
            while let Some(head) = self.head() {
                jumps_back |= self.decoder.clock < last;
                last = self.decoder.clock;
                self.skip(&head);
            }
        }
    }

    /// Read an event header; `None` at the end of a packet's content.
    #[inline(always)]
    fn head(&mut self) -> Option<Head<'a>> {
        let at = self.decoder.at;
        if at >= self.decoder.limit {
            return None;
        }
        let plan = self.plan;
        let header = plan.headers.get(self.packet.class)?;
        let ids = self.trace.tables.ids.get(self.packet.class)?;
        if let Some(locator) = &header.locator
            && let Some(LocatedHeader { start, id }) = locator.enter(self.decoder.data, at, self.decoder.limit)
            && let Some(template) = plan.template(self.packet.class, header, id, ids)
            && start + template.bits <= self.decoder.limit
        {
            if let Some(stamp) = template.stamp
                && let Some(value) = stamp.read(self.decoder.data, start)
            {
                self.decoder.clock = extend(self.decoder.clock, value, stamp.size);
            }
            self.decoder.follow_order(locator.order);
            self.decoder.at = start + template.bits;
            return Some(Head { class: template.class, at: start, skip: Some(&template.skip) });
        }
        if let Err(error) = self.decoder.run(&header.program, header.program.all(), &mut self.values) {
            self.leave(error);
            return None;
        }
        let id = self.decoder.slot(Role::EventClass.slot());
        match ids.find(id) {
            Some(class) => Some(Head { class, at, skip: None }),
            None => {
                self.leave(DecodeError { at, kind: DecodeErrorKind::NoEventClass(id) });
                None
            }
        }
    }

    /// Step over the body of an event; false where it is damaged.
    #[inline(always)]
    fn skip(&mut self, head: &Head<'a>) -> bool {
        let (data, at, limit) = (self.decoder.data, self.decoder.at, self.decoder.limit);
        if let Some(end) = head.skip.and_then(|skip| skip.end(data, head.at, at, limit)) {
            self.decoder.at = end;
            return true;
        }
        let Some(body) = self.plan.body(self.packet.class, head.class) else { return false };
        let outcome = run_body(&mut self.decoder, body, &mut self.values);
        if outcome.is_ok() && self.decoder.at > head.at {
            return true;
        }
        self.end_body(outcome, head.at);
        false
    }

    #[cold]
    fn end_body(&mut self, outcome: Result<(), DecodeError>, at: u64) {
        self.leave(outcome.err().unwrap_or(DecodeError { at, kind: DecodeErrorKind::EmptyEvent }));
    }

    /// Leave the packet at its error.
    #[cold]
    fn leave(&mut self, error: DecodeError) {
        self.decoder.at = self.decoder.limit;
        let (trace, stream, number) = (self.trace, self.stream, self.packet.number);
        self.notices.add(Notice::DamagedPacket, 1, || trace.place_in_words(stream, number, error));
    }

    /// Go to the next packet; false when there is none.
    fn enter(&mut self) -> bool {
        let Some(number) = self.packets.next() else { return false };
        self.packet.number = number;
        self.decoder.limit = 0;
        self.decoder.at = 0;
        let Some((file, place)) = self.trace.packet(self.stream, number) else { return true };
        let PacketRange { offset, bytes, content, clock, .. } = *place;
        let range = offset as usize..(offset + bytes) as usize;
        let Some(data) = file.mapped.bytes().get(range) else { return true };
        self.decoder.enter(data);
        let Some(chunk) = self.trace.chunks.get(file.chunk) else { return true };
        match chunk.headers.read(&mut self.decoder) {
            Ok(header) => {
                self.decoder.clock = clock;
                self.decoder.limit = content.min(data.len() as u64 * 8);
                self.packet.class = chunk.streams.get(header.stream).copied().unwrap_or(0);
                self.packet.scale = self.trace.chunk_clock(file.chunk, self.packet.class).map(|clock| clock.common);
                let cpu = header.get(Role::Cpu).and_then(|cpu| u32::try_from(cpu).ok());
                self.packet.cpu = cpu.unwrap_or(0);
            }
            Err(error) => self.leave(error),
        }
        true
    }
}

#[inline(always)]
fn run_body<'a, S: Sink<'a>>(decoder: &mut Decoder<'a>, body: &Body, sink: &mut S) -> Result<(), DecodeError> {
    match body {
        Body::Fixed(bits) => decoder.skip(*bits),
        Body::Steps(program) => {
            decoder.begin_body();
            decoder.run(program, program.all(), sink)
        }
    }
}
