//! Runs of records that follow each other in a file, and the files in which they are.

use super::walk_rules::WalkRules;

/// A run of records; runs are ordered by their first times, those of equal times by their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordRun {
    /// First time.
    pub begin: u64,
    /// Position of its file.
    pub file: u32,
    /// Its offset in the file.
    pub at: usize,
    pub bytes: usize,
    /// Last time.
    pub end: u64,
}

/// The files of a recording.
#[derive(Clone, Copy)]
pub struct RecordFiles<'f, 'a> {
    /// The properties of their records.
    pub rules: &'a WalkRules,
    /// The bytes of a file, by its position.
    pub file: &'f dyn Fn(u32) -> &'a [u8],
}

impl<'a> RecordFiles<'_, 'a> {
    /// The bytes of a run.
    pub fn bytes(&self, run: &RecordRun) -> &'a [u8] {
        (self.file)(run.file).get(run.at..).and_then(|rest| rest.get(..run.bytes)).unwrap_or(&[])
    }
}

/// The records of a file.
#[derive(Clone, Copy, Debug)]
pub struct DataBytes<'a> {
    /// Position of the file.
    pub file: u32,
    /// Its bytes up to the end of its records.
    pub bytes: &'a [u8],
    /// Its name, as messages show it.
    pub shown: &'a str,
}
