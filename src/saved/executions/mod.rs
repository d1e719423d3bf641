//! The execution database: models in one file that is opened in place of their traces.
//!
//! In goes what a recording says of itself ([`Facts`]) and a [`Model`] per task; out comes one file, the same bytes for
//! the same models; and back, equal to what went in, so that every answer from the file is the answer from the trace.
//! What can be computed is not kept: inclusive times, metrics that follow from the rest, the last own time of each
//! execution. Nor are the timelines of single executions: that much only the trace holds. A database may hold many
//! recordings ([`merge`]), each with a part of a task.
//!
//! | section | holds |
//! |---|---|
//! | `contents` | of each recording facts, notices and its parts with their labels and digests (`recordings`) |
//! | `tables` of a task | names, threads, contexts of all of its parts (`tables`) |
//! | `used` of a part | which entries of these tables are its own: the ids in its other sections (`tables`) |
//! | `part` | its traces and hosts, times of threads (`tables`) |
//! | `executns` | begin, end, thread, trace and CPU of each execution, column by column (`rows`) |
//! | `own` | the own times of each execution (`rows`) |
//! | `metrics` | the other columns (`columns`) |
//!
//! The sections of a task are read when that task is asked for, each by itself: so opening costs what is looked at,
//! linear in the bytes of one task, and in memory are the model and one section.
//!
//! Nothing in a file is trusted: each item takes at least a byte of its section, every position is checked against its
//! table, parents come before children, executions are in order, own times add up to the duration, and what is unpacked
//! stays in proportion to the file. ALGORITHMS.md sections 6.3 and 6.4.

mod columns;
pub mod merge;
mod packed_part;
pub mod recordings;
pub mod restored;
mod rows;
mod tables;

pub(in crate::saved) use tables::unpack as unpack_tables;

use super::container::{SavedFile, SectionName};
use super::writing::SavedFileWriter;
use super::{SavedFileError, SavedKind};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::digest::Digest;
use crate::base::file::Output;
use crate::base::notice::Notices;
use crate::base::pack::Pack;
use crate::base::packed::bytes_of;
use crate::base::time::Ns;
use crate::model::Model;
use crate::model::facts::Facts;
use crate::model::join::{self, Joiner, LabelNames, Renamed};
use crate::model::metric::{ABSENT, Column, Metric};
use crate::model::united::ModelTables;
use packed_part::PackedPart;
use recordings::{Contents, StoredPart, StoredRecording};
use std::path::Path;
use std::sync::Arc;
use tables::UsedEntries;

/// [`Contents`].
const CONTENTS: SectionName = SectionName::new("contents");
const TABLES: SectionName = SectionName::new("tables");
const USED: SectionName = SectionName::new("used");
const PART: SectionName = SectionName::new("part");
const EXECUTIONS: SectionName = SectionName::new("executns");
const OWN: SectionName = SectionName::new("own");
const METRICS: SectionName = SectionName::new("metrics");

/// The sections of a part whose ids are positions in its list of used entries: they are the same in each database.
const OF_PART: [SectionName; 4] = [PART, EXECUTIONS, OWN, METRICS];

/// A database of one recording in the making: each model is packed when it is given and can be dropped then.
pub struct Writer {
    recording: StoredRecording,
    /// That of the recording, where it is known before its parts.
    digest: Option<Digest>,
    file: SavedFileWriter,
}

/// A part where it is in its database.
#[cfg_attr(not(feature = "parquet"), allow(dead_code))]
pub struct PlacedPart<'a> {
    database: &'a Database,
    /// Those of its task.
    tables: &'a ModelTables,
    /// Of its sections.
    number: u32,
}

