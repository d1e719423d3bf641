//! The whole way from a path to an answer: open, find tasks, read, explain, compare.
//!
//! A [`Session`] is what one command line names, opened: [`Traces`] in CTF, a [`Run`] under MPI, or [`Databases`] of executions. Each method is one
//! question; each runs on the workers of the [`Work`] it is given, reports progress to it and ends early when it is
//! cancelled. What only one kind of input can be asked stands with it.

mod asked;
mod choice;
mod database;
mod known;
mod mining;
mod run;
mod traces;

pub use database::Databases;
pub use run::Run;
pub use traces::Traces;

use crate::analysis::symbols::files::Places;
use crate::base::notice::Notices;
use crate::base::time::{Ns, Span};
use crate::base::work::Work;
use crate::cli::Common;
use crate::compare::moments::{self, Alignment};
use crate::compare::{self, CompareError, Comparison};
use crate::input::{self, Argument, OpenError, Opened};
use crate::model::Model;
use crate::model::execution::ExecutionId;
use crate::model::join::{self, Renamed};
use crate::model::mining::Mining;
use crate::state::history::lines::Time;
use anyhow::Context;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// The command line is wrong, which only the trace could tell: exit status 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Wrong(pub String);

/// What a command line names, opened.
pub enum Session {
    /// CTF traces.
    Traces(Traces),
    /// The archive of an MPI run.
    Run(Run),
    /// Execution databases.
    Databases(Databases),
}

impl Session {
    /// Open what a command line names. Cost: metadata, packet indexes and packet headers.
    pub fn open(common: &Common, work: &Work) -> anyhow::Result<Session> {
        Session::by(input::open, common, work)
    }

    /// The same for those who read no events. Cost: metadata and packet indexes.
    pub fn outline(common: &Common, work: &Work) -> anyhow::Result<Session> {
        Session::by(input::outline, common, work)
    }

    fn by(
        open: impl Fn(&[Argument], &Work) -> Result<Opened, OpenError>,
        common: &Common,
        work: &Work,
    ) -> anyhow::Result<Session> {
        if let Some(databases) = Databases::open(&common.arguments)? {
            return Ok(Session::Databases(databases));
        }
        Ok(match open(&common.arguments, work)? {
            Opened::Traces(sources) => Session::Traces(Traces::new(sources, common)?),
            Opened::Otf2(archives) => Session::Run(Run::of(archives)?),
        })
    }

    /// Lay the traces of several hosts on one time line, once; before any question about when things happened.
    pub fn fit_clocks(&mut self, work: &Work) -> anyhow::Result<()> {
        match self {
            Session::Traces(traces) => traces.fit_clocks(work),
            Session::Run(_) | Session::Databases(_) => Ok(()),
        }
    }

    /// The input as people name it.
    pub fn title(&self) -> String {
        match self {
            Session::Traces(traces) => traces.title(),
            Session::Run(run) => run.title(),
            Session::Databases(databases) => databases.title(),
        }
    }

    /// What was odd about the input when it was opened.
    pub fn notices(&self) -> Notices {
        match self {
            Session::Traces(traces) => traces.notices(),
            Session::Run(run) => run.notices(),
            Session::Databases(databases) => databases.notices(),
        }
    }

    /// The executions of a task, explained. Without a task: of the first that has executions.
    /// `moments`: the executions whose moments are wanted too.
    pub fn model(
        &self,
        task: Option<&str>,
        places: &Places,
        moments: &[ExecutionId],
        work: &Work,
    ) -> anyhow::Result<Model> {
        match self {
            Session::Traces(traces) => traces.model(task, places, moments, work),
            Session::Run(run) if !moments.is_empty() => {
                anyhow::bail!(
                    "{}: diff --executions needs the threads of a recording with scheduler events",
                    run.title()
                )
            }
            Session::Run(run) => run.model(task, work),
            Session::Databases(databases) if !moments.is_empty() => databases.refuse("diff --executions"),
            Session::Databases(databases) => databases.model(task, work),
        }
    }

    /// What repeats in each thread or rank; in kernel recordings the executions of a task, and who held them up.
    pub fn mine(&self, task: Option<&str>, places: &Places, work: &Work) -> anyhow::Result<Arc<Mining>> {
        match self {
            Session::Traces(traces) => traces.mine(task, places, work).map(Arc::new),
            Session::Run(run) => {
                run.alone("anomalies")?;
                run.mine(work)
            }
            Session::Databases(databases) => databases.refuse("anomalies"),
        }
    }
}

/// Hold two groups of a model's executions against each other.
pub fn compare(model: &Model, request: &compare::Request, work: &Work) -> anyhow::Result<Comparison> {
    compare::compare(model, request, work).map_err(wrong)
}

