//! Explanations: who waited for whom, along which path, in which functions.

pub mod offsets;
pub mod patterns;
pub mod recording;
