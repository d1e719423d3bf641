//! What a recording lacks for a question, and how to record it.
//!
//! - [`topic`]: the questions of an analysis, and the kernel events that answer each
//! - [`missing`]: the questions that a recording cannot answer, each with the line that records the answer;
//!   [`archive_gaps`] for MPI runs
//! - [`questions`]: what users ask, and whether the recording of a model answers it

pub mod archive_gaps;
pub mod missing;
pub mod questions;
pub mod topic;
