//! What is kept in files: executions ([`executions`]), what they add up to ([`partials`]) and the states of a
//! recording ([`states`]), each kind in the one [`container`] of named, checked sections; what a section means is in
//! the folder of its kind, and in `values` where several kinds have it.

pub mod container;
mod deflate;
pub mod executions;
mod folder;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod partials;
pub mod states;
mod values;
pub mod writing;

pub use folder::FilesBelow;

use crate::base::mapped::open_regular;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The kinds of files, which differ in their sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedKind {
    /// A database of executions.
    Executions,
    /// A history file.
    States,
    /// Partial results of executions.
    Partials,
}

impl SavedKind {
    /// How each file of the kind begins.
    const fn magic(self) -> [u8; 8] {
        match self {
            SavedKind::Executions => *b"whyslow\x1a",
            SavedKind::States => *b"whyslowh",
            SavedKind::Partials => *b"whyslowp",
        }
    }

    /// The layout that is written and read: a change of the layout, or of the meaning of a byte, changes it.
    const fn version(self) -> u16 {
        match self {
            SavedKind::Executions => 12,
            SavedKind::States => 12,
            SavedKind::Partials => 2,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            SavedKind::Executions => "database",
            SavedKind::States => "history file",
            SavedKind::Partials => "file of partial results",
        }
    }

    /// The command that makes one.
    const fn command(self) -> &'static str {
        match self {
            SavedKind::Executions => "whyslow build",
            SavedKind::States => "whyslow build --history",
            SavedKind::Partials => "whyslow build --partial",
        }
    }

    /// What it is made from.
    const fn origin(self) -> &'static str {
        match self {
            SavedKind::Executions | SavedKind::States => "trace",
            SavedKind::Partials => "database",
        }
    }

    /// True for a regular file that begins as one of the kind does.
    pub fn is_of(self, path: &Path) -> bool {
        self.begins_at(path).unwrap_or(false)
    }

    fn begins_at(self, path: &Path) -> io::Result<bool> {
        open_regular(path).and_then(|file| self.begins(&file))
    }

    fn begins(self, mut file: &File) -> io::Result<bool> {
        let mut begin = Vec::with_capacity(self.magic().len());
        (&mut file).take(self.magic().len() as u64).read_to_end(&mut begin)?;
        Ok(begin == self.magic())
    }

    fn remedy(self, found: u16) -> String {
        match found > self.version() {
            true => "open it with a newer whyslow".to_owned(),
            false => format!("build it again from the {} with `{}`", self.origin(), self.command()),
        }
    }
}

/// Why a file cannot be read or written: one line with what to do.
#[derive(Debug, thiserror::Error)]
pub enum SavedFileError {
    /// The file system said no.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        error: io::Error,
    },
    /// Another file exists at the path.
    #[error("{}: already exists and is no {}; not overwritten: choose another name", path.display(), kind.name())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// That of the file to be written.
        kind: SavedKind,
    },
    /// Another major version's layout.
    #[error(
        "{}: {} of version {found}, but this program reads version {}: {}",
        path.display(),
        kind.name(),
        kind.version(),
        kind.remedy(*found)
    )]
    Version {
        /// The file.
        path: PathBuf,
        kind: SavedKind,
        /// The version that it claims.
        found: u16,
    },
    /// Bytes are not what was written.
    #[error(
        "{}: the {} is damaged at byte {at}: {what}; build it again with `{}`",
        path.display(),
        kind.name(),
        kind.command()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        kind: SavedKind,
        /// Where the section begins.
        at: u64,
        /// The problem.
        what: &'static str,
    },
    #[error(transparent)]
    Cancelled(#[from] crate::base::ctx::Cancelled),
}
