//! The meaning of record classes: names over all LTTng versions, and the fields that each meaning needs.
//!
//! ALGORITHMS.md 2.3. The names of a field over time are separated by `|`; the first that the class has is taken. A
//! field that it has not is [`crate::input::record::Value::Absent`]. The order of fields is known to [`super::bind`]
//! alone.

use super::dialect;
use crate::event::descriptor::descriptor_fields;
use crate::event::kind::{RequestStep, Vector, WorkStep};
use crate::event::remark::{KernelWork, RemarkKind};
use crate::event::stack::StackOrigin;

/// The meaning of a record class, without its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Switch,
    Waking,
    Wakeup,
    /// A wake-up whose waker `sched_waking` records: it only shows the run queue.
    Queued,
    WakeNew,
    Fork,
    Exec,
    Exit,
    Free,
    Leaves,
    Returns,
    Migrate,
    IrqEnter,
    IrqLeave,
    SoftIrqRaise,
    SoftIrqEnter,
    SoftIrqLeave,
    TimerEnter,
    TimerLeave,
    VectorEnter(Vector),
    VectorLeave(Vector),
    ReceptionEnter,
    ReceptionLeave,
    CallEntry,
    CallExit,
    /// A call by its number.
    NumberedEntry,
    NumberedExit,
    Send,
    Receive,
    Block(RequestStep),
    Process,
    /// A thread has another name from now on.
    Name,
    Namespace,
    Line,
    PageFault,
    /// A signal is sent.
    Signal,
    /// A CPU has another frequency.
    Frequency,
    /// A CPU enters or leaves an idle state.
    IdleState,
    /// Any other event that changes no state.
    Remark(RemarkKind),
    FunctionEntry,
    FunctionExit,
    Sample(StackOrigin),
    /// A profiler's sample of the running thread: an amount of an event, with a call stack.
    Tick,
    Latency,
    Work(WorkStep),
    Restart,
    Load,
    /// A part of a file that a process has mapped, as the kernel records it.
    Map,
    BuildId,
    DebugLink,
    Unload,
    /// Any other class, which has only a context, a stack or a delimiter of use.
    Other,
}

/// A meaning with its fields, and whether the contexts that name the running thread are decoded: interrupts have many
/// events, and these say nothing about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Meaning {
    pub shape: Shape,
    pub fields: &'static [&'static str],
    pub context: bool,
}

const TCP_FIELDS: &[&str] = &[
    "skbaddr",
    "network_header.ipv4.saddr",
    "network_header.ipv4.daddr",
    "network_header.ipv4.tot_len",
    "network_header.ipv4.ihl",
    "network_header.ipv6.saddr",
    "network_header.ipv6.daddr",
    "network_header.ipv6.payload_len",
    "network_header.ipv4.transport_header.tcp.source_port",
    "network_header.ipv4.transport_header.tcp.dest_port",
    "network_header.ipv4.transport_header.tcp.seq",
    "network_header.ipv4.transport_header.tcp.ack_seq",
    "network_header.ipv4.transport_header.tcp.data_offset",
    "network_header.ipv4.transport_header.tcp.flags",
    "network_header.ipv6.transport_header.tcp.source_port",
    "network_header.ipv6.transport_header.tcp.dest_port",
    "network_header.ipv6.transport_header.tcp.seq",
    "network_header.ipv6.transport_header.tcp.ack_seq",
    "network_header.ipv6.transport_header.tcp.data_offset",
    "network_header.ipv6.transport_header.tcp.flags",
];
const REQUEST: &[&str] = &["dev", "sector", "nr_sector", "bytes", "rwbs", "tid"];
const MAP: &[&str] = &["addr|start", "len", "filename", "pgoff", "pid", "build_id", "build_id_size"];
const LOAD: &[&str] = &["baddr", "memsz|size", "path|sopath", "is_pic"];

/// LTTng alone has `prev_tid`; its priorities are those of the kernel less 100.
const SWITCH: &[&str] =
    &[LEAVING, "next_tid|next_pid", "prev_state", "prev_comm", "next_comm", "prev_prio", "next_prio", "prev_tid"];

/// The thread that leaves the CPU by a switch.
pub(super) const LEAVING: &str = "prev_tid|prev_pid";

