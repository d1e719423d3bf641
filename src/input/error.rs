//! Why an input cannot be opened, or only in part.

use crate::base::ctx::Cancelled;
use crate::base::notice::Notice;

/// Why an input cannot be read at all: one line with file, place, expectation and remedy.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct OpenError(pub String);

impl From<Cancelled> for OpenError {
    fn from(cancelled: Cancelled) -> Self {
        OpenError(cancelled.to_string())
    }
}

/// A file or folder below what the user named that was left out.
#[derive(Clone, Debug)]
pub struct LeftOut {
    /// The notice to raise.
    pub notice: Notice,
    /// The file or folder, and the reason.
    pub place: String,
}
