//! A thread instance while the machine follows it: its state, since when, and its segments so far.
//!
//! Every change of state ends a segment, so segments are contiguous and sorted by construction; empty ones are not
//! kept. Idle tasks have no segments: no thread ever waits for one of them.

use super::cpu::CpuId;
use super::functions::Functions;
use super::reasons::Reasons;
use super::sealed_rows::{SealedSegments, SegmentNumber};
use crate::base::names::{NameId, Names};
use crate::base::time::{Span, Timestamp};
use crate::event::descriptor::NamedDescriptor;
use crate::event::prev_state::StoppedBy;
use crate::kernel::threads::{HostTid, Observed, ThreadInstance};
use crate::timeline::{
    Call, LONGEST_WAKE_UP, Segment, SegmentKind, StackSample, Thread, ThreadId, ThreadName, ThreadRows, Waker,
};

/// The scheduler's slot of a thread (ALGORITHMS.md 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sched {
    /// No event has shown it yet.
    Unseen,
    /// It was known earlier.
    Unknown(UnknownReason),
    /// Forked, never woken.
    New,
    /// On a CPU.
    Running(CpuId),
    /// Runnable, not on a CPU.
    Ready,
    /// Waiting for an event.
    Blocked,
    /// Stopped until another thread lets it go on.
    Stopped(StoppedBy),
    /// Ended.
    Dead,
}

/// The reason why the state of a thread is no longer known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnknownReason {
    /// The tracer lost events.
    Lost,
    /// It left its CPU, and the switch is missing although no loss was reported.
    Gap,
    /// It is in the run queue of a CPU that was not recorded.
    Elsewhere,
}

/// An interrupt context that interrupts the thread running on its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interruption {
    /// Name of the handler, where it is known.
    pub handler: Option<NameId>,
}

/// The state and cause that a segment is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label {
    pub kind: SegmentKind,
    pub waker: Option<Waker>,
    pub qualifier: Option<NameId>,
}

impl Label {
    pub fn of(kind: SegmentKind) -> Label {
        Label { kind, waker: None, qualifier: None }
    }
}

/// A wake-up of a thread that seemed to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EarlyWake {
    pub at: Timestamp,
    /// The label of the wait that it ends, if the thread was about to wait.
    pub label: Label,
}

/// A system call that has not returned yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenCall {
    pub since: Timestamp,
    pub name: NameId,
    pub descriptor: Option<NamedDescriptor>,
}

/// A wake-up by a thread that seemed to be in no system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WakeOutsideCall {
    pub woken: ThreadId,
    /// Number of the segment of the woken thread that ends by the wake-up.
    pub segment: SegmentNumber,
    pub at: Timestamp,
}

/// The number of changes so far of what contexts say of a thread: its ids and its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DescriptionVersion(u64);

/// Evidence that switches are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gaps {
    pub count: u64,
    /// Time of the first; [`Timestamp::MAX`] without any.
    pub first: Timestamp,
}