/// The meaning of a class of a kernel trace; `None` where no analysis needs it.
pub(super) fn kernel(name: &str) -> Option<Meaning> {
    let with = |shape, fields| Some(Meaning { shape, fields, context: true });
    let bare = |shape, fields| Some(Meaning { shape, fields, context: false });
    let block = |step| with(Shape::Block(step), REQUEST);
    let name = &*dialect::event(name);
    match name {
        "sched_switch" => with(Shape::Switch, SWITCH),
        "perf:switch_out" | "perf:switch_preempted" => bare(Shape::Switch, &[LEAVING, "next_tid", "prev_state"]),
        "sched_waking" => with(Shape::Waking, &["tid|pid", "target_cpu", "comm", "common_flags"]),
        "sched_wakeup" | "sched_ttwu" => with(Shape::Wakeup, &["tid|pid", "target_cpu", "comm", "common_flags"]),
        "sched_wakeup_new" => with(Shape::WakeNew, &["tid|pid", "target_cpu", "comm"]),
        "sched_process_fork" => {
            with(Shape::Fork, &["parent_tid|parent_pid", "child_tid|child_pid", "child_pid", "vtids", "child_comm"])
        }
        // perf and ftrace record ids of threads and none of a process.
        "sched_process_fork:tids" => with(Shape::Fork, &["parent_pid", "child_pid", "", "", "child_comm"]),
        "perf:fork" => bare(Shape::Fork, &["ptid", "tid", "pid"]),
        "perf:fork_before" => bare(Shape::Process, &["tid", "pid", "ppid"]),
        "perf:comm_before" => bare(Shape::Process, &["tid", "pid", "ppid", "status", "cpu", "comm"]),
        "perf:comm" => bare(Shape::Name, &["tid", "pid", "comm"]),
        "perf:comm_exec" => bare(Shape::Exec, &["tid", "old_tid", "comm"]),
        "perf:task_out" | "perf:task_preempted" => bare(Shape::Leaves, &["tid", "prev_state"]),
        "perf:task_in" => bare(Shape::Returns, &["tid"]),
        "perf:exit" => bare(Shape::Exit, &["tid"]),
        "perf:mmap" | "perf:mmap2" | "perf:mmap2_build_id" => bare(Shape::Map, MAP),
        "perf:tick" => with(Shape::Tick, &["period"]),
        "sched_process_exec" => with(Shape::Exec, &["tid|pid", "old_tid|old_pid", "filename"]),
        "sched_process_exit" => with(Shape::Exit, &["tid|pid"]),
        "sched_process_free" => bare(Shape::Free, &["tid|pid"]),
        "sched_migrate_task" => with(Shape::Migrate, &["tid|pid", "dest_cpu"]),
        "irq_handler_entry" => bare(Shape::IrqEnter, &["irq", "name"]),
        "irq_handler_exit" => bare(Shape::IrqLeave, &["irq"]),
        "irq_softirq_raise" | "softirq_raise" => bare(Shape::SoftIrqRaise, &["vec"]),
        "irq_softirq_entry" | "softirq_entry" => bare(Shape::SoftIrqEnter, &["vec"]),
        "irq_softirq_exit" | "softirq_exit" => bare(Shape::SoftIrqLeave, &["vec"]),
        "timer_hrtimer_expire_entry" | "hrtimer_expire_entry" => bare(Shape::TimerEnter, &[]),
        "timer_hrtimer_expire_exit" | "hrtimer_expire_exit" => bare(Shape::TimerLeave, &[]),
        "net_dev_queue" => with(Shape::Send, TCP_FIELDS),
        "net_if_receive_skb" | "net_netif_receive_skb" | "netif_receive_skb" => bare(Shape::Receive, TCP_FIELDS),
        "net_napi_gro_frags_entry"
        | "net_napi_gro_receive_entry"
        | "net_if_receive_skb_entry"
        | "net_if_receive_skb_list_entry" => bare(Shape::ReceptionEnter, &[]),
        "net_napi_gro_frags_exit"
        | "net_napi_gro_receive_exit"
        | "net_if_receive_skb_exit"
        | "net_if_receive_skb_list_exit" => bare(Shape::ReceptionLeave, &[]),
        "block_rq_insert" => block(RequestStep::Insert),
        "block_rq_issue" => block(RequestStep::Issue),
        "block_rq_complete" => bare(Shape::Block(RequestStep::Complete), REQUEST),
        "lttng_statedump_process_state" => with(Shape::Process, &["tid", "pid", "ppid", "status", "cpu", "name"]),
        "lttng_statedump_process_pid_ns" => with(Shape::Namespace, &["tid", "vtid", "vpid", "ns_level"]),
        "lttng_statedump_interrupt" => with(Shape::Line, &["irq", "action"]),
        "workqueue_queue_work" => with(Shape::Work(WorkStep::Queue), &["work"]),
        "workqueue_execute_start" => with(Shape::Work(WorkStep::Begin), &["work"]),
        "workqueue_execute_end" => with(Shape::Work(WorkStep::End), &["work"]),
        "syscall_entry_unknown" => with(Shape::NumberedEntry, &["id", "args"]),
        "syscall_exit_unknown" => with(Shape::NumberedExit, &["id", "ret"]),
        "signal_generate" => with(Shape::Signal, &["sig", "tid|pid"]),
        "power_cpu_idle" => bare(Shape::IdleState, &["state"]),
        "power_cpu_frequency" => bare(Shape::Frequency, &["state", "cpu_id"]),
        "syscall_latency" => with(Shape::Latency, &["duration"]),
        "page_fault_user"
        | "page_fault_kernel"
        | "exceptions_page_fault_user"
        | "exceptions_page_fault_kernel"
        | "x86_exceptions_page_fault_user"
        | "x86_exceptions_page_fault_kernel" => with(Shape::PageFault, &[]),
        _ => vector(name).or_else(|| remark(name)).or_else(|| match call(name)? {
            SystemCallEvent { side: CallSide::Entry, call } => with(Shape::CallEntry, descriptor_fields(call)),
            SystemCallEvent { side: CallSide::Exit, .. } => with(Shape::CallExit, &["ret"]),
        }),
    }
}

