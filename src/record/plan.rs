//! Plan of a recording: the command lines of one recorder, from the capabilities of a machine and the user's request.
//!
//! Nothing is run here. [`plan`] takes the first recorder without an [`obstacle`]. A request that this recorder cannot
//! fulfil is an error with a remedy; a question that the recording will not answer is a note.

use super::capabilities::Capabilities;
use super::leftovers::GROUP;
use super::planned_events::planned_events;
use super::recorder_commands::{Probe, RecorderCommands, RecorderInput, path_text};
use super::shell::ShellCommand;
use super::trial::{RecordingCost, Trial};
use super::{CallGraph, EndTrigger, RecordError, Recorder, RecordingRequest, ftrace, lttng, perf, tracefs};
use crate::advice::topic::TOPICS;
use crate::model::event_name::ESSENTIAL;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes that a busy CPU of a server records in a second. A flight recorder's buffer holds as many for each second.
const BYTES_PER_SECOND: u64 = 4 << 20;

/// Bytes of buffer per CPU if neither the request, nor a flight recorder, nor a trial needs another size.
const DEFAULT_BUFFER: u64 = 16 << 20;

/// Seconds of the busiest CPU's events for which a buffer has room: so long may other threads keep the recorder from
/// the CPU without a loss, if the machine goes on as in the trial.
const HELD_SECONDS: f64 = 4.0;

/// The name of the file for the addresses of kernel functions, in the folder.
pub(super) const KERNEL_SYMBOLS: &str = "kallsyms";

/// A plan: the commands of a recording and the reasons for them.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordingPlan {
    pub recorder: Recorder,
    /// The reason for this recorder.
    pub why: String,
    /// Limits of the recording: what it will not show, and why.
    pub notes: Vec<String>,
    /// Commands before recording.
    pub prepare: Vec<ShellCommand>,
    /// Records while a command runs that is appended to it; `None` if `prepare` switches recording on.
    pub record: Option<ShellCommand>,
    /// Commands after recording, also after a failure.
    pub finish: Vec<ShellCommand>,
    /// The folder of the recording.
    pub folder: PathBuf,
    /// The trace to open.
    pub trace: PathBuf,
    /// The file for the addresses of kernel functions; `None` if they are not saved.
    pub kernel_symbols: Option<PathBuf>,
    /// A named pipe in the folder by which perf is asked to write what its buffers hold; `None` where it is not asked.
    pub control: Option<PathBuf>,
    /// The time after which the recording ends, also where whyslow is stopped and cannot end it.
    pub duration: Option<Duration>,
    pub ring_buffers: RingBuffers,
    /// What a trial says that it costs.
    pub cost: Option<RecordingCost>,
    /// Prints the calls of probed functions while a command runs that is appended to it; `None` if they are not needed.
    pub printer: Option<ShellCommand>,
}

/// The instances of tracefs that a recording makes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RingBuffers {
    /// Their folders.
    pub instances: Vec<PathBuf>,
    /// Files into which `1` is written to begin recording, once the recorders are ready.
    pub switches: Vec<PathBuf>,
    /// The kernel's list of the threads whose system calls are recorded, to which the command of the request is added.
    pub chosen: Option<PathBuf>,
}

/// The reason why a recorder cannot record on this machine, with the remedy; `None` if it can.
pub fn obstacle(host: &Capabilities, recorder: Recorder) -> Option<String> {
    let install = |package: &str| format!("`{}` is not installed: install the package {package}", recorder.name());
    let as_root = "run whyslow as root";
    match recorder {
        Recorder::Lttng if host.lttng.is_none() => Some(install("lttng-tools")),
        Recorder::Lttng if !host.lttng_modules => Some(format!(
            "its kernel tracer is not installed for Linux {}: install lttng-modules (Debian: lttng-modules-dkms)",
            host.release
        )),
        Recorder::Lttng if !host.root && !host.tracing_group => {
            Some(format!("its kernel tracer accepts only root and the group `tracing`: {as_root}"))
        }
        Recorder::Perf if host.perf.is_none() => Some(install("perf (Debian: linux-perf, Ubuntu: linux-tools)")),
        Recorder::Perf if !host.root && !host.perfmon && host.paranoid.is_none_or(|level| level > -1) => {
            let level = host.paranoid.map_or_else(|| "unknown".to_owned(), |level| level.to_string());
            Some(format!(
                "this user may not record kernel events (perf_event_paranoid is {level}, not -1): with sudo, COMMAND \
                 and the recording stay yours; without, whyslow needs CAP_PERFMON and your group the kernel's list of \
                 events (setpriv --ambient-caps +perfmon, mount -o remount,gid=GROUP,mode=750 /sys/kernel/tracing); \
                 sysctl kernel.perf_event_paranoid=-1 would give both to all users"
            ))
        }
        Recorder::Perf if host.events.is_none() => {
            let mount = "mount -t tracefs nodev /sys/kernel/tracing";
            Some(format!("the kernel's list of events cannot be read: {as_root}, or {mount}"))
        }
        Recorder::TraceCmd if host.trace_cmd.is_none() => Some(install("trace-cmd")),
        Recorder::TraceCmd if !host.root => Some(format!("only root may trace the kernel: {as_root}")),
        Recorder::TraceCmd if !host.ftrace => Some(
            "tracing cannot be switched on (/proc/sys/kernel/ftrace_enabled refuses): this is a container or a \
             confined machine; record on its host, or with perf"
                .to_owned(),
        ),
        Recorder::Tracefs if !host.root => Some(format!("only root may trace the kernel: {as_root}")),
        Recorder::Tracefs if host.tracefs.is_none() => {
            Some("tracefs is not mounted: mount -t tracefs nodev /sys/kernel/tracing".to_owned())
        }
        _ if !host.has(ESSENTIAL) => {
            Some(format!("this kernel has no {ESSENTIAL}: it was built without event tracing"))
        }
        _ => None,
    }
}

