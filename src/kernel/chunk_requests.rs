//! Block requests that begin and complete in a chunk, and how the machine takes them.
//!
//! In: the events of requests that a worker has seen begin, by number. Out: the machine's requests after them. A
//! request that completes in its chunk never gets into the table of open ones, if none is open at its place; otherwise
//! the machine steps through its events. Cost: a search for each request.

use super::cpu::{Completion, CpuId};
use super::machine::Machine;
use crate::base::time::Timestamp;
use crate::event::kind::{RequestId, RequestStep};
use crate::reading::batch::BlockRequest;
use crate::timeline::ThreadId;

/// A request that begins in a chunk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ChunkRequest {
    /// The worker has seen its completion.
    pub completes: bool,
}

/// An event of such a request, with the worker's ids.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestEvent {
    /// That of the request.
    pub number: u32,
    pub request: RequestId,
    pub step: RequestStep,
    pub cpu: CpuId,
    /// The thread that runs there.
    pub by: ThreadId,
    pub t: Timestamp,
}

/// How the machine follows a request of a chunk.
#[derive(Clone, Copy, Debug)]
enum Taken {
    InTable,
    /// By the position of its row.
    AtRow {
        at: u32,
        is_issued: bool,
        submitter: ThreadId,
    },
}

/// The requests of a chunk while the machine takes them.
#[derive(Debug)]
pub(super) struct TakenRequests<'b> {
    all: &'b [ChunkRequest],
    /// By number; `None`: not begun yet.
    taken: Vec<Option<Taken>>,
}

impl<'b> TakenRequests<'b> {
    /// No request taken yet. Without room in the chunk every request goes through the table.
    pub fn new(all: &'b [ChunkRequest], has_room: bool) -> TakenRequests<'b> {
        let taken = if has_room { None } else { Some(Taken::InTable) };
        TakenRequests { all, taken: vec![taken; all.len()] }
    }
}

impl Machine {
    /// An event of a request of the chunk.
    pub(super) fn take_block(
        &mut self,
        c: CpuId,
        by: ThreadId,
        event: &RequestEvent,
        request: &BlockRequest,
        requests: &mut TakenRequests<'_>,
    ) {
        let RequestEvent { number, step, t, .. } = *event;
        let Some(taken) = requests.taken.get_mut(number as usize) else { return };
        let is_issue = step == RequestStep::Issue;
        match taken {
            Some(Taken::InTable) => self.block(c, t, step, request, Some(by)),
            Some(Taken::AtRow { at, is_issued, submitter }) => {
                if step == RequestStep::Complete {
                    let device = (self.cpus[c].host, request.device);
                    self.requests.end_row(*at, device, t);
                    self.complete(c, Completion { at: t, submitter: *submitter });
                } else if is_issue && !std::mem::replace(is_issued, true) {
                    self.requests.issue_row(*at, t);
                }
            }
            None => {
                let host = self.cpus[c].host;
                let completes = requests.all.get(number as usize).is_some_and(|request| request.completes);
                if completes && !self.requests.is_open(host, request) {
                    let at = self.requests.begin(t, host, request, self.submitter(Some(by)));
                    *taken = Some(Taken::AtRow { at, is_issued: is_issue, submitter: by });
                } else {
                    *taken = Some(Taken::InTable);
                    self.block(c, t, step, request, Some(by));
                }
            }
        }
    }
}
