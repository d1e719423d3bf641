//! The reasons why an input cannot be opened, or only in part.
//!
//! [`OpenError`] ends the command, in one line with the file, the place in it, the expectation and the remedy; a
//! [`LeftOut`] becomes a notice of the other inputs. Each format has an error type of its own, beside its reader.

use super::ctf::MetadataFileError;
use crate::base::ctx::Cancelled;
use crate::base::notice::Notice;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The number of recordings that a message names.
const SHOWN: usize = 3;

/// The reason why an input cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A file or folder cannot be read.
    #[error("{path}: {reason}")]
    At {
        /// The file or folder.
        path: PathBuf,
        /// The fault.
        reason: Unreadable,
    },
    /// Nothing is left of the inputs: the first of those that were left out, with its reason.
    #[error("{0}")]
    NothingLeft(String),
    /// There is no input.
    #[error("no trace was named")]
    NoTrace,
    /// The user cancelled.
    #[error("{0}")]
    Cancelled(Cancelled),
}

/// The reason why a file or folder cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The system refuses it.
    #[error("{0}")]
    Io(io::Error),
    /// No such path.
    #[error("no such file or directory")]
    NotFound,
    /// A device, a socket or a pipe.
    #[error("neither a file nor a folder; name a recording")]
    Special,
    /// Standard input.
    #[error("{0}")]
    Input(String),
    /// A packed file.
    #[error("{0}")]
    Packed(String),
    /// It was named beside an OTF2 archive and is not one.
    #[error("not an OTF2 archive; other named inputs are, and OTF2 archives are compared with OTF2 archives only")]
    NotAnArchive,
    /// It holds no recording.
    #[error("{0}")]
    NotARecording(NotARecording),
    /// The metadata of a CTF trace.
    #[error("{0}")]
    Metadata(Arc<MetadataFileError>),
    /// It contradicts its format, or nothing of it is of use.
    #[error("{0}")]
    Format(Box<dyn FormatError>),
}

impl Unreadable {
    /// The error at a path.
    pub(super) fn at(self, path: &Path) -> OpenError {
        OpenError::At { path: path.to_owned(), reason: self }
    }
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        Unreadable::Io(error)
    }
}

/// The error of a format.
pub trait FormatError: std::error::Error + Send + Sync + 'static {}

impl<E: FormatError> From<E> for Unreadable {
    fn from(error: E) -> Self {
        Unreadable::Format(Box::new(error))
    }
}

impl From<Cancelled> for OpenError {
    fn from(cancelled: Cancelled) -> Self {
        OpenError::Cancelled(cancelled)
    }
}

/// A file or folder below a named one that was left out.
#[derive(Clone, Debug)]
pub struct LeftOut {
    /// The notice to raise.
    pub notice: Notice,
    /// The file or folder, and the reason.
    pub place: String,
}

/// The reason why a path is no recording, and its remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotARecording {
    /// The metadata file of a trace.
    #[error("this is the metadata of a trace; name its directory, {}", folder.display())]
    Metadata {
        /// The directory of the trace.
        folder: PathBuf,
    },
    /// A perf.data of a version that is not read.
    #[error("a perf.data of version 1, from a perf of before 2013; record it again with a newer perf")]
    OldPerfData,
    /// A packed or compressed file.
    #[error("packed or compressed; unpack it with `{command} {}` and name what was in it", file.display())]
    Packed {
        /// The command that unpacks it.
        command: &'static str,
        file: PathBuf,
    },
    /// A file or folder inside a recording.
    #[error("a part of a recording; name the whole, {}", whole.display())]
    Part {
        /// The directory of the trace, or the anchor file of the archive.
        whole: PathBuf,
    },
    /// A file of another tool.
    #[error("{name}; {remedy}")]
    Foreign {
        /// Its format, with an article.
        name: &'static str,
        /// The way to an answer.
        remedy: &'static str,
    },
    /// Any other file.
    #[error("not a recording; name {known}")]
    OtherFile {
        /// What may be named as a recording.
        known: String,
    },
    /// A folder without recordings.
    #[error(
        "no recording in this folder; a CTF trace is a directory with a file `metadata`, \
         others are *.otf2, perf.data and trace.dat"
    )]
    NoRecordings,
    /// A folder with recordings of other kinds.
    #[error("this folder is no recording itself; name one below it: {}", listed(below))]
    OtherRecordings {
        /// The recordings below it, sorted.
        below: Vec<PathBuf>,
    },
}

/// The first of some recordings, and the number of the others.
fn listed(recordings: &[PathBuf]) -> String {
    let names: Vec<String> = recordings.iter().take(SHOWN).map(|p| p.display().to_string()).collect();
    let names = names.join(", ");
    match recordings.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        Some(more) => format!("{names} or {more} more"),
        None => names,
    }
}
