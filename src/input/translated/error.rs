//! The reasons why a file cannot be translated.

use crate::input::error::FormatError;

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

impl FormatError for TranslationError {}
