//! Builds the records of a recording that is translated.
//!
//! In: events in the order of the file, each with CPU, time and thread. Out: the records of each CPU in order of time,
//! cut into packets; classes with the names and fields that the kernel's tracepoints have; names and processes of
//! threads. Cost: linear; a CPU whose events are not in order is sorted once, and events of one time keep their order.
//! The numbers of CPUs and of classes have limits.

use super::{CpuRecords, HEAD, RecordHead, TranslatedFormat, TranslatedStorage};
use crate::base::notice::{Notice, Notices};
use crate::input::record::ClassId;
use crate::input::tracepoint::format::{Field, FieldType};
use crate::input::tracepoint::threads::Threads;
use crate::input::tracepoint::{ClassSchema, ClockLoss, CpuPacket, CpuStream, PROBED, RecordedIds};
use foldhash::HashMap;
use std::collections::BTreeMap;

/// The highest number of a CPU.
const MOST_CPUS: u32 = 4096;
/// Classes; names of system calls and tasks come from the file.
const MOST_CLASSES: usize = 4096;
/// Bytes of a text that are kept.
const MOST_TEXT: usize = 255;
/// Bytes of a packet.
const PACKET: usize = 1 << 16;

/// The interrupt flag of the kernel's tracepoints (`TRACE_FLAG_SOFTIRQ`).
pub(super) const IN_INTERRUPT: i64 = 0x10;

/// The last step of a request of a disk.
pub(super) const COMPLETE: &str = "block:block_rq_complete";
/// Bytes of a sector.
pub(super) const SECTOR: u64 = 512;

/// A thread that an event names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NamedThread<'a> {
    pub tid: i32,
    /// Below 0: unknown.
    pub pid: i32,
    /// Empty: unknown.
    pub name: &'a [u8],
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventUse {
    Used,
    /// Its kind is not known, or its CPU.
    Unknown,
}

/// When and where an event happened, and which thread ran.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventPlace<'a> {
    pub time: u64,
    pub cpu: u32,
    pub thread: NamedThread<'a>,
}

/// A field of an event.
#[derive(Clone, Copy, Debug)]
pub(super) enum FieldValue<'a> {
    Number(i64),
    Text(&'a [u8]),
}

/// A step of a request of a disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct DiskStep<'a> {
    /// The kernel's name of the step.
    pub step: &'static str,
    /// Major and minor number, as the kernel joins them.
    pub device: u64,
    pub sector: u64,
    pub sectors: u64,
    /// `R` for reads, `W` for writes, and others.
    pub kind: &'a [u8],
}

/// How a thread left its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeavingState {
    Runnable,
    Sleeping,
    Disk,
    Stopped,
    Exited,
}

impl LeavingState {
    /// The kernel's number of it (`TASK_INTERRUPTIBLE` ..., since Linux 4.14).
    fn number(self) -> i64 {
        match self {
            LeavingState::Runnable => 0,
            LeavingState::Sleeping => 1,
            LeavingState::Disk => 2,
            LeavingState::Stopped => 4,
            LeavingState::Exited => 0x10,
        }
    }
}

/// Records and losses of a CPU.
#[derive(Debug, Default)]
struct CpuTranslation {
    bytes: Vec<u8>,
    last: u64,
    is_unordered: bool,
    losses: Vec<ClockLoss>,
}

/// What is known so far.
#[derive(Debug)]
pub(super) struct Translation {
    format: TranslatedFormat,
    name: String,
    schemas: Vec<ClassSchema>,
    by_name: HashMap<String, ClassId>,
    cpus: BTreeMap<u32, CpuTranslation>,
    threads: Threads,
    switches: u64,
    /// The ids that events have of their threads.
    pub thread_ids: RecordedIds,
    pub notices: Notices,
}

/// A translation that is complete.
pub(super) struct SealedTranslation {
    pub storage: TranslatedStorage,
    pub schemas: Vec<ClassSchema>,
    pub cpu_streams: Vec<CpuStream>,
    pub notices: Notices,
}

impl Translation {
    pub fn new(format: TranslatedFormat, name: String) -> Translation {
        Translation {
            format,
            name,
            schemas: Vec::new(),
            by_name: HashMap::default(),
            cpus: BTreeMap::new(),
            threads: Threads::default(),
            switches: 0,
            thread_ids: RecordedIds::Initial,
            notices: Notices::default(),
        }
    }

    /// True once a context switch was added.
    pub fn has_switches(&self) -> bool {
        self.switches > 0
    }

    /// A line or message that contradicts its format.
    pub fn unreadable(&mut self, place: impl FnOnce() -> String) {
        let name = &self.name;
        self.notices.add(Notice::LinesUnread, 1, || format!("{name}: {}", place()));
    }

