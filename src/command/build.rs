//! `whyslow build`: an execution database, or a history file.

use super::console::Console;
use super::{Outcome, Question, places};
use crate::base::clean;
use crate::compare::filter::Filters;
use crate::confinement::Files;
use crate::model::weights::MOST_WEIGHT;
use crate::options::{InputOptions, SymbolOptions};
use crate::session::{NewHistoryFile, PartialRequest, Sampling, Session, UsageError};
use crate::symbols::files::SymbolPaths;
use crate::view::stderr::say;
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct BuildOptions {
    #[command(flatten)]
    symbols: SymbolOptions,
    /// The file to write; an existing file of the same kind is replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// A task to keep, as `--task` of `explain`; repeatable (default: all that are not system calls or interrupts; with
    /// --history those as well)
    #[arg(long, value_name = "TASK")]
    task: Vec<String>,
    /// Write the states of the whole recording in place of executions: a history file of 8 to 14 % of a large trace,
    /// from which `explain`, `diff`, `anomalies`, `query`, `info`, `stats cpu`, `stats io` and the interface answer
    /// without the trace and without symbols
    #[arg(long)]
    history: bool,
    /// Of databases: write partial results, what their executions add up to by host, task, context and group, in place
    /// of executions; `merge` adds up those of many hosts, and `diff` compares them
    #[arg(long, conflicts_with = "history")]
    partial: bool,
    /// Keep all slow executions, and of the others one in N, with weights that all later figures honour: the file is
    /// smaller, sums stay right on average
    #[arg(long, value_name = "N", conflicts_with_all = ["history", "partial"], value_parser = sample_size())]
    sample: Option<u64>,
    /// With --sample the executions that are all kept (default: the slow group of `explain`); with --partial the slow
    /// group: filters that decide by the execution alone (`duration>=48ms`)
    #[arg(long, value_name = "FILTER")]
    slow: Vec<Filters>,
    /// Partial results of this fast group
    #[arg(long, value_name = "FILTER", requires = "partial")]
    fast: Vec<Filters>,
    /// Partial results by the groups of this file: its own, or the slowest twentieth and the faster half of the lengths
    /// that it has
    #[arg(long, value_name = "FILE", requires = "partial", conflicts_with_all = ["slow", "fast"])]
    groups: Option<PathBuf>,
    #[command(flatten)]
    input: InputOptions,
}

/// The numbers of which one execution may be kept.
pub(super) fn sample_size() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(2..=MOST_WEIGHT)
}

/// What is kept, where not all is.
pub(super) fn sampling(one_in: Option<u64>, slow: &[Filters]) -> Option<Sampling> {
    let slow = slow.iter().flat_map(|filters| filters.0.clone()).collect();
    one_in.map(|one_in| Sampling { one_in, slow })
}

impl Question for BuildOptions {
    fn input(&self) -> &InputOptions {
        &self.input
    }

    fn files(&self) -> Files<'_> {
        let groups = self.groups.as_deref();
        Files { symbols: Some(&self.symbols), output: Some(&self.output), groups, ..Files::default() }
    }

    fn shows_notices(&self) -> bool {
        false
    }

    fn check(&self) -> Result<(), UsageError> {
        if self.output.with_file_name("metadata").exists() {
            let why = "the folder is a trace, and every file in it counts as a stream: choose another folder";
            return Err(UsageError(format!("--output {}: {why}", self.output.display())));
        }
        if !self.slow.is_empty() && !self.partial && self.sample.is_none() {
            let why = "a database has all executions, whatever the groups are: add --sample N, or --partial";
            return Err(UsageError(format!("--slow: {why}")));
        }
        Ok(())
    }

    fn run(&self, session: Session, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
        let tasks: Vec<&str> = self.task.iter().map(String::as_str).collect();
        let places = places(&self.input.traces, &self.symbols);
        if self.partial {
            return self.partial(&session, tasks, console);
        }
        if self.history {
            return self.history(session, &tasks, &places, console);
        }
        let sampling = sampling(self.sample, &self.slow);
        let writer = console.with_progress(|work| match session {
            Session::Traces(mut traces) => traces.build(&tasks, &places, sampling.as_ref(), work),
            Session::Run(run) => run.build(&tasks, sampling.as_ref(), work),
            Session::Databases(databases) => databases.refuse("build"),
            Session::Partials(partials) => partials.refuse("build"),
        })?;
        console.stage("analyse");
        let notices = writer.notices().clone();
        writer.save(console.output()?)?;
        Ok(notices.into())
    }
}

impl BuildOptions {
    /// Write a history file.
    fn history(
        &self,
        session: Session,
        tasks: &[&str],
        places: &SymbolPaths,
        console: &mut Console<'_>,
    ) -> anyhow::Result<Outcome> {
        let NewHistoryFile { writer, notices } = console.with_progress(|work| match session {
            Session::Traces(mut traces) => traces.keep(tasks, places, work),
            Session::Run(run) => run.keep(tasks, work),
            Session::Databases(databases) => databases.refuse("build --history"),
            Session::Partials(partials) => partials.refuse("build --history"),
        })?;
        console.stage("analyse");
        writer.save(console.output()?)?;
        Ok(notices.into())
    }

    /// Write partial results.
    fn partial(&self, session: &Session, tasks: Vec<&str>, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
        let Session::Databases(databases) = session else {
            let title = session.title();
            anyhow::bail!("{title}: not a database: build one with `whyslow build`, and the partial results from it");
        };
        let all = |groups: &[Filters]| groups.iter().flat_map(|filters| filters.0.clone()).collect();
        let request =
            PartialRequest { tasks, slow: all(&self.slow), fast: all(&self.fast), by: self.groups.as_deref() };
        let lines = console.with_progress(|ctx| {
            let (sums, lines) = databases.partials(&request, ctx)?;
            sums.save(console.output()?, ctx)?;
            Ok(lines)
        })?;
        console.stage("analyse");
        for line in &lines {
            say(&format!("note: {}", clean::line(line)));
        }
        Ok(databases.notices().into())
    }
}
