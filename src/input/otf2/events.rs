//! EventRecord records of one location: bytes in, typed records with their times out.
//!
//! OTF2-FACTS section 7. A time stamp is a record of its own and holds until the next; attribute lists are stepped
//! over; ten types carry one packed number and no length; everything else says its length, so unknown types are
//! stepped over too. One record costs a few byte reads and no allocation. Damage ends its chunk.

use super::bytes::{Bytes, Chunks, Next};
use super::classes::class_name;
use super::local::LocalDefinitions;
use crate::base::notice::{Notice, Notices};

const TIMESTAMP: u8 = 5;
const ATTRIBUTE_LIST: u8 = 6;
/// OTF2's number of the type of doubles.
const FLOAT64: u8 = 10;

/// The part of a send or receive that matching needs. Ids are global.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The other side's rank in the communicator.
    pub peer: u32,
    /// Communicator.
    pub communicator: u32,
    /// Tag.
    pub tag: u32,
    /// Bytes of the message.
    pub bytes: u64,
}

/// A task: the thread of its team that made it, and its number among those.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskKey {
    /// Communicator of the team; 0 where tasks are numbered over the whole process.
    pub team: u32,
    /// Who made it.
    pub creator: u32,
    /// 0 for what a thread does as part of its team.
    pub number: u64,
}

/// A thread that another made: by contingent and order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadKey {
    /// Communicator of all threads made that way.
    pub contingent: u32,
    /// The how-manieth.
    pub sequence: u64,
}

/// A parameter's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterValue {
    /// By the id of the text.
    Text(u32),
    /// A number.
    Number(i128),
}

/// What happens to a window's lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RmaLock {
    /// It is asked for.
    Request,
    /// It is had.
    Acquire,
    /// It is given back.
    Release,
}

/// What a record says. RegionDefinition and communicator ids are global; requests mean something only inside the location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventRecord {
    /// A region begins.
    Enter(u32),
    /// A region ends.
    Leave(u32),
    /// A message leaves; `request` for a non-blocking send.
    Send {
        /// To whom.
        to: Envelope,
        /// Completed later under this number.
        request: Option<u64>,
    },
    /// A non-blocking send completed.
    SendComplete(u64),
    /// A non-blocking receive was posted.
    ReceiveRequest(u64),
    /// A message has arrived; `request` for a non-blocking receive.
    Receive {
        /// From whom.
        from: Envelope,
        /// Posted earlier under this number.
        request: Option<u64>,
    },
    /// A non-blocking operation was cancelled.
    RequestCancelled(u64),
    /// A collective operation begins.
    CollectiveBegin,
    /// A collective operation ends.
    CollectiveEnd {
        /// Which; OTF2's number.
        operation: u8,
        /// Communicator.
        communicator: u32,
        /// Rank of the root in the communicator; all ones where there is none.
        root: u32,
    },
    /// A collective operation that a request stood for is done.
    CollectiveComplete {
        /// Which; OTF2's number.
        operation: u8,
        /// Communicator.
        communicator: u32,
        /// Rank of the root in the communicator; all ones where there is none.
        root: u32,
    },
    /// The thread begins a parallel region, and has its team do it.
    Fork,
    /// The parallel region is over.
    Join,
    /// The thread begins to work in a team, by the team's communicator.
    TeamBegin(u32),
    /// It has done so.
    TeamEnd(u32),
    /// A task is made that some thread of the team will run.
    TaskCreate(TaskKey),
    /// The thread goes on with this task; the one numbered 0 is what it does as part of its team.
    TaskSwitch(TaskKey),
    /// The task is done.
    TaskComplete(TaskKey),
    /// The thread waits for another to end.
    ThreadWait(ThreadKey),
    /// The thread ends.
    ThreadEnd(ThreadKey),
    /// The thread has a lock now.
    Acquire {
        /// Which.
        lock: u32,
        /// The how-manieth time that it is taken.
        order: u32,
    },
    /// It gave the lock back.
    Release {
        /// Which.
        lock: u32,
        /// As it was taken.
        order: u32,
    },
    /// A calling context begins, or is found by a sample: the thread is there from now on.
    Context(u32),
    /// A calling context ends.
    ContextLeave(u32),
    /// The tracer wrote out its buffer until then, in ticks of the location's own clock: the program stood still.
    Flush {
        /// When it went on.
        until: u64,
    },
    /// Values of a metric class or instance: [`EventReader::values`] has them.
    Metric(u32),
    /// A parameter of the innermost region.
    Parameter {
        /// Which.
        parameter: u32,
        /// Its value.
        value: ParameterValue,
    },
    /// A window of memory is there from now on, or no longer.
    RmaWindow(u32),
    /// A collective operation on a window ends.
    RmaCollectiveEnd {
        /// Which; OTF2's number.
        operation: u8,
        /// The window.
        window: u32,
    },
    /// A synchronisation with the ranks of a group.
    RmaGroupSync {
        /// The window.
        window: u32,
        /// The group.
        group: u32,
    },
    /// The lock of a rank's part of a window is asked for, had, or given back.
    RmaLock {
        /// What of it.
        what: RmaLock,
        /// The window.
        window: u32,
        /// Rank whose memory it is.
        remote: u32,
    },
    /// A put, a get, or an atomic operation.
    RmaTransfer {
        /// The window.
        window: u32,
        /// Rank whose memory it is.
        remote: u32,
        /// Size.
        bytes: u64,
    },
    /// An operation on a file begins.
    IoBegin {
        /// Of the file.
        handle: u32,
        /// Reads, writes, or neither; OTF2's number.
        mode: u8,
        /// Its number in the location.
        matching: u64,
    },
    /// It is done.
    IoComplete {
        /// Of the file.
        handle: u32,
        /// Bytes that it moved.
        bytes: u64,
        /// Its number in the location.
        matching: u64,
    },
    /// Anything else.
    Other,
}