/// The reason why a recorder cannot fulfil the request, with the remedy; `None` if it can.
fn unsupported(host: &Capabilities, request: &RecordingRequest, recorder: Recorder) -> Option<String> {
    let needs_probes = !request.uprobes.is_empty();
    match recorder {
        Recorder::Lttng if needs_probes => {
            Some("LTTng records only the entry of a function, not its return (--uprobe)".to_owned())
        }
        Recorder::Lttng | Recorder::TraceCmd | Recorder::Tracefs if request.call_graph == CallGraph::Dwarf => {
            Some(format!("{} follows frame pointers only; perf copies stacks (--call-graph dwarf)", recorder.name()))
        }
        Recorder::Tracefs if needs_probes => Some("perf records the calls of functions (--uprobe)".to_owned()),
        Recorder::TraceCmd if needs_probes && host.perf.is_none() => {
            Some("perf, which places the probes of --uprobe, is not installed: install perf".to_owned())
        }
        _ => None,
    }
}

/// The use of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanUse {
    /// It runs on this machine.
    Run,
    /// It is printed, perhaps for another machine: an obstacle of the recorder that the user chose is a note.
    Print,
}

/// The recorder of a plan.
struct Choice {
    recorder: Recorder,
    why: String,
    /// The reason why it cannot record on this machine.
    obstacle: Option<String>,
}

/// The recorder that the request names, or the first one that can fulfil the request on this machine.
fn choose(host: &Capabilities, request: &RecordingRequest, purpose: PlanUse) -> Result<Choice, RecordError> {
    if let Some(recorder) = request.with {
        let obstacle = obstacle(host, recorder);
        let fatal =
            unsupported(host, request, recorder).or_else(|| obstacle.clone().filter(|_| purpose == PlanUse::Run));
        return match fatal {
            Some(reason) => Err(RecordError::option(format!("--with {}", recorder.name()), reason)),
            None => Ok(Choice { recorder, why: "it was chosen with --with".to_owned(), obstacle }),
        };
    }
    let mut rejected = Vec::new();
    for recorder in Recorder::ALL {
        match unsupported(host, request, recorder).or_else(|| obstacle(host, recorder)) {
            Some(reason) => rejected.push(format!("{} cannot: {reason}", recorder.name())),
            None => {
                let why =
                    if rejected.is_empty() { "it answers most questions".to_owned() } else { rejected.join("; ") };
                return Ok(Choice { recorder, why, obstacle: None });
            }
        }
    }
    Err(RecordError::NoRecorder(rejected.join(". ")))
}

