//! The command lines of the recorder by tracefs: alone, or around perf.
//!
//! Alone it records everything: switches with the stacks of kernel and program, of which the kernel follows eight
//! frames. Beside perf, which follows whole stacks and takes samples, it records the events that cost less here. The
//! program runs paused around the other recorder, and the script switches its instances on when both are ready.

use super::instance::{CHOICE, SWITCH};
use super::{CHOSEN, STACKS};
use crate::model::event_name::{ESSENTIAL, SYSTEM_CALLS};
use crate::record::perf;
use crate::record::plan::{PlanUse, RingBuffers};
use crate::record::processes::thread_ids;
use crate::record::recorder_commands::{RecorderCommands, RecorderInput, filter, path_text};
use crate::record::shell::ShellCommand;
use std::path::{Path, PathBuf};

/// The file of the recording.
pub const TRACE: &str = "trace.dat";

/// Where tracefs is mounted, on machines that do not say it.
const USUAL: &str = "/sys/kernel/tracing";

/// The command that records, and what belongs to it.
#[derive(Default)]
pub struct TracefsCommands {
    pub record: ShellCommand,
    pub finish: Vec<ShellCommand>,
    pub ring_buffers: RingBuffers,
}

impl TracefsCommands {
    /// These, around the command of another recorder.
    pub fn around(self, inner: ShellCommand) -> TracefsCommands {
        TracefsCommands { record: self.record.around(inner), ..self }
    }
}

/// Record everything by tracefs.
pub fn commands(input: &RecorderInput<'_>) -> RecorderCommands {
    let TracefsCommands { record, finish, ring_buffers } = recorded(input, &|_| true);
    let notes = vec![
        "of the functions of a program the eight innermost are known, and none of those that run: perf records whole \
         stacks and samples"
            .to_owned(),
    ];
    RecorderCommands { record: Some(record), finish, trace: TRACE, notes, ring_buffers, ..RecorderCommands::default() }
}

/// Record beside perf what perf leaves out; `None` where instances cannot be made, or where nothing is left out.
pub fn beside_perf(input: &RecorderInput<'_>) -> Option<TracefsCommands> {
    input.host.tracefs.as_ref()?;
    let TracefsCommands { record, finish, ring_buffers } = recorded(input, &perf::is_left_out);
    let switches: Vec<PathBuf> = ring_buffers.instances.iter().map(|instance| instance.join(SWITCH)).collect();
    let ring_buffers = RingBuffers { switches, ..ring_buffers };
    let is_needed = !ring_buffers.instances.is_empty();
    is_needed.then(|| TracefsCommands { record: record.with(["--paused"]), finish, ring_buffers })
}

fn recorded(input: &RecorderInput<'_>, is_recorded: &dyn Fn(&str) -> bool) -> TracefsCommands {
    let tracefs = input.host.tracefs.clone().unwrap_or_else(|| PathBuf::from(USUAL));
    let request = input.request;
    // A filter compares names, and the kernel hands the choice of threads on to those that they begin.
    let is_filtered = !request.comms.is_empty();
    // A printed command line is perhaps for another machine.
    let own = (input.purpose == PlanUse::Run).then(|| std::env::current_exe().ok()).flatten();
    let own = own.map_or_else(|| "whyslow".to_owned(), |program| path_text(&program));
    let mut record = ShellCommand::new([own.as_str(), "record-tracefs", "--tracefs"]);
    record = record.with([path_text(&tracefs), "--name".to_owned(), input.name.clone()]);
    record = record.with(["-b".to_owned(), (input.buffer >> 10).to_string()]);
    record = record.with(["-o".to_owned(), path_text(&input.folder.join(TRACE))]);
    record = record.with(request.overwrite.map(|_| "--overwrite"));
    let instance = |end: &str| tracefs.join("instances").join(format!("{}{end}", input.name));
    let (mut instances, mut chosen) = (Vec::new(), None);
    for event in input.events.all().filter(|event| is_recorded(event)) {
        let is_chosen = input.events.of_chosen.contains(&event) && SYSTEM_CALLS.contains(&event);
        let (option, end) = match (event == ESSENTIAL, is_chosen, is_filtered) {
            (true, ..) => ("--stacks", STACKS),
            (_, true, true) => ("--filtered", ""),
            (_, true, false) => ("--chosen", CHOSEN),
            _ => ("-e", ""),
        };
        record = record.with([option, event]);
        if !instances.contains(&instance(end)) {
            instances.push(instance(end));
        }
        if end == CHOSEN {
            chosen = Some(instance(end).join(CHOICE));
        }
    }
    if is_filtered {
        record = record.with(filter(request).into_iter().flat_map(|filter| ["--filter".to_owned(), filter]));
    } else {
        let threads = thread_ids(&request.pids).into_iter().flat_map(|tid| ["--pid".to_owned(), tid.to_string()]);
        record = record.with(threads.collect::<Vec<String>>());
    }
    if input.purpose == PlanUse::Print && chosen.is_some() && request.pids.is_empty() {
        record = record.with(["--choose-command"]);
    }
    // The recorder removes them itself, unless it was killed.
    let finish = instances.iter().map(|instance| removed(instance)).collect();
    TracefsCommands { record, finish, ring_buffers: RingBuffers { instances, chosen, switches: Vec::new() } }
}

/// The command that removes an instance if it is still there.
fn removed(instance: &Path) -> ShellCommand {
    ShellCommand::new(["sh", "-c", "[ ! -d \"$0\" ] || rmdir \"$0\""]).with([path_text(instance)])
}
