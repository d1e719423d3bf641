//! The thread that seems to have certain ids in user space, before that is known.

use crate::timeline::ThreadId;

/// The thread that seems to have certain ids in user space.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guess {
    pub thread: ThreadId,
    /// Number of events in a row.
    pub events: u32,
}
