//! The result of the kernel pass: threads ([`super::segments`]), the threads of each CPU, images, disk requests,
//! delimiters and counters ([`super::rows`]). Everything is sorted by time and sealed; ids are dense.
//!
//! The kernel machine in `kernel` makes it; critical paths, stacks, symbols and ECCTs read it. Size: linear in
//! switches, wake-ups, system calls and stack samples. ALGORITHMS.md sections 3 and 4.2.

use super::rows::{
    CounterOwner, DerivedField, Host, HostCoverage, HostCpu, ImageEvent, Mark, MarkField, MarkRow, WakeStack,
};
use super::segments::{Segment, SegmentKind, Thread, ThreadId, Waker};
use super::store::families::RowStores;
use super::store::marks::MarkStore;
use super::tables::Tables;
use crate::base::ctx::Ctx;
use crate::base::heap::{MemoryPart, PartSizes};
use crate::base::memory_error::MemoryError;
use crate::base::names::{NameId, Names};
use crate::base::question_counts::QuestionCounts;
use crate::base::time::{Span, Timestamp};
use crate::event::host::{HostId, TraceOrigin};
use crate::event::remark::Remark;
use crate::event::stack::RawStacks;
use crate::model::environment::PlacedEnvironment;
use crate::model::facts::Quality;
use crate::model::stored::StoredRows;
use get_size2::GetSize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The sealed states of all threads and CPUs of a recording: tables that are resident, and rows that are asked for
/// through a [`RowReader`](super::reader::RowReader).
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Names, hosts, stacks, ...
    pub(super) tables: Tables,
    /// Threads by id.
    pub(super) threads: Vec<Thread>,
    /// Sorted.
    pub(super) cpus: Vec<HostCpu>,
    pub(super) rows: RowStores,
    /// Counters of the questions about its rows; `None`: they are not counted.
    pub(super) questions: Option<Arc<QuestionCounts>>,
    /// Where it was recorded; not in history files.
    pub(super) environments: BTreeMap<HostId, Arc<PlacedEnvironment>>,
}

/// The parts of a timeline that a history file keeps.
pub struct TimelineParts<'t> {
    pub tables: &'t Tables,
    pub threads: &'t Vec<Thread>,
    pub cpus: &'t Vec<HostCpu>,
    pub rows: &'t RowStores,
}

/// True where of any two neighbours the first one fits before the second.
fn neighbours<R>(mut rows: impl Iterator<Item = R>, fit: impl Fn(&R, &R) -> bool) -> bool {
    let mut before = rows.next();
    rows.all(|row| before.replace(row).zip(before.as_ref()).is_none_or(|(a, b)| fit(&a, b)))
}

impl Timeline {
    /// The timeline of parts that a file keeps, whose questions are counted where a context counts them.
    pub fn of_parts(tables: Tables, threads: Vec<Thread>, cpus: Vec<HostCpu>, rows: RowStores, ctx: &Ctx) -> Timeline {
        Timeline { tables, threads, cpus, rows, questions: ctx.questions.clone(), ..Timeline::default() }
    }

