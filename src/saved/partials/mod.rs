//! Files of partial results: what a fleet's executions add up to, without the executions.
//!
//! In: totals per task and host ([`HostTotals`]), and the contexts that they have. Out: one file, the same bytes for
//! the same totals; files are added up ([`sums`]). A file has a section that says which tasks, groups and hosts it has,
//! one with the contexts of each task, and one for each task and host with the totals. Sections are read one by one: in
//! memory are the contexts of one task and the totals of one host. ALGORITHMS.md section 6.5.
//!
//! Nothing in a file is trusted: each item takes a byte or more of its section, contexts and buckets ascend and are
//! known, and counts are not zero.

mod sums;
mod totals;

pub use sums::{FoundTotals, PartialSums, SumsError};

use super::container::{SavedFile, SectionName};
use super::executions::unpack_tables;
use super::{SavedFileError, SavedKind};
use crate::base::digest::Digest;
use crate::base::packed::packed;
use crate::model::partials::HostTotals;
use crate::model::united::ModelTables;
use std::collections::BTreeSet;
use std::path::Path;

const CONTENTS: SectionName = SectionName::new("contents");
const TABLES: SectionName = SectionName::new("tables");
const TOTALS: SectionName = SectionName::new("totals");

/// The filters of both groups, as a user types them; none where only the lengths of executions are known yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupTexts {
    pub slow: Vec<String>,
    pub fast: Vec<String>,
}

impl GroupTexts {
    /// True where executions are counted by their lengths alone.
    pub fn is_empty(&self) -> bool {
        self.slow.is_empty() && self.fast.is_empty()
    }
}

/// A host that has executions of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialHost {
    pub name: String,
    /// See [`HostTotals::sources`].
    pub sources: BTreeSet<Digest>,
}

/// A task of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialTask {
    pub name: String,
    pub groups: GroupTexts,
    /// By name.
    pub hosts: Vec<PartialHost>,
}

/// What a file says of its sections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct PartialContents {
    /// By name.
    tasks: Vec<PartialTask>,
}

packed! {
    GroupTexts { slow, fast }
    PartialHost { name, sources }
    PartialTask { name, groups, hosts }
    PartialContents { tasks }
}

/// An opened file of partial results.
#[derive(Debug)]
pub struct PartialsFile {
    file: SavedFile,
    pub tasks: Vec<PartialTask>,
}

impl PartialsFile {
    /// Open a file. Cost: what it says of its tasks and hosts.
    pub fn open(path: &Path) -> Result<PartialsFile, SavedFileError> {
        let file = SavedFile::open(path, SavedKind::Partials)?;
        let PartialContents { tasks } = file.value(CONTENTS)?;
        Ok(PartialsFile { file, tasks })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The contexts of a task, by its position.
    fn tables(&self, task: usize) -> Result<ModelTables, SavedFileError> {
        self.file.read(TABLES.of(task as u32), unpack_tables)
    }

    /// The totals of a host, by the positions of the task and of the host there, whose contexts are so many.
    fn totals(&self, task: usize, host: usize, contexts: usize) -> Result<HostTotals, SavedFileError> {
        let before: usize = self.tasks.iter().take(task).map(|task| task.hosts.len()).sum();
        let mut read = self.file.read(TOTALS.of((before + host) as u32), |unpack| totals::unpack(unpack, contexts))?;
        read.sources.clone_from(&self.tasks[task].hosts[host].sources);
        Ok(read)
    }
}
