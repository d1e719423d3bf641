//! The open files of a process by descriptor, and the conversations over those that are sockets.
//!
//! In: the calls of a process in the order of their effects. Out: its conversations. What a descriptor is follows from
//! the call that made it, in this process or in the one that created it; of one that is older than the recording, from
//! the environment where that was recorded, else from its use: calls that only sockets or only files allow, else data
//! in both directions for which a thread waited. A descriptor that is closed and used again is another open file; one
//! that was duplicated is the same. Cost: a look-up for each call.

use super::arrivals::Arrival;
use super::exchanges::{Exchanges, ExchangesOfSide, Kept, Piece};
use crate::base::time::Timestamp;
use crate::event::derived::ConversationSide;
use crate::event::descriptor::{Descriptor, DescriptorOrigin, DescriptorUse};
use crate::timeline::Call;
use foldhash::HashMap;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Bytes that each read and write of a counter for events moves.
const COUNTER: u64 = 8;

/// How an open file came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// A client connected to this process.
    Accepted,
    /// The process connected to a server.
    Connected,
    /// A socket of which no connection was recorded.
    Socket,
    /// No socket.
    File,
    /// Older than the recording, or made in a manner that shows nothing.
    Unknown,
}

/// What the uses of an open file show.
#[derive(Clone, Copy, Debug, Default)]
struct Evidence {
    socket: bool,
    file: bool,
    /// A thread waited for its data.
    awaited: bool,
    /// Data of another length than that of a counter.
    uncounted: bool,
    /// The first data went to the process.
    asked_first: Option<bool>,
    /// Requests in which the thread that replied had rested, and others.
    rested: [u64; 2],
}

#[derive(Debug)]
struct OpenFile {
    origin: Origin,
    /// Descriptors that name it.
    names: u32,
    evidence: Evidence,
    serves: Exchanges,
    calls: Exchanges,
}

impl OpenFile {
    /// Data of a connection is part of a stream, also where the call had room for the address of the peer.
    fn note_datagram(&mut self, piece: Piece) {
        let is_stream = matches!(self.origin, Origin::Accepted | Origin::Connected);
        self.serves.has_datagrams |= piece.is_datagram && !is_stream;
    }
}

/// The side that the process has in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum KnownSide {
    Server,
    Client,
    /// The conversation looks the same from both.
    Either,
}

/// Conversations that are over.
#[derive(Debug)]
pub(super) struct EndedConversations {
    pub serves: ExchangesOfSide,
    pub calls: ExchangesOfSide,
}

/// What was known of descriptors over time, for the processes that inherit them.
#[derive(Debug, Default)]
pub(super) struct DescriptorLog(HashMap<Descriptor, Vec<(Timestamp, Option<Origin>)>>);

impl DescriptorLog {
    fn note(&mut self, descriptor: Descriptor, t: Timestamp, origin: Option<Origin>) {
        let changes = self.0.entry(descriptor).or_default();
        if changes.last().map(|(_, last)| *last) != Some(origin) {
            changes.push((t, origin));
        }
    }

    /// What a descriptor was at a time: `None` where this process did nothing with it before; closed, or an open file.
    pub fn at(&self, descriptor: Descriptor, t: Timestamp) -> Option<Option<Origin>> {
        let changes = self.0.get(&descriptor)?;
        let before = changes.partition_point(|(time, _)| *time <= t).checked_sub(1)?;
        changes.get(before).map(|(_, origin)| *origin)
    }
}

/// The open files of a process.
pub(super) struct OpenFiles<'i> {
    /// What a descriptor was before the process first used it, at a time.
    before: &'i dyn Fn(Descriptor, Timestamp) -> Option<Origin>,
    by_descriptor: BTreeMap<Descriptor, usize>,
    files: Vec<OpenFile>,
    /// Places in `files` of which no descriptor is left.
    free: Vec<usize>,
    log: Option<DescriptorLog>,
    /// By the side of the process.
    ended: BTreeMap<KnownSide, EndedConversations>,
    kept: Kept<'i>,
    /// By thread: when it last ended a rest.
    rested: Vec<Timestamp>,
    pub accepts: bool,
    pub connects: bool,
}

