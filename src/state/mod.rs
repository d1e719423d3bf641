//! The kernel state model and the state history.

pub mod engine;
pub mod kernel;
pub mod recording;
