//! `whyslow query`: values of the state history.

use super::console::Console;
use super::{Outcome, Question, sound};
use crate::base::quantity::{TimePoint, TimeRange};
use crate::base::time::Span;
use crate::explain::history::{self, rows};
use crate::model::history::{HistoryInterval, HistoryRow, HistoryValue};
use crate::options::InputOptions;
use crate::session::{RecordedHistory, Session, UsageError};
use crate::timeline::history::StateHistory;
use crate::timeline::history::lines::{Longest, Time};
use crate::view::overview::OverviewAnswer;
use crate::view::query::Answer;
use clap::Args;
use std::collections::BTreeMap;

#[derive(Args, Debug)]
pub struct QueryOptions {
    /// A path or a pattern: threads/*/state, threads/123/syscall, cpus/0/thread; of MPI runs threads/rank 3/region
    #[arg(long, value_name = "PATH", required_unless_present = "overview")]
    attribute: Option<String>,
    /// The recording at a glance: CPU use, runnable threads, waits for disk and network in --points cells (default: 60)
    #[arg(long, conflicts_with_all = ["attribute", "at", "longest"])]
    overview: bool,
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
    /// Only intervals of this value: fsync, running
    #[arg(long, value_name = "VALUE", conflicts_with_all = ["overview", "points"])]
    value: Option<String>,
    /// Print one JSON document (schema whyslow.query/1, with --overview whyslow.overview/1)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    input: InputOptions,
}

impl Question for QueryOptions {
    fn input(&self) -> &InputOptions {
        &self.input
    }

    fn run(&self, mut session: Session, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
        let recorded = console.with_progress(|work| session.history("query", work))?;
        console.stage("build");
        if self.input.check {
            sound(recorded.history.timeline().check())?;
        }
        if self.overview {
            return self.overview(recorded, console);
        }
        let RecordedHistory { history, notices, .. } = recorded;
        let attribute = self.attribute.as_deref().unwrap_or_default();
        let time = self.time(history.window())?;
        let lines = console.with_progress(|ctx| Ok(history.lines_in(attribute, &time, ctx)?))?;
        console.stage("query");
        if lines.is_empty() {
            let hint = "try threads/*/state or cpus/*/thread";
            anyhow::bail!("--attribute {attribute}: the recording has no such attribute; {hint}");
        }
        let rows = self.of_value(rows(&history, &lines));
        let answer = Answer::new(attribute, &rows, &notices);
        let names = if self.json { BTreeMap::new() } else { names(&history, &rows, console)? };
        console.answer(self.json, || &answer, |_| answer.text(history.window().start, &names))?;
        Ok(notices.into())
    }
}

/// The names of the threads of some rows at their first intervals, by attribute.
fn names(
    history: &StateHistory,
    rows: &[HistoryRow],
    console: &Console<'_>,
) -> anyhow::Result<BTreeMap<String, String>> {
    let mut names = BTreeMap::new();
    for row in rows {
        let thread = row.attribute.rsplit_once('/').filter(|(_, last)| *last != "name").map(|(thread, _)| thread);
        let Some(thread) = thread.filter(|thread| thread.contains("threads/")) else { continue };
        let Some(first) = row.intervals.first().filter(|_| !names.contains_key(&row.attribute)) else { continue };
        let at = Time::Instants(vec![first.span.start]);
        let found = history::rows(history, &history.lines(&format!("{thread}/name"), &at, &console.ctx.cancel)?);
        let value = found.into_iter().flat_map(|row| row.intervals).find_map(|interval| interval.value);
        if let Some(HistoryValue::Text(name)) = value {
            names.insert(row.attribute.clone(), name);
        }
    }
    Ok(names)
}

/// Cells of an overview, unless another number is asked for.
const CELLS: u32 = 60;

impl QueryOptions {
    /// The intervals of the value that was named.
    fn of_value(&self, mut rows: Vec<HistoryRow>) -> Vec<HistoryRow> {
        let Some(wanted) = &self.value else { return rows };
        let is_wanted = |interval: &HistoryInterval| match &interval.value {
            Some(HistoryValue::Text(text)) => text == wanted,
            Some(HistoryValue::Number(number)) => number.to_string() == *wanted,
            None => false,
        };
        rows.iter_mut().for_each(|row| row.intervals.retain(is_wanted));
        rows.retain(|row| !row.intervals.is_empty());
        rows
    }

    /// The averages over cells of the range.
    fn overview(&self, recorded: RecordedHistory, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
        let window = recorded.history.window();
        let span = self.span(window)?;
        let cells = self.points.unwrap_or(CELLS) as usize;
        let found = recorded.overview(span, cells, console.ctx)?;
        console.stage("summarise");
        let answer = OverviewAnswer::new(&found, &recorded.notices);
        console.answer(self.json, || &answer, |_| answer.text(window.start))?;
        Ok(recorded.notices.into())
    }

    /// The range, by default all of `window`.
    fn span(&self, window: Span) -> anyhow::Result<Span> {
        let span = self.range.map_or(Some(window), |range| range.after(window.start));
        let wrong = "--range: the end is before the begin; write the earlier time first";
        Ok(span.ok_or_else(|| UsageError(wrong.to_owned()))?)
    }

    /// Instants, else a range (default: all of `window`), or cells of it, or the longest intervals in it.
    fn time(&self, window: Span) -> anyhow::Result<Time> {
        if !self.at.is_empty() {
            return Ok(Time::Instants(self.at.iter().map(|t| t.after(window.start)).collect()));
        }
        let span = self.span(window)?;
        Ok(match (self.points, self.longest) {
            (_, Some(n)) => Time::Longest(Longest { span, count: n as usize, value: self.value.clone() }),
            (Some(n), _) => Time::Points(span, n as usize),
            _ => Time::Range(span),
        })
    }
}
