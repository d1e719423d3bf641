//! Plan of a recording: the command lines of one recorder, from the capabilities of a machine and the user's request.
//!
//! Nothing is run here. [`plan`] takes the first recorder without an [`obstacle`]; a request that it cannot fulfil is
//! an error with a remedy, a question that the recording will not answer is a note.

use super::capabilities::Capabilities;
use super::shell::{ShellCommand, quoted};
use super::topic::{ESSENTIAL, TOPICS};
use super::{EndTrigger, RecordError, Recorder, RecordingRequest, ftrace, lttng, perf};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Bytes that a busy CPU fills in a second, by recordings of servers: the size of a flight recorder's buffer.
const BYTES_PER_SECOND: u64 = 4 << 20;

/// Default bytes of buffer per CPU.
const BUFFER: u64 = 16 << 20;

/// The commands to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingPlan {
    /// The recorder.
    pub recorder: Recorder,
    /// The reason for that recorder.
    pub why: String,
    /// Limits of the recording, and decisions.
    pub notes: Vec<String>,
    /// Commands before recording.
    pub prepare: Vec<ShellCommand>,
    /// Command that records while the command at its end runs; `None` if `prepare` switched recording on.
    pub record: Option<ShellCommand>,
    /// Commands after recording, also after a failure.
    pub finish: Vec<ShellCommand>,
    /// The folder of the recording.
    pub folder: PathBuf,
    /// The trace to open.
    pub trace: PathBuf,
    /// Names of kernel functions.
    pub kernel_symbols: Option<PathBuf>,
    /// Prints the calls of probed functions while the command at its end runs.
    pub printer: Option<ShellCommand>,
}

/// A recorder's part of a plan.
pub(super) struct RecorderCommands {
    pub prepare: Vec<ShellCommand>,
    pub record: Option<ShellCommand>,
    pub finish: Vec<ShellCommand>,
    pub trace: PathBuf,
    pub notes: Vec<String>,
}

/// A function whose calls are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    pub file: PathBuf,
    pub function: String,
}

/// The input of the recorders' modules.
pub(super) struct RecorderInput<'a> {
    pub host: &'a Capabilities,
    pub request: &'a RecordingRequest,
    pub folder: &'a Path,
    pub probes: &'a [Probe],
    /// A name that no other current recording has.
    pub name: String,
    /// Bytes of buffer per CPU, a power of two.
    pub buffer: u64,
}

/// The reason why a recorder cannot record here, with the remedy; `None` if it can.
pub fn obstacle(host: &Capabilities, recorder: Recorder) -> Option<String> {
    let install = |package: &str| format!("`{}` is not installed: install the package {package}", recorder.name());
    let sudo = "run whyslow as root";
    match recorder {
        Recorder::Lttng if host.lttng.is_none() => Some(install("lttng-tools")),
        Recorder::Lttng if !host.lttng_modules => Some(format!(
            "its kernel tracer is not installed for Linux {}: install lttng-modules (Debian: lttng-modules-dkms)",
            host.release
        )),
        Recorder::Lttng if !host.root && !host.tracing_group => {
            Some(format!("its kernel tracer accepts only root and the group `tracing`: {sudo}"))
        }
        Recorder::Perf if host.perf.is_none() => Some(install("perf (Debian: linux-perf, Ubuntu: linux-tools)")),
        Recorder::Perf if !host.root && !host.perfmon && host.paranoid.is_none_or(|level| level > -1) => {
            let level = host.paranoid.map_or_else(|| "unknown".to_owned(), |level| level.to_string());
            Some(format!(
                "this user may not record kernel events (perf_event_paranoid is {level}, not -1): {sudo}, or \
                 sysctl kernel.perf_event_paranoid=-1 and mount -o remount,mode=755 /sys/kernel/tracing"
            ))
        }
        Recorder::Perf if host.events.is_none() => {
            let mount = "mount -t tracefs nodev /sys/kernel/tracing";
            Some(format!("the kernel's list of events cannot be read: {sudo}, or {mount}"))
        }
        Recorder::TraceCmd if host.trace_cmd.is_none() => Some(install("trace-cmd")),
        Recorder::TraceCmd if !host.root => Some(format!("only root may trace the kernel: {sudo}")),
        Recorder::TraceCmd if !host.ftrace => Some(
            "tracing cannot be switched on (/proc/sys/kernel/ftrace_enabled refuses): this is a container or a \
             confined machine; record on its host, or with perf"
                .to_owned(),
        ),
        _ if !host.has(ESSENTIAL) => {
            Some(format!("this kernel has no {ESSENTIAL}: it was built without event tracing"))
        }
        _ => None,
    }
}

