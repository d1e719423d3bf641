//! Explanations: who waited for whom, along which path, in which functions.

pub mod recording;
pub mod symbols;
pub mod usage;
