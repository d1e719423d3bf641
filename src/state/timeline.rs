//! What the kernel pass leaves behind for the explanations: threads, their segments, calls, stack samples, images
//! and disk requests. Everything is sorted by time and sealed; ids are dense.
//!
//! Made by the kernel machine in `state/`, read by path, stacks, symbols and ECCT. Size: linear in switches, wake-ups,
//! system calls and stack samples. ALGORITHMS.md sections 3 and 4.2.

use crate::base::names::{NameId, Names};
use crate::base::time::{Span, Timestamp};
pub use crate::event::host::HostId;
pub use crate::event::image::ImageChange;
use crate::event::kernel_thread::{self, KTHREADD};
pub use crate::event::stack::{RawStackId, RawStacks, StackOrigin};
use crate::model::facts::Quality;

crate::base::names::handle! {
    /// One incarnation of a kernel task: `(host, tid, generation)`; an idle task is `(host, 0, cpu)`.
    ThreadId,
}

/// Why a thread did not run, or that it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SegmentKind {
    /// On a CPU, in its own code or in system calls.
    Running,
    /// On a CPU whose interrupt handlers ran instead.
    Interrupted,
    /// Runnable, not running.
    Preempted,
    /// Waited for another thread (`waker`), or for nobody knows what when there is none.
    Blocked,
    /// Waited for a timer.
    Timer,
    /// Waited for a block device.
    Disk,
    /// Waited for a packet (`waker`: the sender, where matched).
    Network,
    /// Waited for a person (keyboard, mouse).
    UserInput,
    /// Woken by an inter-processor interrupt.
    Ipi,
    /// Woken by a device's interrupt (`qualifier` names it).
    Device,
    /// Nothing is known.
    Unknown,
}

/// A horizontal segment: one thread in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// From, to.
    pub span: Span,
    /// State.
    pub kind: SegmentKind,
    /// Who ended the wait and when (Blocked: at the wake-up; Network: the sender, at the send).
    pub waker: Option<(ThreadId, Timestamp)>,
    /// Device, interrupt or soft irq name; reason of an unknown wait.
    pub qualifier: Option<NameId>,
    /// The CPU it ran on, or whose run queue it stood in.
    pub cpu: u32,
}

/// One incarnation of a kernel task.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Host.
    pub host: HostId,
    /// Thread id in the initial namespace; 0 for idle tasks.
    pub tid: i32,
    /// Thread group id; equals `tid` where unknown.
    pub pid: i32,
    /// Parent process id; 0 where unknown.
    pub ppid: i32,
    /// Ids inside the innermost container, where they differ: (vtid, vpid).
    pub virtual_ids: Option<(i32, i32)>,
    /// Names over time: from the given time on. Never empty; the first is back-filled to the start of life.
    pub names: Vec<(Timestamp, NameId)>,
    /// Known life; the trace's bounds where its beginning or end was not seen.
    pub life: Span,
    /// Forked inside the trace by this thread.
    pub parent: Option<ThreadId>,
    /// True for the idle tasks.
    pub idle: bool,
    /// True for kernel threads that work for a disk: who waits for one waits for the disk.
    pub disk_worker: bool,
    /// Segments, contiguous and sorted, over its known life; none for idle tasks.
    pub segments: Vec<Segment>,
    /// System calls, sorted by start.
    pub calls: Vec<Call>,
    /// Stack samples, sorted by time.
    pub samples: Vec<StackSample>,
}

impl Thread {
    /// The name at time `t`.
    pub fn name_at(&self, t: Timestamp) -> Option<NameId> {
        let i = self.names.partition_point(|(from, _)| *from <= t);
        self.names.get(i.saturating_sub(1)).map(|(_, n)| *n)
    }

    /// A thread of the kernel itself, which works for others and has no program: the idle tasks, `kthreadd` and its
    /// children. Where the parent was not recorded its name tells, unless it did what only a program's threads do.
    pub fn is_kernel(&self, names: &Names) -> bool {
        let name = self.names.last().map(|(_, name)| names.get(*name));
        match self.ppid {
            _ if self.idle => true,
            KTHREADD => true,
            _ if self.tid == KTHREADD => name.is_none_or(|name| name == "kthreadd"),
            0 => !self.has_program() && name.is_some_and(kernel_thread::is_name),
            _ => false,
        }
    }

