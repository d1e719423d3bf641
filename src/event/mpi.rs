//! An OTF2 archive as operations, messages and meetings.
//!
//! In: records per location. Out: [`MpiRun`], and from it the neutral [`Operations`]. An operation is a call in which
//! no other call was made, so that regions which only enclose others (`main`, EZTrace's `Working`) do not hide what
//! they enclose; it works for MPI calls and instrumented functions alike and asks for no paradigm, which EZTrace does
//! not record.
//!
//! Collectives are matched by the members of their communicator, in order, because each rank may give a communicator its
//! own id; messages in [`super::matching`]. Costs: linear; reading parallel over locations, matching over receivers.

use super::matching::{self, Pair};
use super::operation::{Handover, Kind, Meeting, Message, Operation, Operations, Place, Sequence, Via};
use crate::base::names::{NameId, Names};
use crate::base::notice::{Notice, Notices};
use crate::base::time::Ns;
use crate::base::work::{Cancel, Cancelled, Work, in_order};
use crate::input::otf2::{Archive, Envelope, Event, LocalClock, LocationId, class_name};
use foldhash::HashMap;
use std::collections::BTreeMap;

/// Records between two looks at the cancel flag.
const PATIENCE: u64 = 1 << 16;
/// Stands for "in no operation".
pub(super) const NOWHERE: u32 = u32::MAX;

/// One half of a message, as one location recorded it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Half {
    /// When, on the location's own clock (with the archive's own corrections, as all OTF2 tools show it).
    pub time: Ns,
    /// The other location; `None` where the peer could not be resolved (nobody, or no definition).
    pub peer: Option<LocationId>,
    /// Tag.
    pub tag: u32,
    /// Position of the record in its location, from 0.
    pub record: u32,
    /// Position of the record that posted it: `record`, but for non-blocking receives.
    pub posted: u32,
    /// Bytes of the message; more than this holds counts as what it holds.
    pub bytes: u32,
    /// Position of the operation it was recorded in.
    operation: u32,
    /// Of a receive: position of the operation that posted it; of a send: of the one that was left when it was done.
    other: u32,
}

#[derive(Clone, Copy, Debug)]
struct Attendance {
    operation: u32,
    group: usize,
    collective: u8,
}

/// What one location recorded.
#[derive(Clone, Debug, Default)]
pub struct LocationRun {
    /// In order.
    pub operations: Vec<Operation>,
    /// Sends in order.
    pub sends: Vec<Half>,
    /// Receives in posting order.
    pub receives: Vec<Half>,
    /// First and last record, on the archive's clock, in ticks.
    pub ticks: Option<(i128, i128)>,
    /// Event records.
    pub records: u64,
    /// Its clock against the archive's.
    pub clock: LocalClock,
    attendances: Vec<Attendance>,
    per_class: BTreeMap<u8, u64>,
    notices: Notices,
}

/// `stats count` of an archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Event records.
    pub events: u64,
    /// By record type.
    pub per_name: BTreeMap<String, u64>,
    /// Locations.
    pub streams: u64,
    /// Messages sent.
    pub sends: u64,
    /// Messages received.
    pub receives: u64,
    /// Sends and receives that belong together.
    pub matched: u64,
}

/// Everything read from an archive.
#[derive(Clone, Debug, Default)]
pub struct MpiRun {
    /// By [`LocationId`].
    pub locations: Vec<LocationRun>,
    /// Matched messages, by receiving location and posting order.
    pub pairs: Vec<Pair>,
    /// What was wrong.
    pub notices: Notices,
    names: Names,
}

/// Read a whole archive.
pub fn read(archive: &Archive, work: &Work) -> Result<MpiRun, Cancelled> {
    let n = archive.definitions.locations.len();
    let symbols = Symbols::new(archive);
    let mut run = MpiRun { notices: archive.notices.clone(), ..MpiRun::default() };
    work.progress.enter("reading", n as u64);
    in_order(
        work,
        n,
        |i| read_location(archive, &symbols, LocationId::at(i), &work.cancel),
        |_, location| {
            work.progress.step(1);
            run.notices.merge(&location.notices);
            run.locations.push(location);
        },
    )?;
    run.pairs = matching::pairs(&run.locations, work)?;
    run.names = symbols.names;
    // Sends without a receive are no loss: EZTrace does not record the receives of C programs. Nor are receives from
    // nobody (MPI_PROC_NULL).
    let received: usize = run.locations.iter().map(|l| l.receives.iter().filter(|r| r.peer.is_some()).count()).sum();
    run.notices.add(Notice::UnmatchedMessages, (received - run.pairs.len()) as u64, String::new);
    Ok(run)
}

