//! whyslow: why are these executions slow, when those were fast?
//!
//! ```text
//!  bytes      records     events      states      explanations   what people compare   differences   screens, JSON
//!  input/ ->  input/  ->  reading/ ->  state/  ->  analysis/  ->  model/            ->  compare/  ->  view/
//! ```
//! `base/` lies under all of them; `session` joins them; `options`, `confinement`, `command`, `cli` and `main` sit on top, in
//! this order. A module uses what stands to its left, and `base`; nothing looks back to the right (`tests/layers.rs`).
//!
//! - [`base`]: time, names, notices, progress and cancel, ordered parallel work, small statistics
//! - [`input`]: bytes to records; formats known, kernel meaning unknown
//! - [`event`]: the one vocabulary that analysis knows
//! - [`reading`]: records to typed events, in parallel
//! - [`state`]: the kernel state model and the state history
//! - [`analysis`]: critical paths, call stacks, symbols, calling contexts
//! - [`model`]: what survives the trace: executions, metrics, contexts
//! - [`compare`]: groups, differential tree, tests, ranked causes
//! - [`view`]: text, JSON and the terminal interface
//! - [`record`](mod@record): how LTTng, perf or trace-cmd make the recording; beside the others, on `base` alone
//!
//! Start reading at [`session`]: it is the whole way from a path to an answer.

pub mod analysis;
pub mod base;
pub mod cli;
pub mod command;
pub mod compare;
pub mod confinement;
pub mod event;
pub mod input;
pub mod model;
pub mod options;
pub mod reading;
pub mod record;
pub mod session;
pub mod state;
pub mod view;
