//! A batch: the typed events of one chunk in their total order, and the tables that their ids point into.
//!
//! One worker fills it, the analysis that joins the chunks reads it once. It holds each distinct text, context and
//! stack once. [`Batch::merge`] is the k-way merge of ALGORITHMS.md section 1: cost O(n log k), close to O(n) with few
//! streams because it stays with the stream that holds the smallest head for as long as that is the smallest.

use crate::base::names::{NameId, Names};
use crate::event::image::ImageChange;
use crate::event::kind::{Event, ImageId, MarkId, PacketId, ProcessId, RequestId, TextId, ThreadContextId, WeightId};
use crate::event::stack::RawStacks;
use foldhash::HashMap;

/// The contexts that identify the running thread. Ids with a `v` are those of the innermost namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ThreadContext {
    /// Thread id.
    pub tid: Option<i32>,
    /// Process id.
    pub pid: Option<i32>,
    /// Parent process id.
    pub ppid: Option<i32>,
    /// Thread id as the process sees it.
    pub vtid: Option<i32>,
    /// Process id as the process sees it.
    pub vpid: Option<i32>,
    /// Name of the thread.
    pub name: Option<TextId>,
}

/// Addresses and ports of a connection, in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Flow {
    /// Address of the sender; IPv4 in the low 32 bits.
    pub source: u128,
    /// Address of the receiver.
    pub dest: u128,
    /// Port of the sender.
    pub source_port: u16,
    /// Port of the receiver.
    pub dest_port: u16,
}

impl Flow {
    /// True for a flow that never leaves its host: loopback addresses mean another machine on each.
    pub fn is_loopback(&self) -> bool {
        self.dest == 1 || self.dest >> 32 == 0 && self.dest >> 24 == 127
    }
}

/// The packet of a network event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkPacket {
    /// Address of the buffer in the kernel.
    pub buffer: u64,
    /// TCP header, where it was recorded.
    pub tcp: Option<TcpSegment>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TcpSegment {
    /// Connection and direction.
    pub flow: Flow,
    /// Sequence number of its first byte.
    pub seq: u32,
    /// Sequence number acknowledged so far.
    pub ack: u32,
    pub flags: u16,
    /// Bytes of payload.
    pub len: u32,
}

/// The request of a block event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockRequest {
    /// Device number.
    pub device: u32,
    /// First sector.
    pub sector: u64,
    /// Bytes; 0 where not recorded.
    pub bytes: u64,
    /// True for writes.
    pub write: bool,
    /// The thread that made it, where recorded.
    pub tid: Option<i32>,
}

/// A thread as the state dump names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DumpedThread {
    /// Thread id.
    pub tid: i32,
    /// Process id.
    pub pid: i32,
    /// Parent process id.
    pub ppid: i32,
    /// Its state at that time.
    pub status: DumpStatus,
    /// Its run queue, where recorded.
    pub cpu: Option<u16>,
    pub name: TextId,
}

/// The state of a thread when the state dump named it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpStatus {
    /// Runnable, or not run since its fork; tracers write the latter for any runnable thread.
    Runnable,
    Waiting,
    /// A zombie, or dead.
    Ended,
    /// Running, exiting or unnamed.
    Other,
}

impl DumpStatus {
    /// From `status` of `lttng_statedump_process_state`: 0 unnamed, 1 not run since its fork, 2 runnable, 3 exiting, 4
    /// zombie, 5 waiting, 6 running, 7 dead.
    pub fn of(status: i32) -> DumpStatus {
        match status {
            1 | 2 => DumpStatus::Runnable,
            5 => DumpStatus::Waiting,
            4 | 7 => DumpStatus::Ended,
            _ => DumpStatus::Other,
        }
    }
}

/// Value of a key field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKey {
    Number(i64),
    Text(TextId),
}

/// The values of a delimiting event, without its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkBody {
    /// Position of the task in the list that the pass was given.
    pub task: u32,
    /// True where the event begins an execution, false where it ends one.
    pub begins: bool,
    /// Value of the task's key field.
    pub key: Option<MarkKey>,
    /// Value of the task's type field.
    pub kind: Option<TextId>,
}

/// How much of which event a sample counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightBody {
    /// Name of the event.
    pub event: TextId,
    /// How much of it.
    pub amount: u64,
}

