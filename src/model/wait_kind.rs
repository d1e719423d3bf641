//! How the threads of an execution spend time: the kinds of causes, of waits in contexts, and of metrics; and the
//! states of threads, each with the kind of its time.
//!
//! Two tables have everything that is said of a kind alone: names, words, styles, what looks the same. Code that shows,
//! counts or stores kinds asks them; a kind is added by a row.

use super::need::Need;

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

/// What is said of a kind of time.
#[derive(Debug)]
pub struct WaitKindRow {
    /// The name in JSON and filters.
    pub name: &'static str,
    /// The frame of a wait of which only the kind is known.
    pub frame: &'static str,
    /// The letter in timelines.
    pub letter: char,
    /// The state of a thread in the legends of timelines.
    pub state: &'static str,
    /// The scope of its style in themes.
    pub style: &'static str,
    /// Its colour in reports.
    pub colour: &'static str,
    /// What an execution did, after "50 ms of 60 ms"; with [`WITHIN`].
    pub phrase: &'static str,
    /// What another thread did meanwhile, after "which"; with [`WITHIN`].
    pub past: &'static str,
    /// It has a metric of its own; the time of the others is the metric `blocked.other`.
    pub has_metric: bool,
    /// Another thread ends or causes the time: which one is part of the cause.
    pub blames_thread: bool,
    /// Its time is one cause, wherever in the program it was spent.
    pub is_one_cause: bool,
    /// What a verdict on it must exclude; `None` where the time is not explained and needs nothing.
    pub alike: Option<Alike>,
}

/// What looks the same as a kind of time.
#[derive(Clone, Copy, Debug)]
pub struct Alike {
    pub what: &'static str,
    /// What excludes it: any of these.
    pub excluded_by: &'static [Need],
}

/// In words of kinds the place of ` in FUNCTION`.
pub const WITHIN: &str = "{in}";

const fn alike(what: &'static str, excluded_by: &'static [Need]) -> Option<Alike> {
    Some(Alike { what, excluded_by })
}

/// Nothing looks the same.
const ALONE: Option<Alike> = alike("nothing else", &[]);

macro_rules! wait_kinds {
    ($($(#[$doc:meta])* $kind:ident { $($row:tt)* })+) => {
        /// How an execution's thread spends time: `kind` of causes and of tree nodes. New ones are the last, because
        /// databases have their numbers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum WaitKind { $($(#[$doc])* $kind,)+ }

        impl WaitKind {
            pub const ALL: [WaitKind; [$(WaitKind::$kind),+].len()] = [$(WaitKind::$kind),+];

            /// What is said of it.
            pub const fn row(self) -> &'static WaitKindRow {
                match self { $(WaitKind::$kind => const { &WaitKindRow { $($row)* } },)+ }
            }
        }
    };
}

wait_kinds! {
    /// On a CPU in its own code.
    Cpu {
        name: "cpu", frame: "running", letter: 'R', state: "running", style: "state.running", colour: "#4c9a52",
        phrase: "running{in} on the CPU", past: "ran{in}",
        has_metric: true, blames_thread: false, is_one_cause: false,
        alike: alike("interrupts that stretch it", &[Need::Interrupts]),
    }
    /// Runnable and not running.
    Preempted {
        name: "preempted", frame: "preempted", letter: 'r', state: "runnable", style: "state.runnable",
        colour: "#e0a030", phrase: "waiting for a CPU", past: "waited for a CPU{in}",
        has_metric: true, blames_thread: true, is_one_cause: true,
        alike: alike("a CPU quota of the control group or a lower priority", &[Need::KernelStacks, Need::Environment]),
    }
    /// On a CPU taken by an interrupt.
    Interrupted {
        name: "interrupted", frame: "interrupted", letter: 'i', state: "interrupted", style: "state.interrupted",
        colour: "#a0522d", phrase: "paused while interrupt handlers ran", past: "was paused by interrupt handlers{in}",
        has_metric: true, blames_thread: false, is_one_cause: true, alike: ALONE,
    }
    /// Waited for a block device.
    Disk {
        name: "blocked.disk", frame: "block device", letter: 'D', state: "disk", style: "state.disk",
        colour: "#8e44ad", phrase: "waiting for the disk{in}", past: "waited for the disk{in}",
        has_metric: true, blames_thread: false, is_one_cause: true,
        alike: alike(
            "the requests of others or a limit of the control group", &[Need::DiskRequests, Need::KernelStacks],
        ),
    }
    /// Waited for the network.
    Network {
        name: "blocked.network", frame: "network", letter: 'N', state: "network", style: "state.network",
        colour: "#2980b9", phrase: "waiting for the network{in}", past: "waited for the network{in}",
        has_metric: true, blames_thread: true, is_one_cause: false,
        alike: alike("a lost packet or a partner that waits itself", &[Need::Packets]),
    }
    /// Waited for a timer.
    Timer {
        name: "blocked.timer", frame: "timer", letter: 'T', state: "timer", style: "state.timer", colour: "#7f8c8d",
        phrase: "sleeping{in}", past: "slept{in}",
        has_metric: true, blames_thread: false, is_one_cause: false,
        alike: alike("an answer that did not come in time", &[Need::Calls]),
    }
    /// Waited for another thread.
    Thread {
        name: "blocked.thread", frame: "blocked", letter: 'w', state: "waits for a thread", style: "state.other",
        colour: "#c0392b", phrase: "waiting{in} for another thread", past: "waited for another thread{in}",
        has_metric: true, blames_thread: true, is_one_cause: false,
        alike: alike(
            "an interrupt on the CPU of the thread that seems to end the wait, or work for others,",
            &[Need::Interrupts, Need::DiskRequests],
        ),
    }
    /// Waited for another device.
    Device {
        name: "blocked.device", frame: "device", letter: 'V', state: "device", style: "state.other", colour: "#16a085",
        phrase: "waiting for a device{in}", past: "waited for a device{in}",
        has_metric: false, blames_thread: false, is_one_cause: false, alike: ALONE,
    }
    /// Woken by an inter-processor interrupt.
    Ipi {
        name: "blocked.ipi", frame: "inter-processor interrupt", letter: 'I', state: "ipi", style: "state.other",
        colour: "#d35400", phrase: "waiting{in} for another CPU", past: "waited for another CPU{in}",
        has_metric: false, blames_thread: false, is_one_cause: false, alike: ALONE,
    }
    /// Waited for user input.
    User {
        name: "blocked.user", frame: "user input", letter: 'U', state: "user input", style: "state.other",
        colour: "#bdc3c7", phrase: "waiting for user input{in}", past: "waited for user input{in}",
        has_metric: false, blames_thread: false, is_one_cause: false, alike: ALONE,
    }
    /// Waited; the recording does not show for what.
    UnknownWait {
        name: "blocked.unknown", frame: "unknown", letter: 'b', state: "blocked without a known waker",
        style: "state.other",
        colour: "#d98880", phrase: "waiting{in} for something that the recording does not show",
        past: "waited{in} for something that the recording does not show",
        has_metric: false, blames_thread: false, is_one_cause: false, alike: None,
    }
    /// Ran or waited: the recording does not say which.
    UnknownState {
        name: "unknown", frame: "ran or waited", letter: '?', state: "unknown", style: "state.unknown",
        colour: "#cccccc", phrase: "running or waiting{in} (the recording does not show which)", past: "was{in}",
        has_metric: true, blames_thread: false, is_one_cause: false, alike: None,
    }
    /// Stopped by a signal or a tracer.
    Stopped {
        name: "stopped", frame: "stopped", letter: 'S', state: "stopped", style: "state.other", colour: "#5d4037",
        phrase: "stopped", past: "was stopped{in}",
        has_metric: true, blames_thread: true, is_one_cause: true,
        alike: alike("the freezer of the control group", &[Need::KernelStacks]),
    }
    /// Its CPU was paused: a hypervisor took it away, the machine was paused, or interrupts were off.
    Stolen {
        name: "stolen", frame: "stolen", letter: 'X', state: "CPU paused", style: "state.interrupted",
        colour: "#212f3c", phrase: "paused with its CPU", past: "was paused with its CPU{in}",
        has_metric: true, blames_thread: false, is_one_cause: true,
        alike: alike("a paused machine, a hypervisor or interrupts that were off", &[Need::Environment]),
    }
    /// Ready to run, and held back: its control group had used up its CPU quota.
    Throttled {
        name: "throttled", frame: "throttled", letter: 'Q', state: "held back by a quota", style: "state.runnable",
        colour: "#b9770e", phrase: "held back by a CPU quota", past: "was held back by a CPU quota{in}",
        has_metric: true, blames_thread: false, is_one_cause: true,
        alike: alike("a neighbour with the same period", &[Need::KernelStacks, Need::Environment]),
    }
}

impl WaitKind {
    /// The name in JSON and filters.
    pub fn name(self) -> &'static str {
        self.row().name
    }
}

