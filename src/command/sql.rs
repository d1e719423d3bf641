//! `whyslow sql`: the comparison as statements that other engines run over the exported tables.

use super::console::Console;
use super::{Outcome, Question, compared};
use crate::confinement::Files;
use crate::input::Argument;
use crate::options::{GroupOptions, InputOptions};
use crate::session::{Session, UsageError};
use crate::view::sql::{SqlEngine, statements};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct SqlOptions {
    #[command(flatten)]
    groups: GroupOptions,
    /// Who runs the statements
    #[arg(long, value_name = "NAME", default_value = "duckdb", hide_default_value = true)]
    engine: EngineName,
    /// The folder of the tables, as the engine sees it (default: tables)
    #[arg(long, value_name = "DIR", default_value = "tables", hide_default_value = true)]
    tables: PathBuf,
    #[command(flatten)]
    input: InputOptions,
}

/// An engine on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum EngineName {
    Duckdb,
    Clickhouse,
    Spark,
}

impl From<EngineName> for SqlEngine {
    fn from(name: EngineName) -> Self {
        match name {
            EngineName::Duckdb => SqlEngine::DuckDb,
            EngineName::Clickhouse => SqlEngine::ClickHouse,
            EngineName::Spark => SqlEngine::Spark,
        }
    }
}

impl Question for SqlOptions {
    fn input(&self) -> &InputOptions {
        &self.input
    }

    fn files(&self) -> Files<'_> {
        Files::of_groups(&self.groups)
    }

    fn traces(&self) -> Vec<Argument> {
        self.groups.traces(&self.input)
    }

    fn check(&self) -> Result<(), UsageError> {
        if self.groups.functions.is_some() {
            let why = "the tables have the names that were exported: leave it out";
            return Err(UsageError(format!("--functions: {why}")));
        }
        Ok(())
    }

    fn shows_notices(&self) -> bool {
        false
    }

    fn run(&self, mut session: Session, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
        let (model, comparison) = compared(&self.input, &self.groups, &[], &mut session, console)?;
        if model.profile.is_some() {
            anyhow::bail!("{}: samples of a profile are in no tables: ask about executions", session.title());
        }
        let folder = self
            .tables
            .to_str()
            .ok_or_else(|| UsageError(format!("--tables {}: its name is no text (UTF-8)", self.tables.display())))?;
        let text = statements(&model, &comparison, self.engine.into(), folder);
        let text = text.map_err(|error| UsageError(error.to_string()))?;
        console.answer(false, || (), |_| text)?;
        Ok(model.notices.into())
    }
}