    /// It made a system call, or has a stack of a program at its first or last sample.
    fn has_program(&self) -> bool {
        let ends = [self.samples.first(), self.samples.last()];
        !self.calls.is_empty() || ends.into_iter().flatten().any(|sample| sample.user.is_some())
    }

    /// Index of the first segment that ends after `t`.
    pub fn first_segment_after(&self, t: Timestamp) -> usize {
        self.segments.partition_point(|e| e.span.end <= t)
    }
}

/// A system call of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Entry to exit; the end of the trace or of the thread when the exit was not seen.
    pub span: Span,
    /// `futex`, `pread64`, ...
    pub name: NameId,
    /// What it returned; `None` when the exit was not seen.
    pub ret: Option<i64>,
}

/// A recorded call stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackSample {
    /// When.
    pub time: Timestamp,
    /// Why.
    pub origin: StackOrigin,
    /// User-space addresses.
    pub user: Option<RawStackId>,
    /// Kernel addresses.
    pub kernel: Option<RawStackId>,
}

/// An [`ImageChange`] of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageEvent {
    /// When.
    pub time: Timestamp,
    /// Host.
    pub host: HostId,
    /// Process (in the initial namespace).
    pub pid: i32,
    /// What.
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
    /// The thread in whose name it was submitted.
    pub submitter: Option<ThreadId>,
    /// Where that is a kernel thread that runs a piece of work: the thread that had queued it.
    pub queued_by: Option<ThreadId>,
    /// Entered the queue (equals `issued` where not recorded) and left the device (end of trace if not seen).
    pub span: Span,
    /// Handed to the device.
    pub issued: Timestamp,
}

/// What a thread of the kernel did for somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Service {
    /// The thread of the kernel.
    pub thread: ThreadId,
    /// When.
    pub span: Span,
    /// The thread for which it worked.
    pub client: ThreadId,
    /// When that had handed in the work.
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

/// Who had a CPU when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuRun {
    /// From, to.
    pub span: Span,
    /// The thread (idle tasks included).
    pub thread: ThreadId,
}

/// A delimiting event, in the total order of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// When.
    pub time: Timestamp,
    /// Position of the task in the list that the pass was given.
    pub task: u32,
    /// It begins an execution (else it ends one).
    pub begins: bool,
    /// The thread it happened on; `None` where unattached.
    pub thread: Option<ThreadId>,
    /// Position of the trace in the list that the pass was given.
    pub trace: u32,
    /// The CPU it happened on; `u16::MAX` where unknown.
    pub cpu: u16,
    /// Value of the task's key field.
    pub key: Option<i64>,
    /// Value of the task's type field.
    pub kind: Option<NameId>,
    /// Numeric payload fields: name, value.
    pub fields: Vec<(NameId, i64)>,
}

/// With whom a hardware counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CounterOwner {
    /// While it runs.
    Thread(ThreadId),
    /// Whoever runs.
    Cpu(HostId, u32),
}

