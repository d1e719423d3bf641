//! Patterns, anomalies and paths: the examples of ALGORITHMS.md section 9, the reference procedure as oracle, planted
//! delays in generated runs, and the same answer for any number of workers.

mod anomalies;
mod clocks;
mod generator;
mod mining;
mod planted;
mod reference;

use crate::support::{operations, random};