/// A numeric payload field of a delimiting event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkNumber {
    pub name: TextId,
    pub value: i64,
}

/// Typed events with the tables that their ids point into; see the module.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// In total order once merged.
    pub events: Vec<Event>,
    texts: Names,
    contexts: Vec<ThreadContext>,
    context_ids: HashMap<ThreadContext, ThreadContextId>,
    /// Stacks of `Kind::Stack`.
    pub stacks: RawStacks,
    packets: Vec<NetworkPacket>,
    requests: Vec<BlockRequest>,
    processes: Vec<DumpedThread>,
    images: Vec<ImageChange<TextId>>,
    marks: Vec<MarkBody>,
    /// Of samples; one that repeats the last is not stored again.
    weights: Vec<WeightBody>,
    /// The fields of all marks, one after the other.
    mark_fields: Vec<MarkNumber>,
    /// By mark: the number of fields up to its last one.
    mark_ends: Vec<u32>,
}

/// One more row at the end of a table.
fn push<T>(table: &mut Vec<T>, row: T) -> usize {
    table.push(row);
    table.len() - 1
}

impl Batch {
    /// The id of a text.
    pub fn text(&mut self, text: &[u8]) -> TextId {
        TextId::from_raw(self.texts.intern_bytes(text).raw())
    }

    /// The text of an id; `None` for [`TextId::NONE`].
    pub fn text_of(&self, id: TextId) -> Option<&str> {
        (id.index() < self.texts.len()).then(|| self.texts.get(NameId::from_raw(id.raw())))
    }

    /// Number of texts.
    pub fn texts(&self) -> usize {
        self.texts.len()
    }

    /// The id of a context.
    pub fn context_id(&mut self, context: ThreadContext) -> ThreadContextId {
        let next = ThreadContextId::at(self.contexts.len());
        let id = *self.context_ids.entry(context).or_insert(next);
        if id == next {
            self.contexts.push(context);
        }
        id
    }

    /// The context of an id; `None` for [`ThreadContextId::ABSENT`].
    pub fn context(&self, id: ThreadContextId) -> Option<&ThreadContext> {
        self.contexts.get(id.index())
    }

    /// Number of distinct contexts.
    pub fn contexts(&self) -> usize {
        self.contexts.len()
    }

    /// Store a packet.
    pub fn packet(&mut self, packet: NetworkPacket) -> PacketId {
        PacketId::at(push(&mut self.packets, packet))
    }

    pub fn packet_of(&self, id: PacketId) -> Option<&NetworkPacket> {
        self.packets.get(id.index())
    }

    /// Store a block request.
    pub fn request(&mut self, request: BlockRequest) -> RequestId {
        RequestId::at(push(&mut self.requests, request))
    }

    /// A block request.
    pub fn request_of(&self, id: RequestId) -> Option<&BlockRequest> {
        self.requests.get(id.index())
    }

    /// Store a thread of the state dump.
    pub fn process(&mut self, process: DumpedThread) -> ProcessId {
        ProcessId::at(push(&mut self.processes, process))
    }

    /// A thread of the state dump.
    pub fn process_of(&self, id: ProcessId) -> Option<&DumpedThread> {
        self.processes.get(id.index())
    }

    /// Store an image change.
    pub fn image(&mut self, image: ImageChange<TextId>) -> ImageId {
        ImageId::at(push(&mut self.images, image))
    }

    /// An image change.
    pub fn image_of(&self, id: ImageId) -> Option<&ImageChange<TextId>> {
        self.images.get(id.index())
    }

    /// Store the weight of a sample.
    pub fn weight(&mut self, weight: WeightBody) -> WeightId {
        match self.weights.last() {
            Some(last) if *last == weight => WeightId::at(self.weights.len() - 1),
            _ => WeightId::at(push(&mut self.weights, weight)),
        }
    }

    /// The weight of a sample; `None` for [`WeightId::NONE`].
    pub fn weight_of(&self, id: WeightId) -> Option<&WeightBody> {
        self.weights.get(id.index())
    }

    /// Store a field of the mark that is stored next.
    pub fn mark_field(&mut self, name: TextId, value: i64) {
        self.mark_fields.push(MarkNumber { name, value });
    }