/// A thread instance and what the machine knows of it.
#[derive(Clone, Debug)]
pub(super) struct ThreadState {
    pub thread: Thread,
    /// Its rows that are not sealed yet.
    pub rows: ThreadRows,
    pub sealed: SealedSegments,
    /// Bytes of its rows when they were last sealed.
    pub row_bytes: usize,
    pub sched: Sched,
    /// Start of the open segment.
    pub since: Timestamp,
    /// Number of the CPU on which it runs, or in whose run queue it is.
    pub cpu: u32,
    /// While running: the interruption by the interrupt context of its CPU.
    pub interrupted: Option<Interruption>,
    /// A wake-up while it seemed to run: it was about to wait, or its switch-out is missing and it had waited.
    pub early_wake: Option<EarlyWake>,
    /// The system call that it is in.
    pub call: Option<OpenCall>,
    /// True if a system call of it was recorded since events of its CPU were lost.
    pub has_called: bool,
    /// When they were lost.
    pub lost_at: Timestamp,
    /// The last wake-up by it while it seemed to be in no system call.
    pub woke_outside: Option<WakeOutsideCall>,
    /// True if it left its CPU for a wait that no signal ends, such as a wait for a disk.
    pub uninterruptible: bool,
    /// Completion of the last block request that it submitted.
    pub request_done: Timestamp,
    /// True if an event happened on it, or a switch showed that it left its CPU: the recording follows it.
    pub followed: bool,
    /// Evidence that switches are missing after it got a CPU.
    pub gaps: Gaps,
    /// Switches by which another thread leaves the CPU although this one had been switched in.
    pub contradictions: u64,
    /// True if its run queue is known from its wake-up alone.
    pub placed_by_waker: bool,
    /// True if its exit was recorded.
    pub exited: bool,
    pub exited_at: Timestamp,
    /// True if its id was freed.
    pub freed: bool,
    /// The instance of the same id before it.
    pub previous: Option<ThreadId>,
    /// Source of `thread.pid`.
    pub pid: Observed<i32>,
    pub description: DescriptionVersion,
    /// True if a user-space event with the ids that it has outside of containers happened on its CPU.
    pub confirmed: bool,
    /// Depth of the namespace of `thread.virtual_ids`.
    pub namespace_level: i32,
    /// True if it runs soft interrupts as its own work.
    pub runs_softirqs: bool,
    /// Time of its last stack sample.
    pub last_sample: Timestamp,
    /// True if an exec gave it its last name.
    pub named_by_exec: bool,
    /// True if it had ended when rows were sealed.
    pub has_ended: bool,
    /// The functions that it is in, where their events were recorded.
    pub functions: Functions,
}

impl ThreadState {
    /// A thread that lives from `start` on, the instance of its id after `previous`.
    pub fn new(key: HostTid, start: Timestamp, sched: Sched, previous: Option<ThreadId>) -> ThreadState {
        let (tid, mut pid) = (key.tid(), Observed::default());
        pid.observe(key.idle_on().map(|_| tid));
        let mut thread = Thread::new(key.host(), tid, Span::new(start, Timestamp::MAX));
        thread.idle = key.is_idle();
        ThreadState {
            thread,
            rows: ThreadRows::default(),
            sealed: SealedSegments::default(),
            row_bytes: 0,
            sched,
            since: start,
            cpu: key.idle_on().unwrap_or(0),
            interrupted: None,
            early_wake: None,
            call: None,
            has_called: false,
            lost_at: Timestamp::MIN,
            woke_outside: None,
            uninterruptible: false,
            request_done: Timestamp::MIN,
            followed: false,
            gaps: Gaps { count: 0, first: Timestamp::MAX },
            contradictions: 0,
            placed_by_waker: false,
            exited: false,
            exited_at: Timestamp::MIN,
            freed: false,
            previous,
            pid,
            description: DescriptionVersion::default(),
            confirmed: false,
            namespace_level: 0,
            runs_softirqs: false,
            last_sample: Timestamp::MIN,
            named_by_exec: false,
            has_ended: false,
            functions: Functions::default(),
        }
    }

    /// End the open segment at `t`.
    pub fn cut(&mut self, t: Timestamp, label: Label) {
        if t <= self.since || self.thread.idle {
            self.since = self.since.max(t);
            return;
        }
        let span = Span::new(self.since, t);
        let segment = Segment { span, kind: label.kind, waker: label.waker, qualifier: label.qualifier, cpu: self.cpu };
        self.add_segment(segment);
        self.since = t;
    }

