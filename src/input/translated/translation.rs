//! Builds the records of a recording that is translated.
//!
//! In: events in the order of the file, each with CPU, time and thread. Out: the records of each CPU (`sealed.rs` puts
//! them in order of time); classes with the names and fields that the kernel's tracepoints have; names and processes of
//! threads. Cost: linear. The numbers of CPUs and of classes have limits.

use super::event_place::{EventPlace, NamedThread};
use super::frames::Frames;
use super::latest_threads::LatestThreads;
use super::outcome::RecordAccount;
use super::storage::{HEAD, WORD};
use crate::base::notice::{Notice, Notices};
use crate::input::record::ClassId;
use crate::input::tracepoint::format::{Field, FieldType};
use crate::input::tracepoint::threads::Threads;
use crate::input::tracepoint::{ClassSchema, ClockLoss, PROBED, RecordedIds};
use foldhash::HashMap;
use std::collections::BTreeMap;

/// The highest number of a CPU.
const MOST_CPUS: u32 = 4096;
/// The number of the CPU of events that name none.
pub(super) const UNKNOWN_CPU: u32 = MOST_CPUS;
/// Classes; names of system calls and tasks come from the file.
const MOST_CLASSES: usize = 4096;
/// Bytes of a text that are kept.
const MOST_TEXT: usize = 255;

/// The interrupt flag of the kernel's tracepoints (`TRACE_FLAG_SOFTIRQ`).
pub(super) const IN_INTERRUPT: i64 = 0x10;

/// The steps of a request of a disk.
pub(super) const DISK_STEPS: [&str; 3] = ["block:block_rq_insert", "block:block_rq_issue", COMPLETE];
/// The last step of a request of a disk.
pub(super) const COMPLETE: &str = "block:block_rq_complete";
/// Bytes of a sector.
pub(super) const SECTOR: u64 = 512;

/// A sample of the running thread, by the name that analyses know it by.
const TICK: &str = "perf:tick";
/// The event of samples that do not say what they count.
pub(super) const SAMPLES: &str = "samples";

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventUse {
    Used,
    /// Its kind is not known, or its CPU.
    Unknown,
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

/// The words of an event's call stacks, innermost first, at most 65,535 on each side.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StackWords<'a> {
    pub kernel: &'a [u64],
    pub user: &'a [u64],
}

/// Records and losses of a CPU.
#[derive(Debug, Default)]
pub(super) struct CpuTranslation {
    /// Records, in blocks that hold whole ones.
    pub blocks: Vec<Vec<u8>>,
    pub last: u64,
    pub is_unordered: bool,
    pub losses: Vec<ClockLoss>,
}

/// What is known so far.
#[derive(Debug)]
pub(super) struct Translation {
    pub name: String,
    pub schemas: Vec<ClassSchema>,
    by_name: HashMap<String, ClassId>,
    pub cpus: BTreeMap<u32, CpuTranslation>,
    pub threads: Threads,
    latest: LatestThreads,
    pub switches: u64,
    /// Functions on call stacks.
    pub frames: Frames,
    /// The ids that events have of their threads.
    pub thread_ids: RecordedIds,
    pub notices: Notices,
    /// What became of the records of the file.
    pub records: RecordAccount,
}

impl Translation {
    pub fn new(name: String) -> Translation {
        Translation {
            name,
            schemas: Vec::new(),
            by_name: HashMap::default(),
            cpus: BTreeMap::new(),
            threads: Threads::default(),
            latest: LatestThreads::default(),
            switches: 0,
            frames: Frames::default(),
            thread_ids: RecordedIds::Initial,
            notices: Notices::default(),
            records: RecordAccount::default(),
        }
    }

    /// True once a sample was added.
    pub fn has_samples(&self) -> bool {
        self.schemas.iter().any(|schema| schema.known_as.as_deref() == Some(TICK))
    }

    /// A sample of an event by its name, with its weight in the unit of the event.
    pub fn sample(&mut self, at: EventPlace<'_>, name: &str, period: u64, stacks: StackWords<'_>) {
        if self.is_placed(at.cpu) {
            let class = self.sample_class(name);
            self.record(at, class, [FieldValue::Number(period as i64)].into_iter(), stacks);
        }
    }

    /// The class of the samples of an event by its name: their field is their weight.
    pub fn sample_class(&mut self, name: &str) -> Option<ClassId> {
        let (known_as, name_of) = (Some(TICK.into()), || name.to_owned());
        let schema = || ClassSchema { name: name_of(), known_as, stacks: true, ..ClassSchema::default() };
        self.class(&format!("sample {name}"), schema, &[("period", FieldValue::Number(0))])
    }

    /// True once a context switch was added.
    pub fn has_switches(&self) -> bool {
        self.switches > 0
    }

    /// A line or message that contradicts its format.
    pub fn unreadable(&mut self, place: impl FnOnce() -> String) {
        let name = &self.name;
        self.notices.add(Notice::LinesUnread, 1, || format!("{name}: {}", place()));
        self.records.skipped(Notice::LinesUnread);
    }

    /// An event that no analysis uses.
    pub fn unused(&mut self, what: impl FnOnce() -> String) {
        self.notices.add(Notice::RecordsUnused, 1, what);
        self.records.skipped(Notice::RecordsUnused);
    }

