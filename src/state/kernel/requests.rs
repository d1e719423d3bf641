//! Block requests from insertion to completion, matched by device and first sector.
//!
//! A flush of the device's cache has no sector. The kernel keeps -1 for it, which `block_rq_issue` shows as 0
//! (`blk_rq_trace_sector`) and `block_rq_complete` as it is; a device has one flush under way at a time.

use crate::base::time::{Span, Timestamp};
use crate::event::kind::RequestStep;
use crate::reading::batch::BlockRequest;
use crate::state::timeline::{DiskRequest, HostId, ThreadId};
use foldhash::HashMap;

/// The sector of a flush that completes.
const OF_A_FLUSH: u64 = u64::MAX;

/// The submitter of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Submitter {
    pub thread: Option<ThreadId>,
    /// The client of the work that this thread is doing.
    pub client: Option<ThreadId>,
}

/// A request on its way.
#[derive(Clone, Copy, Debug)]
struct OpenRequest {
    /// Its position among all requests.
    at: usize,
    /// True once it was handed to the device.
    is_issued: bool,
}

/// All block requests so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Requests {
    all: Vec<DiskRequest>,
    /// By host, device and first sector.
    open: HashMap<(HostId, u32, u64), OpenRequest>,
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
        let sector = if request.sector == OF_A_FLUSH { 0 } else { request.sector };
        let key = (host, request.device, sector);
        if step == RequestStep::Complete {
            let OpenRequest { at, .. } = self.open.remove(&key)?;
            self.all[at].span.end = t;
            return self.all[at].submitter;
        }
        if let Some(OpenRequest { at, .. }) = self.open.get(&key)
            && let Some(lost) = lost(self.all[*at].span.start)
        {
            self.all[*at].span.end = lost;
            self.open.remove(&key);
        }
        let issued = step == RequestStep::Issue;
        match self.open.get_mut(&key) {
            Some(OpenRequest { at, is_issued }) => {
                // Issued again after a requeue, or one of several flushes: the first one counts.
                if issued && !*is_issued {
                    self.all[*at].issued = t;
                    *is_issued = true;
                }
            }
            None => {
                self.open.insert(key, OpenRequest { at: self.all.len(), is_issued: issued });
                self.all.push(DiskRequest {
                    host,
                    device: request.device,
                    sector: request.sector,
                    bytes: request.bytes,
                    write: request.write,
                    submitter: by.thread,
                    queued_by: by.client,
                    span: Span::new(t, Timestamp::MAX),
                    issued: t,
                });
            }
        }
        None
    }

    /// All requests by start; those still open end with the recording, or where events were lost.
    pub fn close(mut self, end: Timestamp, lost: impl Fn(HostId, Timestamp) -> Option<Timestamp>) -> Vec<DiskRequest> {
        for OpenRequest { at, .. } in self.open.values() {
            let request = &mut self.all[*at];
            request.span.end = lost(request.host, request.span.start).unwrap_or(end).min(end);
        }
        self.all
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
        let all = requests.close(Timestamp::new(90), |_, _| None);
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
        let all = requests.close(Timestamp::new(90), |_, start| (start.ns() > 80).then_some(Timestamp::new(85)));
        let seen: Vec<_> =
            all.iter().map(|r| (r.span.start.ns(), r.issued.ns(), r.span.end.ns(), r.submitter)).collect();
        let wanted = [(10, 20, 40, 3), (50, 50, 55, 4), (70, 70, 90, 5)];
        assert_eq!(seen, wanted.map(|(a, b, c, by)| (a, b, c, Some(ThreadId::from_raw(by)))));
    }
}
