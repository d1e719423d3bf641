//! The kind of an event of a pattern or of a propagation path: an operation, a wait, a gap.

/// The kind of an event of an occurrence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    /// An operation that waits for no other thread.
    #[default]
    Operation,
    /// A wait for a timer, a disk, a device.
    Wait,
    /// A thread on a CPU, in an execution.
    Running,
    /// A thread that could run and had no CPU.
    Runnable,
    /// An interrupt handler that ran on its CPU.
    Interrupt,
    /// The time between two operations.
    Gap,
    /// An operation that waits for a message, a wake-up, a packet.
    Receive,
    /// An operation that waits for the other members.
    Collective,
    /// An operation that waited for the receiver of its message.
    Send,
}

impl EventKind {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            EventKind::Operation => "operation",
            EventKind::Wait => "wait",
            EventKind::Running => "running",
            EventKind::Runnable => "runnable",
            EventKind::Interrupt => "interrupt",
            EventKind::Gap => "gap",
            EventKind::Receive => "receive",
            EventKind::Collective => "collective",
            EventKind::Send => "send",
        }
    }

    /// It can be long because another thread or rank was late.
    pub fn waits(self) -> bool {
        matches!(self, EventKind::Receive | EventKind::Collective | EventKind::Send)
    }
}
