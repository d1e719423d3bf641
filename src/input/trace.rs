//! A trace of any format with streams of records, as the pipeline sees it.
//!
//! Questions about a trace are methods of [`FormatTrace`], which each format answers. Records are read by [`Reader`],
//! an enum: the format is matched once for a run of packets ([`Records`] is a generic argument there, not a pointer),
//! so that the loop over records is compiled for each format.

use super::account::Account;
use super::error::LeftOut;
use super::formats::InputFormat;
use super::record::{ClassId, Projection, Record, Scope, StreamId};
use super::stream::{CanonicalTime, Class, Position, SeekResult, SimpleField, Stream};
use super::{OpenError, ctf, ftrace, perf, tracepoint, translated};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::heap::HeapSize;
use crate::base::mapped::Mapped;
use crate::base::notice::Notices;
use crate::base::time::{ClockCorrection, Ns, Timestamp};
use crate::model::recorder::TraceRecorder;
use ctf::{FieldNode, Sink};
use foldhash::{HashMap, HashSet};
use ftrace::MappedFile;
use std::fmt::Debug;
use std::ops::{Deref, DerefMut, Range};
use std::path::Path;
use std::sync::Arc;

/// An opened trace of any format.
#[derive(Debug)]
pub struct Trace(Box<dyn FormatTrace>);

impl Deref for Trace {
    type Target = dyn FormatTrace;

    fn deref(&self) -> &(dyn FormatTrace + 'static) {
        &*self.0
    }
}

impl DerefMut for Trace {
    fn deref_mut(&mut self) -> &mut (dyn FormatTrace + 'static) {
        &mut *self.0
    }
}

/// What a format answers about one of its traces.
pub trait FormatTrace: Debug + Send + Sync {
    fn format(&self) -> &'static InputFormat;
    /// Format and version.
    fn version(&self) -> String;
    /// The program that wrote it.
    fn recorder(&self) -> TraceRecorder {
        self.format().recorder
    }
    /// Record classes by [`ClassId`].
    fn classes(&self) -> &[Class];
    /// True where records of the class can have the field.
    fn has_field(&self, class: ClassId, scope: Scope, dotted: &str) -> bool;
    /// The payload's direct members that are integers or text.
    fn payload_fields(&self, class: ClassId) -> Vec<SimpleField<'_>>;
    /// The contexts' direct members that are integers or text.
    fn context_fields(&self, class: ClassId) -> Vec<SimpleField<'_>>;
    /// Streams by [`StreamId`].
    fn streams(&self) -> &[Stream];
    /// A member of the trace environment (`hostname`, `kernel_release`, `domain` ...), numbers as text.
    fn environment(&self, name: &str) -> Option<&str>;
    /// Uuid of the clock, where there is exactly one clock and it has one.
    fn clock_uuid(&self) -> Option<&str>;
    /// Name of the clock, where there is exactly one.
    fn clock_name(&self) -> Option<&str>;
    /// What the common time line adds to the monotonic clock of the recorded machine, where the trace has that clock.
    fn monotonic(&self) -> Option<Ns>;
    /// What it adds to the clock that goes on while the machine is suspended, where the trace has that one.
    fn boottime(&self) -> Option<Ns> {
        None
    }
    /// Uuid of the trace, where it has one: equal in all chunks of a session.
    fn uuid(&self) -> Option<&str> {
        None
    }
    /// Equal for traces that share their schema: record classes, fields and environment are the same, so that what is
    /// compiled for one holds for all.
    fn schema_key(&self) -> Option<usize> {
        None
    }
    /// Bytes on the heap, without what traces of one schema share.
    fn heap_bytes(&self) -> usize;
    /// Bytes on the heap that traces of one schema share.
    fn shared_bytes(&self) -> usize {
        0
    }
    /// What it says of code, outside of its records.
    fn code(&self) -> RecordedCode<'_> {
        RecordedCode::default()
    }
    /// A perf.data, whose stacks may have to be unwound.
    fn as_perf(&self) -> Option<&perf::PerfTrace> {
        None
    }
    /// Use the clock of another trace, which counts from the same moment. For recordings whose clock has no uuid.
    fn join_clock(&mut self, _uuid: &str, _base: i128) {}
    /// The files that hold the records.
    fn files(&self) -> Vec<&Mapped>;
    /// Add the notice that something beside it was left out.
    fn left_out(&mut self, what: &LeftOut);
    /// Irregularities found when the trace was opened, and files truncated since: to be read when all records were
    /// read.
    fn notices(&self) -> Notices;
    /// Compile a projection.
    fn compile(&self, projection: &Projection) -> Plan;
    /// Compile everything, for [`Records::show`].
    fn compile_whole(&self) -> Plan;
    /// Read some packets of a stream by a plan of the same trace.
    fn reader<'a>(&'a self, plan: &'a Plan, stream: StreamId, packets: Range<usize>) -> Reader<'a>;
    /// The time of a clock value in a packet as `dump --canonical` prints it.
    fn canonical_time(&self, stream: StreamId, packet: usize, cycles: u64) -> CanonicalTime;
    /// The time of a clock value in a packet, on the common time line. `None`: the stream class has no clock.
    fn exact_time(&self, stream: StreamId, packet: usize, cycles: u64) -> Option<Timestamp>;
    /// The CPU that a packet names.
    fn packet_cpu(&self, stream: StreamId, packet: usize) -> Option<u32>;
    /// Give each clock the offset (in cycles from the origin) that its uuid has in another trace, if it has one.
    fn set_clock_offsets(&mut self, offset: &dyn Fn(&str) -> Option<i128>);
    /// Correct all clocks of the trace to another time line, which becomes the common one.
    fn correct_clocks(&mut self, correction: ClockCorrection);
    /// The uuids of the clocks, each with its first offset (in cycles from the origin).
    fn clock_offsets(&self) -> Vec<(&str, i128)>;
    /// Account for all records.
    fn account(&self, ctx: &Ctx) -> Result<Account, Cancelled>;
}

