//! Block requests from insertion to completion, matched by device and first sector.
//!
//! In: the steps of requests in order of time. Out: rows in the order in which requests began. A flush of the device's
//! cache has no sector. The kernel keeps -1 for it, which `block_rq_issue` shows as 0 (`blk_rq_trace_sector`) and
//! `block_rq_complete` as it is; a device has one flush under way at a time.
//!
//! A request whose completion is missing ends when the first one of its device that began after it completes: nothing
//! shows that it was on its way any longer, and it would count as such to the end of the recording.
//!
//! At each seal moment the rows before the oldest open request move to the store, where they are in order. If a request
//! stays open while [`MOST_ROWS`] others begin, rows move with it, as it is; what becomes of it is kept (24 bytes) and
//! written into its leaf at the end. The table of open requests is bounded, for recordings without completions: when
//! there are [`MOST_OPEN`], none of them is followed any further, and they end as those that are open at the end do; 4
//! bytes are kept of each. Cost: a hash look-up for each step.

use super::sealed_rows::move_first;
use crate::base::heap::table;
use crate::base::time::{Span, Timestamp};
use crate::event::host::HostId;
use crate::event::kind::RequestStep;
use crate::reading::batch::BlockRequest;
use crate::timeline::store::builder::LineStoreBuilder;
use crate::timeline::store::parts::{LineStore, RowPlace};
use crate::timeline::{DiskRequest, ThreadId};
use foldhash::HashMap;
use get_size2::GetSize;
use std::collections::VecDeque;

/// Rows that stay after an open request: more than most devices complete while they hold one back.
const MOST_ROWS: usize = 1 << 14;
/// Open requests: as many as a hash table of 131,072 places has, and more than devices have in flight.
const MOST_OPEN: usize = 7 << 14;
/// Open requests for which the table keeps its memory at least.
const KEPT_OPEN: usize = 256;
/// Rows that are changed in their leaves at a time.
const AT_ONCE: usize = 1 << 16;

/// The sector of a flush that completes.
const OF_A_FLUSH: u64 = u64::MAX;

/// The submitter of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Submitter {
    pub thread: Option<ThreadId>,
    /// The client of the work that this thread is doing.
    pub client: Option<ThreadId>,
}

/// Host, device and first sector of a request.
pub(super) type RequestKey = (HostId, u32, u64);

/// The key of a request.
pub(super) fn key(host: HostId, request: &BlockRequest) -> RequestKey {
    let sector = if request.sector == OF_A_FLUSH { 0 } else { request.sector };
    (host, request.device, sector)
}

/// A request on its way.
#[derive(Clone, Copy, Debug)]
struct OpenRequest {
    /// Its position among all requests.
    at: u32,
    /// True once it was handed to the device.
    is_issued: bool,
    start: Timestamp,
    submitter: Option<ThreadId>,
    /// When a request of its device completed that had begun after it.
    overtaken: Option<Timestamp>,
}

/// An open request that none has overtaken yet.
#[derive(Clone, Copy, Debug, GetSize)]
struct Leader {
    at: u32,
    sector: u64,
}

/// What becomes of a request; the issue comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, GetSize)]
enum RequestChange {
    Issued(Timestamp),
    Completed(Timestamp),
    /// Nothing shows that it was on its way any longer.
    Ended(Timestamp),
}

impl RequestChange {
    fn apply(self, request: &mut DiskRequest) {
        match self {
            RequestChange::Issued(t) => request.issued = t,
            RequestChange::Completed(t) => (request.span.end, request.is_completed) = (t, true),
            RequestChange::Ended(t) => request.span.end = t,
        }
    }
}

/// A change of a request that is in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, GetSize)]
struct StoredChange {
    /// Its position among all requests.
    at: u32,
    change: RequestChange,
}

/// What becomes of the requests that moved to the store before that was known.
#[derive(Debug)]
pub(super) struct LateRequests {
    /// Those that were never completed, by their positions.
    unended: Vec<u32>,
    changes: Vec<StoredChange>,
}

/// The most of each kind that is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestBounds {
    pub rows: usize,
    pub open: usize,
}

impl Default for RequestBounds {
    fn default() -> Self {
        RequestBounds { rows: MOST_ROWS, open: MOST_OPEN }
    }
}

/// All block requests so far.
#[derive(Clone, Debug, Default, GetSize)]
pub(super) struct Requests {
    #[get_size(ignore)]
    pub bounds: RequestBounds,
    /// Number of those in the store.
    stored: u32,
    /// The others, by start. Those that are open have no end.
    rows: Vec<DiskRequest>,
    #[get_size(size_fn = table)]
    open: HashMap<RequestKey, OpenRequest>,
    /// By device: those that none has overtaken yet, in the order in which they began. Some may have completed.
    leaders: HashMap<(HostId, u32), VecDeque<Leader>>,
    /// Those that are not followed any further, by their positions.
    unended: Vec<u32>,
    late: Vec<StoredChange>,
}

