//! The kernel state model and the state history.

pub mod kernel;
pub mod recording;
