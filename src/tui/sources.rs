//! The table of root causes: rows that can be opened to their occurrences, in a chosen order, filtered and searched.
//!
//! In: [`AnomalyReport`]. Out: the visible rows. Choosing and ordering costs n log n in the root causes and the
//! occurrences of open rows.

use super::report::AnomalyReport;
use super::search::TextSearch;
use crate::base::time::Timestamp;
use crate::model::root_cause::{CausedDelay, RootCause};
use crate::view::anomalies::Words;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootCauseRow {
    /// A source, by position.
    Source(u32),
    /// One of its occurrences.
    Occurrence(u32, u32),
}

impl RootCauseRow {
    /// Position of its source.
    pub fn at(self) -> u32 {
        match self {
            RootCauseRow::Source(at) | RootCauseRow::Occurrence(at, _) => at,
        }
    }

    pub fn source(self, found: &AnomalyReport) -> Option<&RootCause> {
        found.anomalies.sources.get(self.at() as usize)
    }

    /// Its occurrence; for a root cause the one that caused most delay.
    pub fn occurrence(self, found: &AnomalyReport) -> Option<&CausedDelay> {
        let source = self.source(found)?;
        match self {
            RootCauseRow::Source(_) => {
                let most = |o: &&CausedDelay| (o.affected_ns, o.excess_ns, Reverse(o.span.start));
                source.occurrences.iter().max_by_key(most)
            }
            RootCauseRow::Occurrence(_, at) => source.occurrences.get(at as usize),
        }
    }
}

/// Order of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RootCauseOrder {
    /// Most delay caused first.
    #[default]
    Caused,
    /// Largest extra time first.
    Excess,
    /// The furthest over its reference first.
    Factor,
    /// In order of time.
    Time,
    /// By rank or thread.
    Place,
}

impl RootCauseOrder {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            RootCauseOrder::Caused => "delay caused",
            RootCauseOrder::Excess => "extra time",
            RootCauseOrder::Factor => "factor",
            RootCauseOrder::Time => "time",
            RootCauseOrder::Place => "place",
        }
    }

    /// The one after it.
    pub fn next(self) -> RootCauseOrder {
        match self {
            RootCauseOrder::Caused => RootCauseOrder::Excess,
            RootCauseOrder::Excess => RootCauseOrder::Factor,
            RootCauseOrder::Factor => RootCauseOrder::Time,
            RootCauseOrder::Time => RootCauseOrder::Place,
            RootCauseOrder::Place => RootCauseOrder::Caused,
        }
    }
}

/// RowName of a row under any settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowName {
    /// The words of its root cause.
    root_cause: String,
    /// The start of its occurrence, for the row of one.
    start: Option<Timestamp>,
}

/// State of the table.
#[derive(Clone, Debug, Default)]
pub struct RootCauseList {
    /// Rows shown, in order.
    pub visible: Vec<RootCauseRow>,
    /// The row under the cursor.
    pub row: usize,
    /// The first row shown.
    pub offset: usize,
    pub order: RootCauseOrder,
    /// Words that must all occur; empty: all sources.
    pub filter: String,
    /// The last search; its matches are positions of sources.
    pub search: TextSearch,
    /// Sources whose occurrences show.
    pub open: BTreeSet<u32>,
}

/// The text that filters and searches match: thread, activity, victims, and the pattern.
fn text(found: &AnomalyReport, source: &RootCause) -> String {
    let words = Words::of(source);
    let part = match (source.idle, source.in_executions) {
        (true, _) => "waiting for work",
        (false, true) => "in executions",
        (false, false) => "",
    };
    let anomaly = source.occurrences.first().and_then(|o| found.get(o.anomaly));
    let pattern = anomaly.map_or("", |a| found.pattern(a));
    format!("{} {}{} {} {part} {pattern}", words.who, words.did, words.inner, words.to).to_lowercase()
}