    /// An event that no analysis uses.
    pub fn unused(&mut self, what: impl FnOnce() -> String) {
        self.notices.add(Notice::RecordsUnused, 1, what);
    }

    /// A thread has this name and process from a time on.
    pub fn know(&mut self, time: u64, thread: NamedThread<'_>) {
        if !thread.name.is_empty() {
            self.threads.named(thread.tid, time, thread.name.get(..MOST_TEXT).unwrap_or(thread.name));
        }
        if thread.pid >= 0 {
            self.threads.belongs(thread.tid, time, thread.pid);
        }
    }

    /// A context switch.
    pub fn switch(&mut self, at: EventPlace<'_>, state: LeavingState, next: NamedThread<'_>) {
        self.switch_by_number(at, state.number(), next);
    }

    /// The same with the kernel's number of the state.
    pub fn switch_by_number(&mut self, at: EventPlace<'_>, state: i64, next: NamedThread<'_>) {
        let prev = at.thread;
        self.know(at.time, next);
        self.switches += 1;
        self.event(
            at,
            "sched:sched_switch",
            &[
                ("prev_comm", FieldValue::Text(prev.name)),
                ("prev_pid", FieldValue::Number(prev.tid.into())),
                ("prev_state", FieldValue::Number(state)),
                ("next_comm", FieldValue::Text(next.name)),
                ("next_pid", FieldValue::Number(next.tid.into())),
            ],
        );
    }

    /// The running thread, or an interrupt (`flags`), wakes another, which will run on `cpu` if that is known.
    pub fn waking(&mut self, at: EventPlace<'_>, woken: NamedThread<'_>, cpu: Option<u32>, flags: i64) {
        self.know(at.time, woken);
        self.event(
            at,
            "sched:sched_waking",
            &[
                ("comm", FieldValue::Text(woken.name)),
                ("pid", FieldValue::Number(woken.tid.into())),
                // Out of range: unknown.
                ("target_cpu", FieldValue::Number(cpu.map_or(-1, i64::from))),
                ("common_flags", FieldValue::Number(flags)),
            ],
        );
    }

    /// A system call begins.
    pub fn enter_call(&mut self, at: EventPlace<'_>, call: &str) {
        self.event(at, &format!("syscalls:sys_enter_{call}"), &[]);
    }

    /// A system call returns.
    pub fn leave_call(&mut self, at: EventPlace<'_>, call: &str, ret: i64) {
        self.event(at, &format!("syscalls:sys_exit_{call}"), &[("ret", FieldValue::Number(ret))]);
    }

    /// A request of a disk is handed over, sent or done.
    pub fn disk(&mut self, at: EventPlace<'_>, request: DiskStep<'_>) {
        let number = |n: u64| FieldValue::Number(n as i64);
        let mut fields = vec![
            ("dev", number(request.device)),
            ("sector", number(request.sector)),
            ("nr_sector", number(request.sectors)),
            ("rwbs", FieldValue::Text(request.kind)),
        ];
        if request.step != COMPLETE {
            fields.push(("bytes", number(request.sectors.saturating_mul(SECTOR))));
        }
        self.event(at, request.step, &fields);
    }

    /// An execution of a task begins, as a probe of a function records it.
    pub fn begin(&mut self, at: EventPlace<'_>, task: &str) {
        self.event(at, task, &[(PROBED[0], FieldValue::Number(0))]);
    }

    /// It ends.
    pub fn end(&mut self, at: EventPlace<'_>, task: &str) {
        self.event(at, &format!("{task}__return"), &[(PROBED[1], FieldValue::Number(0))]);
    }

    /// Events of a CPU were lost before this time.
    pub fn lost(&mut self, cpu: u32, time: u64, events: Option<u64>) {
        if cpu < MOST_CPUS {
            let records = self.cpus.entry(cpu).or_default();
            let from = if records.last == 0 { time } else { records.last.min(time) };
            records.losses.push(ClockLoss { from, to: time, events });
        }
    }

