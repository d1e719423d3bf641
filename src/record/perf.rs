//! The command lines of perf.
//!
//! perf records call chains (by frame pointer, or copied stacks) with two kinds of events only: with switches, to show
//! the function in which a thread blocked, and with 250 samples a second, to show the functions that run. With other
//! events call chains would cost buffer space and answer no question. Where threads are chosen, the switches of others
//! have none, unless the recording is full: two events of one tracepoint have filters of which exactly one holds. Where
//! instances of tracefs can be made, perf records nothing but this and what threads are: a ring buffer of tracefs takes
//! a third of the time for each other event.

use super::capabilities::Capabilities;
use super::recorder_commands::{Probe, RecorderCommands, RecorderInput, filter, path_text};
use super::shell::ShellCommand;
use super::tracefs::{self, TracefsCommands};
use super::{CallGraph, Recorder};
use crate::model::event_name::{ESSENTIAL, SYSTEM_CALLS};

/// Samples of each CPU in a second: the rate of the timer tick in most kernels.
const SAMPLES_PER_SECOND: u32 = 250;

/// The file of the recording.
const TRACE: &str = "perf.data";

pub(super) fn commands(input: &RecorderInput<'_>) -> RecorderCommands {
    let mut record = input.host.command(Recorder::Perf).with(["record", "-a", "-k", "mono"]);
    record = record.with(["-m".to_owned(), size(input.buffer), "-o".to_owned(), path_text(&input.folder.join(TRACE))]);
    if input.request.overwrite.is_some() {
        record = record.with(["--overwrite"]);
    }
    if let Some(control) = &input.control {
        record = record.with([format!("--control=fifo:{}", path_text(control))]);
    }
    if maps_have_build_ids(input.host) {
        record = record.with(["--buildid-mmap"]);
    }
    let filter = filter(input.request);
    let beside = tracefs::beside_perf(input);
    let own = input.events.all().filter(|event| beside.is_none() || !is_left_out(event));
    for event in own {
        let plain = |call_graph: &str| ["-e".to_owned(), format!("{event}/call-graph={call_graph}/")];
        let call_graph = if event == ESSENTIAL { input.request.call_graph.name() } else { "no" };
        record = record.with(plain(call_graph));
        match &filter {
            Some(filter) if event == ESSENTIAL && !input.request.full => {
                record = record.with(["--filter", filter.as_str()]);
                record = record.with(plain("no")).with(["--filter".to_owned(), format!("!({filter})")]);
            }
            _ if !SYSTEM_CALLS.contains(&event) => {}
            filter => {
                // Most system calls would be perf's own writes.
                record = record.with(["--exclude-perf"]);
                if let Some(filter) = filter {
                    record = record.with(["--filter", filter.as_str()]);
                }
            }
        }
    }
    let call_graph = input.request.call_graph;
    let samples = format!("cpu-clock/freq={SAMPLES_PER_SECOND},call-graph={}/", call_graph.name());
    record = record.with(["-e".to_owned(), samples]);
    if !input.probes.is_empty() {
        record = record.with(["-e".to_owned(), format!("{}:*", input.name)]);
    }
    let mut notes = vec![match call_graph {
        CallGraph::Fp => "functions come from frame pointers: of a program that was compiled without them \
                          (-fomit-frame-pointer) only the innermost is known; --call-graph dwarf copies stacks instead"
            .to_owned(),
        CallGraph::Dwarf => {
            "stacks are copied, 8 KiB with each switch and sample; the programs must be at their paths when the \
             recording is opened, or below --symbols DIR"
                .to_owned()
        }
    }];
    if !input.request.pids.is_empty() {
        let (lacks, others) = match (beside.is_some(), input.request.full) {
            (false, true) => (" system calls", ""),
            (false, false) => (" system calls and call stacks of switches", ""),
            (true, true) => ("", ""),
            (true, false) => (" call stacks of switches", "; other processes have none either: --full records them"),
        };
        if !lacks.is_empty() {
            let named = "unless they keep the name of one that runs now";
            notes.push(format!("threads that these processes begin later have no{lacks}, {named}{others}"));
        }
    }
    let TracefsCommands { record, finish, ring_buffers } = match beside {
        Some(beside) => beside.around(record),
        None => TracefsCommands { record, ..TracefsCommands::default() },
    };
    RecorderCommands { record: Some(record), finish, trace: TRACE, notes, ring_buffers, ..RecorderCommands::default() }
}

/// True for events that cost less in a ring buffer of tracefs, and that say neither who ran nor what a thread is.
pub(super) fn is_left_out(event: &str) -> bool {
    !["sched:", "task:"].iter().any(|system| event.starts_with(system))
}

/// The first perf that answers `ping` at its control. It does nothing else then, but like after every message it writes
/// what its buffers hold. Otherwise it writes once a buffer is half full, and until then its file shows no events.
const PINGS: [u32; 2] = [5, 12];

/// True if perf can be asked to write what its buffers hold.
pub(super) fn accepts_pings(host: &Capabilities) -> bool {
    host.perf.as_ref().is_some_and(|tool| tool.version.as_slice() >= PINGS.as_slice())
}

/// The first kernel, and the first perf, whose records of mappings can hold build ids. With them names are not taken
/// from a file that was replaced after the recording.
const BUILD_IDS: [u32; 2] = [5, 12];

/// True if both the kernel and perf can record build ids with mappings.
fn maps_have_build_ids(host: &Capabilities) -> bool {
    let kernel: Vec<u32> = host.release.split(['.', '-']).map_while(|n| n.parse().ok()).collect();
    let perf = host.perf.as_ref().map_or(&[][..], |tool| &tool.version);
    kernel.as_slice() >= BUILD_IDS.as_slice() && perf >= BUILD_IDS.as_slice()
}

/// The commands that place one probe where a function begins and one where it returns.
pub(super) fn probe_commands(host: &Capabilities, probe: &Probe, group: &str) -> [ShellCommand; 2] {
    let event: String = probe.function.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let command = |definition: String| {
        host.command(Recorder::Perf).with(["probe", "--quiet", "-x"]).with([
            path_text(&probe.file),
            "--add".to_owned(),
            definition,
        ])
    };
    [
        command(format!("{group}:{event}={}", probe.function)),
        // perf appends `__return` to this name.
        command(format!("{group}:{event}={}%return", probe.function)),
    ]
}

/// A size in the form of perf's option `-m`.
fn size(bytes: u64) -> String {
    if bytes >= 1 << 20 { format!("{}M", bytes >> 20) } else { format!("{}K", bytes >> 10) }
}
