//! The result of the kernel pass: threads ([`super::segments`]), the threads of each CPU, images, disk requests,
//! delimiters and counters. Everything is sorted by time and sealed; ids are dense.
//!
//! The kernel machine in `state/kernel` makes it; critical paths, stacks, symbols and ECCTs read it. Size: linear in
//! switches, wake-ups, system calls and stack samples. ALGORITHMS.md sections 3 and 4.2.

pub use super::segments::{Call, Segment, SegmentKind, StackSample, Thread, ThreadId, ThreadName, VirtualIds, Waker};
use crate::base::heap::{HeapSize, block, with_elements};
use crate::base::names::{NameId, Names};
use crate::base::time::{Span, Timestamp};
pub use crate::event::host::HostId;
pub use crate::event::host::TraceOrigin;
pub use crate::event::image::ImageChange;
pub use crate::event::stack::{RawStackId, RawStacks, StackOrigin};
use crate::model::facts::Quality;

/// An [`ImageChange`] of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageEvent {
    /// When.
    pub time: Timestamp,
    /// Host.
    pub host: HostId,
    /// Process (in the initial namespace).
    pub pid: i32,
    /// The change.
    pub change: ImageChange,
}

/// One request to a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskRequest {
    /// Host.
    pub host: HostId,
    /// Device number.
    pub device: u32,
    /// First sector.
    pub sector: u64,
    /// Bytes.
    pub bytes: u64,
    /// True for writes.
    pub write: bool,
    /// The thread that submitted it.
    pub submitter: Option<ThreadId>,
    /// Where that is a kernel thread that runs a work item: the thread that queued the item.
    pub queued_by: Option<ThreadId>,
    /// From its insertion into the queue (`issued` where not recorded) to its completion (the end of the trace where
    /// not recorded).
    pub span: Span,
    /// When it was handed to the device.
    pub issued: Timestamp,
}

/// Work of a kernel thread for another thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Service {
    /// The kernel thread.
    pub thread: ThreadId,
    /// When.
    pub span: Span,
    /// The thread for which it worked.
    pub client: ThreadId,
    /// When that thread handed in the work.
    pub since: Timestamp,
}

/// A host.
#[derive(Clone, Debug)]
pub struct Host {
    /// Its name.
    pub name: NameId,
    /// Kernel release, where recorded.
    pub kernel_release: Option<String>,
}

/// A thread on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuRun {
    /// When.
    pub span: Span,
    /// The thread (idle tasks included).
    pub thread: ThreadId,
}

/// The threads that ran on one CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuTimeline {
    /// Host.
    pub host: HostId,
    /// Number of the CPU on its host.
    pub cpu: u32,
    /// Its runs in order of time; they do not overlap.
    pub runs: Vec<CpuRun>,
}

/// The time over which all CPUs of a host were recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCoverage {
    /// Host.
    pub host: HostId,
    /// When.
    pub span: Span,
}

/// A page fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageFault {
    /// The thread.
    pub thread: ThreadId,
    /// When.
    pub time: Timestamp,
}

/// The kernel's call chain at a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakeStack {
    /// The woken thread.
    pub woken: ThreadId,
    /// When.
    pub time: Timestamp,
    /// The calls of the CPU that woke it.
    pub stack: RawStackId,
}

/// A numeric field of a delimiting event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkField {
    /// Its name.
    pub name: NameId,
    /// Its value.
    pub value: i64,
}

/// A delimiting event, in the total order of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// When.
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

/// The owner of a hardware counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CounterOwner {
    /// A thread: the counter counts while it runs.
    Thread(ThreadId),
    /// A CPU of a host: the counter counts all threads that run there.
    Cpu(HostId, u32),
}

/// A value of a hardware counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterValue {
    /// Its owner.
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

/// The sealed states of all threads and CPUs of a recording.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Names of threads, calls, devices, paths.
    pub names: Names,
    /// Hosts.
    pub hosts: Vec<Host>,
    /// The traces, in the order in which they were passed to the kernel pass.
    pub traces: Vec<TraceOrigin>,
    /// Threads by id.
    pub threads: Vec<Thread>,
    /// CPUs sorted by host and number.
    pub cpus: Vec<CpuTimeline>,
    /// Distinct raw stacks.
    pub stacks: RawStacks,
    /// Image changes sorted by time.
    pub images: Vec<ImageEvent>,
    /// Disk requests sorted by start.
    pub disk: Vec<DiskRequest>,
    /// Work of kernel threads for others, sorted by thread and time; that of one thread does not overlap.
    pub services: Vec<Service>,
    /// Delimiting events of the requested tasks.
    pub marks: Vec<Mark>,
    /// Page faults, sorted by thread and time; `None` when the recording has no such events.
    pub page_faults: Option<Vec<PageFault>>,
    /// Hardware counters, sorted by name.
    pub counters: Vec<Counter>,
    /// By host: how well the events of its scheduler agree.
    pub quality: Vec<Quality>,
    /// Spans in which events were lost: results over them are marked.
    pub lossy: Vec<Span>,
    /// Hosts with a kernel trace. The buffers of a snapshot reach back unequally far, and user-space events may outlast
    /// those of the kernel; outside these spans states are guesses.
    pub covered: Vec<HostCoverage>,
    /// From the first to the last event.
    pub span: Span,
    /// Kernel call chains of wake-ups, in order of time.
    pub wake_stacks: Vec<WakeStack>,
}

impl HeapSize for Timeline {
    fn heap_bytes(&self) -> usize {
        let counters = self.counters.iter().map(|counter| block(&counter.values));
        let cpus = self.cpus.iter().map(|cpu| block(&cpu.runs));
        let marks = self.marks.iter().map(|mark| block(&mark.fields));
        let faults = self.page_faults.as_ref().map_or(0, block);
        with_elements(&self.threads)
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
        block(&self.names) + block(&self.segments) + block(&self.calls) + block(&self.samples)
    }
}

impl Timeline {
    /// The first invariant that does not hold (`--check`): a thread's segments tile its known life without empty ones,
    /// its calls and names are in order, and a CPU has one thread at a time.
    pub fn check(&self) -> Option<String> {
        for (at, thread) in self.threads.iter().enumerate().filter(|(_, thread)| !thread.idle) {
            let segments = &thread.segments;
            let tiled = segments.iter().all(|e| !e.span.is_empty())
                && segments.windows(2).all(|w| w[0].span.end == w[1].span.start);
            let ends = segments.first().zip(segments.last()).map(|(a, b)| Span::new(a.span.start, b.span.end));
            if !tiled || ends.is_some_and(|ends| ends != thread.life) {
                return Some(format!("the segments of thread {} (number {at}) do not tile its life", thread.tid));
            }
            if !thread.calls.is_sorted_by_key(|call| call.span.start)
                || !thread.names.is_sorted_by_key(|name| name.from)
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
    pub fn runs(&self, host: HostId, cpu: u32) -> &[CpuRun] {
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

    /// The work of a kernel thread for others in a span of time, in order.
    pub fn services_in(&self, thread: ThreadId, span: Span) -> &[Service] {
        let begins = self.services.partition_point(|s| (s.thread, s.span.end) <= (thread, span.start));
        let ends = self.services.partition_point(|s| (s.thread, s.span.start) < (thread, span.end));
        self.services.get(begins..ends).unwrap_or(&[])
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
}
