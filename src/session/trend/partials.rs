//! The trend of a task from files of partial results.
//!
//! In: opened files, each of which is a point, or has one for its label or for each of its hosts. Out: the points,
//! whose percentiles are at most 1 % more. Cost: one file after the other.

use super::super::UsageError;
use super::{TrendDraft, TrendRequest, bounded, check_number};
use crate::base::ctx::Ctx;
use crate::base::digest::Digest;
use crate::base::notice::Notices;
use crate::base::spelling::suggest;
use crate::compare::trend::Trend;
use crate::compare::trend::lengths::Lengths;
use crate::compare::trend::series::{PointKey, PointUnit, TrendSeries};
use crate::saved::partials::{PartialHost, PartialSums, PartialsFile, SumsError};
use std::collections::BTreeSet;

/// Files of partial results on the way to points.
struct PartialPoints<'a> {
    task: &'a str,
    series: TrendSeries,
    /// What is in the totals of a host so far.
    known: BTreeSet<(String, Digest)>,
    unread: Vec<String>,
    without: Vec<String>,
    twice: Vec<String>,
}

impl PartialPoints<'_> {
    /// Add a file, with its label and number.
    fn add(&mut self, number: u32, label: Option<&String>, file: &PartialsFile, ctx: &Ctx) {
        let (task, path) = (self.task, file.path().display().to_string());
        let Some(of_task) = file.tasks.iter().find(|own| own.name == task) else {
            self.without.push(format!("{path}: no executions of `{task}`: left out"));
            return;
        };
        let has_known =
            |host: &&PartialHost| host.sources.iter().any(|source| self.known.contains(&(host.name.clone(), *source)));
        let repeated: BTreeSet<&str> = of_task.hosts.iter().filter(has_known).map(|host| host.name.as_str()).collect();
        if let Some(host) = repeated.first() {
            let line = format!("{path}: its totals of host `{host}` have recordings of a file before it: left out");
            self.twice.push(line);
        }
        let name = label.cloned().unwrap_or_else(|| path.clone());
        match by_host(file, task, ctx) {
            Ok(hosts) => {
                let counts =
                    |(host, lengths): &(String, Lengths)| lengths.count() > 0 && !repeated.contains(host.as_str());
                for (host, lengths) in hosts.into_iter().filter(counts) {
                    let key = match self.series.unit {
                        PointUnit::Host => PointKey::Named(host.clone()),
                        PointUnit::Label => PointKey::Named(name.clone()),
                        _ => PointKey::Recording(number),
                    };
                    let (point, host) = (self.series.point(key), self.series.host(&host));
                    self.series.note(point, number, &BTreeSet::from([name.clone()]));
                    self.series.put_lengths(point, host, &lengths);
                }
                let sources = |host: &PartialHost| {
                    host.sources.iter().map(|source| (host.name.clone(), *source)).collect::<Vec<_>>()
                };
                self.known.extend(of_task.hosts.iter().flat_map(sources));
            }
            Err(why) => self.unread.push(why.to_string()),
        }
    }
}

/// The durations of the executions of a task by host.
fn by_host(file: &PartialsFile, task: &str, ctx: &Ctx) -> Result<Vec<(String, Lengths)>, SumsError> {
    let sums = PartialSums::of_files(std::slice::from_ref(file), ctx)?;
    let position = sums.tasks().position(|own| own == task).unwrap_or(usize::MAX);
    let mut hosts = Vec::new();
    sums.each_host(position, ctx, |host, totals| {
        hosts.push((host.to_owned(), Lengths::of_histogram(&totals.by_length, totals.kept.kept)));
        Ok::<(), SumsError>(())
    })?;
    Ok(hosts)
}

/// The task that is asked for, or the first one.
fn task_of(files: &[(Option<String>, PartialsFile)], typed: Option<&str>) -> Result<String, UsageError> {
    let tasks = files.iter().flat_map(|(_, file)| &file.tasks).map(|task| task.name.clone());
    let tasks: Vec<String> = tasks.collect::<BTreeSet<String>>().into_iter().collect();
    let task = match typed {
        Some(typed) => tasks.iter().find(|task| *task == typed),
        None => tasks.first(),
    };
    let typed = typed.unwrap_or("");
    task.cloned().ok_or_else(|| UsageError(format!("--task {typed}: {}: {}", title(files), suggest(typed, &tasks))))
}

fn title(files: &[(Option<String>, PartialsFile)]) -> String {
    files.iter().map(|(_, file)| file.path().display().to_string()).collect::<Vec<_>>().join(" + ")
}

/// The trend of the executions that files have counted.
pub(super) fn of_partials(
    files: &[(Option<String>, PartialsFile)],
    request: &TrendRequest<'_>,
    ctx: &Ctx,
) -> anyhow::Result<TrendDraft> {
    if !matches!(request.unit, PointUnit::Recording | PointUnit::Label | PointUnit::Host) {
        let why = "partial results have no dates: points are files (--by recording), labels or hosts";
        return Err(UsageError(format!("--by {}: {}: {why}", request.unit.name(), title(files))).into());
    }
    if !request.filters.is_empty() {
        let why = "partial results are sums: build them of the executions that pass";
        return Err(UsageError(format!("--filter, --type: {}: {why}", title(files))).into());
    }
    let task = task_of(files, request.task)?;
    let mut points = PartialPoints {
        task: &task,
        series: TrendSeries::new(request.unit, false),
        known: BTreeSet::new(),
        unread: Vec::new(),
        without: Vec::new(),
        twice: Vec::new(),
    };
    ctx.progress.enter("reading", files.len() as u64);
    for (number, (label, file)) in (0..).zip(files) {
        points.add(number, label.as_ref(), file, ctx);
        ctx.cancel.check()?;
        check_number(&points.series)?;
        ctx.progress.step(1);
    }
    let PartialPoints { mut series, unread, without, twice, .. } = points;
    series.complete();
    let mut lines = bounded(without, "file without the task");
    lines.extend(bounded(twice, "file with recordings of another"));
    lines.push(
        "partial results have no dates and no contexts of all executions: no causes, and no hosts at the same time"
            .to_owned(),
    );
    let trend = Trend::new(task.clone(), &series, request.figure, &ctx.cancel)?;
    if trend.points.is_empty() {
        let why = unread.first().map_or_else(String::new, |why| format!(": {why}"));
        anyhow::bail!("{}: no executions of `{task}` for a trend{why}", title(files));
    }
    Ok(TrendDraft { trend, lines, notices: Notices::default(), unread })
}
