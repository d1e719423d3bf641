//! The states of many threads over time: a lane for each thread, process or CPU, a cell for each column of time.

use super::execution_timeline::TimelineThread;
use super::wait_kind::SegmentKind;
use crate::base::column_grid::ColumnGrid;
use crate::base::time::{Span, Timestamp};

/// Number of kinds of segments.
pub const KINDS: usize = SegmentKind::ALL.len();

/// The nanoseconds of a cell in each kind of segment, by [`SegmentKind`] as a number.
pub type CellTimes = [u64; KINDS];

/// Cells of an answer, at most: they are 96 bytes each, and each worker has some.
pub const MOST_CELLS: usize = 100_000;

/// What is asked: which lanes, and the cells of what time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LanesRequest {
    pub span: Span,
    pub columns: usize,
    /// Lanes of threads and processes, at most; two at least.
    pub most: usize,
    /// Only threads with one of these words: a tid, a pid, or a part of the name of the thread or its process. Empty:
    /// all.
    pub only: Vec<String>,
    /// Threads whose lanes come first, by host and tid: those that a cause names.
    pub causes: Vec<(String, i32)>,
    /// Threads that have a lane of their own, by number.
    pub own: Vec<u32>,
    /// Processes whose threads have lanes of their own, by the number of a thread of each.
    pub open: Vec<u32>,
    /// With a lane for each CPU.
    pub cpus: bool,
}

/// A thread of a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneThread {
    /// Its number in the recording, which requests use.
    pub number: u32,
    /// Its names at the end of the time asked about.
    pub names: TimelineThread,
}

/// Whose time a lane has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaneOwner {
    Thread(LaneThread),
    /// Several threads of one process.
    Process {
        /// One of them.
        first: LaneThread,
        threads: usize,
    },
    /// All others that live in the time asked about.
    Others {
        threads: usize,
    },
    /// A CPU: running, while it has a thread.
    Cpu {
        host: String,
        cpu: u32,
    },
}

/// A lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadLane {
    pub owner: LaneOwner,
    /// By column.
    pub cells: Vec<CellTimes>,
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadLanes {
    /// The time asked about, as far as it was recorded, and its columns.
    pub grid: ColumnGrid,
    /// Of an MPI run.
    pub of_ranks: bool,
    /// Number of hosts.
    pub hosts: usize,
    /// The whole time that was recorded.
    pub recorded: Span,
    /// CPUs, then threads and processes, the others last.
    pub lanes: Vec<ThreadLane>,
}

/// What a cell shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownCell {
    /// A state.
    pub kind: SegmentKind,
    /// For a state that is none of activity: its threads were active for a part of the time.
    pub is_active_in_part: bool,
}

/// True for time in which a thread uses a machine or asks for it: on a CPU, ready for one, waiting for a disk; of a
/// rank, computing or transferring.
pub fn is_active(kind: SegmentKind, of_ranks: bool) -> bool {
    if of_ranks {
        matches!(kind, SegmentKind::Running | SegmentKind::Network)
    } else {
        kind.has_cpu() || kind == SegmentKind::Disk
    }
}

impl ThreadLanes {
    /// Time of a cell in all kinds of activity.
    pub fn active_ns(&self, times: &CellTimes) -> u64 {
        SegmentKind::ALL.iter().zip(times).filter(|(kind, _)| is_active(**kind, self.of_ranks)).map(|(_, ns)| ns).sum()
    }

    /// The state with most time, of those of activity or of the others; of two equal ones the first.
    pub fn most(&self, times: &CellTimes, of_activity: bool) -> Option<SegmentKind> {
        let known = SegmentKind::ALL.into_iter().zip(times).rev().filter(|(_, ns)| **ns > 0);
        let wanted = known.filter(|(kind, _)| is_active(*kind, self.of_ranks) == of_activity);
        wanted.max_by_key(|(_, ns)| **ns).map(|(kind, _)| kind)
    }

    /// What a cell shows: of the states of activity the one with most time, where they have half of the column or more
    /// (of several threads: half a thread), or where there is no other; else the one with most time of all others.
    pub fn shown(&self, lane: &ThreadLane, column: usize) -> Option<ShownCell> {
        let times = lane.cells.get(column)?;
        let active = self.active_ns(times);
        let length = self.grid.span(column).len().unsigned_abs();
        let (of_activity, other) = (self.most(times, true), self.most(times, false));
        match (of_activity, other) {
            (Some(kind), None) => Some(ShownCell { kind, is_active_in_part: false }),
            (Some(kind), Some(_)) if active.saturating_mul(2) >= length => {
                Some(ShownCell { kind, is_active_in_part: false })
            }
            (of_activity, other) => other.map(|kind| ShownCell { kind, is_active_in_part: of_activity.is_some() }),
        }
    }
}

/// A thread at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadMoment {
    pub thread: LaneThread,
    /// The segment: when it is in this state.
    pub span: Span,
    pub kind: SegmentKind,
    /// The device, the interrupt, or why nothing is known; empty where nothing more is known.
    pub qualifier: String,
    /// The CPU on which it ran, or in whose run queue it waited.
    pub cpu: Option<u32>,
    /// Its system call at the moment, or the region of a rank; empty in none.
    pub call: String,
    /// The functions on its stack at the last sample in the segment or its system call up to the moment, outermost
    /// first; none where there is no sample.
    pub functions: Vec<String>,
    /// The thread that ended the wait, and when.
    pub waker: Option<(LaneThread, Timestamp)>,
}

/// What the interface asks about many threads: lanes, and what a thread does at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadsQuestion {
    pub lanes: Option<LanesRequest>,
    /// A thread by number, and when.
    pub moment: Option<(u32, Timestamp)>,
}

/// The answer to its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadsAnswer {
    pub lanes: Option<ThreadLanes>,
    /// None outside of the thread's life.
    pub moment: Option<ThreadMoment>,
}
