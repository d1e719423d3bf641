//! `whyslow query`: values of the state history.

use super::console::Console;
use super::{Outcome, Question, sound};
use crate::base::quantity::{TimePoint, TimeRange};
use crate::base::time::Span;
use crate::explain::history::rows;
use crate::options::InputOptions;
use crate::session::{Session, UsageError};
use crate::state::history::lines::Time;
use crate::view::query::Answer;
use clap::Args;

#[derive(Args, Debug)]
pub struct QueryOptions {
    #[command(flatten)]
    input: InputOptions,
    /// A path or a pattern: threads/*/state, threads/123/syscall, cpus/0/thread
    #[arg(long, value_name = "PATH")]
    attribute: String,
    /// Values at this time: nanoseconds on the time line, or with a unit since the first event (12.5ms); repeatable
    #[arg(long, value_name = "T", conflicts_with_all = ["range", "points"])]
    at: Vec<TimePoint>,
    /// Values from A to B, written like --at (default: the whole recording)
    #[arg(long, value_name = "A..B")]
    range: Option<TimeRange>,
    /// Down-sample to N cells: the state that held longest in each; for other values the one at its start
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    points: Option<u32>,
    /// Only the N longest intervals, longest first: with threads/*/syscall the slowest system calls
    #[arg(long, value_name = "N", conflicts_with_all = ["at", "points"])]
    longest: Option<u32>,
    /// Print one JSON document (schema whyslow.query/1)
    #[arg(long)]
    json: bool,
}

impl Question for QueryOptions {
    fn input(&self) -> &InputOptions {
        &self.input
    }

    fn run(&self, session: Session, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
        let mut traces = match session {
            Session::Traces(traces) => traces,
            Session::Run(run) => {
                anyhow::bail!("{}: an OTF2 archive has no scheduler events; see `whyslow anomalies`", run.title())
            }
            Session::Databases(databases) => return databases.refuse("query"),
        };
        let (history, notices) = console.with_progress(|work| traces.history(work))?;
        console.stage("build");
        if self.input.check {
            sound(history.tree().check().err().map(|broken| broken.to_string()))?;
        }
        let time = self.time(history.window())?;
        if self.points.is_some() {
            history.summary(console.ctx)?;
            console.stage("summarise");
        }
        let lines = history.lines(&self.attribute, &time, &console.ctx.cancel)?;
        console.stage("query");
        if lines.is_empty() {
            let hint = "try threads/*/state or cpus/*/thread";
            anyhow::bail!("--attribute {}: the recording has no such attribute; {hint}", self.attribute);
        }
        let answer = Answer::new(&self.attribute, &rows(&history, &lines), &notices);
        console.answer(self.json, || &answer, |_| answer.text(history.window().start))?;
        Ok(notices.into())
    }
}

impl QueryOptions {
    /// Instants, else a range (default: all of `window`), or cells of it, or the longest intervals in it.
    fn time(&self, window: Span) -> anyhow::Result<Time> {
        if !self.at.is_empty() {
            return Ok(Time::Instants(self.at.iter().map(|t| t.after(window.start)).collect()));
        }
        let span = self.range.map_or(Some(window), |range| range.after(window.start));
        let span = span.ok_or_else(|| {
            UsageError("--range: the end is before the begin; write the earlier time first".to_owned())
        })?;
        Ok(match (self.points, self.longest) {
            (_, Some(n)) => Time::Longest(span, n as usize),
            (Some(n), _) => Time::Points(span, n as usize),
            _ => Time::Range(span),
        })
    }
}
