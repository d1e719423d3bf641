//! The resolved, immutable description of a trace's records: one form for CTF 1.8 and CTF 2.
//!
//! The two metadata readers (`tsdl`, `json`) build it, `locate` binds every length and selector to the field that
//! holds it, `compile` turns it into decode steps. After [`Schema`] is returned nothing changes it.
//!
//! A field that another field's length or selector refers to *saves* its value into a numbered slot; the referring
//! field reads the slot. Meaning (packet size, event class id ...) works the same way: a field with a role saves
//! into the slot of the role (the first [`Role::COUNT`] slots), so the decoder knows nothing of names.

use super::error::MetadataWarning;
use crate::base::cursor::ByteOrder;
use get_size2::GetSize;
use std::borrow::Cow;
use std::sync::Arc;

/// Number of a place where a decoded integer is kept for later fields.
pub(super) type Slot = u32;

macro_rules! roles {
    ($($name:ident $doc:literal,)+) => {
        /// The meaning of a field's value to the reader; the discriminant is its slot.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub(super) enum Role { $(#[doc = $doc] $name,)+ }
        impl Role {
            /// Number of roles, and the first slot that is none.
            pub(super) const COUNT: Slot = [$(Role::$name),+].len() as Slot;
            /// The slot that fields with this role save into.
            pub(super) const fn slot(self) -> Slot { self as Slot }
        }
    };
}

roles! {
    Magic "Packet header: marks a packet.",
    StreamClass "Packet header: which stream class the packet is of.",
    StreamInstance "Packet header: which stream of the class.",
    PacketBits "Packet context: size of the packet in bits.",
    ContentBits "Packet context: size of its content in bits.",
    Begin "Packet context: clock at the beginning.",
    End "Packet context: clock at the end.",
    Discarded "Packet context: running counter of discarded events.",
    Sequence "Packet context: number of the packet in its stream.",
    Cpu "Packet context: the CPU.",
    EventClass "Event header: which event class the event is of.",
    Time "Event header: the clock.",
}

/// A field: its alignment and its kind.
#[derive(Clone, Debug, PartialEq, GetSize)]
pub(super) struct Field {
    /// Alignment in bits, counted from the beginning of the packet: a power of two.
    pub(super) align: u64,
    pub(super) kind: Kind,
}

/// The kind of a field.
#[derive(Clone, Debug, PartialEq, GetSize)]
pub(super) enum Kind {
    /// A number of 1 to 64 bits.
    Bits(Bits),
    /// A number of 7 bits a byte, least significant first (CTF 2).
    Variable {
        /// See [`Bits`].
        signed: bool,
        /// See [`Bits`].
        show: Show,
        /// See [`Bits`].
        saves: Vec<Slot>,
        /// See [`Bits`].
        clock: Option<usize>,
    },
    /// An IEEE 754 number.
    Real {
        /// Bits: 32 or 64, or (CTF 2) those of another interchange format.
        size: u16,
        /// See [`Bits`].
        byte_order: ByteOrder,
        /// See [`Bits`].
        reversed: bool,
    },
    /// Text up to a NUL unit.
    Text(TextUnit),
    /// Text of a length in bytes.
    SizedText(TextUnit, Count),
    /// Bytes that are not interpreted.
    Blob {
        /// Bytes.
        count: Count,
        /// The meaning of the bytes.
        meaning: ByteMeaning,
    },
    /// Named members, one after the other.
    Struct(Vec<Member>),
    /// Elements, one after the other.
    Array {
        /// Number of elements.
        count: Count,
        /// Each of them.
        element: Box<Field>,
        /// The meaning of the elements, where they are bytes.
        meaning: ByteMeaning,
    },
    /// One of several, by the value of a selector.
    Variant {
        /// The integer that selects.
        by: Source,
        /// True where the selector is signed.
        signed: bool,
        /// The options in declaration order.
        options: Vec<Choice>,
    },
    /// A field that is present or missing, by the value of a selector (CTF 2).
    Optional {
        /// The integer or boolean that selects.
        by: Source,
        /// True where the selector is signed.
        signed: bool,
        /// The field is present for these values; `None`: for all values but zero (a boolean).
        ranges: Option<Vec<ValueRange>>,
        field: Box<Field>,
    },
}

/// The meaning of a run of bytes to the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, GetSize)]
pub(super) enum ByteMeaning {
    /// None.
    Data,
    /// The trace's uuid, which must equal that of the metadata.
    TraceUuid,
}

