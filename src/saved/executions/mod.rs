//! The execution database: models in one file that is opened in place of their traces.
//!
//! In goes what a recording says of itself ([`Facts`](crate::model::facts::Facts)) and a [`Model`](crate::model::Model)
//! per task; out comes one file, the same bytes for the same models; and back, equal to what went in, so that every
//! answer from the file is the answer from the trace. What can be computed is not kept: inclusive times and metrics
//! that follow from the rest take one byte. Nor are the timelines of single executions: that much only the trace
//! holds.
//!
//! ```text
//!  header    magic (8), version (4), sections (4), length of the file (8), zero (4), checksum (4)
//!  table     per section: kind (4), task (4), items (4), checksum (4), offset (8), length (8)
//!  sections  one after the other, in columns of packed integers; none reaches into another
//! ```
//! Integers of header and table are little-endian; checksums are CRC-32, the header's over all else in header and
//! table. Sections of a task are read when that task is asked for, so that opening costs what is looked at: linear in
//! the bytes of one task, and in the entries of its inclusive times, on several workers.
//!
//! Invariants: the file is written beside its target and then takes its place at once. Nothing in a file is trusted:
//! each item takes at least a byte of its section, every position is checked against its table, parents come before
//! children, own times add up to the duration, and what is unpacked stays in proportion to the file. A change to the
//! layout or to the meaning of a byte changes `VERSION`. ALGORITHMS.md section 6.3.

mod columns;
mod read;
mod write;

pub use read::Database;
pub use write::Writer;

use crate::base::mapped::open_regular;
use std::fs::File;
use std::path::{Path, PathBuf};

/// How each database begins.
const MAGIC: [u8; 8] = *b"whyslow\x1a";
/// The one layout that is written and read.
const VERSION: u32 = 8;
/// Bytes before the table.
const HEADER: usize = 32;
/// Bytes of a section in the table.
const ENTRY: usize = 32;
/// Marks "of no task" in the table.
const SHARED: u32 = u32::MAX;

/// Kind of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum Kind {
    /// Traces, and what was lost.
    Facts = 1,
    /// Names of the tasks.
    Tasks,
    /// Labels and bounds of the traces, the time that counts as zero, and how far the events of each host agree.
    Traces,
    /// All names of a task's model.
    Names,
    /// Threads.
    Who,
    Contexts,
    /// Threads of the thread frames.
    Held,
    Executions,
    /// Metrics.
    Columns,
    /// Own times.
    Own,
    /// Notices: of a task, and of the pass over the traces.
    Notices,
    /// Names of functions that no file proves.
    Unproven,
    /// Names of functions of the C or C++ runtime.
    Runtime,
}

impl Kind {
    /// The sections of a task, in the order of the file.
    const OF_TASK: [Kind; 11] = [
        Kind::Traces,
        Kind::Names,
        Kind::Unproven,
        Kind::Runtime,
        Kind::Who,
        Kind::Contexts,
        Kind::Held,
        Kind::Executions,
        Kind::Columns,
        Kind::Own,
        Kind::Notices,
    ];
}

/// Why a database cannot be read or written: one line with what to do.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The file system said no.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        error: std::io::Error,
    },
    /// Another file exists at the path for the database.
    #[error("{}: already exists and is not a whyslow database; not overwritten: choose another name", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Another version's layout.
    #[error("{}: database format {found}, but this program reads format {VERSION}: {}", path.display(), remedy(*found))]
    Version {
        /// The file.
        path: PathBuf,
        /// The version that it claims.
        found: u32,
    },
    /// Bytes are not what was written.
    #[error("{}: the database is damaged at byte {at}: {what}; build it again with `whyslow build`", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The place: the begin of a section.
        at: u64,
        /// The problem.
        what: &'static str,
    },
    #[error(transparent)]
    Cancelled(#[from] crate::base::ctx::Cancelled),
}

fn remedy(found: u32) -> &'static str {
    if found > VERSION { "open it with a newer whyslow" } else { "build it again from the trace with `whyslow build`" }
}

/// True for a regular file that begins as a database does.
pub fn is_database(path: &Path) -> bool {
    open_regular(path).and_then(|file| begins_as_database(&file)).unwrap_or(false)
}

fn begins_as_database(mut file: &File) -> std::io::Result<bool> {
    use std::io::Read;
    let mut begin = Vec::with_capacity(MAGIC.len());
    (&mut file).take(MAGIC.len() as u64).read_to_end(&mut begin)?;
    Ok(begin == MAGIC)
}
