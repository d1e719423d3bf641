//! A trace of any format with streams of records, as the pipeline sees it.
//!
//! One enum for each of the trace, the compiled projection and the reader. The format is matched once for a run of
//! packets ([`Records`] is a generic argument there, not a pointer), so that the loop over records is compiled for each
//! format.

use super::error::LeftOut;
use super::record::{ClassId, Projection, Record, Scope, StreamId};
use super::stream::{CanonicalTime, Class, Position, SeekResult, SimpleField, Stream};
use super::{OpenError, ctf, ftrace, perf, tracepoint, translated};
use crate::base::heap::{HeapSize, block};
use crate::base::mapped::Mapped;
use crate::base::notice::Notices;
use crate::base::time::{ClockCorrection, Ns, Timestamp};
use ctf::{FieldNode, Sink};
use foldhash::{HashMap, HashSet};
use ftrace::MappedFile;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// An opened trace.
#[derive(Debug)]
pub enum Trace {
    /// The Common Trace Format.
    Ctf(ctf::CtfTrace),
    /// A perf.data.
    Perf(perf::PerfTrace),
    /// A trace.dat.
    Ftrace(ftrace::FtraceTrace),
    /// A recording of another platform or tool.
    Translated(translated::TranslatedTrace),
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

/// Evaluates an expression on the trace or the reader of any format.
macro_rules! each {
    (Trace, $what:expr, $one:ident => $do:expr) => {
        match $what {
            Trace::Ctf($one) => $do,
            Trace::Perf($one) => $do,
            Trace::Ftrace($one) => $do,
            Trace::Translated($one) => $do,
        }
    };
    (Reader, $what:expr, $one:ident => $do:expr, $nothing:expr) => {
        match $what {
            Reader::Ctf($one) => $do,
            Reader::Perf($one) => $do,
            Reader::Ftrace($one) => $do,
            Reader::Translated($one) => $do,
            Reader::Nothing => $nothing,
        }
    };
}

impl Trace {
    /// Open a CTF trace directory (one that holds `metadata`).
    pub fn open(path: &Path) -> Result<Trace, OpenError> {
        ctf::CtfTrace::open(path).map(Trace::Ctf)
    }

    /// Record classes by [`ClassId`].
    pub fn classes(&self) -> &[Class] {
        each!(Trace, self, t => t.classes())
    }

    /// True where records of the class can have the field.
    pub fn has_field(&self, class: ClassId, scope: Scope, dotted: &str) -> bool {
        each!(Trace, self, t => t.has_field(class, scope, dotted))
    }

    /// The payload's direct members that are integers or text.
    pub fn payload_fields(&self, class: ClassId) -> Vec<SimpleField<'_>> {
        each!(Trace, self, t => t.payload_fields(class).collect())
    }

