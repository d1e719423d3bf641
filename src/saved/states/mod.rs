//! A timeline in a file, from which a recording is reopened without its trace.
//!
//! In: the sealed [`Timeline`](crate::timeline::Timeline) of a kernel pass. Out: sections of a file
//! ([`super::container`]), beside others of the caller's, and from them a timeline that answers like the first one. The
//! resident tables are one section each, which must be whole. The rows are in blocks of one leaf each: a damaged block
//! costs the rows of its span, which becomes a span of lost events, and a notice.
//!
//! Nothing in a file is trusted: checksums are compared, all ids are checked against their tables, rows have to be in
//! order, and no more is allocated than the file has bytes for. Cost: writing is linear in the bytes, and a leaf is in
//! memory at a time; opening reads the tables and the index; a leaf is read and checked when it is asked for, which
//! decodes each of its rows once. ALGORITHMS.md 8.12.
//!
//! - `tables`: names, stacks, hosts, ..., threads and CPUs
//! - `index`: where their blocks are
//! - `checked`: what is asked of a row before it is believed
//! - `kept`: a leaf, read and checked when it is asked for
//! - `rows`: the rows of all families

mod checked;
mod index;
mod kept;
mod rows;
mod tables;

#[cfg(test)]
mod tests;

use super::SavedFileError;
use crate::base::ctx::Cancel;
use crate::base::lazy::Lazy;
use crate::base::memory_error::MemoryError;

pub use rows::{read, write};

/// A file has the states of one timeline, or of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatesOf {
    /// All events that were read.
    AllEvents,
    /// The kernel's events alone.
    KernelEvents,
}

/// When the leaves of a file are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LeafChecks {
    /// All when the file is opened: damaged ones are left out, with a notice.
    #[default]
    AtOpening,
    /// Each when it is asked for, as the sections beside them are: a damaged one ends the work with
    /// [`MemoryError::Damaged`](crate::base::memory_error::MemoryError::Damaged), before an answer is written.
    WhenRead,
}

/// What `read` makes of a section: now where all leaves are read at opening, else when it is first asked for. If it
/// cannot be read then, the work ends with the reason, as with that of a leaf.
pub fn lazily<T: Default + 'static>(
    checks: LeafChecks,
    cancel: &Cancel,
    read: impl Fn() -> Result<T, SavedFileError> + Send + Sync + 'static,
) -> Result<Lazy<T>, SavedFileError> {
    if checks == LeafChecks::AtOpening {
        return read().map(Lazy::from);
    }
    let cancel = cancel.clone();
    Ok(Lazy::new(move || {
        read().unwrap_or_else(|error| {
            cancel.fail(MemoryError::Damaged(error.to_string()));
            T::default()
        })
    }))
}
