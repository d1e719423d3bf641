//! The block requests of a chunk.
//!
//! In: block events. Out: those of requests that begin on a held CPU and are followed from there on get a number
//! ([`RequestEvent`]); all others are left. Cost: a hash look-up for each event.

use super::Preparation;
use crate::base::time::Timestamp;
use crate::event::host::HostId;
use crate::event::kind::{Event, RequestId, RequestStep};
use crate::event::stack::RawStackId;
use crate::kernel::chunk_requests::{ChunkRequest, RequestEvent};
use crate::kernel::cpu::CpuId;
use crate::kernel::prepared::Due;
use crate::kernel::requests::{RequestKey, key};
use crate::reading::batch::Batch;
use crate::timeline::ThreadId;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::kind::{Kind, LossSource, TextId, ThreadContextId};
    use crate::event::remark::Priority;
    use crate::kernel::prepare::tests::both;
    use crate::reading::batch::BlockRequest;

    /// A request that begins again after a loss is another one: the completion of the first was lost.
    #[test]
    fn requests_that_begin_again_after_a_loss_are_two() {
        let mut batch = Batch::default();
        let request = BlockRequest { device: 8, sector: 64, bytes: 512, write: false, tid: None };
        let request = batch.request(request);
        let [name, call] = ["thread", "read"].map(|text| batch.text(text.as_bytes()));
        let block = |step| Kind::Block { step, request };
        let switch = |prev, next| Kind::Switch {
            prev,
            next,
            prev_state: 0,
            prev_name: name,
            next_name: name,
            priorities: [Priority::UNKNOWN; 2],
        };
        let lost =
            |t| Kind::Lost { source: LossSource::Reported, until: Timestamp::new(t), resumes: Timestamp::new(t) };
        let kinds = [
            (0, switch(0, 1)),
            (0, Kind::CallEntry { name: call, descriptor: None }),
            (0, block(RequestStep::Issue)),
            (1, lost(4)),
            (0, switch(1, 2)),
            (0, Kind::CallEntry { name: call, descriptor: None }),
            (0, block(RequestStep::Issue)),
            (0, block(RequestStep::Complete)),
            (0, Kind::CallExit { name: TextId::NONE, ret: 0 }),
        ];
        for (number, (cpu, kind)) in (0..).zip(kinds) {
            let time = Timestamp::new(number);
            batch.events.push(Event { time, who: ThreadContextId::ABSENT, trace: 0, cpu, kind });
        }
        let [stepped, prepared] = both(vec![batch], false, 1);
        assert_eq!(stepped, prepared);
        assert_eq!(stepped.matches("DiskRequest {").count(), 2, "{stepped}");
    }
}
