//! How often and how long each task of traces ran, in one pass over the events.
//!
//! The events show tasks that no metadata declare: loops between waits, calls whose names the analysis finds, functions
//! whose calls were recorded, and whole processes.

use super::choice::MarkedLoop;
use super::traces::Traces;
use crate::analysis::executions::{self, PairingRule};
use crate::analysis::{derived, functions, survey};
use crate::base::ctx::Ctx;
use crate::base::notice::Notices;
use crate::model::survey::{Survey, TaskSurvey};
use crate::reading::tasks;
use crate::symbols::files::SymbolPaths;
use std::collections::{BTreeMap, BTreeSet};

/// The tasks of a recording with their durations.
#[derive(Debug)]
pub struct TraceSurvey {
    /// Executions by name of the task, and the sums of the recording.
    pub survey: Survey,
    /// The names of tasks that are not declared: only the events show loops, unnamed calls, functions and processes.
    pub discovered: Vec<String>,
    /// Notices raised while reading.
    pub notices: Notices,
}

/// Whether a survey checks the invariants of the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invariants {
    /// A broken one is an error.
    Checked,
    Assumed,
}

impl Traces {
    /// How often and how long each task ran.
    pub fn survey(&mut self, invariants: Invariants, places: &SymbolPaths, ctx: &Ctx) -> anyhow::Result<TraceSurvey> {
        self.alone("info --full")?;
        self.fit_clocks(ctx)?;
        let tasks = self.candidates(&[])?;
        let functions = tasks::function("", &self.tasks().classes);
        let mut pass = self.pass(tasks.iter().cloned().chain(functions).collect(), places, ctx)?;
        let (timeline, mut notices) = (&pass.timeline, pass.notices.clone());
        if invariants == Invariants::Checked
            && let Some(broken) = timeline.check()
        {
            anyhow::bail!("an invariant does not hold: {broken}; please report this");
        }
        let mut survey = survey::survey(timeline, &tasks, &mut notices);
        let mut calls: BTreeMap<String, TaskSurvey> = BTreeMap::new();
        if pass.tasks.len() > tasks.len() {
            for call in functions::pair(timeline, tasks.len() as u32, &mut notices) {
                let begin = timeline.mark(call.begin);
                let name = begin.and_then(|begin| pass.name(begin)).unwrap_or_default();
                calls.entry(name.to_owned()).or_default().add(timeline, call.thread, call.span, &mut notices);
            }
        }
        let loops = self.loops(&mut pass, places, ctx)?;
        let timeline = &pass.timeline;
        let missing = &pass.stacks.get(timeline, &self.with_recorded(places)?, ctx)?.notices;
        notices.merge(&missing.asking());
        let mut names = Vec::new();
        for MarkedLoop { task, name } in loops {
            let iterations = executions::pair(timeline, task as u32, &PairingRule::default(), &mut notices);
            let surveyed = survey.tasks.entry(name.clone()).or_default();
            iterations.iter().for_each(|one| surveyed.add(timeline, one.thread, one.span, &mut notices));
            surveyed.durations.sort_unstable();
            names.push(name);
        }
        // Calls that no class of events names (raw ones, those of old tracers) are known by now.
        let named: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        let found = &self.tasks().names().first;
        let unnamed = |name: &&String| !found.contains_key(*name) && !named.contains(name.as_str());
        let unnamed: Vec<String> = survey.tasks.keys().filter(unnamed).cloned().collect();
        names.extend(unnamed);
        names.extend(calls.keys().filter(|name| !survey.tasks.contains_key(*name)).cloned());
        survey.add_functions(calls);
        for (name, durations) in derived::whole_lives(timeline) {
            names.push(name.clone());
            survey.tasks.entry(name).or_default().durations = durations;
        }
        Ok(TraceSurvey { survey, discovered: names, notices })
    }
}
