//! `whyslow diff`: groups, histograms, differential tree and causes; or two executions moment by moment.

use super::console::Console;
use super::{Outcome, Question, compared};
use crate::confinement::Files;
use crate::input::Argument;
use crate::options::{ExecutionPair, GroupOptions, InputOptions};
use crate::session::{self, Session};
use crate::view::{execution_text, json, text};
use clap::Args;

#[derive(Args, Debug)]
pub struct DiffOptions {
    #[command(flatten)]
    input: InputOptions,
    #[command(flatten)]
    groups: GroupOptions,
    /// Print one JSON document (schema whyslow.diff/1)
    #[arg(long)]
    json: bool,
    /// Print at most N nodes of the tree in JSON; `truncated` is true if some are left out
    #[arg(long, value_name = "N")]
    max_nodes: Option<usize>,
    /// Two executions by number, aligned moment by moment
    #[arg(long, value_name = "A,B")]
    executions: Option<ExecutionPair>,
}

impl Question for DiffOptions {
    fn input(&self) -> &InputOptions {
        &self.input
    }

    fn files(&self) -> Files<'_> {
        Files::of_groups(&self.groups)
    }

    fn traces(&self) -> Vec<Argument> {
        self.groups.traces(&self.input)
    }

    fn run(&self, mut session: Session, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
        let timelines = self.executions.map(|ExecutionPair { a, b }| [a, b]);
        let timelines = timelines.as_ref().map_or(&[][..], |both| both);
        let (model, comparison) = compared(&self.input, &self.groups, timelines, &mut session, console)?;
        let aligned = self.executions.map(|ExecutionPair { a, b }| session::align(&model, a, b)).transpose()?;
        console.answer(
            self.json,
            || json::diff(&model, &comparison, aligned.as_ref(), self.max_nodes),
            |page| match &aligned {
                Some(aligned) => execution_text::executions(&model, aligned, page),
                None => text::diff(&model, &comparison, page),
            },
        )?;
        Ok(model.notices.into())
    }
}
