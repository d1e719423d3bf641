//! `whyslow info`: the contents of a recording; with `--full` also its executions and the facts that it lacks.

use super::console::Console;
use super::{Depth, Outcome, Question, places, sound};
use crate::advice::questions::questions;
use crate::base::notice::Notices;
use crate::confinement::Files;
use crate::explain;
use crate::explain::facts::{archive_facts, iteration_durations};
use crate::model::settings::Settings;
use crate::model::weights::RankedValues;
use crate::options::{InputOptions, SymbolOptions};
use crate::reading::tasks;
use crate::session::{Databases, Invariants, MpiRuns, Session, TraceSurvey, Traces};
use crate::view::archive::ArchiveDocument;
use crate::view::info::{self, Measured};
use clap::Args;

#[derive(Args, Debug)]
pub struct InfoOptions {
    /// Run the analysis: executions and percentiles per task, unknown waits by reason
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    symbols: SymbolOptions,
    /// Print one JSON document (schema whyslow.info/1)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    input: InputOptions,
}

impl Question for InfoOptions {
    fn input(&self) -> &InputOptions {
        &self.input
    }

    fn files(&self) -> Files<'_> {
        Files { symbols: self.full.then_some(&self.symbols), ..Files::default() }
    }

    fn depth(&self) -> Depth {
        if self.full || self.input.timings { Depth::Events } else { Depth::Outline }
    }

    fn run(&self, session: Session, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
        match session {
            Session::Traces(traces) => self.of_traces(traces, console),
            Session::Run(run) => self.of_run(&run, console),
            Session::Databases(databases) => self.of_databases(&databases, console),
            Session::Partials(partials) => partials.refuse("info"),
        }
        .map(Into::into)
    }
}

impl InfoOptions {
    fn of_traces(&self, mut traces: Traces, console: &mut Console<'_>) -> anyhow::Result<Notices> {
        traces.alone("info")?;
        let places = places(&self.input.traces, &self.symbols);
        let (mut survey, discovered, notices) = if self.full {
            let invariants = if self.input.check { Invariants::Checked } else { Invariants::Assumed };
            let TraceSurvey { survey, discovered, notices } =
                console.with_progress(|ctx| traces.survey(invariants, &places, ctx))?;
            console.stage("survey");
            if self.input.check {
                sound(explain::untiled(&notices))?;
            }
            (Some(survey), discovered, notices)
        } else {
            (None, Vec::new(), traces.notices())
        };
        // Metadata declare hundreds of system calls that never occur: only the analysis knows which ones do.
        let found: Vec<_> = traces.found().iter().filter(|t| self.full || !tasks::is_system_call(t)).collect();
        let mut measured = |name: &str| {
            let of_task = survey.as_mut()?.tasks.get_mut(name).map(|task| std::mem::take(&mut task.durations));
            Some(Measured::new(&RankedValues::of_sorted(of_task.unwrap_or_default())))
        };
        let names = found.into_iter().map(|t| &t.name).chain(&discovered);
        let tasks: Vec<_> = names.map(|name| (name.as_str(), measured(name))).collect();
        let analysed = survey.as_ref().map(|s| (s, traces.clocks()));
        let mut facts = info::InfoDocument::new(&traces.facts(), tasks.into_iter(), analysed, &notices);
        // A recording without executions has no questions to answer.
        if self.full
            && let Ok(model) = traces.model(None, &places, &[], console.ctx)
        {
            facts = facts.with_questions(&questions(&model));
        }
        if self.input.timings {
            let stored = console.with_progress(|ctx| traces.stored(ctx))?;
            console.stage("store");
            facts = facts.with_stored(&stored, &console.ctx.progress.parts);
        }
        console.answer(self.json, || &facts, |_| facts.text())?;
        Ok(notices)
    }

    fn of_run(&self, run: &MpiRuns, console: &mut Console<'_>) -> anyhow::Result<Notices> {
        run.alone("info")?;
        let analysed = if self.full {
            let mining = console.with_progress(|work| run.mine(work))?;
            let found = mining.anomalies(&Settings::default(), console.ctx)?;
            console.stage("analyse");
            Some((mining, found))
        } else {
            None
        };
        let mut notices = analysed.as_ref().map_or(&run.archive.notices, |(mining, _)| &mining.notices).clone();
        if analysed.is_none() {
            notices.merge(&run.archive.missing_events());
        }
        let tasks = analysed.as_ref().map(|(mining, _)| iteration_durations(&mining.mined));
        let analysed = tasks.as_deref().zip(analysed.as_ref().map(|(_, found)| found));
        let mut facts = ArchiveDocument::new(&archive_facts(&run.archive), analysed, &notices);
        // A run in which nothing repeats has no questions to answer.
        if self.full
            && let Ok(model) = run.model(None, console.ctx)
        {
            facts = facts.with_questions(&questions(&model));
        }
        console.answer(self.json, || &facts, |_| facts.text())?;
        Ok(notices)
    }

    fn of_databases(&self, databases: &Databases, console: &mut Console<'_>) -> anyhow::Result<Notices> {
        let ((recorded, durations), notices) = (databases.survey(console.ctx)?, databases.notices());
        console.stage("survey");
        let tasks = durations.iter().map(|task| (task.name.as_str(), Some(Measured::new(&task.durations))));
        let facts = info::InfoDocument::new(&recorded, tasks, None, &notices);
        console.answer(self.json, || &facts, |_| facts.text())?;
        Ok(notices)
    }
}
