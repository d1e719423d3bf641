//! What a worker has prepared of a chunk.
//!
//! The events that only the machine can step through are left; what the worker's own machine has made of the others,
//! slots and rows of threads and CPUs, has a place among these. All ids (names, threads, CPUs, senders of packets) are
//! the worker's. The machine takes it in `join`.

use super::chunk_requests::{ChunkRequest, RequestEvent};
use super::cpu::{CpuId, CpuSlots};
use super::fork::NewThread;
use super::packet_pairs::PacketPairs;
use super::prepare::FirstThread;
use super::remarks::BatchRemarks;
use super::slots::{KnownSlots, ThreadSlots};
use super::thread_state::ThreadState;
use super::worker_rows::PreparedRows;
use crate::base::heap::block;
use crate::base::names::NameId;
use crate::base::time::Timestamp;
use crate::event::host::HostId;
use crate::event::kind::{PacketId, TextId, ThreadContextId};
use crate::event::stack::RawStackId;
use crate::model::facts::Quality;
use crate::timeline::{ThreadId, WakeStack, Waker};
use get_size2::GetSize;
use std::collections::BTreeSet;
use std::ops::Range;

/// Ids from here on are no threads of the worker's machine: they are the unknown senders of packets, by number.
const SENDERS: u32 = 1 << 31;

/// The sender of a packet, by its number among the receives of a chunk.
pub(super) fn sender_of(receive: usize) -> Waker {
    Waker { thread: ThreadId::from_raw(SENDERS | receive as u32), at: Timestamp::MIN }
}

/// The number of an unknown sender.
pub(super) fn sender_number(thread: ThreadId) -> usize {
    (thread.raw() & !SENDERS) as usize
}

/// True for an id that is the number of an unknown sender.
pub(super) fn is_sender(thread: ThreadId) -> bool {
    thread.raw() & SENDERS != 0
}

/// A thing that the machine does at a place among the events that are left. Threads and CPUs are the worker's.
#[derive(Clone, Copy, Debug)]
pub(super) enum Due {
    /// A text becomes a name: names are numbered in the order of all events.
    Name {
        text: TextId,
        local: NameId,
    },
    /// A stack gets its id: stacks are numbered in the order of all events.
    Stack(RawStackId),
    /// The call chain that was recorded with the wake-up that follows.
    WakeChain(RawStackId),
    /// One of the moments at which rows may be sealed; the worker has made rows of this many events since the last one.
    Seal {
        events: u32,
    },
    /// The worker's next thread is the one that runs on a CPU.
    Hold {
        cpu: CpuId,
    },
    /// The worker's next thread gets a CPU.
    GetCpu {
        cpu: CpuId,
        t: Timestamp,
        tid: i32,
        name: TextId,
        /// When the CPU left its idle state, where it was idle.
        left_idle_state: Option<Timestamp>,
    },
    /// The worker's next thread is its next child.
    Fork,
    /// A context describes a thread.
    Describe {
        thread: ThreadId,
        who: ThreadContextId,
        t: Timestamp,
    },
    /// The next part of a thread.
    Thread,
    /// The next part of a CPU.
    Cpu,
    /// The event that follows happens on this thread.
    On(ThreadId),
    Send {
        host: HostId,
        packet: PacketId,
        /// The worker's number of the packet's route.
        route: u32,
    },
    Receive {
        host: HostId,
        packet: PacketId,
        route: u32,
    },
    /// A block request moves on.
    Block(RequestEvent),
    /// A thread has no more work to do.
    Rest {
        thread: ThreadId,
        t: Timestamp,
    },
    /// A wake-up had a call chain.
    Woke(WakeStack),
    /// A thread got another CPU than the one in whose queue its waker put it.
    QueuedElsewhere(Timestamp),
}

/// A thing at its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct DueAt {
    /// Number of events before it.
    pub at: u32,
    pub due: Due,
}

/// What events have made of a thread since its last part.
#[derive(Clone, Debug)]
pub(super) struct ThreadPart {
    pub thread: ThreadId,
    pub slots: ThreadSlots,
    pub known: KnownSlots,
    pub segments: Range<usize>,
    pub calls: Range<usize>,
    pub samples: Range<usize>,
    pub names: Range<usize>,
    /// Neighbouring segments may turn out to be one.
    pub may_join: bool,
}

/// A thread that a held one has created.
#[derive(Clone, Debug)]
pub(super) struct Child {
    pub t: Timestamp,
    pub parent: ThreadId,
    /// The process of the parent, where the chunk has named it.
    pub pid: Option<i32>,
    pub new: NewThread,
    /// Its state at first: made by the worker, so that its memory is there.
    pub state: Box<ThreadState>,
}

/// What events have made of a CPU since its last part.
#[derive(Clone, Debug)]
pub(super) struct CpuPart {
    pub cpu: CpuId,
    pub slots: CpuSlots,
    /// The soft interrupts of which the worker does not know whether they were raised, one bit each.
    pub unknown_raised: u32,
    pub runs: Range<usize>,
}

/// Without what the states own: they have no rows yet.
fn of_children(children: &Vec<Child>) -> usize {
    block(children) + children.len() * size_of::<ThreadState>()
}

/// What a worker has prepared of a batch, besides the events that it left there.
#[derive(Clone, Debug, Default, GetSize)]
pub(super) struct Prepared {
    /// By place.
    #[get_size(size_fn = block)]
    pub due: Vec<DueAt>,
    /// Number of names that the worker's machine had at first, as this one had.
    pub own_names: usize,
    /// Number of names and of threads that it has in the end.
    pub names: usize,
    pub threads: usize,
    /// By the worker's ids.
    #[get_size(size_fn = block)]
    pub cpus: Vec<LocalCpu>,
    /// Of CPUs, one at most for each.
    #[get_size(size_fn = block)]
    pub first_threads: Vec<FirstThread>,
    #[get_size(size_fn = of_children)]
    pub children: Vec<Child>,
    #[get_size(size_fn = block)]
    pub thread_parts: Vec<ThreadPart>,
    #[get_size(size_fn = block)]
    pub cpu_parts: Vec<CpuPart>,
    pub packets: PacketPairs,
    /// By number.
    #[get_size(size_fn = block)]
    pub requests: Vec<ChunkRequest>,
    /// The rows of all parts.
    pub rows: PreparedRows,
    /// By host.
    pub quality: Vec<Quality>,
    pub remarks: BatchRemarks,
    pub unrecorded: BTreeSet<(HostId, u32)>,
    /// Time of the first event.
    pub start: Option<Timestamp>,
    /// Time of the last event that the worker stepped through.
    pub end: Option<Timestamp>,
    /// Number of events since the last moment for sealing.
    pub unsealed: u32,
}

/// A CPU of the worker's machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LocalCpu {
    pub host: HostId,
    pub number: u16,
}

impl Prepared {
    /// Its memory, for another batch.
    pub fn emptied(mut self) -> Prepared {
        self.due.clear();
        self.cpus.clear();
        self.first_threads.clear();
        self.children.clear();
        self.requests.clear();
        self.thread_parts.clear();
        self.cpu_parts.clear();
        let packets = self.packets.emptied();
        let (quality, remarks, unrecorded) = (Vec::new(), BatchRemarks::default(), BTreeSet::new());
        Prepared { packets, quality, remarks, unrecorded, start: None, end: None, unsealed: 0, ..self }
    }
}
