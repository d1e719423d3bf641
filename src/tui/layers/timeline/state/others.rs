//! Lanes for the other threads that used the same things as the thread under the cursor.

use crate::base::clean;
use crate::base::time::{Ns, Timestamp};
use crate::model::concurrent::{ConcurrentThread, ConcurrentUse};
use crate::model::wait_kind::WaitKind;
use std::ops::Range;

/// Lines of one kind of use, at most.
const OTHERS_OF_A_KIND: usize = 2;

/// Another thread, and when it used the same thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherLane {
    /// The thread and what it used.
    pub label: String,
    /// How it is drawn.
    pub state: WaitKind,
    /// When, since the execution began.
    pub spans: Vec<Range<Ns>>,
}

/// The threads that used a thing longest, each with a line.
pub(super) fn other_lanes(used: &ConcurrentUse, start: Timestamp) -> Vec<OtherLane> {
    let kinds = [
        ("CPU", WaitKind::Cpu, &used.on_cpu),
        ("disk", WaitKind::Disk, &used.on_disk),
        ("futex", WaitKind::Thread, &used.in_futex),
    ];
    let lane = |what: &str, state, thread: &ConcurrentThread| {
        let name = if thread.name.is_empty() { "thread" } else { &thread.name };
        let spans = thread.spans.iter().map(|span| span.start.since(start)..span.end.since(start)).collect();
        OtherLane { label: format!("{what}: {} {}", clean::text(name), thread.tid), state, spans }
    };
    let of_kind = |(what, state, threads): (&'static str, WaitKind, &Vec<ConcurrentThread>)| {
        threads.iter().take(OTHERS_OF_A_KIND).map(|thread| lane(what, state, thread)).collect::<Vec<_>>()
    };
    kinds.into_iter().flat_map(of_kind).collect()
}
