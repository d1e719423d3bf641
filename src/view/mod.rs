//! What people and programs see: text, JSON, the terminal interface. Views only read.

pub mod clean;
pub mod svg;
pub mod tui;
