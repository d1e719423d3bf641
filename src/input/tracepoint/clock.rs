//! The recorder's clock, and the packets and losses of each CPU by that clock.

use crate::base::time::{ClockCorrection, Timestamp};
use crate::input::stream::{Loss, Packet};

/// The stream of one CPU; times are those of the recorder's clock.
#[derive(Clone, Debug, Default)]
pub struct CpuStream {
    pub name: String,
    pub cpu: Option<u32>,
    /// Packets in order.
    pub packets: Vec<CpuPacket>,
    /// Losses in order.
    pub losses: Vec<ClockLoss>,
}

/// Events that the recorder lost; times are those of its clock.
#[derive(Clone, Copy, Debug)]
pub struct ClockLoss {
    /// Between this time ...
    pub from: u64,
    /// ... and this one.
    pub to: u64,
    /// Number of events, where it is known.
    pub events: Option<u64>,
}

impl ClockLoss {
    pub(super) fn on(self, clock: &RecorderClock) -> Loss {
        Loss { from: clock.ns(self.from), to: clock.ns(self.to), events: self.events }
    }
}

/// The recorder's clock.
#[derive(Clone, Debug, Default)]
pub struct RecorderClock {
    /// Its name (`mono`, `local` ...).
    pub name: String,
    /// Known once the clock is aligned with that of another trace.
    pub uuid: Option<String>,
    /// Nanoseconds from the origin to its zero.
    pub base: i128,
    /// The correction to the common time line, where the two differ.
    pub correction: Option<ClockCorrection>,
}

impl RecorderClock {
    /// A time on the common time line, clamped to its ends.
    #[inline(always)]
    pub fn ns(&self, clock: u64) -> Timestamp {
        let own = Timestamp::clamped(self.base + i128::from(clock));
        self.correction.map_or(own, |correction| correction.apply(own))
    }
}

/// A packet of a CPU.
#[derive(Clone, Copy, Debug)]
pub struct CpuPacket {
    /// First time stamp.
    pub begin: u64,
    /// Last time stamp.
    pub end: u64,
    /// Size.
    pub bytes: u64,
}

impl CpuPacket {
    pub(super) fn on(self, clock: &RecorderClock) -> Packet {
        Packet { begin: Some(clock.ns(self.begin)), end: Some(clock.ns(self.end)), bytes: self.bytes }
    }
}
