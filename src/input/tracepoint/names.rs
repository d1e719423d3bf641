//! Names of tracepoints and their fields that have a meaning for all recorders.

use super::format::Format;
use std::borrow::Cow;

/// Fields that the kernel gives to events of probes (`Documentation/trace/uprobetracer.rst`, `kprobetrace.rst`).
pub const PROBED: [&str; 2] = ["__probe_ip", "__probe_func"];

/// True for common fields that the record's other fields do not repeat: `common_pid` is the context `tid`.
pub fn is_of_interest(common: &str) -> bool {
    matches!(common, "common_flags" | "common_preempt_count")
}

/// The LTTng kernel tracer's name of a tracepoint. `sched_process_fork` gets a name of its own, because its `child_pid`
/// is a thread's id here.
pub fn known_as(format: &Format) -> Option<Cow<'static, str>> {
    let Format { system, name, .. } = format;
    // Users choose the names of probes, so these names have no meaning of the kernel.
    if format.fields.iter().any(|field| PROBED.contains(&field.name.as_str())) {
        return None;
    }
    Some(match (system.as_str(), name.as_str()) {
        ("syscalls", name) => match name.split_at_checked(9) {
            Some(("sys_enter", call)) => format!("syscall_entry{call}").into(),
            _ => format!("syscall_exit{}", name.strip_prefix("sys_exit")?).into(),
        },
        ("raw_syscalls", name) => format!("raw_syscalls:{name}").into(),
        ("irq", "softirq_raise" | "softirq_entry" | "softirq_exit") => format!("irq_{name}").into(),
        ("timer", name) if name.starts_with("hrtimer_expire") => format!("timer_{name}").into(),
        ("irq_vectors", name) => format!("x86_irq_vectors_{name}").into(),
        ("exceptions", name) => format!("x86_exceptions_{name}").into(),
        ("net", name) if name.starts_with("netif_receive_skb") => format!("net_if_{}", name.get(6..)?).into(),
        ("net", name) if name.starts_with("napi_gro") => format!("net_{name}").into(),
        (system @ ("power" | "writeback"), name) => format!("{system}_{name}").into(),
        ("sched", "sched_process_fork") => "sched_process_fork:tids".into(),
        _ => name.clone().into(),
    })
}