impl RootCauseList {
    /// Choose and order the visible rows.
    pub fn rebuild(&mut self, found: &AnomalyReport) {
        let words: Vec<String> = self.filter.split_whitespace().map(str::to_lowercase).collect();
        let sources = &found.anomalies.sources;
        let of = |at: &u32| sources.get(*at as usize);
        let fits = |at: &u32| {
            words.is_empty() || {
                let text = of(at).map(|s| text(found, s)).unwrap_or_default();
                words.iter().all(|w| text.contains(w))
            }
        };
        let mut shown: Vec<u32> = (0..sources.len() as u32).filter(fits).collect();
        // Root causes without a victim come last in every order.
        let last =
            |at: &u32| of(at).map(|s| (s.idle, found.anomalies.examined.executions.is_some() && !s.in_executions));
        match self.order {
            // As they come.
            RootCauseOrder::Caused => {}
            RootCauseOrder::Excess => shown.sort_by_key(|at| (last(at), Reverse(of(at).map(|s| s.excess_ns)), *at)),
            RootCauseOrder::Factor => {
                // An event that usually does not happen exceeds every factor.
                let factor = |at: &u32| of(at).map_or((0.0, 0.0), |s| (s.times().unwrap_or(f64::INFINITY), s.factor));
                shown.sort_by(|a, b| {
                    let (x, y) = (factor(a), factor(b));
                    let by_factor = y.0.total_cmp(&x.0).then(y.1.total_cmp(&x.1));
                    last(a).cmp(&last(b)).then(by_factor).then(a.cmp(b))
                });
            }
            RootCauseOrder::Time => shown.sort_by_cached_key(|at| (last(at), of(at).map(|s| s.span().start), *at)),
            RootCauseOrder::Place => {
                shown.sort_by_cached_key(|at| (last(at), of(at).map(|s| (s.streams.clone(), s.span().start)), *at));
            }
        }
        self.visible.clear();
        for at in shown {
            self.visible.push(RootCauseRow::Source(at));
            if self.open.contains(&at) {
                let occurrences = of(&at).map_or(0, |s| s.occurrences.len() as u32);
                self.visible.extend((0..occurrences).map(|o| RootCauseRow::Occurrence(at, o)));
            }
        }
        let text = std::mem::take(&mut self.search.text);
        self.find(found, text);
    }

    /// Search a text among the sources that show.
    pub fn find(&mut self, found: &AnomalyReport, wanted: String) {
        let lower = wanted.to_lowercase();
        let is_source = |row: &&RootCauseRow| matches!(row, RootCauseRow::Source(_));
        let fits = |row: &&RootCauseRow| row.source(found).is_some_and(|s| text(found, s).contains(&lower));
        let matches = match wanted.is_empty() {
            true => Vec::new(),
            false => self.visible.iter().filter(is_source).filter(fits).map(|row| row.at()).collect(),
        };
        self.search = TextSearch { text: wanted, matches };
    }

    /// The row under the cursor.
    pub fn here(&self) -> Option<RootCauseRow> {
        self.visible.get(self.row).copied()
    }

    /// Position of the anomaly under the cursor.
    pub fn anomaly(&self, found: &AnomalyReport) -> Option<u32> {
        Some(self.here()?.occurrence(found)?.anomaly)
    }

    /// Put the cursor on a row, if it shows.
    pub fn go_to(&mut self, row: RootCauseRow) -> bool {
        let at = self.visible.iter().position(|v| *v == row);
        self.row = at.unwrap_or(self.row);
        at.is_some()
    }

    /// Show or hide the occurrences of a source.
    pub fn toggle(&mut self, found: &AnomalyReport, at: u32) {
        if !self.open.remove(&at) {
            self.open.insert(at);
        }
        self.rebuild(found);
        self.go_to(RootCauseRow::Source(at));
    }

    /// RowName of a row under any settings.
    pub fn name(&self, found: &AnomalyReport, row: RootCauseRow) -> Option<RowName> {
        let source = row.source(found)?;
        let words = Words::of(source);
        let start = match row {
            RootCauseRow::Source(_) => None,
            RootCauseRow::Occurrence(..) => Some(row.occurrence(found)?.span.start),
        };
        // The number of threads of a pool, and whether it is noise, may change.
        let function = source.function.as_deref().unwrap_or("");
        Some(RowName { root_cause: format!("{} {} {} {function}", source.name, source.what, words.to), start })
    }

    /// Names of the sources that are open.
    pub fn open_names(&self, found: &AnomalyReport) -> Vec<RowName> {
        self.open.iter().filter_map(|at| self.name(found, RootCauseRow::Source(*at))).collect()
    }

    /// Open those that have one of these names.
    pub fn reopen(&mut self, found: &AnomalyReport, names: &[RowName]) {
        let all = 0..found.anomalies.sources.len() as u32;
        let open = all.filter(|at| {
            !names.is_empty() && self.name(found, RootCauseRow::Source(*at)).is_some_and(|n| names.contains(&n))
        });
        self.open = open.collect();
    }
}
