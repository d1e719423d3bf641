//! Hosts: where a trace was recorded, and how its kernel writes what differs between versions.

use super::prev_state::Generation;

crate::base::names::handle! {
    /// A host (one kernel). All traces with equal host name and clock uuid share one.
    HostId,
}

/// What is known of a trace before its events.
#[derive(Clone, Copy, Debug)]
pub struct TraceOrigin {
    /// Where it was recorded.
    pub host: HostId,
    /// Its contexts name the thread that runs on the CPU (else it is a user-space trace).
    pub kernel: bool,
    /// How `prev_state` reads.
    pub generation: Generation,
}
