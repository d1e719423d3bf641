//! `whyslow build`: an execution database, or a history file.

use super::console::Console;
use super::{Outcome, Question, places};
use crate::confinement::Files;
use crate::options::{InputOptions, SymbolOptions};
use crate::session::{NewHistoryFile, Session, UsageError};
use crate::symbols::files::SymbolPaths;
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
    #[command(flatten)]
    input: InputOptions,
}

impl Question for BuildOptions {
    fn input(&self) -> &InputOptions {
        &self.input
    }

    fn files(&self) -> Files<'_> {
        Files { symbols: Some(&self.symbols), output: Some(&self.output), ..Files::default() }
    }

    fn shows_notices(&self) -> bool {
        false
    }

    fn check(&self) -> Result<(), UsageError> {
        if self.output.with_file_name("metadata").exists() {
            let why = "the folder is a trace, and every file in it counts as a stream: choose another folder";
            return Err(UsageError(format!("--output {}: {why}", self.output.display())));
        }
        Ok(())
    }

    fn run(&self, session: Session, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
        let tasks: Vec<&str> = self.task.iter().map(String::as_str).collect();
        let places = places(&self.input.traces, &self.symbols);
        if self.history {
            return self.history(session, &tasks, &places, console);
        }
        let writer = console.with_progress(|work| match session {
            Session::Traces(mut traces) => traces.build(&tasks, &places, work),
            Session::Run(run) => run.build(&tasks, work),
            Session::Databases(databases) => databases.refuse("build"),
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
        })?;
        console.stage("analyse");
        writer.save(console.output()?)?;
        Ok(notices.into())
    }
}
