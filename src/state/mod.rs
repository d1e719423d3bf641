//! The kernel state model and the state history.
//!
//! [`kernel`] turns events into state changes and into a sealed [`timeline`]; [`history`] names its rows by
//! [`attributes`] and answers a query of a view in microseconds.
//!
//! - [`attributes`]: the attributes of the history, named by paths, found by patterns
//! - [`derived`]: rows that an analysis derives, in a store of their own
//! - [`draft`]: a timeline while it is put together
//! - [`file`]: a timeline in a file, and back
//! - [`history`]: the value of each attribute over time, as a view of the rows
//! - [`reader`]: the way to the rows of a timeline; [`questions`] counts what is asked of it
//! - `part_cursor`: a line part by part, and what is known of parts without their leaves
//! - [`rows`]: rows of CPUs, devices, hosts and tasks
//! - [`segments`]: a thread's segments, system calls and stack samples
//! - `slabs`: segments that benchmarks seal slab by slab
//! - [`slot`]: the effect of a chunk of events on a slot whose carried-in value is not known
//! - [`store`]: the rows in compressed leaves, and the R-SHT above them
//! - [`threads`]: the thread instance that an id names
//! - [`window`]: questions about all threads in a window of time

pub mod attributes;
pub mod derived;
pub mod draft;
pub mod file;
pub mod history;
pub mod kernel;
mod part_cursor;
pub mod questions;
pub mod reader;
#[cfg(test)]
mod reader_tests;
pub mod rows;
pub mod segments;
#[cfg(not(program))]
pub mod slabs;
pub mod slot;
mod store;
pub mod tables;
pub mod threads;
pub mod timeline;
pub mod window;
