//! The event records of one location: bytes in, typed records with their times out.
//!
//! OTF2-FACTS.md section 7. A time stamp is a record of its own and is valid until the next one; attribute lists
//! precede their record and are decoded only where they are asked for; ten types have one packed number and no length;
//! all others have a length, so unknown types are skipped too. A record costs a few byte reads and no allocation.
//! Damage ends its chunk.

use super::bytes::{Bytes, Chunks, Next};
use super::classes::class_name;
use super::local::LocalDefinitions;
use super::records::{
    AttributeValue, CreatedThread, Envelope, EventAttribute, EventRecord, MetricValue, ParameterValue, RmaLock,
    TaskKey, TimedRecord,
};
use crate::base::notice::{Notice, Notices};

pub(super) const TIMESTAMP: u8 = 5;
pub(super) const ATTRIBUTE_LIST: u8 = 6;
/// OTF2's number of the type of doubles.
const FLOAT64: u8 = 10;
/// That of references to locations, which have 64 bits.
const LOCATION: u8 = 13;

/// True for types with one packed number and no length.
#[inline]
pub(super) fn is_short(class: u8) -> bool {
    matches!(class, 12 | 13 | 16 | 17 | 20 | 21 | 24 | 28..=30)
}

/// Reads the event records of one location.
#[derive(Debug)]
pub struct EventReader<'a> {
    chunks: Chunks<'a>,
    local: &'a LocalDefinitions,
    ticks: Option<u64>,
    /// Records of the current chunk so far; `None` once it was damaged, or where it is complete.
    read: Option<u64>,
    /// Records of the current chunk, by its header.
    declared: u64,
    /// The attribute list of the last record.
    attributes: Option<Bytes<'a>>,
    notices: Notices,
    /// The values of the last metric record.
    values: Vec<MetricValue>,
    /// File name, for notices.
    place: &'a str,
}

impl<'a> EventReader<'a> {
    pub(super) fn new(data: &'a [u8], chunk_size: u64, local: &'a LocalDefinitions, place: &'a str) -> Self {
        EventReader {
            chunks: Chunks::new(data, chunk_size),
            local,
            ticks: None,
            read: None,
            declared: 0,
            attributes: None,
            notices: Notices::default(),
            values: Vec::new(),
            place,
        }
    }

    /// The next record; `None` at the end.
    #[allow(clippy::should_implement_trait)] // read like the other formats' readers
    pub fn next(&mut self) -> Option<TimedRecord> {
        self.attributes = None;
        loop {
            let read = match self.chunks.next() {
                Next::Type(TIMESTAMP) => self.chunks.bytes.full_u64().map(|t| self.ticks = Some(t)),
                Next::Type(ATTRIBUTE_LIST) => self.chunks.bytes.payload().map(|list| self.attributes = Some(list)),
                Next::Type(class) => match (self.ticks, self.event(class)) {
                    (Some(ticks), Some(event)) => {
                        self.read = self.read.map(|read| read + 1);
                        return Some(TimedRecord { ticks, class, event });
                    }
                    _ => None,
                },
                Next::Chunk => {
                    self.complete();
                    (self.ticks, self.read, self.declared) = (None, Some(0), self.chunks.declared);
                    Some(())
                }
                Next::End => {
                    self.complete();
                    return None;
                }
                Next::Broken => None,
            };
            if read.is_none() {
                let (place, offset) = (self.place, self.chunks.offset());
                self.notices.add(Notice::DamagedPacket, 1, || format!("{place} at byte {offset}"));
                self.read = None;
                self.chunks.skip();
            }
        }
    }

    /// The current chunk has no more records: its header says how many there were.
    fn complete(&mut self) {
        if let Some(read) = self.read.take().filter(|read| *read < self.declared) {
            let (place, declared) = (self.place, self.declared);
            self.notices.add(Notice::DamagedPacket, 1, || format!("{place}: {read} of {declared} records of a chunk"));
        }
    }

    /// The values of the last metric record.
    pub fn values(&self) -> &[MetricValue] {
        &self.values
    }

    /// The attributes of the last record, up to the first that is damaged.
    pub fn attributes(&self) -> impl Iterator<Item = EventAttribute> {
        let mut list = self.attributes;
        let count = list.as_mut().and_then(|p| p.packed_u32()).unwrap_or(0);
        (0..count).map_while(move |_| self.attribute(list.as_mut()?))
    }

    /// By OTF2_Type: numbers of 8, 16, 32 and 64 bits without and with sign, two kinds of floating point numbers,
    /// texts, and references to other definitions.
    fn attribute(&self, p: &mut Bytes<'_>) -> Option<EventAttribute> {
        let (id, kind) = (self.local.attributes.global(p.packed_u32()?), p.u8()?);
        let value = match kind {
            1 => AttributeValue::Number(p.u8()?.into()),
            2 => AttributeValue::Number(p.full_u16()?.into()),
            3 => AttributeValue::Number(p.packed_u32()?.into()),
            4 => AttributeValue::Number(p.packed_u64()?.into()),
            5 => AttributeValue::Number((p.u8()? as i8).into()),
            6 => AttributeValue::Number((p.full_u16()? as i16).into()),
            7 => AttributeValue::Number((p.packed_u32()? as i32).into()),
            8 => AttributeValue::Number((p.packed_u64()? as i64).into()),
            9 => AttributeValue::Double(f32::from_bits(p.full_u32()?).into()),
            10 => AttributeValue::Double(f64::from_bits(p.full_u64()?)),
            11 => AttributeValue::Text(self.local.strings.global(p.packed_u32()?)),
            LOCATION => AttributeValue::Reference(p.packed_u64()?),
            _ => AttributeValue::Reference(p.packed_u32()?.into()),
        };
        Some(EventAttribute { id, value })
    }

