//! Recordings of the kernel's own tracepoints by perf or ftrace: what both formats share.
//!
//! Both carry, CPU by CPU, the kernel's records in the kernel's layout, and the text that describes them (`format.rs`,
//! `head.rs`). The formats differ in how the next record is found: a [`Storage`] knows the packets of its streams and
//! walks through them ([`Walk`]). The rest is here: classes, contexts that are computed, not recorded (process and name
//! of a thread, call stacks), the clock, and a [`TracepointReader`] that reads fields of records at fixed offsets
//! ([`plan`]). Values borrow from the mapped file; nothing is allocated for a record.

pub mod account;
pub mod class;
pub mod clock;
pub mod format;
pub mod head;
pub mod plan;
pub mod reader;
pub mod threads;

use super::account::Account;
use super::error::LeftOut;
use super::formats::InputFormat;
use super::perf::PerfTrace;
use super::record::{ClassId, IntegerArray, Projection, Scope, StreamId};
use super::stream::{CanonicalTime, Class, SimpleField, Stream};
use super::trace::{FormatTrace, Plan, Reader, RecordedCode};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::cursor::ByteOrder;
use crate::base::heap::block;
use crate::base::mapped::Mapped;
use crate::base::notice::Notices;
use crate::base::time::{ClockCorrection, Ns, Timestamp};
pub use class::{ClassSchema, ContextField, RecordedIds};
pub use clock::{ClockLoss, CpuPacket, CpuStream, RecorderClock};
use format::{Field, FieldType, Format};
use plan::TracepointPlan;
use reader::TracepointReader;
use std::borrow::Cow;
use std::fmt::Debug;
use std::ops::Range;
use threads::Threads;

/// The member of the environment that says whether the events are the kernel's or those of programs.
pub const DOMAIN: &str = "domain";

/// A record in the recording.
#[derive(Clone, Copy, Debug)]
pub struct Raw<'a> {
    pub class: ClassId,
    /// Its time on the recorder's clock, in ns.
    pub clock: u64,
    /// The bytes that hold the fields of its class.
    pub body: &'a [u8],
    /// perf: the whole sample. ftrace: what follows in the packet.
    pub around: &'a [u8],
    /// perf: the call chain in the sample, addresses of 8 bytes.
    pub chain: &'a [u8],
}

/// The result of one step through a packet.
#[derive(Clone, Copy, Debug)]
pub enum WalkStep<'a> {
    Record(Raw<'a>),
    /// The end of the packet.
    End,
    /// The data contradict the format: the rest of the packet is not read.
    Damage(&'static str),
}

/// The two parts of a call stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackSide {
    Kernel,
    /// In user space.
    User,
}

/// A position in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkPosition {
    /// The number of bytes, or of records, before it.
    pub at: u64,
    /// The recorder's clock there.
    pub clock: u64,
}

/// The place of a packet in the files of a recording.
#[derive(Clone, Copy, Debug)]
pub struct PacketPlace<'a> {
    /// The file's name.
    pub file: &'a str,
    /// Bytes before the packet.
    pub at: u64,
}

