//! The trend of a task from databases of its executions.
//!
//! In: opened databases. Out: the points with their figures, the changes, and what grew at each. Executions are read in
//! one pass, and in a second one where there are changes. Cost: the executions of all recordings, each pass once.

use super::super::UsageError;
use super::super::database::Databases;
use super::chosen::ChosenRecordings;
use super::{TrendDraft, TrendRequest, check_number};
use crate::base::ctx::Ctx;
use crate::base::figure;
use crate::compare::filter::Filter;
use crate::compare::members::members;
use crate::compare::select_error::SelectError;
use crate::compare::trend::Trend;
use crate::compare::trend::series::{PointKey, PointUnit, TrendSeries};
use crate::compare::trend::sides::SidesSums;
use crate::model::weights::KeptNumbers;
use crate::model::{Model, ThreadInfo};
use crate::saved::executions::recordings::{RecordingPlace, StoredRecording};
use std::collections::BTreeSet;

/// Executions of which all durations are kept.
const MOST_EXACT: u64 = 4_000_000;

/// The points and hosts of the executions of a part.
struct PartPlaces<'a> {
    model: &'a Model,
    /// Of all of them.
    point: Option<usize>,
    /// By trace.
    by_label: Vec<usize>,
    /// By thread.
    by_host: Vec<usize>,
    /// By thread.
    hosts: Vec<usize>,
}

