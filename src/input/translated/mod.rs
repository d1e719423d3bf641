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

use super::tracepoint::{RecorderClock, TraceParts, TracepointTrace};
use super::{OpenError, Unreadable};
use crate::base::ctx::Ctx;
use crate::base::mapped::{self, Mapped};
use sealed::SealedTranslation;
pub use span_file::{KernelOfSpans, SpanFile};
use spans::Spans;
use std::io::{BufReader, Read};
use std::path::Path;
pub use storage::TranslatedStorage;
pub use thread_runs::{CpuSwitch, ThreadRuns};
use translation::Translation;

/// An opened recording.
pub type TranslatedTrace = TracepointTrace<TranslatedStorage>;

/// An opened file.
#[derive(Debug)]
pub enum TranslatedInput {
    /// It has the kernel's events.
    Trace(Box<TranslatedTrace>),
    /// It has spans of programs alone.
    Spans(Box<SpanFile>),
}

/// A format that is translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TranslatedFormat {
    /// The output of a DTrace script.
    Dtrace,
    /// Events of Windows, by `xperf -a dumper`.
    Xperf,
    /// Events of Windows, by `tracerpt -of CSV`.
    Tracerpt,
    /// A trace of Perfetto.
    Perfetto,
    /// Spans of programs in Chrome's JSON.
    Chrome,
    /// The text of `perf script`.
    Script,
    /// A profile of the Firefox profiler.
    Firefox,
    /// Folded stacks.
    Folded,
}

impl TranslatedFormat {
    /// The format of a file that begins so.
    fn of(begin: &[u8]) -> Option<TranslatedFormat> {
        let text = begin.strip_prefix(b"\xef\xbb\xbf").unwrap_or(begin).trim_ascii_start();
        let begins = |with: &str| text.starts_with(with.as_bytes());
        match () {
            () if begins(dtrace::BEGIN) => Some(TranslatedFormat::Dtrace),
            () if begins(xperf::BEGIN) => Some(TranslatedFormat::Xperf),
            () if begins(tracerpt::BEGIN) => Some(TranslatedFormat::Tracerpt),
            () if perfetto::is_one(begin) => Some(TranslatedFormat::Perfetto),
            () if chrome::is_one(begin) => Some(TranslatedFormat::Chrome),
            () if script::is_one(begin) => Some(TranslatedFormat::Script),
            () if firefox::is_one(begin) => Some(TranslatedFormat::Firefox),
            () if folded::is_one(begin) => Some(TranslatedFormat::Folded),
            () => None,
        }
    }

    /// The format of the file at a path.
    pub fn at(path: &Path) -> Option<TranslatedFormat> {
        let mut begin = Vec::new();
        mapped::open_regular(path).and_then(|file| file.take(chrome::BEGIN).read_to_end(&mut begin)).ok()?;
        TranslatedFormat::of(&begin)
    }

    pub fn name(self) -> &'static str {
        match self {
            TranslatedFormat::Dtrace => "DTrace text",
            TranslatedFormat::Xperf => "ETW text (xperf)",
            TranslatedFormat::Tracerpt => "ETW text (tracerpt)",
            TranslatedFormat::Perfetto => "Perfetto",
            TranslatedFormat::Chrome => "Chrome JSON",
            TranslatedFormat::Script => "perf script text",
            TranslatedFormat::Firefox => "Firefox profile",
            TranslatedFormat::Folded => "folded stacks",
        }
    }
}

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

/// Open a file of one of the formats.
pub fn open(path: &Path, shown: &str, format: TranslatedFormat, ctx: &Ctx) -> Result<TranslatedInput, OpenError> {
    let io = |e: std::io::Error| Unreadable::from(e).at(path);
    let file = mapped::open_regular(path).map_err(io)?;
    let size = file.metadata().map_err(io)?.len();
    let mut file = BufReader::with_capacity(1 << 18, file);
    let mut translation = Translation::new(format, shown.to_owned());
    let read = match format {
        TranslatedFormat::Dtrace => dtrace::read(&mut file, &mut translation),
        TranslatedFormat::Xperf => xperf::read(&mut file, &mut translation),
        TranslatedFormat::Tracerpt => tracerpt::read(&mut file, &mut translation),
        TranslatedFormat::Perfetto => perfetto::read(&mut file, &mut translation),
        TranslatedFormat::Chrome => chrome::read(&mut file, size, &mut translation),
        TranslatedFormat::Firefox => firefox::read(&mut file, size, &mut translation),
        TranslatedFormat::Folded => folded::read(&mut file, &mut translation),
        TranslatedFormat::Script => Ok(script::read(Mapped::open(path).map_err(io)?.bytes(), &mut translation, ctx)?),
    };
    let mut about = read.map_err(io)?.map_err(|e| Unreadable::from(e).at(path))?;
    match about.spans.take() {
        Some(spans) if spans.is_empty() => Err(Unreadable::from(TranslationError::NoSpans).at(path)),
        Some(spans) => Ok(TranslatedInput::Spans(Box::new(SpanFile::new(path, spans, about, translation)))),
        None => Ok(TranslatedInput::Trace(Box::new(about.trace(translation.seal())))),
    }
}

impl About {
    fn trace(self, sealed: SealedTranslation) -> TranslatedTrace {
        TranslatedTrace::new(TraceParts {
            format: sealed.storage.format.name().to_owned(),
            storage: sealed.storage,
            schemas: sealed.schemas,
            cpu_streams: sealed.cpu_streams,
            environment: self.environment,
            clock: self.clock,
            notices: sealed.notices,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_is_told_by_the_begin_of_a_file() {
        let of = TranslatedFormat::of;
        assert_eq!(of(b"\n\nwhyslow-dtrace\t1\tos=FreeBSD\n"), Some(TranslatedFormat::Dtrace));
        assert_eq!(of(b"BeginHeader\r\n"), Some(TranslatedFormat::Xperf));
        assert_eq!(of(b"\xef\xbb\xbf   Event Name,   Type,"), Some(TranslatedFormat::Tracerpt));
        assert_eq!(of(b"\x0a\x04\x40\x01\x50\x01"), Some(TranslatedFormat::Perfetto));
        for other in [&b"\x0a\x0d\x0d\x0a\x1c\0\0\0"[..], b"", b"\n", b"hello", b"\nThis is text", b"\x0a\x02zz"] {
            assert_eq!(of(other), None, "{other:?}");
        }
    }
}