#[cfg(feature = "parquet")]
impl PlacedPart<'_> {
    /// Its tables by themselves, without the names of labels, and the digest by which it is known again. Cost: its
    /// tables are packed anew, its sections read.
    pub fn own_tables(&self) -> Result<(ModelTables, Digest), SavedFileError> {
        let own = self.database.used_of(self.tables, self.number)?;
        let sections = OF_PART.map(|section| self.database.file.section(section.of(self.number)));
        let sections: Vec<Vec<u8>> = sections.into_iter().collect::<Result<_, _>>()?;
        let digest = packed_part::digest_of_sections(&bytes_of(&own), &sections);
        Ok((own, digest))
    }
}

impl Writer {
    /// An empty database about a recording; `notices` are those of the pass over it.
    pub fn new(facts: Facts, notices: Notices) -> Writer {
        let recording =
            StoredRecording { digest: Digest::default(), labelled: false, facts, notices, parts: Vec::new() };
        Writer { recording, digest: None, file: SavedFileWriter::new(SavedKind::Executions) }
    }

    /// Whether the labels of the traces are those that the user gave.
    #[must_use]
    pub fn labelled(mut self, labelled: bool) -> Writer {
        self.recording.labelled = labelled;
        self
    }

    /// Add the model of a task that is not there yet; of one that was weighed, the executions that are kept.
    pub fn add(&mut self, model: Model, ctx: &Ctx) -> Result<(), Cancelled> {
        let task = model.tasks.get(model.task).cloned().unwrap_or_default();
        if self.recording.parts.iter().any(|part| part.task == task) {
            return Ok(());
        }
        let (part, packed) = PackedPart::of_kept(model, task, None, ctx)?;
        self.packed(part, packed);
        Ok(())
    }

    /// Add the sections of a part whose tables are its own.
    fn packed(&mut self, part: StoredPart, packed: PackedPart) {
        let number = self.recording.parts.len() as u32;
        let PackedPart { tables, used, sections, content: _ } = packed;
        self.file.add(TABLES.of(number), tables);
        for (name, bytes) in OF_PART.into_iter().zip(sections) {
            self.file.add(name.of(number), bytes);
        }
        self.file.add(USED.of(number), used);
        self.recording.parts.push(part);
    }

    /// A database of a recording that was in another one, with its parts.
    fn restored(mut recording: StoredRecording, packed: Vec<PackedPart>) -> Writer {
        let parts = std::mem::take(&mut recording.parts);
        let digest = Some(recording.digest);
        let mut writer = Writer { recording, digest, file: SavedFileWriter::new(SavedKind::Executions) };
        parts.into_iter().zip(packed).for_each(|(part, packed)| writer.packed(part, packed));
        writer
    }

    /// Notices about the recording.
    pub fn notices(&self) -> &Notices {
        &self.recording.notices
    }

    /// The whole file.
    fn whole(mut self) -> SavedFileWriter {
        let computed = || StoredRecording::digest(&self.recording.facts, &self.recording.parts);
        self.recording.digest = self.digest.unwrap_or_else(computed);
        self.file.add(CONTENTS, bytes_of(&Contents { recordings: vec![self.recording] }));
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

/// A part of a task: the position of its recording, and the number of its sections.
type NumberedPart<'a> = (usize, u32, &'a StoredPart);

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

    /// The parts of a task.
    fn parts<'a>(&'a self, task: &'a str) -> impl Iterator<Item = NumberedPart<'a>> {
        self.contents.numbered().enumerate().flat_map(move |(at, (recording, first))| {
            let parts = recording.parts.iter().zip(first..);
            parts.filter(move |(part, _)| part.task == task).map(move |(part, number)| (at, number as u32, part))
        })
    }

    /// How long each execution of a task took, and how many it represents, in no order; only in the recordings at these
    /// positions.
    pub fn durations(
        &self,
        task: &str,
        is_chosen: impl Fn(usize) -> bool,
        ctx: &Ctx,
    ) -> Result<Vec<(Ns, u64)>, SavedFileError> {
        let mut all = Vec::new();
        for (_, number, part) in self.parts(task).filter(|(at, ..)| is_chosen(*at)) {
            let executions = if part.whole == part.count {
                self.file.read(EXECUTIONS.of(number), rows::unpack_executions)?
            } else {
                // The weights are among the metrics, which need all else.
                self.part(self.used_of(&self.tables_of(task)?, number)?, number, part, ctx)?.executions
            };
            let weights = executions.weights();
            all.extend(executions.duration.iter().enumerate().map(|(i, duration)| (duration, weights.of(i))));
        }
        Ok(all)
    }

