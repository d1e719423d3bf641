//! Rows that leave their threads: the moments at which they are sealed, the slabs that they fill, and the changes that
//! come later than that. `seal` moves them.

use super::reasons::Reasons;
use crate::event::kind::Event;
use crate::timeline::store::builder::LineStoreBuilder;
use crate::timeline::store::leaf::StoredRow;
use crate::timeline::store::parts::RowPlace;
use crate::timeline::store::row_builders::{OpenSlabs, SealedSlabs};
use crate::timeline::{Segment, SegmentKind, Waker};
use std::collections::BTreeMap;

/// The number of a segment among all of its thread, sealed or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentNumber(pub usize);

/// Number of segments in which the last wait of a call is looked for.
pub(super) const NEAR: usize = 64;

/// Events between two slabs on average, where the options of the pass do not say.
pub(super) const SEAL_EVERY: usize = 1 << 14;

/// The events before which rows may be sealed, by a hash of time, trace and CPU: which ones these are does not depend
/// on the cuts between chunks. Time alone would not do: copies of a recording have as many events at each time as
/// there are copies, so that many more events would lie between two moments.
#[derive(Clone, Copy, Debug)]
pub(super) struct SealMoments {
    /// Fewer events than this are not sealed.
    pub least: usize,
    /// The greatest hash of such a moment.
    greatest: u64,
}

impl SealMoments {
    /// Every so many events on average: half as many, then one of the moments of which there is one in half as many.
    pub fn every(events: usize) -> SealMoments {
        let half = (events / 2).max(1);
        SealMoments { least: half, greatest: u64::MAX / half as u64 }
    }

    /// True for the moment before such an event.
    #[inline]
    pub fn holds(self, event: &Event) -> bool {
        let place = u64::from(event.trace) << 16 | u64::from(event.cpu);
        let time = (event.time.ns() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        time.wrapping_add(place.wrapping_mul(0xd6e8_feb8_6659_fd93)) <= self.greatest
    }
}

/// Segments of a thread that are not among its rows any more.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SealedSegments {
    /// In the store.
    pub stored: usize,
    /// Before the recording began.
    pub dropped: usize,
}

/// Slabs of rows by number.
#[derive(Debug)]
pub(super) struct NumberedSlabs<S> {
    pub number: usize,
    pub slabs: S,
}

/// The slabs that the machine has filled.
#[derive(Debug, Default)]
pub(super) struct FilledSlabs {
    /// Number of slabs so far.
    pub count: usize,
    /// Those that were not taken to make them leaves.
    pub open: Vec<NumberedSlabs<OpenSlabs>>,
    /// Leaves that wait for those of an earlier slab.
    pub sealed: BTreeMap<usize, SealedSlabs>,
    /// Number of slabs whose leaves are in the store.
    pub added: usize,
    /// The bytes of the rows that threads had when they were last sealed.
    pub in_threads: usize,
    /// The most bytes of rows that were in no slab: those of threads, requests, services, page faults and counters.
    pub most_outside: usize,
    /// The bytes of the largest slabs so far.
    pub largest: usize,
    /// Bytes for rows that are in no leaf; `None`: any.
    pub room: Option<u64>,
}

impl FilledSlabs {
    /// Take the slabs that were filled, to make them leaves.
    pub fn take(&mut self) -> Vec<NumberedSlabs<OpenSlabs>> {
        std::mem::take(&mut self.open)
    }
}

/// A change of a segment, once its cause is known.
#[derive(Clone, Copy, Debug)]
pub(super) enum SegmentChange {
    /// The send of the packet that ended the wait.
    Sent(Waker),
    /// If it is a wait that ended then without a cause: the thread was in a call, so it was the waker.
    WokenInCall(Waker),
    /// Only some processes were tracked; `follows` says whether this thread was.
    Untracked { follows: bool },
}

/// A change of a sealed segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct LateChange {
    pub place: RowPlace,
    pub change: SegmentChange,
}

impl SegmentChange {
    /// Change a segment.
    pub fn apply(self, segment: &mut Segment, reasons: &Reasons) {
        match self {
            SegmentChange::Sent(sender) => segment.waker = Some(sender),
            SegmentChange::WokenInCall(waker) => match segment.kind {
                _ if segment.span.end != waker.at => {}
                SegmentKind::Blocked => (segment.waker, segment.qualifier) = (Some(waker), None),
                SegmentKind::Stopped => segment.waker = Some(waker),
                _ => {}
            },
            SegmentChange::Untracked { follows } => {
                if segment.kind == SegmentKind::Preempted && !follows {
                    segment.kind = SegmentKind::Unknown;
                }
                if segment.kind == SegmentKind::Unknown && segment.qualifier.is_none_or(|reason| reason == reasons.gap)
                {
                    segment.qualifier = Some(reasons.untracked);
                }
            }
        }
    }
}

/// Move the first rows of a line.
pub(super) fn move_first<R: StoredRow>(rows: &mut Vec<R>, count: usize, line: usize, into: &mut LineStoreBuilder<R>) {
    into.push(line, rows.get(..count).unwrap_or(&[]));
    rows.drain(..count.min(rows.len()));
    shrink(rows, count);
}

/// Move rows of several lines, those of each line in order.
pub(super) fn move_lines<R: StoredRow>(rows: &mut Vec<R>, line: impl Fn(&R) -> usize, into: &mut LineStoreBuilder<R>) {
    rows.sort_by_key(&line);
    into.push_lines(rows, line);
    clear(rows);
}

pub(super) fn clear<R>(rows: &mut Vec<R>) {
    let gone = rows.len();
    rows.clear();
    shrink(rows, gone);
}

/// Release memory of which rows took less than half, and let the next ones take what they need: `gone` have just left.
/// A thread that has as many between any two slabs keeps its memory.
pub(super) fn shrink<R>(rows: &mut Vec<R>, gone: usize) {
    let used = gone.max(rows.len()).max(KEPT);
    if rows.capacity() > 2 * used {
        rows.shrink_to(used);
    }
}

/// Rows for which a thread keeps memory at least.
pub(super) const KEPT: usize = 4;
