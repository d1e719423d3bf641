//! Topics of a recording: each question of an analysis, the kernel events that answer it, and the consequence without
//! them.
//!
//! Events have the kernel's names, `system:name`; [`lttng_name`] translates them into LTTng's. `record/` plans a
//! recording by this table, and `missing.rs` compares a recording with it.

use crate::model::event_name::{ESSENTIAL, SYSTEM_CALLS};

/// A question and the events that answer it.
#[derive(Debug)]
pub struct Topic {
    pub question: &'static str,
    /// Events, as `system:name`.
    pub events: &'static [&'static str],
    /// What recording them costs.
    pub cost: &'static str,
    /// Which recordings have them.
    pub load: TopicLoad,
    /// The consequence where they are missing.
    pub without: &'static str,
}

impl Topic {
    /// True for system calls.
    pub fn is_of_calls(&self) -> bool {
        self.load == TopicLoad::Calls
    }

    /// True where call stacks are recorded with its events.
    pub fn has_stacks(&self) -> bool {
        self.events.contains(&ESSENTIAL)
    }
}

/// How much the events of a topic slow the machine that is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicLoad {
    /// Little: they are rare, or what each shows takes far longer than the event. Each recording has them.
    Light,
    /// As much as a thread makes system calls: a recording has them of the threads that were chosen.
    Calls,
    /// Much on a busy machine: only a full recording has them.
    Heavy,
}

/// All questions, the most important first.
pub const TOPICS: [Topic; 14] = [
    Topic {
        question: "who ran",
        events: &[ESSENTIAL],
        cost: "an event and a call stack for each switch",
        load: TopicLoad::Light,
        without: "no wait can be explained",
    },
    Topic {
        question: "who woke whom",
        events: &["sched:sched_waking", "sched:sched_wakeup_new"],
        cost: "an event for each wake-up",
        load: TopicLoad::Light,
        without: "for a wait only its place is known, not which thread ended it",
    },
    Topic {
        question: "CPU that a thread waited for",
        events: &["sched:sched_migrate_task"],
        cost: "an event for each move to another CPU",
        load: TopicLoad::Light,
        without: "for some threads that were runnable it is unknown which CPU they waited for",
    },
    Topic {
        question: "process of each thread",
        events: &[
            "sched:sched_process_fork",
            "sched:sched_process_exec",
            "sched:sched_process_exit",
            "task:task_newtask",
            "task:task_rename",
        ],
        cost: "a few events for each thread that begins",
        load: TopicLoad::Light,
        without: "threads that begin while recording have no process, and whole processes cannot be tasks",
    },
    Topic {
        question: "system calls",
        events: &SYSTEM_CALLS,
        cost: "two events for each call, often most of a recording",
        load: TopicLoad::Calls,
        without: "system calls can be neither tasks nor places of waits",
    },
    Topic {
        question: "interrupts and timers",
        events: &[
            "irq:irq_handler_entry",
            "irq:irq_handler_exit",
            "irq:softirq_raise",
            "irq:softirq_entry",
            "irq:softirq_exit",
            "timer:hrtimer_expire_entry",
            "timer:hrtimer_expire_exit",
        ],
        cost: "two events or three for each interrupt",
        load: TopicLoad::Heavy,
        without: "time in interrupts counts for the interrupted thread, and devices have no names",
    },
    Topic {
        question: "disk requests",
        events: &["block:block_rq_insert", "block:block_rq_issue", "block:block_rq_complete"],
        cost: "three events for each request",
        load: TopicLoad::Light,
        without: "it is unknown behind which thread's requests a slow request queued",
    },
    Topic {
        question: "work of kernel workers",
        events: &[
            "workqueue:workqueue_queue_work",
            "workqueue:workqueue_execute_start",
            "workqueue:workqueue_execute_end",
        ],
        cost: "three events for each piece of work",
        load: TopicLoad::Heavy,
        without: "it is unknown for which thread a kernel worker ran",
    },
    Topic {
        question: "packets",
        events: &["net:net_dev_queue", "net:netif_receive_skb"],
        cost: "an event for each packet",
        load: TopicLoad::Heavy,
        without: "for a wait for the network the sender is unknown",
    },
    Topic {
        question: "memory that was reclaimed",
        events: &[
            "vmscan:mm_vmscan_direct_reclaim_begin",
            "vmscan:mm_vmscan_direct_reclaim_end",
            "vmscan:mm_vmscan_memcg_reclaim_begin",
            "vmscan:mm_vmscan_memcg_reclaim_end",
            "compaction:mm_compaction_begin",
            "compaction:mm_compaction_end",
            "writeback:balance_dirty_pages",
        ],
        cost: "two events for each reclaim, none while memory is free",
        load: TopicLoad::Light,
        without: "reclaim of memory is seen in the kernel's call stacks alone",
    },
    Topic {
        question: "signals",
        events: &["signal:signal_generate"],
        cost: "an event for each signal",
        load: TopicLoad::Light,
        without: "it is unknown who stopped a thread by a signal",
    },
    Topic {
        question: "retransmissions",
        events: &["tcp:tcp_retransmit_skb"],
        cost: "an event for each lost packet",
        load: TopicLoad::Light,
        without: "a lost packet looks like a partner that answers late",
    },
    Topic {
        question: "CPU frequencies",
        events: &["power:cpu_frequency"],
        cost: "an event for each change",
        load: TopicLoad::Light,
        without: "a CPU that runs slower looks like a program that computes more",
    },
    Topic {
        question: "idle states of CPUs",
        events: &["power:cpu_idle"],
        cost: "two events for each rest of a CPU",
        load: TopicLoad::Heavy,
        without: "a CPU that needs time to leave its idle state looks like a scheduler that is late",
    },
];

