//! The decoder that runs decode steps over the bytes of a packet.
//!
//! The decoder knows bits, lengths and selectors; only the sink knows the use of a value. Every read is checked against
//! the end of the packet's content, so hostile data ends in [`DecodeError`]. A run of steps allocates nothing.
//!
//! Time is bounded by the size of the data: each step moves forward or is one of a class's finite list, and an event
//! may have at most a constant number of elements without size.

use super::real::Real;
use super::schema::{Slot, TextUnit};
use super::steps::{BitOrder, ElementKind, NodeIx, Program, SlotIx, Step, Times};
use crate::base::cursor::{ByteOrder, bits};
use crate::input::record::IntegerArray;
use std::num::NonZeroU8;
use std::ops::Range;

/// Elements without size that an event may have. A tracer has no reason to write any; a corrupt length may ask for
/// 2^64.
const MOST_EMPTY: u64 = 1 << 16;

/// The error that ends the reading of a packet, and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Bits from the beginning of the packet.
    pub at: u64,
    /// Expected and found values.
    pub kind: DecodeErrorKind,
}

/// The kinds of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeErrorKind {
    /// A field passes the end of the content.
    #[error("a field passes the end of the packet's content, which is at bit {0}")]
    BeyondContent(u64),
    /// A field passes the end of the packet, or of the file before it.
    #[error("a field passes the end of the packet, which is at bit {0}")]
    BeyondPacket(u64),
    /// The byte order changes inside a byte.
    #[error("the byte order changes inside a byte")]
    OrderInsideByte,
    /// No option of a variant has the selector's value.
    #[error("no option of the variant has the selector {0}")]
    NoOption(i64),
    /// A number of variable length is longer than 64 bits.
    #[error("a number of variable length has more than 64 bits")]
    LongNumber,
    /// Elements without size.
    #[error("there are {0} elements without size: an event has {MOST_EMPTY} at most")]
    Endless(u64),
    /// The event is of no known class.
    #[error("no event class has the id {0}")]
    NoEventClass(u64),
    /// The packet is of no known class.
    #[error("no stream class has the id {0}")]
    NoStreamClass(u64),
    /// An event takes no bits.
    #[error("an event has no bits, so a packet would hold infinitely many")]
    EmptyEvent,
    /// The magic number is wrong.
    #[error("the magic number is {0:#x}, not 0xc1fc1fc1")]
    Magic(u64),
    /// Sizes contradict each other.
    #[error("the packet says it has {content} bits of content in {packet} bits; {left} bits of file are left")]
    Sizes {
        /// Bits of content.
        content: u64,
        /// Bits of the packet.
        packet: u64,
        /// Bits of file from the beginning of the packet.
        left: u64,
    },
}

