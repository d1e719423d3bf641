//! Event records of one location: bytes in, typed records with their times out.
//!
//! OTF2-FACTS section 7. A time stamp is a record of its own and holds until the next; attribute lists are stepped
//! over; ten types carry one packed number and no length; everything else says its length, so unknown types are
//! stepped over too. One record costs a few byte reads and no allocation. Damage ends its chunk.

use super::bytes::{Bytes, Chunks, Next};
use super::definitions::LocalDefinitions;
use crate::base::notice::{Notice, Notices};

const TIMESTAMP: u8 = 5;
const ATTRIBUTE_LIST: u8 = 6;

/// Record types by number, as OTF2 names them. Types without a name here are stepped over and counted.
const NAMES: [&str; 89] = [
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "BufferFlush",
    "MeasurementOnOff",
    "Enter",
    "Leave",
    "MpiSend",
    "MpiIsend",
    "MpiIsendComplete",
    "MpiIrecvRequest",
    "MpiRecv",
    "MpiIrecv",
    "MpiRequestTest",
    "MpiRequestCancelled",
    "MpiCollectiveBegin",
    "MpiCollectiveEnd",
    "OmpFork",
    "OmpJoin",
    "OmpAcquireLock",
    "OmpReleaseLock",
    "OmpTaskCreate",
    "OmpTaskSwitch",
    "OmpTaskComplete",
    "Metric",
    "ParameterString",
    "ParameterInt",
    "ParameterUnsignedInt",
    "RmaWinCreate",
    "RmaWinDestroy",
    "RmaCollectiveBegin",
    "RmaCollectiveEnd",
    "RmaGroupSync",
    "RmaRequestLock",
    "RmaAcquireLock",
    "RmaTryLock",
    "RmaReleaseLock",
    "RmaSync",
    "RmaWaitChange",
    "RmaPut",
    "RmaGet",
    "RmaAtomic",
    "RmaOpCompleteBlocking",
    "RmaOpCompleteNonBlocking",
    "RmaOpTest",
    "RmaOpCompleteRemote",
    "ThreadFork",
    "ThreadJoin",
    "ThreadTeamBegin",
    "ThreadTeamEnd",
    "ThreadAcquireLock",
    "ThreadReleaseLock",
    "ThreadTaskCreate",
    "ThreadTaskSwitch",
    "ThreadTaskComplete",
    "ThreadCreate",
    "ThreadBegin",
    "ThreadWait",
    "ThreadEnd",
    "CallingContextEnter",
    "CallingContextLeave",
    "CallingContextSample",
    "IoCreateHandle",
    "IoDestroyHandle",
    "IoDuplicateHandle",
    "IoSeek",
    "IoChangeStatusFlags",
    "IoDeleteFile",
    "IoOperationBegin",
    "IoOperationTest",
    "IoOperationIssued",
    "IoOperationComplete",
    "IoOperationCancelled",
    "IoAcquireLock",
    "IoReleaseLock",
    "IoTryLock",
    "ProgramBegin",
    "ProgramEnd",
    "NonBlockingCollectiveRequest",
    "NonBlockingCollectiveComplete",
    "CommCreate",
    "CommDestroy",
];

/// The name of a record type; `None` for types that OTF2 3.0 does not know.
pub fn class_name(class: u8) -> Option<&'static str> {
    NAMES.get(usize::from(class)).copied().filter(|name| !name.is_empty())
}

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

/// What a record says. Region and communicator ids are global; requests mean something only inside the location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
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
    /// Anything else.
    Other,
}

/// One event record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Time as recorded, in ticks of the location's own clock.
    pub ticks: u64,
    /// Record type.
    pub class: u8,
    /// What it says.
    pub event: Event,
}

/// Reads the event records of one location.
#[derive(Debug)]
pub struct Reader<'a> {
    chunks: Chunks<'a>,
    local: &'a LocalDefinitions,
    ticks: Option<u64>,
    notices: Notices,
    /// File name, for notices.
    place: &'a str,
}

impl<'a> Reader<'a> {
    pub(super) fn new(data: &'a [u8], chunk_size: u64, local: &'a LocalDefinitions, place: &'a str) -> Self {
        Reader { chunks: Chunks::new(data, chunk_size), local, ticks: None, notices: Notices::default(), place }
    }

    /// The next record; `None` at the end.
    #[allow(clippy::should_implement_trait)] // read like the other formats' readers
    pub fn next(&mut self) -> Option<Record> {
        loop {
            let read = match self.chunks.next() {
                Next::Type(TIMESTAMP) => self.chunks.bytes.full_u64().map(|t| self.ticks = Some(t)),
                Next::Type(ATTRIBUTE_LIST) => self.chunks.bytes.payload().map(|_| ()),
                Next::Type(class) => match (self.ticks, self.event(class)) {
                    (Some(ticks), Some(event)) => return Some(Record { ticks, class, event }),
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

    /// What was wrong in what has been read so far.
    pub fn notices(&self) -> &Notices {
        &self.notices
    }

    #[inline]
    fn event(&mut self, class: u8) -> Option<Event> {
        let bytes = &mut self.chunks.bytes;
        // Types with one packed number and no length.
        match class {
            12 => return Some(Event::Enter(self.local.regions.global(bytes.packed_u32()?))),
            13 => return Some(Event::Leave(self.local.regions.global(bytes.packed_u32()?))),
            16 => return bytes.packed_u64().map(Event::SendComplete),
            17 => return bytes.packed_u64().map(Event::ReceiveRequest),
            21 => return bytes.packed_u64().map(Event::RequestCancelled),
            20 | 24 | 28 | 29 | 30 => return bytes.packed_u64().map(|_| Event::Other),
            _ => {}
        }
        let mut p = bytes.payload()?;
        Some(match class {
            14 => Event::Send { to: self.envelope(&mut p)?, request: None },
            15 => Event::Send { to: self.envelope(&mut p)?, request: Some(p.packed_u64()?) },
            18 => Event::Receive { from: self.envelope(&mut p)?, request: None },
            19 => Event::Receive { from: self.envelope(&mut p)?, request: Some(p.packed_u64()?) },
            22 => Event::CollectiveBegin,
            23 => {
                let (operation, communicator) = (p.u8()?, self.local.communicators.global(p.packed_u32()?));
                Event::CollectiveEnd { operation, communicator, root: p.packed_u32()? }
            }
            _ => {
                if class_name(class).is_none() {
                    let place = self.place;
                    self.notices.add(Notice::UnknownRecords, 1, || format!("type {class} in {place}"));
                }
                Event::Other
            }
        })
    }

    fn envelope(&self, p: &mut Bytes<'_>) -> Option<Envelope> {
        let peer = p.packed_u32()?;
        let communicator = self.local.communicators.global(p.packed_u32()?);
        Some(Envelope { peer, communicator, tag: p.packed_u32()?, bytes: p.packed_u64()? })
    }
}
