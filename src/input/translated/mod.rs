//! Recordings of other platforms and tools: they are translated when they are opened, into records of the same form as
//! the kernel's tracepoints.
//!
//! ```text
//! dtrace.rs, xperf.rs, tracerpt.rs (text), perfetto.rs (protocol buffers; tracks.rs), chrome.rs (JSON)
//! script.rs (text of perf script, by all workers; joined.rs), folded.rs (folded stacks), profile.rs (Firefox)
//!     -> frames.rs: functions by their names
//!     -> spans.rs, thread_runs.rs: spans of programs, on the CPU where their thread ran
//!     -> translation.rs: records of each CPU
//!     -> storage.rs: packets -> walk -> records of tracepoint::TracepointReader
//! ```
//! The file is read once, in order, a line or a message at a time; lines and messages have a greatest length. The
//! records stay in memory: about as many bytes as the text. docs/OTHER-PLATFORMS.md has the grammars. What a file does
//! not say stays unknown: without wake-ups a wait has no cause.

mod chrome;
mod chrome_event;
mod dtrace;
mod firefox;
mod firefox_tables;
mod folded;
mod frames;
mod joined;
mod latest_threads;
mod lines;
mod outcome;
mod perfetto;
mod perfetto_devices;
mod perfetto_messages;
mod script;
mod script_event;
mod script_frames;
mod script_line;
mod script_part;
mod script_records;
mod sealed;
mod span_file;
mod spans;
mod storage;
mod thread_ids;
mod thread_runs;
mod tracerpt;
mod track_messages;
mod tracks;
mod translation;
mod unicode_text;
mod xperf;

use super::error::FormatError;
use super::formats::{InputFormat, Listed, NamedFile, OpenedBy, OpenedFile, PLAIN};
use super::trace::Trace;
use super::tracepoint::{RecorderClock, TraceParts, TracepointTrace};
use super::{OpenError, Unreadable};
use crate::base::ctx::Cancelled;
use crate::base::mapped;
use crate::model::recorder::TraceRecorder;
use sealed::SealedTranslation;
pub use span_file::{KernelOfSpans, SpanFile};
use spans::Spans;
use std::fs::File;
use std::io::{self, BufReader};
pub use storage::TranslatedStorage;
pub use thread_runs::{CpuSwitch, ThreadRuns};
use translation::Translation;

/// An opened recording.
pub type TranslatedTrace = TracepointTrace<TranslatedStorage>;

/// The formats, in the order in which a file is asked for them.
pub(super) static FORMATS: [InputFormat; 8] = [
    InputFormat {
        name: "DTrace text",
        listed: Listed::FileOf("DTrace"),
        is_one: |named| named.text().starts_with(dtrace::BEGIN.as_bytes()),
        opened_by: OpenedBy::File(|file| translated(file, |from, to| Ok(dtrace::read(&mut from.reader, to)))),
        recorder: TraceRecorder::Dtrace,
        ..PLAIN
    },
    InputFormat {
        name: "ETW text (xperf)",
        listed: Listed::FileOf("ETW"),
        is_one: |named| named.text().starts_with(xperf::BEGIN.as_bytes()),
        opened_by: OpenedBy::File(|file| translated(file, |from, to| Ok(xperf::read(&mut from.reader, to)))),
        recorder: TraceRecorder::Etw,
        ..PLAIN
    },
    InputFormat {
        name: "ETW text (tracerpt)",
        listed: Listed::FileOf("ETW"),
        is_one: |named| named.text().starts_with(tracerpt::BEGIN.as_bytes()),
        opened_by: OpenedBy::File(|file| translated(file, |from, to| Ok(tracerpt::read(&mut from.reader, to)))),
        recorder: TraceRecorder::Etw,
        ..PLAIN
    },
    InputFormat {
        name: "Perfetto",
        listed: Listed::FileOf("Perfetto"),
        is_one: |named| perfetto::is_one(named.begin()),
        opened_by: OpenedBy::File(|file| translated(file, |from, to| Ok(perfetto::read(&mut from.reader, to)))),
        recorder: TraceRecorder::Perfetto,
        ..PLAIN
    },
    InputFormat {
        name: "Chrome JSON",
        listed: Listed::FileOf("Chrome JSON"),
        is_one: |named| chrome::is_one(named.begin()),
        opened_by: OpenedBy::File(|file| {
            translated(file, |from, to| Ok(chrome::read(&mut from.reader, from.size, to)))
        }),
        ..PLAIN
    },
    InputFormat {
        name: "perf script text",
        listed: Listed::As("text of `perf script`"),
        is_one: |named| script::is_one(named.begin()),
        opened_by: OpenedBy::File(|file| translated(file, |_, to| script::read_file(file.path, to, file.ctx))),
        recorder: TraceRecorder::Perf,
        ..PLAIN
    },
    InputFormat {
        name: "folded stacks",
        listed: Listed::As("folded stacks"),
        is_one: |named| folded::is_one(named.begin()),
        opened_by: OpenedBy::File(|file| translated(file, |from, to| Ok(folded::read(&mut from.reader, to)))),
        ..PLAIN
    },
    InputFormat {
        name: "Firefox profile",
        listed: Listed::As("a Firefox profile"),
        is_one: |named| firefox::is_one(named.begin()),
        opened_by: OpenedBy::File(|file| {
            translated(file, |from, to| Ok(firefox::read(&mut from.reader, from.size, to)))
        }),
        ..PLAIN
    },
];

