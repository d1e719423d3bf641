//! Block requests from insertion to completion, matched by device and first sector.

use crate::base::time::{Span, Timestamp};
use crate::event::kind::RequestStep;
use crate::reading::batch::BlockRequest;
use crate::state::timeline::{DiskRequest, HostId, ThreadId};
use foldhash::HashMap;

/// Who hands a request in.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Submitter {
    pub thread: Option<ThreadId>,
    /// Whose queued work the thread runs.
    pub for_whom: Option<ThreadId>,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Requests {
    all: Vec<DiskRequest>,
    /// Position of the open request, and whether it was handed to the device.
    open: HashMap<(HostId, u32, u64), (usize, bool)>,
}

impl Requests {
    /// A request moves on. A completion whose beginning was not recorded is left. `lost` says from when on events were
    /// lost since a time: a request that begins again after that has ended there at the latest. Gives who had submitted
    /// what completes.
    pub fn step(
        &mut self,
        t: Timestamp,
        host: HostId,
        step: RequestStep,
        request: &BlockRequest,
        by: Submitter,
        lost: impl Fn(Timestamp) -> Option<Timestamp>,
    ) -> Option<ThreadId> {
        let key = (host, request.device, request.sector);
        if step == RequestStep::Complete {
            let (at, _) = self.open.remove(&key)?;
            self.all[at].span.end = t;
            return self.all[at].submitter;
        }
        if let Some((at, _)) = self.open.get(&key)
            && let Some(lost) = lost(self.all[*at].span.start)
        {
            self.all[*at].span.end = lost;
            self.open.remove(&key);
        }
        let issued = step == RequestStep::Issue;
        match self.open.get_mut(&key) {
            Some((at, was_issued)) => {
                // Handed over again after a requeue, or one of several flushes: the first counts.
                if issued && !*was_issued {
                    self.all[*at].issued = t;
                    *was_issued = true;
                }
            }
            None => {
                self.open.insert(key, (self.all.len(), issued));
                self.all.push(DiskRequest {
                    host,
                    device: request.device,
                    sector: request.sector,
                    bytes: request.bytes,
                    write: request.write,
                    submitter: by.thread,
                    queued_by: by.for_whom,
                    span: Span::new(t, Timestamp::MAX),
                    issued: t,
                });
            }
        }
        None
    }

    /// All requests by start; those still open end with the recording, or where events were lost.
    pub fn close(mut self, end: Timestamp, lost: impl Fn(HostId, Timestamp) -> Option<Timestamp>) -> Vec<DiskRequest> {
        for (at, _) in self.open.values() {
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
    fn a_request_is_queued_issued_and_done() {
        let mut requests = Requests::default();
        let request = BlockRequest { device: 8, sector: 64, bytes: 4096, write: true, tid: None };
        let host = HostId::at(0);
        let nobody = Submitter::default();
        let by = |thread| Submitter { thread: Some(ThreadId::from_raw(thread)), for_whom: None };
        let mut step = |t, step, by, lost| requests.step(t, host, step, &request, by, |_| lost);
        assert_eq!(step(5, RequestStep::Complete, nobody, None), None);
        step(10, RequestStep::Insert, by(3), None);
        step(20, RequestStep::Issue, nobody, None);
        step(25, RequestStep::Issue, nobody, None);
        assert_eq!(step(40, RequestStep::Complete, nobody, None), Some(ThreadId::at(3)));
        step(50, RequestStep::Issue, by(4), None);
        // Its completion was lost.
        step(70, RequestStep::Issue, by(5), Some(55));
        let all = requests.close(90, |_, start| (start > 80).then_some(85));
        let seen: Vec<_> = all.iter().map(|r| (r.span.start, r.issued, r.span.end, r.submitter)).collect();
        let wanted = [(10, 20, 40, 3), (50, 50, 55, 4), (70, 70, 90, 5)];
        assert_eq!(seen, wanted.map(|(a, b, c, by)| (a, b, c, Some(ThreadId::from_raw(by)))));
    }
}