    /// The parts that a file keeps.
    pub fn parts(&self) -> TimelineParts<'_> {
        TimelineParts { tables: &self.tables, threads: &self.threads, cpus: &self.cpus, rows: &self.rows }
    }

    /// The first invariant that does not hold (`--check`): the leaves are read again from their bytes; a thread's
    /// segments tile its known life without empty ones, its calls and names are in order, and a CPU has one thread at a
    /// time.
    pub fn check(&self) -> Option<String> {
        let tid = |thread: u32| Some(self.threads.get(thread as usize).map_or(0, |thread| thread.tid));
        if let Some(broken) = self.rows.check(tid) {
            return Some(broken);
        }
        for (at, thread) in self.threads.iter().enumerate().filter(|(_, thread)| !thread.idle) {
            let segments = self.rows.segments.line(at);
            let tiled = segments.all().all(|e| !e.span.is_empty())
                && neighbours(segments.all(), |a, b| a.span.end == b.span.start);
            let ends = segments.all().next().zip(segments.all().next_back());
            if !tiled || ends.is_some_and(|(a, b)| Span::new(a.span.start, b.span.end) != thread.life) {
                return Some(format!("the segments of thread {} (number {at}) do not tile its life", thread.tid));
            }
            let calls = neighbours(self.rows.calls.line(at).all(), |a, b| a.span.start <= b.span.start);
            if !calls || !thread.names.is_sorted_by_key(|name| name.from) {
                return Some(format!("calls or names of thread {} (number {at}) are out of order", thread.tid));
            }
        }
        let one = |line: usize| neighbours(self.rows.runs.line(line).all(), |a, b| a.span.end <= b.span.start);
        let mut cpus = self.cpus.iter().enumerate();
        cpus.find(|(line, _)| !one(*line)).map(|(_, cpu)| format!("CPU {} has two threads at a time", cpu.cpu))
    }

    /// True if events were lost in this span.
    pub fn is_lossy(&self, span: Span) -> bool {
        let first = self.tables.lossy.partition_point(|lost| lost.end <= span.start);
        self.tables.lossy.get(first).is_some_and(|lost| !lost.clip(span).is_empty())
    }

    /// The position of a CPU.
    pub fn line_of_cpu(&self, host: HostId, cpu: u32) -> Option<usize> {
        self.cpus.binary_search(&HostCpu { host, cpu }).ok()
    }

    /// True where the scheduler of a host was recorded: without it running and waiting look the same.
    pub fn is_scheduled(&self, host: HostId) -> bool {
        let first = self.cpus.partition_point(|cpu| cpu.host < host);
        let of_host = self.cpus.iter().enumerate().skip(first).take_while(|(_, cpu)| cpu.host == host);
        of_host.into_iter().any(|(line, _)| !self.rows.runs.line(line).is_empty())
    }

    /// The first trace of a host, the kernel's before others.
    pub fn trace_of(&self, host: HostId) -> Option<u32> {
        let of_host = |kernel: bool| self.tables.traces.iter().position(|of| of.host == host && of.kernel == kernel);
        of_host(true).or_else(|| of_host(false)).map(|at| at as u32)
    }

    /// True where the threads are the ranks of an MPI run and their threads.
    pub fn is_of_ranks(&self) -> bool {
        self.tables.of_ranks
    }

    /// A thread; `None` for an id of another recording.
    pub fn thread(&self, id: ThreadId) -> Option<&Thread> {
        self.threads.get(id.index())
    }

    /// True when the segment is a wait for a disk: for the device, or for a kernel thread that works for it.
    pub fn is_disk_wait(&self, segment: &Segment) -> bool {
        let worker = |waker: Waker| self.thread(waker.thread).is_some_and(|thread| thread.disk_worker);
        segment.kind == SegmentKind::Disk || segment.kind == SegmentKind::Blocked && segment.waker.is_some_and(worker)
    }

    /// The instance of `tid` that lived at `t` (the last one that began before, else the first).
    pub fn find_thread(&self, host: HostId, tid: i32, t: Timestamp) -> Option<ThreadId> {
        let mut best: Option<(usize, &Thread)> = None;
        for (i, th) in self.threads.iter().enumerate() {
            if th.host == host && th.tid == tid && !th.idle {
                let better =
                    best.is_none_or(|(_, b)| th.life.start <= t && (b.life.start > t || th.life.start >= b.life.start));
                if better {
                    best = Some((i, th));
                }
            }
        }
        best.map(|(i, _)| ThreadId::at(i))
    }

    /// The same timeline, whose questions are counted for themselves.
    #[cfg(not(program))]
    pub fn counted(&self) -> Timeline {
        Timeline { questions: Some(Arc::default()), ..self.clone() }
    }

    /// The questions that were asked so far, by readers that are no longer in use, where they are counted.
    #[cfg(not(program))]
    pub fn questions(&self) -> Option<&QuestionCounts> {
        self.questions.as_deref()
    }

    /// Names of threads, calls, devices, paths.
    pub fn names(&self) -> &Names {
        &self.tables.names
    }

    /// Hosts by id.
    pub fn hosts(&self) -> &[Host] {
        &self.tables.hosts
    }

    /// The traces, in the order in which they were passed to the kernel pass.
    pub fn traces(&self) -> &[TraceOrigin] {
        &self.tables.traces
    }

    /// Threads by id.
    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// The threads with their ids.
    pub fn threads_by_id(&self) -> impl ExactSizeIterator<Item = (ThreadId, &Thread)> + DoubleEndedIterator + Clone {
        self.threads.iter().enumerate().map(|(at, thread)| (ThreadId::at(at), thread))
    }

    /// Host and number of the CPUs on which a thread ran, sorted.
    pub fn cpus(&self) -> impl ExactSizeIterator<Item = (HostId, u32)> {
        self.cpus.iter().map(|cpu| (cpu.host, cpu.cpu))
    }

    /// Distinct raw stacks.
    pub fn stacks(&self) -> &RawStacks {
        &self.tables.stacks
    }

    /// Image changes sorted by time.
    pub fn images(&self) -> &[ImageEvent] {
        &self.tables.images
    }

    /// By host: how well the events of its scheduler agree.
    pub fn quality(&self) -> &[Quality] {
        &self.tables.quality
    }

    /// Spans in which events were lost, sorted.
    pub fn lossy(&self) -> &[Span] {
        &self.tables.lossy
    }

    /// Hosts with a kernel trace, and the time over which all of their CPUs were recorded.
    pub fn covered(&self) -> &[HostCoverage] {
        &self.tables.covered
    }

    /// From the first to the last event.
    pub fn span(&self) -> Span {
        self.tables.span
    }

    /// Names of the contexts with hardware counters, sorted.
    pub fn counters(&self) -> impl ExactSizeIterator<Item = NameId> {
        self.rows.counters.iter().map(|counter| counter.name)
    }

    /// The owner of the first value of a hardware counter: whether it counts by thread or by CPU.
    pub fn first_owner(&self, counter: usize) -> Option<CounterOwner> {
        self.rows.counters.get(counter)?.owners.first().copied()
    }

    /// A delimiting event by its number.
    pub fn mark(&self, number: u32) -> Option<MarkRow> {
        self.rows.marks.get(number)
    }

    /// The numeric fields of a delimiting event.
    pub fn mark_fields(&self, number: u32) -> impl Iterator<Item = MarkField> {
        self.rows.marks.fields(number)
    }

    /// How large the store of its rows is.
    pub fn stored(&self) -> StoredRows {
        self.rows.stored()
    }

    /// True where page faults were recorded.
    pub fn has_page_faults(&self) -> bool {
        self.rows.page_faults.is_some()
    }

    /// True where any system call was recorded.
    pub fn has_calls(&self) -> bool {
        !self.rows.calls.is_empty()
    }

    /// Number of the threads that have a segment.
    pub fn lines_with_segments(&self) -> usize {
        (0..self.threads.len()).filter(|line| !self.rows.segments.line(*line).is_empty()).count()
    }

    /// Number of all segments.
    pub fn segment_count(&self) -> usize {
        self.rows.segments.row_count()
    }

    /// Number of all system calls.
    pub fn call_count(&self) -> usize {
        self.rows.calls.row_count()
    }

    /// Number of all stack samples.
    pub fn sample_count(&self) -> usize {
        self.rows.samples.row_count()
    }

    /// True where any stack was sampled.
    pub fn has_samples(&self) -> bool {
        !self.rows.samples.is_empty()
    }
}

