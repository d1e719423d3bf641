//! Metrics: named numbers of an execution, in columns.

pub use super::column_values::ABSENT;
use super::column_values::ColumnValues;
use super::wait_kind::WaitKind;
use crate::base::figure;
use crate::base::quantity::{self, Units};
use get_size2::GetSize;

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

/// Where the values of a metric are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MetricSource {
    /// Measured of each execution and along its path.
    Path,
    /// A property of it, of its thread or of its task, in columns where the recording has it.
    Property,
    /// Its bounds and its number, which need no column.
    Bounds,
    /// The groups: of filters alone.
    Groups,
}

macro_rules! metrics {
    ({ $($(#[$doc1:meta])* $first:ident $name1:literal $unit1:ident $source1:ident,)+ }
     { $($(#[$doc2:meta])* $second:ident $name2:literal $unit2:ident $source2:ident,)+ }) => {
        /// A metric by name (PRODUCT.md, `FILTER`).
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Metric {
            $($(#[$doc1])* $first,)+
            /// Time per kind on the critical path. `cpu`, `preempted`, `interrupted`, `blocked.*`.
            Time(WaitKind),
            $($(#[$doc2])* $second,)+
            /// A numeric field of the delimiting events: `field.NAME`.
            Field(String),
            /// A hardware counter, over the running segments of the critical path: `perf.thread_instructions`.
            Perf(String),
        }

        /// The metrics of one name each.
        const FIXED: &[(Metric, MetricSource)] = &[
            $((Metric::$first, MetricSource::$source1),)+
            $((Metric::$second, MetricSource::$source2),)+
        ];

        impl Metric {
            /// The name in filters, JSON and on screen.
            pub fn name(&self) -> String {
                match self {
                    $(Metric::$first => $name1.into(),)+
                    $(Metric::$second => $name2.into(),)+
                    Metric::Time(kind) => kind.name().into(),
                    Metric::Field(name) => format!("field.{name}"),
                    Metric::Perf(name) => format!("perf.{name}"),
                }
            }

            pub fn unit(&self) -> Unit {
                match self {
                    $(Metric::$first => Unit::$unit1,)+
                    $(Metric::$second => Unit::$unit2,)+
                    Metric::Time(_) => Unit::Ns,
                    Metric::Field(_) | Metric::Perf(_) => Unit::Count,
                }
            }
        }
    };
}

// Columns have this order. Those before the times of kinds, and those after.
metrics! {
    {
        /// End minus start.
        Duration "duration" Ns Path,
        /// Start, from the first event of the recording.
        Start "start" Ns Path,
        /// Start, from the first event of its own recording, where several that don't overlap in time are compared.
        Elapsed "elapsed" Ns Bounds,
        /// End, from the first event of the recording. Filters alone use it: with `start` it selects the executions
        /// that ran at a moment (`start<=1.2s, end>1.2s`).
        End "end" Ns Bounds,
    }
    {
        /// Time of the kinds that have no metric of their own.
        Other "blocked.other" Ns Path,
        /// System calls begun by the threads on the critical path while they are on it.
        Syscalls "syscalls" Count Path,
        /// Page faults, likewise.
        PageFaults "page_faults" Count Path,
        /// Bytes that its reads returned.
        BytesRead "bytes_read" Bytes Path,
        /// Bytes that its writes returned.
        BytesWritten "bytes_written" Bytes Path,
        /// Threads on the critical path.
        Threads "threads" Count Path,
        /// Time in which all threads of the machine were stopped.
        Paused "paused" Ns Path,
        /// Mean running time of the executions that took turns with a long one on its CPU.
        Interleaved "interleaved" Ns Path,
        /// Mean frequency of the CPUs while the threads on the critical path ran, in kHz.
        CpuKhz "cpu_khz" Count Path,
        Trace "trace" Name Path,
        /// The name of its process.
        Process "process" Name Property,
        /// The name of its thread.
        Thread "thread" Name Property,
        /// The id of its thread.
        Tid "tid" Name Property,
        /// The name of its host.
        Host "host" Name Property,
        /// The number of the CPU on which it began.
        CpuId "cpu_id" Name Property,
        /// Of a sample: the executable, the library or the kernel whose code it hit.
        Image "image" Name Property,
        /// The value of the task's type field.
        Type "type" Name Property,
        /// The error for which the system call failed that ended it, [`SUCCEEDED`] where it did not fail.
        Errno "errno" Name Property,
        /// The MPI rank whose iteration it is.
        Rank "rank" Name Property,
        /// The role of its rank in an MPI run, which runs on other numbers of ranks share.
        Role "role" Name Property,
        /// How many executions it represents, of a sample.
        Weight "weight" Count Property,
        /// The number of the execution: `execution=115,171` selects executions one by one. It has no column.
        Execution "execution" Count Bounds,
        /// Which of the two groups: `group!=slow` in the filters of the fast group. It has no column.
        Group "group" Name Groups,
    }
}

impl Metric {
    fn of(source: MetricSource) -> impl Iterator<Item = Metric> {
        FIXED.iter().filter(move |row| row.1 == source).map(|row| row.0.clone())
    }

    /// Those that are measured of each execution, in their order.
    pub fn measured() -> Vec<Metric> {
        let times = WaitKind::ALL.into_iter().filter(|kind| kind.row().has_metric).map(Metric::Time);
        let mut all: Vec<Metric> = Metric::of(MetricSource::Path).chain(times).collect();
        all.sort_unstable();
        all
    }

    /// Those that every recording may have.
    pub fn known() -> Vec<Metric> {
        let others = [MetricSource::Property, MetricSource::Bounds].into_iter().flat_map(Metric::of);
        Metric::measured().into_iter().chain(others).collect()
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
        let times = WaitKind::ALL.into_iter().map(Metric::Time);
        FIXED.iter().map(|row| row.0.clone()).chain(times).find(|metric| metric.name() == name)
    }
}

/// One metric of all executions. Absent is absent, not zero.
#[derive(Clone, Debug, PartialEq, Eq, GetSize)]
pub struct Column {
    /// The metric of which these are the values.
    #[get_size(ignore)]
    pub metric: Metric,
    /// By execution; [`ABSENT`] where it cannot be computed.
    pub values: ColumnValues,
}
