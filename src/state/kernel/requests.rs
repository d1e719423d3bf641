//! Block requests from insertion to completion, matched by device and first sector.

use crate::base::time::{Ns, Span};
use crate::event::batch::Request;
use crate::event::kind::RequestStep;
use crate::state::recording::{DiskRequest, HostId, ThreadId};
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
    /// A request moves on. A completion whose beginning was not recorded is left.
    pub fn step(&mut self, t: Ns, host: HostId, step: RequestStep, request: &Request, by: Submitter) {
        let key = (host, request.device, request.sector);
        if step == RequestStep::Complete {
            if let Some((at, _)) = self.open.remove(&key) {
                self.all[at].span.end = t;
            }
            return;
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
                    span: Span::new(t, Ns::MAX),
                    issued: t,
                });
            }
        }
    }

    /// All requests by start; those still open end with the recording.
    pub fn close(mut self, end: Ns) -> Vec<DiskRequest> {
        for request in &mut self.all {
            request.span.end = request.span.end.min(end);
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
        let request = Request { device: 8, sector: 64, bytes: 4096, write: true, tid: None };
        let host = HostId(0);
        let nobody = Submitter::default();
        let by = |thread| Submitter { thread: Some(ThreadId(thread)), for_whom: None };
        requests.step(5, host, RequestStep::Complete, &request, nobody);
        requests.step(10, host, RequestStep::Insert, &request, by(3));
        requests.step(20, host, RequestStep::Issue, &request, nobody);
        requests.step(25, host, RequestStep::Issue, &request, nobody);
        requests.step(40, host, RequestStep::Complete, &request, nobody);
        requests.step(50, host, RequestStep::Issue, &request, by(4));
        let all = requests.close(60);
        let seen: Vec<_> = all.iter().map(|r| (r.span.start, r.issued, r.span.end, r.submitter)).collect();
        assert_eq!(seen, [(10, 20, 40, Some(ThreadId(3))), (50, 50, 60, Some(ThreadId(4)))]);
    }
}
