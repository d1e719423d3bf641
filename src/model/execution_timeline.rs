//! One execution as a timeline: its critical path with a line for each thread on it, the waits between these threads,
//! and the events on them.
//!
//! Times count from the begin of the execution. The segments tile it: each nanosecond is in exactly one.

use super::carrier::Carrier;
use super::context::ContextId;
use super::wait_kind::WaitKind;
use crate::base::heap::block;
use crate::base::time::{Ns, Timestamp};

/// Events kept of one execution, at most; [`ExecutionTimeline::events_left_out`] counts the others.
pub const MOST_EVENTS: usize = 20_000;

/// A thread on the critical path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimelineThread {
    pub host: String,
    pub process: String,
    /// Its name when the path first entered it.
    pub name: String,
    /// Process id.
    pub pid: i32,
    /// Thread id.
    pub tid: i32,
}

/// One thread of the path in one state, in one calling context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelineSegment {
    /// Begin.
    pub start_ns: Ns,
    /// Length; never 0.
    pub ns: Ns,
    /// Position of its thread.
    pub thread: u32,
    /// The state of that thread.
    pub state: WaitKind,
    /// The CPU on which it ran, or in whose run queue it waited.
    pub cpu: Option<u32>,
    /// The calling context that the time is added to.
    pub context: ContextId,
}

impl TimelineSegment {
    pub fn end_ns(&self) -> Ns {
        self.start_ns + self.ns
    }
}

/// A thread waits for another one on the path; at its end that one wakes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelineWait {
    /// Begin.
    pub start_ns: Ns,
    /// End: the wake-up.
    pub end_ns: Ns,
    /// Position of the thread that waits.
    pub waiter: u32,
    /// Position of the thread that it waits for.
    pub waits_for: u32,
    /// The means by which the delay came to the waiter.
    pub carrier: Carrier,
}

/// The kind of an event on a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimelineEventKind {
    /// A system call.
    Call,
    /// A page fault.
    Fault,
    /// A message of another thread or host came: a packet, or data in a socket or pipe.
    Message,
    /// The thread runs on another CPU than before.
    Migration,
    /// A signal was sent to the thread or its process.
    Signal,
    /// It submitted a request to a disk, or had the kernel do so.
    Request,
    /// Another thread ended a wait of it.
    Wakeup,
    /// The kernel works for the thread: reclaim, compaction, write-back.
    Work,
    /// The thread has another name from then on, as after an exec.
    Rename,
    /// An execution of the task begins.
    Begin,
    /// An execution of the task ends.
    End,
}

impl TimelineEventKind {
    /// All of them, in the order of legends.
    pub const ALL: [TimelineEventKind; 11] = [
        TimelineEventKind::Call,
        TimelineEventKind::Fault,
        TimelineEventKind::Message,
        TimelineEventKind::Migration,
        TimelineEventKind::Signal,
        TimelineEventKind::Request,
        TimelineEventKind::Wakeup,
        TimelineEventKind::Work,
        TimelineEventKind::Rename,
        TimelineEventKind::Begin,
        TimelineEventKind::End,
    ];

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            TimelineEventKind::Call => "call",
            TimelineEventKind::Fault => "fault",
            TimelineEventKind::Message => "message",
            TimelineEventKind::Migration => "migration",
            TimelineEventKind::Signal => "signal",
            TimelineEventKind::Request => "disk_request",
            TimelineEventKind::Wakeup => "wakeup",
            TimelineEventKind::Work => "kernel_work",
            TimelineEventKind::Rename => "rename",
            TimelineEventKind::Begin => "begin",
            TimelineEventKind::End => "end",
        }
    }

    /// The name for people.
    pub fn words(self) -> &'static str {
        match self {
            TimelineEventKind::Call => "call",
            TimelineEventKind::Fault => "page fault",
            TimelineEventKind::Message => "message",
            TimelineEventKind::Migration => "migration",
            TimelineEventKind::Signal => "signal",
            TimelineEventKind::Request => "disk request",
            TimelineEventKind::Wakeup => "wake-up",
            TimelineEventKind::Work => "kernel work",
            TimelineEventKind::Rename => "new name",
            TimelineEventKind::Begin => "begin",
            TimelineEventKind::End => "end",
        }
    }

    fn letter(self) -> char {
        match self {
            TimelineEventKind::Call => 'c',
            TimelineEventKind::Fault => 'f',
            TimelineEventKind::Message => 'm',
            TimelineEventKind::Migration => 'g',
            TimelineEventKind::Signal => 's',
            TimelineEventKind::Request => 'd',
            TimelineEventKind::Wakeup => 'w',
            TimelineEventKind::Work => 'k',
            TimelineEventKind::Rename => 'x',
            TimelineEventKind::Begin => 'b',
            TimelineEventKind::End => 'n',
        }
    }
}

