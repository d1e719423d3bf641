//! The rows of a timeline that belong to a CPU, a device, a host or a task; those of threads are in
//! [`super::segments`].

use super::segments::ThreadId;
use crate::base::names::NameId;
use crate::base::time::{Span, Timestamp};
use crate::event::host::HostId;
use crate::event::image::ImageChange;
use crate::event::stack::RawStackId;
use get_size2::GetSize;

/// An [`ImageChange`] of one process.
#[derive(Clone, Debug, PartialEq, Eq, GetSize)]
pub struct ImageEvent {
    pub time: Timestamp,
    pub host: HostId,
    /// Process (in the initial namespace).
    pub pid: i32,
    pub change: ImageChange,
}

/// One request to a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskRequest {
    pub host: HostId,
    /// Device number.
    pub device: u32,
    /// First sector.
    pub sector: u64,
    pub bytes: u64,
    /// True for writes.
    pub write: bool,
    /// The thread that submitted it.
    pub submitter: Option<ThreadId>,
    /// Where that is a kernel thread that runs a work item: the thread that queued the item.
    pub queued_by: Option<ThreadId>,
    /// From its insertion into the queue (`issued` where not recorded) to its completion; where that was not recorded,
    /// to that of the first request of its device that began later, or to the end of the trace.
    pub span: Span,
    /// Its completion was recorded.
    pub is_completed: bool,
    /// When it was handed to the device.
    pub issued: Timestamp,
}

/// Work of a kernel thread for another thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Service {
    /// The kernel thread.
    pub thread: ThreadId,
    pub span: Span,
    /// The thread for which it worked.
    pub client: ThreadId,
    /// When that thread handed in the work.
    pub since: Timestamp,
}

#[derive(Clone, Debug, GetSize)]
pub struct Host {
    pub name: NameId,
    /// Kernel release, where recorded.
    pub kernel_release: Option<String>,
}

/// A thread on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuRun {
    pub span: Span,
    /// The thread (idle tasks included).
    pub thread: ThreadId,
}

/// A CPU of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostCpu {
    pub host: HostId,
    /// Number of the CPU on its host.
    pub cpu: u32,
}

/// The threads that ran on one CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuTimeline {
    pub host: HostId,
    /// Number of the CPU on its host.
    pub cpu: u32,
    /// Its runs in order of time; they do not overlap.
    pub runs: Vec<CpuRun>,
}

/// The time over which all CPUs of a host were recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, GetSize)]
pub struct HostCoverage {
    pub host: HostId,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageFault {
    pub thread: ThreadId,
    pub time: Timestamp,
}

/// The kernel's call chain at a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, GetSize)]
pub struct WakeStack {
    pub woken: ThreadId,
    pub time: Timestamp,
    /// The calls of the CPU that woke it.
    pub stack: RawStackId,
}

/// The fields of delimiting events that no event of the recording shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DerivedField {
    /// What a system call returned.
    Returned,
    Descriptor,
    BytesIn,
    BytesOut,
    /// Time from the arrival of a request until it was read.
    Unread,
}

impl DerivedField {
    pub const ALL: [DerivedField; 5] = [
        DerivedField::Returned,
        DerivedField::Descriptor,
        DerivedField::BytesIn,
        DerivedField::BytesOut,
        DerivedField::Unread,
    ];

    pub fn name(self) -> &'static str {
        match self {
            DerivedField::Returned => "ret",
            DerivedField::Descriptor => "fd",
            DerivedField::BytesIn => "bytes_in",
            DerivedField::BytesOut => "bytes_out",
            DerivedField::Unread => "unread_ns",
        }
    }
}

/// A numeric field of a delimiting event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, GetSize)]
pub struct MarkField {
    pub name: NameId,
    pub value: i64,
}

/// A delimiting event, in the total order of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    pub time: Timestamp,
    /// Position of the task in the list that was passed to the kernel pass.
    pub task: u32,
    /// True if it begins an execution, false if it ends one.
    pub begins: bool,
    /// The thread it happened on; `None` where unattached.
    pub thread: Option<ThreadId>,
    /// Position of the trace in the list that was passed to the kernel pass.
    pub trace: u32,
    /// The CPU it happened on; `u16::MAX` where unknown.
    pub cpu: u16,
    /// Value of the task's key field.
    pub key: Option<i64>,
    /// Value of the task's type field.
    pub kind: Option<NameId>,
    /// Numeric payload fields.
    pub fields: Vec<MarkField>,
}

/// A delimiting event without its fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, GetSize)]
pub struct MarkRow {
    /// Its number, by which its fields are found.
    pub number: u32,
    pub time: Timestamp,
    /// Position of the task in the list that was passed to the kernel pass.
    pub task: u32,
    /// True if it begins an execution, false if it ends one.
    pub begins: bool,
    /// The thread it happened on; `None` where unattached.
    pub thread: Option<ThreadId>,
    /// Position of the trace in the list that was passed to the kernel pass.
    pub trace: u32,
    /// The CPU it happened on; `u16::MAX` where unknown.
    pub cpu: u16,
    /// Value of the task's key field.
    pub key: Option<i64>,
    /// Value of the task's type field.
    pub kind: Option<NameId>,
}

impl MarkRow {
    /// A mark by its number.
    pub fn of(number: u32, mark: &Mark) -> MarkRow {
        let Mark { time, task, begins, thread, trace, cpu, key, kind, fields: _ } = *mark;
        MarkRow { number, time, task, begins, thread, trace, cpu, key, kind }
    }

    /// The mark with its fields.
    pub fn with_fields(self, fields: Vec<MarkField>) -> Mark {
        let MarkRow { number: _, time, task, begins, thread, trace, cpu, key, kind } = self;
        Mark { time, task, begins, thread, trace, cpu, key, kind, fields }
    }
}

/// The owner of a hardware counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CounterOwner {
    /// A thread: the counter counts while it runs.
    Thread(ThreadId),
    /// A CPU of a host: the counter counts all threads that run there.
    Cpu(HostId, u32),
}

/// A value of a hardware counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterValue {
    pub owner: CounterOwner,
    /// When it was read.
    pub time: Timestamp,
    /// The count so far.
    pub value: u64,
}

/// A hardware counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Name of its context (`perf_thread_instructions`).
    pub name: NameId,
    /// Its values, sorted by owner and time.
    pub values: Vec<CounterValue>,
}