/// Plan a recording into `folder`. `identity` distinguishes it from others that run at the same time; `trial` is what
/// was counted before, if anything was.
pub fn plan(
    host: &Capabilities,
    request: &RecordingRequest,
    folder: &Path,
    identity: u32,
    purpose: PlanUse,
    trial: Option<&Trial>,
) -> Result<RecordingPlan, RecordError> {
    let Choice { recorder, why, obstacle } = choose(host, request, purpose)?;
    // A folder that begins with a dash would be an option.
    let folder = if path_text(folder).starts_with('-') { &Path::new(".").join(folder) } else { folder };
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let (inside, output) = match purpose {
        PlanUse::Run => (Path::new(""), absolute.as_path()),
        PlanUse::Print => (folder, folder),
    };
    is_running(request, purpose)?;
    let probes = probes(request, purpose)?;
    let events = planned_events(host, request, recorder, trial);
    let buffer = buffer(host, request, events.cost);
    has_room(host, request, buffer)?;
    let name = format!("{GROUP}{identity}");
    // A script to run by hand does not ask, and a flight recorder writes at the end.
    let is_asked = recorder == Recorder::Perf && purpose == PlanUse::Run && request.overwrite.is_none();
    let control = (is_asked && perf::accepts_pings(host)).then(|| inside.join("control"));
    let input = RecorderInput {
        host,
        request,
        folder: inside,
        output,
        probes: &probes,
        name,
        buffer,
        control,
        events: &events,
        purpose,
    };
    let RecorderCommands { mut prepare, record, mut finish, trace, mut notes, ring_buffers } = match recorder {
        Recorder::Lttng => lttng::commands(&input),
        Recorder::Perf => perf::commands(&input),
        Recorder::TraceCmd => ftrace::commands(&input),
        Recorder::Tracefs => tracefs::commands(&input),
    };
    if !probes.is_empty() {
        let place = probes.iter().flat_map(|probe| perf::probe_commands(host, probe, &input.name));
        prepare = place.chain(prepare).collect();
        finish
            .push(host.command(Recorder::Perf).with(["probe", "--quiet", "--del"]).with([format!("{}:*", input.name)]));
    }
    if let Some(control) = &input.control {
        prepare.insert(0, ShellCommand::new(["mkfifo"]).with([path_text(control)]));
        finish.push(ShellCommand::new(["rm", "-f"]).with([path_text(control)]));
    }
    let kernel_symbols = (host.kernel_symbols && !has_own_symbols(recorder)).then(|| folder.join(KERNEL_SYMBOLS));
    notes.extend(events.note());
    notes.extend(events.cost_note(request, recorder, trial, buffer));
    notes.extend(obstacle.map(|reason| format!("it cannot record on this machine: {reason}")));
    notes.extend(limits(&input, recorder));
    let printer = printer(&input)?;
    let trace = if trace.is_empty() { folder.to_owned() } else { folder.join(trace) };
    let (control, folder, duration) = (input.control, folder.to_owned(), request.duration);
    Ok(RecordingPlan {
        recorder,
        why,
        notes,
        prepare,
        record,
        finish,
        folder,
        trace,
        kernel_symbols,
        control,
        duration,
        ring_buffers,
        cost: events.cost,
        printer,
    })
}

/// What the machine and the buffers keep out of a recording, a sentence each.
fn limits(input: &RecorderInput<'_>, recorder: Recorder) -> Vec<String> {
    let host = input.host;
    let mut notes = Vec::new();
    if !host.kernel_symbols && !has_own_symbols(recorder) {
        notes.push(
            "kernel functions will have no names: addresses in /proc/kallsyms are hidden from this user".to_owned(),
        );
    }
    let unknown = TOPICS.iter().filter(|topic| !topic.events.iter().any(|event| host.has(event)));
    notes.extend(
        unknown.map(|topic| format!("this kernel has no events for \"{}\"; {}", topic.question, topic.without)),
    );
    if let Some(past) = input.request.overwrite {
        let (size, seconds) = (input.buffer >> 20, past.as_secs());
        notes.push(format!(
            "buffers of {size} MiB per CPU keep the last events; they hold {seconds} s at up to {} MiB/s per CPU",
            input.buffer.div_ceil(seconds.max(1)) >> 20
        ));
    }
    notes
}

/// True for recorders whose files hold the addresses of kernel functions.
fn has_own_symbols(recorder: Recorder) -> bool {
    matches!(recorder, Recorder::TraceCmd | Recorder::Tracefs)
}

/// Bytes of buffer for each CPU, a power of two. Without `--buffer`, all buffers take at most an eighth of the memory.
fn buffer(host: &Capabilities, request: &RecordingRequest, cost: Option<RecordingCost>) -> u64 {
    let held = cost.map_or(0, |cost| (cost.busiest_bytes * HELD_SECONDS) as u64);
    let wanted = request.buffer.unwrap_or_else(|| match request.overwrite {
        Some(past) => past.as_secs().max(1).saturating_mul(BYTES_PER_SECOND).max(DEFAULT_BUFFER),
        None => DEFAULT_BUFFER.max(held.checked_next_power_of_two().unwrap_or(held)),
    });
    let most = host.memory / 8 / u64::from(host.cpus.max(1));
    let bytes = if request.buffer.is_some() { wanted } else { wanted.min(most) };
    let power = bytes.clamp(1 << 16, 1 << 32).next_power_of_two();
    if power > bytes && request.buffer.is_none() { power / 2 } else { power }
}

