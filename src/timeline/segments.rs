//! A thread of the timeline, and the rows that it has: segments, system calls and stack samples, each sorted by time.
//!
//! Made by the kernel machine; the rows are read through [`super::reader`]. ALGORITHMS.md section 3.

use crate::base::names::{NameId, Names};
use crate::base::time::{Ns, Span, Timestamp};
use crate::event::descriptor::NamedDescriptor;
use crate::event::host::HostId;
use crate::event::kernel_thread::{self, KTHREADD};
use crate::event::kind::Event;
use crate::event::stack::{OptionalWeight, RawStackId, StackOrigin};
pub use crate::model::wait_kind::SegmentKind;
use get_size2::GetSize;

crate::base::names::handle! {
    /// A thread instance: `(host, tid, generation)`; an idle task is `(host, 0, cpu)`.
    ThreadId,
}

/// The longest time that a wake-up of an idle CPU takes, also from its deepest rest and in a virtual machine, in ns: a
/// thread that is ready to run for longer beside an idle CPU is held back.
pub const LONGEST_WAKE_UP: Ns = 2_000_000;

/// The thread that ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, GetSize)]
pub struct Waker {
    pub thread: ThreadId,
    /// When it did so: at the wake-up, or at the send of a packet.
    pub at: Timestamp,
}

/// A span of one thread in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub span: Span,
    /// State.
    pub kind: SegmentKind,
    /// The thread that ended the wait (`Network`: the sender), where it is known.
    pub waker: Option<Waker>,
    /// Name of the device, interrupt or soft interrupt; reason of an unknown wait.
    pub qualifier: Option<NameId>,
    /// The CPU on which it ran, or in whose run queue it waited; [`Event::NO_CPU`] where the recording names none.
    pub cpu: u32,
}

impl Segment {
    /// Its CPU, where the recording names it.
    pub fn known_cpu(&self) -> Option<u32> {
        known_cpu(self.cpu)
    }
}

/// The CPU of a segment, where the recording names it.
pub fn known_cpu(cpu: u32) -> Option<u32> {
    (cpu != u32::from(Event::NO_CPU)).then_some(cpu)
}

/// A name of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, GetSize)]
pub struct ThreadName {
    /// When it got the name.
    pub from: Timestamp,
    pub name: NameId,
}

/// The ids of a thread in the innermost namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, GetSize)]
pub struct VirtualIds {
    /// Thread id.
    pub tid: i32,
    /// Process id; 0 where unknown.
    pub pid: i32,
}

/// A thread instance.
#[derive(Clone, Debug, GetSize)]
pub struct Thread {
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
    /// It made a system call, or its first or last sample has a user-space stack.
    pub has_program: bool,
}

/// The rows of a thread.
#[derive(Clone, Debug, Default, GetSize)]
pub struct ThreadRows {
    /// Contiguous and sorted, over its life; none for idle tasks.
    pub segments: Vec<Segment>,
    /// Sorted by start.
    pub calls: Vec<Call>,
    /// Sorted by time.
    pub samples: Vec<StackSample>,
    /// True where earlier samples were sealed.
    pub has_earlier_samples: bool,
}

impl Thread {
    /// The name at time `t`.
    pub fn name_at(&self, t: Timestamp) -> Option<NameId> {
        let i = self.names.partition_point(|name| name.from <= t);
        self.names.get(i.saturating_sub(1)).map(|name| name.name)
    }

    /// Its new names inside of a span.
    pub fn renames_in(&self, span: Span) -> &[ThreadName] {
        // Most threads keep their first name.
        if self.names.last().is_none_or(|name| name.from <= span.start) {
            return &[];
        }
        let first = self.names.partition_point(|name| name.from <= span.start).max(1);
        let end = self.names.partition_point(|name| name.from < span.end);
        self.names.get(first..end).unwrap_or_default()
    }

    /// True for a thread of the kernel itself, which works for others and has no program: the idle tasks, `kthreadd`
    /// and its children. Where the parent was not recorded its name decides, unless it did something that only the
    /// threads of programs do.
    pub fn is_kernel(&self, names: &Names) -> bool {
        self.is_kernel_with(names, || self.has_program)
    }

    /// [`is_kernel`](Self::is_kernel) while the thread's rows are open.
    pub fn is_kernel_so_far(&self, rows: &ThreadRows, names: &Names) -> bool {
        self.is_kernel_with(names, || self.has_program || rows.has_program())
    }

    fn is_kernel_with(&self, names: &Names, has_program: impl FnOnce() -> bool) -> bool {
        let name = self.names.last().map(|name| names.get(name.name));
        match self.ppid {
            _ if self.idle => true,
            KTHREADD => true,
            _ if self.tid == KTHREADD => name.is_none_or(|name| name == "kthreadd"),
            0 => !has_program() && name.is_some_and(kernel_thread::is_name),
            _ => false,
        }
    }

    /// A thread of its own process, without a name.
    pub fn new(host: HostId, tid: i32, life: Span) -> Thread {
        Thread {
            host,
            tid,
            pid: tid,
            ppid: 0,
            virtual_ids: None,
            names: Vec::new(),
            life,
            parent: None,
            idle: false,
            disk_worker: false,
            has_program: false,
        }
    }

    /// It made a system call, or its first sample has a user-space stack.
    pub fn runs_program(&mut self) {
        self.has_program = true;
    }

    /// Its rows are complete; these are the last ones.
    pub fn seal(&mut self, rows: &ThreadRows) {
        self.has_program |= rows.has_program();
    }
}

impl ThreadRows {
    /// Release the memory that no row takes.
    pub fn shrink_to_fit(&mut self) {
        self.segments.shrink_to_fit();
        self.calls.shrink_to_fit();
        self.samples.shrink_to_fit();
    }

    /// True for a thread that made a system call, or whose first or last sample has a user-space stack, as far as the
    /// rows that are not sealed yet show it.
    fn has_program(&self) -> bool {
        let first = self.samples.first().filter(|_| !self.has_earlier_samples);
        !self.calls.is_empty() || first.into_iter().chain(self.samples.last()).any(|sample| sample.user.is_some())
    }
}

/// A system call of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// From entry to exit; to the end of the trace or of the thread when the exit was not recorded.
    pub span: Span,
    /// `futex`, `pread64`, ...
    pub name: NameId,
    /// Its result; `None` when the exit was not recorded.
    pub ret: Option<i64>,
    /// The open file that it names, of the calls of `event/descriptor.rs`; `None` also when the entry was not recorded.
    pub descriptor: Option<NamedDescriptor>,
}

/// From a moment on, a thread has another stack: a number of the table of the analysis that derived it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackChange {
    pub time: Timestamp,
    /// Its stack until the next change.
    pub stack: u32,
}

/// A recorded call stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackSample {
    pub time: Timestamp,
    /// The event that it was taken at.
    pub origin: StackOrigin,
    /// User-space addresses.
    pub user: Option<RawStackId>,
    /// Kernel addresses.
    pub kernel: Option<RawStackId>,
    /// What it counts for, where a profiler took it.
    pub weight: OptionalWeight,
}

const _: () = assert!(size_of::<StackSample>() <= 40, "the open rows of samples have a bound of memory");