    /// An event by its name, always with the same fields.
    pub fn event(&mut self, at: EventPlace<'_>, name: &str, fields: &[(&'static str, FieldValue<'_>)]) {
        if at.cpu >= MOST_CPUS {
            return self.unreadable(|| format!("CPU {}", at.cpu));
        }
        let Some(class) = self.class(name, fields) else {
            return self.unused(|| "names of events beyond the first thousands".to_owned());
        };
        self.know(at.time, at.thread);
        let records = self.cpus.entry(at.cpu).or_default();
        records.is_unordered |= at.time < records.last;
        records.last = records.last.max(at.time);
        let begin = records.bytes.len();
        records.bytes.extend([0; 4]);
        records.bytes.extend((class.index() as u32).to_le_bytes());
        records.bytes.extend(at.time.to_le_bytes());
        records.bytes.extend(at.thread.tid.to_le_bytes());
        records.bytes.extend(at.thread.pid.to_le_bytes());
        let mut text_at = fields.iter().map(|(_, value)| value.size()).sum::<usize>();
        for (_, value) in fields {
            match value {
                FieldValue::Number(number) => records.bytes.extend(number.to_le_bytes()),
                FieldValue::Text(text) => {
                    let length = text.len().min(MOST_TEXT);
                    records.bytes.extend(((length << 16 | text_at) as u32).to_le_bytes());
                    text_at += length;
                }
            }
        }
        for (_, value) in fields {
            if let FieldValue::Text(text) = value {
                records.bytes.extend(text.get(..MOST_TEXT).unwrap_or(text));
            }
        }
        let size = (records.bytes.len() - begin) as u32;
        if let Some(place) = records.bytes.get_mut(begin..begin + 4) {
            place.copy_from_slice(&size.to_le_bytes());
        }
    }

    fn class(&mut self, name: &str, fields: &[(&'static str, FieldValue<'_>)]) -> Option<ClassId> {
        if let Some(class) = self.by_name.get(name) {
            return Some(*class);
        }
        if self.schemas.len() >= MOST_CLASSES {
            return None;
        }
        let mut at = 0;
        let fields = fields
            .iter()
            .map(|(name, value)| {
                let field = Field::new(name, at, value.size(), value.field_type());
                at += value.size();
                field
            })
            .collect();
        let class = ClassId::at(self.schemas.len());
        self.by_name.insert(name.to_owned(), class);
        let threads = self.thread_ids;
        self.schemas.push(ClassSchema { name: name.to_owned(), fields, threads, ..ClassSchema::default() });
        Some(class)
    }

    /// Sort, cut into packets.
    pub fn seal(mut self) -> SealedTranslation {
        if self.thread_ids == RecordedIds::Initial {
            self.threads.named(0, 0, b"swapper");
        }
        self.threads.seal();
        let (mut cpus, mut cpu_streams) = (Vec::new(), Vec::new());
        for (cpu, records) in self.cpus {
            let bytes = if records.is_unordered { sorted(&records.bytes) } else { records.bytes };
            let mut stream = CpuStream { name: format!("cpu {cpu}"), cpu: Some(cpu), ..CpuStream::default() };
            stream.losses = records.losses;
            stream.losses.sort_by_key(|loss| (loss.to, loss.from));
            let mut packets: Vec<usize> = Vec::new();
            let mut at = 0;
            while let Some(RecordHead { size, time, .. }) = bytes.get(at..).and_then(RecordHead::read) {
                match (stream.packets.last_mut(), packets.last()) {
                    (Some(packet), Some(begin)) if at - begin < PACKET => {
                        (packet.end, packet.bytes) = (time, (at + size - begin) as u64);
                    }
                    _ => {
                        packets.push(at);
                        stream.packets.push(CpuPacket { begin: time, end: time, bytes: size as u64 });
                    }
                }
                at += size.max(HEAD);
            }
            cpus.push(CpuRecords { bytes, packets });
            cpu_streams.push(stream);
        }
        let storage = TranslatedStorage { format: self.format, name: self.name, cpus, threads: self.threads };
        SealedTranslation { storage, schemas: self.schemas, cpu_streams, notices: self.notices }
    }
}

impl FieldValue<'_> {
    fn size(&self) -> usize {
        match self {
            FieldValue::Number(_) => 8,
            FieldValue::Text(_) => 4,
        }
    }

    fn field_type(&self) -> FieldType {
        match self {
            FieldValue::Number(_) => FieldType::Number { signed: true },
            FieldValue::Text(_) => FieldType::Elsewhere { relative: false, width: None },
        }
    }
}

/// Records in order of time; those of one time keep their order.
fn sorted(bytes: &[u8]) -> Vec<u8> {
    let (mut places, mut at) = (Vec::new(), 0);
    while let Some(RecordHead { size, time, .. }) = bytes.get(at..).and_then(RecordHead::read) {
        places.push((time, at, size));
        at += size.max(HEAD);
    }
    places.sort_by_key(|(time, at, _)| (*time, *at));
    let mut out = Vec::with_capacity(bytes.len());
    for (_, at, size) in places {
        out.extend_from_slice(bytes.get(at..at + size).unwrap_or(&[]));
    }
    out
}
