//! The executions of a task over time: when a figure of their durations moved, what took longer then, which host
//! differs.
//!
//! In: a [`TrendSeries`], filled one recording after the other. Out: a [`Trend`]: the points in order, the changes with
//! their chance and both sides, the hosts; and from sums over the contexts of both sides the parts of each change, as
//! a comparison of the two sides has them. ALGORITHMS.md 7.11 to 7.13.
//!
//! ```text
//! lengths -> series -> changes (by ranks) -> sides, hosts (at the change, at the same time) -> words
//!                                        `-> sides: sums by context -> the comparison of partial results
//! ```

pub mod changes;
pub mod hosts;
pub mod lengths;
pub mod series;
pub mod sides;
pub mod words;

use super::Spread;
use super::condition::FailIf;
use super::partials::PartialComparison;
use crate::base::ctx::{Cancel, Cancelled};
use crate::base::statistics::median;
use crate::base::time::Ns;
use changes::{ChangePoint, FEWEST_POINTS, change_points};
use hosts::{HostAtChange, HostLevel, host_levels, hosts_at_change};
use lengths::Figure;
use series::{PointUnit, TrendPoint, TrendSeries};
use std::collections::BTreeMap;
use std::ops::Range;

/// The points between two changes.
#[derive(Clone, Debug, PartialEq)]
pub struct TrendSide {
    /// Their positions.
    pub points: Range<usize>,
    pub executions: u64,
    /// The median of the points' figures.
    pub level_ns: Ns,
    /// Of all of their executions.
    pub mean_ns: Ns,
    pub spread: Spread,
}

/// A change of the figure.
#[derive(Clone, Debug, PartialEq)]
pub struct TrendChange {
    /// Position of the first point after it.
    pub at: usize,
    pub p_value: f64,
    pub superiority: f64,
    pub before: TrendSide,
    pub after: TrendSide,
    /// Of all hosts where there are several.
    pub hosts: Vec<HostAtChange>,
    /// What takes longer after it: the slow group is what is after, the fast one what is before. `None` where the
    /// contexts are not known.
    pub comparison: Option<PartialComparison>,
}

impl TrendChange {
    /// True where the figure is larger after it.
    pub fn rises(&self) -> bool {
        self.superiority > 0.5
    }

    /// The level after by the one before.
    pub fn ratio(&self) -> f64 {
        self.after.level_ns as f64 / self.before.level_ns.max(1) as f64
    }
}

/// What was looked for in the order of the points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeSearch {
    /// Changes.
    Done,
    /// Nothing: points have no order.
    Unordered,
    /// Nothing: so many points have enough executions, and no order of so few is rare.
    TooFew { points: usize },
}

/// A task over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Trend {
    pub task: String,
    pub unit: PointUnit,
    pub figure: Figure,
    /// Figures are those of all durations; else percentiles are at most 1 % more.
    pub exact: bool,
    pub points: Vec<TrendPoint>,
    pub search: ChangeSearch,
    /// In order of the points.
    pub changes: Vec<TrendChange>,
    /// By name, where there are several.
    pub hosts: Vec<HostLevel>,
    /// By host the figure of each point; where there are several hosts.
    pub by_host: BTreeMap<String, Vec<Option<Ns>>>,
    /// The stretches of time within which hosts are compared.
    pub hosts_by: PointUnit,
    /// The number of all hosts.
    pub host_count: u64,
}

/// The levels of hosts in the longest stretches of time that are enough to say whether one differs; where none are, in
/// the longest.
fn compared_hosts(series: &TrendSeries, figure: Figure, several: bool) -> (PointUnit, Vec<HostLevel>) {
    let units = series.stretches();
    if !several {
        return (units[0], Vec::new());
    }
    let levels = |unit: PointUnit| (unit, host_levels(series.by_stretch(unit, figure).values()));
    let is_enough = |(_, levels): &(PointUnit, Vec<HostLevel>)| levels.iter().any(|host| host.p_value.is_some());
    units.iter().map(|unit| levels(*unit)).find(is_enough).unwrap_or_else(|| levels(units[0]))
}

