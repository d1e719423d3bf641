//! How the threads of an execution spend time: the kinds of causes, of waits in contexts, and of metrics.

/// The name of the time in which the CPU of a runnable thread was idle.
pub const IDLE_CPU: &str = "CPU idle";

/// The name of the time in which the CPU of a runnable thread was idle, where the counters of its control groups show
/// that no quota held it back.
pub const IDLE_NO_QUOTA: &str = "CPU idle, no quota";
/// The name of the time in which a thread was ready to run and its CPU was leaving an idle state of the processor.
pub const IDLE_EXIT: &str = "CPU leaving idle";
/// The end of the names of waits for a CPU during which other CPUs were idle: `2 of 4 CPUs idle`.
pub const CPUS_IDLE: &str = " CPUs idle";
/// The begin of the names of waits for a CPU that a quota of a control group causes: `quota of 100 ms`, of which the
/// period is known alone, or `quota of 20 ms per 100 ms, throttled 42 times for 3.1 s`, as the kernel counted.
pub const QUOTA: &str = "quota of ";
/// The begin of the names of sleeps between calls that fail: `polling fcntl`.
pub const POLLING: &str = "polling ";
/// The begin of the names of waits for an answer until a time limit: `no answer within 1.00 s on port 53 (UDP)`.
pub const NO_ANSWER: &str = "no answer ";
/// The name of waits for a CPU that end when another thread loses it, which ran for longer than time slices last;
/// the waiting thread had lost the CPU before, ready to run.
pub const LIKE_A_QUOTA: &str = "as under a quota";
/// The name of waits for a CPU that end when another thread loses it, which ran for longer than time slices last;
/// the waiting thread had been woken.
pub const OUT_OF_TURN: &str = "out of turn";
/// The name of waits out of turn where the counters of the thread's control groups show that no quota held it back, and
/// it is known not to have the usual priority.
pub const OTHER_PRIORITY: &str = "of another priority";
/// The name of time in which a thread of real time, or with a deadline, ran in the place of one that is neither.
pub const BEHIND_REAL_TIME: &str = "for a real-time thread";
/// The name of time in which a thread of a smaller nice value, or of a higher real-time priority, ran in the place of
/// another.
pub const BEHIND_PRIORITY: &str = "for a thread of higher priority";
/// The name of time in which threads of much lower priority ran in the place of another: it was not allowed to run.
pub const BEFORE_LOWER: &str = "before threads of lower priority";
/// The name of waits for a CPU whose ends are in phase with a period.
pub const IN_PHASE: &str = "in phase";

/// The name of time of a wait for a disk in which that had no request.
pub const IDLE_DISK: &str = "disk idle";
/// The name of time of a wait for a disk in which that had no request, and a control group of the thread has a limit on
/// a disk.
pub const IDLE_LIMITED_DISK: &str = "disk idle, limited";

/// The name of pauses of a CPU in which the hypervisor gave it to others, by `/proc/stat`.
pub const HYPERVISOR: &str = "by the hypervisor";
/// The name of pauses of a CPU in which the hypervisor gave it to no other, by `/proc/stat`.
pub const NO_STEAL: &str = "without steal";

/// The name of waits for the network that a packet of one of the kernel's timers ended.
pub const TCP_TIMER: &str = "until a timer of TCP";
/// The name of waits for the network that ended when TCP had sent a segment again.
pub const RETRANSMITTED: &str = "until it was sent again";

/// The name of stops by a signal.
pub const BY_SIGNAL: &str = "by a signal";
/// The name of stops by the freezer of a control group.
pub const BY_FREEZER: &str = "by the freezer";
/// The begin of the names of stops by a signal whose sender is known: `sent by bash`.
pub const SENT_BY: &str = "sent by ";
/// The name of stops by a debugger or another tracer.
pub const BY_TRACER: &str = "by a tracer";

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
    /// Stopped by a signal or a tracer.
    Stopped,
    /// Its CPU was paused: a hypervisor took it away, the machine was paused, or interrupts were off.
    Stolen,
    /// Ready to run, and held back: its control group had used up its CPU quota.
    Throttled,
}

impl WaitKind {
    pub const ALL: [WaitKind; 15] = [
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
        WaitKind::Stopped,
        WaitKind::Stolen,
        WaitKind::Throttled,
    ];

    /// True if it has a metric of its own; the time of the others is the metric `blocked.other`.
    pub fn has_metric(self) -> bool {
        !matches!(self, WaitKind::Device | WaitKind::Ipi | WaitKind::User | WaitKind::UnknownWait)
    }

    /// True if another thread ends or causes the time: which one is part of the cause.
    pub fn blames_thread(self) -> bool {
        matches!(self, WaitKind::Thread | WaitKind::Network | WaitKind::Preempted | WaitKind::Stopped)
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
            WaitKind::Stopped => "stopped",
            WaitKind::Stolen => "stolen",
            WaitKind::Throttled => "throttled",
        }
    }
}
