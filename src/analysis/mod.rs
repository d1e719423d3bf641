//! Explanations: which thread waited for which, along which path, in which functions.
//!
//! In: a sealed [`Timeline`](crate::timeline::Timeline). Out: for each execution its critical [`path`], whose
//! segments are given their [`stacks`] and accumulated into an [`outline`] of calling contexts ([`ecct`]), in
//! which `symbols` names the addresses. Apart from these, [`patterns`] finds what repeats in sequences of operations,
//! which occurrences took longer than usual, and where that delay began; [`offsets`] fits the clocks of such sequences.
//! Before all of it, [`clocks`] aligns the traces of several hosts on one time line.

pub mod candidates;
pub mod carriers;
mod clock_watch;
pub mod clocks;
pub mod conversations;
pub mod counters;
pub mod counts;
pub mod derived;
pub mod disk;
pub mod ecct;
pub mod executions;
pub mod frequencies;
pub mod functions;
pub mod hops;
pub mod interleaved;
pub mod iterations;
pub mod leaders;
pub mod mpi;
pub mod offsets;
pub mod operation_stacks;
pub mod operations;
pub mod outline;
pub mod path;
pub mod patterns;
pub mod pauses;
pub mod processes;
mod quota_watch;
pub mod remarks;
mod remote_wakers;
pub mod stack_tables;
pub mod stacks;
pub mod surroundings;
pub mod survey;
pub mod thread_groups;
pub mod thread_names;
pub mod throttling;
#[cfg(test)]
pub(crate) mod timeline_builder;
pub mod usage;
pub mod wakers;
