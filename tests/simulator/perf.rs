//! The dialect of `perf record` in CTF: names and fields as the kernel's tracepoints have them, contexts as fields
//! `perf_...`.
//!
//! Source: tools/perf/util/data-convert-bt.c of the kernel.

use super::ctf_writer::{Event, Value};
use super::kernel_code::KERNEL_STACK;
use std::collections::BTreeSet;

/// Marks before the parts of a call chain.
const KERNEL_PART: i64 = -128;
const USER_PART: i64 = -512;

fn part(mark: i64, stack: &[u64]) -> Vec<u64> {
    if stack.is_empty() { Vec::new() } else { [&[mark as u64][..], stack].concat() }
}

/// As `perf record` names and `perf data convert --to-ctf` writes it.
pub(super) fn as_perf(mut event: Event, stacks: bool) -> Event {
    // Its own records are no samples.
    if event.name.starts_with("perf_") {
        return event;
    }
    let stem = |stem: &str| event.name.strip_prefix(stem).map(str::to_owned);
    event.name = if let Some(call) = stem("syscall_entry_") {
        format!("syscalls:sys_enter_{call}")
    } else if let Some(call) = stem("syscall_exit_") {
        format!("syscalls:sys_exit_{call}")
    } else if let Some(vector) = stem("x86_irq_vectors_") {
        format!("irq_vectors:{vector}")
    } else if let Some(timer) = stem("timer_") {
        format!("timer:{timer}")
    } else if let Some(power) = stem("power_") {
        format!("power:{power}")
    } else if event.name.starts_with("irq_softirq") {
        format!("irq:{}", &event.name[4..])
    } else if event.name == "net_if_receive_skb" {
        "net:netif_receive_skb".to_owned()
    } else {
        format!("{}:{}", event.name.split('_').next().unwrap(), event.name)
    }
    .into();
    let is_kernel = |(name, _): &&(&str, Value)| *name == KERNEL_STACK;
    let kernel = match event.fields.iter().find(is_kernel) {
        Some((_, Value::Words(stack))) => part(KERNEL_PART, stack),
        _ => Vec::new(),
    };
    let block = event.name.starts_with("block:");
    event.fields.retain(|(name, _)| {
        !(matches!(*name, "network_header" | "vtids" | "child_tid" | KERNEL_STACK) || block && *name == "tid")
    });
    for (name, _) in &mut event.fields {
        *name = match *name {
            "prev_tid" => "prev_pid",
            "next_tid" => "next_pid",
            "parent_tid" => "parent_pid",
            "tid" => "pid",
            other => other,
        };
    }
    let mut fields: Vec<(&'static str, Value)> = vec![
        ("perf_ip", Value::U64(0xffff_ffff_8112_3456)),
        ("perf_tid", Value::I32(event.on.tid)),
        ("perf_pid", Value::I32(event.on.pid)),
        ("perf_id", Value::U64(11)),
        ("perf_period", Value::U64(1)),
    ];
    if stacks {
        let user = event.stack.iter().flat_map(|stack| part(USER_PART, stack));
        fields.push(("perf_callchain", Value::Words(kernel.into_iter().chain(user).collect())));
    }
    let mut seen = BTreeSet::new();
    event.fields.retain(|(name, _)| seen.insert(*name));
    fields.append(&mut event.fields);
    event.fields = fields;
    event
}