/// The events that change no state and have no field of use: begins and ends of the kernel's work on memory for a
/// thread, a pause for write-back, a segment of TCP that is sent again, a probe where the kernel throttles a group.
fn remark(name: &str) -> Option<Meaning> {
    use KernelWork::{Compaction, GroupReclaim, Reclaim, WriteBack};
    use RemarkKind::{Begins, Ends};
    let kind = match name {
        "mm_vmscan_direct_reclaim_begin" => Begins(Reclaim),
        "mm_vmscan_direct_reclaim_end" => Ends(Reclaim),
        "mm_vmscan_memcg_reclaim_begin" => Begins(GroupReclaim),
        "mm_vmscan_memcg_reclaim_end" => Ends(GroupReclaim),
        "mm_compaction_begin" => Begins(Compaction),
        "mm_compaction_end" => Ends(Compaction),
        "balance_dirty_pages" | "writeback_balance_dirty_pages" => Begins(WriteBack),
        "tcp_retransmit_skb" => RemarkKind::Retransmits,
        _ if is_throttling(name) => RemarkKind::Throttled,
        _ => return None,
    };
    Some(Meaning { shape: Shape::Remark(kind), fields: &[], context: true })
}

/// True for a probe where the kernel throttles a control group (`perf probe throttle_cfs_rq`, or a kprobe of ftrace).
fn is_throttling(name: &str) -> bool {
    let probe = name.rsplit(':').next().unwrap_or(name);
    let probe = probe.strip_prefix("p_").unwrap_or(probe);
    probe.starts_with("throttle_cfs_rq") && !probe.ends_with("__return")
}

/// `x86_irq_vectors_NAME_entry` and `_exit`.
fn vector(name: &str) -> Option<Meaning> {
    let rest = name.strip_prefix("x86_irq_vectors_")?;
    let (vector, enter) = match rest.strip_suffix("_entry") {
        Some(vector) => (vector, true),
        None => (rest.strip_suffix("_exit")?, false),
    };
    let vector = match vector {
        "local_timer" => Vector::LocalTimer,
        "reschedule" | "call_function" | "call_function_single" => Vector::Ipi,
        "irq_work" => Vector::Work,
        _ => Vector::Other,
    };
    let shape = if enter { Shape::VectorEnter(vector) } else { Shape::VectorLeave(vector) };
    Some(Meaning { shape, fields: &[], context: false })
}

/// The name of an interrupt vector, from that of its event.
pub(super) fn vector_name(name: &str) -> String {
    dialect::event(name).trim_start_matches("x86_irq_vectors_").trim_end_matches("_entry").to_owned()
}

