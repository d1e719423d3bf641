//! Anomalies: how far a delay propagated, from the event that caused it to the last that waited for it.
//!
//! In: frequent patterns of operations, and the executions of a kernel recording with the threads that delayed them.
//! Out: anomalies with propagation paths and root causes ([`anomalies`]). `DELAYS.md` describes the method.

pub mod anomalies;
pub mod chains;
mod delayed;
pub mod mined_executions;
pub mod mining;
mod nested;
mod propagation;
mod root_causes;
mod routes;
mod unexplained;
pub mod wait_links;
