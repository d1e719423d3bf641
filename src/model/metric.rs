//! Metrics: named numbers of an execution, in columns.

use super::column_values::ColumnValues;
use super::wait_kind::WaitKind;
use crate::base::figure;
use crate::base::quantity::{self, Units};

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    Bytes,
    /// Things.
    Count,
    /// A name out of few (`type`, `trace`): the value is a `NameId`.
    Name,
}

impl Unit {
    /// How its values are typed.
    pub fn units(self) -> &'static Units {
        match self {
            Unit::Ns => quantity::TIME,
            Unit::Bytes => quantity::SIZE,
            Unit::Count | Unit::Name => quantity::COUNT,
        }
    }

    /// A value to three digits; of names the id ([`Model::value_text`](super::Model::value_text) looks it up).
    pub fn rounded(self, value: i64) -> String {
        match self {
            Unit::Ns => figure::time(value as f64),
            Unit::Bytes => figure::bytes(value as f64),
            Unit::Count | Unit::Name if value < 0 => format!("-{}", figure::count(value.unsigned_abs())),
            Unit::Count | Unit::Name => figure::count(value.unsigned_abs()),
        }
    }

    /// A value as one would type it.
    pub fn exact(self, value: i64) -> String {
        quantity::exact(value, self.units())
    }
}

/// The name for people of [`WaitKind::Preempted`], whose name in JSON is older; filters take both.
pub const RUNNABLE: &str = "runnable";

/// The value of [`Metric::Errno`] of a call that did not fail.
pub const SUCCEEDED: &str = "none";

/// A metric by name (PRODUCT.md, `FILTER`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metric {
    /// End minus start.
    Duration,
    /// Start, from the first event of the recording.
    Start,
    /// Start, from the first event of its own recording, where several that don't overlap in time are compared.
    Elapsed,
    /// End, from the first event of the recording. Filters alone use it: with `start` it selects the executions that
    /// ran at a moment (`start<=1.2s, end>1.2s`).
    End,
    /// Time per kind on the critical path. `cpu`, `preempted`, `interrupted`, `blocked.*`.
    Time(WaitKind),
    /// `blocked.other`: device, IPI, user input, unknown together.
    Other,
    /// System calls begun by the threads on the critical path while they are on it.
    Syscalls,
    /// Page faults, likewise.
    PageFaults,
    /// Bytes that its reads returned.
    BytesRead,
    /// Bytes that its writes returned.
    BytesWritten,
    /// Threads on the critical path.
    Threads,
    /// Time in which all threads of the machine were stopped.
    Paused,
    /// Mean running time of the executions that took turns with a long one on its CPU.
    Interleaved,
    /// Mean frequency of the CPUs while the threads on the critical path ran, in kHz.
    CpuKhz,
    /// Which trace.
    Trace,
    /// The name of its process.
    Process,
    /// The name of its thread.
    Thread,
    /// The id of its thread.
    Tid,
    /// The name of its host.
    Host,
    /// The number of the CPU on which it began.
    CpuId,
    /// Of a sample: the executable, the library or the kernel whose code it hit.
    Image,
    /// The value of the task's type field.
    Type,
    /// The error for which the system call failed that ended it, [`SUCCEEDED`] where it did not fail.
    Errno,
    /// The MPI rank whose iteration it is.
    Rank,
    /// The role of its rank in an MPI run, which runs on other numbers of ranks share.
    Role,
    /// The number of the execution: `execution=115,171` selects executions one by one. It has no column.
    Execution,
    /// Which of the two groups: `group!=slow` in the filters of the fast group. It has no column.
    Group,
    /// A numeric field of the delimiting events: `field.NAME`.
    Field(String),
    /// A hardware counter, over the running segments of the critical path: `perf.thread_instructions`.
    Perf(String),
}

