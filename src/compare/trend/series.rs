//! The executions of a trend by point, stretch of time and host.
//!
//! In: executions one after the other, each with the point that it belongs to, its host, its times. Out: the points in
//! order, with their figures, and the figures of hosts. In memory are the cells: of each point, stretch and host the
//! durations, or how many there are of each length, and the time by kind. The order in which executions come changes
//! nothing but the order of points without a date. Cost: a look-up for each execution.

use super::super::Spread;
use super::lengths::{Figure, Lengths};
use crate::base::figure;
use crate::base::time::{Ns, Timestamp};
use crate::model::wait_kind::WaitKind;
use std::collections::{BTreeMap, BTreeSet};

const HOUR: Ns = 3_600_000_000_000;

/// What the points of a trend are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PointUnit {
    #[default]
    Recording,
    Label,
    Host,
    Day,
    Hour,
    Minute,
}

impl PointUnit {
    /// The word of the command line and of JSON.
    pub fn name(self) -> &'static str {
        match self {
            PointUnit::Recording => "recording",
            PointUnit::Label => "label",
            PointUnit::Host => "host",
            PointUnit::Day => "day",
            PointUnit::Hour => "hour",
            PointUnit::Minute => "minute",
        }
    }

    /// The length of a point that is a stretch of time.
    fn length(self) -> Option<Ns> {
        match self {
            PointUnit::Recording | PointUnit::Label | PointUnit::Host => None,
            PointUnit::Day => Some(24 * HOUR),
            PointUnit::Hour => Some(HOUR),
            PointUnit::Minute => Some(HOUR / 60),
        }
    }

    /// True where points follow each other in time.
    pub fn is_ordered(self) -> bool {
        self != PointUnit::Host
    }
}

/// A point before its executions are known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PointKey {
    /// By the position of a recording among all.
    Recording(u32),
    /// A label or a host.
    Named(String),
    /// By the number of days, hours or minutes since 1970.
    Since1970(i64),
}

impl PointKey {
    fn recording(&self) -> Option<u32> {
        if let PointKey::Recording(number) = self { Some(*number) } else { None }
    }
}

/// What is known of a point beside its executions.
#[derive(Clone, Debug, Default)]
struct PointNames {
    labels: BTreeSet<String>,
    recordings: BTreeSet<u32>,
}

/// The place of an execution: its point, its stretch of time, its host.
type CellKey = (usize, Option<i64>, usize);

/// Some executions of a point.
#[derive(Clone, Debug)]
struct TrendCell {
    lengths: Lengths,
    kinds: [u128; WaitKind::ALL.len()],
    first: Timestamp,
    last: Timestamp,
}

/// Executions by point, stretch of time and host.
pub struct TrendSeries {
    pub unit: PointUnit,
    /// All durations are kept.
    pub exact: bool,
    /// By number of a recording the file that has it, to distinguish recordings of one label.
    files: BTreeMap<u32, String>,
    ids: BTreeMap<PointKey, usize>,
    names: Vec<PointNames>,
    hosts: Vec<String>,
    host_ids: BTreeMap<String, usize>,
    cells: BTreeMap<CellKey, TrendCell>,
}

/// A point of a trend.
#[derive(Clone, Debug, PartialEq)]
pub struct TrendPoint {
    /// Its number in the series.
    pub(super) id: usize,
    /// A label, a host, a day.
    pub name: String,
    /// Of its recordings.
    pub labels: Vec<String>,
    pub hosts: Vec<String>,
    pub recordings: u64,
    /// The begin of its first execution, in nanoseconds of the clock.
    pub start: Timestamp,
    pub executions: u64,
    pub mean_ns: Ns,
    pub spread: Spread,
    /// The figure that the trend follows; `None` where the point has too few executions for it.
    pub figure_ns: Option<Ns>,
    /// Nanoseconds of all of its executions by kind, the most first.
    pub kinds: Vec<(WaitKind, u128)>,
}

impl TrendPoint {
    /// The date and time in UTC; `None` for a clock that does not count from 1970.
    pub fn time(&self) -> Option<String> {
        figure::time_of_day(self.start.ns())
    }
}

impl TrendSeries {
    /// Nothing yet.
    pub fn new(unit: PointUnit, exact: bool) -> TrendSeries {
        let (ids, names, hosts) = (BTreeMap::new(), Vec::new(), Vec::new());
        TrendSeries {
            unit,
            exact,
            files: BTreeMap::new(),
            ids,
            names,
            hosts,
            host_ids: BTreeMap::new(),
            cells: BTreeMap::new(),
        }
    }

    /// The number of a point, made on first sight.
    pub fn point(&mut self, key: PointKey) -> usize {
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        self.names.push(PointNames::default());
        self.ids.insert(key, self.names.len() - 1);
        self.names.len() - 1
    }

