//! Hosts: the machine on which a trace was recorded, and the version of its kernel as far as records depend on it.

use super::prev_state::Generation;
use get_size2::GetSize;

crate::base::names::handle! {
    /// A host (one kernel). All traces with equal host name and clock uuid share one.
    HostId,
}

/// The origin of a trace, known before its events.
#[derive(Clone, Copy, Debug, GetSize)]
pub struct TraceOrigin {
    pub host: HostId,
    /// Its contexts name the thread that runs on the CPU (else it is a user-space trace).
    pub kernel: bool,
    /// The meaning of `prev_state` in its switches.
    pub generation: Generation,
}