    /// The label that the current state has by itself.
    pub fn own_label(&self, reasons: &Reasons) -> Label {
        let qualified = |kind, name| Label { qualifier: Some(name), ..Label::of(kind) };
        match (self.sched, self.interrupted) {
            (Sched::Running(_), None) => Label::of(SegmentKind::Running),
            (Sched::Running(_), Some(Interruption { handler })) => {
                Label { qualifier: handler, ..Label::of(SegmentKind::Interrupted) }
            }
            (Sched::Ready | Sched::New, _) => Label::of(SegmentKind::Preempted),
            (Sched::Blocked, _) => qualified(SegmentKind::Blocked, reasons.unresolved),
            (Sched::Stopped(by), _) => qualified(SegmentKind::Stopped, reasons.stopped(by)),
            (Sched::Unseen | Sched::Dead, _) => qualified(SegmentKind::Unknown, reasons.unseen),
            (Sched::Unknown(UnknownReason::Lost), _) => qualified(SegmentKind::Unknown, reasons.lost),
            (Sched::Unknown(UnknownReason::Gap), _) => qualified(SegmentKind::Unknown, reasons.gap),
            (Sched::Unknown(UnknownReason::Elsewhere), _) => qualified(SegmentKind::Unknown, reasons.elsewhere),
        }
    }

    /// End the current state, with its own label, and begin another.
    pub fn change(&mut self, t: Timestamp, sched: Sched, reasons: &Reasons) {
        let label = self.own_label(reasons);
        self.cut(t, label);
        self.sched = sched;
        if !matches!(sched, Sched::Running(_)) {
            self.interrupted = None;
        }
    }

    /// The label of its wait, which ended for the reason that `found` names.
    pub fn label_of_wait(&self, found: Label, reasons: &Reasons) -> Label {
        match self.sched {
            // Whatever it waited for before: the thread that lets it go on ends this.
            Sched::Stopped(_) => {
                let waker = found.waker.filter(|_| found.kind == SegmentKind::Blocked);
                Label { waker, ..self.own_label(reasons) }
            }
            _ => found,
        }
    }

    /// It left its CPU at an unknown time after `confirmed_at`. If it was woken since, it had waited until then.
    pub fn left_unseen(&mut self, confirmed_at: Timestamp, t: Timestamp, reasons: &Reasons) {
        self.change(confirmed_at, Sched::Unknown(UnknownReason::Gap), reasons);
        if let Some(wake) = self.early_wake.take().filter(|wake| (confirmed_at..=t).contains(&wake.at)) {
            self.cut(wake.at, wake.label);
            self.sched = Sched::Ready;
            return;
        }
        // A later event may still show that it waited from here on.
        self.cut(t, self.own_label(reasons));
    }

    /// It gets a CPU back, and no wake-up was recorded: if its wait was uninterruptible, and a request of its own
    /// completed meanwhile, it had waited for that request.
    pub fn wait_for_own_request(&mut self) {
        if self.sched == Sched::Blocked && self.uninterruptible && self.request_done > self.since {
            self.cut(self.request_done, Label::of(SegmentKind::Disk));
            self.sched = Sched::Ready;
        }
    }

    /// It gets a CPU that left an idle state at `left`: if it was ready to run before, for no longer than a wake-up
    /// takes, it had waited for that.
    pub fn wait_for_idle_exit(&mut self, left: Timestamp, reasons: &Reasons) {
        let waited = left.since(self.since);
        if self.sched == Sched::Ready && waited > 0 && waited < LONGEST_WAKE_UP {
            self.cut(left, Label { qualifier: Some(reasons.idle_exit), ..self.own_label(reasons) });
        }
    }

    /// Start of the open segment.
    pub fn start_of_segment(&self) -> Timestamp {
        self.since
    }

    /// The recording begins at `begin`; events of it may have an earlier time.
    pub fn begin_with(&mut self, begin: Timestamp) {
        let thread = &mut self.thread;
        if thread.life.start >= begin {
            return;
        }
        thread.life = Span::new(begin, thread.life.end.max(begin));
        // The name that it had until the recording began, also where the first event gave it another one.
        let earlier = thread.names.partition_point(|name| name.from < begin);
        thread.names.drain(..earlier.saturating_sub(1));
        if let Some(first) = thread.names.first_mut() {
            first.from = begin;
        }
        self.clip_rows(begin);
    }

