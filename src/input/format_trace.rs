//! What a format answers about one of its traces, its records aside: classes, fields, streams, clocks, files, notices.

use super::error::LeftOut;
use super::format::InputFormat;
use super::record::{ClassId, Scope, StreamId};
use super::recorded_code::RecordedCode;
use super::stream::{CanonicalTime, Class, SimpleField, Stream};
use crate::base::mapped::Mapped;
use crate::base::notice::Notices;
use crate::base::time::{ClockCorrection, Ns, Timestamp};
use crate::model::recorder::TraceRecorder;
use std::fmt::Debug;

/// What a format answers about one of its traces.
pub trait FormatTrace: Debug + Send + Sync {
    fn format(&self) -> &'static InputFormat;
    /// Format and version.
    fn version(&self) -> String;
    /// The program that wrote it.
    fn recorder(&self) -> TraceRecorder {
        self.format().recorder
    }
    /// Record classes by [`ClassId`].
    fn classes(&self) -> &[Class];
    /// True where records of the class can have the field.
    fn has_field(&self, class: ClassId, scope: Scope, dotted: &str) -> bool;
    /// The payload's direct members that are integers or text.
    fn payload_fields(&self, class: ClassId) -> Vec<SimpleField<'_>>;
    /// The contexts' direct members that are integers or text.
    fn context_fields(&self, class: ClassId) -> Vec<SimpleField<'_>>;
    /// Streams by [`StreamId`].
    fn streams(&self) -> &[Stream];
    /// A member of the trace environment (`hostname`, `kernel_release`, `domain` ...), numbers as text.
    fn environment(&self, name: &str) -> Option<&str>;
    /// Uuid of the clock, where there is exactly one clock and it has one.
    fn clock_uuid(&self) -> Option<&str>;
    /// Name of the clock, where there is exactly one.
    fn clock_name(&self) -> Option<&str>;
    /// What the common time line adds to the monotonic clock of the recorded machine, where the trace has that clock.
    fn monotonic(&self) -> Option<Ns>;
    /// What it adds to the clock that goes on while the machine is suspended, where the trace has that one.
    fn boottime(&self) -> Option<Ns> {
        None
    }
    /// Uuid of the trace, where it has one: equal in all chunks of a session.
    fn uuid(&self) -> Option<&str> {
        None
    }
    /// Equal for traces that share their schema: record classes, fields and environment are the same, so that what is
    /// compiled for one holds for all.
    fn schema_key(&self) -> Option<usize> {
        None
    }
    /// Bytes on the heap, without what traces of one schema share.
    fn heap_bytes(&self) -> usize;
    /// Bytes on the heap that traces of one schema share.
    fn shared_bytes(&self) -> usize {
        0
    }
    /// What it says of code, outside of its records.
    fn code(&self) -> RecordedCode<'_> {
        RecordedCode::default()
    }
    /// Use the clock of another trace, which counts from the same moment. For recordings whose clock has no uuid.
    fn join_clock(&mut self, _uuid: Option<&str>, _base: i128) {}
    /// The files that hold the records.
    fn files(&self) -> Vec<&Mapped>;
    /// Add the notice that something beside it was left out.
    fn left_out(&mut self, what: &LeftOut);
    /// Irregularities found when the trace was opened, and files truncated since: to be read when all records were
    /// read.
    fn notices(&self) -> Notices;
    /// The time of a clock value in a packet as `dump --canonical` prints it.
    fn canonical_time(&self, stream: StreamId, packet: usize, cycles: u64) -> CanonicalTime;
    /// The time of a clock value in a packet, on the common time line. `None`: the stream class has no clock.
    fn exact_time(&self, stream: StreamId, packet: usize, cycles: u64) -> Option<Timestamp>;
    /// The CPU that a packet names.
    fn packet_cpu(&self, stream: StreamId, packet: usize) -> Option<u32>;
    /// Give each clock the offset (in cycles from the origin) that its uuid has in another trace, if it has one.
    fn set_clock_offsets(&mut self, offset: &dyn Fn(&str) -> Option<i128>);
    /// Correct all clocks of the trace to another time line, which becomes the common one.
    fn correct_clocks(&mut self, correction: ClockCorrection);
    /// The uuids of the clocks, each with its first offset (in cycles from the origin).
    fn clock_offsets(&self) -> Vec<(&str, i128)>;
}
