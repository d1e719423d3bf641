//! A task over time: text for people.
//!
//! In: a trend. Out: the answer in sentences, the figure as a sparkline over the points, the changes, the points and
//! the hosts as tables, as wide as the page. Cost: linear in the points and hosts.

use super::page::{Page, cut, cut_front, sparkline};
use crate::base::{clean, figure};
use crate::compare::trend::hosts::HostLevel;
use crate::compare::trend::lengths::Figure;
use crate::compare::trend::series::TrendPoint;
use crate::compare::trend::{Trend, TrendChange, factor, words};
use std::collections::BTreeSet;
use std::fmt::Write;
use unicode_width::UnicodeWidthStr;

/// Points in the table, at most, and those that are shown around a change.
const LISTED: usize = 40;
const AROUND: usize = 3;
/// Hosts in the table.
const HOSTS: usize = 20;
/// Columns of a date and time up to the minute, of a bar, and of a sparkline in a table.
const WHEN: usize = 16;
const BAR: usize = 8;
/// Pages from which the kind of time, and the mean, have columns.
const WITH_KIND: usize = 96;
const WITH_MEAN: usize = 116;
/// Columns of a kind and its share.
const KIND: usize = 12;

/// The answer of `trend`.
pub fn text(trend: &Trend, page: Page) -> String {
    let mut out = String::new();
    for sentence in words::answer(trend) {
        page.wrap(&mut out, 0, &sentence);
    }
    out.push('\n');
    head(trend, page, &mut out);
    if trend.changes.len() > 1 {
        changes(trend, page, &mut out);
    }
    points(trend, page, &mut out);
    hosts(trend, page, &mut out);
    out
}

fn time(ns: i64) -> String {
    figure::time(ns as f64)
}

/// What there is, and the figure over the points.
fn head(trend: &Trend, page: Page, out: &mut String) {
    let executions = trend.points.iter().map(|point| point.executions).sum();
    let recordings: u64 = trend.points.iter().map(|point| point.recordings).max().unwrap_or(0);
    let each = if recordings > 1 { format!(" (up to {recordings} recordings each)") } else { String::new() };
    let [executions, points, hosts] =
        [(executions, "execution"), (trend.points.len() as u64, trend.unit.name()), (trend.host_count, "host")]
            .map(|(n, noun)| figure::counted(n, noun));
    page.wrap(out, 0, &format!("Task {}: {executions} in {points}{each} on {hosts}", clean::line(&trend.task)));
    let figures: Vec<Option<i64>> = trend.points.iter().map(|point| point.figure_ns).collect();
    let name = trend.figure.to_string();
    let columns = page.width().saturating_sub(name.width() + 2);
    let _ = writeln!(out, "{name}  {}", spark(&figures, columns, page).trim_end());
    if !trend.changes.is_empty() {
        let cells = figures.len().min(columns);
        let mut marks = vec![' '; cells];
        for change in &trend.changes {
            if let Some(mark) = marks.get_mut(cell_of(change.at, figures.len(), cells)) {
                *mark = if change.rises() { '^' } else { 'v' };
            }
        }
        let marks: String = marks.into_iter().collect();
        let _ = writeln!(out, "{}  {}", " ".repeat(name.width()), marks.trim_end());
    }
}

/// The cell of a point where `points` share `cells`.
fn cell_of(point: usize, points: usize, cells: usize) -> usize {
    if points <= cells { point } else { point * cells / points.max(1) }
}

/// Figures as a line of at most so many cells; blank where there is none.
fn spark(figures: &[Option<i64>], columns: usize, page: Page) -> String {
    let cells = figures.len().min(columns);
    let mut by_cell: Vec<Vec<i64>> = vec![Vec::new(); cells];
    for (at, value) in figures.iter().enumerate() {
        if let (Some(value), Some(cell)) = (value, by_cell.get_mut(cell_of(at, figures.len(), cells))) {
            cell.push(*value);
        }
    }
    let most = figures.iter().flatten().copied().max().unwrap_or(0).max(1) as f64;
    // The largest of a cell: what was slow is not hidden by its neighbours.
    let scaled = |cell: &Vec<i64>| cell.iter().max().map_or(0, |value| (*value as f64 / most * 1e3).max(1.0) as u32);
    sparkline(&by_cell.iter().map(scaled).collect::<Vec<u32>>(), page.is_ascii())
}

fn changes(trend: &Trend, page: Page, out: &mut String) {
    out.push_str("\nChanges, in their order:\n");
    for change in &trend.changes {
        let TrendChange { hosts, .. } = change;
        let sentences = [Some(words::change(trend, change)), words::cause(change), words::at_change(hosts)];
        page.wrap(out, 2, &sentences.into_iter().flatten().collect::<Vec<String>>().join(" "));
    }
}

/// The positions of the points that the table has.
fn listed(trend: &Trend) -> BTreeSet<usize> {
    let n = trend.points.len();
    if n <= LISTED {
        return (0..n).collect();
    }
    let mut all: BTreeSet<usize> = (0..AROUND).chain(n.saturating_sub(LISTED / 2)..n).collect();
    let mut changes: Vec<&TrendChange> = trend.changes.iter().collect();
    changes.sort_by(|a, b| factor(b.ratio()).total_cmp(&factor(a.ratio())));
    for change in changes {
        if all.len() < LISTED {
            all.extend(change.at.saturating_sub(AROUND)..(change.at + AROUND).min(n));
        }
    }
    all
}

