//! Explanations: who waited for whom, along which path, in which functions.

pub use crate::state::recording;
pub mod symbols;
pub mod usage;