impl Metric {
    /// Those that every recording may have.
    pub fn known() -> Vec<Metric> {
        let mut all = vec![Metric::Duration, Metric::Start];
        all.extend(WaitKind::ALL.into_iter().filter(|kind| kind.row().has_metric).map(Metric::Time));
        all.extend([Metric::Other, Metric::Syscalls, Metric::PageFaults, Metric::BytesRead, Metric::BytesWritten]);
        all.extend([
            Metric::Threads,
            Metric::Paused,
            Metric::Interleaved,
            Metric::CpuKhz,
            Metric::Trace,
            Metric::Process,
            Metric::Thread,
            Metric::Tid,
            Metric::Host,
            Metric::CpuId,
            Metric::Image,
            Metric::Type,
            Metric::Errno,
            Metric::Rank,
            Metric::Role,
            Metric::Elapsed,
            Metric::End,
            Metric::Execution,
        ]);
        all
    }

    /// The metric of this name.
    pub fn named(name: &str) -> Option<Metric> {
        if let Some(field) = name.strip_prefix("field.") {
            return (!field.is_empty()).then(|| Metric::Field(field.into()));
        }
        if let Some(counter) = name.strip_prefix("perf.") {
            return (!counter.is_empty()).then(|| Metric::Perf(counter.into()));
        }
        match name {
            RUNNABLE => return Some(Metric::Time(WaitKind::Preempted)),
            "label" => return Some(Metric::Trace),
            _ => {}
        }
        let spent = WaitKind::ALL.into_iter().map(Metric::Time);
        Metric::known().into_iter().chain(spent).chain([Metric::Group]).find(|m| m.name() == name)
    }

    /// The name in filters, JSON and on screen.
    pub fn name(&self) -> String {
        match self {
            Metric::Duration => "duration".into(),
            Metric::Start => "start".into(),
            Metric::Elapsed => "elapsed".into(),
            Metric::End => "end".into(),
            Metric::Time(s) => s.name().into(),
            Metric::Other => "blocked.other".into(),
            Metric::Syscalls => "syscalls".into(),
            Metric::PageFaults => "page_faults".into(),
            Metric::BytesRead => "bytes_read".into(),
            Metric::BytesWritten => "bytes_written".into(),
            Metric::Threads => "threads".into(),
            Metric::Paused => "paused".into(),
            Metric::Interleaved => "interleaved".into(),
            Metric::CpuKhz => "cpu_khz".into(),
            Metric::Trace => "trace".into(),
            Metric::Process => "process".into(),
            Metric::Thread => "thread".into(),
            Metric::Tid => "tid".into(),
            Metric::Host => "host".into(),
            Metric::CpuId => "cpu_id".into(),
            Metric::Image => "image".into(),
            Metric::Type => "type".into(),
            Metric::Errno => "errno".into(),
            Metric::Rank => "rank".into(),
            Metric::Role => "role".into(),
            Metric::Execution => "execution".into(),
            Metric::Group => "group".into(),
            Metric::Field(name) => format!("field.{name}"),
            Metric::Perf(name) => format!("perf.{name}"),
        }
    }

    pub fn unit(&self) -> Unit {
        match self {
            Metric::Duration | Metric::Start | Metric::Elapsed | Metric::End => Unit::Ns,
            Metric::Time(_) | Metric::Other | Metric::Paused | Metric::Interleaved => Unit::Ns,
            Metric::BytesRead | Metric::BytesWritten => Unit::Bytes,
            Metric::Syscalls | Metric::PageFaults | Metric::Threads | Metric::CpuKhz => Unit::Count,
            Metric::Field(_) | Metric::Perf(_) | Metric::Execution => Unit::Count,
            Metric::Trace | Metric::Process | Metric::Thread | Metric::Image => Unit::Name,
            Metric::Tid | Metric::Host | Metric::CpuId => Unit::Name,
            Metric::Type | Metric::Errno | Metric::Rank | Metric::Role | Metric::Group => Unit::Name,
        }
    }
}

/// One metric of all executions. Absent is absent, not zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The metric of which these are the values.
    pub metric: Metric,
    /// By execution; [`ABSENT`] where it cannot be computed.
    pub values: ColumnValues,
}

/// Marks "no value" in a column.
pub const ABSENT: i64 = i64::MIN;
