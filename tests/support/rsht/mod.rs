//! The state history tree of the thesis \[002\], plain and serial: an R-SHT, with nodes that other packings use too.
//!
//! It is an oracle: the state history of the program, which the R-SHT above the leaves of its store answers, has to
//! give the same intervals. And it is the reference of `benches/history.rs`. ALGORITHMS.md 8.2 to 8.7 describe it.
//!
//! - [`interval`]: intervals and runs of them
//! - [`columns`]: the intervals of one node in 12 to 14 bytes each
//! - [`tree`]: the nodes, and how packed nodes become a tree
//! - [`build`]: the bulk build
//! - [`search`]: single, full and 2D queries
//! - [`check`]: the invariants
#![allow(dead_code, unused_imports, reason = "tests and the benchmark use different parts of it")]

pub mod build;
pub mod check;
pub mod columns;
pub mod interval;
pub mod search;
pub mod tree;
