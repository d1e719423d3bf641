//! `whyslow report`: the comparison as one file for people or for another tool.

use super::console::{self, Console};
use super::{Outcome, Question, compared, places};
use crate::base::file::Existing;
use crate::confinement::Files;
use crate::input::Argument;
use crate::model::Model;
use crate::options::{GroupOptions, InputOptions};
use crate::session::{Session, UsageError};
use crate::view::profile;
use crate::view::report::{Report, drawn};
use anyhow::Context;
use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ReportOptions {
    #[command(flatten)]
    input: InputOptions,
    #[command(flatten)]
    groups: GroupOptions,
    /// The file to write; its ending chooses the format: .html, .md, .svg (differential flame graph), .folded (stacks
    /// for flamegraph.pl), .speedscope.json, .pb.gz (pprof) (default: Markdown to stdout)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

const EXAMPLES: &str = "Examples:
  whyslow report TRACE                               a Markdown summary for a ticket
  whyslow report TRACE -o why.html                   one page with pictures, which needs nothing else
  whyslow report TRACE -o why.pb.gz                  then: pprof -http=: why.pb.gz";

/// The format of a report, by the ending of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReportFormat {
    Html,
    Markdown,
    Svg,
    Folded,
    Speedscope,
    Pprof,
}

/// Endings, the longer ones first.
const FORMATS: [(&str, ReportFormat); 7] = [
    (".speedscope.json", ReportFormat::Speedscope),
    (".pb.gz", ReportFormat::Pprof),
    (".folded", ReportFormat::Folded),
    (".html", ReportFormat::Html),
    (".htm", ReportFormat::Html),
    (".svg", ReportFormat::Svg),
    (".md", ReportFormat::Markdown),
];

impl ReportFormat {
    fn of(path: &Path) -> Result<ReportFormat, UsageError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let found = FORMATS.iter().find(|(ending, _)| name.ends_with(ending));
        found.map(|(_, format)| *format).ok_or_else(|| {
            let endings: Vec<&str> = FORMATS.iter().map(|(ending, _)| *ending).collect();
            UsageError(format!("--output {}: unknown ending; use one of {}", path.display(), endings.join(", ")))
        })
    }

    fn write(self, report: &Report<'_>) -> Vec<u8> {
        match self {
            ReportFormat::Html => report.html().into_bytes(),
            ReportFormat::Markdown => report.markdown().into_bytes(),
            ReportFormat::Svg => report.svg().into_bytes(),
            ReportFormat::Folded => profile::folded(report.model, report.comparison).into_bytes(),
            ReportFormat::Speedscope => profile::speedscope(report.model, report.comparison),
            ReportFormat::Pprof => profile::pprof(report.model, report.comparison),
        }
    }
}

impl ReportOptions {
    /// The executions again, with the time-lines of those that the page draws.
    fn timelines(&self, report: &Report<'_>, session: &mut Session, console: &Console<'_>) -> anyhow::Result<Model> {
        let task = report.model.tasks.get(report.model.task).map(String::as_str);
        let places = places(&self.traces(), &self.groups.symbols);
        let drawn = drawn(report.model, report.comparison);
        console.with_progress(|ctx| session.model(task, &places, &drawn, ctx))
    }
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
        self.output.as_deref().map_or(Ok(()), |path| ReportFormat::of(path).map(|_| ()))
    }

    fn run(&self, mut session: Session, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
        let command = self.groups.command_line(&self.input).explain(&self.groups.request(&self.input));
        let (model, comparison) = compared(&self.input, &self.groups, &[], &mut session, console)?;
        let mut report = Report { model: &model, comparison: &comparison, command: &command, timelines: None };
        match &self.output {
            None => console::print(&report.markdown())?,
            Some(path) => {
                let format = ReportFormat::of(path)?;
                let timelines = match (format, &mut session) {
                    (ReportFormat::Html, Session::Traces(_)) => Some(self.timelines(&report, &mut session, console)?),
                    // Databases and archives have no scheduler events.
                    _ => None,
                };
                report.timelines = timelines.as_ref();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_chooses_the_format_by_the_ending() {
        let of = |name: &str| ReportFormat::of(Path::new(name)).ok();
        assert_eq!(of("/a.b/x.HTML"), Some(ReportFormat::Html));
        assert_eq!(of("x.speedscope.json"), Some(ReportFormat::Speedscope));
        assert_eq!((of("x.json"), of("html"), of("x.md/")), (None, None, Some(ReportFormat::Markdown)));
    }
}
