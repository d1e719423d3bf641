//! `whyslow diff`: groups, histograms, differential tree and causes; or two executions moment by moment.

use super::console::{Console, page};
use super::{Outcome, Question, compared, partial};
use crate::base::spelling::suggest;
use crate::compare::Comparison;
use crate::compare::arranged::{Arrangement, KernelFrames, Transform, TransformKind, arrange, invert};
use crate::compare::functions::{FunctionDiff, Sandwich, by_function, sandwich};
use crate::compare::heat_map::{HeatMap, HeatSize, axes, time_axis};
use crate::compare::members::typical;
use crate::compare::moments::unknown_execution;
use crate::confinement::Files;
use crate::input::Argument;
use crate::model::Model;
use crate::model::context::Frame;
use crate::model::execution::ExecutionId;
use crate::model::metric::Metric;
use crate::options::{ExecutionPair, GroupOptions, InputOptions};
use crate::session::{self, Session, UsageError};
use crate::view::diff_parts::DiffParts;
use crate::view::heat_map::{JSON_SIZE, text_size};
use crate::view::{json, text, words};
use clap::Args;

/// Names that a wrong one is compared with.
const NAMED: usize = 20;

#[derive(Args, Debug)]
pub struct DiffOptions {
    #[command(flatten)]
    groups: GroupOptions,
    /// Print one JSON document (schema whyslow.diff/1)
    #[arg(long)]
    json: bool,
    /// Print at most N nodes of the tree in JSON; `truncated` is true if some are left out
    #[arg(long, value_name = "N")]
    max_nodes: Option<usize>,
    /// Two executions by number over time, their calls aligned; one alone beside a typical fast one
    #[arg(long, value_name = "A[,B]")]
    executions: Option<ExecutionPair>,
    /// Also the tree with callees first: each frame by its own time, its callers below it
    #[arg(long)]
    callees_first: bool,
    /// In text, trees with the kernel's functions below system calls and page faults; in JSON they always are there
    #[arg(long)]
    kernel_frames: bool,
    /// Trees of this function, call, wait or thread alone, with what is below it; may be given several times
    #[arg(long, value_name = "NAME")]
    focus: Vec<String>,
    /// Trees without this function, call, wait or thread, and what is below it; may be given several times
    #[arg(long, value_name = "NAME")]
    drop: Vec<String>,
    /// Trees in which what is below this function, call, wait or thread is its own time; may be given several times
    #[arg(long, value_name = "NAME")]
    collapse: Vec<String>,
    /// Also how many executions there are by a property and by duration: start, type, process, ...
    #[arg(long, value_name = "PROPERTY", conflicts_with_all = ["executions", "function"])]
    heat_map: Option<String>,
    /// One function, call, wait or thread over all contexts, with its callers and callees
    #[arg(long, value_name = "NAME", conflicts_with = "executions")]
    function: Option<String>,
    #[command(flatten)]
    input: InputOptions,
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
        if let Session::Partials(partials) = &session {
            return partial::diff(partials, &self.groups, (self.json, self.max_nodes), console);
        }
        let pair = self.executions.map(|pair| self.paired(pair, &mut session, console)).transpose()?;
        let timelines = pair.as_ref().map_or(&[][..], |both| both);
        let (model, comparison) = compared(&self.input, &self.groups, timelines, &mut session, console)?;
        let arrangement = self.arrangement(&model, &comparison)?;
        let aligned = pair.map(|pair| session::align(&model, pair, arrangement.kernel, console.ctx)).transpose()?;
        // As text, the calls of two executions and the parts of a function take the place of the tree, and a tree with
        // callees first that of the one with callers first.
        let has_tree = self.json || (self.executions.is_none() && self.function.is_none());
        let has_callers_first = has_tree && (self.json || !self.callees_first);
        let arranged = match has_callers_first {
            true => arrange(&model, &comparison, &arrangement, console.ctx)?,
            false => None,
        };
        let inverted = (has_tree && self.callees_first)
            .then(|| invert(&model, &comparison, &arrangement, console.ctx))
            .transpose()?;
        let function = self.function.as_deref().map(|name| function(&model, &comparison, name)).transpose()?;
        let size = if self.json { JSON_SIZE } else { text_size(page()) };
        let heat_map =
            self.heat_map.as_deref().map(|across| heat_map(&model, &comparison, across, size)).transpose()?;
        let parts = DiffParts {
            aligned: aligned.as_ref().map(|(moments, calls)| (moments, calls)),
            arranged: arranged.as_ref(),
            inverted: inverted.as_ref(),
            heat_map: heat_map.as_ref(),
            function: function.as_ref(),
        };
        console.answer(
            self.json,
            || json::diff(&model, &comparison, &parts, self.max_nodes),
            |page| text::diff(&model, &comparison, &parts, page),
        )?;
        Ok(model.notices.into())
    }
}

