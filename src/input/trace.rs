//! A trace of any format with streams of records, as the pipeline sees it.
//!
//! Questions about a trace are methods of [`FormatTrace`], which each format answers. Records are read by [`Reader`],
//! an enum: the format is matched once for a run of packets ([`Records`] is a generic argument there, not a pointer),
//! so that the loop over records is compiled for each format.

use super::account::Account;
use super::ctf::{CtfPlan, CtfReader, CtfTrace, FieldNode, Sink};
use super::error::OpenError;
use super::format_trace::FormatTrace;
use super::ftrace::{FtraceStorage, FtraceTrace};
use super::perf::{PerfStorage, PerfTrace};
use super::record::{Projection, Record, StreamId};
use super::records::{PassedRecord, Records};
use super::stream::Position;
use super::tracepoint::plan::TracepointPlan;
use super::tracepoint::reader::TracepointReader;
use super::tracepoint::{Storage, TracepointTrace};
use super::translated::{TranslatedStorage, TranslatedTrace};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::notice::Notices;
use foldhash::HashSet;
use get_size2::GetSize;
use std::ops::{Deref, DerefMut, Range};
use std::path::Path;

/// An opened trace of any format.
#[derive(Debug)]
pub struct Trace(Box<dyn ReadTrace>);

impl Deref for Trace {
    type Target = dyn ReadTrace;

    fn deref(&self) -> &(dyn ReadTrace + 'static) {
        &*self.0
    }
}

impl DerefMut for Trace {
    fn deref_mut(&mut self) -> &mut (dyn ReadTrace + 'static) {
        &mut *self.0
    }
}

/// A trace whose records are read by a [`Plan`].
pub trait ReadTrace: FormatTrace {
    /// Compile a projection.
    fn compile(&self, projection: &Projection) -> Plan;
    /// Compile everything, for [`Records::show`].
    fn compile_whole(&self) -> Plan;
    /// Read some packets of a stream by a plan of the same trace.
    fn reader<'a>(&'a self, plan: &'a Plan, stream: StreamId, packets: Range<usize>) -> Reader<'a>;
    /// A perf.data, whose stacks may have to be unwound.
    fn as_perf(&self) -> Option<&PerfTrace> {
        None
    }
    /// Account for all records.
    fn account(&self, ctx: &Ctx) -> Result<Account, Cancelled>;
}

impl ReadTrace for CtfTrace {
    fn compile(&self, projection: &Projection) -> Plan {
        Plan::Ctf(CtfPlan::new(self, projection))
    }

    fn compile_whole(&self) -> Plan {
        Plan::Ctf(CtfPlan::whole(self))
    }

    fn reader<'a>(&'a self, plan: &'a Plan, stream: StreamId, packets: Range<usize>) -> Reader<'a> {
        match plan {
            Plan::Ctf(plan) => Reader::Ctf(CtfReader::new(self, plan, stream, packets)),
            Plan::Tracepoints(_) => Reader::Nothing,
        }
    }

    fn account(&self, ctx: &Ctx) -> Result<Account, Cancelled> {
        self.account(ctx)
    }
}

/// A storage of tracepoints among those of all formats.
trait ReadStorage: Storage + Sized {
    /// The reader of the format as one of any format.
    fn any_reader(reader: TracepointReader<'_, Self>) -> Reader<'_>;
    /// See [`ReadTrace::account`].
    fn account(trace: &TracepointTrace<Self>, ctx: &Ctx) -> Result<Account, Cancelled>;
    /// See [`ReadTrace::as_perf`].
    fn as_perf(_trace: &TracepointTrace<Self>) -> Option<&PerfTrace> {
        None
    }
}

impl ReadStorage for PerfStorage {
    fn any_reader(reader: TracepointReader<'_, PerfStorage>) -> Reader<'_> {
        Reader::Perf(reader)
    }

    fn account(trace: &PerfTrace, ctx: &Ctx) -> Result<Account, Cancelled> {
        trace.counted(ctx)
    }

    fn as_perf(trace: &PerfTrace) -> Option<&PerfTrace> {
        Some(trace)
    }
}

impl ReadStorage for FtraceStorage {
    fn any_reader(reader: TracepointReader<'_, FtraceStorage>) -> Reader<'_> {
        Reader::Ftrace(reader)
    }

    fn account(trace: &FtraceTrace, ctx: &Ctx) -> Result<Account, Cancelled> {
        trace.counted(ctx)
    }
}

impl ReadStorage for TranslatedStorage {
    fn any_reader(reader: TracepointReader<'_, TranslatedStorage>) -> Reader<'_> {
        Reader::Translated(reader)
    }

    /// Counted while the file was read.
    fn account(trace: &TranslatedTrace, _ctx: &Ctx) -> Result<Account, Cancelled> {
        Ok(trace.storage().account.clone())
    }
}

impl<S: ReadStorage> ReadTrace for TracepointTrace<S> {
    fn compile(&self, projection: &Projection) -> Plan {
        Plan::Tracepoints(self.compile(projection))
    }

    fn compile_whole(&self) -> Plan {
        Plan::Tracepoints(self.compile_whole())
    }

    fn reader<'a>(&'a self, plan: &'a Plan, stream: StreamId, packets: Range<usize>) -> Reader<'a> {
        match plan {
            Plan::Tracepoints(plan) => S::any_reader(TracepointReader::new(self, plan, stream, packets)),
            Plan::Ctf(_) => Reader::Nothing,
        }
    }

    fn as_perf(&self) -> Option<&PerfTrace> {
        S::as_perf(self)
    }

    fn account(&self, ctx: &Ctx) -> Result<Account, Cancelled> {
        S::account(self, ctx)
    }
}

impl Trace {
    /// Open a CTF trace directory (one that holds `metadata`).
    pub fn open(path: &Path) -> Result<Trace, OpenError> {
        CtfTrace::open(path).map(Trace::new)
    }

    /// The trace of a format.
    pub(super) fn new(trace: impl ReadTrace + 'static) -> Trace {
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

/// A compiled projection of one trace, or everything of it, for writers.
#[derive(Debug, GetSize)]
pub enum Plan {
    /// Of a CTF trace.
    Ctf(CtfPlan),
    /// Of a recording of the kernel's tracepoints.
    Tracepoints(#[get_size(ignore)] TracepointPlan),
}

/// Reads a run of packets of one stream.
#[derive(Debug)]
pub enum Reader<'a> {
    /// Of a CTF trace.
    Ctf(CtfReader<'a>),
    /// Of a perf.data.
    Perf(TracepointReader<'a, PerfStorage>),
    /// Of a trace.dat.
    Ftrace(TracepointReader<'a, FtraceStorage>),
    /// Of a recording of another platform or tool.
    Translated(TracepointReader<'a, TranslatedStorage>),
    /// Reads nothing, because the plan belongs to a trace of another format.
    Nothing,
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
    pub fn resume(&mut self, position: Option<Position>) {
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