    /// A thread has this name and process from a time on.
    pub fn know(&mut self, time: u64, thread: NamedThread<'_>) {
        self.records.description();
        if !self.latest.is_new(thread) {
            return;
        }
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

    /// A switch, with the kernel's number of the state in which the thread leaves.
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

    pub fn end(&mut self, at: EventPlace<'_>, task: &str) {
        self.event(at, &format!("{task}__return"), &[(PROBED[1], FieldValue::Number(0))]);
    }

    /// Events of a CPU were lost before this time.
    pub fn lost(&mut self, cpu: u32, time: u64, events: Option<u64>) {
        self.records.description();
        if self.is_placed(cpu) {
            let records = self.cpus.entry(cpu).or_default();
            let from = if records.last == 0 { time } else { records.last.min(time) };
            records.losses.push(ClockLoss { from, to: time, events });
        }
    }

    /// An event by its name, always with the same fields.
    pub fn event(&mut self, at: EventPlace<'_>, name: &str, fields: &[(&str, FieldValue<'_>)]) {
        if self.is_placed(at.cpu) {
            let class = self.class(name, || ClassSchema { name: name.to_owned(), ..ClassSchema::default() }, fields);
            self.record(at, class, fields.iter().map(|(_, value)| *value), StackWords::default());
        }
    }

    /// False for an event of a CPU that no machine has, which is counted.
    pub fn is_placed(&mut self, cpu: u32) -> bool {
        if cpu > UNKNOWN_CPU {
            self.unreadable(|| format!("CPU {cpu}"));
        }
        cpu <= UNKNOWN_CPU
    }

    /// An event of a class, where there was room for one, with the values of its fields: a record at the end of its
    /// CPU's.
    pub fn record<'a>(
        &mut self,
        at: EventPlace<'_>,
        class: Option<ClassId>,
        values: impl Iterator<Item = FieldValue<'a>> + Clone,
        stacks: StackWords<'_>,
    ) {
        let Some(class) = class else {
            return self.unused(|| "names of events beyond the first thousands".to_owned());
        };
        self.know(at.time, at.thread);
        let records = self.cpus.entry(at.cpu).or_default();
        records.is_unordered |= at.time < records.last;
        records.last = records.last.max(at.time);
        let kept = |value: FieldValue<'a>| match value {
            FieldValue::Number(_) => &b""[..],
            FieldValue::Text(text) => text.get(..MOST_TEXT).unwrap_or(text),
        };
        let StackWords { kernel, user } = stacks;
        let mut text_at: usize = values.clone().map(|value| value.size()).sum();
        let texts: usize = values.clone().map(|value| kept(value).len()).sum();
        let size = HEAD + text_at + texts + (kernel.len() + user.len()) * WORD;
        if records.blocks.is_empty() {
            records.blocks.push(Vec::new());
        }
        let Some(out) = records.blocks.last_mut() else { return };
        self.records.event();
        out.reserve(size);
        out.extend_from_slice(&(size as u32).to_le_bytes());
        out.extend_from_slice(&(class.index() as u32).to_le_bytes());
        out.extend_from_slice(&at.time.to_le_bytes());
        out.extend_from_slice(&at.thread.tid.to_le_bytes());
        out.extend_from_slice(&at.thread.pid.to_le_bytes());
        out.extend_from_slice(&(kernel.len() as u16).to_le_bytes());
        out.extend_from_slice(&(user.len() as u16).to_le_bytes());
        for value in values.clone() {
            match value {
                FieldValue::Number(number) => out.extend_from_slice(&number.to_le_bytes()),
                FieldValue::Text(_) => {
                    let length = kept(value).len();
                    out.extend_from_slice(&((length << 16 | text_at) as u32).to_le_bytes());
                    text_at += length;
                }
            }
        }
        values.for_each(|value| out.extend_from_slice(kept(value)));
        kernel.iter().chain(user).for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
    }

    /// The classes by their numbers, each with its key.
    pub fn keyed_schemas(&self) -> Vec<(String, ClassSchema)> {
        let mut keys: Vec<(ClassId, &String)> = self.by_name.iter().map(|(key, class)| (*class, key)).collect();
        keys.sort_unstable();
        keys.into_iter().zip(&self.schemas).map(|((_, key), schema)| (key.clone(), schema.clone())).collect()
    }

    /// The class of a key, made of the schema on first sight; `None` where there are too many.
    pub fn known_class(&mut self, key: String, schema: ClassSchema) -> Option<ClassId> {
        if let Some(class) = self.by_name.get(&key) {
            return Some(*class);
        }
        let class = ClassId::at(self.schemas.len());
        (self.schemas.len() < MOST_CLASSES).then(|| {
            self.by_name.insert(key, class);
            self.schemas.push(schema);
            class
        })
    }

    /// The class of a key, with these fields on first sight; `None` where there are too many.
    pub fn class(
        &mut self,
        key: &str,
        schema: impl FnOnce() -> ClassSchema,
        fields: &[(&str, FieldValue<'_>)],
    ) -> Option<ClassId> {
        if let Some(class) = self.by_name.get(key) {
            return Some(*class);
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
        let schema = ClassSchema { fields, threads: self.thread_ids, ..schema() };
        self.known_class(key.to_owned(), schema)
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
