//! JSON of a task over time: `whyslow.trend/1`.

use super::partials::{self, PartialCauseJson};
use crate::base::clean;
use crate::compare::Spread;
use crate::compare::trend::hosts::{HostAtChange, HostLevel, HostMove};
use crate::compare::trend::series::TrendPoint;
use crate::compare::trend::{ChangeSearch, Trend, TrendChange, TrendSide, words};
use crate::model::wait_kind::WaitKind;
use serde::Serialize;

#[derive(Serialize)]
struct TrendJson {
    schema: &'static str,
    task: String,
    by: &'static str,
    figure: String,
    /// Percentiles are those of all durations; else at most 1 % more.
    exact: bool,
    answer: String,
    search: &'static str,
    points: Vec<TrendPointJson>,
    changes: Vec<TrendChangeJson>,
    hosts: Vec<HostLevelJson>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct TrendPointJson {
    name: String,
    start_ns: i64,
    /// Null where the clock has no date.
    time_of_day: Option<String>,
    labels: Vec<String>,
    hosts: Vec<String>,
    recordings: u64,
    #[serde(flatten)]
    figures: FiguresJson,
    /// Null where the point has too few executions for the figure.
    figure_ns: Option<i64>,
    kinds: Vec<KindJson>,
}

/// Durations of some executions.
#[derive(Serialize)]
struct FiguresJson {
    executions: u64,
    mean_ns: i64,
    p50_ns: i64,
    p95_ns: i64,
    p99_ns: i64,
    max_ns: i64,
}

#[derive(Serialize)]
struct KindJson {
    kind: &'static str,
    mean_ns: f64,
    share: f64,
}

#[derive(Serialize)]
struct TrendChangeJson {
    /// Position of the first point after it.
    at: usize,
    sentence: String,
    p_value: f64,
    superiority: f64,
    ratio: f64,
    before: TrendSideJson,
    after: TrendSideJson,
    /// Null where the contexts are not known.
    extra_ns: Option<i64>,
    causes: Vec<PartialCauseJson>,
    hosts_sentence: Option<String>,
    hosts: Vec<HostAtChangeJson>,
}

#[derive(Serialize)]
struct TrendSideJson {
    first: usize,
    points: usize,
    level_ns: i64,
    #[serde(flatten)]
    figures: FiguresJson,
}

#[derive(Serialize)]
struct HostAtChangeJson {
    host: String,
    before_ns: Option<i64>,
    after_ns: Option<i64>,
    moved: &'static str,
    p_value: Option<f64>,
}

#[derive(Serialize)]
struct HostLevelJson {
    host: String,
    /// Of each point.
    figures_ns: Vec<Option<i64>>,
    compared: u64,
    highest: u64,
    lowest: u64,
    ratio: Option<f64>,
    p_value: Option<f64>,
    differs: bool,
}

fn figures(executions: u64, mean_ns: i64, spread: Spread) -> FiguresJson {
    let Spread { p50_ns, p95_ns, p99_ns, max_ns } = spread;
    FiguresJson { executions, mean_ns, p50_ns, p95_ns, p99_ns, max_ns }
}

fn all_clean(texts: &[String]) -> Vec<String> {
    texts.iter().map(|text| clean::owned(text)).collect()
}

fn point(point: &TrendPoint) -> TrendPointJson {
    let all: u128 = point.kinds.iter().map(|(_, ns)| *ns).sum();
    let kind = |(kind, ns): &(WaitKind, u128)| KindJson {
        kind: kind.name(),
        mean_ns: *ns as f64 / point.executions.max(1) as f64,
        share: *ns as f64 / all.max(1) as f64,
    };
    TrendPointJson {
        name: clean::owned(&point.name),
        start_ns: point.start.ns(),
        time_of_day: point.time(),
        labels: all_clean(&point.labels),
        hosts: all_clean(&point.hosts),
        recordings: point.recordings,
        figures: figures(point.executions, point.mean_ns, point.spread),
        figure_ns: point.figure_ns,
        kinds: point.kinds.iter().map(kind).collect(),
    }
}

fn side(side: &TrendSide) -> TrendSideJson {
    TrendSideJson {
        first: side.points.start,
        points: side.points.len(),
        level_ns: side.level_ns,
        figures: figures(side.executions, side.mean_ns, side.spread),
    }
}

fn host_at_change(host: &HostAtChange) -> HostAtChangeJson {
    let moved = match host.moved {
        HostMove::Moved => "moved",
        HostMove::Stayed => "stayed",
        HostMove::TooFew => "too few points",
    };
    let [before_ns, after_ns] = host.levels;
    HostAtChangeJson { host: clean::owned(&host.name), before_ns, after_ns, moved, p_value: host.p_value }
}

fn change(trend: &Trend, change: &TrendChange) -> TrendChangeJson {
    let comparison = change.comparison.as_ref();
    let sentences = [Some(words::change(trend, change)), words::cause(change)];
    TrendChangeJson {
        at: change.at,
        sentence: clean::owned(&sentences.into_iter().flatten().collect::<Vec<String>>().join(" ")),
        p_value: change.p_value,
        superiority: change.superiority,
        ratio: change.ratio(),
        before: side(&change.before),
        after: side(&change.after),
        extra_ns: comparison.map(|comparison| comparison.extra_ns),
        causes: comparison.map_or_else(Vec::new, |comparison| comparison.causes.iter().map(partials::cause).collect()),
        hosts_sentence: words::at_change(&change.hosts).map(|sentence| clean::owned(&sentence)),
        hosts: change.hosts.iter().map(host_at_change).collect(),
    }
}

fn host(trend: &Trend, (name, figures): (&String, &Vec<Option<i64>>)) -> HostLevelJson {
    let level = trend.hosts.iter().find(|host| host.name == *name);
    let of = |count: fn(&HostLevel) -> u64| level.map_or(0, count);
    HostLevelJson {
        host: clean::owned(name),
        figures_ns: figures.clone(),
        compared: of(|host| host.compared),
        highest: of(|host| host.highest),
        lowest: of(|host| host.lowest),
        ratio: level.map(|host| host.ratio),
        p_value: level.and_then(|host| host.p_value),
        differs: level.is_some_and(HostLevel::differs),
    }
}

/// The document `whyslow.trend/1`.
pub fn trend(trend: &Trend, warnings: &[String]) -> impl Serialize + use<> {
    TrendJson {
        schema: "whyslow.trend/1",
        task: clean::owned(&trend.task),
        by: trend.unit.name(),
        figure: trend.figure.to_string(),
        exact: trend.exact,
        answer: clean::owned(&words::answer(trend).join(" ")),
        search: match trend.search {
            ChangeSearch::Done => "done",
            ChangeSearch::Unordered => "unordered",
            ChangeSearch::TooFew { .. } => "too few points",
        },
        points: trend.points.iter().map(point).collect(),
        changes: trend.changes.iter().map(|one| change(trend, one)).collect(),
        hosts: trend.by_host.iter().map(|one| host(trend, one)).collect(),
        warnings: all_clean(warnings),
    }
}
