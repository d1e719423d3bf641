//! One incarnation of a thread while it is being built: what it does now, since when, and its segments so far.
//!
//! Segments are cut at every change, so they are contiguous and sorted by construction; zero-length ones are not kept.
//! Idle tasks have no segments: nobody ever waits for one of them.

use super::functions::Functions;
use crate::base::names::NameId;
use crate::base::time::{Span, Timestamp};
use crate::state::threads::{HostTid, Observed, ThreadInstance};
use crate::state::timeline::{Call, Segment, SegmentKind, Thread, ThreadId};

/// The scheduler's slot of a thread (ALGORITHMS.md 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sched {
    /// No event has told yet.
    Unseen,
    /// Was known once.
    Unknown(UnknownReason),
    /// Forked, never woken.
    New,
    /// On a CPU (position in the machine's list).
    Running(usize),
    /// Could run.
    Ready,
    /// Waits.
    Blocked,
    /// Ended.
    Dead,
}

/// Why it is not known any more what a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnknownReason {
    /// The tracer lost events.
    Lost,
    /// Switches are missing that no loss tells of. It left its CPU.
    Gap,
    /// It stands in the run queue of a CPU that was not recorded.
    Elsewhere,
}

/// An interrupt context runs on the CPU of the running thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interruption {
    /// Name of the handler, where it is known.
    pub by: Option<NameId>,
}

/// How a segment is labelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label {
    pub kind: SegmentKind,
    pub waker: Option<(ThreadId, Timestamp)>,
    pub qualifier: Option<NameId>,
}

