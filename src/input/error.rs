//! The reasons why an input cannot be opened, or only in part.
//!
//! [`OpenError`] ends the command, in one line with the file, the place in it, the expectation and the remedy; a
//! [`LeftOut`] becomes a notice of the other inputs. Each format has an error type of its own, beside its reader.

use super::advice::NotARecording;
use super::ctf::MetadataFileError;
use super::ftrace::TraceDatError;
use super::otf2::ArchiveError;
use super::perf::PerfDataError;
use super::translated::TranslationError;
use crate::base::ctx::Cancelled;
use crate::base::notice::Notice;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
    #[error("{0}")]
    PerfData(PerfDataError),
    #[error("{0}")]
    TraceDat(TraceDatError),
    /// An OTF2 archive.
    #[error("{0}")]
    Archive(ArchiveError),
    /// A recording of another platform.
    #[error("{0}")]
    Translation(TranslationError),
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

impl From<PerfDataError> for Unreadable {
    fn from(error: PerfDataError) -> Self {
        Unreadable::PerfData(error)
    }
}

impl From<TraceDatError> for Unreadable {
    fn from(error: TraceDatError) -> Self {
        Unreadable::TraceDat(error)
    }
}

impl From<TranslationError> for Unreadable {
    fn from(error: TranslationError) -> Self {
        Unreadable::Translation(error)
    }
}

impl From<ArchiveError> for Unreadable {
    fn from(error: ArchiveError) -> Self {
        Unreadable::Archive(error)
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