/// The reason why a file cannot be translated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TranslationError {
    /// The header lacks a part.
    #[error("line {line}: {expected} (docs/OTHER-PLATFORMS.md)")]
    Header {
        line: u64,
        /// The part that was expected, as a sentence.
        expected: &'static str,
    },
    /// No event of the file is of use.
    #[error("no context switch in it: {remedy}")]
    NoSwitches {
        /// The way to record them.
        remedy: &'static str,
    },
    /// Neither samples nor context switches are in it.
    #[error("no sample and no context switch in it: {remedy}")]
    NoSamples {
        /// The way to record them.
        remedy: &'static str,
    },
    /// A text that has to be in memory as a whole.
    #[error("it has more than {mebibytes} MiB; record a shorter time")]
    TooLarge {
        /// The most that is read.
        mebibytes: u64,
    },
    /// A profile that contradicts its format.
    #[error("not a profile of the Firefox profiler in its processed format: {0} (docs/OTHER-PLATFORMS.md)")]
    Json(String),
    /// A file of spans has none.
    #[error("no span of a program in it (phases B and E, X, or b and e)")]
    NoSpans,
    /// None of the threads of its spans is in the kernel's recording beside it.
    #[error(
        "none of the {0} threads of its spans ran in the kernel's recording beside it: record both at once; the ids of \
         threads in a container are not the kernel's"
    )]
    OtherThreads(usize),
    /// No begin or end of its spans that was compared is within the kernel's recording beside it.
    #[error(
        "its spans are of another time than the kernel's recording beside it: of those compared none begins or ends \
         within it on a thread that ran there, by the clock of that recording or by the wall clock; record both at \
         once, or the kernel on the clock of the spans, perf record -k CLOCK_MONOTONIC or trace-cmd record -C mono"
    )]
    OtherTime,
    /// The times of its spans are not those of the kernel's recording.
    #[error(
        "its spans are on another clock than the kernel's recording beside it, or of another time (their thread ran at \
         {agree} of {of} begins and ends): record the kernel on the clock of the spans, perf record -k CLOCK_MONOTONIC \
         or trace-cmd record -C mono"
    )]
    OtherClock {
        /// Begins and ends at which their thread ran.
        agree: usize,
        /// Begins and ends that were compared.
        of: usize,
    },
}

/// What a file says about its host and clock.
#[derive(Debug, Default)]
struct About {
    environment: Vec<(&'static str, String)>,
    clock: RecorderClock,
    /// Where it has no events of the kernel.
    spans: Option<Spans>,
}

/// A file that is read from its beginning.
struct PlainSource {
    reader: BufReader<File>,
    /// Bytes of the file.
    size: u64,
}

/// What a file says, or the reason why it cannot be read.
type Translated = Result<io::Result<Result<About, TranslationError>>, Cancelled>;

/// Open a file by the translation of its format.
fn translated(
    file: &NamedFile<'_>,
    read: impl FnOnce(&mut PlainSource, &mut Translation) -> Translated,
) -> Result<OpenedFile, OpenError> {
    let path = file.path;
    let io = |e: io::Error| Unreadable::from(e).at(path);
    let opened = mapped::open_regular(path).map_err(io)?;
    let size = opened.metadata().map_err(io)?.len();
    let mut source = PlainSource { reader: BufReader::with_capacity(1 << 18, opened), size };
    let mut translation = Translation::new(file.shown.to_owned());
    let read = read(&mut source, &mut translation)?;
    let mut about = read.map_err(io)?.map_err(|e| Unreadable::from(e).at(path))?;
    match about.spans.take() {
        Some(spans) if spans.is_empty() => Err(Unreadable::from(TranslationError::NoSpans).at(path)),
        Some(spans) => Ok(OpenedFile::Spans(Box::new(SpanFile::new(file, spans, about, translation)))),
        None => Ok(OpenedFile::Trace(Trace::new(about.trace(translation.seal(file.format))))),
    }
}

impl FormatError for TranslationError {}

impl About {
    fn trace(self, sealed: SealedTranslation) -> TranslatedTrace {
        TranslatedTrace::new(TraceParts {
            version: sealed.storage.format.name.to_owned(),
            storage: sealed.storage,
            schemas: sealed.schemas,
            cpu_streams: sealed.cpu_streams,
            environment: self.environment,
            clock: self.clock,
            notices: sealed.notices,
        })
    }
}
