//! Patterns, anomalies and paths: the examples of ALGORITHMS.md section 9, the reference procedure as oracle, planted
//! delays in generated runs, and the same answer for any number of workers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod anomalies;
mod clocks;
mod generator;
mod mining;
#[path = "../support/operations.rs"]
mod operations;
mod planted;
#[path = "../support/random.rs"]
mod random;
mod reference;
