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

mod about;
mod chrome;
mod chrome_event;
mod dtrace;
mod error;
mod event_place;
mod file_records;
mod firefox;
mod firefox_tables;
mod folded;
mod formats;
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

pub use about::TranslatedTrace;
pub use formats::{FORMATS, TranslatedFile, TranslatedFormat};
pub use span_file::{KernelOfSpans, SpanFile};
pub use storage::TranslatedStorage;
pub use thread_runs::{CpuSwitch, ThreadRuns};