impl Label {
    pub fn of(kind: SegmentKind) -> Label {
        Label { kind, waker: None, qualifier: None }
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct ThreadState {
    pub thread: Thread,
    pub sched: Sched,
    /// Start of the segment that is being made.
    since: Timestamp,
    /// CPU it runs on, or whose run queue it stands in.
    pub cpu: u32,
    /// While running: the interruption by the interrupt context that the CPU is in.
    pub interrupted: Option<Interruption>,
    /// Woken while it seemed to run: it was about to wait, or its switch-out is missing. Then it had waited for this.
    pub early_wake: Option<(Timestamp, Label)>,
    /// The system call that it is in.
    pub call: Option<(Timestamp, NameId)>,
    /// A system call of it was seen since events of its CPU were lost.
    pub called: bool,
    /// When they were lost.
    pub floor: Timestamp,
    /// Whom it woke last while it seemed to be in no call, and which segment of that one ends so.
    pub woke_outside: Option<(ThreadId, usize, Timestamp)>,
    /// It left its CPU for a wait that no signal ends, as those for a disk are.
    pub uninterruptible: bool,
    /// When the last block request that it had handed in was done.
    pub request_done: Timestamp,
    /// An event happened on it, or a switch told that it left: the recording follows it.
    pub followed: bool,
    /// How often the recording shows that switches are missing since it got a CPU, and when first.
    pub gaps: (u64, Timestamp),
    /// Of the switches after it got a CPU, those that another thread leaves.
    pub contradictions: u64,
    /// Only the one who woke it told of the run queue in which it stands.
    pub placed_by_waker: bool,
    /// Its exit was seen.
    pub exited: bool,
    /// Its id was given back.
    pub freed: bool,
    /// The incarnation of the same id before it.
    pub previous: Option<ThreadId>,
    /// What the recording says of `thread.pid`.
    pid: Observed<i32>,
    /// A user-space event with the ids that it has outside of containers happened on its CPU.
    pub confirmed: bool,
    /// Depth of the namespace of `thread.virtual_ids`.
    pub namespace_level: i32,
    /// Runs soft interrupts as its own work.
    pub runs_softirqs: bool,
    /// Its last name came with an exec.
    pub named_by_exec: bool,
    /// Where their events were recorded: the functions that it is in.
    pub functions: Functions,
}

impl ThreadState {
    /// A thread that lives from `start` on, the instance of its id after `previous`.
    pub fn new(key: HostTid, start: Timestamp, sched: Sched, previous: Option<ThreadId>) -> ThreadState {
        let (tid, mut pid) = (key.tid(), Observed::default());
        pid.observe(key.idle_on().map(|_| tid));
        let thread = Thread {
            host: key.host(),
            tid,
            pid: tid,
            ppid: 0,
            virtual_ids: None,
            names: Vec::new(),
            life: Span::new(start, Timestamp::MAX),
            parent: None,
            idle: key.is_idle(),
            disk_worker: false,
            segments: Vec::new(),
            calls: Vec::new(),
            samples: Vec::new(),
        };
        ThreadState {
            thread,
            sched,
            since: start,
            cpu: key.idle_on().unwrap_or(0),
            interrupted: None,
            early_wake: None,
            call: None,
            called: false,
            floor: Timestamp::MIN,
            woke_outside: None,
            uninterruptible: false,
            request_done: Timestamp::MIN,
            followed: false,
            gaps: (0, Timestamp::MAX),
            contradictions: 0,
            placed_by_waker: false,
            exited: false,
            freed: false,
            previous,
            pid,
            confirmed: false,
            namespace_level: 0,
            runs_softirqs: false,
            named_by_exec: false,
            functions: Functions::default(),
        }
    }

    /// End the segment that is being made at `t`.
    pub fn cut(&mut self, t: Timestamp, label: Label) {
        if t <= self.since || self.thread.idle {
            self.since = self.since.max(t);
            return;
        }
        let span = Span::new(self.since, t);
        let segment = Segment { span, kind: label.kind, waker: label.waker, qualifier: label.qualifier, cpu: self.cpu };
        match self.thread.segments.last_mut() {
            // A wait may touch its like (spurious wake-ups); only what no wake-up separates is one segment.
            Some(last)
                if label.waker.is_none() && Segment { span, ..*last } == segment && last.span.end == span.start =>
            {
                last.span.end = t;
            }
            _ => self.thread.segments.push(segment),
        }
        self.since = t;
    }

    /// The label of the current state when no event says more.
    pub fn own_label(&self, reasons: &Reasons) -> Label {
        let qualified = |kind, name| Label { qualifier: Some(name), ..Label::of(kind) };
        match (self.sched, self.interrupted) {
            (Sched::Running(_), None) => Label::of(SegmentKind::Running),
            (Sched::Running(_), Some(Interruption { by })) => {
                Label { qualifier: by, ..Label::of(SegmentKind::Interrupted) }
            }
            (Sched::Ready | Sched::New, _) => Label::of(SegmentKind::Preempted),
            (Sched::Blocked, _) => qualified(SegmentKind::Blocked, reasons.unresolved),
            (Sched::Unseen | Sched::Dead, _) => qualified(SegmentKind::Unknown, reasons.unseen),
            (Sched::Unknown(UnknownReason::Lost), _) => qualified(SegmentKind::Unknown, reasons.lost),
            (Sched::Unknown(UnknownReason::Gap), _) => qualified(SegmentKind::Unknown, reasons.gap),
            (Sched::Unknown(UnknownReason::Elsewhere), _) => qualified(SegmentKind::Unknown, reasons.elsewhere),
        }
    }

    /// Leave the current state for another, with the label that the old one has by itself.
    pub fn change(&mut self, t: Timestamp, sched: Sched, reasons: &Reasons) {
        let label = self.own_label(reasons);
        self.cut(t, label);
        self.sched = sched;
        if !matches!(sched, Sched::Running(_)) {
            self.interrupted = None;
        }
    }

    /// It has left its CPU some time after `agreed`, no switch says when. Woken since, it had waited until then.
    pub fn left_unseen(&mut self, agreed: Timestamp, t: Timestamp, reasons: &Reasons) {
        self.change(agreed, Sched::Unknown(UnknownReason::Gap), reasons);
        if let Some((woken, label)) = self.early_wake.take().filter(|(woken, _)| (agreed..=t).contains(woken)) {
            self.cut(woken, label);
            self.sched = Sched::Ready;
            return;
        }
        // What follows may still find out that it waited, from here on.
        self.cut(t, self.own_label(reasons));
    }

    /// It gets a CPU back, and no wake-up was recorded: if it waited as threads wait for a disk, and a request of its
    /// own was done meanwhile, that is what it had waited for.
    pub fn wait_for_own_request(&mut self) {
        if self.sched == Sched::Blocked && self.uninterruptible && self.request_done > self.since {
            self.cut(self.request_done, Label::of(SegmentKind::Disk));
            self.sched = Sched::Ready;
        }
    }

    /// Nothing is known of it before `t`, which its current segment may reach back to.
    pub fn start_of_segment(&self) -> Timestamp {
        self.since
    }

    /// It was told of before the recording began.
    pub fn begin_with(&mut self, begin: Timestamp) {
        let thread = &mut self.thread;
        if thread.life.start >= begin {
            return;
        }
        thread.life = Span::new(begin, thread.life.end.max(begin));
        thread.segments.retain(|segment| segment.span.end > begin);
        if let Some(first) = thread.segments.first_mut() {
            first.span.start = first.span.start.max(begin);
        }
        // The name that it had when the recording began.
        let earlier = thread.names.partition_point(|(t, _)| *t <= begin);
        thread.names.drain(..earlier.saturating_sub(1));
        if let Some(first) = thread.names.first_mut() {
            first.0 = begin;
        }
    }

    /// The open system call ends.
    pub fn end_call(&mut self, t: Timestamp, ret: Option<i64>) {
        if let Some((start, name)) = self.call.take() {
            self.thread.calls.push(Call { span: Span::new(start, t), name, ret });
        }
    }

    /// The thread ends.
    pub fn die(&mut self, t: Timestamp, reasons: &Reasons) {
        self.change(t, Sched::Dead, reasons);
        self.end_call(t, None);
        self.exited = true;
        self.thread.life.end = t;
    }

    /// An event of the thread says its process, or does not.
    pub fn observe_pid(&mut self, pid: Option<i32>) {
        self.pid.observe(pid);
        self.thread.pid = self.pid.get().unwrap_or(self.thread.pid);
    }

    /// Something else says its process, which counts where none of its events did.
    pub fn fill_pid(&mut self, pid: i32) {
        self.pid.fill(Some(pid));
        self.observe_pid(None);
    }

    /// The recording says its process.
    pub fn is_pid_known(&self) -> bool {
        self.pid.get().is_some()
    }
}

impl ThreadInstance for ThreadState {
    fn tid(&self) -> i32 {
        self.thread.tid
    }

    fn set_tid(&mut self, tid: i32) {
        self.thread.tid = tid;
    }

    fn is_alive(&self) -> bool {
        self.sched != Sched::Dead
    }
}

/// Why something is not known, as qualifiers of segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reasons {
    /// A wait whose wake-up was not recorded.
    pub unresolved: NameId,
    /// A wait that had not ended when the recording did.
    pub ended: NameId,
    /// Before the thread's first event.
    pub unseen: NameId,
    /// After lost events.
    pub lost: NameId,
    /// Switches are missing.
    pub gap: NameId,
    /// The same where only some processes were tracked.
    pub untracked: NameId,
    /// On a CPU that was not recorded.
    pub elsewhere: NameId,
    /// No switch of its host was recorded.
    pub unscheduled: NameId,
    /// Woken by an interrupt that was not recorded: the CPU was idle, or its thread outside any system call.
    pub interrupt: NameId,
    /// Woken from another CPU, and who did it was not recorded.
    pub remote: NameId,
}
