//! The dialogs: each file has one with its state, its answers to keys and the mouse, and its drawing.

pub mod baseline;
pub mod files;
pub mod filters;
pub mod prompt;
pub mod search;
