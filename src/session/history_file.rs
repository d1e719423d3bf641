//! What a history file holds beside the states: all that answers about a recording without its traces.
//!
//! In: the values of which a session of traces makes answers. Out: their bytes. A section is one of the structures
//! below; ALGORITHMS.md 8.12 lists them.

use crate::base::notice::Notices;
use crate::base::op::Op;
use crate::base::packed::{packed, packed_variants};
use crate::base::time::Span;
use crate::event::derived::{ConversationSide, Conversations, Derived, WaitIterations};
use crate::event::task::{Condition, Delimiter, Literal, Pairing, TaskDefinition};
use crate::model::TraceInfo;
use crate::model::clock::{FittedClocks, HostClock};
use crate::model::facts::Facts;
use crate::model::usage::{CpuTotals, CpuUse, IoUse, Moved, ThreadUse};
use crate::reading::signature::{EventSignature, PayloadField};
use crate::saved::container::SectionName;

/// [`KeptRecording`].
pub(super) const RECORDING: SectionName = SectionName::new("recordng");
/// [`KeptTasks`].
pub(super) const TASKS: SectionName = SectionName::new("tasks");
/// The classes of events: a list of [`EventSignature`].
pub(super) const CLASSES: SectionName = SectionName::new("classes");
/// [`KeptUsage`].
pub(super) const USAGE: SectionName = SectionName::new("usage");
/// [`KeptHistory`].
pub(super) const HISTORY: SectionName = SectionName::new("history");
/// The names of functions (`symbols/kept.rs`).
pub(super) const SYMBOLS: SectionName = SectionName::new("symbols");

/// The recording as a whole.
#[derive(Debug)]
pub(super) struct KeptRecording {
    pub facts: Facts,
    /// By trace.
    pub traces: Vec<KeptTrace>,
    /// Raised when the traces were opened.
    pub opened: Notices,
    /// Raised by the kernel pass, with those.
    pub pass: Notices,
    pub clocks: FittedClocks,
    /// The traces hold events.
    pub has_events: bool,
}

#[derive(Debug)]
pub(super) struct KeptTrace {
    pub info: TraceInfo,
    /// The user gave the label.
    pub labelled: bool,
}

/// The tasks of the recording.
#[derive(Debug, Default)]
pub(super) struct KeptTasks {
    /// Those that a file declares, then those found.
    pub tasks: Vec<TaskDefinition>,
    /// How many of them are declared.
    pub declared: usize,
    /// The tasks whose events are in the file; delimiting events name them by position.
    pub marked: Vec<TaskDefinition>,
}

/// `stats cpu` and `stats io`.
#[derive(Debug)]
pub(super) struct KeptUsage {
    pub cpu: CpuTotals,
    pub cpu_notices: Notices,
    pub io: Vec<IoUse>,
    pub io_notices: Notices,
}

/// The state history that `query` asks, which is that of the kernel's events alone.
#[derive(Debug)]
pub(super) struct KeptHistory {
    pub states: HistoryStates,
    /// From the first to the last of the kernel's events.
    pub span: Span,
    pub notices: Notices,
}

/// The states of which it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HistoryStates {
    /// Those of all events.
    All,
    /// Their beginning.
    Beginning,
    /// States of its own: events of programs made a difference.
    Own,
}

packed! {
    KeptHistory { states, span, notices }
    KeptRecording { facts, traces, opened, pass, clocks, has_events }
    KeptTrace { info, labelled }
    KeptTasks { tasks, declared, marked }
    KeptUsage { cpu, cpu_notices, io, io_notices }
    FittedClocks { clocks, notices }
    HostClock { host, correction, error, beside_kernel, packets, traces }
    EventSignature { name, shown, kernel, fields, contexts }
    PayloadField { name, is_integer }
    TaskDefinition { name, begins, ends, pairing, kind, nest, process }
    Delimiter { event, key, conditions }
    Condition { field, op, value }
    WaitIterations { call, thread }
    Conversations { side, process, from_arrival }
    CpuTotals { cpus, threads }
    CpuUse { cpu, active_ns, total_ns }
    ThreadUse { tid, pid, name, cpu_ns }
    IoUse { pid, name, read, written }
    Moved { bytes, calls }
}

packed_variants! {
    HistoryStates { All, Beginning, Own }
    Op { Less, AtMost, More, AtLeast, Equal, NotEqual }
    Literal { Number(number), Text(text) }
    Pairing { Thread, Key, ProcessKey, Function, Derived(derived) }
    Derived { Iterations(waits), Call(name), Process(name), Thread(name), Named(name), Exchanges(conversations) }
    ConversationSide { Serves, Calls }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::packed::{bytes_of, value_of};

    #[test]
    fn tasks_are_read_as_they_were_written() {
        let text = |text: &str| text.to_owned();
        let conditions = vec![
            Condition { field: text("ret"), op: Op::AtLeast, value: Literal::Number(i128::MIN) },
            Condition { field: text("name"), op: Op::NotEqual, value: Literal::Text(vec![0, 255]) },
        ];
        let delimiter = Delimiter { event: text("app:begin"), key: vec![text("id")], conditions };
        let waits = |thread: Option<&str>| WaitIterations { call: text("read"), thread: thread.map(text) };
        let pairings = [
            Pairing::Thread,
            Pairing::Key,
            Pairing::ProcessKey,
            Pairing::Function,
            Pairing::Derived(Derived::Iterations(waits(None))),
            Pairing::Derived(Derived::Iterations(waits(Some("job-*")))),
            Pairing::Derived(Derived::Call(text("read"))),
            Pairing::Derived(Derived::Process(text("dd"))),
            Pairing::Derived(Derived::Thread(text("job"))),
            Pairing::Derived(Derived::Named(text("flush"))),
            Pairing::Derived(Derived::Exchanges(Conversations {
                side: ConversationSide::Calls,
                process: text("psql"),
                from_arrival: true,
            })),
        ];
        let task = |pairing: Pairing| TaskDefinition {
            name: text("a task"),
            begins: vec![delimiter.clone()],
            ends: Vec::new(),
            pairing,
            kind: Some(text("type")),
            nest: true,
            process: Some(text("dd")),
        };
        let tasks: Vec<TaskDefinition> = pairings.into_iter().map(task).collect();
        assert_eq!(value_of::<Vec<TaskDefinition>>(&bytes_of(&tasks)), Some(tasks));
    }
}
