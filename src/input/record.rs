//! A decoded record: its class, its time, and the values of the wanted fields.
//!
//! Values borrow from the mapped file; nothing is allocated per record. A [`Projection`] gives the fields to decode:
//! for each record class the paths of the wanted fields, in the order of the values.

use crate::base::cursor::ByteOrder;
use crate::base::time::Timestamp;
use get_size2::GetSize;
use std::sync::Arc;

crate::base::names::handle! {
    /// A record class of one trace (dense; CTF: over all its stream classes).
    ClassId,
    /// A stream of one trace, in the order of ALGORITHMS.md section 1 (path, class, instance, file name).
    StreamId,
}

/// The structure of an event that a field is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, GetSize)]
pub enum Scope {
    /// The context all events of the stream class have.
    CommonContext,
    /// The context of this event class.
    SpecificContext,
    /// The event's own fields.
    Payload,
}

/// A path to a field: member names through structures, option names through variants
/// (`network_header`, `ipv4`, `transport_header`, `tcp`, `seq`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, GetSize)]
pub struct FieldPath {
    /// The structure in which the path begins.
    pub scope: Scope,
    /// Names, outermost first, as shown (CTF 1.8: without the one leading underscore), with dots between them.
    pub dotted: Arc<str>,
}

impl FieldPath {
    /// `FieldPath::new(Scope::Payload, "transport_header.tcp.seq")`
    pub fn new(scope: Scope, dotted: &str) -> Self {
        FieldPath { scope, dotted: dotted.into() }
    }

    /// True for `FieldPath::new(scope, dotted)`.
    pub fn is(&self, scope: Scope, dotted: &str) -> bool {
        self.scope == scope && *self.dotted == *dotted
    }
}

/// The fields wanted of each class: `wanted[class]` is `None` where no record of the class is wanted (they are skipped
/// and never returned), otherwise the paths (possibly none) of the values to decode.
#[derive(Clone, Debug, Default, GetSize)]
pub struct Projection {
    /// By [`ClassId`]; classes beyond the end are not wanted.
    pub wanted: Vec<Option<Vec<FieldPath>>>,
}

/// The value of one field, borrowed from the trace.
#[derive(Clone, Copy, Debug, Default)]
pub enum Value<'a> {
    /// The field is not in this record (another option of a variant is, or an optional is empty), or is compound.
    #[default]
    Absent,
    /// Unsigned integer, enumeration, boolean.
    Unsigned(u64),
    /// Signed integer.
    Signed(i64),
    /// Floating point number.
    Real(f64),
    /// Text, cut at the first NUL; any bytes.
    Text(&'a [u8]),
    /// Array or sequence of integers.
    Words(IntegerArray<'a>),
}

impl<'a> Value<'a> {
    /// Integers as `i64` (an unsigned value keeps its bits).
    #[inline]
    pub fn as_i64(self) -> Option<i64> {
        match self {
            Value::Unsigned(v) => Some(v as i64),
            Value::Signed(v) => Some(v),
            _ => None,
        }
    }

    /// Integers as `u64` (a signed value keeps its bits).
    #[inline]
    pub fn as_u64(self) -> Option<u64> {
        self.as_i64().map(|v| v as u64)
    }

    pub fn as_text(self) -> Option<&'a [u8]> {
        if let Value::Text(t) = self { Some(t) } else { None }
    }

    /// Integers of an array.
    #[inline]
    pub fn as_words(self) -> Option<IntegerArray<'a>> {
        if let Value::Words(w) = self { Some(w) } else { None }
    }
}

/// An array of byte-aligned integers of 8, 16, 32 or 64 bits, read in place.
#[derive(Clone, Copy, Debug)]
pub struct IntegerArray<'a> {
    /// The bytes of the array.
    pub bytes: &'a [u8],
    /// Bytes per element: 1, 2, 4 or 8.
    pub width: u8,
    /// The order of the bytes of numbers.
    pub byte_order: ByteOrder,
}

impl<'a> IntegerArray<'a> {
    /// The elements, zero-extended.
    pub fn iter(self) -> impl Iterator<Item = u64> + 'a {
        let width = usize::from(self.width.clamp(1, 8));
        self.bytes.chunks_exact(width).map(move |bytes| {
            let word = |v: u64, b: &u8| v << 8 | u64::from(*b);
            match (<[u8; 8]>::try_from(bytes), self.byte_order) {
                (Ok(whole), ByteOrder::Little) => u64::from_le_bytes(whole),
                (Ok(whole), ByteOrder::Big) => u64::from_be_bytes(whole),
                (Err(_), ByteOrder::Big) => bytes.iter().fold(0, word),
                (Err(_), ByteOrder::Little) => bytes.iter().rev().fold(0, word),
            }
        })
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Record<'r, 'a> {
    pub class: ClassId,
    /// Its time on the common time line (`exact_ns`; one offset for equal clock uuids).
    pub time: Timestamp,
    /// The CPU of its packet; 0 where a CTF packet names none, `u32::MAX` where no record of a stream does.
    pub cpu: u32,
    /// One value for each path of the projection, in its order.
    pub values: &'r [Value<'a>],
}
