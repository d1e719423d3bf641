//! How the threads of an execution spend time: the kinds of causes, of waits in contexts, and of metrics.

/// The name of the time in which the CPU of a runnable thread was idle.
pub const IDLE_CPU: &str = "CPU idle";

/// How an execution's thread spends time: `kind` of causes and of tree nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitKind {
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
    /// Waited for user input.
    User,
    /// Waited; the recording does not show for what.
    UnknownWait,
    /// Ran or waited: the recording does not say which.
    UnknownState,
}

impl WaitKind {
    /// All kinds.
    pub const ALL: [WaitKind; 12] = [
        WaitKind::Cpu,
        WaitKind::Preempted,
        WaitKind::Interrupted,
        WaitKind::Disk,
        WaitKind::Network,
        WaitKind::Timer,
        WaitKind::Thread,
        WaitKind::Device,
        WaitKind::Ipi,
        WaitKind::User,
        WaitKind::UnknownWait,
        WaitKind::UnknownState,
    ];

    /// True if it has a metric of its own; the time of the others is the metric `blocked.other`.
    pub fn has_metric(self) -> bool {
        !matches!(self, WaitKind::Device | WaitKind::Ipi | WaitKind::User | WaitKind::UnknownWait)
    }

    /// The name in JSON and filters.
    pub fn name(self) -> &'static str {
        match self {
            WaitKind::Cpu => "cpu",
            WaitKind::Preempted => "preempted",
            WaitKind::Interrupted => "interrupted",
            WaitKind::Disk => "blocked.disk",
            WaitKind::Network => "blocked.network",
            WaitKind::Timer => "blocked.timer",
            WaitKind::Thread => "blocked.thread",
            WaitKind::Device => "blocked.device",
            WaitKind::Ipi => "blocked.ipi",
            WaitKind::User => "blocked.user",
            WaitKind::UnknownWait => "blocked.unknown",
            WaitKind::UnknownState => "unknown",
        }
    }
}
