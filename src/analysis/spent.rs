//! How the threads of an execution spend time: the kinds of causes, of waits in contexts, and of metrics.

/// How an execution's thread spends time: `kind` of causes and of tree nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Spent {
    /// On a CPU in its own code.
    Cpu,
    /// Runnable and not running.
    Preempted,
    /// On a CPU taken by an interrupt.
    Interrupted,
    /// Waited for a block device.
    Disk,
    /// Waited for the network.
    Network,
    /// Waited for a timer.
    Timer,
    /// Waited for another thread.
    Thread,
    /// Waited for another device.
    Device,
    /// Woken by an inter-processor interrupt.
    Ipi,
    /// Waited for a person.
    User,
    /// Waited, nobody knows for what.
    UnknownWait,
    /// Ran or waited: the recording does not say which.
    UnknownState,
}

impl Spent {
    /// All kinds.
    pub const ALL: [Spent; 12] = [
        Spent::Cpu,
        Spent::Preempted,
        Spent::Interrupted,
        Spent::Disk,
        Spent::Network,
        Spent::Timer,
        Spent::Thread,
        Spent::Device,
        Spent::Ipi,
        Spent::User,
        Spent::UnknownWait,
        Spent::UnknownState,
    ];

    /// The name in JSON and filters.
    pub fn name(self) -> &'static str {
        match self {
            Spent::Cpu => "cpu",
            Spent::Preempted => "preempted",
            Spent::Interrupted => "interrupted",
            Spent::Disk => "blocked.disk",
            Spent::Network => "blocked.network",
            Spent::Timer => "blocked.timer",
            Spent::Thread => "blocked.thread",
            Spent::Device => "blocked.device",
            Spent::Ipi => "blocked.ipi",
            Spent::User => "blocked.user",
            Spent::UnknownWait => "blocked.unknown",
            Spent::UnknownState => "unknown",
        }
    }
}