impl Requests {
    /// A request moves on. A completion whose beginning was not recorded is ignored. `lost` returns when the first
    /// events were lost since a time: a request that begins again after that ended there at the latest. Returns the
    /// submitter of a request that completes.
    pub fn step(
        &mut self,
        t: Timestamp,
        host: HostId,
        step: RequestStep,
        request: &BlockRequest,
        by: Submitter,
        lost: impl Fn(Timestamp) -> Option<Timestamp>,
    ) -> Option<ThreadId> {
        let key = key(host, request);
        if step == RequestStep::Complete {
            let OpenRequest { at, submitter, .. } = self.open.remove(&key)?;
            self.end_row(at, (host, request.device), t);
            return submitter;
        }
        if let Some(OpenRequest { at, start, .. }) = self.open.get(&key).copied()
            && let Some(lost) = lost(start)
        {
            self.change(at, RequestChange::Ended(lost));
            self.open.remove(&key);
        }
        let issued = step == RequestStep::Issue;
        match self.open.get_mut(&key) {
            Some(OpenRequest { at, is_issued, .. }) => {
                // Issued again after a requeue, or one of several flushes: the first one counts.
                if issued && !std::mem::replace(is_issued, true) {
                    let at = *at;
                    self.change(at, RequestChange::Issued(t));
                }
            }
            None => {
                if self.open.len() >= self.bounds.open {
                    self.follow_no_further();
                }
                let at = self.begin(t, host, request, by);
                let submitter = by.thread;
                self.open.insert(key, OpenRequest { at, is_issued: issued, start: t, submitter, overtaken: None });
                self.leaders.entry((host, request.device)).or_default().push_back(Leader { at, sector: key.2 });
            }
        }
        None
    }

    /// Add the row of a request that begins. Returns its position.
    pub fn begin(&mut self, t: Timestamp, host: HostId, request: &BlockRequest, by: Submitter) -> u32 {
        self.rows.push(DiskRequest {
            host,
            device: request.device,
            sector: request.sector,
            bytes: request.bytes,
            write: request.write,
            submitter: by.thread,
            queued_by: by.client,
            span: Span::new(t, Timestamp::MAX),
            is_completed: false,
            issued: t,
        });
        self.stored + self.rows.len() as u32 - 1
    }

    /// The request at a position is handed to the device.
    pub fn issue_row(&mut self, at: u32, t: Timestamp) {
        self.change(at, RequestChange::Issued(t));
    }

    /// The request at a position completes on its device.
    pub fn end_row(&mut self, at: u32, device: (HostId, u32), t: Timestamp) {
        self.change(at, RequestChange::Completed(t));
        let Some(leaders) = self.leaders.get_mut(&device) else { return };
        while let Some(leader) = leaders.front().copied().filter(|leader| leader.at <= at) {
            leaders.pop_front();
            let open = self.open.get_mut(&(device.0, device.1, leader.sector));
            if let Some(open) = open.filter(|open| open.at == leader.at) {
                open.overtaken = Some(t);
            }
        }
        if leaders.is_empty() {
            self.leaders.remove(&device);
        }
    }

    /// What is known of the ends of all open requests.
    fn follow_no_further(&mut self) {
        self.leaders.clear();
        for (_, OpenRequest { at, overtaken, .. }) in std::mem::take(&mut self.open) {
            match overtaken {
                Some(t) => self.change(at, RequestChange::Ended(t)),
                None => self.unended.push(at),
            }
        }
    }

    /// True if a request is on its way at the same place.
    pub fn is_open(&self, host: HostId, request: &BlockRequest) -> bool {
        self.open.contains_key(&key(host, request))
    }

    /// True if this many events will not fill the table.
    pub fn has_room(&self, events: usize) -> bool {
        self.open.len() + events < self.bounds.open
    }

    fn change(&mut self, at: u32, change: RequestChange) {
        match at.checked_sub(self.stored).map(|row| self.rows.get_mut(row as usize)) {
            Some(row) => row.into_iter().for_each(|row| change.apply(row)),
            None => self.late.push(StoredChange { at, change }),
        }
    }

    /// Move the rows before the oldest open request to the store, if there are `least` or more; where that leaves too
    /// many, the oldest move as they are.
    pub fn seal(&mut self, least: usize, into: &mut LineStoreBuilder<DiskRequest>) {
        let used = self.open.len().max(KEPT_OPEN);
        if self.open.capacity() > 4 * used {
            self.open.shrink_to(2 * used);
        }
        let all = self.rows.len();
        if all < least {
            return;
        }
        let first_open = |from: usize| {
            let open = self.rows.iter().skip(from).position(|row| row.span.end == Timestamp::MAX);
            open.map_or(all, |after| from + after)
        };
        let mut settled = first_open(0);
        if all - settled > self.bounds.rows {
            settled = first_open(all - self.bounds.rows);
        }
        if settled >= least {
            move_first(&mut self.rows, settled, 0, into);
            self.stored += settled as u32;
        }
    }

