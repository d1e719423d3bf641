//! The result of the kernel pass: threads ([`super::segments`]), the threads of each CPU, images, disk requests,
//! delimiters and counters ([`super::rows`]). Everything is sorted by time and sealed; ids are dense.
//!
//! The kernel machine in `state/kernel` makes it; critical paths, stacks, symbols and ECCTs read it. Size: linear in
//! switches, wake-ups, system calls and stack samples. ALGORITHMS.md sections 3 and 4.2.

pub use super::draft::{ThreadDraft, TimelineDraft};
use super::questions::{Asker, QuestionCounts};
use super::reader::RowReader;
pub use super::rows::{
    Counter, CounterOwner, CounterValue, CpuRun, CpuTimeline, DiskRequest, Host, HostCoverage, ImageEvent, Mark,
    MarkField, PageFault, Service, WakeStack,
};
use super::segments::ThreadRows;
pub use super::segments::{Call, Segment, SegmentKind, StackSample, Thread, ThreadId, ThreadName, VirtualIds, Waker};
use crate::base::heap::{HeapSize, block, with_elements};
use crate::base::names::{NameId, Names};
use crate::base::time::{Span, Timestamp};
pub use crate::event::host::HostId;
pub use crate::event::host::TraceOrigin;
pub use crate::event::image::ImageChange;
pub use crate::event::stack::{RawStackId, RawStacks, StackOrigin};
use crate::model::facts::Quality;

/// The sealed states of all threads and CPUs of a recording: tables that are resident, and rows that are asked for
/// through a [`RowReader`].
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Names of threads, calls, devices, paths.
    pub(super) names: Names,
    /// Hosts.
    pub(super) hosts: Vec<Host>,
    /// The traces, in the order in which they were passed to the kernel pass.
    pub(super) traces: Vec<TraceOrigin>,
    /// Threads by id.
    pub(super) threads: Vec<Thread>,
    /// By thread: its rows.
    pub(super) rows: Vec<ThreadRows>,
    /// CPUs sorted by host and number.
    pub(super) cpus: Vec<CpuTimeline>,
    /// Distinct raw stacks.
    pub(super) stacks: RawStacks,
    /// Image changes sorted by time.
    pub(super) images: Vec<ImageEvent>,
    /// Disk requests sorted by start.
    pub(super) disk: Vec<DiskRequest>,
    /// Work of kernel threads for others, sorted by thread and time; that of one thread does not overlap.
    pub(super) services: Vec<Service>,
    /// Delimiting events of the requested tasks.
    pub(super) marks: Vec<Mark>,
    /// Page faults, sorted by thread and time; `None` when the recording has no such events.
    pub(super) page_faults: Option<Vec<PageFault>>,
    /// Hardware counters, sorted by name.
    pub(super) counters: Vec<Counter>,
    /// By host: how well the events of its scheduler agree.
    pub(super) quality: Vec<Quality>,
    /// Spans in which events were lost: results over them are marked.
    pub(super) lossy: Vec<Span>,
    /// Hosts with a kernel trace. The buffers of a snapshot reach back unequally far, and user-space events may outlast
    /// those of the kernel; outside these spans states are guesses.
    pub(super) covered: Vec<HostCoverage>,
    /// From the first to the last event.
    pub(super) span: Span,
    /// Kernel call chains of wake-ups, in order of time.
    pub(super) wake_stacks: Vec<WakeStack>,
    pub(super) questions: QuestionCounts,
}

impl HeapSize for Timeline {
    fn heap_bytes(&self) -> usize {
        let counters = self.counters.iter().map(|counter| block(&counter.values));
        let cpus = self.cpus.iter().map(|cpu| block(&cpu.runs));
        let marks = self.marks.iter().map(|mark| block(&mark.fields));
        let faults = self.page_faults.as_ref().map_or(0, block);
        with_elements(&self.threads)
            + with_elements(&self.rows)
            + self.names.heap_bytes()
            + self.stacks.heap_bytes()
            + block(&self.marks)
            + marks.chain(cpus).chain(counters).sum::<usize>()
            + block(&self.images)
            + block(&self.disk)
            + block(&self.services)
            + block(&self.wake_stacks)
            + faults
    }
}

impl HeapSize for Thread {
    fn heap_bytes(&self) -> usize {
        block(&self.names)
    }
}

impl HeapSize for ThreadRows {
    fn heap_bytes(&self) -> usize {
        block(&self.segments) + block(&self.calls) + block(&self.samples)
    }
}

impl Timeline {
    /// The first invariant that does not hold (`--check`): a thread's segments tile its known life without empty ones,
    /// its calls and names are in order, and a CPU has one thread at a time.
    pub fn check(&self) -> Option<String> {
        let all = self.threads.iter().zip(&self.rows).enumerate();
        for (at, (thread, rows)) in all.filter(|(_, (thread, _))| !thread.idle) {
            let segments = &rows.segments;
            let tiled = segments.iter().all(|e| !e.span.is_empty())
                && segments.windows(2).all(|w| w[0].span.end == w[1].span.start);
            let ends = segments.first().zip(segments.last()).map(|(a, b)| Span::new(a.span.start, b.span.end));
            if !tiled || ends.is_some_and(|ends| ends != thread.life) {
                return Some(format!("the segments of thread {} (number {at}) do not tile its life", thread.tid));
            }
            if !rows.calls.is_sorted_by_key(|call| call.span.start) || !thread.names.is_sorted_by_key(|name| name.from)
            {
                return Some(format!("calls or names of thread {} (number {at}) are out of order", thread.tid));
            }
        }
        let overlaps = |cpu: &&CpuTimeline| cpu.runs.windows(2).any(|w| w[0].span.end > w[1].span.start);
        self.cpus.iter().find(overlaps).map(|cpu| format!("CPU {} has two threads at a time", cpu.cpu))
    }

