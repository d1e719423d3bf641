//! The threads that used the same things at the same time as a thread of a timeline.

use crate::base::time::{Ns, Span};

/// The question: a part of a timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConcurrentQuestion {
    pub span: Span,
    /// Host of the thread.
    pub host: String,
    /// Id of the thread, which is left out of the answer.
    pub tid: i32,
    /// Its process, whose threads are those that may wait for the same lock.
    pub pid: i32,
    /// Its CPU, where it is known.
    pub cpu: Option<u32>,
}

/// A thread and how long it used something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConcurrentThread {
    /// Its name at the begin of the span; empty where it is unknown.
    pub name: String,
    /// Thread id.
    pub tid: i32,
    /// Its time within the span.
    pub ns: Ns,
    /// When, in order of time, within the span.
    pub spans: Vec<Span>,
}

/// The answer, each list with the longest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConcurrentUse {
    /// The threads that ran on the CPU of the question.
    pub on_cpu: Vec<ConcurrentThread>,
    /// The threads that waited for a disk.
    pub on_disk: Vec<ConcurrentThread>,
    /// The threads of its process in calls on a futex: those that waited for a lock, or gave one back.
    pub in_futex: Vec<ConcurrentThread>,
}