/// One event record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedRecord {
    /// Time as recorded, in ticks of the location's own clock.
    pub ticks: u64,
    /// TimedRecord type.
    pub class: u8,
    /// What it says.
    pub event: EventRecord,
}

/// Reads the event records of one location.
#[derive(Debug)]
pub struct EventReader<'a> {
    chunks: Chunks<'a>,
    local: &'a LocalDefinitions,
    ticks: Option<u64>,
    notices: Notices,
    /// Of the last metric record.
    values: Vec<i64>,
    /// File name, for notices.
    place: &'a str,
}

impl<'a> EventReader<'a> {
    pub(super) fn new(data: &'a [u8], chunk_size: u64, local: &'a LocalDefinitions, place: &'a str) -> Self {
        EventReader {
            chunks: Chunks::new(data, chunk_size),
            local,
            ticks: None,
            notices: Notices::default(),
            values: Vec::new(),
            place,
        }
    }

    /// The next record; `None` at the end.
    #[allow(clippy::should_implement_trait)] // read like the other formats' readers
    pub fn next(&mut self) -> Option<TimedRecord> {
        loop {
            let read = match self.chunks.next() {
                Next::Type(TIMESTAMP) => self.chunks.bytes.full_u64().map(|t| self.ticks = Some(t)),
                Next::Type(ATTRIBUTE_LIST) => self.chunks.bytes.payload().map(|_| ()),
                Next::Type(class) => match (self.ticks, self.event(class)) {
                    (Some(ticks), Some(event)) => return Some(TimedRecord { ticks, class, event }),
                    _ => None,
                },
                Next::Chunk => {
                    self.ticks = None;
                    Some(())
                }
                Next::End => return None,
                Next::Broken => None,
            };
            if read.is_none() {
                let (place, offset) = (self.place, self.chunks.offset());
                self.notices.add(Notice::DamagedPacket, 1, || format!("{place} at byte {offset}"));
                self.chunks.skip();
            }
        }
    }

