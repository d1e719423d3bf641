//! perf.data: what `perf record` writes.
//!
//! ```text
//! header (attrs, features, formats) -> classes
//! records -> index: runs -> streams: one per CPU, runs as packets -> walk -> records of tracepoint::TracepointReader
//! ```
//! A file, the output of a pipe, or a directory with one data file per thread of perf; compressed records are unpacked
//! before all else (`unpack.rs`). Samples of tracepoints have the fields of the kernel's format; samples of clocks and
//! counters have their call chain. perf's `tools/perf/Documentation/perf.data-file-format.txt` and
//! `include/uapi/linux/perf_event.h`.

mod account;
pub mod attr;
mod attrs;
mod backward;
mod chain_parts;
pub mod chains;
pub mod copies;
mod format;
pub mod header;
mod index;
mod merged;
mod open;
mod parts;
mod record_types;
mod runs;
mod sample;
mod schemas;
pub mod side;
mod storage;
mod streams;
mod unpack;
mod walk;
mod walk_rules;

pub use format::{FORMAT, header_file};
pub use open::open;
pub use storage::{PerfStorage, PerfTrace};
