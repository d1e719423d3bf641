//! What people and programs see: the terminal interface, pictures of it.

pub mod clean;
pub mod svg;
pub mod tui;
