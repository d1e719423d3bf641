//! All tests that need no process of their own, in one program: one is compiled and linked, not seventy.
//!
//! `cargo test --test all cli::` runs those of `tests/cli.rs`. Tests are a program of their own (`[[test]]` in
//! `Cargo.toml`) if they trace the processes that they start, or sample the children of theirs and handle its signals.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod accounts;
mod archives;
mod browser;
mod cli;
mod clocks;
mod compiled;
mod conformance;
mod conservation;
mod conversations;
mod copies;
mod damaged;
mod database;
mod decode;
mod delays;
mod diagnosis;
mod dialects;
mod dump;
mod environments;
mod examples;
mod exhaustion;
#[cfg(feature = "parquet")]
mod export;
mod files;
#[cfg(feature = "parquet")]
mod fleet;
mod functions;
mod generated_profiles;
mod growth;
mod handlers;
mod history;
mod history_files;
mod hostile;
mod interop;
mod layers;
mod limits;
mod machines;
mod measured;
mod metrics;
mod missing;
mod mpi;
mod oracle;
mod order;
mod other_platforms;
mod path;
mod patterns;
mod pictures;
mod planted;
mod profiles;
mod questions;
mod record_plans;
mod record_tracefs;
mod recorders;
mod registries;
mod releases;
mod reports;
mod running;
mod same;
mod schedule;
mod schedules;
mod schemas;
mod scorep;
mod screens;
mod sections;
mod simulator;
mod stacks;
mod structure;
mod surprises;
mod symbols;
mod tape;
mod tasks;
mod terminal;
mod texts;
mod thread_lanes;
mod tour;
mod traces;
mod trees;
mod trend;
mod two_executions;
mod upstream;
mod user_space;
mod variants;
mod waiting;
mod words;
mod workers;

/// What several files use.
mod support {
    pub mod ask;
    pub mod conformance;
    pub mod corpus;
    pub mod ctf_writer;
    pub mod elf;
    pub mod fake_perf;
    pub mod interface;
    pub mod json_schema;
    pub mod kernel_trace;
    pub mod model_parts;
    pub mod operations;
    pub mod otf2;
    pub mod packings;
    pub mod profiler;
    pub mod pty_shell;
    pub mod random;
    pub mod random_model;
    pub mod recordings;
    pub mod reorder;
    pub mod repeated;
    pub mod reread;
    pub mod rsht;
    pub mod spans;
    pub mod tracepoints;
}
