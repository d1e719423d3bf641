//! trace.dat: the kernel's ring buffers, as `trace-cmd record` (and `extract`) writes them.
//!
//! ```text
//! head, sections, options -> formats -> classes
//! pages of each CPU, unpacked where they are compressed -> index of packets -> walk -> records of
//!     tracepoint::TracepointReader
//! ```
//! A stream is one CPU of one buffer; a packet is some of its pages. The loss that a page reports is between the last
//! record of the previous page and its first record; events that only the counters of the CPU report were overwritten
//! before the first page.

mod account;
mod classes;
mod cpu_pages;
mod format;
mod index;
mod maps;
mod marker;
mod open;
mod pages;
mod processes;
mod sections;
mod storage;
mod undescribed;
mod unpack;
mod version_6;
mod version_7;

pub use format::FORMAT;
pub use maps::MappedFile;
pub use open::open;
pub use storage::{FtraceStorage, FtraceTrace};
