//! Why a dump ended before its last event.

use crate::base::ctx::Cancelled;
use std::io;

#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// The output cannot be written.
    #[error("{0}")]
    Output(#[from] io::Error),
    /// The job was cancelled.
    #[error("{0}")]
    Cancelled(#[from] Cancelled),
}
