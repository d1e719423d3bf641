//! What a compiled class is: flat decode steps, and what a writer must know of the fields that they show.
//!
//! Positions are in bits. Invariants: the steps of one class are contiguous; jumps lead forward; a loop's body lies right behind it.

use super::schema::{Label, Show, Slot, Unit};
use crate::input::record::Scope;
use std::ops::Range;
use std::sync::Arc;

/// Stands for "no slot" and "no node".
pub(super) const NONE: u32 = u32::MAX;

/// One step of decoding. Positions are in bits.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// Forward by a number of bits.
    Skip(u64),
    /// Forward to a multiple of `mask + 1`.
    Align(u64),
    /// Forward by `lead`, then read a number.
    Bits { lead: u32, node: u32, save: Slot, size: u8, flags: u8 },
    /// Keep the last number in another slot too.
    Save(Slot),
    /// The last number updates the clock; it has so many bits (0: the last number was of variable length).
    Clock(u8),
    /// Read a number of variable length.
    Variable { node: u32, save: Slot, signed: bool },
    /// Forward by `lead`, then read an IEEE number.
    Real { lead: u32, node: u32, size: u16, flags: u8 },
    /// Read text up to a NUL unit.
    Text { node: u32, unit: Unit },
    /// Read elements that lie side by side on whole bytes, without looking at each.
    Run { node: u32, times: Times, width: u8, elements: ElementKind },
    /// Forward by so many elements of a fixed size.
    SkipRun { times: Times, bits: u64 },
    /// Do the steps from the next one to before `end` as often as said.
    Loop { node: u32, times: Times, end: u32 },
    /// Go on at the case that holds the slot's value, after adding `bias` to make signed order unsigned.
    Select { slot: Slot, first: u32, count: u32, signed: bool, otherwise: u32 },
    /// Go on elsewhere.
    Jump(u32),
    /// A compound begins.
    Open(u32),
    /// A compound ends.
    Close(u32),
    /// An optional is empty, or a structure is missing.
    Missing(u32),
}

/// Flag of [`Step::Bits`]: most significant byte first.
pub(super) const BIG: u8 = 1;
/// Flag of [`Step::Bits`]: two's complement.
pub(super) const SIGNED: u8 = 2;
/// Flag of [`Step::Bits`]: bits in the opposite order.
pub(super) const REVERSED: u8 = 8;
/// Flag of [`Step::Bits`]: may begin or end inside a byte, where the byte order must not change.
pub(super) const INSIDE: u8 = 4;

/// How often: a fixed number, or what a slot holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Times {
    /// Known beforehand; more does not fit a packet.
    Fixed(u32),
    /// Read before.
    Held(Slot),
}

/// What a run of elements is.
#[derive(Clone, Copy, Debug)]
pub(super) enum ElementKind {
    /// Integers; `true`: most significant byte first.
    Words(bool),
    /// Text.
    Text(Unit),
    /// Bytes.
    Blob,
    /// The trace's uuid.
    Uuid,
}

/// A case of a [`Step::Select`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) target: u32,
}

/// A field of a plan that shows everything: what a writer must know of it.
#[derive(Clone, Debug)]
pub struct FieldNode {
    /// Its name, where it is a member of a structure.
    pub name: Option<String>,
    /// Position among the members of its structure.
    pub position: usize,
    /// What it is.
    pub shape: FieldShape,
}

/// What a shown field is.
#[derive(Clone, Debug)]
pub enum FieldShape {
    /// One of the three structures of an event.
    Scope(Scope),
    /// A structure.
    Struct,
    /// Several elements.
    Array {
        /// How each integer of a `Sink::words` is shown.
        element: Option<(NumberFormat, bool)>,
    },
    /// The selected option follows.
    Variant,
    /// The value follows, or nothing is there.
    Optional,
    /// A number.
    Number(NumberFormat),
    /// A floating point number.
    Real,
    /// Text.
    Text,
    /// Bytes.
    Blob,
}

/// How a number is shown.
#[derive(Clone, Debug)]
pub enum NumberFormat {
    /// In decimal.
    Decimal,
    /// `true` or `false`.
    Boolean,
    /// With the names of the ranges that hold it.
    Labels(RangeLabels),
    /// As a set of bits, with the names of those that are set.
    Flags(RangeLabels),
}

/// Names for ranges of values or bits.
#[derive(Clone, Debug)]
pub struct RangeLabels(Arc<[Label]>);

impl RangeLabels {
    /// The names whose ranges hold `value`, in declaration order, each once.
    pub fn of(&self, value: i128) -> impl Iterator<Item = &str> {
        let holds = move |label: &&Label| label.ranges.iter().any(|(first, last)| (*first..=*last).contains(&value));
        self.0.iter().filter(holds).map(|label| &*label.name)
    }

    /// The names of which a bit is set in `bits`, in declaration order.
    pub fn set_in(&self, bits: u64) -> impl Iterator<Item = &str> {
        let set = move |label: &&Label| {
            let is_set = |(first, last): &(i128, i128)| {
                (0..64).any(|bit| bits >> bit & 1 == 1 && (*first..=*last).contains(&i128::from(bit)))
            };
            label.ranges.iter().any(is_set)
        };
        self.0.iter().filter(set).map(|label| &*label.name)
    }
}

impl Show {
    pub(super) fn format(&self) -> NumberFormat {
        match self {
            Show::Number => NumberFormat::Decimal,
            Show::Boolean => NumberFormat::Boolean,
            Show::Labels(labels) => NumberFormat::Labels(RangeLabels(labels.clone())),
            Show::Flags(labels) => NumberFormat::Flags(RangeLabels(labels.clone())),
        }
    }
}

/// The way through a class's three structures.
#[derive(Clone, Debug)]
pub(super) enum Body {
    /// One addition.
    Fixed(u64),
    /// These steps.
    Steps(Program),
}

impl Body {
    /// True where it reads a slot that an event's own structures may not have filled.
    pub(super) fn needs(&self, slot: Slot) -> bool {
        let Body::Steps(program) = self else { return false };
        program.steps.iter().any(|step| match step {
            Step::Run { times: Times::Held(held), .. }
            | Step::SkipRun { times: Times::Held(held), .. }
            | Step::Loop { times: Times::Held(held), .. }
            | Step::Select { slot: held, .. } => *held == slot,
            _ => false,
        })
    }
}

/// Steps and the cases that they refer to.
#[derive(Clone, Debug, Default)]
pub(super) struct Program {
    pub(super) steps: Vec<Step>,
    pub(super) cases: Vec<Case>,
}

impl Program {
    /// All its steps.
    pub(super) fn all(&self) -> Range<u32> {
        0..self.steps.len() as u32
    }
}
