//! Profiles: recordings that sampled events and hold no scheduler events are explained by their samples.
//!
//! Each of several recordings is a run of its own, with its own threads and clock; their models are joined. A recording
//! whose programs delimit executions themselves is asked about these first.

use super::symbols::with_recorded_of;
use super::traces::Traces;
use super::{UsageError, stages};
use crate::base::ctx::Ctx;
use crate::event::profile::ProfileTask;
use crate::explain::profile::{self, ProfileRequest};
use crate::input::Source;
use crate::kernel::{Options, record};
use crate::model::Model;
use crate::model::join::{self, Renamed};
use crate::reading::topics::{has_samples, is_profile};
use crate::symbols;
use crate::symbols::files::SymbolPaths;

impl Traces {
    /// True if all traces sampled events, and none recorded which threads run.
    pub fn are_profiles(&self) -> bool {
        let recorded = self.recorded();
        let mut sources = self.sources.iter().zip(recorded);
        !self.sources.is_empty() && sources.all(|(source, recorded)| is_profile(&source.trace, recorded))
    }

    /// True where a question without a task is about the samples: nothing in these recordings delimits executions.
    pub(super) fn asks_for_profile(&self) -> anyhow::Result<bool> {
        Ok(self.are_profiles() && self.candidates(&[])?.is_empty())
    }

    /// The samples that a question is about: those of the task `profile`, or of recordings in which nothing else can be
    /// asked about. An error for a task that begins so and has another form.
    pub(super) fn profile_task(&self, typed: Option<&str>) -> anyhow::Result<Option<ProfileTask>> {
        let asked = self.asked(typed);
        let program = asked.process.map(str::to_owned);
        match asked.task.map(crate::event::profile::parse) {
            Some(Some(task)) if self.sources.is_empty() || self.sources.iter().any(|s| has_samples(&s.trace)) => {
                let typed = typed.unwrap_or_default();
                let of_process = |task: ProfileTask| ProfileTask { program: program.or(task.program), ..task };
                task.map(of_process).map(Some).map_err(|form| UsageError(format!("--task {typed}: {form}")).into())
            }
            Some(_) => Ok(None),
            None if self.tasks().declared == 0 && self.asks_for_profile()? => {
                Ok(Some(ProfileTask { program, ..ProfileTask::default() }))
            }
            None => Ok(None),
        }
    }

    /// The samples that a task asks for, as executions.
    pub(super) fn profile(&self, task: &ProfileTask, places: &SymbolPaths, ctx: &Ctx) -> anyhow::Result<Model> {
        if self.sources.is_empty() {
            return Err(
                UsageError(format!("--task {task}: a history file keeps no profile; name its recording")).into()
            );
        }
        if self.sources.len() == 1 {
            ctx.progress.expect(stages::OF_PROFILES);
        }
        let mut task = task.clone();
        let mut models: Vec<Model> = Vec::new();
        for source in &self.sources {
            let model = self.profile_of(source, &task, places, ctx)?;
            // All others are asked for the event of the first.
            task.event = task.event.or_else(|| model.profile.as_ref().map(|profile| profile.event.clone()));
            models.push(model);
        }
        Ok(join::join(models, &Renamed::new(), ctx)?)
    }

    fn profile_of(
        &self,
        source: &Source,
        task: &ProfileTask,
        places: &SymbolPaths,
        ctx: &Ctx,
    ) -> anyhow::Result<Model> {
        let places = &with_recorded_of(&[&source.trace], places);
        symbols::unwind::unwind(&source.trace, 0, places, ctx)?;
        let options = Options {
            engine: self.engine,
            labels: vec![source.labelled.then(|| source.label.clone())],
            handlers: self.handlers.clone(),
            ..Options::default()
        };
        let (mut timeline, mut notices) = record(&[&source.trace], &[], &options, ctx)?;
        notices.merge(&source.trace.notices());
        symbols::images::add_files(&mut timeline, &[source.trace.code()]);
        let trace = super::about::about_one(source);
        let request = ProfileRequest { task: task.clone(), trace, places: places.clone() };
        let label = &source.label;
        let Some(model) = profile::build(&timeline, &request, &notices, ctx)? else {
            let known = profile::event_names(&timeline);
            anyhow::bail!(match (&task.event, known.is_empty()) {
                (_, true) => format!("{label}: it holds no samples; record some: perf record -g -- COMMAND"),
                (Some(event), false) => format!("{label}: no sample of {event}; --event takes {}", known.join(", ")),
                (None, false) => format!("{label}: its samples stand for nothing"),
            });
        };
        if model.executions.is_empty() {
            let whose = task.program.as_deref().unwrap_or("the recorded command");
            anyhow::bail!("{label}: no sample is of {whose}; --task 'profile=*' asks about all programs");
        }
        Ok(model)
    }
}
