//! The kernel state model and the state history.
//!
//! [`kernel`] turns events into primitive slots and into a sealed [`recording`]; [`history`] keeps state intervals of
//! any number of [`attributes`] so that a view's question is answered in microseconds.

pub mod attributes;
pub mod engine;
pub mod history;
pub mod kernel;
pub mod recording;
