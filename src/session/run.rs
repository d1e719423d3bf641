//! The archive of one MPI run: nothing delimits its executions, so patterns are looked for, and what broke them; the
//! iterations of each rank's outermost loop are its executions.

use super::sampling::{Sampling, weighed};
use super::{UsageError, stages};
use crate::advice::archive_gaps;
use crate::analysis::patterns::PatternAnalysis;
use crate::base::ctx::Ctx;
use crate::base::notice::Notices;
use crate::delays::mining::Mining;
use crate::event::mpi;
use crate::event::operation::Operations;
use crate::explain::facts::archive_facts;
use crate::explain::iterations;
use crate::input::LabelledArchive;
use crate::input::otf2::Archive;
use crate::model::Model;
use crate::model::choice::{ChosenBy, TaskChoice};
use crate::model::facts::{Facts, TraceFacts};
use crate::model::join::{self, Renamed};
use crate::model::recorded::Recorded;
use crate::saved::executions::Writer;
use std::sync::{Arc, OnceLock};

/// An MPI run, and others to compare it with.
pub struct MpiRuns {
    /// Facts about the recording.
    pub archive: Box<Archive>,
    /// As the user named it.
    pub(super) label: Option<String>,
    /// More runs, each of its own.
    pub(super) others: Vec<MpiRuns>,
    /// Mined on the first question about patterns or iterations.
    mined: OnceLock<Arc<Mining>>,
}

impl MpiRuns {
    /// A run whose archive is open.
    pub fn new(archive: Box<Archive>) -> MpiRuns {
        MpiRuns { archive, label: None, others: Vec::new(), mined: OnceLock::new() }
    }

    /// The first of some runs, with the others beside it.
    pub fn of(archives: Vec<LabelledArchive>) -> anyhow::Result<MpiRuns> {
        let mut runs = archives
            .into_iter()
            .map(|LabelledArchive { label, archive }| MpiRuns { label, ..MpiRuns::new(Box::new(archive)) });
        let mut first = runs.next().ok_or_else(|| UsageError("name an archive".to_owned()))?;
        first.others = runs.collect();
        Ok(first)
    }

    /// The archives as the user named them.
    pub fn title(&self) -> String {
        let name = |run: &MpiRuns| run.label.clone().unwrap_or_else(|| run.archive.path.display().to_string());
        std::iter::once(self).chain(&self.others).map(name).collect::<Vec<_>>().join(" + ")
    }

    /// Notices raised when they were opened.
    pub fn notices(&self) -> Notices {
        let mut notices = self.archive.notices.clone();
        self.others.iter().for_each(|run| notices.merge(&run.archive.notices));
        notices
    }

    /// It is one run.
    pub fn is_alone(&self) -> bool {
        self.others.is_empty()
    }

    /// Error, in one line, if a question about one run is asked of several.
    pub fn alone(&self, question: &str) -> anyhow::Result<()> {
        if self.is_alone() {
            return Ok(());
        }
        anyhow::bail!("{}: `whyslow {question}` is asked of one archive at a time", self.title())
    }

    /// Error if no event file of the archive holds a usable call.
    pub(super) fn has_operations(&self, operations: &Operations) -> anyhow::Result<()> {
        if operations.sequences.iter().any(|s| !s.operations.is_empty()) {
            return Ok(());
        }
        let folder = self.archive.path.with_extension("");
        anyhow::bail!(
            "{}: no call can be read from its event files ({}/*.evt): copy the whole archive again; `whyslow stats \
             count` says what is in them",
            self.archive.path.display(),
            folder.display()
        )
    }

    /// Events per type and messages. The notices are about the records.
    pub fn read(&self, ctx: &Ctx) -> anyhow::Result<mpi::MpiRun> {
        Ok(mpi::read(&self.archive, ctx)?)
    }

    /// The iterations of all ranks of all runs, explained; with a task, those of that pattern.
    pub fn model(&self, task: Option<&str>, ctx: &Ctx) -> anyhow::Result<Model> {
        if self.is_alone() {
            ctx.progress.expect(stages::OF_RUNS);
        }
        let mut models = Vec::new();
        for run in std::iter::once(self).chain(&self.others) {
            let mut model = run.own_model(task, ctx)?;
            if let Some(label) = &run.label {
                join::label(&mut model, label);
            }
            models.push(model);
        }
        Ok(join::join(models, &Renamed::new(), ctx)?)
    }