    /// The rows that are not in the store, by start, and what becomes of those that are. `until` returns the end of a
    /// request that was not completed.
    pub fn close(mut self, until: impl Fn(&DiskRequest) -> Timestamp) -> (Vec<DiskRequest>, LateRequests) {
        self.follow_no_further();
        self.unended.sort_unstable();
        self.late.sort_unstable();
        let here = self.unended.split_off(self.unended.partition_point(|at| *at < self.stored));
        for at in here {
            if let Some(row) = self.rows.get_mut((at - self.stored) as usize) {
                row.span.end = until(row);
            }
        }
        (self.rows, LateRequests { unended: self.unended, changes: self.late })
    }
}

impl LateRequests {
    /// Make the changes in the leaves; `until` returns the end of a request that was not completed.
    pub fn apply(&self, requests: &mut LineStore<DiskRequest>, until: impl Fn(&DiskRequest) -> Timestamp) {
        let place = |at: u32| RowPlace { line: 0, row: at as usize };
        for some in self.unended.chunks(AT_ONCE) {
            let places: Vec<RowPlace> = some.iter().map(|at| place(*at)).collect();
            requests.rewrite(&places, |_, request| request.span.end = until(request));
        }
        for some in self.changes.chunks(AT_ONCE) {
            let places: Vec<RowPlace> = some.iter().map(|change| place(change.at)).collect();
            requests.rewrite(&places, |at, request| {
                some.get(at).into_iter().for_each(|of| of.change.apply(request));
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_completes_a_flush_whose_completion_names_no_sector() {
        let mut requests = Requests::default();
        let mut step = |t, step, sector| {
            let request = BlockRequest { device: 8, sector, bytes: 0, write: false, tid: None };
            let by = Submitter { thread: Some(ThreadId::at(3)), client: None };
            requests.step(Timestamp::new(t), HostId::at(0), step, &request, by, |_| None)
        };
        step(10, RequestStep::Issue, 0);
        assert_eq!(step(30, RequestStep::Complete, u64::MAX), Some(ThreadId::at(3)));
        step(50, RequestStep::Issue, 0);
        assert_eq!(step(80, RequestStep::Complete, u64::MAX), Some(ThreadId::at(3)));
        let (all, _) = requests.close(|_| Timestamp::new(90));
        assert_eq!(all.iter().map(|r| (r.span.start.ns(), r.span.end.ns())).collect::<Vec<_>>(), [(10, 30), (50, 80)]);
    }

    #[test]
    fn step_follows_a_request_until_its_completion() {
        let mut requests = Requests::default();
        let request = BlockRequest { device: 8, sector: 64, bytes: 4096, write: true, tid: None };
        let host = HostId::at(0);
        let unknown = Submitter::default();
        let by = |thread| Submitter { thread: Some(ThreadId::from_raw(thread)), client: None };
        let mut step = |t, step, by, lost: Option<i64>| {
            requests.step(Timestamp::new(t), host, step, &request, by, |_| lost.map(Timestamp::new))
        };
        assert_eq!(step(5, RequestStep::Complete, unknown, None), None);
        step(10, RequestStep::Insert, by(3), None);
        step(20, RequestStep::Issue, unknown, None);
        step(25, RequestStep::Issue, unknown, None);
        assert_eq!(step(40, RequestStep::Complete, unknown, None), Some(ThreadId::at(3)));
        step(50, RequestStep::Issue, by(4), None);
        // Its completion was lost.
        step(70, RequestStep::Issue, by(5), Some(55));
        let (all, _) = requests.close(|_| Timestamp::new(90));
        let seen: Vec<_> =
            all.iter().map(|r| (r.span.start.ns(), r.issued.ns(), r.span.end.ns(), r.submitter)).collect();
        let wanted = [(10, 20, 40, 3), (50, 50, 55, 4), (70, 70, 90, 5)];
        assert_eq!(seen, wanted.map(|(a, b, c, by)| (a, b, c, Some(ThreadId::from_raw(by)))));
    }

    #[test]
    fn requests_that_others_overtake_end_there_unless_they_complete() {
        let mut requests = Requests::default();
        let mut step = |t, step, device, sector| {
            let request = BlockRequest { device, sector, bytes: 512, write: false, tid: None };
            let (t, by) = (Timestamp::new(t), Submitter::default());
            requests.step(t, HostId::at(0), step, &request, by, |_| None);
        };
        let (issue, complete) = (RequestStep::Issue, RequestStep::Complete);
        for (t, sector) in [(10, 1), (11, 2), (12, 3), (13, 4)] {
            step(t, issue, 8, sector);
        }
        step(14, issue, 9, 1);
        // The third overtakes the first two, of which the second completes later; the fourth stays open.
        step(20, complete, 8, 3);
        step(30, complete, 8, 2);
        let (all, _) = requests.close(|_| Timestamp::new(90));
        let ends = [(20, false), (30, true), (20, true), (90, false), (90, false)];
        assert_eq!(all.iter().map(|r| (r.span.end.ns(), r.is_completed)).collect::<Vec<_>>(), ends);
    }
}
