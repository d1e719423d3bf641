//! The reasons why a dump ends early.

use crate::base::ctx::Cancelled;
use std::io;

/// Why a dump ended early.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// The output cannot be written.
    #[error("{0}")]
    Output(#[from] io::Error),
    /// The job was cancelled.
    #[error("{0}")]
    Cancelled(#[from] Cancelled),
}
