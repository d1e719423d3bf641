//! The state history compared with plain ones.

mod lanes;
mod lines;
mod plain;
mod trees;
mod view;
