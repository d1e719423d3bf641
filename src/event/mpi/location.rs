//! One location's records as operations, halves of messages, and the synchronisation within its process.
//!
//! An operation is a call in which no other call was made, so that regions which only enclose others (`main`) do not
//! hide the calls inside. The enclosing regions are the operation's call path; the time between two operations has the
//! path in which most of it was spent. Cost: linear in the records, one look-up per call.

use super::recorded::{
    LocationRun, MessageHalf, NOWHERE, ParameterRecord, Participation, Posting, Released, TaskCreation, ThreadExit,
    TickRange, in_posting_order,
};
use super::regions::{Class, Symbol, Symbols};
use super::task_graph::GraphTask;
use crate::base::ctx::Cancel;
use crate::base::names::NameId;
use crate::base::notice::Notice;
use crate::base::time::{Ns, Span, Timestamp};
use crate::event::call_path::CallSite;
use crate::event::operation::{NO_PATH, Operation, OperationKind, RegionChange};
use crate::input::otf2::{
    Archive, CommunicatorMembers, CreatedThread, Envelope, EventRecord, LocationId, LocationKind, MetricValue, TaskKey,
};
use foldhash::HashMap;

/// Records between two looks at the cancel flag.
const PATIENCE: u64 = 1 << 16;
/// Polls that follow each other within this are one wait.
const POLLING: Ns = 100_000;

/// A region that has begun.
pub(super) struct Frame {
    pub(super) region: u32,
    pub(super) symbol: Symbol,
    pub(super) start: Timestamp,
    pub(super) path: u32,
    /// The task that made the call.
    pub(super) task: Option<TaskKey>,
    /// Another call was made inside.
    pub(super) encloses: bool,
    /// It goes on with the operation before it: the same poll again.
    again: bool,
    sends: usize,
    receives: usize,
    participations: usize,
    /// Position of the part of a task that it is.
    pub(super) task_part: Option<u32>,
}

/// Read the event file of one location. With `regions`, its innermost region over time is kept as well.
pub(super) fn read(
    archive: &Archive,
    symbols: &Symbols,
    id: LocationId,
    regions: Option<Vec<RegionChange>>,
    cancel: &Cancel,
) -> LocationRun {
    let files = archive.open_location(id);
    let mut run = LocationRun { clock: files.clock().clone(), regions, ..LocationRun::default() };
    let mut per_class = [0_u64; 256];
    let mut reader = files.reader();
    let mut location = LocationReader {
        archive,
        symbols,
        run: &mut run,
        frames: Vec::new(),
        open: HashMap::default(),
        last_communicator: None,
        sending: HashMap::default(),
        transferring: HashMap::default(),
        contexts: Vec::new(),
        since: Timestamp::MIN,
        last_path: None,
        longest: LongestPath::NONE,
        forked: None,
        idle: None,
        queue: archive.definitions.locations.get(id.index()).is_some_and(|l| l.kind == LocationKind::Stream),
        parts: Vec::new(),
        task: None,
        resumed: Timestamp::MIN,
        joining: None,
        postings: Vec::new(),
    };
    let task_attributes = archive.definitions.named.task_attributes();
    let mut last = Timestamp::MIN;
    let mut recorded = None;
    while let Some(record) = reader.next() {
        // A cancelled run is dropped as a whole.
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
        location.step(last, record.event, reader.values());
        if let (EventRecord::Enter(_), Some(attributes)) = (record.event, task_attributes)
            && let Some(task) = GraphTask::of(&reader, attributes)
        {
            location.begin_task_part(task, last);
        }
        location.follow_region(last);
        per_class[usize::from(record.class)] += 1;
        recorded = Some(TickRange { first: recorded.map_or(ticks, |range: TickRange| range.first), last: ticks });
        location.run.records += 1;
    }
    location.finish(last);
    location.run.ticks = recorded;
    let postings = std::mem::take(&mut location.postings);
    run.notices.merge(reader.notices());
    run.notices.merge(&files.notices());
    run.per_class = (0..=u8::MAX).zip(per_class).filter(|(_, n)| *n > 0).collect();
    // Teams may be nested: barriers of an outer one come after those of an inner.
    run.barriers.sort_unstable();
    // Non-overtaking holds in posting order, not in order of completion.
    run.receives = in_posting_order(std::mem::take(&mut run.receives), &postings);
    run.shrink();
    run
}