    /// The values of the last metric record, rounded to whole numbers.
    pub fn values(&self) -> &[i64] {
        &self.values
    }

    /// What was wrong in what has been read so far.
    pub fn notices(&self) -> &Notices {
        &self.notices
    }

    #[inline]
    fn event(&mut self, class: u8) -> Option<EventRecord> {
        let bytes = &mut self.chunks.bytes;
        // Types with one packed number and no length.
        match class {
            12 => return Some(EventRecord::Enter(self.local.regions.global(bytes.packed_u32()?))),
            13 => return Some(EventRecord::Leave(self.local.regions.global(bytes.packed_u32()?))),
            16 => return bytes.packed_u64().map(EventRecord::SendComplete),
            17 => return bytes.packed_u64().map(EventRecord::ReceiveRequest),
            21 => return bytes.packed_u64().map(EventRecord::RequestCancelled),
            24 => return bytes.packed_u64().map(|_| EventRecord::Fork),
            28 => {
                return bytes
                    .packed_u64()
                    .map(|number| EventRecord::TaskCreate(TaskKey { team: 0, creator: 0, number }));
            }
            29 => {
                return bytes
                    .packed_u64()
                    .map(|number| EventRecord::TaskSwitch(TaskKey { team: 0, creator: 0, number }));
            }
            30 => {
                return bytes
                    .packed_u64()
                    .map(|number| EventRecord::TaskComplete(TaskKey { team: 0, creator: 0, number }));
            }
            20 => return bytes.packed_u64().map(|_| EventRecord::Other),
            _ => {}
        }
        let mut p = bytes.payload()?;
        Some(match class {
            14 => EventRecord::Send { to: self.envelope(&mut p)?, request: None },
            15 => EventRecord::Send { to: self.envelope(&mut p)?, request: Some(p.packed_u64()?) },
            18 => EventRecord::Receive { from: self.envelope(&mut p)?, request: None },
            19 => EventRecord::Receive { from: self.envelope(&mut p)?, request: Some(p.packed_u64()?) },
            22 => EventRecord::CollectiveBegin,
            23 => {
                let (operation, communicator) = (p.u8()?, self.local.communicators.global(p.packed_u32()?));
                EventRecord::CollectiveEnd { operation, communicator, root: p.packed_u32()? }
            }
            86 => {
                let (operation, communicator) = (p.u8()?, self.local.communicators.global(p.packed_u32()?));
                EventRecord::CollectiveComplete { operation, communicator, root: p.packed_u32()? }
            }
            10 => EventRecord::Flush { until: p.full_u64()? },
            53 => EventRecord::Fork,
            25 | 54 => EventRecord::Join,
            55 => EventRecord::TeamBegin(self.local.communicators.global(p.packed_u32()?)),
            56 => EventRecord::TeamEnd(self.local.communicators.global(p.packed_u32()?)),
            26 => EventRecord::Acquire { lock: p.packed_u32()?, order: p.packed_u32()? },
            27 => EventRecord::Release { lock: p.packed_u32()?, order: p.packed_u32()? },
            57 => {
                p.u8()?;
                EventRecord::Acquire { lock: p.packed_u32()?, order: p.packed_u32()? }
            }
            58 => {
                p.u8()?;
                EventRecord::Release { lock: p.packed_u32()?, order: p.packed_u32()? }
            }
            59 => EventRecord::TaskCreate(self.task(&mut p)?),
            60 => EventRecord::TaskSwitch(self.task(&mut p)?),
            61 => EventRecord::TaskComplete(self.task(&mut p)?),
            64 => EventRecord::ThreadWait(self.thread(&mut p)?),
            65 => EventRecord::ThreadEnd(self.thread(&mut p)?),
            66 | 68 => EventRecord::Context(self.local.calling_contexts.global(p.packed_u32()?)),
            67 => EventRecord::ContextLeave(self.local.calling_contexts.global(p.packed_u32()?)),
            75 => {
                let handle = self.local.handles.global(p.packed_u32()?);
                let mode = p.u8()?;
                p.packed_u32()?;
                p.packed_u64()?;
                EventRecord::IoBegin { handle, mode, matching: p.packed_u64()? }
            }
            78 => {
                let handle = self.local.handles.global(p.packed_u32()?);
                EventRecord::IoComplete { handle, bytes: p.packed_u64()?, matching: p.packed_u64()? }
            }
            31 => {
                let metric = self.local.metrics.global(p.packed_u32()?);
                self.metric(&mut p)?;
                EventRecord::Metric(metric)
            }
            32..=34 => {
                let parameter = self.local.parameters.global(p.packed_u32()?);
                let value = match class {
                    32 => ParameterValue::Text(self.local.strings.global(p.packed_u32()?)),
                    33 => ParameterValue::Number(i128::from(p.packed_u64()? as i64)),
                    _ => ParameterValue::Number(i128::from(p.packed_u64()?)),
                };
                EventRecord::Parameter { parameter, value }
            }
            35 | 36 | 38..=43 | 46..=48 => self.one_sided(class, &mut p)?,
            _ => {
                if class_name(class).is_none() {
                    let place = self.place;
                    self.notices.add(Notice::UnknownRecords, 1, || format!("type {class} in {place}"));
                }
                EventRecord::Other
            }
        })
    }