impl Trend {
    /// The trend of a complete series. The comparisons of the changes are not there yet.
    pub fn new(task: String, series: &TrendSeries, figure: Figure, cancel: &Cancel) -> Result<Trend, Cancelled> {
        let points = series.points(figure);
        let searched: Vec<usize> = (0..points.len()).filter(|at| points[*at].figure_ns.is_some()).collect();
        let values: Vec<Ns> = searched.iter().filter_map(|at| points[*at].figure_ns).collect();
        let search = match series.unit.is_ordered() {
            false => ChangeSearch::Unordered,
            true if values.len() < FEWEST_POINTS => ChangeSearch::TooFew { points: values.len() },
            true => ChangeSearch::Done,
        };
        let found = if search == ChangeSearch::Done { change_points(&values, cancel)? } else { Vec::new() };
        let hosts = series.host_names();
        let several = hosts.len() > 1;
        let by_host = if several { series.by_host(&points, figure) } else { BTreeMap::new() };
        let (hosts_by, host_levels) = compared_hosts(series, figure, several);
        let sides = sides(&points, &searched, &found, series);
        let changes = found.iter().zip(sides.windows(2));
        let changes = changes.map(|(change, sides)| of_change(change, &sides[0], &sides[1], &by_host)).collect();
        Ok(Trend {
            task,
            unit: series.unit,
            figure,
            exact: series.exact,
            search,
            changes,
            hosts: host_levels,
            hosts_by,
            by_host,
            host_count: hosts.len() as u64,
            points,
        })
    }

    /// By number of a point in the series the side of the changes that it is on; nothing without changes.
    pub fn side_by_point(&self) -> BTreeMap<usize, usize> {
        if self.changes.is_empty() {
            return BTreeMap::new();
        }
        let side = |at: usize| self.changes.iter().filter(|change| change.at <= at).count();
        self.points.iter().enumerate().map(|(at, point)| (point.id, side(at))).collect()
    }

    /// A sentence if the last change is one to more, and the condition holds of its sides.
    pub fn failing(&self, condition: FailIf) -> Option<String> {
        let last = self.changes.last().filter(|change| change.rises())?;
        let sentence = condition.holds_of_change(last.before.level_ns, last.after.level_ns)?;
        let place = self.points.get(last.at).map_or_else(String::new, |point| words::place(self, point));
        Some(format!("{sentence}, from {place} on"))
    }

    /// The change that matters most: the one of the largest ratio.
    pub fn largest(&self) -> Option<&TrendChange> {
        self.changes.iter().max_by(|a, b| factor(a.ratio()).total_cmp(&factor(b.ratio())))
    }
}

/// By what factor a ratio is more or less than one: 2 for a half, too.
pub fn factor(ratio: f64) -> f64 {
    ratio.max(1.0 / ratio.max(f64::MIN_POSITIVE))
}

/// The points between changes, from the first to the last one.
fn sides(points: &[TrendPoint], searched: &[usize], found: &[ChangePoint], series: &TrendSeries) -> Vec<TrendSide> {
    let mut borders: Vec<usize> = found.iter().filter_map(|change| searched.get(change.at).copied()).collect();
    borders.insert(0, 0);
    borders.push(points.len());
    let side = |ends: &[usize]| {
        let inside = &points[ends[0]..ends[1]];
        let lengths = series.united(inside);
        TrendSide {
            points: ends[0]..ends[1],
            executions: lengths.count(),
            level_ns: median(inside.iter().filter_map(|point| point.figure_ns).collect()),
            mean_ns: lengths.mean_ns(),
            spread: lengths.spread(),
        }
    };
    if found.is_empty() { Vec::new() } else { borders.windows(2).map(side).collect() }
}

fn of_change(
    ChangePoint { p_value, superiority, .. }: &ChangePoint,
    before: &TrendSide,
    after: &TrendSide,
    by_host: &BTreeMap<String, Vec<Option<Ns>>>,
) -> TrendChange {
    let of_side = |figures: &[Option<Ns>], side: &TrendSide| -> Vec<Ns> {
        figures[side.points.clone()].iter().copied().flatten().collect()
    };
    let figures = by_host.iter().map(|(host, figures)| {
        let sides = [of_side(figures, before), of_side(figures, after)];
        (host.clone(), sides)
    });
    TrendChange {
        at: after.points.start,
        p_value: *p_value,
        superiority: *superiority,
        hosts: hosts_at_change(figures.collect(), *superiority > 0.5),
        before: before.clone(),
        after: after.clone(),
        comparison: None,
    }
}