/// Steps from record to record through one packet.
pub trait Walk<'a>: Debug {
    /// The next record.
    fn next(&mut self) -> WalkStep<'a>;
    /// The position before the next record.
    fn position(&self) -> WalkPosition;
    /// The next record's bytes from the [place](Storage::place) of the packet.
    fn offset(&self) -> u64 {
        self.position().at
    }
    /// Go to a position that [`Walk::position`] returned.
    fn go(&mut self, position: WalkPosition);
    /// The thread that ran: its id in the initial namespace, where the record has it.
    fn thread(&self, raw: &Raw<'a>) -> Option<i32>;
    /// Its process, where the record has it.
    fn process(&self, raw: &Raw<'a>) -> Option<i32>;
    /// Addresses of the call stack on one side, innermost first.
    fn stack(&self, raw: &Raw<'a>, side: StackSide) -> Option<IntegerArray<'a>>;
}

/// The records of a recording.
pub trait Storage: Debug + Send + Sync {
    /// The walk through its packets.
    type Walk<'a>: Walk<'a>
    where
        Self: 'a;
    /// A walk from the beginning of a packet.
    fn walk(&self, stream: usize, packet: usize) -> Option<Self::Walk<'_>>;
    /// A walk through a packet has come to its end, or to damage.
    fn walked(&self, _stream: usize, _packet: usize, _walk: &Self::Walk<'_>) {}
    /// Names and processes of threads.
    fn threads(&self) -> &Threads;
    /// The place of a packet.
    fn place(&self, stream: usize, packet: usize) -> PacketPlace<'_>;
    /// Irregularities found since it was opened: truncated files, stacks that could not be unwound.
    fn notices(&self) -> Notices;
    /// The order of the bytes of numbers.
    fn byte_order(&self) -> ByteOrder;
    /// What the recording says of code.
    fn code(&self) -> RecordedCode<'_>;
    /// The files that hold the records.
    fn files(&self) -> Vec<&Mapped>;
    fn format(&self) -> &'static InputFormat;
    /// The reader of the format as one of any format.
    fn any_reader(reader: TracepointReader<'_, Self>) -> Reader<'_>
    where
        Self: Sized;
    /// See [`FormatTrace::account`].
    fn account(trace: &TracepointTrace<Self>, ctx: &Ctx) -> Result<Account, Cancelled>
    where
        Self: Sized;
    /// Bytes on the heap, where records are there.
    fn heap_bytes(&self) -> Option<usize> {
        None
    }
    /// See [`FormatTrace::as_perf`].
    fn as_perf(_trace: &TracepointTrace<Self>) -> Option<&PerfTrace>
    where
        Self: Sized,
    {
        None
    }
}

/// An opened recording.
#[derive(Debug)]
pub struct TracepointTrace<S> {
    storage: S,
    version: String,
    classes: Vec<Class>,
    schemas: Vec<ClassSchema>,
    cpu_streams: Vec<CpuStream>,
    streams: Vec<Stream>,
    environment: Vec<(&'static str, String)>,
    clock: RecorderClock,
    notices: Notices,
}

/// The parts of a recording.
#[derive(Debug)]
pub struct TraceParts<S> {
    pub storage: S,
    /// Format and version.
    pub version: String,
    /// Its classes, by [`ClassId`].
    pub schemas: Vec<ClassSchema>,
    /// Its streams, by [`StreamId`].
    pub cpu_streams: Vec<CpuStream>,
    /// Members of the environment; without [`DOMAIN`] the events are the kernel's.
    pub environment: Vec<(&'static str, String)>,
    pub clock: RecorderClock,
    /// Irregularities found while opening.
    pub notices: Notices,
}

impl<S: Storage> TracepointTrace<S> {
    /// Make a recording of its parts.
    pub fn new(parts: TraceParts<S>) -> TracepointTrace<S> {
        let TraceParts { storage, version, schemas, cpu_streams, mut environment, clock, notices } = parts;
        if !environment.iter().any(|(name, _)| *name == DOMAIN) {
            environment.push((DOMAIN, "kernel".to_owned()));
        }
        let classes = schemas
            .iter()
            .map(|schema| Class { name: schema.name.clone(), stream_class: 0, known_as: schema.known_as.clone() })
            .collect();
        let streams = Vec::new();
        let mut trace =
            TracepointTrace { storage, version, classes, schemas, cpu_streams, streams, environment, clock, notices };
        trace.time_streams();
        trace
    }

    /// Set the times of the streams, on the common time line as it is now.
    fn time_streams(&mut self) {
        let clock = &self.clock;
        let stream = |cpu_stream: &CpuStream| Stream {
            name: cpu_stream.name.clone(),
            stream_class: 0,
            cpu: cpu_stream.cpu,
            packets: cpu_stream.packets.iter().map(|packet| packet.on(clock)).collect(),
            losses: cpu_stream.losses.iter().map(|loss| loss.on(clock)).collect(),
            lost_packets: 0,
        };
        self.streams = self.cpu_streams.iter().map(stream).collect();
    }

    /// The records of the recording.
    pub fn storage(&self) -> &S {
        &self.storage
    }

    fn schema(&self, class: ClassId) -> Option<&ClassSchema> {
        self.schemas.get(class.index())
    }

    /// What is added to a clock of the recorded machine, if it is the recorder's.
    fn kernel_clock(&self, name: &str) -> Option<Ns> {
        (self.storage.format().has_kernel_clocks && self.clock.name == name).then(|| self.clock.ns(0).ns())
    }

    /// Compile a projection.
    pub fn compile(&self, projection: &Projection) -> TracepointPlan {
        TracepointPlan::new(&self.schemas, projection)
    }

    /// Read some packets of a stream.
    pub fn reader<'a>(
        &'a self,
        plan: &'a TracepointPlan,
        stream: StreamId,
        packets: Range<usize>,
    ) -> TracepointReader<'a, S> {
        TracepointReader::new(self, plan, stream, packets)
    }
}

impl<S: Storage> FormatTrace for TracepointTrace<S> {
    fn format(&self) -> &'static InputFormat {
        self.storage.format()
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn classes(&self) -> &[Class] {
        &self.classes
    }

    fn has_field(&self, class: ClassId, scope: Scope, dotted: &str) -> bool {
        let Some(schema) = self.schema(class) else { return false };
        match scope {
            Scope::Payload => schema.fields.iter().chain(&schema.common).any(|f| f.name == dotted),
            Scope::CommonContext => schema.contexts().any(|c| c.name() == dotted),
            Scope::SpecificContext => false,
        }
    }

    fn payload_fields(&self, class: ClassId) -> Vec<SimpleField<'_>> {
        let fields = self.schema(class).into_iter().flat_map(|schema| &schema.fields);
        fields.filter_map(|f| Some(SimpleField { name: f.name.as_str(), is_integer: f.is_number()? })).collect()
    }

    fn context_fields(&self, class: ClassId) -> Vec<SimpleField<'_>> {
        let contexts = self.schema(class).into_iter().flat_map(ClassSchema::contexts);
        let simple = contexts.filter_map(|context| match context {
            ContextField::Thread
            | ContextField::Process
            | ContextField::VirtualThread
            | ContextField::VirtualProcess => Some(SimpleField { name: context.name(), is_integer: true }),
            ContextField::Name => Some(SimpleField { name: context.name(), is_integer: false }),
            ContextField::KernelStack | ContextField::UserStack => None,
        });
        simple.collect()
    }

    fn streams(&self) -> &[Stream] {
        &self.streams
    }

    fn environment(&self, name: &str) -> Option<&str> {
        self.environment.iter().find(|(n, _)| *n == name).map(|(_, value)| value.as_str())
    }

    fn clock_uuid(&self) -> Option<&str> {
        self.clock.uuid.as_deref()
    }

    fn clock_name(&self) -> Option<&str> {
        Some(&self.clock.name)
    }

    fn monotonic(&self) -> Option<Ns> {
        self.kernel_clock("mono")
    }

    fn boottime(&self) -> Option<Ns> {
        self.kernel_clock("boot")
    }

    fn heap_bytes(&self) -> usize {
        let packets: usize = self.streams.iter().map(|stream| block(&stream.packets)).sum();
        self.storage.heap_bytes().unwrap_or(packets)
    }

    fn code(&self) -> RecordedCode<'_> {
        self.storage.code()
    }

    fn as_perf(&self) -> Option<&PerfTrace> {
        S::as_perf(self)
    }

    fn files(&self) -> Vec<&Mapped> {
        self.storage.files()
    }

    fn left_out(&mut self, LeftOut { notice, place }: &LeftOut) {
        self.notices.add(*notice, 1, || place.clone());
    }

    fn notices(&self) -> Notices {
        let mut notices = self.notices.clone();
        notices.merge(&self.storage.notices());
        notices
    }

    fn compile(&self, projection: &Projection) -> Plan {
        Plan::Tracepoints(self.compile(projection))
    }

    fn compile_whole(&self) -> Plan {
        Plan::Tracepoints(TracepointPlan::whole(&self.schemas))
    }

    fn reader<'a>(&'a self, plan: &'a Plan, stream: StreamId, packets: Range<usize>) -> Reader<'a> {
        match plan {
            Plan::Tracepoints(plan) => S::any_reader(self.reader(plan, stream, packets)),
            Plan::Ctf(_) => Reader::Nothing,
        }
    }

    fn canonical_time(&self, _stream: StreamId, _packet: usize, clock: u64) -> CanonicalTime {
        let time = Timestamp::checked(self.clock.base + i128::from(clock));
        time.map_or(CanonicalTime::Overflow, CanonicalTime::At)
    }

    fn exact_time(&self, _stream: StreamId, _packet: usize, clock: u64) -> Option<Timestamp> {
        Some(self.clock.ns(clock))
    }

    fn packet_cpu(&self, stream: StreamId, _packet: usize) -> Option<u32> {
        self.cpu_streams.get(stream.index())?.cpu
    }

    fn join_clock(&mut self, uuid: &str, base: i128) {
        self.clock.uuid = Some(uuid.to_owned());
        self.clock.base = base;
        self.time_streams();
    }

    fn set_clock_offsets(&mut self, offset: &dyn Fn(&str) -> Option<i128>) {
        let Some(uuid) = self.clock.uuid.clone() else { return };
        if let Some(base) = offset(&uuid).filter(|base| *base != self.clock.base) {
            self.join_clock(&uuid, base);
        }
    }

    fn correct_clocks(&mut self, correction: ClockCorrection) {
        self.clock.correction = Some(correction);
        self.time_streams();
    }

    fn clock_offsets(&self) -> Vec<(&str, i128)> {
        self.clock.uuid.as_deref().map(|uuid| (uuid, self.clock.base)).into_iter().collect()
    }

    fn account(&self, ctx: &Ctx) -> Result<Account, Cancelled> {
        S::account(self, ctx)
    }
}

/// True for common fields that the record's other fields do not repeat: `common_pid` is the context `tid`.
pub fn is_of_interest(common: &str) -> bool {
    matches!(common, "common_flags" | "common_preempt_count")
}

/// Fields that the kernel gives to events of probes (`Documentation/trace/uprobetracer.rst`, `kprobetrace.rst`).
pub const PROBED: [&str; 2] = ["__probe_ip", "__probe_func"];

/// The LTTng kernel tracer's name of a tracepoint. `sched_process_fork` gets a name of its own, because its `child_pid`
/// is a thread's id here.
pub fn known_as(format: &Format) -> Option<Cow<'static, str>> {
    let Format { system, name, .. } = format;
    // Users choose the names of probes, so these names have no meaning of the kernel.
    if format.fields.iter().any(|field| PROBED.contains(&field.name.as_str())) {
        return None;
    }
    Some(match (system.as_str(), name.as_str()) {
        ("syscalls", name) => match name.split_at_checked(9) {
            Some(("sys_enter", call)) => format!("syscall_entry{call}").into(),
            _ => format!("syscall_exit{}", name.strip_prefix("sys_exit")?).into(),
        },
        ("raw_syscalls", name) => format!("raw_syscalls:{name}").into(),
        ("irq", "softirq_raise" | "softirq_entry" | "softirq_exit") => format!("irq_{name}").into(),
        ("timer", name) if name.starts_with("hrtimer_expire") => format!("timer_{name}").into(),
        ("irq_vectors", name) => format!("x86_irq_vectors_{name}").into(),
        ("exceptions", name) => format!("x86_exceptions_{name}").into(),
        ("net", name) if name.starts_with("netif_receive_skb") => format!("net_if_{}", name.get(6..)?).into(),
        ("net", name) if name.starts_with("napi_gro") => format!("net_{name}").into(),
        ("sched", "sched_process_fork") => "sched_process_fork:tids".into(),
        _ => name.clone().into(),
    })
}

/// The bytes of a field: at its own place, or at the place that it gives.
pub(super) fn bytes_of<'a>(body: &'a [u8], field: &Field, byte_order: ByteOrder) -> Option<&'a [u8]> {
    match field.field_type {
        FieldType::Number { .. } | FieldType::Text | FieldType::Words { .. } => body.get(field.at..)?.get(..field.size),
        FieldType::Rest { .. } => body.get(field.at..),
        FieldType::Given(_) => None,
        FieldType::Marker(part) => part.of(body.get(field.at..)?),
        FieldType::Elsewhere { relative, .. } => {
            let word: [u8; 4] = body.get(field.at..)?.get(..4)?.try_into().ok()?;
            let word = if byte_order == ByteOrder::Big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) };
            let from = if relative { field.at + 4 } else { 0 };
            body.get(from + (word & 0xffff) as usize..)?.get(..(word >> 16) as usize)
        }
    }
}
