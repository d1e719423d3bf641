//! `whyslow record`: plans and runs a recording that answers whyslow's questions, by a recorder of this machine.
//!
//! ```text
//! capabilities.rs (recorders, permissions) + RecordingRequest
//!     -> plan.rs (recorder, command lines, reasons) -> script.rs -> watch.rs (start, progress, end), in folder.rs
//! ```
//! `advice/topic.rs` lists the events that answer each question, of which `planned_events.rs` takes those that the
//! request can pay for; `perf.rs`, `ftrace.rs`, `lttng.rs` and `tracefs/` write the command lines of one recorder each,
//! the last of which is this program; `code_maps.rs` adds what runtimes wrote about their code, `environment/` what
//! control groups and `/proc` counted meanwhile. A plan is one shell script:
//! `--dry-run` prints it, `watch.rs` runs it in a process group of its own and ends it by closing its standard input.
//! The script therefore removes its sessions and probes and ends its recorder however this program ends, `kill -9`
//! included.

pub mod capabilities;
mod check;
mod code_maps;
pub mod environment;
mod folder;
mod ftrace;
mod growth;
mod leftovers;
mod log;
mod lttng;
mod meter;
mod perf;
pub mod plan;
mod planned_events;
mod processes;
mod recorder_commands;
pub mod script;
pub mod shell;
pub mod tracefs;
pub mod trial;
mod trigger;
mod user;
mod watch;

pub use check::{CheckReport, report};
pub use leftovers::{left_instances, left_probes, left_sessions};
pub use trigger::EndTrigger;
pub use user::RecordingUser;
pub use watch::{RecordingEnd, RecordingProgress, run};

use crate::base::quantity;
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// A program that can record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Recorder {
    /// LTTng: kernel and user space
    Lttng,
    /// perf
    Perf,
    /// trace-cmd
    TraceCmd,
    /// whyslow itself, by the kernel's tracefs
    Tracefs,
}

impl Recorder {
    /// All recorders, best first: the one whose recordings answer most questions.
    pub const ALL: [Recorder; 4] = [Recorder::Lttng, Recorder::Perf, Recorder::Tracefs, Recorder::TraceCmd];

    /// The name of its program.
    pub fn name(self) -> &'static str {
        match self {
            Recorder::Lttng => "lttng",
            Recorder::Perf => "perf",
            Recorder::TraceCmd => "trace-cmd",
            Recorder::Tracefs => "tracefs",
        }
    }
}

/// The form in which call stacks of programs are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CallGraph {
    /// By frame pointers; of a program compiled without them only the innermost function is known
    #[default]
    Fp,
    /// Copies of 8 KiB of each stack, unwound when the recording is opened; by perf alone
    Dwarf,
}

impl CallGraph {
    /// The name of the option's value, which is perf's.
    pub(super) fn name(self) -> &'static str {
        match self {
            CallGraph::Fp => "fp",
            CallGraph::Dwarf => "dwarf",
        }
    }
}

/// The user's request: what to record and when to end. The options of the command line.
#[derive(Args, Clone, Debug, Default)]
pub struct RecordingRequest {
    /// The folder to write (default: whyslow-recording, or the first free whyslow-recording-N)
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Record for this time: 500ms, 10s, 2min (default: until COMMAND ends, or until Ctrl-C)
    #[arg(short, long, value_name = "TIME", value_parser = quantity::duration)]
    pub duration: Option<Duration>,
    /// The recorder to use (default: the first of these that is installed and allowed)
    #[arg(long, value_name = "RECORDER")]
    pub with: Option<Recorder>,
    /// Record everything that answers a question: system calls of all threads, interrupts, packets. It costs a busy
    /// server half of its speed
    #[arg(long)]
    pub full: bool,
    /// Record only what adds at most this many percent to the busiest CPU, as far as a trial of a second shows
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub cost: Option<f64>,
    /// Record the system calls of this process and its descendants; repeatable. Switches and wake-ups are recorded for
    /// all threads
    #[arg(long = "pid", value_name = "PID")]
    pub pids: Vec<u32>,
    /// Record the system calls of threads of this name; repeatable
    #[arg(long = "comm", value_name = "NAME", value_parser = comm)]
    pub comms: Vec<String>,
    /// Each call of this function is an execution: FUNCTION of the command or of --pid, or FILE:FUNCTION; repeatable
    #[arg(long = "uprobe", value_name = "FUNCTION")]
    pub uprobes: Vec<String>,
    /// The form in which call stacks of programs are recorded
    #[arg(long, value_name = "FORM", default_value = "fp")]
    pub call_graph: CallGraph,
    /// Keep only about the last TIME in memory, and write that at the end (a flight recorder)
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    pub overwrite: Option<Duration>,
    /// End on this condition: latency>20ms (of a --uprobe), signal (SIGUSR1), file=PATH (it appears); repeatable
    #[arg(long, value_name = "CONDITION")]
    pub until: Vec<EndTrigger>,
    /// Buffer for each CPU: 4M, 64MiB (default: 16MiB, or by --overwrite)
    #[arg(long, value_name = "SIZE", value_parser = quantity::size)]
    pub buffer: Option<u64>,
    /// As root: run COMMAND and open the recording as this user, its owner (default: who called sudo)
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// The command to record around
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Parse a thread's name that the kernel's filters can compare: they know no escapes and 15 bytes.
fn comm(text: &str) -> Result<String, &'static str> {
    let comparable = !text.is_empty() && text.len() <= 15 && !text.contains(['"', '\'', '\\']);
    if comparable { Ok(text.to_owned()) } else { Err("write a thread's name of at most 15 bytes, without quotes") }
}

/// Parse a part of a CPU's time: `5`, or `5%`.
fn percent(text: &str) -> Result<f64, &'static str> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    number.ok().filter(|percent| (0.0..=100.0).contains(percent)).ok_or("write percent of a CPU: 5, or 0.5")
}

/// The reason why a recording failed, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// No recorder can be used.
    #[error("no recorder can be used. {0}")]
    NoRecorder(String),
    /// An option cannot be fulfilled.
    #[error("{option}: {reason}")]
    Option {
        /// The option with its value.
        option: String,
        /// The reason and the remedy.
        reason: String,
    },
    /// A program or a file failed.
    #[error("{name}: {reason}")]
    Failed {
        /// The program, or the path of the file.
        name: String,
        /// The reason.
        reason: String,
    },
    /// The process cannot handle signals.
    #[error("cannot handle signals: {0}")]
    Signals(String),
}

impl RecordError {
    fn option(option: impl Into<String>, reason: impl Into<String>) -> Self {
        RecordError::Option { option: option.into(), reason: reason.into() }
    }

    fn failed(name: impl Into<String>, reason: impl Into<String>) -> Self {
        RecordError::Failed { name: name.into(), reason: reason.into() }
    }
}