impl<'a> PartPlaces<'a> {
    fn new(series: &mut TrendSeries, recording: u32, model: &'a Model) -> PartPlaces<'a> {
        let unit = series.unit;
        let point = (unit == PointUnit::Recording).then(|| series.point(PointKey::Recording(recording)));
        let mut by_label = Vec::new();
        if unit == PointUnit::Label {
            by_label.extend(model.traces.iter().map(|trace| series.point(PointKey::Named(trace.label.clone()))));
        }
        let name = |who: &ThreadInfo| model.names.get(who.host).to_owned();
        let mut by_host = Vec::new();
        if unit == PointUnit::Host {
            by_host.extend(model.who.iter().map(|who| series.point(PointKey::Named(name(who)))));
        }
        let hosts = model.who.iter().map(|who| series.host(&name(who))).collect();
        PartPlaces { model, point, by_label, by_host, hosts }
    }

    /// The point and the host of an execution; `None` where points are times and it has no date.
    fn of(&self, series: &mut TrendSeries, execution: usize) -> Option<(usize, usize)> {
        let executions = &self.model.executions;
        let who = executions.who.get(execution)?.index();
        let point = match series.unit {
            PointUnit::Recording => self.point?,
            PointUnit::Label => *self.by_label.get(executions.trace.get(execution)?.index())?,
            PointUnit::Host => *self.by_host.get(who)?,
            PointUnit::Day | PointUnit::Hour | PointUnit::Minute => {
                let key = series.key_of_time(executions.start.get(execution)?)?;
                series.point(key)
            }
        };
        Some((point, *self.hosts.get(who)?))
    }
}

/// The positions of the executions of a part that pass; none where it lacks the metric of a filter.
fn passing(model: &Model, filters: &[Filter]) -> anyhow::Result<Option<Vec<usize>>> {
    match members(model, filters, &[]) {
        Ok(found) => Ok(Some(found.into_iter().map(|execution| execution.index()).collect())),
        Err(SelectError::NoMetric { .. }) => Ok(None),
        Err(error) => Err(UsageError(error.to_string()).into()),
    }
}

pub(super) fn of_databases(databases: &Databases, request: &TrendRequest<'_>, ctx: &Ctx) -> anyhow::Result<TrendDraft> {
    let chosen = ChosenRecordings::new(databases, request.task, request.figure)?;
    let count = |(_, recording): (RecordingPlace, &StoredRecording)| {
        let of_task = recording.parts.iter().filter(|part| part.task == chosen.task);
        of_task.fold((0, false), |(count, is_sample), part| (count + part.count, is_sample || part.whole != part.count))
    };
    let counts = databases.recordings().map(count);
    let (executions, is_sample) = counts.fold((0_u64, false), |all, one| (all.0.saturating_add(one.0), all.1 || one.1));
    let mut series = TrendSeries::new(request.unit, executions <= MOST_EXACT && !is_sample);
    let mut kept = KeptNumbers::default();
    let mut notices = databases.notices();
    let (mut undated, mut without_metric, mut none) = (0_u64, 0_u64, 0_u64);
    let unread = chosen.each_part(databases, ctx, |(number, recording, path), part, model| {
        notices.merge(&part.notices);
        let Some(members) = passing(&model, request.filters)? else {
            without_metric += 1;
            return Ok(());
        };
        none += u64::from(members.is_empty());
        if members.is_empty() {
            return Ok(());
        }
        if !recording.labelled {
            series.file(number, path.display().to_string());
        }
        let labels: BTreeSet<String> = recording.labels().into_iter().map(str::to_owned).collect();
        let places = PartPlaces::new(&mut series, number, &model);
        let (executions, weights) = (&model.executions, model.executions.weights());
        for (checked, at) in members.into_iter().enumerate() {
            if checked.is_multiple_of(4096) {
                ctx.cancel.check()?;
            }
            let Some((point, host)) = places.of(&mut series, at) else {
                undated += weights.of(at);
                continue;
            };
            series.note(point, number, &labels);
            let Some(start) = executions.start.get(at) else { continue };
            let kinds = executions.own.row(at).map(|time| (model.contexts.spent(time.context), time.ns));
            let weight = weights.of(at);
            kept.put(weight);
            series.put((point, host), start, (executions.duration(at), weight), kinds);
        }
        check_number(&series)
    })?;
    series.complete();
    let mut lines = chosen.lines.clone();
    let recordings = |n: u64| figure::plural(n, "recording");
    let unit = request.unit.name();
    if !kept.are_all() {
        lines.push(kept.words());
    }
    if undated > 0 {
        let executions = figure::counted(undated, "execution");
        lines.push(format!("{executions} without a date have no {unit}: left out; --by recording has them"));
    }
    if without_metric > 0 {
        lines.push(format!("{} without a metric of the filters: left out", recordings(without_metric)));
    }
    if none > 0 {
        lines.push(format!("{} without an execution that counts: left out", recordings(none)));
    }
    let mut trend = Trend::new(chosen.task.clone(), &series, request.figure, &ctx.cancel)?;
    if trend.points.is_empty() {
        let why = lines.last().or(unread.first()).map_or_else(String::new, |line| format!(": {line}"));
        anyhow::bail!("{}: no executions of `{}` for a trend{why}", databases.title(), chosen.task);
    }
    if !trend.changes.is_empty() {
        add_comparisons(&mut trend, &mut series, (databases, &chosen), request, ctx)?;
    }
    Ok(TrendDraft { trend, lines, notices, unread })
}

/// Add up what both sides of each change spent in their contexts.
fn add_comparisons(
    trend: &mut Trend,
    series: &mut TrendSeries,
    (databases, chosen): (&Databases, &ChosenRecordings),
    request: &TrendRequest<'_>,
    ctx: &Ctx,
) -> anyhow::Result<()> {
    let sides = trend.side_by_point();
    let mut sums = SidesSums::new(trend.changes.len() + 1);
    // Parts that cannot be read are known from the first pass.
    let _ = chosen.each_part(databases, ctx, |(number, ..), _, model| {
        let Some(members) = passing(&model, request.filters)? else { return Ok(()) };
        if members.is_empty() {
            return Ok(());
        }
        let places = PartPlaces::new(series, number, &model);
        let mut placed = Vec::with_capacity(members.len());
        for at in members {
            let point = places.of(series, at).map(|(point, _)| point);
            placed.extend(point.and_then(|point| sides.get(&point)).map(|side| (at, *side)));
        }
        Ok(sums.add(&model, placed.into_iter(), &ctx.cancel)?)
    })?;
    sums.compare(trend, &ctx.cancel);
    Ok(())
}