impl Trace {
    /// Open a CTF trace directory (one that holds `metadata`).
    pub fn open(path: &Path) -> Result<Trace, OpenError> {
        ctf::CtfTrace::open(path).map(Trace::new)
    }

    /// The trace of a format.
    pub(super) fn new(trace: impl FormatTrace + 'static) -> Trace {
        Trace(Box::new(trace))
    }

    /// Name of the host: `hostname` of LTTng's environment, `host` of what `perf data convert --to-ctf` writes.
    pub fn host(&self) -> Option<&str> {
        self.environment("hostname").or_else(|| self.environment("host"))
    }

    /// Bytes on the heap of some traces: their tables of packets, and their schemas, each once.
    pub fn bytes_of<'t>(traces: impl IntoIterator<Item = &'t Trace>) -> usize {
        let mut known = HashSet::default();
        let mut is_first = |trace: &Trace| trace.schema_key().is_some_and(|key| known.insert(key));
        let bytes = |trace: &Trace| trace.heap_bytes() + if is_first(trace) { trace.shared_bytes() } else { 0 };
        traces.into_iter().map(bytes).sum()
    }
}

/// What a recording says of the code that ran, outside of its records.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordedCode<'a> {
    /// Kernel symbols as in `/proc/kallsyms`, where the recording holds them.
    pub kernel_symbols: Option<&'a [u8]>,
    /// Symbols of kernel code that was made while recording, as `/proc/kallsyms` lists symbols, each with its end.
    pub kernel_code: &'a str,
    /// Functions on call stacks in user space that are recorded by name: the words of stacks have their numbers
    /// ([`named`](crate::base::named_frames::named)).
    pub frames: Option<&'a Arc<[Box<str>]>>,
    /// Build ids of files by their paths.
    pub build_ids: Option<&'a HashMap<Vec<u8>, Vec<u8>>>,
    /// The files that processes had mapped.
    pub mapped_files: &'a [MappedFile],
}

/// A compiled projection of one trace, or everything of it, for writers.
#[derive(Debug)]
pub enum Plan {
    /// Of a CTF trace.
    Ctf(ctf::CtfPlan),
    /// Of a recording of the kernel's tracepoints.
    Tracepoints(tracepoint::plan::TracepointPlan),
}