/// Symbols of regions, by position of their name in the definitions.
struct Symbols {
    names: Names,
    by_region_name: Vec<(NameId, Kind)>,
    nameless: (NameId, Kind),
}

impl Symbols {
    fn new(archive: &Archive) -> Self {
        let mut names = Names::default();
        let recorded = &archive.definitions.names;
        let by_region_name = (0..recorded.len())
            .map(|i| {
                let name = readable(recorded.get(NameId::at(i)));
                (names.intern(&name), kind_by_name(&name))
            })
            .collect();
        let nameless = (names.intern("(undefined region)"), Kind::Work);
        Symbols { names, by_region_name, nameless }
    }
}

/// `mpi_waitall_`, the Fortran symbol, is `MPI_Waitall` to people; both occur in one archive.
fn readable(name: &str) -> String {
    let fortran = name.strip_prefix("mpi_").map(|rest| rest.trim_end_matches('_'));
    match fortran.and_then(|rest| rest.split_at_checked(1)) {
        Some((first, rest)) => format!("MPI_{}{rest}", first.to_ascii_uppercase()),
        None => name.to_owned(),
    }
}

/// What a call of this name waits for, where its records do not tell. Names and not region roles, because EZTrace
/// declares every region a plain function.
fn kind_by_name(name: &str) -> Kind {
    let Some(call) = name.strip_prefix("MPI_") else { return Kind::Work };
    let begins = |words: &[&str]| words.iter().any(|w| call.starts_with(w));
    if begins(&["Recv", "Mrecv", "Probe", "Mprobe", "Wait", "Sendrecv"]) {
        Kind::Receive
    } else if begins(&[
        "Barrier", "Bcast", "Gather", "Scatter", "All", "Reduce", "Scan", "Exscan", "Comm_", "Init", "Finalize",
        "Win_", "Cart_", "Graph_", "File_",
    ]) {
        Kind::Collective
    } else {
        Kind::Work
    }
}

/// A region that has begun.
struct Frame {
    region: u32,
    start: Ns,
    /// Another call was made inside.
    encloses: bool,
    sends: usize,
    receives: usize,
    attendances: usize,
}

fn read_location(archive: &Archive, symbols: &Symbols, id: LocationId, cancel: &Cancel) -> LocationRun {
    let files = archive.open_location(id);
    let mut run = LocationRun { clock: files.clock().clone(), notices: Notices::default(), ..LocationRun::default() };
    let mut per_class = [0_u64; 256];
    let mut reader = files.reader();
    let mut location = LocationReader {
        archive,
        symbols,
        run: &mut run,
        frames: Vec::new(),
        open: HashMap::default(),
        sending: HashMap::default(),
    };
    let mut last = Ns::MIN;
    while let Some(record) = reader.next() {
        // What was read of a cancelled run is thrown away whole.
        if location.run.records.is_multiple_of(PATIENCE) && cancel.is_cancelled() {
            break;
        }
        let ticks = location.run.clock.correct(record.ticks);
        let Some(time) = archive.ns(ticks) else {
            let stream = || format!("{} at time {}", stream_name(archive, id), record.ticks);
            location.run.notices.add(Notice::DamagedStream, 1, stream);
            break;
        };
        if time < last {
            location.run.notices.add(Notice::TimeBackwards, 1, || stream_name(archive, id));
        }
        last = last.max(time);
        location.step(last, record.event);
        per_class[usize::from(record.class)] += 1;
        let (first, _) = location.run.ticks.unwrap_or((ticks, ticks));
        location.run.ticks = Some((first, ticks));
        location.run.records += 1;
    }
    run.notices.merge(reader.notices());
    run.notices.merge(&files.notices());
    run.per_class = (0..=u8::MAX).zip(per_class).filter(|(_, n)| *n > 0).collect();
    // Non-overtaking holds in posting order, not in order of completion.
    run.receives.sort_by_key(|r| (r.posted, r.record));
    run
}

fn stream_name(archive: &Archive, id: LocationId) -> String {
    archive.definitions.locations.get(id.index()).map_or_else(String::new, |l| l.name.clone())
}

