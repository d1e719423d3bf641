//! `whyslow explain`: the verdict and the ranked causes.

use super::console::Console;
use super::interface::InterfaceOptions;
use super::{Outcome, Question, compared, with_delays};
use crate::base::clean;
use crate::compare::condition::FailIf;
use crate::confinement::Files;
use crate::input::Argument;
use crate::model::settings::Settings;
use crate::options::{GroupOptions, InputOptions};
use crate::session::{MpiRuns, Session, UsageError};
use crate::view::anomalies::{self, ListBounds};
use crate::view::page::{Glyphs, Page};
use crate::view::stderr::say;
use crate::view::{json, text};
use clap::Args;

/// Exit status of `--fail-if` when its condition holds.
pub(super) const CONDITION_HELD: u8 = 3;

#[derive(Args, Debug)]
pub struct ExplainOptions {
    #[command(flatten)]
    groups: GroupOptions,
    /// Print one JSON document (schema whyslow.explain/1)
    #[arg(long)]
    json: bool,
    /// Words alone, for screen readers: no bars, no arrows, no columns
    #[arg(long, conflicts_with = "json")]
    plain: bool,
    /// Exit with status 3 if this holds and is significant: `extra>2ms`, `p95>+5%`
    #[arg(long, value_name = "CONDITION")]
    fail_if: Option<FailIf>,
    #[command(flatten)]
    input: InputOptions,
}

impl ExplainOptions {
    /// The answer in lines, for a terminal that cannot show the interface, or a user who asks for words.
    pub(super) fn instead_of(interface: &InterfaceOptions) -> Self {
        let InterfaceOptions { input, groups, plain, .. } = interface;
        ExplainOptions { input: input.clone(), groups: groups.clone(), json: false, plain: *plain, fail_if: None }
    }
}

impl ExplainOptions {
    /// True where no option names executions: then an answer about the whole run answers the question.
    fn asks_about_all(&self) -> bool {
        let GroupOptions { slow, fast, kind, baseline, .. } = &self.groups;
        let names_groups = !slow.is_empty() || !fast.is_empty() || kind.is_some() || baseline.is_some();
        !names_groups && self.groups.asked().is_none() && self.fail_if.is_none()
    }

    /// Answers for a run in which nothing repeats, so that it has no iterations to compare: by what its ranks waited
    /// for, and its path, as `anomalies` does.
    fn whole_run(&self, run: &MpiRuns, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
        let mining = console.with_progress(|ctx| run.mine(ctx))?;
        console.stage("mine");
        let found = console.with_progress(|ctx| Ok(mining.anomalies(&Settings::default(), ctx)?))?;
        console.stage("judge");
        console.answer(
            self.json,
            || anomalies::json(&found, &mining.notices, None),
            |_| {
                let strips = if self.plain { 0 } else { ListBounds::FIRST.rows };
                anomalies::text(&found, &mining.notices, None, ListBounds { rows: strips, ..ListBounds::FIRST })
            },
        )?;
        Ok(mining.notices.clone().into())
    }
}

impl Question for ExplainOptions {
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
        let request = self.groups.request(&self.input);
        if self.fail_if.is_some() && request.slow.is_empty() && request.fast.is_empty() && !request.by_trace {
            let why = "proposed groups always differ";
            return Err(UsageError(format!(
                "--fail-if needs groups, because {why}: add --baseline OLD, or --slow and --fast"
            )));
        }
        Ok(())
    }

    fn run(&self, mut session: Session, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
        if let Session::Partials(partials) = &session {
            return partials.refuse("explain");
        }
        if let Session::Run(run) = &session
            && self.asks_about_all()
            && run.is_alone()
            && !console.with_progress(|ctx| run.has_iterations(ctx))?
        {
            return self.whole_run(run, console);
        }
        let (model, comparison) = compared(&self.input, &self.groups, &[], &mut session, console)?;
        let comparison = with_delays(&mut session, comparison, console)?;
        if let Some(condition) = self.fail_if.filter(|one| model.profile.is_some() && one.is_percentile()) {
            let remedy = "write extra>2ms or mean>+5%, which compare what runs take in all";
            return Err(UsageError(format!("--fail-if {condition}: samples have no percentiles; {remedy}")).into());
        }
        console.answer(
            self.json,
            || json::explain(&model, &comparison),
            |page| {
                let glyphs = if self.plain { Glyphs::Words } else { page.glyphs };
                text::explain(&model, &comparison, Page { glyphs, ..page })
            },
        )?;
        let held = self.fail_if.and_then(|condition| condition.holds(&model, &comparison));
        if let Some(sentence) = &held {
            say(&format!("whyslow: {}", clean::line(sentence)));
        }
        Ok(Outcome { notices: model.notices, status: if held.is_some() { CONDITION_HELD } else { 0 } })
    }
}