    /// The file of a recording.
    pub fn file(&mut self, recording: u32, file: String) {
        self.files.insert(recording, file);
    }

    /// How many points are known.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// A recording, with its labels, has executions in a point.
    pub fn note(&mut self, point: usize, recording: u32, labels: &BTreeSet<String>) {
        let PointNames { labels: known, recordings } = &mut self.names[point];
        if recordings.insert(recording) {
            known.extend(labels.iter().cloned());
        }
    }

    /// The number of a host, made on first sight.
    pub fn host(&mut self, name: &str) -> usize {
        if let Some(id) = self.host_ids.get(name) {
            return *id;
        }
        self.hosts.push(name.to_owned());
        self.host_ids.insert(name.to_owned(), self.hosts.len() - 1);
        self.hosts.len() - 1
    }

    /// The key of the stretch of time of a moment, where points are such; `None` for a moment without a date.
    pub fn key_of_time(&self, at: Timestamp) -> Option<PointKey> {
        let length = self.unit.length()?;
        figure::time_of_day(at.ns()).map(|_| PointKey::Since1970(at.ns().div_euclid(length)))
    }

    /// The length of the stretches of time of the cells: hours, minutes where these are the points.
    fn stretch(&self) -> Ns {
        self.unit.length().unwrap_or(HOUR).min(HOUR)
    }

    fn cell(&mut self, point: usize, at: Timestamp, host: usize) -> &mut TrendCell {
        let stretch = self.stretch();
        let has_date = at.ns() >= figure::YEAR_2001;
        let key = (point, has_date.then(|| at.ns().div_euclid(stretch)), host);
        let exact = self.exact;
        self.cells.entry(key).or_insert_with(|| TrendCell {
            lengths: Lengths::new(exact),
            kinds: [0; WaitKind::ALL.len()],
            first: at,
            last: at,
        })
    }

    /// Count an execution that represents so many, with its time by kind.
    pub fn put(
        &mut self,
        (point, host): (usize, usize),
        start: Timestamp,
        (duration, weight): (Ns, u64),
        kinds: impl Iterator<Item = (WaitKind, u64)>,
    ) {
        let cell = self.cell(point, start, host);
        cell.lengths.put(duration, weight);
        (cell.first, cell.last) = (cell.first.min(start), cell.last.max(start));
        for (kind, ns) in kinds {
            let sum = &mut cell.kinds[kind as usize];
            *sum = sum.saturating_add(u128::from(ns) * u128::from(weight));
        }
    }

    /// Count executions of which the lengths alone are known.
    pub fn put_lengths(&mut self, point: usize, host: usize, lengths: &Lengths) {
        self.cell(point, Timestamp::ZERO, host).lengths.add(lengths);
    }

    /// All executions are there.
    pub fn complete(&mut self) {
        self.cells.values_mut().for_each(|cell| cell.lengths.complete());
    }

    /// True where each execution has a date.
    fn has_dates(&self) -> bool {
        self.cells.keys().all(|(_, stretch, _)| stretch.is_some())
    }

    /// The points in order: of time where all have a date, else that in which they came; hosts by name.
    pub fn points(&self, figure: Figure) -> Vec<TrendPoint> {
        let mut all: Vec<TrendPoint> =
            self.ids.iter().filter_map(|(key, id)| self.of_point(key, *id, figure)).collect();
        self.tell_apart(&mut all);
        match self.unit {
            PointUnit::Host => all.sort_by(|a, b| a.name.cmp(&b.name)),
            _ if self.has_dates() => all.sort_by(|a, b| (a.start, &a.name, a.id).cmp(&(b.start, &b.name, b.id))),
            _ => all.sort_by_key(|point| point.id),
        }
        all
    }

    /// Recordings of one label have the names of their files, where these differ.
    fn tell_apart(&self, points: &mut [TrendPoint]) {
        let recordings: BTreeMap<usize, u32> =
            self.ids.iter().filter_map(|(key, id)| Some((*id, key.recording()?))).collect();
        let mut by_name: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        points.iter().enumerate().for_each(|(at, point)| by_name.entry(point.name.clone()).or_default().push(at));
        for same in by_name.into_values().filter(|same| same.len() > 1) {
            let file = |at: &usize| self.files.get(recordings.get(&points[*at].id)?).cloned();
            let files: Vec<String> = same.iter().filter_map(file).collect();
            if files.iter().collect::<BTreeSet<_>>().len() == same.len() {
                same.into_iter().zip(files).for_each(|(at, file)| points[at].name = file);
            }
        }
    }

    /// The cells of a point.
    fn cells_of(&self, point: usize) -> impl Iterator<Item = (&CellKey, &TrendCell)> {
        self.cells.range((point, None, 0)..(point + 1, None, 0))
    }

