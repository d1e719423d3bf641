//! Dialects: the names that other tracers give the events, contexts and call stacks of LTTng's kernel tracer.
//!
//! In: a name as a trace declares it. Out: LTTng's name of the same thing, which `classes.rs` knows. The tables below
//! hold all differences; a new dialect is new rows. An event that no row and no meaning matches, but that looks like a
//! context switch, is reported ([`is_like_a_switch`]). ALGORITHMS.md section 2.3.

use crate::input::Trace;
use std::borrow::Cow;

/// Beginnings of event names, and LTTng's beginnings in their place; the first row that matches counts. perf's names
/// (also in the CTF of `perf data convert --to-ctf`) are `SUBSYSTEM:EVENT`.
const EVENTS: [(&str, &str); 29] = [
    ("raw_syscalls:sys_enter", "syscall_entry_unknown"),
    ("raw_syscalls:sys_exit", "syscall_exit_unknown"),
    ("syscalls:sys_enter_", "syscall_entry_"),
    ("syscalls:sys_exit_", "syscall_exit_"),
    ("compat_syscall_", "syscall_"),
    ("compat_sys_", "syscall_entry_"),
    ("sys_", "syscall_entry_"),
    ("irq:irq_", "irq_"),
    ("irq:", "irq_"),
    ("irq_vectors:", "x86_irq_vectors_"),
    ("exceptions:", "exceptions_"),
    ("timer:", "timer_"),
    ("net:net_", "net_"),
    ("net:", "net_"),
    ("sched:sched_process_fork", "sched_process_fork:tids"),
    ("sched:", ""),
    ("block:", ""),
    ("workqueue:", ""),
    ("power:", "power_"),
    ("signal:", ""),
    ("tcp:", ""),
    ("vmscan:", ""),
    ("compaction:", ""),
    ("writeback:", "writeback_"),
    ("lttng:", ""),
    ("perf_comm", "perf:comm"),
    ("perf_fork", "perf:fork"),
    ("perf_exit", "perf:exit"),
    ("perf_mmap", "perf:mmap"),
];

/// Contexts by their name in LTTng, and the name that others give them, among the contexts or in the payload.
const CONTEXTS: [(&str, &str); 3] = [("tid", "perf_tid"), ("pid", "perf_pid"), ("cpu_id", "perf_cpu")];

/// Call stacks of both modes in one sequence, with marks between them.
pub(super) const CALL_CHAIN: &str = "perf_callchain";

/// Values of a call chain from here on are marks: addresses of the kernel follow, addresses of user space ...
const MARKS: u64 = -4095_i64 as u64;
const KERNEL: u64 = -128_i64 as u64;
const USER: u64 = -512_i64 as u64;

/// The environment's entries for the kernel's release, over all tracers.
pub const RELEASES: [&str; 2] = ["kernel_release", "release"];
/// The environment's entries for the architecture, by which system calls are numbered.
const MACHINES: [&str; 3] = ["machine", "architecture", "arch"];

/// The architecture of the host, by which system calls are numbered.
pub(super) fn machine(trace: &Trace) -> Option<&str> {
    MACHINES.iter().find_map(|entry| trace.environment(entry))
}

/// LTTng's name of an event of a kernel trace.
pub(super) fn event(name: &str) -> Cow<'_, str> {
    let row = EVENTS.iter().find_map(|(begin, becomes)| Some((becomes, name.strip_prefix(begin)?)));
    match row {
        Some((&"", rest)) => Cow::Borrowed(rest),
        Some((becomes, rest)) => Cow::Owned([becomes, rest].concat()),
        None => Cow::Borrowed(name),
    }
}

/// The name that other tracers give a context of LTTng.
pub(super) fn context(name: &str) -> Option<&'static str> {
    CONTEXTS.iter().find(|(known, _)| *known == name).map(|(_, other)| *other)
}

/// The addresses of a call chain, innermost first.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SplitChain {
    pub user: Vec<u64>,
    pub kernel: Vec<u64>,
}

/// Split a call chain at its marks.
pub(super) fn split_chain(chain: impl Iterator<Item = u64>) -> SplitChain {
    let (mut user, mut kernel, mut mode) = (Vec::new(), Vec::new(), USER);
    for value in chain {
        match (value >= MARKS, mode) {
            (true, _) => mode = value,
            (false, KERNEL) => kernel.push(value),
            (false, USER) => user.push(value),
            _ => {}
        }
    }
    SplitChain { user, kernel }
}

/// True for the fields of an event by which one thread gives the CPU to another, whichever tracer wrote it.
pub fn is_like_a_switch<'f>(fields: impl Iterator<Item = &'f str>) -> bool {
    let (mut previous, mut next) = (false, false);
    for field in fields {
        let names_thread = ["pid", "tid", "thread", "task"].iter().any(|end| field.ends_with(end));
        let begins = |words: [&str; 3]| words.iter().any(|word| field.starts_with(word));
        previous |= names_thread && begins(["prev", "old_", "from_"]);
        next |= names_thread && begins(["next", "new_", "to_"]);
    }
    previous && next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_names_are_the_same_for_all_dialects() {
        for (name, wanted) in [
            ("sched:sched_switch", "sched_switch"),
            ("syscalls:sys_enter_futex", "syscall_entry_futex"),
            ("compat_syscall_exit_read", "syscall_exit_read"),
            ("irq:irq_handler_entry", "irq_handler_entry"),
            ("irq:softirq_exit", "irq_softirq_exit"),
            ("irq_vectors:local_timer_entry", "x86_irq_vectors_local_timer_entry"),
            ("timer:hrtimer_expire_entry", "timer_hrtimer_expire_entry"),
            ("net:netif_receive_skb", "net_netif_receive_skb"),
            ("sched_switch", "sched_switch"),
            ("sched:sched_process_fork", "sched_process_fork:tids"),
            ("perf_comm", "perf:comm"),
            ("perf_mmap2", "perf:mmap2"),
            ("app:sys_enter_x", "app:sys_enter_x"),
        ] {
            assert_eq!(event(name), wanted, "{name}");
        }
    }

    #[test]
    fn split_chain_splits_at_the_marks() {
        let guest = -2048_i64 as u64;
        let chain = [KERNEL, 0xffff_8000_0000_0001, USER, 0x1000, 0x2000, guest, 7];
        let expected = SplitChain { user: vec![0x1000, 0x2000], kernel: vec![0xffff_8000_0000_0001] };
        assert_eq!(split_chain(chain.into_iter()), expected);
        assert_eq!(split_chain([5, 6].into_iter()), SplitChain { user: vec![5, 6], kernel: vec![] });
    }

    #[test]
    fn is_like_a_switch_knows_switches_of_unknown_tracers() {
        assert!(is_like_a_switch(["prev_comm", "prev_pid", "next_pid"].into_iter()));
        assert!(is_like_a_switch(["old_thread", "new_thread"].into_iter()));
        assert!(!is_like_a_switch(["pid", "next_pid"].into_iter()));
    }
}
