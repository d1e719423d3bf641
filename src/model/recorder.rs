//! The programs that write traces.

/// The program that wrote a trace. New ones are the last, because databases have their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TraceRecorder {
    /// Another one, or unknown.
    #[default]
    Other,
    Lttng,
    Perf,
    TraceCmd,
    /// A DTrace script, in the grammar of docs/OTHER-PLATFORMS.md.
    Dtrace,
    /// Event Tracing for Windows, as text.
    Etw,
    Perfetto,
    /// Score-P, or another tracer of MPI runs that writes archives.
    ScoreP,
    Eztrace,
}

impl TraceRecorder {
    /// All, in the order of their numbers in a database.
    pub const ALL: [TraceRecorder; 9] = [
        TraceRecorder::Other,
        TraceRecorder::Lttng,
        TraceRecorder::Perf,
        TraceRecorder::TraceCmd,
        TraceRecorder::Dtrace,
        TraceRecorder::Etw,
        TraceRecorder::Perfetto,
        TraceRecorder::ScoreP,
        TraceRecorder::Eztrace,
    ];
}