/// The two events of a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallSide {
    Entry,
    Exit,
}

/// The entry or exit of a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SystemCallEvent<'n> {
    pub side: CallSide,
    /// Name of the call; empty where the name of the event does not contain it (exits of old recordings, calls by
    /// number).
    pub call: &'n str,
}

/// The system call of an event; `None` for events of other kinds.
pub(super) fn call(name: &str) -> Option<SystemCallEvent<'_>> {
    let plain = dialect::event(name);
    let (side, call) = match &*plain {
        "exit_syscall" | "compat_exit_syscall" | "syscall_exit_unknown" => {
            return Some(SystemCallEvent { side: CallSide::Exit, call: "" });
        }
        "syscall_entry_unknown" => return Some(SystemCallEvent { side: CallSide::Entry, call: "" }),
        plain => match plain.strip_prefix("syscall_entry_") {
            Some(call) => (CallSide::Entry, call),
            None => (CallSide::Exit, plain.strip_prefix("syscall_exit_")?),
        },
    };
    // Dialects differ in how names begin.
    name.len().checked_sub(call.len()).and_then(|at| name.get(at..)).map(|call| SystemCallEvent { side, call })
}

/// The name of the event of a system call.
pub(super) fn event_of(side: CallSide, call: &str) -> String {
    match side {
        CallSide::Entry => format!("syscall_entry_{call}"),
        CallSide::Exit => format!("syscall_exit_{call}"),
    }
}

/// The meaning of a class of a user-space trace.
pub(super) fn user(name: &str) -> Option<Meaning> {
    let with = |shape, fields| Some(Meaning { shape, fields, context: true });
    match name {
        "lttng_ust_statedump:start" => with(Shape::Restart, &[]),
        "lttng_ust_statedump:bin_info"
        | "lttng_ust_dl:dlopen"
        | "lttng_ust_dl:dlmopen"
        | "lttng_ust_lib:load"
        | "ust_baddr_statedump:soinfo"
        | "ust_baddr:push" => with(Shape::Load, LOAD),
        "lttng_ust_statedump:build_id" | "lttng_ust_dl:build_id" | "lttng_ust_lib:build_id" => {
            with(Shape::BuildId, &["baddr", "build_id"])
        }
        "lttng_ust_statedump:debug_link" | "lttng_ust_dl:debug_link" | "lttng_ust_lib:debug_link" => {
            with(Shape::DebugLink, &["baddr", "filename", "crc"])
        }
        "lttng_ust_cyg_profile:func_entry" | "lttng_ust_cyg_profile_fast:func_entry" => {
            with(Shape::FunctionEntry, &["addr|func_addr"])
        }
        "lttng_ust_cyg_profile:func_exit" | "lttng_ust_cyg_profile_fast:func_exit" => {
            with(Shape::FunctionExit, &["addr|func_addr"])
        }
        "lttng_profile:on_cpu_sample" => with(Shape::Sample(StackOrigin::Tick), &["stack"]),
        "lttng_profile:off_cpu_sample" => with(Shape::Sample(StackOrigin::AfterCall), &["stack"]),
        "lttng_ust_dl:dlclose" | "lttng_ust_lib:unload" | "ust_baddr:pop" => with(Shape::Unload, &["baddr"]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_gives_names_of_all_versions_one_meaning() {
        for (old, new) in [
            ("softirq_entry", "irq_softirq_entry"),
            ("hrtimer_expire_exit", "timer_hrtimer_expire_exit"),
            ("netif_receive_skb", "net_if_receive_skb"),
            ("sys_read", "syscall_entry_read"),
            ("exit_syscall", "compat_syscall_exit_read"),
        ] {
            assert_eq!(kernel(old), kernel(new), "{old}");
            assert!(kernel(old).is_some(), "{old}");
        }
        let futex = SystemCallEvent { side: CallSide::Entry, call: "futex" };
        assert_eq!(call("compat_syscall_entry_futex"), Some(futex));
        assert_eq!(kernel("sched_stat_wait"), None);
        let shape = |name| kernel(name).map(|m| m.shape);
        assert_eq!(shape("x86_irq_vectors_reschedule_exit"), Some(Shape::VectorLeave(Vector::Ipi)));
        assert_eq!(shape("x86_irq_vectors_local_timer_entry"), Some(Shape::VectorEnter(Vector::LocalTimer)));
    }
}