/// Turns the records of one location into operations and halves of messages.
struct LocationReader<'a> {
    archive: &'a Archive,
    symbols: &'a Symbols,
    run: &'a mut LocationRun,
    frames: Vec<Frame>,
    /// Posting records and operations of open receive requests, by number; the latest is last.
    open: HashMap<u64, Vec<(u32, u32)>>,
    /// Positions of the sends of open send requests, by number.
    sending: HashMap<u64, usize>,
}

impl LocationReader<'_> {
    fn step(&mut self, time: Ns, event: Event) {
        let record = self.run.records as u32;
        match event {
            Event::Enter(region) => {
                if let Some(around) = self.frames.last_mut() {
                    around.encloses = true;
                }
                let (sends, receives) = (self.run.sends.len(), self.run.receives.len());
                let attendances = self.run.attendances.len();
                self.frames.push(Frame { region, start: time, encloses: false, sends, receives, attendances });
            }
            // Expected: the innermost region. Tolerated: another open one (at the end EZTrace closes the outer first).
            // A leave of a region that is not open says nothing about any operation.
            Event::Leave(region) => match self.frames.iter().rposition(|f| f.region == region) {
                Some(at) => {
                    let frame = self.frames.remove(at);
                    self.leave(&frame, time);
                }
                None => self.run.notices.add(Notice::EndWithoutBegin, 1, String::new),
            },
            Event::Send { to, request } => {
                if let Some(number) = request {
                    self.sending.insert(number, self.run.sends.len());
                }
                let done = if request.is_some() { NOWHERE } else { self.operation() };
                self.run.sends.push(self.half(time, to, (record, done), record));
            }
            Event::SendComplete(number) => {
                let (sent, done) = (self.sending.remove(&number), self.operation());
                if let Some(send) = sent.and_then(|at| self.run.sends.get_mut(at)) {
                    send.other = done;
                }
            }
            Event::ReceiveRequest(number) => {
                let posting = (record, self.operation());
                self.open.entry(number).or_default().push(posting);
            }
            Event::RequestCancelled(number) => {
                self.open.get_mut(&number).and_then(Vec::pop);
            }
            Event::Receive { from, request } => {
                let itself = (record, self.operation());
                let posting = request.and_then(|number| self.open.get_mut(&number)?.pop()).unwrap_or(itself);
                self.run.receives.push(self.half(time, from, posting, record));
            }
            Event::CollectiveEnd { operation, communicator, .. } => {
                if let Some((group, members)) = self.archive.definitions.members(communicator)
                    && members.len() > 1
                {
                    self.run.attendances.push(Attendance { operation: NOWHERE, group, collective: operation });
                }
            }
            Event::CollectiveBegin | Event::Other => {}
        }
    }

    /// `posting`: the record that posted it, and the operation that posted it or that is left when it is done.
    fn half(&self, time: Ns, envelope: Envelope, posting: (u32, u32), record: u32) -> Half {
        let peer = self.archive.definitions.peer(envelope.communicator, envelope.peer);
        let (posted, other) = posting;
        let bytes = u32::try_from(envelope.bytes).unwrap_or(u32::MAX);
        Half { time, peer, tag: envelope.tag, record, posted, bytes, operation: NOWHERE, other }
    }

    /// Position of the operation that the innermost region will be, unless a call is made in it.
    fn operation(&self) -> u32 {
        match self.frames.last() {
            Some(frame) if !frame.encloses => self.run.operations.len() as u32,
            _ => NOWHERE,
        }
    }

    fn leave(&mut self, frame: &Frame, end: Ns) {
        if frame.encloses {
            return;
        }
        let run = &mut *self.run;
        let name = self.archive.definitions.region(frame.region);
        let known = name.and_then(|n| self.symbols.by_region_name.get(n.index()));
        let (symbol, mut kind) = *known.unwrap_or(&self.symbols.nameless);
        let position = run.operations.len() as u32;
        // What was recorded since this call began was recorded in it: it enclosed nothing.
        run.sends.iter_mut().skip(frame.sends).for_each(|s| s.operation = position);
        let received = run.receives.len() > frame.receives;
        run.receives.iter_mut().skip(frame.receives).for_each(|r| r.operation = position);
        let met = run.attendances.len() > frame.attendances;
        run.attendances.iter_mut().skip(frame.attendances).for_each(|a| a.operation = position);
        if received {
            kind = Kind::Receive;
        } else if met {
            kind = Kind::Collective;
        }
        // Where regions overlap instead of nesting, the later one begins when the earlier ended.
        let start = run.operations.last().map_or(frame.start, |before| before.end.max(frame.start));
        run.operations.push(Operation { symbol, kind, start, end });
    }
}

