//! The command lines of a recorder, and what they are made from.

use super::RecordingRequest;
use super::capabilities::Capabilities;
use super::plan::{PlanUse, RingBuffers};
use super::planned_events::PlannedEvents;
use super::processes::{thread_conditions, thread_names};
use super::shell::ShellCommand;
use std::path::{Path, PathBuf};

/// The part of a plan that the module of one recorder writes.
#[derive(Default)]
pub(super) struct RecorderCommands {
    pub prepare: Vec<ShellCommand>,
    pub record: Option<ShellCommand>,
    pub finish: Vec<ShellCommand>,
    /// The name of the trace in the folder; empty if it is the folder.
    pub trace: &'static str,
    pub notes: Vec<String>,
    pub ring_buffers: RingBuffers,
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
    pub events: &'a PlannedEvents,
    pub purpose: PlanUse,
}

/// The condition on the running thread in the kernel's filter language; `None` if all threads are recorded. Threads
/// that a chosen process begins later have the name of the one that begins them.
pub(super) fn filter(request: &RecordingRequest) -> Option<String> {
    let others = thread_names(&request.pids).into_iter().filter(|name| !request.comms.contains(name));
    let names = request.comms.iter().cloned().chain(others).map(|name| format!("comm == \"{name}\""));
    let all: Vec<String> = thread_conditions(&request.pids).into_iter().chain(names).collect();
    (!all.is_empty()).then(|| all.join(" || "))
}

/// A path as a word of a command line.
pub(super) fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