    /// Store a mark. Its fields are those stored since the mark before.
    pub fn mark(&mut self, mark: MarkBody) -> MarkId {
        self.mark_ends.push(self.mark_fields.len() as u32);
        MarkId::at(push(&mut self.marks, mark))
    }

    pub fn mark_of(&self, id: MarkId) -> Option<&MarkBody> {
        self.marks.get(id.index())
    }

    /// The fields of a mark.
    pub fn fields_of(&self, id: MarkId) -> &[MarkNumber] {
        let end = |mark: usize| self.mark_ends.get(mark).map_or(0, |end| *end as usize);
        let first = id.index().checked_sub(1).map_or(0, end);
        self.mark_fields.get(first..end(id.index())).unwrap_or(&[])
    }

    /// Merge the events of several streams, given in order of rank, each in order of time, into `events`: the smallest
    /// head by (time, tie class, rank) is always next. The order inside a stream is never changed.
    pub fn merge<S: AsRef<[Event]>>(&mut self, streams: &[S]) {
        const RANK_BITS: u32 = 56;
        // As one number, since many streams mean many comparisons.
        let key = |rank: usize, event: &Event| {
            let time = event.time.ns() as u64 ^ 1 << 63;
            u128::from(time) << 64 | u128::from(event.kind.tie_class()) << RANK_BITS | rank as u128
        };
        let mut left: Vec<&[Event]> = streams.iter().map(AsRef::as_ref).collect();
        self.events.reserve_exact(left.iter().map(|events| events.len()).sum());
        let head = |rank: usize, left: &[&[Event]]| {
            left.get(rank).and_then(|events| events.first()).map_or(u128::MAX, |event| key(rank, event))
        };
        // A tournament: the heads are the leaves, and each node above has the loser of its match. The smallest has lost
        // none, and the next smallest lost to it.
        let leaves = streams.len().next_power_of_two();
        let mut winners: Vec<u128> = (0..2 * leaves).map(|at| head(at.wrapping_sub(leaves), &left)).collect();
        let mut losers = vec![u128::MAX; leaves];
        for node in (1..leaves).rev() {
            let (a, b) = (winners[2 * node], winners[2 * node + 1]);
            (winners[node], losers[node]) = (a.min(b), a.max(b));
        }
        let mut smallest = winners[1];
        while smallest < u128::MAX {
            let rank = smallest as usize & ((1 << RANK_BITS) - 1);
            let matches =
                || std::iter::successors(Some((leaves + rank) / 2), |at| Some(at / 2)).take_while(|at| *at > 0);
            let rival = matches().map(|at| losers[at]).min().unwrap_or(u128::MAX);
            // Follow this stream while no other head is smaller.
            let events = left[rank];
            let run = 1 + events.iter().skip(1).take_while(|event| key(rank, event) <= rival).count();
            let (run, rest) = events.split_at(run);
            self.events.extend_from_slice(run);
            left[rank] = rest;
            smallest = head(rank, &left);
            for at in matches() {
                (losers[at], smallest) = (losers[at].max(smallest), losers[at].min(smallest));
            }
        }
    }
}

/// Sort one stream's events by time unless they are sorted already; events of equal times keep their order.
pub fn sort_by_time(events: &mut [Event]) {
    if !events.is_sorted_by_key(|e| e.time) {
        events.sort_by_key(|e| e.time);
    }
}

/// The texts of a batch as names of a longer-lived table, interned when they are first asked for: in the order of the
/// events, so that ids do not depend on how the events were cut into batches.
pub struct BatchNames<'b> {
    pub batch: &'b Batch,
    names: Vec<Option<NameId>>,
}

impl<'b> BatchNames<'b> {
    /// No text has been asked for.
    pub fn new(batch: &'b Batch) -> BatchNames<'b> {
        BatchNames { batch, names: vec![None; batch.texts()] }
    }

    /// The name that a text has been given; `None` for one that was not asked for.
    pub fn known(&self, id: TextId) -> Option<NameId> {
        *self.names.get(id.index())?
    }

    /// The name of a text in `table`, the same table each time; `None` for [`TextId::NONE`].
    pub fn name(&mut self, table: &mut Names, id: TextId) -> Option<NameId> {
        let slot = self.names.get_mut(id.index())?;
        if slot.is_none() {
            *slot = self.batch.text_of(id).map(|text| table.intern(text));
        }
        *slot
    }
}

#[cfg(test)]
mod tests;
