//! `whyslow record`: a good recording with one command, from what the machine has.
//!
//! ```text
//! host.rs (what is there) + Wishes -> plan.rs (recorder, command lines, reasons) -> watch.rs (run, progress, end)
//! ```
//! The recorders do the work; this folder knows which events answer which question (`topic.rs`), how each recorder is told so
//! (`perf.rs`, `ftrace.rs`, `lttng.rs`) and how it ends. A plan is one shell script: `--dry-run` prints it, `watch.rs` runs it in
//! a process group of its own and ends it by closing its standard input. So the script cleans up behind itself however
//! this program ends, `kill -9` included: no session, probe or recorder is left behind.

mod check;
mod ftrace;
mod growth;
pub mod host;
mod lttng;
mod perf;
pub mod plan;
pub mod shell;
mod topic;
mod trigger;
mod watch;

pub use check::report;
pub use trigger::{Trigger, duration};
pub use watch::{Ended, Progress, run};

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// A program that can record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorder {
    /// LTTng: kernel and user space.
    Lttng,
    /// perf.
    Perf,
    /// trace-cmd.
    TraceCmd,
}

impl Recorder {
    /// All, the one that lets most questions be answered first.
    pub const ALL: [Recorder; 3] = [Recorder::Lttng, Recorder::Perf, Recorder::TraceCmd];

    /// Its name, as its program is called.
    pub fn name(self) -> &'static str {
        match self {
            Recorder::Lttng => "lttng",
            Recorder::Perf => "perf",
            Recorder::TraceCmd => "trace-cmd",
        }
    }
}

/// What is to be recorded.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// The folder to write; none for a new one in the current folder.
    pub output: Option<PathBuf>,
    /// How long; none until the command ends, or until a signal.
    pub duration: Option<Duration>,
    /// The command to record around; empty for none.
    pub command: Vec<OsString>,
    /// The recorder to use; none for the best that the machine allows.
    pub with: Option<Recorder>,
    /// Processes whose system calls are recorded; empty for all.
    pub pids: Vec<u32>,
    /// Names of threads whose system calls are recorded; empty for all.
    pub comms: Vec<String>,
    /// Functions whose calls are executions: `FUNCTION` or `FILE:FUNCTION`.
    pub uprobes: Vec<String>,
    /// Keep only about this much of the past, and write it at the end.
    pub overwrite: Option<Duration>,
    /// What ends the recording.
    pub until: Vec<Trigger>,
    /// Bytes of buffer for each CPU.
    pub buffer: Option<u64>,
}

/// Why nothing could be recorded, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RecordError(pub String);