fn stream_name(archive: &Archive, id: LocationId) -> String {
    archive.definitions.locations.get(id.index()).map_or_else(String::new, |l| l.name.clone())
}

/// The call path in which most of a time was spent, and how much.
pub(super) struct LongestPath {
    path: u32,
    time: Ns,
}

impl LongestPath {
    const NONE: LongestPath = LongestPath { path: NO_PATH, time: 0 };
}

/// Turns the records of one location into operations and halves of messages.
pub(super) struct LocationReader<'a> {
    pub(super) archive: &'a Archive,
    pub(super) symbols: &'a Symbols,
    pub(super) run: &'a mut LocationRun,
    pub(super) frames: Vec<Frame>,
    /// Open receive requests, by number; the latest is last.
    open: HashMap<u64, Vec<Posting>>,
    /// The communicator of the last message, by global id, and its members.
    last_communicator: Option<(u32, Option<CommunicatorMembers<'a>>)>,
    /// Positions of the sends of open send requests, by number.
    sending: HashMap<u64, usize>,
    /// Modes of the file operations that have begun, by number.
    transferring: HashMap<u64, u8>,
    /// Calling contexts that are open, outermost first.
    pub(super) contexts: Vec<u32>,
    /// When the innermost region became that.
    pub(super) since: Timestamp,
    /// The call path of the last operation, whose call site is known when the time after it is.
    last_path: Option<u32>,
    /// Behind the last operation: the path with the longest time so far.
    pub(super) longest: LongestPath,
    /// When a parallel region was begun that has no team yet.
    pub(super) forked: Option<Timestamp>,
    /// Since when a thread of a team has had nothing to do.
    pub(super) idle: Option<Timestamp>,
    /// It is a queue of an accelerator: between two operations it has nothing to do.
    queue: bool,
    /// Positions of the parts that it is in, the innermost team last.
    pub(super) parts: Vec<u32>,
    /// The task that it is in, and since when.
    pub(super) task: Option<TaskKey>,
    pub(super) resumed: Timestamp,
    /// The thread that a call waits for.
    pub(super) joining: Option<CreatedThread>,
    /// By receive: position of the record that posted it.
    postings: Vec<u32>,
}

