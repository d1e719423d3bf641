//! The command lines of trace-cmd.
//!
//! A trigger records the kernel's stack with switches only. trace-cmd could record user stacks only with every event,
//! which costs more than it is worth: functions of programs stay unknown, and a note says so.

use super::Recorder;
use super::plan::{RecorderCommands, RecorderInput, filter, shown};
use super::topic::{CALLS, ESSENTIAL, TOPICS};

pub(super) fn lines(order: &RecorderInput<'_>) -> RecorderCommands {
    let trace = order.folder.join("trace.dat");
    let overwrite = order.request.overwrite.is_some();
    let only = filter(order.request);
    let command = if overwrite { "start" } else { "record" };
    let trace_cmd = |words: &[&str]| order.host.line(Recorder::TraceCmd).with(words.iter().copied());
    let mut line = trace_cmd(&[command, "-C", "mono", "-b"]).with([(order.buffer >> 10).to_string()]);
    if !overwrite {
        line = line.with(["-o".to_owned(), shown(&trace)]);
    }
    for event in TOPICS.iter().flat_map(|topic| topic.events).filter(|event| order.host.has(event)) {
        line = line.with(["-e", event]);
        if *event == ESSENTIAL {
            line = line.with(["-R", "stacktrace"]);
        }
        if let (true, Some(only)) = (CALLS.contains(event), &only) {
            line = line.with(["-f", only.as_str()]);
        }
    }
    if !order.probes.is_empty() {
        line = line.with(["-e", order.name.as_str()]);
    }
    let notes =
        vec!["functions of programs will be unknown: trace-cmd cannot record user stacks for switches only".to_owned()];
    let (prepare, record, finish) = match overwrite {
        true => {
            let extract = trace_cmd(&["extract", "-o"]).with([shown(&trace)]);
            (vec![line], None, vec![trace_cmd(&["stop"]), extract, trace_cmd(&["reset"])])
        }
        false => (Vec::new(), Some(line), Vec::new()),
    };
    RecorderCommands { prepare, record, finish, trace, notes }
}
