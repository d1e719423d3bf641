//! The kernel state model and the state history.
//!
//! - [`attributes`]: the lines of the history, named by paths, found by patterns
//! - [`history`]: what held on each line from when to when, and the tree (R-SHT) that answers questions about it
//! - [`segments`]: spans without a line (system calls, executions), in any of three orders
//! - [`summary`]: time per state at several scales, exact

pub mod attributes;
pub mod history;
pub mod segments;
pub mod summary;