/// An event on a thread of the path, while the path was in it or it waited for a thread of the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineEvent {
    /// When it began; below 0 for calls that began before the execution.
    pub at_ns: Ns,
    /// Its length; 0 for all but calls, requests and work of the kernel.
    pub ns: Ns,
    /// Position of its thread.
    pub thread: u32,
    pub kind: TimelineEventKind,
    /// The call, the carrier of the message, the CPUs of a migration, the signal (one that stops has its sender), the
    /// bytes of a request and its disk, the thread that wakes, the work, the new name, or the type of the execution
    /// that begins or ends; empty for faults.
    pub name: String,
    /// The result of the call, where it was recorded.
    pub result: Option<i64>,
    /// The name of the error that is the result.
    pub error: Option<String>,
}

impl TimelineEvent {
    /// True for a system call that returned an error.
    pub fn has_failed(&self) -> bool {
        self.result.is_some_and(|result| result < 0)
    }

    /// The letter that marks it in drawings.
    pub fn letter(&self) -> char {
        if self.has_failed() { FAILED } else { self.kind.letter() }
    }
}

/// The letter of calls that returned an error.
const FAILED: char = 'e';

/// The letters of the events of a drawing with their meanings, those alone that occur.
pub fn event_letters(events: &[TimelineEvent]) -> Vec<(char, &'static str)> {
    let occurs = |letter: char| events.iter().any(|event| event.letter() == letter);
    let kinds = TimelineEventKind::ALL.map(|kind| (kind.letter(), kind.words()));
    let [calls, others @ ..] = kinds;
    let all = [calls, (FAILED, "failed call")].into_iter().chain(others);
    all.filter(|(letter, _)| occurs(*letter)).collect()
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecutionTimeline {
    pub start: Timestamp,
    pub ns: Ns,
    /// In the order in which the path enters them.
    pub threads: Vec<TimelineThread>,
    /// In order of time, without gaps.
    pub segments: Vec<TimelineSegment>,
    /// In order of their ends.
    pub waits: Vec<TimelineWait>,
    /// In order of time.
    pub events: Vec<TimelineEvent>,
    /// Events beyond [`MOST_EVENTS`].
    pub events_left_out: u64,
}

impl ExecutionTimeline {
    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        let of_event = |event: &TimelineEvent| event.name.capacity() + event.error.as_ref().map_or(0, String::capacity);
        let of_thread = |of: &TimelineThread| of.host.capacity() + of.process.capacity() + of.name.capacity();
        let texts = self.events.iter().map(of_event).chain(self.threads.iter().map(of_thread)).sum::<usize>();
        block(&self.threads) + block(&self.segments) + block(&self.waits) + block(&self.events) + texts
    }

    /// Position of the segment at a time; the last one for times after the end.
    pub fn segment_at(&self, at_ns: Ns) -> Option<usize> {
        let after = self.segments.partition_point(|s| s.start_ns <= at_ns);
        (!self.segments.is_empty()).then(|| after.saturating_sub(1))
    }

    /// The wait of another thread for this one at a time, the innermost one.
    pub fn waiting_for(&self, thread: u32, at_ns: Ns) -> Option<&TimelineWait> {
        let first = self.waits.partition_point(|w| w.end_ns <= at_ns);
        self.waits.get(first..)?.iter().find(|w| w.waits_for == thread && w.start_ns <= at_ns)
    }

    /// The wait of a thread that ends at a time.
    pub fn woken_at(&self, thread: u32, at_ns: Ns) -> Option<&TimelineWait> {
        let first = self.waits.partition_point(|w| w.end_ns < at_ns);
        let mut ending = self.waits.get(first..)?.iter().take_while(|w| w.end_ns == at_ns);
        ending.find(|w| w.waiter == thread)
    }
}
