//! The command lines of LTTng.
//!
//! Call stacks have a channel of their own, so that their size does not overwrite other events. Stacks of switches show
//! the function in which a thread blocked, stacks of the timer the functions that run. In user space all tracepoints of
//! the programs are recorded.

use super::Recorder;
use super::plan::{RecorderCommands, RecorderInput, path_text};
use super::topic::TOPICS;

/// Events that carry call stacks.
const STACKS: &str = "sched_switch,timer_hrtimer_expire_entry";

/// Sub-buffers of a buffer.
const SUB_BUFFERS: u64 = 8;

pub(super) fn commands(input: &RecorderInput<'_>) -> RecorderCommands {
    let session = format!("--session={}", input.name);
    let lttng_bare = |words: &[&str]| input.host.command(Recorder::Lttng).with(words.iter().copied());
    let lttng = |words: &[&str]| lttng_bare(words).with([session.as_str()]);
    let overwrite = input.request.overwrite.is_some();
    let output = format!("--output={}", path_text(input.folder));
    let mut create = lttng_bare(&["create", &input.name, &output]);
    if overwrite {
        create = create.with(["--snapshot"]);
    }
    let size = format!("--subbuf-size={}", (input.buffer / SUB_BUFFERS).max(1 << 12));
    let number = format!("--num-subbuf={SUB_BUFFERS}");
    let channel = |domain: &str, name: &str| lttng(&["enable-channel", domain, &size, &number, name]);
    let events: Vec<String> = TOPICS
        .iter()
        .flat_map(|topic| topic.events)
        .filter(|event| input.host.has(event) && !event.starts_with("raw_syscalls:") && !event.starts_with("task:"))
        .map(|event| name(event))
        .collect();
    let mut calls = lttng(&["enable-event", "--kernel", "--channel=kernel", "--syscall", "--all"]);
    if let Some(filter) = filter(input) {
        calls = calls.with([format!("--filter={filter}")]);
    }
    let contexts = ["--type=tid", "--type=pid", "--type=procname"];
    let prepare = vec![
        create,
        channel("--kernel", "kernel"),
        lttng(&["enable-event", "--kernel", "--channel=kernel", &events.join(",")]),
        calls,
        lttng(&["add-context", "--kernel", "--channel=kernel"]).with(contexts),
        channel("--kernel", "stacks"),
        lttng(&["enable-event", "--kernel", "--channel=stacks", STACKS]),
        lttng(&["add-context", "--kernel", "--channel=stacks"]).with([
            "--type=tid",
            "--type=pid",
            "--type=callstack-user",
            "--type=callstack-kernel",
        ]),
        channel("--userspace", "user"),
        lttng(&["enable-event", "--userspace", "--channel=user", "--all"]),
        lttng(&["add-context", "--userspace", "--channel=user"]).with([
            "--type=vtid",
            "--type=vpid",
            "--type=procname",
        ]),
        lttng_bare(&["start", &input.name]),
    ];
    let mut finish = vec![lttng_bare(&["stop", &input.name])];
    if overwrite {
        finish.push(lttng(&["snapshot", "record"]));
    }
    finish.push(lttng_bare(&["destroy", &input.name]));
    let trace = input.folder.to_owned();
    RecorderCommands { prepare, record: None, finish, trace, notes: Vec::new() }
}

/// LTTng's name of a kernel event: `irq`, `timer` and `net` stay as prefixes, other systems are left out.
fn name(event: &str) -> String {
    match event.split_once(':') {
        Some(("irq", name)) if !name.starts_with("irq_") => format!("irq_{name}"),
        Some(("timer", name)) => format!("timer_{name}"),
        Some(("net", name)) if !name.starts_with("net_") => format!("net_{}", name.replacen("netif", "if", 1)),
        Some((_, name)) => name.to_owned(),
        None => event.to_owned(),
    }
}

/// The condition for system calls in LTTng's filter language; `None` if those of all threads are recorded.
fn filter(input: &RecorderInput<'_>) -> Option<String> {
    let pids = input.request.pids.iter().map(|pid| format!("$ctx.pid == {pid}"));
    let names = input.request.comms.iter().map(|name| format!("$ctx.procname == \"{name}\""));
    let all: Vec<String> = pids.chain(names).collect();
    (!all.is_empty()).then(|| all.join(" || "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_translates_kernel_events_to_lttng() {
        for (kernel, lttng) in [
            ("sched:sched_switch", "sched_switch"),
            ("irq:irq_handler_entry", "irq_handler_entry"),
            ("irq:softirq_raise", "irq_softirq_raise"),
            ("timer:hrtimer_expire_entry", "timer_hrtimer_expire_entry"),
            ("net:net_dev_queue", "net_dev_queue"),
            ("net:netif_receive_skb", "net_if_receive_skb"),
            ("block:block_rq_issue", "block_rq_issue"),
        ] {
            assert_eq!(name(kernel), lttng);
        }
    }
}
