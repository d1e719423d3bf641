//! whyslow: why are these executions slow, when those were fast?
//!
//! The program `whyslow` is the product (`README.md`, `docs/PRODUCT.md`); this library is what it is made of. A few
//! types lead from a recording to the answer: a [`Session`] opens what [`Argument`]s name, finds the executions of
//! a task and explains them as a [`Model`]; [`compare_groups`] finds what the slow ones do that the fast ones
//! don't, as a [`Comparison`].
//!
//! ```
//! use whyslow::{Argument, OpenOptions, ComparisonRequest, Session, SymbolPaths, Ctx, compare_groups};
//!
//! # fn main() -> anyhow::Result<()> {
//! // The number of worker threads; 0 is one for each CPU. The answer is the same for any.
//! let ctx = Ctx::new(0);
//! let recording = [Argument::parse("fixtures/traces/lock-contention")];
//! let mut session = Session::open(&recording, &OpenOptions::default(), &ctx)?;
//!
//! // Folders of executables that are no longer at the paths in the recording.
//! let symbols = SymbolPaths { folders: vec!["fixtures/traces/lock-contention/bin".into()], ..SymbolPaths::default() };
//! // No task is named: the session chooses the one that `whyslow explain` chooses.
//! let model = session.model(None, &symbols, &[], &ctx)?;
//! // No groups are given: they are proposed.
//! let comparison = compare_groups(&model, &ComparisonRequest::default(), &ctx)?;
//!
//! println!("{}", comparison.verdict.sentence);
//! for cause in &comparison.causes {
//!     println!("{:>5.1} %  {}", 100.0 * cause.share, cause.sentence);
//! }
//! assert_eq!(comparison.causes[0].by.function.as_deref(), Some("expensive_flush"));
//! # Ok(())
//! # }
//! ```
//!
//! `examples/explain.rs` is this as a program, `examples/count_events.rs` counts the events of a recording. All
//! text that comes from a recording is untrusted: clean it of control characters before a terminal shows it.
//!
//! # Modules
//!
//! The modules are private; `parts` lists what tests, benchmarks and fuzz targets use of them, for them alone.
//!
//! ```text
//!  bytes    records    events      states                 findings     model values   differences   screens, JSON
//!  input -> input  ->  reading ->  kernel -> timeline ->  analysis ->  explain   ->   compare   ->  view, tui
//!                                                |           |            |
//!                                              saved      symbols      delays
//! ```
//! `base/`, the types of `model/` and `advice` are under all of them; `session` joins them; `options`, `confinement`,
//! `command`, `cli` and `program` sit on top, in this order (docs/ARCHITECTURE.md, section 1; `tests/layers.rs`).
//!
//! - `base`: time, names, notices, progress and cancel, ordered parallel work, small statistics
//! - `model`: plain data that outlives the trace: executions, metrics, contexts, anomalies
//! - `advice`: what a recording lacks for a question, and how to record it
//! - `input`: bytes to records; formats known, kernel meaning unknown
//! - `event`: the one vocabulary that analysis knows
//! - `reading`: records to typed events, in parallel
//! - `dump`: every event as a line of text
//! - `timeline`: the states of threads and CPUs in compressed leaves below an R-SHT, and the state history
//! - `kernel`: the machine that follows threads and CPUs through the events
//! - `saved`: executions and states in files
//! - `symbols`: addresses to functions
//! - `analysis`: critical paths, call stacks, calling contexts, conversations, patterns
//! - `explain`: from findings to model values
//! - `delays`: anomalies and how they propagated
//! - `compare`: groups, differential tree, tests, ranked causes
//! - `view`: text, JSON, the report
//! - `tui`: the terminal interface
//! - `record`: how LTTng, perf or trace-cmd make the recording; beside the others, on `base`, `model` and `advice`
//!   alone
//!
//! Start reading at `session`: it is the whole way from a path to an answer.

// What is inside private modules is documented for those who read the code.
#![allow(rustdoc::private_intra_doc_links)]

// The parts of tests/support that unit tests use as well name the crate from outside.
#[cfg(test)]
extern crate self as whyslow;

mod advice;
mod analysis;
mod base;
mod cli;
mod command;
mod compare;
mod confinement;
mod delays;
mod dump;
mod event;
mod explain;
mod input;
mod kernel;
mod model;
mod options;
#[cfg(not(program))]
#[doc(hidden)]
pub mod parts;
mod program;
mod reading;
mod record;
mod saved;
mod session;
mod symbols;
mod timeline;
mod tui;
mod view;

// Inlined, for the modules that hold these are private.
#[doc(inline)]
pub use crate::base::ctx::Ctx;
#[doc(inline)]
pub use crate::base::notice::Notices;
#[doc(inline)]
pub use crate::compare::{Cause, Comparison, ComparisonRequest, Culprit, Group, Verdict};
#[doc(inline)]
pub use crate::input::Argument;
#[doc(inline)]
pub use crate::model::Model;
#[doc(inline)]
pub use crate::session::{OpenOptions, Session, Traces, compare as compare_groups};
#[doc(inline)]
pub use crate::symbols::files::SymbolPaths;

#[doc(hidden)]
pub use crate::base::allocator::Watched;
#[doc(hidden)]
pub use crate::program::main;