/// Reads a run of packets of one stream.
#[derive(Debug)]
pub enum Reader<'a> {
    /// Of a CTF trace.
    Ctf(ctf::CtfReader<'a>),
    /// Of a perf.data.
    Perf(tracepoint::reader::TracepointReader<'a, perf::PerfStorage>),
    /// Of a trace.dat.
    Ftrace(tracepoint::reader::TracepointReader<'a, ftrace::FtraceStorage>),
    /// Of a recording of another platform or tool.
    Translated(tracepoint::reader::TracepointReader<'a, translated::TranslatedStorage>),
    /// Reads nothing, because the plan belongs to a trace of another format.
    Nothing,
}

/// An event that was skipped, or whose fields were written into a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassedRecord {
    pub class: ClassId,
    /// The full value of its clock.
    pub clock: u64,
}

/// The interface of the readers of all formats.
pub trait Records<'a> {
    /// The next record of a wanted class; `None` at the end. Damage raises a notice, and reading goes on with the next
    /// packet.
    fn next(&mut self) -> Option<Record<'_, 'a>>;
    /// Skip the events of the next packet before `from`, without decoding their values. The result has the position of
    /// the last one whose class is a `checkpoint`.
    fn seek(&mut self, from: Timestamp, checkpoint: impl Fn(ClassId) -> bool) -> SeekResult;
    /// Skip the next event.
    fn step(&mut self) -> Option<PassedRecord>;
    /// Write all fields of the next event into `sink`.
    fn show<S: Sink<'a>>(&mut self, sink: &mut S) -> Option<PassedRecord>;
    /// Count the events of each class into `counts`, without decoding their values.
    fn count(&mut self, counts: &mut [u64]);
    /// Position in the packet.
    fn position(&self) -> Position;
    /// Go to a position in the same packet.
    fn go(&mut self, position: Position);
    /// Go to a position in the next packet.
    fn resume(&mut self, position: Position);
    /// The position before the event that was shown or skipped last.
    fn began(&self) -> Position;
    /// Number of the packet that the last record was in.
    fn packet(&self) -> usize;
    /// Damage found in the packets read so far.
    fn notices(&self) -> Notices;
}

/// Evaluates an expression on the reader of any format.
macro_rules! each_reader {
    ($what:expr, $one:ident => $do:expr, $nothing:expr) => {
        match $what {
            $crate::input::trace::Reader::Ctf($one) => $do,
            $crate::input::trace::Reader::Perf($one) => $do,
            $crate::input::trace::Reader::Ftrace($one) => $do,
            $crate::input::trace::Reader::Translated($one) => $do,
            $crate::input::trace::Reader::Nothing => $nothing,
        }
    };
}
pub(crate) use each_reader;

impl HeapSize for Plan {
    fn heap_bytes(&self) -> usize {
        match self {
            Plan::Ctf(plan) => plan.heap_bytes(),
            // Declared formats are few.
            Plan::Tracepoints(_) => 0,
        }
    }
}

impl Plan {
    /// The nodes of a plan that shows everything.
    pub fn nodes(&self) -> &[FieldNode] {
        match self {
            Plan::Ctf(plan) => plan.nodes(),
            Plan::Tracepoints(plan) => plan.nodes(),
        }
    }
}

impl<'a> Reader<'a> {
    /// The next record of a wanted class; `None` at the end.
    #[allow(clippy::should_implement_trait)] // a lending iterator: the record borrows the reader's values
    pub fn next(&mut self) -> Option<Record<'_, 'a>> {
        each_reader!(self, r => r.next(), None)
    }

    /// See [`Records::count`].
    pub fn count(&mut self, counts: &mut [u64]) {
        each_reader!(self, r => r.count(counts), ())
    }

    /// See [`Records::step`].
    pub fn step(&mut self) -> Option<PassedRecord> {
        each_reader!(self, r => r.step(), None)
    }

    /// See [`Records::show`].
    pub fn show<S: Sink<'a>>(&mut self, sink: &mut S) -> Option<PassedRecord> {
        each_reader!(self, r => r.show(sink), None)
    }

    /// See [`Records::resume`].
    pub fn resume(&mut self, position: Position) {
        each_reader!(self, r => r.resume(position), ())
    }

    /// See [`Records::position`].
    pub fn position(&self) -> Position {
        each_reader!(self, r => r.position(), Position::BEGIN)
    }

    /// See [`Records::began`].
    pub fn began(&self) -> Position {
        each_reader!(self, r => r.began(), Position::BEGIN)
    }

    /// See [`Records::packet`].
    pub fn packet(&self) -> usize {
        each_reader!(self, r => r.packet(), 0)
    }

    /// See [`Records::notices`].
    pub fn notices(&self) -> Notices {
        each_reader!(self, r => r.notices(), Notices::default())
    }
}
