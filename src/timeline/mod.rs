//! The states of threads and CPUs over time, sealed, and the state history.
//!
//! `kernel` drafts a timeline, `session` seals it, `saved` keeps it in a file; [`history`] names its rows by
//! [`attributes`] and answers a query of a view in microseconds.
//!
//! - [`attributes`]: the attributes of the history, named by paths, found by patterns
//! - [`derived`]: rows that an analysis derives, in a store of their own
//! - [`draft`]: a timeline while it is put together
//! - `recorded`: a timeline whose events are all read, while steps complete it
//! - [`history`]: the value of each attribute over time, as a view of the rows
//! - [`reader`]: the way to the rows of a timeline; [`questions`] counts what is asked of it
//! - `part_cursor`: a line part by part, and what is known of parts without their leaves
//! - [`rows`]: rows of CPUs, devices, hosts and tasks
//! - [`segments`]: a thread's segments, system calls and stack samples
//! - `slabs`: segments that benchmarks seal slab by slab
//! - [`store`]: the rows in compressed leaves, and the R-SHT above them
//! - [`window`]: questions about all threads in a window of time

pub mod attributes;
pub mod derived;
mod draft;
pub mod history;
mod part_cursor;
pub mod questions;
pub mod reader;
#[cfg(test)]
mod reader_tests;
mod recorded;
pub mod row;
mod rows;
mod sealed;
mod segments;
#[cfg(not(program))]
pub mod slabs;
pub mod store;
mod tables;
pub mod window;

pub use draft::{ThreadDraft, TimelineDraft};
pub use recorded::{RecordedTimeline, SegmentEnd};
pub use rows::{
    Counter, CounterOwner, CounterValue, CpuRun, CpuTimeline, DerivedField, DiskRequest, Host, HostCoverage, HostCpu,
    ImageEvent, Mark, MarkField, MarkRow, PageFault, Service, WakeStack,
};
pub use sealed::{Timeline, TimelineParts};
pub use segments::{
    Call, LONGEST_WAKE_UP, Segment, SegmentKind, StackChange, StackSample, Thread, ThreadId, ThreadName, ThreadRows,
    VirtualIds, Waker, known_cpu,
};
pub use tables::Tables;
