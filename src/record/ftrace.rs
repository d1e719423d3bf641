//! The command lines of trace-cmd.
//!
//! A trigger records the kernel's stack with switches only. trace-cmd records user stacks with every event or not at
//! all, and with every event they fill the buffers. So the functions of programs are unknown, and a note says so.

use super::Recorder;
use super::recorder_commands::{RecorderCommands, RecorderInput, filter, path_text};
use crate::model::event_name::{ESSENTIAL, SYSTEM_CALLS};

/// The file of the recording.
const TRACE: &str = "trace.dat";

pub(super) fn commands(input: &RecorderInput<'_>) -> RecorderCommands {
    let trace = input.folder.join(TRACE);
    let overwrite = input.request.overwrite.is_some();
    let system_call_filter = filter(input.request);
    let command = if overwrite { "start" } else { "record" };
    let trace_cmd = |words: &[&str]| input.host.command(Recorder::TraceCmd).with(words.iter().copied());
    let mut line = trace_cmd(&[command, "-C", "mono", "-b"]).with([(input.buffer >> 10).to_string()]);
    if !overwrite {
        line = line.with(["-o".to_owned(), path_text(&trace)]);
    }
    for event in input.events.all() {
        line = line.with(["-e", event]);
        if event == ESSENTIAL {
            line = line.with(["-R", "stacktrace"]);
        }
        if let (true, Some(filter)) = (SYSTEM_CALLS.contains(&event), &system_call_filter) {
            line = line.with(["-f", filter.as_str()]);
        }
    }
    if !input.probes.is_empty() {
        line = line.with(["-e", input.name.as_str()]);
    }
    let notes =
        vec!["functions of programs will be unknown: trace-cmd cannot record user stacks for switches only".to_owned()];
    let (prepare, record, finish) = if overwrite {
        let extract = trace_cmd(&["extract", "-o"]).with([path_text(&trace)]);
        (vec![line], None, vec![trace_cmd(&["stop"]), extract, trace_cmd(&["reset"])])
    } else {
        (Vec::new(), Some(line), Vec::new())
    };
    RecorderCommands { prepare, record, finish, trace: TRACE, notes, ..RecorderCommands::default() }
}