macro_rules! segment_kinds {
    ($($(#[$doc:meta])* $kind:ident $name:literal $time:ident,)+) => {
        /// The state of a thread during a segment; for a wait, its cause. New ones are the last, because history files
        /// have their numbers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum SegmentKind { $($(#[$doc])* $kind,)+ }

        impl SegmentKind {
            pub const ALL: [SegmentKind; [$(SegmentKind::$kind),+].len()] = [$(SegmentKind::$kind),+];
            /// The names in queries, by number.
            pub const NAMES: &[&str] = &[$($name),+];

            /// The kind of its time, as far as the segment alone shows it: where another thread ended it, the path goes
            /// on in that thread.
            pub fn wait_kind(self) -> WaitKind {
                match self { $(SegmentKind::$kind => WaitKind::$time,)+ }
            }
        }
    };
}

segment_kinds! {
    /// On a CPU, in its own code or in system calls.
    Running "running" Cpu,
    /// On a CPU that ran interrupt handlers instead.
    Interrupted "interrupted" Interrupted,
    /// Runnable, not running.
    Preempted "preempted" Preempted,
    /// Waited for another thread (`waker`); the cause is unknown where there is no waker.
    Blocked "blocked" UnknownWait,
    /// Waited for a timer.
    Timer "timer" Timer,
    /// Waited for a block device.
    Disk "disk" Disk,
    /// Waited for a packet (`waker`: the sender, where matched).
    Network "network" Network,
    /// Waited for user input (keyboard, mouse).
    UserInput "user input" User,
    /// Woken by an inter-processor interrupt.
    Ipi "ipi" Ipi,
    /// Woken by a device's interrupt (`qualifier` names it).
    Device "device" Device,
    /// Nothing is known.
    Unknown "unknown" UnknownState,
    /// Stopped by a signal or a tracer (`qualifier`), until a thread (`waker`) let it go on.
    Stopped "stopped" Stopped,
}

impl SegmentKind {
    /// True for a thread on a CPU, whether or not that runs it.
    pub fn is_on_cpu(self) -> bool {
        matches!(self, SegmentKind::Running | SegmentKind::Interrupted)
    }

    /// True for a thread on a CPU or in the run queue of one.
    pub fn has_cpu(self) -> bool {
        self.is_on_cpu() || self == SegmentKind::Preempted
    }

    /// True for a wait, also one for nothing that is known.
    pub fn is_wait(self) -> bool {
        !self.has_cpu() && self != SegmentKind::Unknown
    }
}