    /// True if events were lost in this span.
    pub fn is_lossy(&self, span: Span) -> bool {
        self.lossy.iter().any(|lost| !lost.clip(span).is_empty())
    }

    /// The threads that ran on a CPU.
    pub(super) fn runs_of(&self, host: HostId, cpu: u32) -> &[CpuRun] {
        match self.cpus.binary_search_by_key(&(host, cpu), |cpu| (cpu.host, cpu.cpu)) {
            Ok(i) => &self.cpus[i].runs,
            Err(_) => &[],
        }
    }

    /// True where the scheduler of a host was recorded: without it running and waiting look the same.
    pub fn is_scheduled(&self, host: HostId) -> bool {
        let first = self.cpus.partition_point(|cpu| cpu.host < host);
        self.cpus[first..].iter().take_while(|cpu| cpu.host == host).any(|cpu| !cpu.runs.is_empty())
    }

    /// The first trace of a host, the kernel's before others.
    pub fn trace_of(&self, host: HostId) -> Option<u32> {
        let of_host = |kernel: bool| self.traces.iter().position(|of| of.host == host && of.kernel == kernel);
        of_host(true).or_else(|| of_host(false)).map(|at| at as u32)
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

    /// A reader of its rows, for one analysis on one worker.
    pub fn reader(&self, asker: Asker) -> RowReader<'_> {
        RowReader::new(self, asker)
    }

    /// The questions that were asked so far, by readers that are no longer in use.
    pub fn questions(&self) -> &QuestionCounts {
        &self.questions
    }

    /// Names of threads, calls, devices, paths.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Hosts by id.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The traces, in the order in which they were passed to the kernel pass.
    pub fn traces(&self) -> &[TraceOrigin] {
        &self.traces
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
        &self.stacks
    }

    /// Image changes sorted by time.
    pub fn images(&self) -> &[ImageEvent] {
        &self.images
    }

    /// By host: how well the events of its scheduler agree.
    pub fn quality(&self) -> &[Quality] {
        &self.quality
    }

    /// Spans in which events were lost, sorted.
    pub fn lossy(&self) -> &[Span] {
        &self.lossy
    }

    /// Hosts with a kernel trace, and the time over which all of their CPUs were recorded.
    pub fn covered(&self) -> &[HostCoverage] {
        &self.covered
    }

    /// From the first to the last event.
    pub fn span(&self) -> Span {
        self.span
    }

    /// Names of the contexts with hardware counters, sorted.
    pub fn counters(&self) -> impl ExactSizeIterator<Item = NameId> {
        self.counters.iter().map(|counter| counter.name)
    }

    /// The owner of the first value of a hardware counter: whether it counts by thread or by CPU.
    pub fn first_owner(&self, counter: usize) -> Option<CounterOwner> {
        self.counters.get(counter)?.values.first().map(|value| value.owner)
    }

    /// True where page faults were recorded.
    pub fn has_page_faults(&self) -> bool {
        self.page_faults.is_some()
    }

    /// True where any system call was recorded.
    pub fn has_calls(&self) -> bool {
        self.rows.iter().any(|rows| !rows.calls.is_empty())
    }

    /// True where any stack was sampled.
    pub fn has_samples(&self) -> bool {
        self.rows.iter().any(|rows| !rows.samples.is_empty())
    }
}

/// Changes after the kernel pass, before executions are explained.
impl Timeline {
    /// The id of a text among its names.
    pub fn intern(&mut self, text: &str) -> NameId {
        self.names.intern(text)
    }

    /// The id of a raw stack.
    pub fn intern_stack(&mut self, addresses: &[u64]) -> RawStackId {
        self.stacks.intern(addresses)
    }

    /// Delimiting events that no event of the recording shows.
    pub fn add_marks(&mut self, marks: impl IntoIterator<Item = Mark>) {
        self.marks.extend(marks);
    }

    /// Replace the image changes.
    pub fn set_images(&mut self, images: Vec<ImageEvent>) {
        self.images = images;
    }

    /// The clock of a host may err by so many nanoseconds.
    pub fn widen_clock_error(&mut self, host: HostId, error: u64) {
        if let Some(quality) = self.quality.get_mut(host.index()) {
            quality.clock_error = quality.clock_error.max(error);
        }
    }

    /// Kernel call chains of wake-ups, in order of time.
    pub fn wake_stacks(&self) -> &[WakeStack] {
        &self.wake_stacks
    }

    /// Give the segment of a thread that ends at `end` another cause; nothing changes where there is none.
    pub fn relabel(&mut self, thread: ThreadId, end: Timestamp, relabel: impl FnOnce(&mut Segment)) {
        let Some(rows) = self.rows.get_mut(thread.index()) else { return };
        let at = rows.segments.partition_point(|segment| segment.span.end < end);
        if let Some(segment) = rows.segments.get_mut(at).filter(|segment| segment.span.end == end) {
            relabel(segment);
        }
    }
}
