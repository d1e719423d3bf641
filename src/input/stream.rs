//! The parts of every trace: record classes, and streams of packets.
//!
//! The events of a stream are in order; a packet is the smallest part that can be read by itself. A packet is a CTF
//! packet, a run of records of one CPU in perf.data, or some pages of one CPU in trace.dat.

use super::record::ClassId;
use crate::base::cursor::ByteOrder;
use crate::base::time::Timestamp;
use get_size2::GetSize;
use std::borrow::Cow;

/// A record class (CTF: an event class of one stream class).
#[derive(Clone, Debug, GetSize)]
pub struct Class {
    /// Event name; empty when it has none.
    pub name: String,
    /// The stream class it belongs to (dense number within the trace).
    pub stream_class: u32,
    /// The name by which `event/` knows it, if its recorder uses another name.
    pub known_as: Option<Cow<'static, str>>,
}

impl Class {
    /// For classes that are not bound to any event, because another class has the same information.
    pub const UNKNOWN: Cow<'static, str> = Cow::Borrowed("");

    /// The name by which its meaning is found: that of the equivalent event of the LTTng kernel tracer, else its own.
    pub fn known(&self) -> &str {
        self.known_as.as_deref().unwrap_or(&self.name)
    }
}

/// The properties of a packet that are known before its events are read.
#[derive(Clone, Debug, GetSize)]
pub struct Packet {
    /// First and last time stamp on the common time line; `None` where not recorded.
    pub begin: Option<Timestamp>,
    /// See `begin`.
    pub end: Option<Timestamp>,
    /// Bytes of content.
    pub bytes: u64,
}

/// A stream: its packets in order, over all files that continue it.
#[derive(Clone, Debug, GetSize)]
pub struct Stream {
    /// Path of its (first) file, relative to the trace; where a file holds several streams, its number after it.
    pub name: String,
    /// Dense number of its stream class.
    pub stream_class: u32,
    /// CPU of its packets, where they name one.
    pub cpu: Option<u32>,
    /// Packets in order.
    pub packets: Vec<Packet>,
    /// Losses in order.
    pub losses: Vec<Loss>,
    /// Packets that are missing in the tracer's numbering.
    pub lost_packets: u64,
}

/// The time of a clock value as `dump --canonical` prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CanonicalTime {
    /// The stream class has no clock.
    NoClock,
    /// The value is past the ends of the time line.
    Overflow,
    /// Nanoseconds from the origin of the trace's own clock.
    At(Timestamp),
}

/// A direct member of a payload or context that is an integer or a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimpleField<'t> {
    pub name: &'t str,
    /// True for an integer, false for a text.
    pub is_integer: bool,
}

/// Events that the tracer lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, GetSize)]
pub struct Loss {
    /// Between this moment ...
    pub from: Timestamp,
    /// ... and this one.
    pub to: Timestamp,
    /// Number of events; `None` where whole packets are missing.
    pub events: Option<u64>,
}

/// A place between two events of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Bits from the beginning of the packet.
    pub at: u64,
    /// The full value of the clock there.
    pub(super) clock: u64,
    /// CTF: the order of the bits read last.
    pub(super) last_order: ByteOrder,
}

impl Position {
    /// The beginning of a packet.
    pub(super) const BEGIN: Position = Position { at: 0, clock: 0, last_order: ByteOrder::Little };
}

/// The events of wanted classes before a position in a packet.
#[derive(Clone, Copy, Debug)]
pub struct Passed {
    /// Time of the last event.
    pub last: Timestamp,
    /// The latest time of any.
    pub latest: Timestamp,
    /// Events with an earlier time than the one before.
    pub backwards: u64,
    /// The last checkpoint.
    pub checkpoint: Option<Checkpoint>,
}

/// An event of a class that was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Checkpoint {
    pub position: Position,
    /// The latest time of any event up to it.
    pub latest: Timestamp,
}

impl Passed {
    /// At the begin of a packet.
    pub const NOTHING: Passed = Passed { last: Timestamp::MIN, latest: Timestamp::MIN, backwards: 0, checkpoint: None };

    /// Adds an event of a wanted class, before which the position is `here`.
    #[inline(always)]
    pub fn meet(&mut self, time: Timestamp, class: ClassId, here: Position, checkpoint: impl Fn(ClassId) -> bool) {
        self.backwards += u64::from(time < self.last);
        (self.last, self.latest) = (time, time.max(self.latest));
        if checkpoint(class) {
            self.checkpoint = Some(Checkpoint { position: here, latest: self.latest });
        }
    }
}
