//! The other end of a socket, where the recording has it, and when it sent.
//!
//! In: which thread woke one of a process that waited for data on a socket, and when the process moved data over it.
//! Out: when data had been sent whose arrival woke no thread. A thread that wakes a waiting one inside of a call that
//! sends has, by that descriptor, the other end of its socket. What it sends there later arrives in the same moment,
//! also while the process is busy, stopped or frozen: then no thread waits, or another one ends the wait.
//!
//! The first send is meant after all data that the process has moved over the socket: an answer that is on its way and
//! a request that was sent ahead of it begin no exchange. Where several threads or descriptors send to a socket (as to
//! one for datagrams) nothing is known. A descriptor that was closed is forgotten. Cost: a search in the calls of the
//! other thread and at most [`LOOKED_AT`] of them for each receive.

use super::process_calls::{CallMeaning, CallMeanings};
use crate::base::time::Timestamp;
use crate::event::descriptor::{Descriptor, DescriptorUse};
use crate::timeline::reader::{RowCursor, RowReader};
use crate::timeline::{Call, ThreadId, Waker};
use foldhash::HashMap;

/// Calls of the other thread that are looked at for the send of one receive.
const LOOKED_AT: usize = 256;
/// One of this many wake-ups may be by another thread's write: what lets a frozen thread go on writes, too.
const ALONE: u32 = 8;

/// What is known of a socket.
#[derive(Clone, Copy, Debug, Default)]
struct Socket {
    /// The thread at the other end, and its descriptor.
    peer: Option<(ThreadId, Descriptor)>,
    /// Wake-ups by what that one or another thread sent or wrote, and those of that one beyond those of others.
    woken: u32,
    votes: u32,
    /// Until when the process has moved data over it.
    moved: Option<Timestamp>,
}

/// The other ends of the sockets of a process.
pub(super) struct Peers<'r> {
    reader: &'r RowReader<'r>,
    meanings: &'r CallMeanings,
    sockets: HashMap<Descriptor, Socket>,
    calls: HashMap<ThreadId, RowCursor<'r, Call>>,
}

impl<'r> Peers<'r> {
    /// None so far.
    pub fn new(reader: &'r RowReader<'_>, meanings: &'r CallMeanings) -> Peers<'r> {
        Peers { reader, meanings, sockets: HashMap::default(), calls: HashMap::default() }
    }

    /// A wake-up ended a wait for the data of a socket.
    pub fn woken(&mut self, of: Descriptor, by: Waker) {
        let call = self.calls_of(by.thread).at(by.at);
        if let Some(to) = call.and_then(|call| self.sends_to(&call)) {
            let (socket, peer) = (self.sockets.entry(of).or_default(), Some((by.thread, to)));
            // A majority vote: the first may have been another thread's.
            if socket.votes == 0 {
                socket.peer = peer;
            }
            let votes = if socket.peer == peer { socket.votes.checked_add(1) } else { socket.votes.checked_sub(1) };
            (socket.votes, socket.woken) = (votes.unwrap_or(socket.votes), socket.woken.saturating_add(1));
        }
    }

    /// The process has moved data over a socket, or has found none, until then.
    pub fn moved(&mut self, over: Descriptor, until: Timestamp) {
        let socket = self.sockets.entry(over).or_default();
        socket.moved = socket.moved.max(Some(until));
    }

    /// What had a descriptor from a number on, or that number alone, is closed.
    pub fn closed(&mut self, descriptor: Descriptor, and_all_above: bool) {
        if and_all_above {
            self.sockets.retain(|of, _| *of < descriptor);
        } else {
            self.sockets.remove(&descriptor);
        }
    }

    /// True where another thread than that at the other end woke one that waited for data.
    pub fn is_by_another(&self, of: Descriptor, waker: Waker) -> bool {
        let peer = self.sockets.get(&of).and_then(|socket| socket.peer);
        peer.is_some_and(|(thread, _)| thread != waker.thread)
    }

    /// When the data had been sent that was there for a receive at `until`.
    pub fn sent(&mut self, to: Descriptor, until: Timestamp) -> Option<Timestamp> {
        let socket = *self.sockets.get(&to)?;
        // Each wake-up by another thread has taken a vote and given none.
        let by_others = socket.woken.saturating_sub(socket.votes) / 2;
        let is_alone = by_others.saturating_mul(ALONE) <= socket.woken;
        let ((thread, by), since) = (socket.peer.filter(|_| is_alone)?, socket.moved?);
        let mut call = self.calls_of(thread).first_from(since);
        for _ in 0..LOOKED_AT {
            let of = call.filter(|call| call.span.start < until)?;
            if self.sends_to(&of) == Some(by) {
                return Some(of.span.end.min(until));
            }
            call = self.calls_of(thread).next_row();
        }
        None
    }

    fn calls_of(&mut self, thread: ThreadId) -> &mut RowCursor<'r, Call> {
        self.calls.entry(thread).or_insert_with(|| self.reader.calls(thread))
    }

    /// The descriptor over which a call has sent data.
    fn sends_to(&self, call: &Call) -> Option<Descriptor> {
        let sends =
            matches!(self.meanings.of(call), Some(CallMeaning::Uses(DescriptorUse::Write | DescriptorUse::Send)));
        let named = call.descriptor.filter(|named| sends && !named.is_addressed())?;
        call.ret.filter(|bytes| *bytes > 0).map(|_| named.descriptor())
    }
}
