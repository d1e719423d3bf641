//! The kernel state model and the state history.

pub mod recording;