/// Without any event of the kernel.
pub const KERNEL: OptionTopic = OptionTopic {
    question: "what threads waited for",
    option: "events of the kernel",
    without: "no wait can be explained",
};

/// Without call stacks of switches.
pub const STACKS_OF_SWITCHES: OptionTopic = OptionTopic {
    question: "functions in which threads waited",
    option: "call stacks of sched_switch",
    without: "the reason for a wait ends at its system call",
};

/// Without call stacks of running threads.
pub const STACKS_OF_SAMPLES: OptionTopic = OptionTopic {
    question: "functions that ran",
    option: "call stacks at a timer's rate",
    without: "time on a CPU belongs to a thread, not to a function",
};

/// Stacks that were followed by frame pointers.
pub const FRAMELESS: OptionTopic = OptionTopic {
    question: "callers of functions without a frame",
    option: "copies of stacks (--call-graph dwarf), or programs and libraries built with frame pointers",
    without: "the caller of a function that makes no frame, as many of the C library, is left out of its stack",
};

/// Without counters beside the trace.
pub const COUNTERS: OptionTopic = OptionTopic {
    question: "CPU quotas and stolen time",
    option: "counters beside the trace (whyslow record, or whyslow snapshot while another recorder runs)",
    without: "a CPU quota, or a hypervisor, can look like other threads that ran",
};

/// A question that an option of a recorder answers.
#[derive(Clone, Copy, Debug)]
pub struct OptionTopic {
    pub question: &'static str,
    /// What has to be recorded, in words.
    pub option: &'static str,
    /// The consequence where it is missing.
    pub without: &'static str,
}

/// LTTng's name of a kernel event: `irq`, `timer`, `net`, `power` and `writeback` stay as prefixes, other systems are
/// left out.
pub fn lttng_name(event: &str) -> String {
    match event.split_once(':') {
        Some(("irq", name)) if !name.starts_with("irq_") => format!("irq_{name}"),
        Some(("timer", name)) => format!("timer_{name}"),
        Some((system @ ("writeback" | "power"), name)) => format!("{system}_{name}"),
        Some(("net", name)) if !name.starts_with("net_") => format!("net_{}", name.replacen("netif", "if", 1)),
        Some((_, name)) => name.to_owned(),
        None => event.to_owned(),
    }
}

/// False for events that LTTng records in another way, system calls by an option of their own, and names and processes
/// of threads by contexts; and for those that it does not have.
pub fn is_lttng_event(event: &str) -> bool {
    !["raw_syscalls:", "task:", "compaction:", "tcp:"].iter().any(|system| event.starts_with(system))
}

/// What its command records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordingWay {
    /// The machine, for 10 s.
    Machine,
    /// A run of the user's program, which the command has names in place of.
    Run,
}

/// How much of a question a recording does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingExtent {
    Whole,
    /// Some of it.
    Part,
}

/// A question that a recording cannot answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingTopic {
    /// The host; empty where all traces are of one host.
    pub host: String,
    pub question: &'static str,
    /// How much of it.
    pub extent: MissingExtent,
    /// The events and options that would have answered it, in the words of the recorder.
    pub lacks: Vec<String>,
    /// The consequence.
    pub without: &'static str,
    /// A line for a shell: it records for some seconds what this recording has and what it lacks. Empty where the
    /// recorder cannot record it.
    pub command: String,
    /// What the line records.
    pub way: RecordingWay,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lttng_name_translates_kernel_events() {
        for (kernel, lttng) in [
            ("sched:sched_switch", "sched_switch"),
            ("irq:irq_handler_entry", "irq_handler_entry"),
            ("irq:softirq_raise", "irq_softirq_raise"),
            ("timer:hrtimer_expire_entry", "timer_hrtimer_expire_entry"),
            ("net:net_dev_queue", "net_dev_queue"),
            ("net:netif_receive_skb", "net_if_receive_skb"),
            ("power:cpu_frequency", "power_cpu_frequency"),
            ("block:block_rq_issue", "block_rq_issue"),
        ] {
            assert_eq!(lttng_name(kernel), lttng);
        }
    }
}
