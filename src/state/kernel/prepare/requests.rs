//! The block requests of a chunk.
//!
//! In: block events. Out: those of requests that begin on a held CPU and are followed from there on get a number
//! ([`RequestEvent`]); all others are left. Cost: a hash look-up for each event.

use super::Preparation;
use crate::base::time::Timestamp;
use crate::event::kind::{Event, RequestId, RequestStep};
use crate::event::stack::RawStackId;
use crate::reading::batch::Batch;
use crate::state::kernel::chunk_requests::{ChunkRequest, RequestEvent};
use crate::state::kernel::cpu::CpuId;
use crate::state::kernel::prepared::Due;
use crate::state::kernel::requests::{RequestKey, key};
use crate::state::timeline::{HostId, ThreadId};
use foldhash::HashMap;
use std::collections::hash_map::Entry;

/// A request that is followed.
#[derive(Clone, Copy, Debug)]
struct Followed {
    number: u32,
    start: Timestamp,
}

/// The requests that are open and followed.
#[derive(Debug, Default)]
pub(super) struct OpenRequests(HashMap<RequestKey, Followed>);

impl OpenRequests {
    /// An event of a request is left: the request is not followed any more.
    pub fn leave(&mut self, batch: &Batch, host: HostId, request: RequestId) {
        if let Some(request) = batch.request_of(request) {
            self.0.remove(&key(host, request));
        }
    }
}

impl Preparation<'_> {
    /// An event of a request on a held CPU, where `thread` runs.
    pub(super) fn block(
        &mut self,
        c: CpuId,
        thread: ThreadId,
        event: &Event,
        (step, id): (RequestStep, RequestId),
        chain: Option<RawStackId>,
    ) {
        let completes = step == RequestStep::Complete;
        if completes {
            self.cpus[c.index()].completed = Some(event.time);
        }
        let request = self.batch.request_of(id);
        let named = request.and_then(|request| request.tid).filter(|_| !completes);
        if named.is_some_and(|tid| tid != self.machine.threads[thread].thread.tid) {
            return self.mirror(c, event, chain, |machine| machine.cpus[c].see(event.time));
        }
        let host = self.machine.cpus[c].host;
        let number = request.and_then(|request| self.request_number(key(host, request), event.time, completes));
        match number {
            Some(number) => {
                self.confirm(c, event);
                self.due(Due::Block(RequestEvent { number, request: id, step, cpu: c, by: thread, t: event.time }));
            }
            None => self.leave_on(c, thread, event),
        }
        self.machine.cpus[c].see(event.time);
    }

    /// The number of a request that is followed; one that does not complete begins to be.
    fn request_number(&mut self, key: RequestKey, t: Timestamp, completes: bool) -> Option<u32> {
        let (open, all) = (&mut self.requests.0, &mut self.out.requests);
        if completes {
            let number = open.remove(&key)?.number;
            all.get_mut(number as usize)?.completes = true;
            return Some(number);
        }
        match open.entry(key) {
            Entry::Occupied(known) => {
                // Where its completion may be lost, it may be another one that begins.
                let Followed { number, start } = *known.get();
                self.machine.losses.first(key.0, None, start, t).is_none().then_some(number)
            }
            Entry::Vacant(new) => {
                let number = all.len() as u32;
                all.push(ChunkRequest::default());
                new.insert(Followed { number, start: t });
                Some(number)
            }
        }
    }
}