/// A number of 1 to 64 bits.
#[derive(Clone, Debug, PartialEq, GetSize)]
pub(super) struct Bits {
    /// 1 to 64.
    pub(super) size: u8,
    /// The order of the bytes of numbers.
    pub(super) byte_order: ByteOrder,
    /// The bits in the order opposite to that of the bytes (CTF 2).
    pub(super) reversed: bool,
    /// Two's complement.
    pub(super) signed: bool,
    /// How it is shown.
    pub(super) show: Show,
    /// An array of these is text (CTF 1.8: 8 bits with an encoding).
    pub(super) character: bool,
    /// The slots that its value is saved into.
    pub(super) saves: Vec<Slot>,
    /// The clock that it is a time stamp of, in [`Schema::clocks`].
    pub(super) clock: Option<usize>,
}

/// How a number is shown.
#[derive(Clone, Debug, PartialEq, GetSize)]
pub(super) enum Show {
    /// In decimal.
    Number,
    /// `true` or `false`.
    Boolean,
    /// With the labels whose ranges hold it.
    Labels(Arc<[Label]>),
    /// As a set of bits, with the names of those that are set.
    Flags(Arc<[Label]>),
}

/// A name for values (or bits).
#[derive(Clone, Debug, PartialEq, GetSize)]
pub(super) struct Label {
    pub(super) name: Box<str>,
    /// Which values (or bits).
    pub(super) ranges: Vec<ValueRange>,
}

/// Values from `first` to `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, GetSize)]
pub(super) struct ValueRange {
    pub(super) first: i128,
    pub(super) last: i128,
}

impl ValueRange {
    /// True for values in the range.
    pub(super) fn contains(self, value: i128) -> bool {
        self.first <= value && value <= self.last
    }

    /// True where a value is in both ranges.
    pub(super) fn overlaps(self, other: ValueRange) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// Size and order of the units of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, GetSize)]
pub(super) enum TextUnit {
    /// UTF-8 or ASCII.
    Byte,
    /// UTF-16, little-endian.
    Utf16Le,
    /// UTF-16, big-endian.
    Utf16Be,
    /// UTF-32, little-endian.
    Utf32Le,
    /// UTF-32, big-endian.
    Utf32Be,
}

impl TextUnit {
    /// The order of the bytes of numbers.
    pub(super) fn byte_order(self) -> ByteOrder {
        match self {
            TextUnit::Utf16Be | TextUnit::Utf32Be => ByteOrder::Big,
            TextUnit::Byte | TextUnit::Utf16Le | TextUnit::Utf32Le => ByteOrder::Little,
        }
    }

