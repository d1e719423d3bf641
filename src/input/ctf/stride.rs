//! Goes from one event to the next with as few reads as possible.
//!
//! Most headers begin with a small integer, the event id, which decides the places of all other fields of the header:
//! LTTng's compact and large headers, except their extended forms, and every header that is a plain structure. So the
//! header is evaluated once for each id that occurs ([`IdLocator::shape`]): its size, the event's class, where the time
//! stamp is. An event whose body is unwanted is skipped by one addition, or by a few [`FieldSkip`]s over text and
//! sequences.
//!
//! No function here reports damage: where data do not fit, the caller runs the decode steps, which report the error and
//! its place.

use super::compile::TimeStamps;
use super::orders::ByteOrders;
use super::schema::{Field, Kind, Role, Slot, Source, StreamClass, TextUnit, ValueRange};
use super::steps::{Body, Program, Step, Times};
use crate::base::cursor::{ByteOrder, bits};
use crate::input::record::ClassId;
use smallvec::SmallVec;

/// An unsigned number at a fixed place after the beginning of a header.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stamp {
    lead: u64,
    pub(super) size: u8,
    byte_order: ByteOrder,
}

impl Stamp {
    /// The number in the header that begins at bit `start`.
    #[inline(always)]
    pub(super) fn read(&self, data: &[u8], start: u64) -> Option<u64> {
        bits(data, start + self.lead, u32::from(self.size), self.byte_order)
    }
}

/// How a header with a small id is read.
#[derive(Debug)]
pub(super) struct IdLocator {
    /// Headers begin at multiples of `mask + 1`.
    mask: u64,
    /// The event id; `None` where there is but one class.
    id: Option<Stamp>,
    /// The clock to follow.
    clock: Option<usize>,
    /// The byte order of all its numbers, where the fields after the header depend on it.
    pub(super) order: Option<ByteOrder>,
}

/// A header once its id is known.
pub(super) struct HeaderLayout {
    pub(super) bits: u64,
    pub(super) stamp: Option<Stamp>,
    /// Slots that it would fill and that something in the header refers to.
    pub(super) keeps: SmallVec<[Slot; 4]>,
}

/// The header and body of the events with one id.
#[derive(Debug)]
pub(super) struct HeaderTemplate {
    pub(super) class: ClassId,
    /// Bits of the header.
    pub(super) bits: u64,
    /// The time stamp to follow.
    pub(super) stamp: Option<Stamp>,
    pub(super) skip: EventSkip,
}

/// How an event is skipped whose values are not wanted.
#[derive(Debug)]
pub(super) enum EventSkip {
    /// So many bits from the beginning of the header.
    Fixed(u64),
    /// By these skips, from the end of the header.
    Fields(Box<[FieldSkip]>),
    /// By running the steps of the class.
    No,
}

/// One step of skipping a body. Sizes are in bits.
#[derive(Clone, Copy, Debug)]
pub(super) enum FieldSkip {
    Forward(u64),
    Align(u64),
    /// Forward, then read a length.
    Length {
        lead: u32,
        size: u8,
        byte_order: ByteOrder,
        into: u8,
    },
    /// Skip as many elements as a length says.
    Elements {
        from: u8,
        bits: u64,
    },
    /// Skip text and its NUL.
    Text,
}

/// The number of lengths that skipping a body can keep.
const LENGTHS: usize = 4;

/// Walks a header, up to its id or with a known id.
struct Walk {
    at: u64,
    align: u64,
    /// `None`: stop at the id.
    id: Option<u64>,
    clock: Option<usize>,
    found: Option<Stamp>,
    stamp: Option<Stamp>,
    keeps: SmallVec<[Slot; 4]>,
    /// Slots that hold the id.
    ids: SmallVec<[Slot; 4]>,
    orders: [bool; 2],
}

/// The walk ends: at the id, or because the header is of another kind.
struct End;

/// An event header in a packet.
pub(super) struct LocatedHeader {
    pub(super) start: u64,
    /// The event id in it; 0 if the stream has no ids.
    pub(super) id: u64,
}