/// The command that prints the calls of probed functions, where one that takes long ends the recording.
fn printer(input: &RecorderInput<'_>) -> Result<Option<ShellCommand>, RecordError> {
    if !input.request.until.iter().any(|trigger| matches!(trigger, EndTrigger::Latency(_))) {
        return Ok(None);
    }
    if input.probes.is_empty() {
        return Err(RecordError::option("--until latency", "no function is probed; name one with --uprobe FUNCTION"));
    }
    let events = format!("{}:*", input.name);
    Ok(Some(input.host.command(Recorder::Perf).with(["trace", "-a", "-e"]).with([events])))
}

/// An error for buffers that were asked for and take more than half of the memory.
fn has_room(host: &Capabilities, request: &RecordingRequest, buffer: u64) -> Result<(), RecordError> {
    let all = buffer.saturating_mul(u64::from(host.cpus));
    if request.buffer.is_none() || host.memory == 0 || all <= host.memory / 2 {
        return Ok(());
    }
    let (all, memory, most) = (all >> 20, host.memory >> 20, (host.memory / 2 / u64::from(host.cpus.max(1))) >> 20);
    let cpus = host.cpus;
    let reason =
        format!("for each of {cpus} CPUs these are {all} MiB of the {memory} MiB of memory; give at most {most}MiB");
    Err(RecordError::option("--buffer", reason))
}

/// An error for a process that is not there to be recorded. A script may be for another machine.
fn is_running(request: &RecordingRequest, purpose: PlanUse) -> Result<(), RecordError> {
    let has_ended = |pid: &&u32| purpose == PlanUse::Run && !Path::new(&format!("/proc/{pid}")).exists();
    let why = "no process has this id; `pidof NAME` prints those of a program";
    let ended = request.pids.iter().find(has_ended);
    ended.map_or(Ok(()), |pid| Err(RecordError::option(format!("--pid {pid}"), why)))
}

/// The functions that the request names, each with its file and as it was typed.
pub fn probed(request: &RecordingRequest) -> Vec<(PathBuf, String, &str)> {
    let of = |text: &String| probe(text, request).ok().map(|Probe { file, function }| (file, function));
    let all =
        request.uprobes.iter().filter_map(|text| of(text).map(|(file, function)| (file, function, text.as_str())));
    all.collect()
}

/// The functions that the request names, with their files.
fn probes(request: &RecordingRequest, purpose: PlanUse) -> Result<Vec<Probe>, RecordError> {
    let located = |probe: Probe| match purpose {
        // The commands run in the folder of the recording.
        PlanUse::Run => Probe { file: std::path::absolute(&probe.file).unwrap_or(probe.file), ..probe },
        PlanUse::Print => probe,
    };
    request.uprobes.iter().map(|text| probe(text, request).map(located)).collect()
}

/// The function that one `--uprobe` names: `FILE:FUNCTION`, or `FUNCTION` of the program that is recorded.
fn probe(text: &str, request: &RecordingRequest) -> Result<Probe, RecordError> {
    let wrong = |reason: String| RecordError::option(format!("--uprobe {text}"), reason);
    let (file, function) = match text.rsplit_once(':') {
        Some((file, function)) => (PathBuf::from(file), function),
        None => (
            program(request).ok_or_else(|| {
                wrong(format!("the program is missing; write FILE:{text}, or give --pid or a command"))
            })?,
            text,
        ),
    };
    if !file.is_file() {
        return Err(wrong(format!("no such file: {}", file.display())));
    }
    if path_text(&file).contains(|c: char| c.is_whitespace() || "'\"\\".contains(c)) {
        return Err(wrong(
            "perf places no probes in a file with blanks or quotes in its path: give it another name".to_owned(),
        ));
    }
    if function.is_empty() || !function.chars().all(|c| c.is_alphanumeric() || "_.$@".contains(c)) {
        return Err(wrong("give the function's name as `nm` shows it".to_owned()));
    }
    Ok(Probe { file, function: function.to_owned() })
}

/// The program that is recorded: that of the first `--pid`, or of the command.
fn program(request: &RecordingRequest) -> Option<PathBuf> {
    if let Some(pid) = request.pids.first() {
        return std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    }
    let command = Path::new(request.command.first()?);
    if command.components().count() > 1 {
        return Some(command.to_owned());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(command)).find(|file| file.is_file())
}