    fn of_point(&self, key: &PointKey, id: usize, figure: Figure) -> Option<TrendPoint> {
        let mut lengths = Lengths::new(self.exact);
        let mut kinds: BTreeMap<WaitKind, u128> = BTreeMap::new();
        let (mut hosts, mut start) = (BTreeSet::new(), None::<Timestamp>);
        for ((_, _, host), cell) in self.cells_of(id) {
            lengths.add(&cell.lengths);
            hosts.insert(self.hosts[*host].clone());
            start = Some(start.map_or(cell.first, |known| known.min(cell.first)));
            for (kind, ns) in WaitKind::ALL.into_iter().zip(cell.kinds).filter(|(_, ns)| *ns > 0) {
                let sum = kinds.entry(kind).or_insert(0);
                *sum = sum.saturating_add(ns);
            }
        }
        lengths.complete();
        let mut kinds: Vec<(WaitKind, u128)> = kinds.into_iter().collect();
        kinds.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        let PointNames { labels, recordings } = &self.names[id];
        let labels: Vec<String> = labels.iter().cloned().collect();
        Some(TrendPoint {
            id,
            name: self.name(key, &labels),
            labels,
            hosts: hosts.into_iter().collect(),
            recordings: recordings.len() as u64,
            start: start?,
            executions: lengths.count(),
            mean_ns: lengths.mean_ns(),
            spread: lengths.spread(),
            figure_ns: lengths.figure(figure),
            kinds,
        })
    }

    fn name(&self, key: &PointKey, labels: &[String]) -> String {
        match key {
            PointKey::Recording(_) => labels.join(" + "),
            PointKey::Named(name) => name.clone(),
            PointKey::Since1970(number) => {
                let begin = number.saturating_mul(self.unit.length().unwrap_or(1));
                let figures = if self.unit == PointUnit::Day { 10 } else { 16 };
                figure::time_of_day(begin).map_or_else(String::new, |time| time.chars().take(figures).collect())
            }
        }
    }

    /// The names of all hosts, ascending.
    pub fn host_names(&self) -> Vec<String> {
        self.host_ids.keys().cloned().collect()
    }

    /// The stretches of time in which hosts may be compared, the longest first.
    pub(super) fn stretches(&self) -> &'static [PointUnit] {
        match self.unit {
            PointUnit::Minute => &[PointUnit::Minute],
            PointUnit::Hour => &[PointUnit::Hour],
            _ => &[PointUnit::Day, PointUnit::Hour],
        }
    }

    /// The figure of each host in each stretch of time, where all have dates and the host has enough executions then.
    pub(super) fn by_stretch(&self, unit: PointUnit, figure: Figure) -> BTreeMap<i64, BTreeMap<String, i64>> {
        let cells = unit.length().unwrap_or(HOUR) / self.stretch();
        let mut lengths: BTreeMap<(i64, usize), Lengths> = BTreeMap::new();
        for ((_, stretch, host), cell) in &self.cells {
            let Some(stretch) = stretch.map(|stretch| stretch.div_euclid(cells.max(1))) else { continue };
            lengths.entry((stretch, *host)).or_insert_with(|| Lengths::new(self.exact)).add(&cell.lengths);
        }
        let mut all: BTreeMap<i64, BTreeMap<String, i64>> = BTreeMap::new();
        for ((stretch, host), mut lengths) in lengths {
            lengths.complete();
            if let Some(figure) = lengths.figure(figure) {
                all.entry(stretch).or_default().insert(self.hosts[host].clone(), figure);
            }
        }
        all
    }

    /// By host the figure of each of these points, where the host has enough executions in it.
    pub(super) fn by_host(&self, points: &[TrendPoint], figure: Figure) -> BTreeMap<String, Vec<Option<i64>>> {
        let mut all: BTreeMap<String, Vec<Option<i64>>> = BTreeMap::new();
        for (at, point) in points.iter().enumerate() {
            let mut lengths: BTreeMap<usize, Lengths> = BTreeMap::new();
            for ((_, _, host), cell) in self.cells_of(point.id) {
                lengths.entry(*host).or_insert_with(|| Lengths::new(self.exact)).add(&cell.lengths);
            }
            for (host, mut lengths) in lengths {
                lengths.complete();
                let figures = all.entry(self.hosts[host].clone()).or_insert_with(|| vec![None; points.len()]);
                figures[at] = lengths.figure(figure);
            }
        }
        all
    }

    /// The durations of some points together.
    pub(super) fn united(&self, points: &[TrendPoint]) -> Lengths {
        let mut all = Lengths::new(self.exact);
        for point in points {
            self.cells_of(point.id).for_each(|(_, cell)| all.add(&cell.lengths));
        }
        all.complete();
        all
    }
}
