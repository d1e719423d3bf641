//! The programs that write traces; of those on other platforms the events that answer a question (`advice/topic.rs`)
//! and that their files can hold, in their own words, and one line that records them.
//!
//! A format that has no event for a question cannot answer it; then there is no line either. docs/OTHER-PLATFORMS.md
//! has the formats and the script of the first line. The recorders of Linux and of MPI runs record all that is asked
//! for: `advice/missing.rs` and `advice/archive_gaps.rs` have their lines.

use super::event_name::{ESSENTIAL, SYSTEM_CALLS};

/// An event of Linux, and what records it there.
#[derive(Clone, Copy, Debug)]
pub struct PlatformEvent {
    pub event: &'static str,
    pub word: &'static str,
}

/// A recorder of another platform.
#[derive(Clone, Copy, Debug)]
pub struct Platform {
    /// The events that its files can hold.
    pub events: &'static [PlatformEvent],
    /// The topic that each of its files answers: every event names process and thread.
    pub answered: &'static str,
    /// The line that records all of them for 10 s.
    pub command: &'static str,
}

/// In place of an event that a format does not have.
pub const NO_EVENT: &str = "an event that this format does not have";
/// In place of call stacks.
pub const NO_STACKS: &str = "call stacks, which are not read from this format";

const WAKING: &str = "sched:sched_waking";
const PROCESSES: &str = "process of each thread";

const DTRACE: Platform = Platform {
    events: &[
        PlatformEvent { event: ESSENTIAL, word: "sched:::off-cpu" },
        PlatformEvent { event: WAKING, word: "sched:::wakeup" },
        PlatformEvent { event: SYSTEM_CALLS[0], word: "syscall:::entry" },
        PlatformEvent { event: SYSTEM_CALLS[1], word: "syscall:::return" },
        PlatformEvent { event: "block:block_rq_issue", word: "io:::start" },
        PlatformEvent { event: "block:block_rq_complete", word: "io:::done" },
    ],
    answered: PROCESSES,
    command: "dtrace -s whyslow.d -o dtrace.txt -c 'sleep 10' \"$(uname -s)\" \"$(uname -r)\" \"$(hostname)\"",
};

const ETW: Platform = Platform {
    events: &[
        PlatformEvent { event: ESSENTIAL, word: "CSwitch (flag CSWITCH)" },
        PlatformEvent { event: WAKING, word: "ReadyThread (flag DISPATCHER)" },
    ],
    answered: PROCESSES,
    command: "xperf -on PROC_THREAD+LOADER+CSWITCH+DISPATCHER && timeout /t 10 && xperf -d trace.etl && \
              xperf -i trace.etl -o trace.csv -a dumper",
};

const PERFETTO: Platform = Platform {
    events: &[
        PlatformEvent { event: ESSENTIAL, word: "sched/sched_switch" },
        PlatformEvent { event: WAKING, word: "sched/sched_waking" },
        PlatformEvent { event: SYSTEM_CALLS[0], word: "raw_syscalls/sys_enter" },
        PlatformEvent { event: SYSTEM_CALLS[1], word: "raw_syscalls/sys_exit" },
        PlatformEvent { event: "irq:irq_handler_entry", word: "irq/irq_handler_entry" },
        PlatformEvent { event: "irq:irq_handler_exit", word: "irq/irq_handler_exit" },
        PlatformEvent { event: "irq:softirq_raise", word: "irq/softirq_raise" },
        PlatformEvent { event: "irq:softirq_entry", word: "irq/softirq_entry" },
        PlatformEvent { event: "irq:softirq_exit", word: "irq/softirq_exit" },
        PlatformEvent { event: "block:block_rq_insert", word: "block/block_rq_insert" },
        PlatformEvent { event: "block:block_rq_issue", word: "block/block_rq_issue" },
        PlatformEvent { event: "block:block_rq_complete", word: "block/block_rq_complete" },
    ],
    answered: PROCESSES,
    command: "perfetto -o trace.pftrace -t 10s sched/sched_switch sched/sched_waking sched/sched_process_exit \
              task/task_newtask task/task_rename raw_syscalls/sys_enter raw_syscalls/sys_exit \
              irq/irq_handler_entry irq/irq_handler_exit irq/softirq_raise irq/softirq_entry irq/softirq_exit \
              block/block_rq_insert block/block_rq_issue block/block_rq_complete ftrace/print",
};

macro_rules! recorders {
    ($($(#[$doc:meta])* $recorder:ident $platform:expr,)+) => {
        /// The program that wrote a trace. New ones are the last, because databases have their numbers.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum TraceRecorder { $($(#[$doc])* $recorder,)+ }

        impl TraceRecorder {
            pub const ALL: &[TraceRecorder] = &[$(TraceRecorder::$recorder),+];

            /// What its files can hold; `None` for those of Linux and of MPI runs.
            pub fn platform(self) -> Option<&'static Platform> {
                match self { $(TraceRecorder::$recorder => $platform,)+ }
            }
        }
    };
}

recorders! {
    /// Another one, or unknown.
    #[default]
    Other None,
    Lttng None,
    Perf None,
    TraceCmd None,
    /// A DTrace script, in the grammar of docs/OTHER-PLATFORMS.md.
    Dtrace Some(&DTRACE),
    /// Event Tracing for Windows, as text.
    Etw Some(&ETW),
    Perfetto Some(&PERFETTO),
    /// Score-P, or another tracer of MPI runs that writes archives.
    ScoreP None,
    Eztrace None,
}
