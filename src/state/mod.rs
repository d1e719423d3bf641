//! The kernel state model and the state history.
//!
//! [`kernel`] turns events into primitive slots and into a sealed [`timeline`]; [`history`] keeps state intervals of
//! any number of [`attributes`] so that a view's question is answered in microseconds.
//!
//! - [`attributes`]: the lines of the history, named by paths, found by patterns
//! - [`history`]: what held on each line from when to when, and the tree (R-SHT) that answers questions about it
//! - [`segments`]: a thread's segments, system calls and stack samples
//! - [`slot`]: what a chunk of events does to a slot whose value before is not known
//! - [`threads`]: which thread an id names
//! - [`summary`]: time per state at several scales, exact

pub mod attributes;
pub mod history;
pub mod kernel;
pub mod segments;
pub mod slot;
pub mod summary;
pub mod threads;
pub mod timeline;
