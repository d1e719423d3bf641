//! Record classes of the kernel's tracepoints: their own fields, and the contexts that a recorder adds.

use super::format::Field;
use std::borrow::Cow;

/// A context of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextField {
    /// Id of the thread that ran.
    Thread,
    /// Its process.
    Process,
    /// Its name.
    Name,
    /// Call stack in the kernel.
    KernelStack,
    /// Call stack in user space.
    UserStack,
}

impl ContextField {
    const ALL: [ContextField; 5] = [
        ContextField::Thread,
        ContextField::Process,
        ContextField::Name,
        ContextField::KernelStack,
        ContextField::UserStack,
    ];

    /// The LTTng kernel tracer's name of it.
    pub(super) fn name(self) -> &'static str {
        match self {
            ContextField::Thread => "tid",
            ContextField::Process => "pid",
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
    /// Its own fields.
    pub fields: Vec<Field>,
    /// Its records have the thread that ran.
    pub threads: bool,
    /// Its records have call stacks.
    pub stacks: bool,
    /// See [`known_as`](super::known_as).
    pub known_as: Option<Cow<'static, str>>,
}

impl ClassSchema {
    pub(super) fn contexts(&self) -> impl Iterator<Item = ContextField> {
        let stack = |c: &ContextField| matches!(c, ContextField::KernelStack | ContextField::UserStack);
        ContextField::ALL.into_iter().filter(move |c| if stack(c) { self.stacks } else { self.threads })
    }
}
