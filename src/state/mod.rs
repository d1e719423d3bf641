//! The kernel state model and the state history.
//!
//! - [`attributes`]: the lines of the history, named by paths, found by patterns
//! - [`history`]: what held on each line from when to when, and the tree (R-SHT) that answers questions about it

pub mod attributes;
pub mod history;