    /// Each value behind its type; the bits of a double are packed like a number.
    fn metric(&mut self, p: &mut Bytes<'_>) -> Option<()> {
        self.values.clear();
        for _ in 0..p.u8()? {
            let (kind, bits) = (p.u8()?, p.packed_u64()?);
            self.values.push(if kind == FLOAT64 { f64::from_bits(bits).round() as i64 } else { bits as i64 });
        }
        Some(())
    }

    /// One-sided communication and its synchronisation.
    fn one_sided(&self, class: u8, p: &mut Bytes<'_>) -> Option<EventRecord> {
        let window = |id: u32| self.local.windows.global(id);
        Some(match class {
            35 | 36 => EventRecord::RmaWindow(window(p.packed_u32()?)),
            38 => {
                let operation = p.u8()?;
                p.packed_u32()?;
                EventRecord::RmaCollectiveEnd { operation, window: window(p.packed_u32()?) }
            }
            39 => {
                p.packed_u32()?;
                let window = window(p.packed_u32()?);
                EventRecord::RmaGroupSync { window, group: self.local.groups.global(p.packed_u32()?) }
            }
            40..=43 => {
                let what = match class {
                    40 => RmaLock::Request,
                    43 => RmaLock::Release,
                    _ => RmaLock::Acquire,
                };
                EventRecord::RmaLock { what, window: window(p.packed_u32()?), remote: p.packed_u32()? }
            }
            _ => {
                let (window, remote) = (window(p.packed_u32()?), p.packed_u32()?);
                if class == 48 {
                    p.u8()?;
                }
                EventRecord::RmaTransfer { window, remote, bytes: p.packed_u64()? }
            }
        })
    }

    fn task(&self, p: &mut Bytes<'_>) -> Option<TaskKey> {
        let team = self.local.communicators.global(p.packed_u32()?);
        Some(TaskKey { team, creator: p.packed_u32()?, number: u64::from(p.packed_u32()?) })
    }

    fn thread(&self, p: &mut Bytes<'_>) -> Option<ThreadKey> {
        let contingent = self.local.communicators.global(p.packed_u32()?);
        Some(ThreadKey { contingent, sequence: p.packed_u64()? })
    }

    fn envelope(&self, p: &mut Bytes<'_>) -> Option<Envelope> {
        let peer = p.packed_u32()?;
        let communicator = self.local.communicators.global(p.packed_u32()?);
        Some(Envelope { peer, communicator, tag: p.packed_u32()?, bytes: p.packed_u64()? })
    }
}