impl DiffOptions {
    /// The arrangement of the trees that the options ask for.
    fn arrangement(&self, model: &Model, comparison: &Comparison) -> anyhow::Result<Arrangement> {
        let kernel = if self.kernel_frames || self.json { KernelFrames::Shown } else { KernelFrames::Hidden };
        let options = [
            (TransformKind::Focus, "--focus", &self.focus),
            (TransformKind::Drop, "--drop", &self.drop),
            (TransformKind::Collapse, "--collapse", &self.collapse),
        ];
        let mut arrangement = Arrangement { kernel, transforms: Vec::new() };
        for (kind, option, names) in options {
            for name in names {
                let frame = frame(model, comparison, option, name)?;
                arrangement.transforms.push(Transform { kind, frame });
            }
        }
        Ok(arrangement)
    }

    /// Both executions; beside one that was named alone the fast one of typical length, which the groups decide.
    fn paired(
        &self,
        ExecutionPair { a, b }: ExecutionPair,
        session: &mut Session,
        console: &mut Console<'_>,
    ) -> anyhow::Result<[ExecutionId; 2]> {
        if let Some(b) = b {
            return Ok([a, b]);
        }
        let (model, comparison) = compared(&self.input, &self.groups, &[], session, console)?;
        if a.index() >= model.executions.len() {
            return Err(UsageError(unknown_execution(&model, a).to_string()).into());
        }
        let typical = typical(&model, &comparison.fast.members, a);
        let why = "no fast execution of its type to compare it with; name a second one";
        typical.map(|b| [a, b]).ok_or_else(|| UsageError(format!("--executions {}: {why}", a.raw())).into())
    }
}

/// The frame that the tree draws so.
fn frame(model: &Model, comparison: &Comparison, option: &str, name: &str) -> anyhow::Result<Frame> {
    let mut frames = comparison.tree.nodes.iter().map(|node| model.contexts.frame(node.context));
    let found = frames.find(|frame| words::frame_in_words(model, *frame) == name);
    found.ok_or_else(|| unknown_frame(&by_function(model, &comparison.tree), option, name))
}

/// The executions of both groups by a property and by duration.
fn heat_map(model: &Model, comparison: &Comparison, across: &str, size: HeatSize) -> anyhow::Result<HeatMap> {
    if model.profile.is_some() {
        let why = "samples of a profile have no durations; the histograms of `diff` show their properties";
        return Err(UsageError(format!("--heat-map {across}: {why}")).into());
    }
    let all = axes(model);
    // Both are the time, and only one of them is an axis.
    let time = Metric::named(across).filter(|metric| [Metric::Start, Metric::Elapsed].contains(metric));
    let found = all.iter().find(|metric| [metric.name(), words::metric(metric)].contains(&across.to_owned()));
    let metric = found.cloned().or_else(|| time.map(|_| time_axis(model)));
    let groups = [&*comparison.slow.members, &*comparison.fast.members];
    if let Some(map) = metric.and_then(|metric| HeatMap::new(model, &metric, groups, size)) {
        return Ok(map);
    }
    let names: Vec<String> = all.iter().map(Metric::name).collect();
    let hint = suggest(across, &names);
    Err(UsageError(format!("--heat-map {across}: no property of these executions with several values; {hint}")).into())
}

/// The function of that name, as the tree draws it.
fn function(model: &Model, comparison: &Comparison, name: &str) -> anyhow::Result<Sandwich> {
    let all = by_function(model, &comparison.tree);
    let found = all.iter().find(|f| f.name == name || words::frame_of_path(&f.name) == name);
    let found = found.and_then(|found| sandwich(model, &comparison.tree, &found.name));
    found.ok_or_else(|| unknown_frame(&all, "--function", name))
}

/// No tree has this frame; the hint is one of those with the largest differences, which are those that one asks about.
fn unknown_frame(all: &[FunctionDiff], option: &str, name: &str) -> anyhow::Error {
    let names: Vec<String> = all.iter().take(NAMED).map(|f| words::frame_of_path(&f.name).to_owned()).collect();
    let hint = suggest(name, &names);
    UsageError(format!("{option} {name}: the compared executions were never in it; {hint}")).into()
}
