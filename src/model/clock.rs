//! Clocks of hosts, and their corrections.

use crate::base::notice::Notices;
use crate::base::time::{ClockCorrection, Ns};

/// Host clocks on one time line.
#[derive(Clone, Debug, Default)]
pub struct FittedClocks {
    pub clocks: Vec<HostClock>,
    /// Notices raised while fitting.
    pub notices: Notices,
}

/// One clock of the traces, and its correction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostClock {
    /// Name of the host; empty where not recorded.
    pub host: String,
    /// From its own time to that of the first clock.
    pub correction: ClockCorrection,
    /// How far the fitted time may be off anywhere in its recording; `None` where packets do not bound it.
    pub error: Option<Ns>,
    /// Of a clock that only user-space traces have, on a host with a kernel trace: how far that may be off it; the most
    /// that fits where nothing bounds it.
    pub beside_kernel: Option<Ns>,
    /// Packets that relate it to the clock through which it is known; 0 for the first, and for an unrelated one.
    pub packets: u64,
    /// Positions of its traces.
    pub traces: Vec<usize>,
}