impl IdLocator {
    /// The locator for the headers of a stream class, if they begin with a small id. With mixed byte orders the fields
    /// after the header depend on the byte order of its last number.
    pub(super) fn new(stream: &StreamClass, stamps: TimeStamps, orders: ByteOrders) -> Option<IdLocator> {
        let header = stream.event_header.as_ref()?;
        let clock = stream.clock.filter(|_| stamps == TimeStamps::Followed);
        let mut walk = Walk::new(header, None, clock);
        let ended = walk.field(header).is_err();
        // Either the walk stopped at the id, or it went through a header without id.
        if ended != walk.found.is_some() {
            return None;
        }
        let mask = header.align.checked_sub(1)?;
        let mut locator = IdLocator { mask, id: walk.found, clock, order: None };
        if orders == ByteOrders::Mixed {
            let mut whole = Walk::new(header, None, clock);
            whole.orders_of(header);
            locator.order = match whole.orders {
                [true, false] if header.align >= 8 => Some(ByteOrder::Little),
                [false, true] if header.align >= 8 => Some(ByteOrder::Big),
                _ => return None,
            };
        }
        Some(locator)
    }

    /// The header at or after `at`; `None` if its id does not end before `limit`.
    #[inline(always)]
    pub(super) fn enter(&self, data: &[u8], at: u64, limit: u64) -> Option<LocatedHeader> {
        let start = at.checked_add(at.wrapping_neg() & self.mask)?;
        let Some(id) = self.id else { return Some(LocatedHeader { start, id: 0 }) };
        if start + id.lead + u64::from(id.size) > limit {
            return None;
        }
        Some(LocatedHeader { start, id: id.read(data, start)? })
    }

    /// The header with a given id.
    pub(super) fn shape(&self, stream: &StreamClass, id: u64) -> Option<HeaderLayout> {
        let header = stream.event_header.as_ref()?;
        let mut walk = Walk::new(header, Some(id), self.clock);
        walk.field(header).ok()?;
        let Walk { at, stamp, keeps, .. } = walk;
        (at > 0).then_some(HeaderLayout { bits: at, stamp, keeps })
    }
}

impl Walk {
    fn new(header: &Field, id: Option<u64>, clock: Option<usize>) -> Walk {
        let (keeps, ids) = (SmallVec::new(), SmallVec::new());
        Walk { at: 0, align: header.align, id, clock, found: None, stamp: None, keeps, ids, orders: [false; 2] }
    }

    fn forward(&mut self, bits: u64) -> Result<(), End> {
        self.at = self.at.checked_add(bits).filter(|at| *at < 1 << 20).ok_or(End)?;
        Ok(())
    }

    fn field(&mut self, field: &Field) -> Result<(), End> {
        // A stricter alignment than the whole header's depends on where the event is.
        if field.align > self.align {
            return Err(End);
        }
        self.at = self.at.next_multiple_of(field.align);
        match &field.kind {
            Kind::Bits(bits) => {
                let here = Stamp { lead: self.at, size: bits.size, byte_order: bits.byte_order };
                let special = bits.saves.contains(&Role::EventClass.slot());
                let follows = bits.clock.is_some() && bits.clock == self.clock;
                if (special || follows) && (bits.reversed || bits.signed) {
                    return Err(End);
                }
                if special {
                    // Extended headers, which have a second id, are read by the decode steps.
                    if self.found.replace(here).is_some() || follows {
                        self.found = None;
                        return Err(End);
                    }
                    if self.id.is_none() {
                        return Err(End);
                    }
                    self.ids.extend(bits.saves.iter().copied());
                } else if follows && self.stamp.replace(here).is_some() {
                    return Err(End);
                }
                self.keeps.extend(bits.saves.iter().copied().filter(|slot| *slot >= Role::COUNT));
                self.forward(bits.size.into())
            }
            Kind::Real { size, .. } => self.forward((*size).into()),
            Kind::Struct(members) => members.iter().try_for_each(|member| self.field(&member.field)),
            Kind::Variant { by: Source::Slot(slot), signed: false, options } if self.ids.contains(slot) => {
                let chosen = options.iter().find(|option| self.holds(&option.ranges));
                self.field(&chosen.ok_or(End)?.field)
            }
            Kind::Optional { by: Source::Slot(slot), signed: false, ranges: Some(ranges), field }
                if self.ids.contains(slot) =>
            {
                if self.holds(ranges) {
                    self.field(field)
                } else {
                    Ok(())
                }
            }
            _ => Err(End),
        }
    }

    fn holds(&self, ranges: &[ValueRange]) -> bool {
        self.id.is_some_and(|id| ranges.iter().any(|range| range.contains(id.into())))
    }