impl<'i> OpenFiles<'i> {
    /// Of a process with this many threads; it keeps a log where others inherit its descriptors.
    pub fn new(
        threads: usize,
        kept: Kept<'i>,
        before: &'i dyn Fn(Descriptor, Timestamp) -> Option<Origin>,
        has_heirs: bool,
    ) -> OpenFiles<'i> {
        OpenFiles {
            before,
            by_descriptor: BTreeMap::new(),
            files: Vec::new(),
            free: Vec::new(),
            log: has_heirs.then(DescriptorLog::default),
            ended: BTreeMap::new(),
            kept,
            rested: vec![Timestamp::MIN; threads],
            accepts: false,
            connects: false,
        }
    }

    /// A thread has rested.
    pub fn rested(&mut self, thread: usize, until: Timestamp) {
        if let Some(rested) = self.rested.get_mut(thread) {
            *rested = until;
        }
    }

    /// A call has made a descriptor.
    pub fn made(&mut self, call: &Call, origin: DescriptorOrigin) {
        let origin = match origin {
            DescriptorOrigin::Socket => Origin::Socket,
            DescriptorOrigin::File => Origin::File,
        };
        self.open_result(call, origin);
    }

    /// The descriptor that a call returned is that of a new open file.
    fn open_result(&mut self, call: &Call, origin: Origin) {
        if let Some(descriptor) = call.ret.and_then(Descriptor::new) {
            self.close(descriptor, call.span.end);
            self.open(descriptor, origin, call.span.end);
        }
    }

    /// A call has used a descriptor that moves no data.
    pub fn used(&mut self, call: &Call, descriptor: Descriptor, by: DescriptorUse) {
        let succeeded = call.ret.is_some_and(|ret| ret >= 0);
        match by {
            DescriptorUse::Accept => {
                self.accepts = true;
                self.evidence(descriptor, call.span.end).socket = true;
                self.open_result(call, Origin::Accepted);
            }
            DescriptorUse::Connect => {
                self.connects = true;
                self.evidence(descriptor, call.span.start).socket = true;
                let at = self.file(descriptor, call.span.start);
                if let Some(file) = self.files.get_mut(at) {
                    file.origin = Origin::Connected;
                }
                self.log(descriptor, call.span.start, Some(Origin::Connected));
            }
            DescriptorUse::Socket => self.evidence(descriptor, call.span.end).socket |= succeeded,
            DescriptorUse::File => self.evidence(descriptor, call.span.end).file |= succeeded,
            DescriptorUse::Duplicate => {
                let Some(copy) = call.ret.and_then(Descriptor::new).filter(|copy| *copy != descriptor) else { return };
                let at = self.file(descriptor, call.span.end);
                self.close(copy, call.span.end);
                self.by_descriptor.insert(copy, at);
                if let Some(file) = self.files.get_mut(at) {
                    file.names = file.names.saturating_add(1);
                    let origin = file.origin;
                    self.log(copy, call.span.end, Some(origin));
                }
            }
            DescriptorUse::Close => self.close(descriptor, call.span.start),
            DescriptorUse::CloseFrom => {
                let all: Vec<Descriptor> = self.by_descriptor.range(descriptor..).map(|(other, _)| *other).collect();
                all.into_iter().for_each(|other| self.close(other, call.span.start));
            }
            DescriptorUse::Read | DescriptorUse::Write | DescriptorUse::Receive | DescriptorUse::Send => {}
        }
    }

    /// Data has arrived for the process, at thread number `thread`.
    pub fn received(&mut self, descriptor: Descriptor, piece: Piece, arrival: Arrival, by: DescriptorUse) {
        let at = self.file(descriptor, piece.end);
        let Some(file) = self.files.get_mut(at).filter(|file| file.origin != Origin::File) else { return };
        file.note_datagram(piece);
        let evidence = &mut file.evidence;
        evidence.awaited |= arrival.was_awaited;
        evidence.note_data(piece, by == DescriptorUse::Receive, true);
        if file.origin != Origin::Connected {
            file.serves.receive(piece);
        }
        if file.origin != Origin::Accepted {
            file.calls.receive(piece);
        }
    }

    /// The process has sent data, from thread number `thread`.
    pub fn sent(&mut self, descriptor: Descriptor, thread: usize, piece: Piece, by: DescriptorUse) {
        let at = self.file(descriptor, piece.begin);
        let rested = self.rested.get(thread).copied().unwrap_or(Timestamp::MIN);
        let Some(file) = self.files.get_mut(at).filter(|file| file.origin != Origin::File) else { return };
        file.note_datagram(piece);
        file.evidence.note_data(piece, by == DescriptorUse::Send, false);
        if let Some(begun) = file.serves.begun() {
            let [all, others] = &mut file.evidence.rested;
            *(if rested > begun { all } else { others }) += 1;
        }
        if file.origin != Origin::Connected {
            file.serves.send(piece);
        }
        if file.origin != Origin::Accepted {
            file.calls.send(piece);
        }
    }

    /// All conversations by the side of the process, at its end or that of the recording; and what others inherit.
    pub fn finish(mut self) -> (BTreeMap<KnownSide, EndedConversations>, Option<DescriptorLog>) {
        let files = std::mem::take(&mut self.files);
        files.into_iter().filter(|file| file.names > 0).for_each(|file| self.end(file));
        (self.ended, self.log)
    }

    fn evidence(&mut self, descriptor: Descriptor, t: Timestamp) -> &mut Evidence {
        let at = self.file(descriptor, t);
        &mut self.files[at].evidence
    }

    /// The open file of a descriptor: known, inherited, or unknown so far.
    fn file(&mut self, descriptor: Descriptor, t: Timestamp) -> usize {
        match self.by_descriptor.get(&descriptor) {
            Some(at) => *at,
            None => {
                let origin = (self.before)(descriptor, t).unwrap_or(Origin::Unknown);
                self.open(descriptor, origin, t)
            }
        }
    }

    fn open(&mut self, descriptor: Descriptor, origin: Origin, t: Timestamp) -> usize {
        let mut file = OpenFile {
            origin,
            names: 1,
            evidence: Evidence::default(),
            serves: Exchanges::new(ConversationSide::Serves, descriptor, self.kept),
            calls: Exchanges::new(ConversationSide::Calls, descriptor, self.kept),
        };
        // Data without a connection.
        file.serves.has_datagrams = origin == Origin::Socket;
        let at = match self.free.pop() {
            Some(at) => {
                self.files[at] = file;
                at
            }
            None => {
                self.files.push(file);
                self.files.len() - 1
            }
        };
        self.by_descriptor.insert(descriptor, at);
        self.log(descriptor, t, Some(origin));
        at
    }

    fn close(&mut self, descriptor: Descriptor, t: Timestamp) {
        self.log(descriptor, t, None);
        let Some(at) = self.by_descriptor.remove(&descriptor) else { return };
        let Some(file) = self.files.get_mut(at) else { return };
        file.names = file.names.saturating_sub(1);
        if file.names == 0 {
            let unused = || Exchanges::new(ConversationSide::Calls, descriptor, Kept::Nothing);
            let ended = OpenFile {
                origin: file.origin,
                names: 0,
                evidence: file.evidence,
                serves: std::mem::replace(&mut file.serves, unused()),
                calls: std::mem::replace(&mut file.calls, unused()),
            };
            self.free.push(at);
            self.end(ended);
        }
    }

    fn log(&mut self, descriptor: Descriptor, t: Timestamp, origin: Option<Origin>) {
        if let Some(log) = &mut self.log {
            log.note(descriptor, t, origin);
        }
    }

    /// An open file is closed: it was a conversation, or not.
    fn end(&mut self, file: OpenFile) {
        let Some(side) = file.side() else { return };
        let (serves, calls) = (file.serves.close(), file.calls.close());
        match self.ended.entry(side) {
            Entry::Occupied(ended) => {
                let ended = ended.into_mut();
                ended.serves.append(serves);
                ended.calls.append(calls);
            }
            Entry::Vacant(first) => {
                first.insert(EndedConversations { serves, calls });
            }
        }
    }
}

impl Evidence {
    fn note_data(&mut self, piece: Piece, only_sockets: bool, asks: bool) {
        self.socket |= only_sockets;
        self.uncounted |= piece.bytes != COUNTER;
        self.asked_first.get_or_insert(asks);
    }
}

impl OpenFile {
    /// The side of the process in the conversation; `None` where it is none.
    fn side(&self) -> Option<KnownSide> {
        let Evidence { socket, file, awaited, uncounted, asked_first, rested: [rested, others] } = self.evidence;
        match self.origin {
            Origin::File => None,
            Origin::Accepted => Some(KnownSide::Server),
            Origin::Connected => Some(KnownSide::Client),
            Origin::Socket => Some(if asked_first == Some(true) { KnownSide::Server } else { KnownSide::Client }),
            Origin::Unknown if !socket && (file || !awaited || !uncounted) => None,
            // A process that rests before most of what it sends asks on its own account.
            Origin::Unknown if rested > others => Some(KnownSide::Client),
            Origin::Unknown => Some(KnownSide::Either),
        }
    }
}