/// A hardware counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Name of its context (`perf_thread_instructions`).
    pub name: NameId,
    /// Its values, sorted by owner and time.
    pub values: Vec<(CounterOwner, Timestamp, u64)>,
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Names of threads, calls, devices, paths.
    pub names: Names,
    /// Hosts.
    pub hosts: Vec<Host>,
    /// By trace, in the order given to the pass: its host, and whether the kernel's tracer recorded it.
    pub traces: Vec<(HostId, bool)>,
    /// Threads by id.
    pub threads: Vec<Thread>,
    /// For each (host, cpu), in order: its runs.
    pub cpus: Vec<((HostId, u32), Vec<CpuRun>)>,
    /// Distinct raw stacks.
    pub stacks: RawStacks,
    /// Image changes sorted by time.
    pub images: Vec<ImageEvent>,
    /// Disk requests sorted by start.
    pub disk: Vec<DiskRequest>,
    /// What threads of the kernel did for others, sorted by thread and time; those of one thread do not overlap.
    pub services: Vec<Service>,
    /// Delimiting events of the tasks asked for.
    pub marks: Vec<Mark>,
    /// Page faults: thread and time, sorted by thread; `None` when the recording has no such events.
    pub page_faults: Option<Vec<(ThreadId, Timestamp)>>,
    /// Hardware counters, sorted by name.
    pub counters: Vec<Counter>,
    /// By host: how far its scheduler's events agree.
    pub quality: Vec<Quality>,
    /// Spans in which events were lost: results over them are marked.
    pub lossy: Vec<Span>,
    /// Per host with a kernel trace: the time over which all of its CPUs were recorded. A snapshot's buffers reach back
    /// unequally far, and user-space events may outlast the kernel's; beyond this span states are guesses.
    pub covered: Vec<(HostId, Span)>,
    /// First and last event.
    pub span: Span,
    /// Kernel call chains of wake-ups: the woken, when, and what the waking CPU was doing. In order of time.
    pub wake_stacks: Vec<(ThreadId, Timestamp, RawStackId)>,
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
            if !thread.calls.is_sorted_by_key(|call| call.span.start) || !thread.names.is_sorted_by_key(|name| name.0) {
                return Some(format!("calls or names of thread {} (number {at}) are out of order", thread.tid));
            }
        }
        let two = |(_, runs): &&((HostId, u32), Vec<CpuRun>)| runs.windows(2).any(|w| w[0].span.end > w[1].span.start);
        self.cpus.iter().find(two).map(|((_, cpu), _)| format!("CPU {cpu} has two threads at a time"))
    }

    /// Events were lost in this span.
    pub fn is_lossy(&self, span: Span) -> bool {
        self.lossy.iter().any(|lost| !lost.clip(span).is_empty())
    }

    /// Who ran on a CPU.
    pub fn runs(&self, host: HostId, cpu: u32) -> &[CpuRun] {
        match self.cpus.binary_search_by_key(&(host, cpu), |(key, _)| *key) {
            Ok(i) => &self.cpus[i].1,
            Err(_) => &[],
        }
    }

    /// True where the scheduler of a host was recorded: without it nobody knows who ran and who waited.
    pub fn is_scheduled(&self, host: HostId) -> bool {
        let first = self.cpus.partition_point(|((h, _), _)| *h < host);
        self.cpus[first..].iter().take_while(|((h, _), _)| *h == host).any(|(_, runs)| !runs.is_empty())
    }

    /// The first trace of a host, the kernel's before others.
    pub fn trace_of(&self, host: HostId) -> Option<u32> {
        let of_host = |kernel: bool| self.traces.iter().position(|of| *of == (host, kernel));
        of_host(true).or_else(|| of_host(false)).map(|at| at as u32)
    }

    /// A thread; `None` for an id of another recording.
    pub fn thread(&self, id: ThreadId) -> Option<&Thread> {
        self.threads.get(id.index())
    }

    /// True when the segment is a wait for a disk: for the device, or for a kernel thread that works for it.
    pub fn is_disk_wait(&self, segment: &Segment) -> bool {
        let worker = |(waker, _)| self.thread(waker).is_some_and(|t| t.disk_worker);
        segment.kind == SegmentKind::Disk || segment.kind == SegmentKind::Blocked && segment.waker.is_some_and(worker)
    }

    /// What a thread of the kernel did for others in a span of time, in order.
    pub fn services_in(&self, thread: ThreadId, span: Span) -> &[Service] {
        let begins = self.services.partition_point(|s| (s.thread, s.span.end) <= (thread, span.start));
        let ends = self.services.partition_point(|s| (s.thread, s.span.start) < (thread, span.end));
        self.services.get(begins..ends).unwrap_or(&[])
    }

    /// The incarnation of `tid` that lived at `t` (the last one begun before, else the first).
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
