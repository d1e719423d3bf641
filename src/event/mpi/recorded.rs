//! The records of one location as later steps need them: operations, halves of messages, participations in collectives
//! and teams, locks.

use crate::base::notice::Notices;
use crate::base::time::{Span, Timestamp};
use crate::event::call_path::CallSites;
use crate::event::operation::{CallPaths, Operation, RegionChange};
use crate::input::otf2::{CreatedThread, LocalClock, LocationId, ParameterValue, TaskKey};
use crate::model::usage::FileTransfers;
use std::collections::BTreeMap;

/// The number for "in no operation".
pub(in crate::event) const NOWHERE: u32 = u32::MAX;

/// One half of a message, as one location recorded it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageHalf {
    /// When, on the location's own clock (with the archive's own corrections, as all OTF2 tools show it).
    pub time: Timestamp,
    /// The other location; all ones where the peer could not be resolved (none, or no definition).
    pub(in crate::event) other_location: u32,
    pub tag: u32,
    /// Position of the record in its location, from 0.
    pub record: u32,
    /// Bytes of the message; more than this holds counts as what it holds.
    pub bytes: u32,
    /// Position of the operation it was recorded in.
    pub(in crate::event) operation: u32,
    /// Of a receive: position of the operation that posted it; of a send: of the one that was left when it was done.
    pub(in crate::event) other: u32,
}

impl MessageHalf {
    /// The other location; `None` where the peer could not be resolved.
    pub fn peer(&self) -> Option<LocationId> {
        (self.other_location != NOWHERE).then_some(LocationId::from_raw(self.other_location))
    }
}

/// The posting of a receive: position of its record, and of the operation in which it was made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posting {
    pub(super) record: u32,
    pub(super) operation: u32,
}

/// Receives by the position of the record that posted each; of equals in order of completion.
pub(super) fn in_posting_order(receives: Vec<MessageHalf>, postings: &[u32]) -> Vec<MessageHalf> {
    if postings.is_sorted() {
        return receives;
    }
    let mut order: Vec<(u32, u32)> = postings.iter().copied().zip(0..).collect();
    order.sort_unstable();
    order.into_iter().filter_map(|(_, at)| receives.get(at as usize).copied()).collect()
}

/// A part in a collective operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Participation {
    pub(super) operation: u32,
    pub(super) group: usize,
    pub(super) collective: u8,
    pub(super) root: Option<LocationId>,
}

/// A part in a parallel region of a team of threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// The team.
    pub(super) group: usize,
    /// Begin.
    pub(super) time: Timestamp,
    /// Of the thread that leads the team: its fork.
    pub(super) fork: Option<Fork>,
    /// Of the others: position of the operation that represents their idle time before.
    pub(super) idle: u32,
}

/// The beginning of a parallel region by the thread that leads the team.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fork {
    pub(super) time: Timestamp,
    /// Position of the thread's next operation.
    pub(super) operation: u32,
}

/// A synchronisation of a window with the ranks of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SyncKind {
    /// Opens its memory to the group.
    Post,
    /// Begins to access the group's memory.
    Start,
    /// Has done so.
    Complete,
    /// Waits until the group has.
    Wait,
}

/// See [`SyncKind`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Sync {
    pub(super) kind: SyncKind,
    pub(super) window: u32,
    pub(super) group: u32,
    pub(super) operation: u32,
}

/// The lock of a rank's part of a window, acquired or released.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowLock {
    pub(super) release: bool,
    pub(super) window: u32,
    pub(super) remote: u32,
    pub(super) operation: u32,
    pub(super) time: Timestamp,
}

/// Values of a metric by operation.
#[derive(Clone, Debug, Default)]
pub(super) struct MetricRun {
    /// Position among the archive's metrics.
    pub(super) member: u32,
    /// The last value.
    pub(super) current: i64,
    pub(super) by_operation: Vec<Option<i64>>,
}

/// The tasks of a location.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tasks {
    /// Tasks that were created here.
    pub(super) created: Vec<TaskCreation>,
    /// Tasks that were completed here.
    pub(super) completed: Vec<TaskCompletion>,
    /// Operations that wait for the tasks of one creator.
    pub(super) waits: Vec<TaskWait>,
}

/// The creation of a task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TaskCreation {
    pub(super) task: TaskKey,
    /// The task that created it; `None` for the implicit task of a thread.
    pub(super) creator: Option<TaskKey>,
}

/// The completion of a task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TaskCompletion {
    pub(super) task: TaskKey,
    /// Position of its last operation.
    pub(super) operation: u32,
    pub(super) time: Timestamp,
}

