//! `whyslow timeline`: the states of many threads over time.

use super::console::{Console, page};
use super::{Outcome, Question, sound};
use crate::base::figure;
use crate::base::file::Existing;
use crate::base::quantity::TimePoint;
use crate::base::time::Span;
use crate::confinement::Files;
use crate::model::thread_lanes::{LanesRequest, MOST_CELLS};
use crate::options::InputOptions;
use crate::session::{Session, UsageError};
use crate::view::thread_lanes::document::LanesDocument;
use crate::view::thread_lanes::{self, picture};
use anyhow::Context;
use clap::Args;
use std::io::Write;
use std::path::PathBuf;

/// Lanes where their number is not given.
const ROWS: u32 = 40;
/// Columns of a document where their number is not given.
const COLUMNS: usize = 100;

#[derive(Args, Debug)]
pub struct TimelineOptions {
    /// Begin here: nanoseconds on the time line, or with a unit since the first event (12.5ms) (default: its begin)
    #[arg(long, value_name = "T")]
    from: Option<TimePoint>,
    /// End here, written like --from (default: the end of the recording)
    #[arg(long, value_name = "T")]
    to: Option<TimePoint>,
    /// Only threads with this word: a tid, a pid, or a part of the name of the thread or its process; repeatable
    #[arg(long, value_name = "WORD")]
    only: Vec<String>,
    /// Lanes of CPUs too, above the others
    #[arg(long)]
    cpus: bool,
    /// Lanes of threads and processes, at most; the last one has all others
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=5000), default_value_t = ROWS)]
    rows: u32,
    /// Columns of time (default: as many as fit; in JSON 100; in a picture 980)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    columns: Option<u32>,
    /// Print one JSON document (schema whyslow.timeline/1)
    #[arg(long, conflicts_with = "output")]
    json: bool,
    /// Write a picture, which loads nothing: FILE.svg
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    input: InputOptions,
}

impl TimelineOptions {
    fn columns(&self) -> usize {
        match self.columns {
            Some(columns) => columns as usize,
            None if self.output.is_some() => picture::COLUMNS,
            None if self.json => COLUMNS,
            None => thread_lanes::columns(page()),
        }
    }

    /// The time that is shown.
    fn span(&self, window: Span) -> Result<Span, UsageError> {
        if self.from.is_none() && self.to.is_none() {
            return Ok(window);
        }
        let at = |point: Option<TimePoint>, otherwise| point.map_or(otherwise, |point| point.after(window.start));
        let span = Span::new(at(self.from, window.start), at(self.to, window.end));
        if span.is_empty() {
            return Err(UsageError("--from: no time before --to is left; write the earlier time as --from".to_owned()));
        }
        if span.clip(window).is_empty() {
            let length = figure::duration(window.len());
            return Err(UsageError(format!("--from, --to: nothing was recorded then; the recording has {length}")));
        }
        Ok(span)
    }
}

impl Question for TimelineOptions {
    fn input(&self) -> &InputOptions {
        &self.input
    }

    fn files(&self) -> Files<'_> {
        Files { output: self.output.as_deref(), ..Files::default() }
    }

    fn check(&self) -> Result<(), UsageError> {
        if let Some(path) = self.output.as_deref().filter(|path| path.extension().is_none_or(|ending| ending != "svg"))
        {
            return Err(UsageError(format!("--output {}: the picture is an SVG; name it FILE.svg", path.display())));
        }
        let cells = self.rows as usize * self.columns();
        if cells > MOST_CELLS {
            return Err(UsageError(format!(
                "--rows times --columns is {cells}, more than {MOST_CELLS}: ask for fewer, or for a part of the time"
            )));
        }
        Ok(())
    }

    fn run(&self, mut session: Session, console: &mut Console<'_>) -> anyhow::Result<Outcome> {
        let recorded = console.with_progress(|work| session.history("timeline", work))?;
        console.stage("build");
        if self.input.check {
            sound(recorded.history.timeline().check())?;
        }
        let window = recorded.history.window();
        let request = LanesRequest {
            span: self.span(window)?,
            columns: self.columns(),
            most: self.rows as usize,
            only: self.only.clone(),
            cpus: self.cpus,
            ..LanesRequest::default()
        };
        let lanes = console.with_progress(|ctx| Ok(recorded.lanes().lanes(&request, ctx)?))?;
        console.stage("lanes");
        if lanes.lanes.is_empty() {
            anyhow::bail!(if self.only.is_empty() {
                "no thread is known in this time: `whyslow info` says what was recorded"
            } else {
                "no thread has these words in this time; --only takes a tid, a pid, or a part of a name"
            });
        }
        match &self.output {
            Some(path) => console
                .output()?
                .write(Existing::Replace, |file| file.write_all(picture::picture(&lanes, window.start).as_bytes()))
                .with_context(|| format!("{} cannot be written", path.display()))?,
            None => console.answer(
                self.json,
                || LanesDocument::new(&lanes, &recorded.notices),
                |page| thread_lanes::text(&lanes, window.start, page),
            )?,
        }
        Ok(recorded.notices.into())
    }
}
