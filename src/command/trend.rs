//! `whyslow trend`: a task over days, versions and hosts.

use super::console::Console;
use super::explain::CONDITION_HELD;
use super::{Depth, Outcome, Question};
use crate::base::clean;
use crate::base::op::Op;
use crate::compare::condition::FailIf;
use crate::compare::filter::{Filter, Filters};
use crate::compare::trend::ChangeSearch;
use crate::compare::trend::lengths::Figure;
use crate::compare::trend::series::PointUnit;
use crate::input::Argument;
use crate::model::metric::Metric;
use crate::options::InputOptions;
use crate::session::{Session, TrendFiles, TrendRequest, UsageError};
use crate::view::stderr::say;
use crate::view::{json, trend};
use clap::{Args, ValueEnum};
use std::sync::OnceLock;

/// What is a point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum PointWord {
    /// Each recording
    #[default]
    Recording,
    /// Each label: versions
    Label,
    /// Each host, without an order
    Host,
    /// Each day, in UTC
    Day,
    /// Each hour
    Hour,
    /// Each minute
    Minute,
}

impl From<PointWord> for PointUnit {
    fn from(word: PointWord) -> Self {
        match word {
            PointWord::Recording => PointUnit::Recording,
            PointWord::Label => PointUnit::Label,
            PointWord::Host => PointUnit::Host,
            PointWord::Day => PointUnit::Day,
            PointWord::Hour => PointUnit::Hour,
            PointWord::Minute => PointUnit::Minute,
        }
    }
}

#[derive(Args, Debug)]
pub struct TrendOptions {
    /// A task that `info` lists (default: the first that most recordings have)
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// What is one point
    #[arg(long, value_name = "UNIT", default_value = "recording")]
    by: PointWord,
    /// The figure to follow: `mean`, `p50`, `p99.9` (default: that of --fail-if, else p95)
    #[arg(long, value_name = "FIGURE")]
    figure: Option<Figure>,
    /// Executions of this type only
    #[arg(long = "type", value_name = "NAME")]
    kind: Option<String>,
    /// Executions that pass: `process=db, duration>1ms`; repeatable, in the syntax of --slow
    #[arg(long, value_name = "FILTER")]
    filter: Vec<Filters>,
    /// Exit with status 3 if the last change is to more and this holds of it: `p95>+5%`, `extra>2ms`
    #[arg(long, value_name = "CONDITION")]
    fail_if: Option<FailIf>,
    /// Print one JSON document (schema whyslow.trend/1)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    input: InputOptions,
    /// The files of patterns and folders, which the sandbox does not list any more.
    #[arg(skip)]
    files: OnceLock<Vec<Argument>>,
}

impl TrendOptions {
    fn figure(&self) -> Figure {
        let of_condition = self.fail_if.map(|condition| condition.figure());
        self.figure.or(of_condition).unwrap_or(Figure::Percentile(95.0))
    }

    fn filters(&self) -> Vec<Filter> {
        let mut filters: Vec<Filter> = self.filter.iter().flat_map(|filters| filters.0.clone()).collect();
        filters.extend(self.kind.iter().map(|kind| Filter::named(Metric::Type, Op::Equal, kind)));
        filters
    }
}

impl Question for TrendOptions {
    fn input(&self) -> &InputOptions {
        &self.input
    }

    fn traces(&self) -> Vec<Argument> {
        self.files.get_or_init(|| self.input.files()).clone()
    }

    fn check(&self) -> Result<(), UsageError> {
        let Some(condition) = self.fail_if else { return Ok(()) };
        let (figure, of_condition) = (self.figure(), condition.figure());
        if figure != of_condition {
            let why = format!("--figure {figure} follows another figure: leave it out");
            return Err(UsageError(format!("--fail-if {condition}: {why}")));
        }
        if !PointUnit::from(self.by).is_ordered() {
            let why = "hosts have no order, and no last change: choose another --by";
            return Err(UsageError(format!("--fail-if {condition}: {why}")));
        }
        Ok(())
    }

    /// One file that cannot be read does not keep the others from being read.
    fn depth(&self) -> Depth {
        Depth::Nothing
    }

    fn shows_notices(&self) -> bool {
        self.json
    }

    fn run(&self, _: Session, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
        let arguments = self.traces();
        let files = console.with_progress(|_| TrendFiles::open(&arguments))?;
        console.stage("open");
        let filters = self.filters();
        let request =
            TrendRequest { task: self.task.as_deref(), unit: self.by.into(), figure: self.figure(), filters: &filters };
        let found = console.with_progress(|ctx| files.trend(&request, ctx))?;
        console.stage("trend");
        let warnings: Vec<String> = found.lines.iter().cloned().chain(found.notices.sentences()).collect();
        console.answer(self.json, || json::trend(&found.trend, &warnings), |page| trend::text(&found.trend, page))?;
        if !self.json {
            found.lines.iter().for_each(|line| say(&format!("note: {}", clean::line(line))));
        }
        let held = self.fail_if.and_then(|condition| found.trend.failing(condition));
        if let Some(sentence) = &held {
            say(&format!("whyslow: {}", clean::line(sentence)));
        }
        if let (Some(condition), ChangeSearch::TooFew { .. }) = (self.fail_if, found.trend.search) {
            say(&format!("note: --fail-if {condition}: not checked: there are too few points to know a change"));
        }
        Ok(Outcome { notices: found.notices, status: if held.is_some() { CONDITION_HELD } else { 0 } })
    }
}