/// The option that a recorder cannot fulfil, with the remedy.
fn refusal(host: &Capabilities, request: &RecordingRequest, recorder: Recorder) -> Option<String> {
    let probed = !request.uprobes.is_empty();
    match recorder {
        Recorder::Lttng if probed => {
            Some("LTTng records only the entry of a function, not its return (--uprobe)".to_owned())
        }
        Recorder::TraceCmd if probed && host.perf.is_none() => {
            Some("perf, which places the probes of --uprobe, is not installed: install perf".to_owned())
        }
        _ => None,
    }
}

/// The command lines for a request on a machine. `identity` distinguishes this recording from others at the same time.
/// With `elsewhere` an obstacle of the chosen recorder becomes a note.
pub fn plan(
    host: &Capabilities,
    request: &RecordingRequest,
    folder: &Path,
    identity: u32,
    elsewhere: bool,
) -> Result<RecordingPlan, RecordError> {
    let hindered = |recorder: Recorder| refusal(host, request, recorder).or_else(|| obstacle(host, recorder));
    let mut hindrance = None;
    let (recorder, why) = match request.with {
        Some(recorder) => {
            let refused = refusal(host, request, recorder);
            hindrance = if elsewhere { obstacle(host, recorder) } else { None };
            if let Some(why) = refused.or_else(|| if elsewhere { None } else { obstacle(host, recorder) }) {
                return Err(RecordError::option(format!("--with {}", recorder.name()), why));
            }
            (recorder, "it was chosen with --with".to_owned())
        }
        None => {
            let reasons: Vec<_> = Recorder::ALL.iter().map(|r| (*r, hindered(*r))).collect();
            let obstacle_text = |(recorder, why): &(Recorder, Option<String>)| {
                why.as_ref().map(|why| format!("{} cannot: {why}", recorder.name()))
            };
            let Some(chosen) = reasons.iter().position(|(_, why)| why.is_none()) else {
                let all: Vec<String> = reasons.iter().filter_map(obstacle_text).collect();
                return Err(RecordError::NoRecorder(all.join(". ")));
            };
            let before: Vec<String> = reasons[..chosen].iter().filter_map(obstacle_text).collect();
            let best = if before.is_empty() { "it answers most questions".to_owned() } else { before.join("; ") };
            (reasons[chosen].0, best)
        }
    };
    let probes = probes(request)?;
    let buffer = buffer(host, request);
    let name = format!("whyslow_{identity}");
    let order = RecorderInput { host, request, folder, probes: &probes, name, buffer };
    let RecorderCommands { mut prepare, record, mut finish, trace, mut notes } = match recorder {
        Recorder::Lttng => lttng::lines(&order),
        Recorder::Perf => perf::lines(&order),
        Recorder::TraceCmd => ftrace::lines(&order),
    };
    let mut placed: Vec<ShellCommand> = probes.iter().flat_map(|probe| perf::place(host, probe, &order.name)).collect();
    if !placed.is_empty() {
        placed.append(&mut prepare);
        prepare = placed;
        finish.push(host.line(Recorder::Perf).with(["probe", "--quiet", "--del"]).with([format!("{}:*", order.name)]));
    }
    notes.extend(hindrance.map(|why| format!("it cannot record on this machine: {why}")));
    let kernel_symbols = (host.kernel_symbols && recorder != Recorder::TraceCmd).then(|| folder.join("kallsyms"));
    if let Some(file) = &kernel_symbols {
        finish.push(ShellCommand::new(["cp", "/proc/kallsyms"]).with([shown(file)]));
    } else if recorder != Recorder::TraceCmd {
        notes.push(
            "kernel functions will have no names: addresses in /proc/kallsyms are hidden from this user".to_owned(),
        );
    }
    notes.extend(
        TOPICS
            .iter()
            .filter(|topic| !topic.events.iter().any(|event| host.has(event)))
            .map(|topic| format!("this kernel has no events for \"{}\"; {}", topic.question, topic.without)),
    );
    if let Some(past) = request.overwrite {
        let (size, seconds) = (order.buffer >> 20, past.as_secs());
        notes.push(format!(
            "buffers of {size} MiB per CPU keep the last events; they hold {seconds} s at up to {} MiB/s per CPU",
            order.buffer.div_ceil(seconds.max(1)) >> 20
        ));
    }
    let latency = request.until.iter().any(|trigger| matches!(trigger, EndTrigger::Latency(_)));
    if latency && probes.is_empty() {
        return Err(RecordError::option("--until latency", "no function is probed; name one with --uprobe FUNCTION"));
    }
    let printer =
        latency.then(|| host.line(Recorder::Perf).with(["trace", "-a", "-e"]).with([format!("{}:*", order.name)]));
    let folder = folder.to_owned();
    Ok(RecordingPlan { recorder, why, notes, prepare, record, finish, folder, trace, kernel_symbols, printer })
}