    /// Damage found so far.
    pub fn notices(&self) -> &Notices {
        &self.notices
    }

    #[inline]
    fn event(&mut self, class: u8) -> Option<EventRecord> {
        match class {
            _ if is_short(class) => self.short(class),
            _ => {
                let mut payload = self.chunks.bytes.payload()?;
                self.long(class, &mut payload)
            }
        }
    }

    /// Types with one packed number and no length.
    #[inline]
    fn short(&mut self, class: u8) -> Option<EventRecord> {
        let bytes = &mut self.chunks.bytes;
        let in_process = |number| TaskKey { team: 0, creator: 0, number };
        match class {
            12 => Some(EventRecord::Enter(self.local.regions.global(bytes.packed_u32()?))),
            13 => Some(EventRecord::Leave(self.local.regions.global(bytes.packed_u32()?))),
            16 => bytes.packed_u64().map(EventRecord::SendComplete),
            17 => bytes.packed_u64().map(EventRecord::ReceiveRequest),
            21 => bytes.packed_u64().map(EventRecord::RequestCancelled),
            24 => bytes.packed_u64().map(|_| EventRecord::Fork),
            28 => bytes.packed_u64().map(|number| EventRecord::TaskCreate(in_process(number))),
            29 => bytes.packed_u64().map(|number| EventRecord::TaskSwitch(in_process(number))),
            30 => bytes.packed_u64().map(|number| EventRecord::TaskComplete(in_process(number))),
            _ => bytes.packed_u64().map(|_| EventRecord::Other),
        }
    }

    /// Types whose records give the length of their payload `p`.
    #[inline]
    fn long(&mut self, class: u8, p: &mut Bytes<'_>) -> Option<EventRecord> {
        Some(match class {
            14 => EventRecord::Send { to: self.envelope(p)?, request: None },
            15 => EventRecord::Send { to: self.envelope(p)?, request: Some(p.packed_u64()?) },
            18 => EventRecord::Receive { from: self.envelope(p)?, request: None },
            19 => EventRecord::Receive { from: self.envelope(p)?, request: Some(p.packed_u64()?) },
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
            31 => {
                let metric = self.local.metrics.global(p.packed_u32()?);
                self.metric(p)?;
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
            25..=27 | 53..=61 | 64 | 65 => self.threading(class, p)?,
            35 | 36 | 38..=43 | 46..=48 => self.one_sided(class, p)?,
            66 | 68 => {
                let context = self.local.calling_contexts.global(p.packed_u32()?);
                // The unwind distance counts the call that only went on as well; 0: nothing happened since.
                let distance = p.packed_u32()?;
                let entered = if distance == u32::MAX { 0 } else { distance.saturating_sub(1) };
                EventRecord::Context { context, entered }
            }
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
            _ => self.other(class),
        })
    }

    fn other(&mut self, class: u8) -> EventRecord {
        if class_name(class).is_none() {
            let place = self.place;
            self.notices.add(Notice::UnknownRecords, 1, || format!("type {class} in {place}"));
        }
        EventRecord::Other
    }

    /// Threads, their teams, locks and tasks.
    fn threading(&mut self, class: u8, p: &mut Bytes<'_>) -> Option<EventRecord> {
        Some(match class {
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
            59 => EventRecord::TaskCreate(self.task(p)?),
            60 => EventRecord::TaskSwitch(self.task(p)?),
            61 => EventRecord::TaskComplete(self.task(p)?),
            64 => EventRecord::ThreadWait(self.thread(p)?),
            65 => EventRecord::ThreadEnd(self.thread(p)?),
            _ => self.other(class),
        })
    }

    /// Each value after its type; the bits of a double are packed like a number.
    fn metric(&mut self, p: &mut Bytes<'_>) -> Option<()> {
        self.values.clear();
        for _ in 0..p.u8()? {
            let (kind, bits) = (p.u8()?, p.packed_u64()?);
            self.values.push(match kind {
                FLOAT64 => MetricValue::Double(f64::from_bits(bits)),
                _ => MetricValue::Integer(bits as i64),
            });
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

    fn thread(&self, p: &mut Bytes<'_>) -> Option<CreatedThread> {
        let contingent = self.local.communicators.global(p.packed_u32()?);
        Some(CreatedThread { contingent, sequence: p.packed_u64()? })
    }

    fn envelope(&self, p: &mut Bytes<'_>) -> Option<Envelope> {
        let peer = p.packed_u32()?;
        let communicator = self.local.communicators.global(p.packed_u32()?);
        Some(Envelope { peer, communicator, tag: p.packed_u32()?, bytes: p.packed_u64()? })
    }
}