    /// A database of the iterations of all runs; without tasks of all patterns together.
    pub fn build(&self, typed: &[&str], sampling: Option<&Sampling>, ctx: &Ctx) -> anyhow::Result<Writer> {
        let runs = || std::iter::once(self).chain(&self.others);
        let mut notices = Notices::default();
        for run in runs() {
            notices.merge(&run.mine(ctx)?.notices);
        }
        let facts = Facts { traces: runs().map(MpiRuns::facts).collect(), ..Facts::default() };
        let mut writer = Writer::new(facts, notices).labelled(runs().all(|run| run.label.is_some()));
        let typed = if typed.is_empty() { &[iterations::ITERATION][..] } else { typed };
        for task in typed {
            let model = self.model(Some(task), ctx)?;
            writer.add(weighed(sampling, model, ctx)?, ctx)?;
        }
        Ok(writer)
    }

    /// Some rank repeats something: the run has iterations, which can be compared.
    pub fn has_iterations(&self, ctx: &Ctx) -> anyhow::Result<bool> {
        Ok(!iterations::tasks(&self.mine(ctx)?.mined).is_empty())
    }

    /// Facts about this run's archive.
    pub(super) fn facts(&self) -> TraceFacts {
        let archive = &self.archive;
        let definitions = &archive.definitions;
        let begin = archive.ns(i128::from(definitions.global_offset));
        let end = archive.ns(i128::from(definitions.global_offset) + i128::from(definitions.trace_length));
        TraceFacts {
            path: self.label.clone().unwrap_or_else(|| archive.path.display().to_string()),
            format: format!("OTF2 {}", archive.anchor.version),
            begin,
            end,
            streams: definitions.locations.len() as u64,
            host: (!archive.anchor.machine.is_empty()).then(|| archive.anchor.machine.clone()),
            clock: Some(format!("{} Hz", definitions.ticks_per_second)),
            recorded: Some(self.own_recorded()),
            ..TraceFacts::default()
        }
    }

    /// What each of the runs recorded.
    pub(super) fn recorded(&self) -> Vec<Recorded> {
        std::iter::once(self).chain(&self.others).map(MpiRuns::own_recorded).collect()
    }

    /// What it recorded.
    fn own_recorded(&self) -> Recorded {
        let name = self.label.clone().unwrap_or_else(|| self.archive.path.display().to_string());
        archive_gaps::recorded(&archive_facts(&self.archive), &name)
    }

    fn own_model(&self, task: Option<&str>, ctx: &Ctx) -> anyhow::Result<Model> {
        let mining = self.mine(ctx)?;
        let (mined, notices) = (&mining.mined, &mining.notices);
        let tasks = iterations::tasks(mined);
        let title = self.archive.path.display().to_string();
        if tasks.is_empty() {
            anyhow::bail!(
                "{title}: no rank repeats anything, so there are no iterations; `whyslow info` says what is in it"
            );
        }
        let choice = task.is_none().then(|| TaskChoice { by: ChosenBy::Marked, ..TaskChoice::default() });
        let task = task.unwrap_or(iterations::ITERATION);
        let Some(at) = tasks.iter().position(|t| t == task) else {
            return Err(UsageError(format!("--task {task}: {title} has {}", tasks.join(", "))).into());
        };
        let mut model = iterations::iterations(mined, at, &title, &self.archive.anchor.machine, notices, ctx)?;
        model.choice = choice;
        model.traces.iter_mut().for_each(|trace| trace.recorded = Some(self.own_recorded()));
        Ok(model)
    }

    /// Patterns of each rank's operations; messages and collectives carry delays from rank to rank. Mined once.
    pub fn mine(&self, ctx: &Ctx) -> anyhow::Result<Arc<Mining>> {
        if let Some(mining) = self.mined.get() {
            return Ok(Arc::clone(mining));
        }
        let (operations, notices) = mpi::operations(&self.archive, ctx)?;
        let mined = PatternAnalysis::new(operations, ctx)?;
        self.has_operations(&mined.operations)?;
        let mining = Arc::new(Mining::of_patterns(mined, notices));
        Ok(Arc::clone(self.mined.get_or_init(|| mining)))
    }
}