    /// The part of its rows before `begin` goes.
    pub(super) fn clip_rows(&mut self, begin: Timestamp) {
        let all = self.rows.segments.len();
        self.rows.segments.retain(|segment| segment.span.end > begin);
        self.sealed.dropped += all - self.rows.segments.len();
        if let Some(first) = self.rows.segments.first_mut() {
            first.span.start = first.span.start.max(begin);
        }
        // A call whose entry was not recorded began with the thread.
        for call in self.rows.calls.iter_mut().take_while(|call| call.span.start < begin) {
            call.span = Span::new(begin, call.span.end.max(begin));
        }
    }

    /// The open system call ends.
    pub fn end_call(&mut self, t: Timestamp, ret: Option<i64>) {
        if let Some(OpenCall { since, name, descriptor }) = self.call.take() {
            self.rows.calls.push(Call { span: Span::new(since, t), name, ret, descriptor });
        }
    }

    /// The thread ends.
    pub fn die(&mut self, t: Timestamp, reasons: &Reasons) {
        self.change(t, Sched::Dead, reasons);
        self.end_call(t, None);
        self.exited = true;
        self.thread.life.end = t;
    }

    /// The exit of the thread is recorded; it runs until it leaves its CPU.
    pub fn exit(&mut self, t: Timestamp) {
        (self.exited, self.exited_at) = (true, t);
    }

    /// Where it ends if the switch by which it left its CPU for the last time is missing: at its exit, unless events
    /// show it later. `None` where its exit was not recorded, or where it waits in it.
    pub fn end_by_exit(&self) -> Option<Timestamp> {
        let waits =
            matches!(self.sched, Sched::Blocked | Sched::Stopped(_) | Sched::Ready) && self.since > self.exited_at;
        (self.exited && self.is_alive() && !waits).then(|| self.exited_at.max(self.since).max(self.last_sample))
    }

    /// A stack sample of it was taken.
    pub fn push_sample(&mut self, sample: StackSample) {
        self.last_sample = sample.time;
        self.rows.samples.push(sample);
    }

    /// Add a segment that ends an open one.
    pub fn add_segment(&mut self, segment: Segment) {
        match self.rows.segments.last_mut() {
            // A wake-up separates two equal waits (it was spurious); segments that nothing separates are one.
            Some(last)
                if segment.waker.is_none()
                    && Segment { span: segment.span, ..*last } == segment
                    && last.span.end == segment.span.start =>
            {
                last.span.end = segment.span.end;
            }
            _ => self.rows.segments.push(segment),
        }
    }

    /// Its ids or its name change.
    pub fn change_description(&mut self) {
        self.description.0 += 1;
    }

    /// An event of the thread names its process, or does not.
    pub fn observe_pid(&mut self, pid: Option<i32>) {
        let before = self.pid;
        self.pid.observe(pid);
        if self.pid != before {
            self.change_description();
        }
        self.thread.pid = self.pid.get().unwrap_or(self.thread.pid);
    }

    /// Another source names its process, which counts where none of its events did.
    pub fn fill_pid(&mut self, pid: i32) {
        self.pid.fill(Some(pid));
        self.change_description();
        self.observe_pid(None);
    }

    /// An event names its parent.
    pub fn set_ppid(&mut self, ppid: i32) {
        if self.thread.ppid != ppid {
            self.thread.ppid = ppid;
            self.change_description();
        }
    }

    /// It has another name from `t` on.
    pub fn push_name(&mut self, t: Timestamp, name: NameId) {
        self.thread.names.push(ThreadName { from: t, name });
        self.change_description();
    }

    /// True for a thread of the kernel itself, as far as is known.
    pub fn is_kernel(&self, names: &Names) -> bool {
        self.thread.is_kernel_so_far(&self.rows, names)
    }

    /// Its process, where the recording names it.
    pub fn known_pid(&self) -> Option<i32> {
        self.pid.get()
    }
}