    /// The same of the contexts.
    pub fn context_fields(&self, class: ClassId) -> Vec<SimpleField<'_>> {
        each!(Trace, self, t => t.context_fields(class).collect())
    }

    /// Streams by [`StreamId`].
    pub fn streams(&self) -> &[Stream] {
        each!(Trace, self, t => t.streams())
    }

    /// A member of the trace environment (`hostname`, `kernel_release`, `domain` ...), numbers as text.
    pub fn environment(&self, name: &str) -> Option<&str> {
        each!(Trace, self, t => t.environment(name))
    }

    /// Name of the host: `hostname` of LTTng's environment, `host` of what `perf data convert --to-ctf` writes.
    pub fn host(&self) -> Option<&str> {
        self.environment("hostname").or_else(|| self.environment("host"))
    }

    /// Uuid of the clock, where there is exactly one clock and it has one.
    pub fn clock_uuid(&self) -> Option<&str> {
        each!(Trace, self, t => t.clock_uuid())
    }

    /// Name of the clock, where there is exactly one.
    pub fn clock_name(&self) -> Option<&str> {
        each!(Trace, self, t => t.clock_name())
    }

    /// What the common time line adds to the monotonic clock of the recorded machine, where the trace has that clock.
    pub fn monotonic(&self) -> Option<Ns> {
        match self {
            Trace::Ctf(t) => t.monotonic(),
            Trace::Perf(t) => t.monotonic(),
            Trace::Ftrace(t) => t.monotonic(),
            Trace::Translated(_) => None,
        }
    }

    /// The same of the clock that goes on while the machine is suspended.
    pub fn boottime(&self) -> Option<Ns> {
        match self {
            Trace::Ctf(_) | Trace::Translated(_) => None,
            Trace::Perf(t) => t.boottime(),
            Trace::Ftrace(t) => t.boottime(),
        }
    }

    /// Uuid of the trace, where it has one: equal in all chunks of a session.
    pub fn uuid(&self) -> Option<&str> {
        each!(Trace, self, t => t.uuid())
    }

    /// Equal for traces that share their schema: record classes, fields and environment are the same, so that what is
    /// compiled for one holds for all.
    pub fn schema_key(&self) -> Option<usize> {
        match self {
            Trace::Ctf(t) => Some(t.schema_key()),
            Trace::Perf(_) | Trace::Ftrace(_) | Trace::Translated(_) => None,
        }
    }

    /// Bytes on the heap of some traces: their tables of packets, and their schemas, each once.
    pub fn heap_bytes<'t>(traces: impl IntoIterator<Item = &'t Trace>) -> usize {
        let mut known = HashSet::default();
        let own = |trace: &Trace| match trace {
            Trace::Ctf(t) if known.insert(t.schema_key()) => t.shared_bytes() + t.heap_bytes(),
            Trace::Ctf(t) => t.heap_bytes(),
            Trace::Translated(t) => t.storage().bytes(),
            other => other.streams().iter().map(|stream| block(&stream.packets)).sum(),
        };
        traces.into_iter().map(own).sum()
    }

    /// Format and version.
    pub fn format(&self) -> String {
        match self {
            Trace::Ctf(t) => format!("CTF {}", if t.version() == 2 { "2" } else { "1.8" }),
            Trace::Perf(t) => t.format(),
            Trace::Ftrace(t) => t.format(),
            Trace::Translated(t) => t.format(),
        }
    }

    /// Kernel symbols as in `/proc/kallsyms`, where the recording holds them.
    pub fn kernel_symbols(&self) -> Option<&[u8]> {
        match self {
            Trace::Ctf(_) => None,
            Trace::Translated(t) => t.kernel_symbols(),
            Trace::Perf(t) => t.kernel_symbols(),
            Trace::Ftrace(t) => t.kernel_symbols(),
        }
    }

    /// Symbols of kernel code that was made while recording, each with its end; empty where none was recorded.
    pub fn kernel_code(&self) -> &str {
        match self {
            Trace::Perf(t) => t.kernel_code(),
            Trace::Ctf(_) | Trace::Ftrace(_) | Trace::Translated(_) => "",
        }
    }

    /// Functions on call stacks in user space that are recorded by name: the words of stacks have their numbers
    /// ([`named`](crate::base::named_frames::named)).
    pub fn frames(&self) -> Arc<[Box<str>]> {
        match self {
            Trace::Translated(t) => t.storage().frames(),
            Trace::Ctf(_) | Trace::Perf(_) | Trace::Ftrace(_) => Arc::default(),
        }
    }

    /// Build ids of files by their paths, where the recording lists them outside of the mappings.
    pub fn build_ids(&self) -> Option<&HashMap<Vec<u8>, Vec<u8>>> {
        match self {
            Trace::Perf(t) => Some(t.build_ids()).filter(|ids| !ids.is_empty()),
            Trace::Ctf(_) | Trace::Ftrace(_) | Trace::Translated(_) => None,
        }
    }

    /// The files that processes had mapped, where the recording lists them outside of its records.
    pub fn mapped_files(&self) -> &[MappedFile] {
        match self {
            Trace::Ftrace(t) => t.mapped_files(),
            Trace::Ctf(_) | Trace::Perf(_) | Trace::Translated(_) => &[],
        }
    }

    /// Use the clock of another trace, which counts from the same moment. For recordings whose clock has no uuid.
    pub fn join_clock(&mut self, uuid: &str, base: i128) {
        match self {
            Trace::Ctf(_) => {}
            Trace::Perf(t) => t.join_clock(uuid, base),
            Trace::Ftrace(t) => t.join_clock(uuid, base),
            Trace::Translated(t) => t.join_clock(uuid, base),
        }
    }

    /// The files that hold the records.
    pub fn files(&self) -> Vec<&Mapped> {
        each!(Trace, self, t => t.files())
    }

    /// Add the notice that something beside it was left out.
    pub fn left_out(&mut self, what: &LeftOut) {
        each!(Trace, self, t => t.left_out(what))
    }

    /// Irregularities found when the trace was opened, and files truncated since: to be read when all records were
    /// read.
    pub fn notices(&self) -> Notices {
        each!(Trace, self, t => t.notices())
    }

    /// Compile a projection.
    pub fn compile(&self, projection: &Projection) -> Plan {
        match self {
            Trace::Ctf(t) => Plan::Ctf(t.compile(projection)),
            Trace::Perf(t) => Plan::Tracepoints(t.compile(projection)),
            Trace::Ftrace(t) => Plan::Tracepoints(t.compile(projection)),
            Trace::Translated(t) => Plan::Tracepoints(t.compile(projection)),
        }
    }

    /// Compile everything, for [`Records::show`].
    pub fn compile_whole(&self) -> Plan {
        match self {
            Trace::Ctf(t) => Plan::Ctf(t.compile_whole()),
            Trace::Perf(t) => Plan::Tracepoints(t.compile_whole()),
            Trace::Ftrace(t) => Plan::Tracepoints(t.compile_whole()),
            Trace::Translated(t) => Plan::Tracepoints(t.compile_whole()),
        }
    }

    /// Read some packets of a stream by a plan of the same trace.
    pub fn reader<'a>(&'a self, plan: &'a Plan, stream: StreamId, packets: Range<usize>) -> Reader<'a> {
        match (self, plan) {
            (Trace::Ctf(trace), Plan::Ctf(plan)) => Reader::Ctf(trace.reader(plan, stream, packets)),
            (Trace::Perf(trace), Plan::Tracepoints(plan)) => Reader::Perf(trace.reader(plan, stream, packets)),
            (Trace::Ftrace(trace), Plan::Tracepoints(plan)) => Reader::Ftrace(trace.reader(plan, stream, packets)),
            (Trace::Translated(trace), Plan::Tracepoints(plan)) => {
                Reader::Translated(trace.reader(plan, stream, packets))
            }
            _ => Reader::Nothing,
        }
    }

    /// The time of a clock value in a packet as `dump --canonical` prints it.
    pub fn canonical_time(&self, stream: StreamId, packet: usize, cycles: u64) -> CanonicalTime {
        each!(Trace, self, t => t.canonical_time(stream, packet, cycles))
    }

    /// The time of a clock value in a packet, on the common time line. `None`: the stream class has no clock.
    pub fn exact_time(&self, stream: StreamId, packet: usize, cycles: u64) -> Option<Timestamp> {
        each!(Trace, self, t => t.exact_time(stream, packet, cycles))
    }

    /// The CPU that a packet names.
    pub fn packet_cpu(&self, stream: StreamId, packet: usize) -> Option<u32> {
        each!(Trace, self, t => t.packet_cpu(stream, packet))
    }

    /// Give each clock the offset (in cycles from the origin) that its uuid has in another trace, if it has one.
    pub fn set_clock_offsets(&mut self, offset: impl Fn(&str) -> Option<i128>) {
        each!(Trace, self, t => t.set_clock_offsets(offset))
    }

    /// Correct all clocks of the trace to another time line, which becomes the common one.
    pub fn correct_clocks(&mut self, correction: ClockCorrection) {
        each!(Trace, self, t => t.correct_clocks(correction))
    }

    /// The uuids of the clocks, each with its first offset (in cycles from the origin).
    pub fn clock_offsets(&self) -> Vec<(&str, i128)> {
        each!(Trace, self, t => t.clock_offsets().collect())
    }
}

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
        each!(Reader, self, r => r.next(), None)
    }

    /// See [`Records::count`].
    pub fn count(&mut self, counts: &mut [u64]) {
        each!(Reader, self, r => r.count(counts), ())
    }

    /// See [`Records::step`].
    pub fn step(&mut self) -> Option<PassedRecord> {
        each!(Reader, self, r => r.step(), None)
    }

    /// See [`Records::show`].
    pub fn show<S: Sink<'a>>(&mut self, sink: &mut S) -> Option<PassedRecord> {
        each!(Reader, self, r => r.show(sink), None)
    }

    /// See [`Records::resume`].
    pub fn resume(&mut self, position: Position) {
        each!(Reader, self, r => r.resume(position), ())
    }

    /// See [`Records::position`].
    pub fn position(&self) -> Position {
        each!(Reader, self, r => r.position(), Position::BEGIN)
    }

    /// See [`Records::began`].
    pub fn began(&self) -> Position {
        each!(Reader, self, r => r.began(), Position::BEGIN)
    }

    /// See [`Records::packet`].
    pub fn packet(&self) -> usize {
        each!(Reader, self, r => r.packet(), 0)
    }

    /// See [`Records::notices`].
    pub fn notices(&self) -> Notices {
        each!(Reader, self, r => r.notices(), Notices::default())
    }
}
