//! Explanations: who waited for whom, along which path, in which functions.
//!
//! In: a sealed [`Timeline`](crate::state::timeline::Timeline). A [`path`] per execution; its segments get [`stacks`]
//! and fold into an [`outline`] of calling contexts ([`ecct`]); [`symbols`] name the addresses that stand there. Apart
//! from these, [`patterns`] asks of sequences of operations what repeats, what of it took too long, and where that
//! began; [`offsets`] fits their clocks. Before all of it, [`clocks`] lays the traces of several hosts on one time
//! line.

pub mod candidates;
pub mod carriers;
pub mod clocks;
pub mod counters;
pub mod counts;
pub mod derived;
pub mod disk;
pub mod ecct;
pub mod executions;
pub mod functions;
pub mod hops;
pub mod interleaved;
pub mod leaders;
pub mod mpi;
pub mod offsets;
pub mod operation_stacks;
pub mod operations;
pub mod outline;
pub mod path;
pub mod patterns;
pub mod pauses;
pub mod stacks;
pub mod survey;
pub mod symbols;
pub mod thread_names;
#[cfg(test)]
mod timeline_builder;
pub mod turns;
pub mod usage;
pub mod wakers;
