//! The command lines of a recorder, and what they are made from.

use super::RecordingRequest;
use super::capabilities::Capabilities;
use super::processes::thread_conditions;
use super::shell::ShellCommand;
use std::path::{Path, PathBuf};

/// The part of a plan that the module of one recorder writes.
pub(super) struct RecorderCommands {
    pub prepare: Vec<ShellCommand>,
    pub record: Option<ShellCommand>,
    pub finish: Vec<ShellCommand>,
    /// The name of the trace in the folder; empty if it is the folder.
    pub trace: &'static str,
    pub notes: Vec<String>,
}

/// A function whose calls are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    pub file: PathBuf,
    pub function: String,
}

/// Everything from which the module of a recorder writes its commands.
pub(super) struct RecorderInput<'a> {
    pub host: &'a Capabilities,
    pub request: &'a RecordingRequest,
    /// The folder as the commands see it: empty where they run in it.
    pub folder: &'a Path,
    /// The folder as the user named it, or its absolute path where the commands run in it.
    pub output: &'a Path,
    pub probes: &'a [Probe],
    /// The name of the session and of its probes; no other current recording has it.
    pub name: String,
    /// Bytes of buffer per CPU, a power of two.
    pub buffer: u64,
    /// See [`RecordingPlan::control`].
    pub control: Option<PathBuf>,
}

/// The condition on the running thread in the kernel's filter language; `None` if all threads are recorded.
pub(super) fn filter(request: &RecordingRequest) -> Option<String> {
    let names = request.comms.iter().map(|name| format!("comm == \"{name}\""));
    let all: Vec<String> = thread_conditions(&request.pids).into_iter().chain(names).collect();
    (!all.is_empty()).then(|| all.join(" || "))
}

/// A path as a word of a command line.
pub(super) fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