/// An operation that waits for tasks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TaskWait {
    pub(super) operation: u32,
    /// The creator of the tasks; `None` for the implicit task of the thread.
    pub(super) creator: Option<TaskKey>,
}

/// A part of a task of a task graph: from when a thread took it up to when it left it.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskPart {
    /// Number of the task.
    pub(super) task: u64,
    /// Number of the task that made it.
    pub(super) maker: Option<u64>,
    /// Position of the operation that represents the idle time before.
    pub(super) idle: u32,
    /// Position of its first operation.
    pub(super) first: u32,
    /// Position of its last operation.
    pub(super) last: u32,
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
}

/// The end of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadExit {
    pub(super) thread: CreatedThread,
    /// Position of its last operation.
    pub(super) operation: u32,
    pub(super) time: Timestamp,
}

/// A recorded parameter.
#[derive(Clone, Copy, Debug)]
pub(super) struct ParameterRecord {
    /// Position of the operation that follows.
    pub(super) operation: u32,
    pub(super) parameter: u32,
    pub(super) value: ParameterValue,
}

/// An operation that is a barrier of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PartBarrier {
    /// Position of the part.
    pub(super) part: u32,
    pub(super) operation: u32,
}

/// An operation that waits for the end of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadJoin {
    pub(super) operation: u32,
    pub(super) thread: CreatedThread,
}

/// A lock acquired.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acquired {
    pub(super) lock: u32,
    pub(super) order: u32,
    /// The operation that waited for it.
    pub(super) operation: u32,
    /// When it was there.
    pub(super) time: Timestamp,
}

/// A lock released.
#[derive(Clone, Copy, Debug)]
pub(super) struct Released {
    pub(super) lock: u32,
    pub(super) order: u32,
    /// The operation that ends or begins then.
    pub(super) operation: u32,
    pub(super) time: Timestamp,
}

/// The times of a location's first and last record on the archive's clock, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickRange {
    pub first: i128,
    pub last: i128,
}

/// The records of one location.
#[derive(Clone, Debug, Default)]
pub struct LocationRun {
    /// In order.
    pub operations: Vec<Operation>,
    /// By operation: where it was called, and where the time after it was spent.
    pub call_sites: CallSites,
    /// The innermost region from the first to the last record, where that is wanted.
    pub(super) regions: Option<Vec<RegionChange>>,
    /// Sends in order.
    pub sends: Vec<MessageHalf>,
    /// Receives in posting order.
    pub receives: Vec<MessageHalf>,
    /// Times of its records; `None` without records.
    pub ticks: Option<TickRange>,
    /// Event records.
    pub records: u64,
    /// Its clock against the archive's.
    pub clock: LocalClock,
    /// When the tracer wrote out its buffer.
    pub flushes: Vec<Span>,
    /// Bytes read from and written to files.
    pub transfers: FileTransfers,
    pub(super) paths: CallPaths,
    pub(super) participations: Vec<Participation>,
    pub(super) parts: Vec<Part>,
    /// Barriers; sorted.
    pub(super) barriers: Vec<PartBarrier>,
    pub(super) tasks: Tasks,
    /// Of a task graph; in order of their beginnings.
    pub(super) task_parts: Vec<TaskPart>,
    pub(super) syncs: Vec<Sync>,
    pub(super) window_locks: Vec<WindowLock>,
    pub(super) metrics: Vec<MetricRun>,
    pub(super) parameters: Vec<ParameterRecord>,
    /// Operations that wait for a thread to end.
    pub(super) joins: Vec<ThreadJoin>,
    /// The end of its thread.
    pub(super) ended: Option<ThreadExit>,
    /// Operations that represent the idle time of an accelerator's queue.
    pub(super) idle: Vec<u32>,
    /// Operations that hand work to an accelerator.
    pub(super) launches: Vec<u32>,
    pub(super) acquired: Vec<Acquired>,
    pub(super) released: Vec<Released>,
    /// Operations that wait for an accelerator.
    pub(super) synchronised: Vec<u32>,
    pub(super) per_class: BTreeMap<u8, u64>,
    pub(super) notices: Notices,
}

impl LocationRun {
    /// Its thread runs what another thread gives it: as part of a team, or as tasks.
    pub(super) fn works_for_others(&self) -> bool {
        !self.parts.is_empty() || !self.task_parts.is_empty()
    }

    /// Give back what was kept for growing: there are as many of these as locations.
    pub(super) fn shrink(&mut self) {
        self.operations.shrink_to_fit();
        self.call_sites.seal();
        self.regions.iter_mut().for_each(Vec::shrink_to_fit);
        self.sends.shrink_to_fit();
        self.receives.shrink_to_fit();
        self.participations.shrink_to_fit();
    }
}
