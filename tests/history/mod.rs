//! The state history compared with plain ones.

mod lines;
mod plain;
mod trees;
mod view;