impl LocationReader<'_> {
    fn step(&mut self, time: Timestamp, event: EventRecord, values: &[MetricValue]) {
        let record = self.run.records as u32;
        match event {
            EventRecord::Enter(region) => self.enter(region, time),
            EventRecord::Leave(region) => self.leave_region(region, time),
            EventRecord::Context { context, entered } => self.be_in(Some(context), entered, time),
            EventRecord::ContextLeave(context) => {
                let around = self.archive.definitions.calling_context(context).and_then(|c| c.parent);
                self.be_in(around, 0, time);
            }
            EventRecord::Send { to, request } => {
                if let Some(number) = request {
                    self.sending.insert(number, self.run.sends.len());
                }
                let done = if request.is_some() { NOWHERE } else { self.operation() };
                let send = self.half(time, to, record, done);
                self.run.sends.push(send);
            }
            EventRecord::SendComplete(number) => {
                let (sent, done) = (self.sending.remove(&number), self.operation());
                if let Some(send) = sent.and_then(|at| self.run.sends.get_mut(at)) {
                    send.other = done;
                }
            }
            EventRecord::ReceiveRequest(number) => {
                let posting = Posting { record, operation: self.operation() };
                self.open.entry(number).or_default().push(posting);
            }
            EventRecord::RequestCancelled(number) => {
                self.open.get_mut(&number).and_then(Vec::pop);
            }
            EventRecord::Receive { from, request } => self.receive(from, request, record, time),
            EventRecord::CollectiveEnd { operation, communicator, root } => {
                self.participate(operation, communicator, root);
            }
            EventRecord::Flush { until } => {
                let end = self.archive.ns(self.run.clock.correct(until)).unwrap_or(time);
                self.flush(Span::new(time, end.max(time)));
            }
            EventRecord::Fork => self.forked = Some(time),
            EventRecord::TeamBegin(team) => self.begin_part(team, time),
            EventRecord::TeamEnd(_) => self.end_part(time),
            EventRecord::TaskCreate(task) => self.run.tasks.created.push(TaskCreation { task, creator: self.task }),
            EventRecord::TaskSwitch(task) => self.switch(task, time),
            EventRecord::TaskComplete(task) => self.complete(task, time),
            EventRecord::ThreadWait(thread) => self.joining = Some(thread),
            EventRecord::ThreadEnd(thread) => {
                self.run.ended = Some(ThreadExit { thread, operation: self.last_operation(), time })
            }
            EventRecord::Acquire { lock, order } => self.acquire(lock, order, time),
            EventRecord::Release { lock, order } => {
                let operation = self.run.operations.len() as u32;
                self.run.released.push(Released { lock, order, operation, time });
            }
            EventRecord::Metric(metric) => self.measure(metric, values),
            EventRecord::Parameter { parameter, value } => {
                let operation = self.run.operations.len() as u32;
                self.run.parameters.push(ParameterRecord { operation, parameter, value });
            }
            EventRecord::RmaCollectiveEnd { operation, window } => self.meet_at(window, operation),
            EventRecord::RmaGroupSync { window, group } => self.synchronise(window, group),
            EventRecord::RmaLock { what, window, remote } => self.lock_window(what, window, remote, time),
            EventRecord::IoBegin { mode, matching, .. } => drop(self.transferring.insert(matching, mode)),
            EventRecord::IoComplete { bytes, matching, .. } => self.transferred(matching, bytes),
            EventRecord::CollectiveBegin
            | EventRecord::CollectiveComplete { .. }
            | EventRecord::Join
            | EventRecord::RmaWindow(_)
            | EventRecord::RmaTransfer { .. }
            | EventRecord::Other => {}
        }
    }

    /// A message arrived, of the receive that was posted with the request, else posted here.
    fn receive(&mut self, from: Envelope, request: Option<u64>, record: u32, time: Timestamp) {
        let itself = Posting { record, operation: self.operation() };
        let posting = request.and_then(|number| self.open.get_mut(&number)?.pop()).unwrap_or(itself);
        self.postings.push(posting.record);
        let receive = self.half(time, from, record, posting.operation);
        self.run.receives.push(receive);
    }

    /// A collective operation ended in which other locations participate.
    fn participate(&mut self, collective: u8, communicator: u32, root: u32) {
        if let Some(CommunicatorMembers { group, ranks }) = self.archive.definitions.members(communicator)
            && ranks.len() > 1
        {
            let root = ranks.get(root as usize).copied().flatten();
            self.run.participations.push(Participation { operation: NOWHERE, group, collective, root });
        }
    }

    fn transferred(&mut self, matching: u64, bytes: u64) {
        let moved = &mut self.run.transfers;
        // All ones: how many it moved is not known.
        let bytes = if bytes == u64::MAX { 0 } else { bytes };
        let (sum, count) = match self.transferring.remove(&matching) {
            Some(0) => (&mut moved.read_bytes, &mut moved.reads),
            Some(1) => (&mut moved.written_bytes, &mut moved.writes),
            _ => return,
        };
        *sum = sum.saturating_add(bytes);
        *count += 1;
    }

    /// The time until now was spent in the innermost region.
    pub(super) fn spend(&mut self, time: Timestamp) {
        let path = self.frames.last().map_or(NO_PATH, |f| f.path);
        let length = if self.since == Timestamp::MIN { 0 } else { time - self.since };
        if length > self.longest.time {
            self.longest = LongestPath { path, time: length };
        }
        self.since = time;
    }

    pub(super) fn enter(&mut self, region: u32, time: Timestamp) {
        self.spend(time);
        let symbol = self.symbols.of(region);
        if self.queue && self.frames.is_empty() {
            self.idle_queue(time);
        }
        let around = self.frames.last().map_or(NO_PATH, |f| f.path);
        let path = match symbol.class {
            Class::Artificial | Class::Flush => around,
            _ => self.run.paths.child(around, symbol.name),
        };
        if let Some(around) = self.frames.last_mut() {
            around.encloses = true;
        }
        let again = symbol.polls
            && self.run.operations.last().is_some_and(|o| o.symbol == symbol.name && time - o.end <= POLLING)
            && self.last_path == Some(path);
        let (sends, receives) = (self.run.sends.len(), self.run.receives.len());
        let participations = self.run.participations.len();
        let task = self.task;
        self.frames.push(Frame {
            region,
            symbol,
            start: time,
            path,
            task,
            encloses: false,
            again,
            sends,
            receives,
            participations,
            task_part: None,
        });
    }

    /// Expected: the innermost region. Tolerated: another open one (at the end EZTrace closes the outer first).
    /// A leave of a region that is not open says nothing about any operation.
    pub(super) fn leave_region(&mut self, region: u32, time: Timestamp) {
        let Some(at) = self.frames.iter().rposition(|f| f.region == region && f.task == self.task) else {
            return self.leave_elsewhere(region, time);
        };
        let since = self.since;
        if at + 1 == self.frames.len() && !self.frames[at].encloses {
            // This time belongs to an operation, not to the time between two.
            self.since = time;
        } else {
            self.spend(time);
        }
        let innermost = self.frames.len() - 1;
        let frame = if at == innermost { self.frames.pop() } else { Some(self.frames.remove(at)) };
        let Some(frame) = frame else { return };
        if frame.encloses {
            self.rest_of_wait(&frame, Span::new(since, time))
        } else {
            self.leave(&frame, time)
        }
        self.end_task_part(&frame, time);
    }

    /// `other`: the operation that posted it or that is left when it is done.
    fn half(&mut self, time: Timestamp, envelope: Envelope, record: u32, other: u32) -> MessageHalf {
        let communicator = envelope.communicator;
        let members = match self.last_communicator {
            Some((last, members)) if last == communicator => members,
            _ => self.archive.definitions.members(communicator),
        };
        self.last_communicator = Some((communicator, members));
        let peer = members.and_then(|m| *m.ranks.get(envelope.peer as usize)?);
        let bytes = u32::try_from(envelope.bytes).unwrap_or(u32::MAX);
        let other_location = peer.map_or(NOWHERE, |id| id.raw());
        MessageHalf { time, other_location, tag: envelope.tag, record, bytes, operation: NOWHERE, other }
    }

    /// Position of the operation that the innermost region will be, unless a call is made in it.
    pub(super) fn operation(&self) -> u32 {
        match self.frames.last() {
            Some(frame) if !frame.encloses => self.run.operations.len() as u32 - u32::from(frame.again),
            _ => NOWHERE,
        }
    }

    fn leave(&mut self, frame: &Frame, end: Timestamp) {
        let symbol = frame.symbol;
        if symbol.class == Class::Flush {
            return self.flush(Span::new(frame.start, end));
        }
        if symbol.class == Class::Artificial {
            return;
        }
        let run = &mut *self.run;
        let position = run.operations.len() as u32 - u32::from(frame.again);
        // All records since this call began belong to it, because it enclosed no other call.
        run.sends.iter_mut().skip(frame.sends).for_each(|s| s.operation = position);
        let received = run.receives.len() > frame.receives;
        run.receives.iter_mut().skip(frame.receives).for_each(|r| r.operation = position);
        let met = run.participations.len() > frame.participations;
        run.participations.iter_mut().skip(frame.participations).for_each(|a| a.operation = position);
        let mut kind = symbol.kind;
        if received || run.acquired.last().is_some_and(|a| a.operation == position) {
            kind = OperationKind::Receive;
        } else if met {
            kind = OperationKind::Collective;
        }
        if frame.again
            && let Some(poll) = run.operations.last_mut()
        {
            poll.end = end;
            poll.kind = if received { kind } else { poll.kind };
            self.longest = LongestPath::NONE;
            return;
        }
        self.list(symbol.class, position);
        self.add(symbol.name, kind, Span::new(frame.start, end), frame.path);
    }

    /// A new operation; the time since the one before belongs to that.
    pub(super) fn add(&mut self, symbol: NameId, kind: OperationKind, span: Span, path: u32) {
        let run = &mut *self.run;
        if let Some(path) = self.last_path.replace(path) {
            run.call_sites.push(CallSite { path, after: self.longest.path });
        }
        self.longest = LongestPath::NONE;
        // If regions overlap instead of nesting, the later one begins at the end of the earlier one.
        let start = run.operations.last().map_or(span.start, |before| before.end.max(span.start));
        run.operations.push(Operation { symbol, kind, start, end: span.end.max(start) });
        for metric in &mut run.metrics {
            metric.by_operation.push(Some(metric.current));
        }
    }

    /// The time after the last operation has an owner as well.
    fn finish(&mut self, last: Timestamp) {
        self.spend(last);
        if let Some(path) = self.last_path.take() {
            self.run.call_sites.push(CallSite { path, after: self.longest.path });
        }
        self.end_regions(last);
    }
}
