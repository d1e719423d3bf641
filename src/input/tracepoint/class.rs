//! Record classes of the kernel's tracepoints: their own fields, and the contexts that a recorder adds.

use super::format::Field;
use std::borrow::Cow;

/// A context of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextField {
    /// Id of the thread that ran, in the initial namespace.
    Thread,
    Process,
    /// Id of the thread that ran, in its own namespace.
    VirtualThread,
    /// Its process, in that namespace.
    VirtualProcess,
    Name,
    /// Call stack in the kernel.
    KernelStack,
    /// Call stack in user space.
    UserStack,
}

/// The ids that records have of the thread that ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordedIds {
    /// None.
    #[default]
    Absent,
    /// Those of the initial namespace, as the kernel records them.
    Initial,
    /// Those of its own namespace, as a program records them.
    Own,
}

impl RecordedIds {
    fn contexts(self) -> &'static [ContextField] {
        match self {
            RecordedIds::Absent => &[],
            RecordedIds::Initial => &[ContextField::Thread, ContextField::Process, ContextField::Name],
            RecordedIds::Own => &[ContextField::VirtualThread, ContextField::VirtualProcess, ContextField::Name],
        }
    }
}

impl ContextField {
    /// LTTng's name of it.
    pub(super) fn name(self) -> &'static str {
        match self {
            ContextField::Thread => "tid",
            ContextField::Process => "pid",
            ContextField::VirtualThread => "vtid",
            ContextField::VirtualProcess => "vpid",
            ContextField::Name => "procname",
            ContextField::KernelStack => "callstack_kernel",
            ContextField::UserStack => "callstack_user",
        }
    }
}

/// The description of a record class.
#[derive(Clone, Debug, Default)]
pub struct ClassSchema {
    /// Name of the event as its recorder shows it.
    pub name: String,
    /// The fields that all records of the kernel begin with.
    pub common: Vec<Field>,
    pub fields: Vec<Field>,
    /// The ids of the thread that ran in its records.
    pub threads: RecordedIds,
    /// Its records have call stacks.
    pub stacks: bool,
    /// See [`known_as`](super::known_as).
    pub known_as: Option<Cow<'static, str>>,
}

impl ClassSchema {
    pub(super) fn contexts(&self) -> impl Iterator<Item = ContextField> {
        let stacks: &[ContextField] =
            if self.stacks { &[ContextField::KernelStack, ContextField::UserStack] } else { &[] };
        self.threads.contexts().iter().chain(stacks).copied()
    }
}
