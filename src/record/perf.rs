//! The command lines of perf.
//!
//! Call chains are by frame pointer and with two kinds of events only: at switches, where they show in which function a
//! thread stopped, and at 250 samples a second, where they show what it computes. Elsewhere they would cost and add
//! nothing.

use super::Recorder;
use super::capabilities::Capabilities;
use super::plan::{Probe, RecorderCommands, RecorderInput, filter, shown};
use super::shell::ShellCommand;
use super::topic::{CALLS, ESSENTIAL, TOPICS};

/// Samples of each CPU in a second: as often as the timer of most kernels ticks.
const SAMPLES: u32 = 250;

pub(super) fn lines(order: &RecorderInput<'_>) -> RecorderCommands {
    let mut record = order.host.line(Recorder::Perf).with(["record", "-a", "-k", "mono"]);
    record =
        record.with(["-m".to_owned(), size(order.buffer), "-o".to_owned(), shown(&order.folder.join("perf.data"))]);
    if order.request.overwrite.is_some() {
        record = record.with(["--overwrite"]);
    }
    let only = filter(order.request);
    let events = TOPICS.iter().flat_map(|topic| topic.events).filter(|event| order.host.has(event));
    for event in events {
        let chain = if *event == ESSENTIAL { "fp" } else { "no" };
        record = record.with(["-e".to_owned(), format!("{event}/call-graph={chain}/")]);
        if CALLS.contains(event) {
            // perf's own writes would be most of all system calls.
            record = record.with(["--exclude-perf"]);
            if let Some(only) = &only {
                record = record.with(["--filter", only.as_str()]);
            }
        }
    }
    record = record.with(["-e".to_owned(), format!("cpu-clock/freq={SAMPLES},call-graph=fp/")]);
    if !order.probes.is_empty() {
        record = record.with(["-e".to_owned(), format!("{}:*", order.name)]);
    }
    let mut notes = vec![
        "functions come from frame pointers: of a program that was compiled without them \
         (-fomit-frame-pointer) only the innermost is known"
            .to_owned(),
    ];
    if !order.request.pids.is_empty() {
        notes.push("threads that these processes begin later are recorded without their system calls".to_owned());
    }
    let trace = order.folder.join("perf.data");
    RecorderCommands { prepare: Vec::new(), record: Some(record), finish: Vec::new(), trace, notes }
}

/// The lines that place a probe where a function begins and one where it returns.
pub(super) fn place(host: &Capabilities, probe: &Probe, group: &str) -> [ShellCommand; 2] {
    let event: String = probe.function.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let line = |definition: String| {
        host.line(Recorder::Perf).with(["probe", "--quiet", "-x"]).with([
            shown(&probe.file),
            "--add".to_owned(),
            definition,
        ])
    };
    [
        line(format!("{group}:{event}={}", probe.function)),
        // perf puts `__return` behind this name.
        line(format!("{group}:{event}={}%return", probe.function)),
    ]
}

/// Bytes as perf takes them.
fn size(bytes: u64) -> String {
    if bytes >= 1 << 20 { format!("{}M", bytes >> 20) } else { format!("{}K", bytes >> 10) }
}
