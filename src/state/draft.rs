//! A timeline while it is put together: all tables and rows open, until [`TimelineDraft::seal`].
//!
//! The kernel machine fills a draft event by event; tests write theirs by hand. Sealing moves the rows behind the
//! [`RowReader`](super::reader::RowReader)s, by which all analyses ask for them.

use super::segments::{Call, Segment, StackSample, Thread, ThreadId, ThreadName, VirtualIds};
use super::timeline::{
    Counter, CpuTimeline, DiskRequest, Host, HostCoverage, HostId, ImageEvent, Mark, PageFault, Service, Timeline,
    TraceOrigin, WakeStack,
};
use crate::base::names::Names;
use crate::base::time::Span;
use crate::event::stack::RawStacks;
use crate::model::facts::Quality;

/// A thread instance with its rows.
#[derive(Clone, Debug)]
pub struct ThreadDraft {
    /// Host.
    pub host: HostId,
    /// Thread id in the initial namespace; 0 for idle tasks.
    pub tid: i32,
    /// Thread group id; `tid` where it is unknown.
    pub pid: i32,
    /// Parent process id; 0 where unknown.
    pub ppid: i32,
    /// Its ids inside the innermost container, where they differ.
    pub virtual_ids: Option<VirtualIds>,
    /// Its names, sorted by time. Never empty; the first one holds from the start of its life.
    pub names: Vec<ThreadName>,
    /// From its beginning to its end; the bounds of the trace where these were not recorded.
    pub life: Span,
    /// Forked inside the trace by this thread.
    pub parent: Option<ThreadId>,
    /// True for the idle tasks.
    pub idle: bool,
    /// True for kernel threads that work for a disk: a thread that waits for one waits for the disk.
    pub disk_worker: bool,
    /// Segments, contiguous and sorted, over its life; none for idle tasks.
    pub segments: Vec<Segment>,
    /// System calls, sorted by start.
    pub calls: Vec<Call>,
    /// Stack samples, sorted by time.
    pub samples: Vec<StackSample>,
}

/// The states of all threads and CPUs of a recording, while they are put together.
#[derive(Clone, Debug, Default)]
pub struct TimelineDraft {
    /// Names of threads, calls, devices, paths.
    pub names: Names,
    /// Hosts.
    pub hosts: Vec<Host>,
    /// The traces, in the order in which they were passed to the kernel pass.
    pub traces: Vec<TraceOrigin>,
    /// Threads by id.
    pub threads: Vec<ThreadDraft>,
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

impl TimelineDraft {
    /// The timeline that is read.
    pub fn seal(self) -> Timeline {
        let TimelineDraft {
            threads: drafts,
            names,
            hosts,
            traces,
            cpus,
            stacks,
            images,
            disk,
            services,
            marks,
            page_faults,
            counters,
            quality,
            lossy,
            covered,
            span,
            wake_stacks,
        } = self;
        let (mut threads, mut rows) = (Vec::with_capacity(drafts.len()), Vec::with_capacity(drafts.len()));
        for draft in drafts {
            let (thread, own) = Thread::of(draft);
            threads.push(thread);
            rows.push(own);
        }
        Timeline {
            threads,
            rows,
            questions: Default::default(),
            names,
            hosts,
            traces,
            cpus,
            stacks,
            images,
            disk,
            services,
            marks,
            page_faults,
            counters,
            quality,
            lossy,
            covered,
            span,
            wake_stacks,
        }
    }

    /// The rows and tables of a timeline, copied: for tests that look at all of them.
    #[doc(hidden)]
    pub fn of(timeline: &Timeline) -> TimelineDraft {
        let Timeline {
            threads,
            rows,
            questions: _,
            names,
            hosts,
            traces,
            cpus,
            stacks,
            images,
            disk,
            services,
            marks,
            page_faults,
            counters,
            quality,
            lossy,
            covered,
            span,
            wake_stacks,
        } = timeline.clone();
        let threads = threads.into_iter().zip(rows).map(|(thread, rows)| thread.into_draft(rows)).collect();
        TimelineDraft {
            threads,
            names,
            hosts,
            traces,
            cpus,
            stacks,
            images,
            disk,
            services,
            marks,
            page_faults,
            counters,
            quality,
            lossy,
            covered,
            span,
            wake_stacks,
        }
    }
}
