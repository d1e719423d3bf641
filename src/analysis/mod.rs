//! Explanations: who waited for whom, along which path, in which functions.

pub use crate::state::recording;
pub mod disk;
pub mod executions;
pub mod frames;
pub mod outline;
pub mod stacks;
pub mod symbols;
pub mod thread_names;
pub mod usage;