    /// The byte orders of all numbers.
    fn orders_of(&mut self, field: &Field) {
        match &field.kind {
            Kind::Bits(bits) => self.orders[bits.byte_order as usize] = true,
            Kind::Real { byte_order, .. } => self.orders[*byte_order as usize] = true,
            Kind::Struct(members) => members.iter().for_each(|member| self.orders_of(&member.field)),
            Kind::Variant { options, .. } => options.iter().for_each(|option| self.orders_of(&option.field)),
            Kind::Optional { field, .. } => self.orders_of(field),
            _ => {}
        }
    }
}

impl EventSkip {
    /// How a body after a header of `header` bits is skipped.
    pub(super) fn over(body: &Body, header: u64) -> EventSkip {
        match body {
            Body::Fixed(bits) => header.checked_add(*bits).map_or(EventSkip::No, EventSkip::Fixed),
            Body::Steps(program) => field_skips(program).map_or(EventSkip::No, EventSkip::Fields),
        }
    }

    /// The end of the event whose header begins at `start` and ends at `at`; `None` where the end passes `limit`, or
    /// can only be found by the decode steps.
    #[inline(always)]
    pub(super) fn end(&self, data: &[u8], start: u64, at: u64, limit: u64) -> Option<u64> {
        match self {
            EventSkip::Fixed(bits) => start.checked_add(*bits).filter(|end| *end <= limit),
            EventSkip::Fields(field_skips) => follow(field_skips, data, at, limit),
            EventSkip::No => None,
        }
    }
}

/// The skips over a body; `None` where one of its steps has no equivalent.
fn field_skips(program: &Program) -> Option<Box<[FieldSkip]>> {
    let mut lengths = Lengths::default();
    program.steps.iter().map(|step| lengths.skip(step)).collect()
}

/// The slots of the lengths that a body reads.
#[derive(Default)]
struct Lengths(SmallVec<[Slot; LENGTHS]>);

impl Lengths {
    fn skip(&mut self, step: &Step) -> Option<FieldSkip> {
        Some(match *step {
            Step::Skip(bits) => FieldSkip::Forward(bits),
            Step::Align(mask) => FieldSkip::Align(mask),
            Step::Bits { lead, save, size, order, .. } if !order.reversed && !order.inside_byte => match save {
                None => FieldSkip::Forward(u64::from(lead) + u64::from(size)),
                Some(slot) => {
                    let into = self.add(slot.get())?;
                    FieldSkip::Length { lead, size, byte_order: order.byte_order, into }
                }
            },
            Step::SkipRun { times: Times::Slot(slot), bits } => FieldSkip::Elements { from: self.find(slot)?, bits },
            Step::Run { times: Times::Slot(slot), width, .. } => {
                FieldSkip::Elements { from: self.find(slot)?, bits: u64::from(width) * 8 }
            }
            Step::Text { unit: TextUnit::Byte, .. } => FieldSkip::Text,
            _ => return None,
        })
    }

    fn find(&self, slot: Slot) -> Option<u8> {
        self.0.iter().position(|known| *known == slot).map(|at| at as u8)
    }

    fn add(&mut self, slot: Slot) -> Option<u8> {
        if let Some(at) = self.find(slot) {
            return Some(at);
        }
        let at = self.0.len();
        (at < LENGTHS).then(|| {
            self.0.push(slot);
            at as u8
        })
    }
}

#[inline]
fn follow(field_skips: &[FieldSkip], data: &[u8], mut at: u64, limit: u64) -> Option<u64> {
    let mut lengths = [0u64; LENGTHS];
    for skip in field_skips {
        match *skip {
            FieldSkip::Forward(bits) => at = at.checked_add(bits)?,
            FieldSkip::Align(mask) => at = at.checked_add(at.wrapping_neg() & mask)?,
            FieldSkip::Length { lead, size, byte_order, into } => {
                let start = at.checked_add(u64::from(lead))?;
                at = start.checked_add(u64::from(size))?;
                if at > limit {
                    return None;
                }
                *lengths.get_mut(usize::from(into))? = bits(data, start, u32::from(size), byte_order)?;
            }
            FieldSkip::Elements { from, bits } => {
                at = at.checked_add(lengths.get(usize::from(from))?.checked_mul(bits)?)?;
            }
            FieldSkip::Text => {
                let rest = data.get(usize::try_from(at / 8).ok()?..usize::try_from(limit / 8).ok()?)?;
                at += (memchr::memchr(0, rest)? as u64 + 1) * 8;
            }
        }
    }
    (at <= limit).then_some(at)
}
