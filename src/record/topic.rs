//! Topics of a recording: each question of an analysis, the kernel events that answer it, and the consequence without
//! them.
//!
//! Events are named as the kernel does, `system:name`; `lttng.rs` turns them into LTTng's words.

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

/// The event that every explanation needs.
pub const ESSENTIAL: &str = "sched:sched_switch";

/// The events of all system calls, by number.
pub const CALLS: [&str; 2] = ["raw_syscalls:sys_enter", "raw_syscalls:sys_exit"];

/// All questions, the most important first.
pub const TOPICS: [Topic; 9] = [
    Topic { question: "who ran", events: &[ESSENTIAL], without: "no wait can be explained" },
    Topic {
        question: "who woke whom",
        events: &["sched:sched_waking", "sched:sched_wakeup_new"],
        without: "for a wait only its place is known, not which thread ended it",
    },
    Topic {
        question: "where a woken thread queued",
        events: &["sched:sched_migrate_task"],
        without: "for some threads that waited for a CPU it is unknown for which",
    },
    Topic {
        question: "which threads and programs",
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
        question: "in which system call",
        events: &CALLS,
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
        without: "it is unknown whose requests a slow one queued behind",
    },
    Topic {
        question: "kernel workers",
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