    /// The tables of a task, by its position among all.
    fn tables(&self, task: usize) -> Result<ModelTables, SavedFileError> {
        self.file.read(TABLES.of(task as u32), tables::unpack)
    }

    /// The tables of a task, by its name; none where no recording has it.
    fn tables_of(&self, task: &str) -> Result<ModelTables, SavedFileError> {
        match self.contents.tasks().iter().position(|known| known == task) {
            Some(position) => self.tables(position),
            None => Ok(ModelTables::default()),
        }
    }

    /// What a part uses of the tables of its task.
    fn used(&self, number: u32, tables: &ModelTables) -> Result<UsedEntries, SavedFileError> {
        self.file.read(USED.of(number), |unpack| UsedEntries::unpack(tables, unpack))
    }

    /// The parts of a task in the recordings at chosen positions, each as a model whose executions lack the names of
    /// their labels.
    pub fn add_to(
        &self,
        joiner: &mut Joiner<'_>,
        task: &str,
        is_chosen: impl Fn(usize) -> bool,
        ctx: &Ctx,
    ) -> Result<(), SavedFileError> {
        let Some(position) = self.contents.tasks().iter().position(|known| known == task) else { return Ok(()) };
        let tables = self.tables(position)?;
        for (_, number, part) in self.parts(task).filter(|(at, ..)| is_chosen(*at)) {
            joiner.add(self.part(self.used_of(&tables, number)?, number, part, ctx)?);
        }
        Ok(())
    }

    /// What a part uses of the tables of its task.
    fn used_of(&self, tables: &ModelTables, number: u32) -> Result<ModelTables, SavedFileError> {
        let used = self.used(number, tables)?;
        used.of(tables).ok_or_else(|| self.file.contradiction(USED.of(number)))
    }

