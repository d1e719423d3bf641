//! A timeline in a file, from which a recording is reopened without its trace.
//!
//! In: the sealed [`Timeline`](crate::timeline::Timeline) of a kernel pass, and other sections of the
//! caller's. Out: one file of checksummed sections, and from it a timeline that answers like the first one. The
//! resident tables are one section each, which must be whole. The rows are in blocks with checksums of their own: a
//! damaged block costs the rows of its span, which becomes a span of lost events, and a notice.
//!
//! Nothing in a file is trusted: checksums are compared, all ids are checked against their tables, rows have to be in
//! order, and no more is allocated than the file has bytes for. Cost: writing is linear in the bytes, and a leaf is in
//! memory at a time; opening reads the tables and the index; a leaf is read and checked when it is asked for, which
//! decodes each of its rows once. ALGORITHMS.md 8.12.
//!
//! - [`container`]: sections, checksums, versions
//! - `tables`: names, stacks, hosts, ..., threads and CPUs
//! - `index`: where their blocks are
//! - `checked`: what is asked of a row before it is believed
//! - `kept`: a leaf, read and checked when it is asked for
//! - `rows`: the rows of all families

mod checked;
pub mod container;
mod index;
mod kept;
mod rows;
mod tables;

#[cfg(test)]
mod tests;

pub use container::{HistoryFile, HistoryFileWriter, SectionName, is_history_file};
pub use rows::{read, write};

use std::path::PathBuf;

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
    /// Each when it is asked for: a damaged one ends the work with
    /// [`MemoryError::Damaged`](crate::base::memory_error::MemoryError::Damaged), before an answer is written.
    WhenRead,
}

/// Why a history file cannot be read or written: one line with what to do.
#[derive(Debug, thiserror::Error)]
pub enum HistoryFileError {
    /// The file system said no.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        error: std::io::Error,
    },
    /// Another file exists at the path.
    #[error("{}: already exists and is no history file; not overwritten: choose another name", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Another major version's layout.
    #[error(
        "{}: history file of version {found}, but this program reads version {}: {}",
        path.display(),
        container::MAJOR,
        remedy(*found)
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The version that it claims.
        found: u16,
    },
    /// Bytes are not what was written.
    #[error(
        "{}: the history file is damaged at byte {at}: {what}; build it again with `whyslow build --history`",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the section begins.
        at: u64,
        /// The problem.
        what: &'static str,
    },
    #[error(transparent)]
    Cancelled(#[from] crate::base::ctx::Cancelled),
}

fn remedy(found: u16) -> &'static str {
    match found > container::MAJOR {
        true => "open it with a newer whyslow",
        false => "build it again from the trace with `whyslow build --history`",
    }
}
