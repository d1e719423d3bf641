//! A task over days, versions and hosts: from databases, or from partial results, one recording after the other.
//!
//! In: files and what the points are. Out: a [`Trend`], and what is to be known of it, a line each. A first pass over
//! the executions gives the figures of the points; where changes are found a second one adds up what both sides of each
//! spent in their contexts. In memory are what files say of their recordings, the executions of one recording, packed,
//! and the durations of all, or how many there are of each length. A file that cannot be read is left out and named.
//! ALGORITHMS.md 7.11 to 7.13.

mod chosen;
mod databases;
mod partials;

use super::UsageError;
use super::database::Databases;
use crate::base::ctx::Ctx;
use crate::base::figure;
use crate::base::notice::{Notice, Notices};
use crate::compare::filter::Filter;
use crate::compare::partials::inequality;
use crate::compare::trend::Trend;
use crate::compare::trend::lengths::Figure;
use crate::compare::trend::series::{PointUnit, TrendSeries};
use crate::input::Argument;
use crate::model::metric::Metric;
use crate::saved::partials::PartialsFile;
use crate::saved::{SavedFileError, SavedKind};
use std::collections::BTreeMap;
use std::path::Path;

/// Points of a trend: the random orders of more take too long.
const MOST_POINTS: usize = 1_000;
/// Lines about files, at most; the rest is counted.
const MOST_LINES: usize = 20;

/// What is wanted.
pub struct TrendRequest<'a> {
    /// `None` for the first that most recordings have.
    pub task: Option<&'a str>,
    pub unit: PointUnit,
    pub figure: Figure,
    /// Which executions; each decides by the execution alone.
    pub filters: &'a [Filter],
}

/// A trend with what is to be known of it.
pub struct FoundTrend {
    pub trend: Trend,
    /// What was left out and why, and what is not known; a line each.
    pub lines: Vec<String>,
    pub notices: Notices,
}

/// The files of a command line.
enum TrendInput {
    Databases(Databases),
    /// Each with the label that the user gave it.
    Partials(Vec<(Option<String>, PartialsFile)>),
}

/// The readable files of a command line.
pub struct TrendFiles {
    input: TrendInput,
    /// Why others were left out.
    unread: Vec<String>,
}

impl TrendFiles {
    /// Open what is named; an error where nothing can be read.
    pub fn open(arguments: &[Argument]) -> anyhow::Result<TrendFiles> {
        let (mut databases, mut partials, mut unread) = (Vec::new(), Vec::new(), Vec::new());
        for argument in arguments {
            match &argument.path {
                path if SavedKind::Executions.is_of(path) => databases.push(argument.clone()),
                path if SavedKind::Partials.is_of(path) => partials.push(argument.clone()),
                path => unread.push(no_database(path)),
            }
        }
        if let ([database, ..], [partial, ..]) = (&databases[..], &partials[..]) {
            anyhow::bail!(
                "{}: no partial results, and {} has them: name databases alone, or partial results alone",
                database.path.display(),
                partial.path.display()
            );
        }
        let input = if partials.is_empty() {
            let (databases, damaged) = Databases::open_readable(&databases);
            unread.extend(damaged.iter().map(SavedFileError::to_string));
            TrendInput::Databases(databases)
        } else {
            let mut files = Vec::new();
            for Argument { path, label, .. } in partials {
                match PartialsFile::open(&path) {
                    Ok(file) => files.push((label, file)),
                    Err(why) => unread.push(why.to_string()),
                }
            }
            TrendInput::Partials(files)
        };
        let is_empty = match &input {
            TrendInput::Databases(databases) => databases.opened.is_empty(),
            TrendInput::Partials(files) => files.is_empty(),
        };
        match unread.first() {
            Some(first) if is_empty => anyhow::bail!("{first}"),
            _ => Ok(TrendFiles { input, unread }),
        }
    }

    /// The trend of a task.
    pub fn trend(&self, request: &TrendRequest<'_>, ctx: &Ctx) -> anyhow::Result<FoundTrend> {
        for filter in request.filters {
            if inequality(filter).is_some() || filter.metric == Metric::Group {
                let why = "it selects other executions in each recording: write a time or a name";
                return Err(UsageError(format!("filter `{filter}`: {why}")).into());
            }
        }
        let mut found = match &self.input {
            TrendInput::Databases(databases) => databases::of_databases(databases, request, ctx)?,
            TrendInput::Partials(files) => partials::of_partials(files, request, ctx)?,
        };
        let mut unread = self.unread.clone();
        unread.append(&mut found.unread);
        let mut notices = found.notices;
        notices.add(Notice::TraceUnreadable, unread.len() as u64, || unread[0].clone());
        let mut lines = bounded(unread.iter().map(|why| format!("{why}: left out")).collect(), "unreadable file");
        lines.append(&mut found.lines);
        lines.extend(of_points(&found.trend));
        Ok(FoundTrend { trend: found.trend, lines, notices })
    }
}

/// Why a file is none that can be read.
fn no_database(path: &Path) -> String {
    let why = if path.exists() {
        "neither a database nor partial results (`whyslow build` makes a database of a recording)"
    } else {
        "no such file"
    };
    format!("{}: {why}", path.display())
}

/// The first lines, and how many more there are.
fn bounded(mut lines: Vec<String>, noun: &str) -> Vec<String> {
    if lines.len() > MOST_LINES {
        let rest = lines.len() - (MOST_LINES - 1);
        lines.truncate(MOST_LINES - 1);
        lines.push(format!("{} more", figure::plural(rest as u64, noun)));
    }
    lines
}

/// What is to be known of the points.
fn of_points(trend: &Trend) -> Vec<String> {
    let mut lines = Vec::new();
    let (unit, fewest) = (trend.unit.name(), trend.figure.fewest_executions());
    let few = trend.points.iter().filter(|point| point.figure_ns.is_none()).count();
    if few > 0 {
        let (all, figure) = (trend.points.len(), trend.figure);
        lines.push(format!(
            "{few} of {all} {unit}s have fewer than {fewest} executions: too few for {figure}, and no part of the \
             search"
        ));
    }
    if !trend.exact {
        lines.push("percentiles are by buckets of durations: at most 1 % more than those of the durations".to_owned());
    }
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    trend.points.iter().for_each(|point| *names.entry(&point.name).or_insert(0) += 1);
    if let Some((name, times)) = names.into_iter().filter(|(_, times)| *times > 1).max_by_key(|(_, times)| *times) {
        lines.push(format!("`{name}` is the name of {times} {unit}s: their times distinguish them"));
    }
    if trend.unit.is_ordered() && trend.points.iter().any(|point| point.time().is_none()) {
        let without = trend.points.iter().filter(|point| point.time().is_none()).count();
        lines.push(format!(
            "{without} of {} {unit}s have no date (their clocks count from a boot): points are in the order in which \
             they were named",
            trend.points.len()
        ));
    }
    lines
}

/// A trend in the making.
struct TrendDraft {
    trend: Trend,
    lines: Vec<String>,
    notices: Notices,
    /// Files that could not be read to their end.
    unread: Vec<String>,
}

/// An error where a series has more points than can be searched.
fn check_number(series: &TrendSeries) -> anyhow::Result<()> {
    if series.len() <= MOST_POINTS {
        return Ok(());
    }
    let unit = series.unit.name();
    let remedy = if series.unit == PointUnit::Minute { "--by hour" } else { "--by day" };
    Err(UsageError(format!("--by {unit}: more than {MOST_POINTS} points: use {remedy}, or fewer files")).into())
}
