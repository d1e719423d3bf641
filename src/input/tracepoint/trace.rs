//! An opened recording of tracepoints: its classes, streams, environment and clock, and the storage of its records.
//!
//! In: the parts that the opening of a format has made. Out: the answers of [`FormatTrace`]; streams have times on the
//! common time line, and get new ones when the clock is corrected.

use super::class::{ClassSchema, ContextField};
use super::clock::{CpuStream, RecorderClock};
use super::plan::TracepointPlan;
use super::storage::Storage;
use crate::base::mapped::Mapped;
use crate::base::notice::Notices;
use crate::base::time::{ClockCorrection, Ns, Timestamp};
use crate::input::error::LeftOut;
use crate::input::format::InputFormat;
use crate::input::format_trace::FormatTrace;
use crate::input::record::{ClassId, Projection, Scope, StreamId};
use crate::input::recorded_code::RecordedCode;
use crate::input::stream::{CanonicalTime, Class, SimpleField, Stream};
use get_size2::GetSize;
use std::fmt::Debug;

/// The member of the environment that says whether the events are the kernel's or those of programs.
pub const DOMAIN: &str = "domain";

/// An opened recording.
#[derive(Debug)]
pub struct TracepointTrace<S> {
    pub(super) storage: S,
    pub(super) version: String,
    pub(super) classes: Vec<Class>,
    pub(super) schemas: Vec<ClassSchema>,
    pub(super) cpu_streams: Vec<CpuStream>,
    pub(super) streams: Vec<Stream>,
    pub(super) environment: Vec<(&'static str, String)>,
    pub(super) clock: RecorderClock,
    pub(super) notices: Notices,
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

    /// Compile everything.
    pub fn compile_whole(&self) -> TracepointPlan {
        TracepointPlan::whole(&self.schemas)
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
        self.storage.heap_bytes().unwrap_or_else(|| self.streams.get_heap_size())
    }

    fn code(&self) -> RecordedCode<'_> {
        self.storage.code()
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

    fn join_clock(&mut self, uuid: Option<&str>, base: i128) {
        self.clock.uuid = uuid.map(str::to_owned);
        self.clock.base = base;
        self.time_streams();
    }

    fn set_clock_offsets(&mut self, offset: &dyn Fn(&str) -> Option<i128>) {
        let Some(uuid) = self.clock.uuid.clone() else { return };
        if let Some(base) = offset(&uuid).filter(|base| *base != self.clock.base) {
            self.join_clock(Some(&uuid), base);
        }
    }

    fn correct_clocks(&mut self, correction: ClockCorrection) {
        self.clock.correction = Some(correction);
        self.time_streams();
    }

    fn clock_offsets(&self) -> Vec<(&str, i128)> {
        self.clock.uuid.as_deref().map(|uuid| (uuid, self.clock.base)).into_iter().collect()
    }
}
