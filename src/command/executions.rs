//! `whyslow executions`: the executions of a task one by one.

use super::console::{Console, print};
use super::{Outcome, Question, places};
use crate::base::op::Op;
use crate::compare::filter::{Filter, Filters};
use crate::compare::members;
use crate::confinement::Files;
use crate::model::execution::ExecutionId;
use crate::model::metric::Metric;
use crate::options::{InputOptions, SymbolOptions, TaskOptions};
use crate::session::{Session, UsageError};
use crate::view::executions;
use clap::Args;
use std::cmp::Reverse;

#[derive(Args, Debug)]
pub struct ExecutionsOptions {
    /// The task (default: as `explain` chooses).
    #[command(flatten)]
    asked: TaskOptions,
    /// Executions of this type only
    #[arg(long = "type", value_name = "NAME")]
    kind: Option<String>,
    /// Executions that pass: `duration>20ms, thread=worker`; repeatable, in the syntax of --slow
    #[arg(long, value_name = "FILTER")]
    filter: Vec<Filters>,
    /// Those that ran at a time since the first event, or at a time of day: `12.5s`, `09:45:56`
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// The N slowest, the slowest first (default: all, in order of time)
    #[arg(long, value_name = "N")]
    slowest: Option<usize>,
    #[command(flatten)]
    symbols: SymbolOptions,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    input: InputOptions,
}

impl ExecutionsOptions {
    /// The conditions that they pass.
    fn filters(&self) -> Result<Vec<Filter>, UsageError> {
        let mut filters: Vec<Filter> = self.filter.iter().flat_map(|filters| filters.0.clone()).collect();
        filters.extend(self.kind.iter().map(|kind| Filter::named(Metric::Type, Op::Equal, kind)));
        if let Some(at) = &self.at {
            let at_time = Filter::at_time(at).map_err(|error| UsageError(format!("--at {at}: {}", error.fault())))?;
            filters.extend(at_time);
        }
        Ok(filters)
    }
}

impl Question for ExecutionsOptions {
    fn input(&self) -> &InputOptions {
        &self.input
    }

    fn files(&self) -> Files<'_> {
        Files { symbols: Some(&self.symbols), ..Files::default() }
    }

    fn check(&self) -> Result<(), UsageError> {
        self.filters().map(|_| ())
    }

    fn run(&self, mut session: Session, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
        let places = places(&self.input.traces, &self.symbols);
        let model = console.with_progress(|ctx| session.model(self.asked.asked().as_deref(), &places, &[], ctx))?;
        console.stage("analyse");
        let filters = self.filters()?;
        let mut found: Vec<ExecutionId> =
            members::members(&model, &filters, &[]).map_err(|error| UsageError(error.to_string()))?;
        if found.is_empty() && !filters.is_empty() {
            return Err(UsageError(members::why_empty(&model, &filters, &[])).into());
        }
        if let Some(most) = self.slowest {
            found.sort_by_key(|id| (Reverse(model.executions.duration(id.index())), *id));
            found.truncate(most);
        }
        if self.json {
            print(&executions::json_lines(&model, &found)?)?
        } else {
            print(&executions::text(&model, &found, super::console::page()))?
        }
        Ok(model.notices.into())
    }
}
