//! How many events the bytes of a trace hold.

use crate::event::kind::Event;

/// Bytes of events for each 1,024 bytes of trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EventDensity(pub u64);

impl EventDensity {
    /// More than in any recording that we know: the events of a tracer with one word of payload.
    pub const DENSEST: EventDensity = EventDensity(4 << 10);

    /// Of a sample, with a quarter more for parts of the recording that have more events.
    pub fn of(events: u64, bytes: u64) -> EventDensity {
        EventDensity((events * size_of::<Event>() as u64 * 1280 / bytes.max(1)).clamp(64, EventDensity::DENSEST.0))
    }

    /// Bytes of the events in this many bytes of trace.
    pub fn decoded(self, bytes: u64) -> u64 {
        bytes.saturating_mul(self.0) >> 10
    }

    /// Events in this many bytes of trace, at most.
    pub fn events(self, bytes: u64) -> usize {
        self.decoded(bytes) as usize / size_of::<Event>()
    }

    /// Bytes of trace whose events take this many.
    pub fn encoded(self, bytes: u64) -> u64 {
        (bytes << 10) / self.0
    }
}
