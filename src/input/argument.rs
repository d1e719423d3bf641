//! A path that the user gave, with an optional label (`LABEL=PATH`).

use super::search::OnlyRecording;
use super::{formats, search};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A path that the user gave, with an optional label (`LABEL=PATH`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// The label, where one was given.
    pub label: Option<String>,
    /// A file or a folder; `-` for standard input.
    pub path: PathBuf,
    /// Folders and files in which more was looked for and that could not be opened, each with the reason.
    pub unopened: Vec<String>,
}

impl Argument {
    /// A path without a label.
    pub fn new(path: PathBuf) -> Argument {
        Argument { label: None, path, unopened: Vec::new() }
    }

    /// `LABEL=PATH`, or a path; a path that exists as written wins.
    pub fn parse(text: impl AsRef<OsStr>) -> Argument {
        let text = text.as_ref();
        let bytes = text.as_bytes();
        let split = bytes.iter().position(|b| *b == b'=').and_then(|at| {
            let label = std::str::from_utf8(bytes.get(..at)?).ok()?;
            Some((label, OsStr::from_bytes(bytes.get(at + 1..)?)))
        });
        match split {
            Some((label, path)) if !label.is_empty() && !label.contains('/') && !Path::new(text).exists() => {
                Argument { label: Some(label.to_owned()), ..Argument::new(PathBuf::from(path)) }
            }
            _ => Argument::new(PathBuf::from(text)),
        }
    }

    /// The perf.data, trace.dat or OTF2 archive in the folder that was named, where that is the only recording in it.
    pub fn located(self) -> Argument {
        let is_searched = self.path.is_dir() && formats::at(&self.path).is_none_or(|known| known.is_folder());
        match is_searched.then(|| search::only_recording_in(&self.path)).flatten() {
            Some(OnlyRecording { path, unopened }) => Argument { path, unopened, ..self },
            None => self,
        }
    }

    /// True for a folder without recordings: what is in it may be databases.
    pub fn is_plain_folder(&self) -> bool {
        self.path.is_dir() && !search::holds_recording(&self.path)
    }

    /// The files to open: both where the folder that was named holds a recording in two.
    pub(super) fn parts(&self) -> Vec<Argument> {
        match self.path.is_dir().then(|| search::pair_in(&self.path)).flatten() {
            Some(pair) => pair.map(|path| Argument { path, ..self.clone() }).into(),
            None => vec![self.clone()],
        }
    }
}