/// The names that functions get (`--functions FILE`): a TOML file of lines `"old" = "new"`.
pub fn renamed(path: Option<&Path>) -> anyhow::Result<Renamed> {
    let Some(path) = path else { return Ok(Renamed::new()) };
    let option = || format!("--functions {}", path.display());
    let text = text_of(path).map_err(|e| Wrong(format!("{}: {e}", option())))?;
    toml::from_str(&text).map_err(|e| {
        let line = e.span().map_or(1, |s| text[..s.start.min(text.len())].matches('\n').count() + 1);
        let remedy = "write one \"old name\" = \"new name\" per line";
        Wrong(format!("{}:{line}: {}; {remedy}", option(), e.message().replace('\n', " "))).into()
    })
}

/// The longest file that an option may name.
const LONGEST_TEXT: u64 = 64 << 20;

/// The text of a file that an option names; a pipe is read to its end.
pub fn text_of(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(LONGEST_TEXT + 1).read_to_string(&mut text)?;
    match text.len() as u64 > LONGEST_TEXT {
        true => Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, "it has more than 64 MiB")),
        false => Ok(text),
    }
}

/// A model whose functions have the names that were asked for.
pub fn rename(model: Model, renamed: &Renamed, work: &Work) -> anyhow::Result<Model> {
    Ok(join::join(vec![model], renamed, work)?)
}

/// Two executions of a model, moment by moment.
pub fn align(model: &Model, a: ExecutionId, b: ExecutionId) -> anyhow::Result<Alignment> {
    moments::align(model, a, b).map_err(wrong)
}

fn wrong(error: CompareError) -> anyhow::Error {
    match error {
        CompareError::Filter(said) => Wrong(said).into(),
        other => anyhow::Error::new(other),
    }
}

/// A time as typed: nanoseconds on the time line, or with a unit since the first event.
fn instant(typed: &str, origin: Ns) -> anyhow::Result<Ns> {
    let typed = typed.trim();
    let digits = typed.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match &typed[digits.len()..] {
        "" => return typed.parse().map_err(|_| Wrong(format!("time `{typed}`: write nanoseconds, or 12.5ms")).into()),
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        unit => return Err(Wrong(format!("time `{typed}`: unit `{unit}` is none of ns, us, ms, s")).into()),
    };
    let number: f64 = digits.parse().map_err(|_| Wrong(format!("time `{typed}`: `{digits}` is no number")))?;
    Ok(origin.saturating_add((number * scale).round() as Ns))
}

/// The time that a query asks for: instants, else a range (default: all of `window`), or cells of it, or the longest in it.
pub fn query_time(
    at: &[String],
    range: Option<&str>,
    points: Option<u32>,
    longest: Option<u32>,
    window: Span,
) -> anyhow::Result<Time> {
    if !at.is_empty() {
        let instants = at.iter().map(|t| instant(t, window.start)).collect::<anyhow::Result<_>>()?;
        return Ok(Time::Instants(instants));
    }
    let span = match range {
        None => window,
        Some(range) => {
            let (from, to) = range.split_once("..").ok_or_else(|| Wrong(format!("--range {range}: write A..B")))?;
            let span = Span::new(instant(from, window.start)?, instant(to, window.start)?);
            if span.is_empty() {
                return Err(Wrong(format!("--range {range}: it ends before it begins")).into());
            }
            span
        }
    };
    Ok(match (points, longest) {
        (_, Some(n)) => Time::Longest(span, n as usize),
        (Some(n), _) => Time::Points(span, n as usize),
        _ => Time::Range(span),
    })
}

/// Two executions by number, as typed: `A,B`.
pub fn executions(typed: &str) -> anyhow::Result<[ExecutionId; 2]> {
    let number = |n: &str| n.trim().parse().ok().map(ExecutionId);
    let both = typed.split_once(',').and_then(|(a, b)| Some([number(a)?, number(b)?]));
    let remedy = "write the numbers of two, as `samples` of `diff --json` has them";
    both.ok_or_else(|| Wrong(format!("--executions {typed}: {remedy}")).into())
}

/// Filters as typed, understood.
pub fn request(slow: &[String], fast: &[String]) -> anyhow::Result<compare::Request> {
    let filters = |option: &str, typed: &[String]| -> anyhow::Result<Vec<_>> {
        let parsed =
            typed.iter().map(|t| t.parse().map_err(|e: compare::filter::FilterError| Wrong(e.to_string()).into()));
        parsed.collect::<anyhow::Result<_>>().with_context(|| option.to_owned())
    };
    let request = compare::Request { slow: filters("--slow", slow)?, fast: filters("--fast", fast)? };
    Ok(request)
}