impl MpiRun {
    /// Figures for `stats count`.
    pub fn counts(&self) -> Counts {
        let mut counts =
            Counts { streams: self.locations.len() as u64, matched: self.pairs.len() as u64, ..Counts::default() };
        for location in &self.locations {
            counts.events += location.records;
            counts.sends += location.sends.len() as u64;
            counts.receives += location.receives.len() as u64;
            for (class, n) in &location.per_class {
                let name = class_name(*class).map_or_else(|| format!("type {class}"), str::to_owned);
                *counts.per_name.entry(name).or_default() += n;
            }
        }
        counts
    }

    /// The neutral form, for clocks, mining and propagation.
    pub fn into_operations(self, archive: &Archive) -> Operations {
        let mut messages: Vec<Message> = self.pairs.iter().filter_map(|pair| self.message(pair)).collect();
        messages.sort_by_key(|m| (m.to, m.received, m.from));
        let handovers = self.pairs.iter().filter_map(|pair| self.handover(pair)).collect();
        let meetings = self.meetings();
        let sequences = archive.definitions.locations.iter().zip(self.locations);
        let sequences = sequences
            .map(|(l, run)| Sequence {
                stream: l.name.clone(),
                rank: l.rank,
                operations: run.operations,
                ..Sequence::default()
            })
            .collect();
        Operations { names: self.names, sequences, messages, meetings, handovers, ..Operations::default() }
    }

    /// The two halves of a message.
    fn halves(&self, pair: &Pair) -> Option<(&Half, &Half)> {
        let send = self.locations.get(pair.send.0 as usize)?.sends.get(pair.send.1 as usize)?;
        Some((send, self.locations.get(pair.receive.0 as usize)?.receives.get(pair.receive.1 as usize)?))
    }

    fn handover(&self, pair: &Pair) -> Option<Handover> {
        let (send, receive) = self.halves(pair)?;
        let from = Place { stream: pair.send.0, operation: send.operation };
        let posted = Place { stream: pair.receive.0, operation: receive.other };
        let known = ![send.operation, send.other, receive.other].contains(&NOWHERE);
        known.then_some(Handover { from, done: send.other, posted, bytes: send.bytes })
    }

    fn message(&self, pair: &Pair) -> Option<Message> {
        let (send, receive) = self.halves(pair)?;
        Some(Message {
            via: Via::Message,
            from: Place { stream: pair.send.0, operation: send.operation },
            to: Place { stream: pair.receive.0, operation: receive.operation },
            sent: send.time,
            received: receive.time,
        })
    }

    /// The n-th collective operation of each group of members is one meeting.
    fn meetings(&self) -> Vec<Meeting> {
        let mut found: Vec<(u8, Meeting)> = Vec::new();
        let mut positions: HashMap<(usize, u32), usize> = HashMap::default();
        for (stream, location) in (0_u32..).zip(&self.locations) {
            let mut how_many: HashMap<usize, u32> = HashMap::default();
            for a in &location.attendances {
                let n = how_many.entry(a.group).or_default();
                let at = *positions.entry((a.group, *n)).or_insert_with(|| {
                    found.push((a.collective, Meeting { all_wait: all_wait(a.collective), members: Vec::new() }));
                    found.len() - 1
                });
                *n += 1;
                // Another operation under the same number: this location lost records, or counts another way.
                if let Some((collective, meeting)) = found.get_mut(at)
                    && *collective == a.collective
                    && a.operation != NOWHERE
                {
                    meeting.members.push(Place { stream, operation: a.operation });
                }
            }
        }
        found.into_iter().map(|(_, m)| m).filter(|m| m.members.len() > 1).collect()
    }
}

/// OTF2's numbers of the collectives in which every member gets something from every other.
fn all_wait(collective: u8) -> bool {
    const BARRIER: u8 = 0;
    const REDUCE_SCATTER: u8 = 13;
    const REDUCE_SCATTER_BLOCK: u8 = 16;
    // Allgather, Allgatherv, Alltoall, Alltoallv, Alltoallw, Allreduce.
    matches!(collective, BARRIER | 6..=11 | REDUCE_SCATTER | REDUCE_SCATTER_BLOCK)
}