    /// Pass each part of each task to `put`, with its recording and its place, as a model by itself.
    pub fn each_part<E: From<SavedFileError>>(
        &self,
        ctx: &Ctx,
        mut put: impl FnMut((&StoredRecording, &StoredPart), &PlacedPart<'_>, Model) -> Result<(), E>,
    ) -> Result<(), E> {
        for (position, task) in self.contents.tasks().iter().enumerate() {
            let tables = self.tables(position)?;
            for (at, number, part) in self.parts(task) {
                let model = self.part(self.used_of(&tables, number)?, number, part, ctx)?;
                let place = PlacedPart { database: self, tables: &tables, number };
                put((&self.contents.recordings[at], part), &place, join::named_labels(model))?;
            }
        }
        Ok(())
    }

    /// Pass each part of a task in the recordings at chosen positions, with the position, as a model by itself, or why
    /// it cannot be read.
    pub fn each_part_of<E>(
        &self,
        task: &str,
        is_chosen: impl Fn(usize) -> bool,
        ctx: &Ctx,
        mut put: impl FnMut(usize, &StoredPart, Result<Model, SavedFileError>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(position) = self.contents.tasks().iter().position(|known| known == task) else { return Ok(()) };
        let tables = self.tables(position).ok();
        for (at, number, part) in self.parts(task).filter(|(at, ..)| is_chosen(*at)) {
            let own = match &tables {
                Some(tables) => self.used_of(tables, number),
                // No part can be read without them.
                None => self.tables(position),
            };
            let model = own.and_then(|own| self.part(own, number, part, ctx));
            put(at, part, model.map(join::named_labels))?;
        }
        Ok(())
    }

    /// A part by itself, by the positions of its recording and of it there.
    pub fn part_at(&self, recording: usize, at: usize, ctx: &Ctx) -> Result<Model, SavedFileError> {
        let (part, number) = self.numbered_part(recording, at)?;
        let own = self.used_of(&self.tables_of(&part.task)?, number)?;
        let mut model = join::named_labels(self.part(own, number, part, ctx)?);
        model.tasks = Arc::new(vec![part.task.clone()]);
        Ok(model)
    }

    /// A part as it is, by the positions of its recording and of it there.
    fn stored_part(&self, (recording, at): (usize, usize)) -> Result<(StoredPart, PackedPart), SavedFileError> {
        let (part, number) = self.numbered_part(recording, at)?;
        let own = self.used_of(&self.tables_of(&part.task)?, number)?;
        let mut used = Pack::default();
        UsedEntries::all(own.names.len(), own.who.len(), own.contexts.len()).pack(&mut used);
        let [a, b, c, d] = OF_PART.map(|section| self.file.section(section.of(number)));
        let sections = [a?, b?, c?, d?];
        Ok((part.clone(), PackedPart { tables: bytes_of(&own), used: used.0, sections, content: part.content }))
    }

    /// A part, by the positions of its recording and of it there, and the number of its sections.
    fn numbered_part(&self, recording: usize, at: usize) -> Result<(&StoredPart, u32), SavedFileError> {
        let known = self.contents.numbered().nth(recording);
        let found = known.and_then(|(known, first)| Some((known.parts.get(at)?, (first + at) as u32)));
        found.ok_or_else(|| self.file.contradiction(CONTENTS.of(0)))
    }

    /// The model of a task, by its position among the tasks.
    pub fn model(&self, task: usize, ctx: &Ctx) -> Result<Model, SavedFileError> {
        let tasks = self.contents.tasks();
        let name = tasks.get(task).cloned().unwrap_or_default();
        let mut model = self.joined(task, &name, ctx)?;
        (model.tasks, model.task) = (Arc::new(tasks), task);
        Ok(model)
    }

    fn joined(&self, task: usize, name: &str, ctx: &Ctx) -> Result<Model, SavedFileError> {
        let mut parts = self.parts(name);
        if let (Some((_, number, part)), None) = (parts.next(), parts.next()) {
            // Its tables are its own, and in order.
            let tables = self.tables(task)?;
            let used = self.used(number, &tables)?;
            if used.is_all(&tables) {
                return Ok(join::named_labels(self.part(tables, number, part, ctx)?));
            }
        }
        let renamed = Renamed::new();
        let mut joiner = Joiner::new(&renamed, LabelNames::Kept);
        self.add_to(&mut joiner, name, |_| true, ctx)?;
        Ok(joiner.finish(ctx)?)
    }

    /// A part as a model of its own tables, whose executions lack the names of their labels.
    fn part(&self, tables: ModelTables, number: u32, part: &StoredPart, ctx: &Ctx) -> Result<Model, SavedFileError> {
        let file = &self.file;
        let ModelTables { names, who, contexts } = tables;
        let mut model = Model { names, who, contexts, notices: part.notices.clone(), ..Model::default() };
        let has_labels = file.read(PART.of(number), |unpack| tables::unpack_part(&mut model, &part.labels, unpack))?;
        ctx.cancel.check()?;
        model.executions = file.read(EXECUTIONS.of(number), rows::unpack_executions)?;
        if !tables::knows(&model, &model.executions) {
            return Err(file.contradiction(EXECUTIONS.of(number)));
        }
        model.executions.own = file.read(OWN.of(number), |unpack| rows::unpack_own(&model, unpack))?;
        ctx.cancel.check()?;
        let mut columns = file.read(METRICS.of(number), |unpack| columns::read(&model, unpack))?;
        if has_labels {
            let values = std::iter::repeat_n(ABSENT, model.executions.len()).collect();
            let at = columns.partition_point(|column| column.metric < Metric::Trace);
            columns.insert(at, Column { metric: Metric::Trace, values });
        }
        model.executions.columns = columns;
        Ok(model)
    }
}
