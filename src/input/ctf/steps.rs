//! Compiled classes: flat decode steps, and the description of the fields that they show.
//!
//! Positions are in bits. Invariants: the steps of one class are contiguous; jumps lead forward; the body of a loop
//! follows it directly. A step has at most 24 bytes, so indexes that may be missing leave one value for `None`.

use super::schema::{Label, Show, Slot, TextUnit};
use crate::base::cursor::ByteOrder;
use crate::input::record::Scope;
use std::num::{NonZeroU8, NonZeroU32};
use std::ops::Range;
use std::sync::Arc;

macro_rules! index {
    ($($(#[$doc:meta])* $name:ident,)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) struct $name(NonZeroU32);

        impl $name {
            /// The index of a table's entry; tables have fewer than `u32::MAX` entries.
            pub(super) const fn new(index: u32) -> Self {
                $name(NonZeroU32::MIN.saturating_add(index))
            }

            /// Position in the table.
            #[inline(always)]
            pub(super) const fn get(self) -> u32 {
                self.0.get() - 1
            }
        }
    )+};
}

index! {
    /// A node of a plan that shows everything; the position of a value in a projection.
    NodeIx,
    /// A slot that a number is saved into.
    SlotIx,
    /// A step of a program.
    StepIx,
}

/// One step of decoding. Positions are in bits.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// Forward by a number of bits.
    Skip(u64),
    /// Forward to a multiple of `mask + 1`.
    Align(u64),
    /// Forward by `lead`, then read a number.
    Bits { lead: u32, node: Option<NodeIx>, save: Option<SlotIx>, size: u8, signed: bool, order: BitOrder },
    /// Save the last number in another slot too.
    Save(Slot),
    /// The last number, of this many bits, updates the clock. `None`: as many as the number of variable length had.
    Clock(Option<NonZeroU8>),
    /// Read a number of variable length.
    Variable { node: Option<NodeIx>, save: Option<SlotIx>, signed: bool },
    /// Forward by `lead`, then read an IEEE number.
    Real { lead: u32, node: NodeIx, size: u16, order: BitOrder },
    /// Read text up to a NUL unit.
    Text { node: Option<NodeIx>, unit: TextUnit },
    /// Read contiguous elements of whole bytes without decoding each.
    Run { node: NodeIx, times: Times, width: u8, elements: ElementKind },
    /// Check the trace's uuid.
    Uuid { times: Times, width: u8 },
    /// Forward by this many elements of a fixed size.
    SkipRun { times: Times, bits: u64 },
    /// Repeat the steps from the next one to before `end`.
    Loop { node: Option<NodeIx>, times: Times, end: StepIx },
    /// Continue at the case that contains the slot's value, else at `otherwise`; without either the event is damaged.
    Select { slot: Slot, first: u32, count: u32, signed: bool, otherwise: Option<StepIx> },
    /// Continue at another step.
    Jump(StepIx),
    /// A compound begins.
    Open(NodeIx),
    /// A compound ends.
    Close(NodeIx),
    /// An optional is empty, or a structure is missing.
    Missing(NodeIx),
}

/// The order of the bits of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BitOrder {
    /// The order of the bytes of numbers.
    pub(super) byte_order: ByteOrder,
    /// The bits in the order opposite to that of the bytes (CTF 2).
    pub(super) reversed: bool,
    /// The number may begin or end inside a byte, where the byte order must not change.
    pub(super) inside_byte: bool,
}

/// Number of repetitions or elements.
#[derive(Clone, Copy, Debug)]
pub(super) enum Times {
    /// Known from the metadata; a larger number does not fit a packet.
    Fixed(u32),
    /// Read before.
    Slot(Slot),
}

/// The elements of a [`Step::Run`].
#[derive(Clone, Copy, Debug)]
pub(super) enum ElementKind {
    /// Integers.
    Words {
        /// The order of the bytes of numbers.
        byte_order: ByteOrder,
    },
    Text(TextUnit),
    /// Bytes.
    Blob,
}

/// A case of a [`Step::Select`]: the values from `first` to `last`, in unsigned order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) target: StepIx,
}

/// A field of a plan that shows everything, as a writer needs it.
#[derive(Clone, Debug)]
pub struct FieldNode {
    /// Name, for a member of a structure.
    pub name: Option<String>,
    /// Position among the members of its structure.
    pub position: usize,
    pub shape: FieldShape,
}

/// The shape of a shown field.
#[derive(Clone, Debug)]
pub enum FieldShape {
    /// One of the three structures of an event.
    Scope(Scope),
    /// A structure.
    Struct,
    /// Several elements.
    Array {
        /// The format of each integer of a `Sink::words`.
        element: Option<ElementFormat>,
    },
    /// The selected option follows.
    Variant,
    /// The value follows, or is missing.
    Optional,
    Number(NumberFormat),
    /// A floating point number.
    Real,
    Text,
    /// Bytes.
    Blob,
}

/// The format of an array's integers.
#[derive(Clone, Debug)]
pub struct ElementFormat {
    /// How each is shown.
    pub format: NumberFormat,
    pub signed: bool,
}

/// How a number is shown.
#[derive(Clone, Debug)]
pub enum NumberFormat {
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
        let labels = self.0.iter().filter(move |label| label.ranges.iter().any(|range| range.contains(value)));
        labels.map(|label| &*label.name)
    }

    /// The names of which a bit is set in `bits`, in declaration order.
    pub fn set_in(&self, bits: u64) -> impl Iterator<Item = &str> {
        let is_set = move |bit: u32| bits >> bit & 1 == 1;
        let names_a_set_bit = move |label: &&Label| {
            label.ranges.iter().any(|range| (0..64).any(|bit| is_set(bit) && range.contains(bit.into())))
        };
        self.0.iter().filter(names_a_set_bit).map(|label| &*label.name)
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

/// The steps through a class's three structures.
#[derive(Clone, Debug)]
pub(super) enum Body {
    /// One addition.
    Fixed(u64),
    Steps(Program),
}

impl Body {
    /// True where a length or selector in the body reads the slot.
    pub(super) fn needs(&self, slot: Slot) -> bool {
        let Body::Steps(program) = self else { return false };
        program.steps.iter().any(|step| match step {
            Step::Run { times: Times::Slot(held), .. }
            | Step::SkipRun { times: Times::Slot(held), .. }
            | Step::Loop { times: Times::Slot(held), .. }
            | Step::Uuid { times: Times::Slot(held), .. }
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
    pub(super) fn all(&self) -> Range<u32> {
        0..self.steps.len() as u32
    }
}
