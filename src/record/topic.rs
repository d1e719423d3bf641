//! Topics of a recording: each question of an analysis, the kernel events that answer it, and the consequence without
//! them.
//!
//! Events have the kernel's names, `system:name`; `lttng.rs` translates them into LTTng's.

/// A question and the events that answer it.
#[derive(Debug)]
pub struct Topic {
    /// The question.
    pub question: &'static str,
    /// Events, as `system:name`.
    pub events: &'static [&'static str],
    /// The consequence where they are missing.
    pub without: &'static str,
}

/// The event without which no wait can be explained.
pub const ESSENTIAL: &str = "sched:sched_switch";

/// The events of all system calls. Their fields hold the number of the call, not its name.
pub const SYSTEM_CALLS: [&str; 2] = ["raw_syscalls:sys_enter", "raw_syscalls:sys_exit"];

/// All questions, the most important first.
pub const TOPICS: [Topic; 9] = [
    Topic { question: "who ran", events: &[ESSENTIAL], without: "no wait can be explained" },
    Topic {
        question: "who woke whom",
        events: &["sched:sched_waking", "sched:sched_wakeup_new"],
        without: "for a wait only its place is known, not which thread ended it",
    },
    Topic {
        question: "CPU that a thread waited for",
        events: &["sched:sched_migrate_task"],
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
        without: "threads that begin while recording have no process, and whole processes cannot be tasks",
    },
    Topic {
        question: "system calls",
        events: &SYSTEM_CALLS,
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
        without: "time in interrupts counts for the interrupted thread, and devices have no names",
    },
    Topic {
        question: "disk requests",
        events: &["block:block_rq_insert", "block:block_rq_issue", "block:block_rq_complete"],
        without: "it is unknown behind which thread's requests a slow request queued",
    },
    Topic {
        question: "work of kernel workers",
        events: &[
            "workqueue:workqueue_queue_work",
            "workqueue:workqueue_execute_start",
            "workqueue:workqueue_execute_end",
        ],
        without: "it is unknown for which thread a kernel worker ran",
    },
    Topic {
        question: "packets",
        events: &["net:net_dev_queue", "net:netif_receive_skb"],
        without: "for a wait for the network the sender is unknown",
    },
];
