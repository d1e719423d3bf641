//! A trace of a model: its name, its span, and what it recorded.

use super::recorded::Recorded;
use crate::base::time::Span;

/// The level at which a trace was recorded: it decides which options can add what is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TraceLevel {
    /// A machine's threads, by its kernel or by its programs.
    #[default]
    Machine,
    /// The calls of an MPI run's ranks.
    MpiRun,
}

/// A trace given on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceInfo {
    /// Label, or path as given.
    pub label: String,
    /// The level of recording.
    pub level: TraceLevel,
    /// First and last event.
    pub span: Span,
    /// What it recorded; `None` if that is unknown.
    pub recorded: Option<Recorded>,
}
