//! Explanations: who waited for whom, along which path, in which functions.
//!
//! [`explain`] is the way through: a sealed [`recording`] in, a model out.

pub use crate::state::recording;
pub mod disk;
pub mod ecct;
pub mod executions;
pub mod explain;
pub mod frames;
pub mod metrics;
pub mod outline;
pub mod path;
pub mod stacks;
#[cfg(test)]
mod story;
pub mod survey;
pub mod symbols;
pub mod thread_names;
pub mod usage;
