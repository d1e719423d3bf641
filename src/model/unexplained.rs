//! Waits that took longer than usual without a known cause.

use crate::base::time::{Ns, Span};

/// Waits of one call of one stream that nothing explains.
#[derive(Clone, Debug, PartialEq)]
pub struct UnexplainedWait {
    /// Position in `Anomalies::streams`.
    pub stream: u32,
    /// The call that waited.
    pub what: String,
    /// The region around it, where that is known.
    pub function: Option<String>,
    pub waits: u64,
    /// Of these, what they waited for had been sent in time: slow to arrive, or to run again.
    pub sent_in_time: u64,
    /// Longer than usual by this, all together.
    pub excess_ns: Ns,
    /// The rank that was late for most of it, though by nothing that exceeded a limit; `None` where none was late.
    pub late: Option<LateStream>,
    /// From the first to the last, on the common time line.
    pub span: Span,
}

/// A rank that others waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateStream {
    /// Position in `Anomalies::streams`.
    pub stream: u32,
    /// The part of the waits in which it had not come yet.
    pub ns: Ns,
}
