//! The panes: what the screen shows below the header.

pub mod tree;