/// Takes the values of the fields that a plan reads, in order.
pub trait Sink<'a> {
    /// An unsigned number.
    fn unsigned(&mut self, node: u32, value: u64);
    /// A signed number.
    fn signed(&mut self, node: u32, value: i64);
    /// A floating point number.
    fn real(&mut self, node: u32, number: Real<'a>);
    /// Text, not yet cut; of units of 1, 2 or 4 bytes.
    fn text(&mut self, node: u32, bytes: &'a [u8], width: u8, byte_order: ByteOrder);
    /// Integers side by side.
    fn words(&mut self, node: u32, words: IntegerArray<'a>);
    /// Bytes.
    fn blob(&mut self, node: u32, bytes: &'a [u8]);
    /// The uuid in a packet header.
    fn uuid(&mut self, _bytes: &'a [u8]) {}
    /// A compound begins.
    fn open(&mut self, _node: u32) {}
    /// An element of the innermost array begins.
    fn element(&mut self, _first: bool) {}
    /// A compound ends.
    fn close(&mut self, _node: u32) {}
    /// A field is missing: an empty optional, or a structure that the class does not have.
    fn missing(&mut self, _node: u32) {}
    /// The event could not be read to its end: its values must be discarded.
    fn void(&mut self) {}
}

/// Reads one packet.
#[derive(Clone, Debug)]
pub(super) struct Decoder<'a> {
    /// The packet's bytes.
    pub(super) data: &'a [u8],
    /// Position of the next field, in bits.
    pub(super) at: u64,
    /// End of the content, in bits.
    pub(super) limit: u64,
    /// Numbers kept for later fields.
    pub(super) slots: Vec<u64>,
    pub(super) clock: u64,
    last: u64,
    /// Bits of the last number of variable length.
    last_size: u8,
    pub(super) last_order: ByteOrder,
    /// Elements without size so far.
    empty: u64,
}

impl<'a> Decoder<'a> {
    /// A decoder with this many slots, before any packet.
    pub(super) fn new(slots: usize) -> Self {
        let slots = vec![0; slots];
        Decoder {
            data: &[],
            at: 0,
            limit: 0,
            slots,
            clock: 0,
            last: 0,
            last_size: 0,
            last_order: ByteOrder::Little,
            empty: 0,
        }
    }

    /// At the beginning of a packet; all of it may be content.
    pub(super) fn enter(&mut self, data: &'a [u8]) {
        (self.data, self.at, self.limit, self.empty) = (data, 0, data.len() as u64 * 8, 0);
    }

    /// At the beginning of an event's body.
    #[inline(always)]
    pub(super) fn begin_body(&mut self) {
        self.empty = 0;
    }

    /// The value of a slot.
    pub(super) fn slot(&self, slot: Slot) -> u64 {
        self.slots.get(slot as usize).copied().unwrap_or(0)
    }

    #[inline(always)]
    fn save(&mut self, slot: Slot, value: u64) {
        if let Some(place) = self.slots.get_mut(slot as usize) {
            *place = value;
        }
    }

    #[cold]
    fn beyond(&self) -> DecodeError {
        let packet = self.data.len() as u64 * 8;
        let what = if self.limit < packet {
            DecodeErrorKind::BeyondContent(self.limit)
        } else {
            DecodeErrorKind::BeyondPacket(packet)
        };
        DecodeError { at: self.at, kind: what }
    }

    /// Notes the byte order of the numbers that another reader read up to this position.
    #[inline(always)]
    pub(super) fn follow_order(&mut self, byte_order: Option<ByteOrder>) {
        self.last_order = byte_order.unwrap_or(self.last_order);
    }

    #[inline(always)]
    pub(super) fn skip(&mut self, bits: u64) -> Result<(), DecodeError> {
        match self.at.checked_add(bits) {
            Some(end) if end <= self.limit => {
                self.at = end;
                Ok(())
            }
            _ => Err(self.beyond()),
        }
    }

    /// The end of a number of `size` bits that begins at `start`, if it fits the content and its byte order may begin
    /// there.
    #[inline(always)]
    fn end_of_number(&mut self, start: u64, size: u64, order: BitOrder) -> Result<u64, DecodeError> {
        let end = start + size;
        if end > self.limit {
            return Err(self.beyond());
        }
        if order.inside_byte {
            if start & 7 != 0 && order.byte_order != self.last_order {
                return Err(DecodeError { at: start, kind: DecodeErrorKind::OrderInsideByte });
            }
            self.last_order = order.byte_order;
        }
        Ok(end)
    }

    #[inline(always)]
    fn number(&mut self, lead: u32, size: u8, order: BitOrder) -> Result<u64, DecodeError> {
        let start = self.at + u64::from(lead);
        let end = self.end_of_number(start, u64::from(size), order)?;
        let Some(mut value) = bits(self.data, start, u32::from(size), order.byte_order) else {
            return Err(self.beyond());
        };
        if order.reversed {
            value = value.reverse_bits() >> (64 - u32::from(size));
        }
        self.at = end;
        Ok(value)
    }

    fn real(&mut self, lead: u32, size: u16, order: BitOrder) -> Result<Real<'a>, DecodeError> {
        let start = self.at + u64::from(lead);
        self.at = self.end_of_number(start, u64::from(size), order)?;
        Ok(Real { data: self.data, at: start, size, byte_order: order.byte_order, reversed: order.reversed })
    }

    /// Hands a number that was read to its slot and to the sink.
    #[inline(always)]
    fn put<S: Sink<'a>>(&mut self, value: u64, signed: bool, save: Option<SlotIx>, node: Option<NodeIx>, sink: &mut S) {
        if let Some(slot) = save {
            self.save(slot.get(), value);
        }
        if let Some(node) = node {
            if signed { sink.signed(node.get(), value as i64) } else { sink.unsigned(node.get(), value) }
        }
    }

    /// The next `n` bytes; the position is on a byte boundary.
    fn bytes(&mut self, n: u64) -> Result<&'a [u8], DecodeError> {
        let start = self.at;
        let bits = n.checked_mul(8).ok_or_else(|| self.beyond())?;
        self.skip(bits)?;
        let place = |bits: u64| usize::try_from(bits / 8).unwrap_or(usize::MAX);
        self.data.get(place(start)..place(start + bits)).ok_or_else(|| self.beyond())
    }

    #[inline(always)]
    fn times(&self, times: Times) -> u64 {
        match times {
            Times::Fixed(n) => u64::from(n),
            Times::Slot(slot) => self.slot(slot),
        }
    }

    /// Run some steps of a program.
    pub(super) fn run<S: Sink<'a>>(
        &mut self,
        program: &Program,
        range: Range<u32>,
        sink: &mut S,
    ) -> Result<(), DecodeError> {
        let mut next = range.start;
        while next < range.end {
            let Some(step) = program.steps.get(next as usize) else { break };
            next += 1;
            match *step {
                Step::Skip(bits) => self.skip(bits)?,
                Step::Align(mask) => match self.at.checked_add(self.at.wrapping_neg() & mask) {
                    Some(at) if at <= self.limit => self.at = at,
                    _ => return Err(self.beyond()),
                },
                Step::Bits { lead, node, save, size, signed, order } => {
                    self.last = self.number(lead, size, order)?;
                    let value = if signed { sign_extended(self.last, size) } else { self.last };
                    self.put(value, signed, save, node, sink);
                }
                Step::Save(slot) => self.save(slot, self.last),
                Step::Clock(size) => {
                    let size = size.map_or(self.last_size, NonZeroU8::get);
                    self.clock = extend(self.clock, self.last, size);
                }
                Step::Variable { node, save, signed } => {
                    self.last = self.variable(signed)?;
                    self.put(self.last, signed, save, node, sink);
                }
                Step::Real { lead, node, size, order } => sink.real(node.get(), self.real(lead, size, order)?),
                Step::Text { node, unit } => {
                    let text = self.text(unit)?;
                    if let Some(node) = node {
                        sink.text(node.get(), text, unit.bytes(), unit.byte_order());
                    }
                }
                Step::Run { node, times, width, elements } => {
                    let bytes = self.bytes(self.times(times).saturating_mul(u64::from(width)))?;
                    match elements {
                        ElementKind::Words { byte_order } => {
                            sink.words(node.get(), IntegerArray { bytes, width, byte_order });
                        }
                        ElementKind::Text(unit) => sink.text(node.get(), bytes, unit.bytes(), unit.byte_order()),
                        ElementKind::Blob => sink.blob(node.get(), bytes),
                    }
                }
                Step::Uuid { times, width } => {
                    sink.uuid(self.bytes(self.times(times).saturating_mul(u64::from(width)))?);
                }
                Step::SkipRun { times, bits } => self.skip(self.times(times).saturating_mul(bits))?,
                Step::Loop { node, times, end } => {
                    self.repeat(program, next..end.get(), self.times(times), node, sink)?;
                    next = end.get();
                }
                Step::Select { slot, first, count, signed, otherwise } => {
                    let raw = self.slot(slot);
                    let value = if signed { raw ^ (1 << 63) } else { raw };
                    let cases = program.cases.get(first as usize..(first + count) as usize).unwrap_or(&[]);
                    let case = cases.iter().find(|c| c.first <= value && value <= c.last);
                    let Some(target) = case.map(|case| case.target).or(otherwise) else {
                        return Err(DecodeError { at: self.at, kind: DecodeErrorKind::NoOption(raw as i64) });
                    };
                    next = target.get();
                }
                Step::Jump(target) => next = target.get(),
                Step::Open(node) => sink.open(node.get()),
                Step::Close(node) => sink.close(node.get()),
                Step::Missing(node) => sink.missing(node.get()),
            }
        }
        Ok(())
    }

    fn repeat<S: Sink<'a>>(
        &mut self,
        program: &Program,
        body: Range<u32>,
        times: u64,
        node: Option<NodeIx>,
        sink: &mut S,
    ) -> Result<(), DecodeError> {
        if let Some(node) = node {
            sink.open(node.get());
        }
        for i in 0..times {
            let (before, empty) = (self.at, self.empty);
            if node.is_some() {
                sink.element(i == 0);
            }
            self.run(program, body.clone(), sink)?;
            if self.at == before {
                // An element that read nothing reads nothing again, so the rest are counted without being read.
                let each = self.empty - empty + 1;
                let all = each.saturating_mul(times - i);
                if all > MOST_EMPTY - empty {
                    return Err(DecodeError { at: self.at, kind: DecodeErrorKind::Endless(times) });
                }
                if node.is_none() {
                    self.empty = empty + all;
                    break;
                }
                self.empty = empty + each;
            }
        }
        Ok(())
    }

    /// Seven bits a byte, least significant first; the high bit says that more follow.
    fn variable(&mut self, signed: bool) -> Result<u64, DecodeError> {
        let (mut value, mut shift) = (0u64, 0u32);
        loop {
            let at = self.at;
            let Some([byte]) = self.bytes(1)?.first_chunk::<1>().copied() else { return Err(self.beyond()) };
            let part = u64::from(byte & 0x7f);
            let last = byte & 0x80 == 0;
            // The tenth byte holds one bit of a 64-bit number. In a signed one its other bits repeat the sign; an
            // unsigned one whose tenth byte is 0 is longer than it needs to be.
            let fits = shift < 63 || (shift == 63 && if signed { matches!(part, 0 | 0x7f) } else { part == 1 });
            if !fits {
                return Err(DecodeError { at, kind: DecodeErrorKind::LongNumber });
            }
            value |= part << shift;
            shift += 7;
            if last {
                self.last_size = shift.min(64) as u8;
                let unused = 64u32.saturating_sub(shift);
                return Ok(if signed { ((value << unused) as i64 >> unused) as u64 } else { value });
            }
        }
    }

    /// Text up to and without its NUL unit.
    fn text(&mut self, unit: TextUnit) -> Result<&'a [u8], DecodeError> {
        let place = |bits: u64| usize::try_from(bits / 8).unwrap_or(usize::MAX);
        let rest = self.data.get(place(self.at)..place(self.limit)).unwrap_or(&[]);
        let width = usize::from(unit.bytes());
        let end = match unit {
            TextUnit::Byte => memchr::memchr(0, rest),
            _ => rest.chunks_exact(width).position(|u| u.iter().all(|b| *b == 0)).map(|n| n * width),
        };
        match end {
            Some(end) => {
                self.at += (end + width) as u64 * 8;
                Ok(rest.get(..end).unwrap_or(&[]))
            }
            None => Err(self.beyond()),
        }
    }
}

/// The low `size` bits (1 to 64) as a number in two's complement.
#[inline(always)]
fn sign_extended(value: u64, size: u8) -> u64 {
    let unused = 64 - u32::from(size);
    ((value << unused) as i64 >> unused) as u64
}

/// The clock after a time stamp of `size` bits: it never goes back, so smaller low bits mean that they wrapped once.
#[inline(always)]
pub(super) fn extend(clock: u64, stamp: u64, size: u8) -> u64 {
    if size >= 64 {
        return stamp;
    }
    let span = 1u64 << size;
    let low = clock & (span - 1);
    let high = clock - low;
    if stamp < low { high.wrapping_add(span) | stamp } else { high | stamp }
}