    /// Bytes of a unit.
    pub(super) fn bytes(self) -> u8 {
        match self {
            TextUnit::Byte => 1,
            TextUnit::Utf16Le | TextUnit::Utf16Be => 2,
            TextUnit::Utf32Le | TextUnit::Utf32Be => 4,
        }
    }
}

/// A number of elements or bytes.
#[derive(Clone, Debug, PartialEq, GetSize)]
pub(super) enum Count {
    /// Known from the metadata.
    Fixed(u64),
    /// Recorded in an earlier field.
    Recorded(Source),
}

/// An integer that was read before.
#[derive(Clone, Debug, PartialEq, GetSize)]
pub(super) enum Source {
    /// The location that the metadata gives; `locate` replaces it.
    At(Box<Location>),
    /// The slot in which the decoder keeps it.
    Slot(Slot),
}

/// The location of a length or selector, as the metadata gives it.
#[derive(Clone, Debug, GetSize)]
pub(super) struct Location {
    /// The structure in which it is searched for; `None`: those around the referring field, innermost first.
    pub(super) scope: Option<Root>,
    /// Names of members; `None` means "one structure up" (CTF 2).
    pub(super) path: Vec<Option<Box<str>>>,
    /// If the innermost structure does not have it, the enclosing ones are searched too (CTF 1.8).
    pub(super) climbs: bool,
    /// Byte offset in the metadata of the referring field.
    pub(super) at: usize,
}

/// The structures of a packet and an event, in the order in which they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, GetSize)]
pub(super) enum Root {
    /// Of each packet of the trace.
    PacketHeader,
    /// Of each packet of the stream class.
    PacketContext,
    /// Of each event.
    EventHeader,
    /// The context that all events of the stream class have.
    CommonContext,
    /// The context of the event class.
    SpecificContext,
    /// The event's own fields.
    Payload,
}

impl PartialEq for Location {
    /// True where both mean the same field; the place of the reference does not matter.
    fn eq(&self, other: &Location) -> bool {
        (self.scope, &self.path, self.climbs) == (other.scope, &other.path, other.climbs)
    }
}

/// A member of a structure.
#[derive(Clone, Debug, PartialEq, GetSize)]
pub(super) struct Member {
    /// As written; references use it.
    pub(super) written: Box<str>,
    /// True when one leading underscore is not shown (CTF 1.8).
    pub(super) escaped: bool,
    pub(super) field: Field,
}

impl Member {
    /// The name that is shown.
    pub(super) fn name(&self) -> &str {
        shown(&self.written, self.escaped)
    }
}

/// An option of a variant.
#[derive(Clone, Debug, PartialEq, GetSize)]
pub(super) struct Choice {
    /// As written; may be empty (CTF 2).
    pub(super) written: Box<str>,
    /// True when one leading underscore is not shown (CTF 1.8).
    pub(super) escaped: bool,
    /// Values of the selector that select it (CTF 1.8: filled from the labels by `locate`).
    pub(super) ranges: Vec<ValueRange>,
    pub(super) field: Field,
}

impl Choice {
    /// The name that is shown.
    pub(super) fn name(&self) -> &str {
        shown(&self.written, self.escaped)
    }
}

fn shown(written: &str, escaped: bool) -> &str {
    if escaped { written.strip_prefix('_').unwrap_or(written) } else { written }
}

#[derive(Clone, Debug, PartialEq, GetSize)]
pub(super) struct Clock {
    /// Its name (CTF 2: its id).
    pub(super) name: String,
    /// Its uuid (CTF 2: name space, name and uid of its identity).
    pub(super) uuid: Option<String>,
    /// Cycles a second; never 0.
    pub(super) frequency: u64,
    /// Seconds from the origin to clock value 0.
    pub(super) offset_seconds: i64,
    /// Cycles from there.
    pub(super) offset_cycles: u64,
}

#[derive(Clone, Debug, PartialEq, GetSize)]
pub(super) struct StreamClass {
    /// Its id in packet headers.
    pub(super) id: u64,
    /// Structures of its packets and events; `None` where there is none.
    pub(super) packet_context: Option<Field>,
    /// See `packet_context`.
    pub(super) event_header: Option<Field>,
    /// See `packet_context`.
    pub(super) common_context: Option<Field>,
    /// Its default clock, in [`Schema::clocks`].
    pub(super) clock: Option<usize>,
    pub(super) events: Vec<Arc<EventClass>>,
}

#[derive(Clone, Debug, PartialEq, GetSize)]
pub(super) struct EventClass {
    /// Its id in event headers.
    pub(super) id: u64,
    /// Its name; may be missing.
    pub(super) name: Option<Box<str>>,
    /// The context of this class.
    pub(super) specific_context: Option<Field>,
    pub(super) payload: Option<Field>,
    /// True where all its lengths and selectors are in its own two structures, so that it means the same in any stream
    /// class.
    pub(super) alone: bool,
}

impl EventClass {
    /// The first versions of LTTng 2.0 recorded system calls by number only, in two events whose names could also be
    /// those of the entries of calls named `enter` and `exit`. Their fields decide.
    pub(super) fn known_as(&self) -> Option<Cow<'static, str>> {
        let (known, fields): (_, &[&str]) = match self.name.as_deref()? {
            "sys_enter" => ("raw_syscalls:sys_enter", &["id"]),
            "sys_exit" => ("raw_syscalls:sys_exit", &["id", "ret"]),
            _ => return None,
        };
        let Kind::Struct(members) = &self.payload.as_ref()?.kind else { return None };
        let has = |field: &&str| members.iter().any(|member| shown(&member.written, member.escaped) == *field);
        fields.iter().all(has).then_some(Cow::Borrowed(known))
    }
}

/// The contents of the metadata.
#[derive(Clone, Debug, PartialEq, GetSize)]
pub(super) struct Schema {
    /// 1 or 2.
    pub(super) version: u8,
    /// The trace's uuid, in hexadecimal with hyphens (CTF 2: name space, name and uid too).
    pub(super) uuid: Option<String>,
    /// The uuid that packet headers must repeat.
    pub(super) uuid_bytes: Option<[u8; 16]>,
    /// The environment in declaration order, numbers as text.
    pub(super) environment: Vec<(String, String)>,
    /// Clocks in declaration order.
    pub(super) clocks: Vec<Clock>,
    /// Structure at the beginning of each packet.
    pub(super) packet_header: Option<Field>,
    /// Stream classes in declaration order.
    pub(super) streams: Vec<StreamClass>,
    /// Slots that decoding needs.
    pub(super) slots: usize,
    /// Tolerated irregularities.
    #[get_size(ignore)]
    pub(super) warnings: Vec<MetadataWarning>,
    /// A description of the bytes after the last packet of metadata.
    pub(super) after: Option<String>,
}
