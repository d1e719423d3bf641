//! The command lines of LTTng.
//!
//! Call stacks have a channel of their own, so that their size does not overwrite other events. Stacks of switches show
//! the function in which a thread blocked, stacks of the timer the functions that run. In user space all tracepoints of
//! the programs are recorded.

use super::Recorder;
use super::processes::with_descendants;
use super::recorder_commands::{RecorderCommands, RecorderInput, path_text};
use crate::advice::topic::{is_lttng_event, lttng_name};
use crate::model::event_name::SYSTEM_CALLS;

/// Events that carry call stacks.
const STACKS: &str = "sched_switch,timer_hrtimer_expire_entry";

/// Sub-buffers of a buffer.
const SUB_BUFFERS: u64 = 8;

pub(super) fn commands(input: &RecorderInput<'_>) -> RecorderCommands {
    let session = format!("--session={}", input.name);
    let lttng_bare = |words: &[&str]| input.host.command(Recorder::Lttng).with(words.iter().copied());
    let lttng = |words: &[&str]| lttng_bare(words).with([session.as_str()]);
    let overwrite = input.request.overwrite.is_some();
    // LTTng's daemon writes it, which has another current folder.
    let output = format!("--output={}", path_text(input.output));
    let mut create = lttng_bare(&["create", &input.name, &output]);
    if overwrite {
        create = create.with(["--snapshot"]);
    }
    let size = format!("--subbuf-size={}", (input.buffer / SUB_BUFFERS).max(1 << 12));
    let number = format!("--num-subbuf={SUB_BUFFERS}");
    let channel = |domain: &str, name: &str| lttng(&["enable-channel", domain, &size, &number, name]);
    let events: Vec<String> = input.events.all().filter(|event| is_lttng_event(event)).map(lttng_name).collect();
    let has_calls = input.events.all().any(|event| SYSTEM_CALLS.contains(&event));
    let mut calls = lttng(&["enable-event", "--kernel", "--channel=kernel", "--syscall", "--all"]);
    if let Some(filter) = filter(input) {
        calls = calls.with([format!("--filter={filter}")]);
    }
    let contexts = ["--type=tid", "--type=pid", "--type=procname"];
    let mut prepare = vec![
        create,
        channel("--kernel", "kernel"),
        lttng(&["enable-event", "--kernel", "--channel=kernel", &events.join(",")]),
    ];
    prepare.extend(has_calls.then_some(calls));
    prepare.extend([
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
    ]);
    let mut finish = vec![lttng_bare(&["stop", &input.name])];
    if overwrite {
        finish.push(lttng(&["snapshot", "record"]));
    }
    finish.push(lttng_bare(&["destroy", &input.name]));
    RecorderCommands { prepare, finish, ..RecorderCommands::default() }
}

/// The condition for system calls in LTTng's filter language; `None` if those of all threads are recorded.
fn filter(input: &RecorderInput<'_>) -> Option<String> {
    let pids = with_descendants(&input.request.pids).into_iter().map(|pid| format!("$ctx.pid == {pid}"));
    let names = input.request.comms.iter().map(|name| format!("$ctx.procname == \"{name}\""));
    let all: Vec<String> = pids.chain(names).collect();
    (!all.is_empty()).then(|| all.join(" || "))
}