impl Timeline {
    /// Leaves give the memory of a limit back until they are asked for again.
    pub fn let_leaves_go(&self) {
        self.rows.pool.iter().for_each(|pool| pool.empty());
    }

    /// Why rows are absent, where leaves could not be written or read back.
    pub fn failure(&self) -> Option<MemoryError> {
        self.rows.pool.as_ref()?.failure()
    }

    /// What its parts hold on the heap.
    pub fn hold(&self, sizes: &PartSizes) {
        sizes.hold(MemoryPart::Threads, self.threads.get_heap_size() + self.tables.get_heap_size());
        self.rows.hold(sizes);
    }
}

impl Timeline {
    /// The delimiting events, to which an analysis adds those that no event of the recording shows: `find` hands them
    /// over one by one, because there may be more than fit into memory.
    pub fn marks_with(&self, find: impl FnOnce(&mut dyn FnMut(Mark))) -> MarkStore {
        let mut marks = MarkStore::clone(&self.rows.marks);
        find(&mut |mark| marks.extend([mark]));
        marks
    }

    /// The name of a field that delimiting events have where no event of the recording shows them.
    pub fn field_name(&self, field: DerivedField) -> NameId {
        // `RecordedTimeline::seal` has given it one.
        self.tables.names.find(field.name()).unwrap_or(NameId::at(0))
    }

    /// The same states with these delimiting events.
    pub fn delimited_by(mut self, marks: MarkStore) -> Timeline {
        self.rows.marks = marks.into();
        self
    }

    /// What control groups and `/proc` of a host counted meanwhile, where that was recorded.
    pub fn environment(&self, host: HostId) -> Option<&Arc<PlacedEnvironment>> {
        self.environments.get(&host)
    }

    /// Kernel call chains of wake-ups, in order of time.
    pub fn wake_stacks(&self) -> &[WakeStack] {
        &self.tables.wake_stacks
    }

    /// What events say of threads beside their states, in order of time.
    pub fn remarks(&self) -> &[Remark] {
        &self.tables.remarks
    }
}
