//! The command lines of LTTng.
//!
//! Call stacks are in a channel of their own, so that their size does not push other events out: those of switches show
//! in which function a thread stopped, those of the timer what it computes. User space records what programs bring
//! along.

use super::Recorder;
use super::plan::{RecorderCommands, RecorderInput, shown};
use super::topic::TOPICS;

/// Events that carry call stacks.
const STACKS: &str = "sched_switch,timer_hrtimer_expire_entry";

/// Parts of a buffer.
const PARTS: u64 = 8;

pub(super) fn lines(order: &RecorderInput<'_>) -> RecorderCommands {
    let session = format!("--session={}", order.name);
    let bare = |words: &[&str]| order.host.line(Recorder::Lttng).with(words.iter().copied());
    let lttng = |words: &[&str]| bare(words).with([session.as_str()]);
    let overwrite = order.request.overwrite.is_some();
    let output = format!("--output={}", shown(order.folder));
    let mut create = bare(&["create", &order.name, &output]);
    if overwrite {
        create = create.with(["--snapshot"]);
    }
    let size = format!("--subbuf-size={}", (order.buffer / PARTS).max(1 << 12));
    let number = format!("--num-subbuf={PARTS}");
    let channel = |domain: &str, name: &str| lttng(&["enable-channel", domain, &size, &number, name]);
    let events: Vec<String> = TOPICS
        .iter()
        .flat_map(|topic| topic.events)
        .filter(|event| order.host.has(event) && !event.starts_with("raw_syscalls:") && !event.starts_with("task:"))
        .map(|event| name(event))
        .collect();
    let mut calls = lttng(&["enable-event", "--kernel", "--channel=kernel", "--syscall", "--all"]);
    if let Some(filter) = filter(order) {
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
        bare(&["start", &order.name]),
    ];
    let mut finish = vec![bare(&["stop", &order.name])];
    if overwrite {
        finish.push(lttng(&["snapshot", "record"]));
    }
    finish.push(bare(&["destroy", &order.name]));
    let trace = order.folder.to_owned();
    RecorderCommands { prepare, record: None, finish, trace, notes: Vec::new() }
}

/// An event of the kernel in LTTng's words: systems whose events LTTng prefixes keep a prefix.
fn name(event: &str) -> String {
    match event.split_once(':') {
        Some(("irq", name)) if !name.starts_with("irq_") => format!("irq_{name}"),
        Some(("timer", name)) => format!("timer_{name}"),
        Some(("net", name)) if !name.starts_with("net_") => format!("net_{}", name.replacen("netif", "if", 1)),
        Some((_, name)) => name.to_owned(),
        None => event.to_owned(),
    }
}

/// The threads whose system calls are meant, in LTTng's language of filters.
fn filter(order: &RecorderInput<'_>) -> Option<String> {
    let pids = order.request.pids.iter().map(|pid| format!("$ctx.pid == {pid}"));
    let names = order.request.comms.iter().map(|name| format!("$ctx.procname == \"{name}\""));
    let all: Vec<String> = pids.chain(names).collect();
    (!all.is_empty()).then(|| all.join(" || "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_the_names_that_lttng_gives_them() {
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