/// Bytes of buffer for each CPU: a power of two, and all together at most an eighth of the memory.
fn buffer(host: &Capabilities, request: &RecordingRequest) -> u64 {
    let wanted = request.buffer.unwrap_or_else(|| match request.overwrite {
        Some(past) => past.as_secs().max(1).saturating_mul(BYTES_PER_SECOND).max(BUFFER),
        None => BUFFER,
    });
    let most = host.memory / 8 / u64::from(host.cpus.max(1));
    let bytes = if request.buffer.is_some() { wanted } else { wanted.min(most) };
    let power = bytes.clamp(1 << 16, 1 << 32).next_power_of_two();
    if power > bytes && request.buffer.is_none() { power / 2 } else { power }
}

/// The functions that the request names, with their files.
fn probes(request: &RecordingRequest) -> Result<Vec<Probe>, RecordError> {
    let probe = |typed: &String| {
        let wrong = |reason: String| RecordError::option(format!("--uprobe {typed}"), reason);
        let (file, function) = match typed.rsplit_once(':') {
            Some((file, function)) => (PathBuf::from(file), function),
            None => (
                program(request).ok_or_else(|| {
                    wrong(format!("the program is missing; write FILE:{typed}, or give --pid or a command"))
                })?,
                typed.as_str(),
            ),
        };
        if !file.is_file() {
            return Err(wrong(format!("no such file: {}", file.display())));
        }
        if function.is_empty() || !function.chars().all(|c| c.is_alphanumeric() || "_.$@".contains(c)) {
            return Err(wrong("give the function's name as `nm` shows it".to_owned()));
        }
        Ok(Probe { file, function: function.to_owned() })
    };
    request.uprobes.iter().map(probe).collect()
}

/// The program that runs: of the first process, else of the command.
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

/// A condition on the running thread, in the kernel's filter language; `None` for all threads.
pub(super) fn filter(request: &RecordingRequest) -> Option<String> {
    let threads = request.pids.iter().flat_map(|pid| threads_of(*pid)).map(|tid| format!("common_pid == {tid}"));
    let names = request.comms.iter().map(|name| format!("comm == \"{name}\""));
    let all: Vec<String> = threads.chain(names).collect();
    (!all.is_empty()).then(|| all.join(" || "))
}

/// The threads that a process has now.
fn threads_of(pid: u32) -> Vec<u32> {
    let folder = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut threads: Vec<u32> = folder.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    threads.sort_unstable();
    if threads.is_empty() { vec![pid] } else { threads }
}

pub(super) fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The activity of a script during the recording.
pub enum ScriptMode {
    /// Run a command, or sleep.
    Command(ShellCommand),
    /// Print `ready`, then wait until standard input ends.
    Input,
    /// Record until Ctrl-C, or Enter where the recorder runs in the background.
    Hand,
}

impl RecordingPlan {
    /// The whole plan as a script for a POSIX shell.
    pub fn script(&self, during: &ScriptMode) -> String {
        let mut script = String::new();
        let by_hand = !matches!(during, ScriptMode::Input);
        let _ = writeln!(script, "mkdir -p {}", quoted(&shown(&self.folder)));
        if !by_hand {
            let _ = writeln!(script, "finish() {{");
            self.finish.iter().for_each(|line| {
                let _ = writeln!(script, "  echo {} >&2; {line}", quoted(&format!("+ {line}")));
            });
            let _ = writeln!(script, "  :\n}}");
        }
        for line in &self.prepare {
            if by_hand {
                let _ = writeln!(script, "{line:#}");
            } else {
                let _ = writeln!(script, "echo {} >&2; {line} || {{ finish; exit 1; }}", quoted(&format!("+ {line}")));
            }
        }
        let waiting = || {
            let printer = self.printer.as_ref().map(|line| format!("exec {line} -- sh -c 'exec cat >/dev/null' 2>&1"));
            format!("echo ready; {}", printer.as_deref().unwrap_or("exec cat >/dev/null"))
        };
        let body = match (during, &self.record) {
            (ScriptMode::Command(line), Some(record)) => format!("{record:#} -- {line}"),
            (ScriptMode::Command(line), None) => line.to_string(),
            (ScriptMode::Input, Some(record)) => {
                let echo = quoted(&format!("+ {record}")).into_owned();
                format!("echo {echo} >&2; {record} -- sh -c {}; status=$?", quoted(&waiting()))
            }
            (ScriptMode::Input, None) => format!("sh -c {}; status=$?", quoted(&waiting())),
            (ScriptMode::Hand, Some(record)) => format!("{record:#}   # until Ctrl-C"),
            (ScriptMode::Hand, None) => "read -r enter   # until Enter".to_owned(),
        };
        let _ = writeln!(script, "{body}");
        match by_hand {
            true => self.finish.iter().for_each(|line| {
                let _ = writeln!(script, "{line}");
            }),
            false => {
                let _ = writeln!(script, "finish\nexit $status");
            }
        }
        script
    }
}
