//! The Common Trace Format, as the pipeline sees it.

use super::clock::CycleScale;
use super::trace::{CtfTrace, has_path};
use crate::base::mapped::Mapped;
use crate::base::notice::{Notice, Notices};
use crate::base::time::{ClockCorrection, Ns, Timestamp};
use crate::input::error::LeftOut;
use crate::input::format::{InputFormat, Listed, PLAIN};
use crate::input::format_trace::FormatTrace;
use crate::input::record::{ClassId, Scope, StreamId};
use crate::input::stream::{CanonicalTime, Class, SimpleField, Stream};
use crate::model::event_name::ESSENTIAL;
use crate::model::recorder::TraceRecorder;
use get_size2::GetSize;

/// A directory with metadata.
pub static FORMAT: InputFormat = InputFormat {
    name: "CTF",
    listed: Listed::As("a CTF trace directory"),
    is_one: |candidate| candidate.path.join("metadata").exists(),
    ..PLAIN
};

impl FormatTrace for CtfTrace {
    fn format(&self) -> &'static InputFormat {
        &FORMAT
    }

    fn version(&self) -> String {
        format!("CTF {}", if self.schema.version == 2 { "2" } else { "1.8" })
    }

    fn recorder(&self) -> TraceRecorder {
        match self.environment("tracer_name") {
            Some(name) if name.starts_with("lttng") => TraceRecorder::Lttng,
            // By `perf data convert --to-ctf`, which names no tracer.
            _ if self.classes().iter().any(|class| class.name == ESSENTIAL) => TraceRecorder::Perf,
            _ => TraceRecorder::Other,
        }
    }

    fn classes(&self) -> &[Class] {
        &self.tables.classes
    }

    fn has_field(&self, class: ClassId, scope: Scope, dotted: &str) -> bool {
        self.root(class, scope).is_some_and(|root| has_path(root, Some(dotted)))
    }

    fn payload_fields(&self, class: ClassId) -> Vec<SimpleField<'_>> {
        self.fields(class, Scope::Payload).collect()
    }

    fn context_fields(&self, class: ClassId) -> Vec<SimpleField<'_>> {
        self.fields(class, Scope::CommonContext).chain(self.fields(class, Scope::SpecificContext)).collect()
    }

    fn streams(&self) -> &[Stream] {
        &self.streams
    }

    fn environment(&self, name: &str) -> Option<&str> {
        self.schema.environment.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    fn clock_uuid(&self) -> Option<&str> {
        match self.schema.clocks.as_slice() {
            [clock] => clock.uuid.as_deref(),
            _ => None,
        }
    }

    fn clock_name(&self) -> Option<&str> {
        match self.schema.clocks.as_slice() {
            [clock] => Some(&clock.name),
            _ => None,
        }
    }

    fn monotonic(&self) -> Option<Ns> {
        let [clock] = self.schema.clocks.as_slice() else { return None };
        let is_monotonic = clock.name == "monotonic" && clock.frequency == 1_000_000_000;
        is_monotonic.then(|| CycleScale::of(clock).ns(0).ns())
    }

    fn uuid(&self) -> Option<&str> {
        self.schema.uuid.as_deref()
    }

    fn schema_key(&self) -> Option<usize> {
        Some(self.schema_address())
    }

    fn heap_bytes(&self) -> usize {
        self.get_heap_size()
    }

    fn shared_bytes(&self) -> usize {
        self.schema.get_heap_size() + self.tables.get_heap_size()
    }

    fn files(&self) -> Vec<&Mapped> {
        self.files.iter().map(|file| &file.mapped).collect()
    }

    fn left_out(&mut self, LeftOut { notice, place }: &LeftOut) {
        self.notices.add(*notice, 1, || place.clone());
    }

    fn notices(&self) -> Notices {
        let mut notices = self.notices.clone();
        for file in self.files.iter().filter(|file| file.mapped.lost()) {
            notices.add(Notice::MappingLost, 1, || file.name.clone());
        }
        notices
    }

    fn canonical_time(&self, stream: StreamId, packet: usize, cycles: u64) -> CanonicalTime {
        let Some(clock) = self.clock(stream, packet) else { return CanonicalTime::NoClock };
        clock.clock.canonical(cycles).map_or(CanonicalTime::Overflow, CanonicalTime::At)
    }

    fn exact_time(&self, stream: StreamId, packet: usize, cycles: u64) -> Option<Timestamp> {
        Some(self.clock(stream, packet)?.common.ns(cycles))
    }

    fn packet_cpu(&self, stream: StreamId, packet: usize) -> Option<u32> {
        self.packet(stream, packet).and_then(|(_, place)| place.cpu)
    }

    fn set_clock_offsets(&mut self, offset: &dyn Fn(&str) -> Option<i128>) {
        let mut changed = false;
        for clock in self.chunks.iter_mut().flat_map(|chunk| &mut chunk.clocks) {
            if let Some(base) = clock.clock.uuid.as_deref().and_then(offset)
                && base != clock.common.base
            {
                clock.common.base = base;
                changed = true;
            }
        }
        if changed {
            self.time_packets();
        }
    }

    fn correct_clocks(&mut self, correction: ClockCorrection) {
        for clock in self.chunks.iter_mut().flat_map(|chunk| &mut chunk.clocks) {
            clock.common.correction = Some(correction);
        }
        self.time_packets();
    }

    fn clock_offsets(&self) -> Vec<(&str, i128)> {
        let clocks = self.chunks.iter().flat_map(|chunk| &chunk.clocks);
        clocks.filter_map(|clock| Some((clock.clock.uuid.as_deref()?, clock.common.base))).collect()
    }
}
