//! `whyslow report`: the comparison as one file for people or for another tool.

use super::console::{self, Console};
use super::{Outcome, Question, compared, places, with_delays};
use crate::base::ctx::Ctx;
use crate::base::file::Existing;
use crate::confinement::Files;
use crate::input::Argument;
use crate::model::Model;
use crate::model::execution::ExecutionId;
use crate::model::thread_lanes::{LanesRequest, ThreadLanes};
use crate::options::{GroupOptions, InputOptions};
use crate::session::{Session, UsageError};
use crate::view::report::{ENDINGS, Report, ReportFormat, drawn, slowest_lanes};
use anyhow::Context;
use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ReportOptions {
    #[command(flatten)]
    groups: GroupOptions,
    /// The file to write; its ending chooses the format: .html, .md, .svg (differential flame graph), .folded (stacks
    /// for flamegraph.pl), .speedscope.json, .pb.gz (pprof) (default: Markdown to stdout)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    input: InputOptions,
}

const EXAMPLES: &str = "Examples:
  whyslow report TRACE                               a Markdown summary for a ticket
  whyslow report TRACE -o why.html                   one page with pictures, which needs nothing else
  whyslow report TRACE -o why.pb.gz                  then: pprof -http=: why.pb.gz";

/// The format of the file of `--output`.
fn format(path: &Path) -> Result<ReportFormat, UsageError> {
    ReportFormat::of(path).ok_or_else(|| {
        let endings: Vec<&str> = ENDINGS.iter().map(|(ending, _)| *ending).collect();
        UsageError(format!("--output {}: unknown ending; use one of {}", path.display(), endings.join(", ")))
    })
}

impl ReportOptions {
    /// The executions again, with the timelines of those that the page draws.
    fn timelines(
        &self,
        report: &Report<'_>,
        drawn: &[ExecutionId],
        session: &mut Session,
        console: &Console<'_>,
    ) -> anyhow::Result<Model> {
        let task = report.model.tasks.get(report.model.task).map(String::as_str);
        let places = places(&self.traces(), &self.groups.symbols);
        console.with_progress(|ctx| session.model(task, &places, drawn, ctx))
    }
}

/// All threads over a span, where the input has their states: databases have none.
fn threads_meanwhile(session: &mut Session, request: &LanesRequest, ctx: &Ctx) -> anyhow::Result<Option<ThreadLanes>> {
    if matches!(session, Session::Databases(_)) {
        return Ok(None);
    }
    Ok(Some(session.history("report", ctx)?.lanes().lanes(request, ctx)?))
}

impl Question for ReportOptions {
    fn input(&self) -> &InputOptions {
        &self.input
    }

    fn files(&self) -> Files<'_> {
        Files { output: self.output.as_deref(), ..Files::of_groups(&self.groups) }
    }

    fn traces(&self) -> Vec<Argument> {
        self.groups.traces(&self.input)
    }

    fn check(&self) -> Result<(), UsageError> {
        self.output.as_deref().map_or(Ok(()), |path| format(path).map(|_| ()))
    }

    fn run(&self, mut session: Session, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
        let command = self.groups.command_line(&self.input).explain(&self.groups.request(&self.input));
        let (model, comparison) = compared(&self.input, &self.groups, &[], &mut session, console)?;
        let comparison = with_delays(&mut session, comparison, console)?;
        let mut report =
            Report { model: &model, comparison: &comparison, command: &command, timelines: None, threads: None };
        match &self.output {
            None => console::print(&report.markdown())?,
            Some(path) => {
                let format = format(path)?;
                let drawn = drawn(&model, &comparison);
                let timelines = match (format, &mut session) {
                    (ReportFormat::Html, Session::Traces(_)) if !drawn.is_empty() => {
                        Some(self.timelines(&report, &drawn, &mut session, console)?)
                    }
                    // Databases and archives have no scheduler events.
                    _ => None,
                };
                let threads = match (format, slowest_lanes(&model, &comparison)) {
                    (ReportFormat::Html, Some(request)) => {
                        console.with_progress(|ctx| threads_meanwhile(&mut session, &request, ctx))?
                    }
                    _ => None,
                };
                (report.timelines, report.threads) = (timelines.as_ref(), threads.as_ref());
                let bytes = format.write(&report);
                console
                    .output()?
                    .write(Existing::Replace, |file| file.write_all(&bytes))
                    .with_context(|| format!("{} cannot be written", path.display()))?;
            }
        }
        Ok(model.notices.into())
    }
}
