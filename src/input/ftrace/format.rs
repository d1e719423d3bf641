//! The format trace.dat: its row in the registry.

use crate::input::format::{InputFormat, Listed};
use crate::input::tracepoint::head;
use crate::model::recorder::TraceRecorder;

/// Formats in a trace.dat from which it declares those of all systems, whether or not they were enabled.
const ALL_SYSTEMS: usize = 100;

/// A trace.dat.
pub static FORMAT: InputFormat = InputFormat {
    name: "trace.dat",
    listed: Listed::As("a trace.dat"),
    is_one: |named| named.begin().starts_with(head::MAGIC),
    temporary_files: 1,
    recorder: TraceRecorder::TraceCmd,
    declares_unrecorded: |_, classes| classes >= ALL_SYSTEMS,
    stacks_are_records: true,
    has_kernel_clocks: true,
};