fn points(trend: &Trend, page: Page, out: &mut String) {
    // The figure has the column of p95 where it has none of its own.
    let followed = match trend.figure {
        Figure::Percentile(percent) if ![50.0, 99.0].contains(&percent) => trend.figure.to_string(),
        _ => "p95".to_owned(),
    };
    let unit = trend.unit.name();
    let _ = write!(out, "\n  {:WHEN$} executions {:>9} {followed:>9} {:>9} ", "first execution", "p50", "p99");
    if page.width() >= WITH_MEAN {
        let _ = write!(out, "{:>9} ", "mean");
    }
    let _ = write!(out, "{:BAR$} ", trend.figure.to_string());
    if page.width() >= WITH_KIND {
        let _ = write!(out, "{:KIND$} ", "most time");
    }
    let _ = writeln!(out, "{unit}");
    let shown = listed(trend);
    let most = trend.points.iter().filter_map(|point| point.figure_ns).max().unwrap_or(0).max(1);
    let mut next = 0;
    for at in &shown {
        if *at > next {
            let _ = writeln!(out, "  ... {} more: --json", figure::count((at - next) as u64));
        }
        next = at + 1;
        let changed = trend.changes.iter().find(|change| change.at == *at);
        let mark = changed.map_or(' ', |change| if change.rises() { '^' } else { 'v' });
        let line = row(trend, &trend.points[*at], most, page);
        let _ = writeln!(out, "{mark} {}", line.trim_end());
    }
}

/// The row of a point, without the mark of a change.
fn row(trend: &Trend, point: &TrendPoint, most: i64, page: Page) -> String {
    let when = point.time().map_or_else(|| "-".to_owned(), |time| time.chars().take(WHEN).collect());
    let followed = match (trend.figure, point.figure_ns) {
        (Figure::Percentile(percent), Some(ns)) if ![50.0, 99.0].contains(&percent) => ns,
        _ => point.spread.p95_ns,
    };
    let count = figure::count(point.executions);
    let [p50, followed, p99, mean] = [point.spread.p50_ns, followed, point.spread.p99_ns, point.mean_ns].map(time);
    let mut line = format!("{when:WHEN$} {count:>10} {p50:>9} {followed:>9} {p99:>9} ");
    if page.width() >= WITH_MEAN {
        let _ = write!(line, "{mean:>9} ");
    }
    let bar = point.figure_ns.map_or_else(|| "too few".to_owned(), |ns| page.bar(ns as f64 / most as f64, BAR));
    let _ = write!(line, "{bar}{} ", " ".repeat(BAR.saturating_sub(bar.width())));
    if page.width() >= WITH_KIND {
        let all: u128 = point.kinds.iter().map(|(_, ns)| *ns).sum();
        let kind = point.kinds.first().map_or_else(String::new, |(kind, ns)| {
            let name = kind.name().trim_start_matches("blocked.");
            format!("{name} {}", figure::share(*ns as f64 / all.max(1) as f64))
        });
        let _ = write!(line, "{:KIND$} ", cut(&kind, KIND));
    }
    let left = page.width().saturating_sub(line.width() + 2);
    line + &cut_front(&clean::line(&point.name), left, page.is_ascii())
}

/// The hosts, those that differ first.
fn hosts(trend: &Trend, page: Page, out: &mut String) {
    if trend.by_host.is_empty() {
        return;
    }
    let level = |name: &str| trend.hosts.iter().find(|host| host.name == name);
    let size = |host: Option<&HostLevel>| host.map_or(1.0, |host| factor(host.ratio));
    let mut names: Vec<&String> = trend.by_host.keys().collect();
    names.sort_by(|a, b| {
        let key = |name: &str| level(name).is_some_and(HostLevel::differs);
        key(b).cmp(&key(a)).then_with(|| size(level(b)).total_cmp(&size(level(a)))).then_with(|| a.cmp(b))
    });
    let widest = names.iter().map(|name| clean::line(name).width()).max().unwrap_or(0);
    let columns = (page.width() / 3).min(trend.points.len()).max(BAR);
    let name_columns = widest.clamp(4, page.width().saturating_sub(columns + 38).max(4));
    let title = trend.figure.to_string();
    let _ = writeln!(out, "\n  {:name_columns$} x others   highest    lowest  differs  {title}", "host");
    for name in names.iter().take(HOSTS) {
        let shown = cut(&clean::line(name), name_columns);
        let pad = " ".repeat(name_columns.saturating_sub(shown.width()));
        let figures = match level(name) {
            Some(host) => {
                let of = |times: u64| format!("{times} of {}", host.compared);
                let differs = if host.differs() { "yes" } else { "-" };
                format!("{:>8.2} {:>9} {:>9}  {differs:7}", host.ratio, of(host.highest), of(host.lowest))
            }
            None => format!("{:>8} {:>9} {:>9}  {:7}", "-", "-", "-", "-"),
        };
        let spark = spark(&trend.by_host[*name], columns, page);
        let _ = writeln!(out, "  {shown}{pad} {figures}  {}", spark.trim_end());
    }
    if names.len() > HOSTS {
        let _ = writeln!(out, "  {} more hosts: --json", figure::count((names.len() - HOSTS) as u64));
    }
}
