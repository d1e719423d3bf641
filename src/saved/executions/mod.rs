//! The execution database: models in one file that is opened in place of their traces.
//!
//! In goes what a recording says of itself ([`Facts`]) and a [`Model`] per task; out comes one file, the same bytes for
//! the same models; and back, equal to what went in, so that every answer from the file is the answer from the trace.
//! What can be computed is not kept: inclusive times, metrics that follow from the rest, the last own time of each
//! execution. Nor are the timelines of single executions: that much only the trace holds.
//!
//! | section | holds |
//! |---|---|
//! | `contents` | facts about the traces, the names of the tasks, notices of the pass over the traces |
//! | `tables` of a task | its traces, hosts and notices; names, threads, contexts (`tables`) |
//! | `executns` | begin, end, thread, trace and CPU of each execution, column by column (`rows`) |
//! | `own` | the own times of each execution (`rows`) |
//! | `metrics` | the other columns (`columns`) |
//!
//! The sections of a task are read when that task is asked for, each by itself: so opening costs what is looked at,
//! linear in the bytes of one task, and in memory are the model and one section.
//!
//! Nothing in a file is trusted: each item takes at least a byte of its section, every position is checked against its
//! table, parents come before children, executions are in order, own times add up to the duration, and what is unpacked
//! stays in proportion to the file. ALGORITHMS.md section 6.3.

mod columns;
mod rows;
mod tables;

use super::container::{SavedFile, SavedFileWriter, SectionName};
use super::{SavedFileError, SavedKind};
use crate::base::ctx::Ctx;
use crate::base::file::Output;
use crate::base::notice::Notices;
use crate::base::pack::Pack;
use crate::base::packed::{bytes_of, packed};
use crate::base::time::Ns;
use crate::model::Model;
use crate::model::facts::Facts;
use std::path::Path;
use std::sync::Arc;

/// [`Contents`].
const CONTENTS: SectionName = SectionName::new("contents");
const TABLES: SectionName = SectionName::new("tables");
const EXECUTIONS: SectionName = SectionName::new("executns");
const OWN: SectionName = SectionName::new("own");
const METRICS: SectionName = SectionName::new("metrics");

/// The most numbers that a section may unpack to, per byte of it and in addition: 200,000 executions of three contexts
/// each have about two per byte.
const PER_BYTE: u64 = 128;
const FREE: u64 = 1 << 20;

/// What a database says of the recording and of itself.
#[derive(Debug)]
pub struct Contents {
    /// Facts about the traces.
    pub facts: Facts,
    /// The tasks whose executions it holds.
    pub tasks: Vec<String>,
    /// Notices about the traces.
    pub notices: Notices,
}

packed! { Contents { facts, tasks, notices } }

/// A database in the making: each model is packed when it is given and can be dropped then.
pub struct Writer {
    contents: Contents,
    file: SavedFileWriter,
}

impl Writer {
    /// An empty database about a recording; `notices` are those of the pass over it.
    pub fn new(facts: Facts, notices: Notices) -> Writer {
        let contents = Contents { facts, tasks: Vec::new(), notices };
        Writer { contents, file: SavedFileWriter::new(SavedKind::Executions) }
    }

    /// Add the model of a task.
    pub fn add(&mut self, model: &Model) {
        let task = self.contents.tasks.len() as u32;
        self.contents.tasks.push(model.tasks.get(model.task).cloned().unwrap_or_default());
        let mut add = |name: SectionName, pack: &dyn Fn(&mut Pack)| {
            let mut bytes = Pack::default();
            pack(&mut bytes);
            self.file.add(name.of(task), bytes.0);
        };
        add(TABLES, &|pack| tables::pack(model, pack));
        add(EXECUTIONS, &|pack| rows::pack_executions(&model.executions, pack));
        add(OWN, &|pack| rows::pack_own(&model.executions, pack));
        add(METRICS, &|pack| columns::write(model, pack));
    }

    /// Notices about the recording.
    pub fn notices(&self) -> &Notices {
        &self.contents.notices
    }

    /// The whole file.
    fn whole(mut self) -> SavedFileWriter {
        self.file.add(CONTENTS, bytes_of(&self.contents));
        self.file
    }

    /// The file's bytes.
    pub fn bytes(self) -> std::io::Result<Vec<u8>> {
        self.whole().bytes()
    }

    /// Write it to an output, where only a database may be replaced. Returns its length.
    pub fn save(self, output: Output) -> Result<u64, SavedFileError> {
        self.whole().save(output)
    }
}

/// An opened database.
#[derive(Debug)]
pub struct Database {
    file: SavedFile,
    pub contents: Contents,
}

impl Database {
    /// Open a database.
    pub fn open(path: &Path) -> Result<Database, SavedFileError> {
        let file = SavedFile::open(path, SavedKind::Executions)?;
        let contents = file.value(CONTENTS)?;
        Ok(Database { file, contents })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// How long each execution of a task took, ascending.
    pub fn durations(&self, task: usize) -> Result<Vec<Ns>, SavedFileError> {
        let executions = self.file.read(EXECUTIONS.of(task as u32), rows::unpack_executions)?;
        let mut all: Vec<Ns> = (0..executions.len()).map(|i| executions.duration(i)).collect();
        all.sort_unstable();
        Ok(all)
    }

    /// The model of a task, by its position in [`Contents::tasks`].
    pub fn model(&self, task: usize, ctx: &Ctx) -> Result<Model, SavedFileError> {
        let (file, number) = (&self.file, task as u32);
        let mut model = file.read(TABLES.of(number), tables::unpack)?;
        (model.tasks, model.task) = (Arc::new(self.contents.tasks.clone()), task);
        ctx.cancel.check()?;
        model.executions = file.read(EXECUTIONS.of(number), rows::unpack_executions)?;
        if !tables::knows(&model, &model.executions) {
            return Err(file.contradiction(EXECUTIONS.of(number)));
        }
        model.executions.own = file.read(OWN.of(number), |unpack| rows::unpack_own(&model, unpack))?;
        ctx.cancel.check()?;
        model.executions.columns = file.read(METRICS.of(number), |unpack| columns::read(&model, unpack))?;
        Ok(model)
    }
}

/// The most numbers that this many bytes may unpack to.
fn most_numbers(bytes: usize) -> u64 {
    PER_BYTE.saturating_mul(bytes as u64).saturating_add(FREE)
}
