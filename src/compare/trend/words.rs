//! What a trend shows, in sentences with figures.
//!
//! In: a [`Trend`]. Out: the answer, a sentence for each change, for its causes, for its hosts, and for the host that
//! differs. What is not known is said as that: too few points are no sign that nothing changed.

use super::changes::FEWEST_POINTS;
use super::hosts::{HostAtChange, HostLevel, HostMove};
use super::series::{PointUnit, TrendPoint};
use super::{ChangeSearch, Trend, TrendChange, factor};
use crate::base::figure;
use crate::base::statistics::median;
use crate::base::time::Ns;
use crate::compare::partials::PartialCause;

/// Hosts that a sentence names.
const NAMED: usize = 3;
/// Figures of a date and time up to the minute.
const MINUTES: usize = 16;

fn time(ns: Ns) -> String {
    figure::time(ns as f64)
}

/// A ratio as a difference: `+160%`.
fn more(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    if percent.abs() < 9.95 { format!("{percent:+.1}%") } else { format!("{percent:+.0}%") }
}

fn chance(p: f64) -> String {
    if p <= 0.001 { "p <= 0.001".to_owned() } else { format!("p = {p:.3}") }
}

/// When a point was, and what it is called.
pub fn place(trend: &Trend, point: &TrendPoint) -> String {
    let when = point.time().map(|time| time.chars().take(MINUTES).collect::<String>());
    match (trend.unit, when) {
        (PointUnit::Day | PointUnit::Hour | PointUnit::Minute, _) | (_, None) => point.name.clone(),
        (_, Some(when)) => format!("{when} ({})", point.name),
    }
}

/// The points that have enough executions, in words: `30 recordings`.
fn points(trend: &Trend, n: usize) -> String {
    figure::counted(n as u64, trend.unit.name())
}

/// The answer, one sentence after the other.
pub fn answer(trend: &Trend) -> Vec<String> {
    let mut all = match (trend.search, trend.largest()) {
        (ChangeSearch::Unordered, _) => vec![beside_each_other(trend)],
        (ChangeSearch::TooFew { points: n }, _) => too_few(trend, n),
        (ChangeSearch::Done, None) => vec![steady(trend)],
        (ChangeSearch::Done, Some(largest)) => {
            let others = trend.changes.len() - 1;
            let mut all = vec![change(trend, largest)];
            all.extend(cause(largest));
            all.extend(at_change(&largest.hosts));
            if others > 0 {
                all.push(format!("{} more below.", figure::plural(others as u64, "change")));
            }
            all
        }
    };
    all.extend(host(trend));
    all
}

/// The sentence of a change.
pub fn change(trend: &Trend, change: &TrendChange) -> String {
    let verb = if change.rises() { "rose" } else { "fell" };
    let (before, after) = (change.before.level_ns, change.after.level_ns);
    let at = trend.points.get(change.at).map_or_else(String::new, |point| place(trend, point));
    format!(
        "{} of {} {verb} from {} to {} ({}) at {at}: {} before, {} from then on ({}).",
        trend.figure,
        trend.task,
        time(before),
        time(after),
        more(change.ratio()),
        points(trend, change.before.points.len()),
        points(trend, change.after.points.len()),
        chance(change.p_value)
    )
}

/// What takes longer after a change, or less long, in the direction in which the mean moved.
pub fn cause(change: &TrendChange) -> Option<String> {
    let comparison = change.comparison.as_ref()?;
    let extra = comparison.extra_ns;
    let direction = if extra < 0 { "less" } else { "more" };
    let mean = format!("An execution takes {} {direction} on average", time(extra.saturating_abs()));
    let is_of_it = |cause: &&PartialCause| cause.rank.is_some() && cause.extra_ns.signum() == extra.signum();
    let Some(PartialCause { phrase, extra_ns, share, .. }) = comparison.causes.iter().find(is_of_it) else {
        return Some(format!("{mean}."));
    };
    let (extra, share) = (figure::extra(*extra_ns as f64), figure::share(*share));
    Some(format!("{mean}, most of it: {phrase} ({extra}, {share})."))
}

/// Which hosts moved at a change; nothing of a single host.
pub fn at_change(hosts: &[HostAtChange]) -> Option<String> {
    if hosts.len() < 2 {
        return None;
    }
    let of = |wanted: HostMove| hosts.iter().filter(move |host| host.moved == wanted);
    let [moved, stayed, too_few] =
        [HostMove::Moved, HostMove::Stayed, HostMove::TooFew].map(|wanted| of(wanted).count());
    if hosts.iter().all(|host| host.ratio().is_none()) {
        return Some("No host has points on both sides: other hosts may be the whole change.".to_owned());
    }
    let but = |n: usize| if n == 0 { String::new() } else { format!("; {} with too few points", hosts_of(n)) };
    Some(match (moved, stayed) {
        (0, 0) => {
            let both = hosts.iter().filter_map(HostAtChange::ratio);
            let (rose, all) = both.fold((0, 0), |(rose, all), ratio| (rose + u64::from(ratio > 1.0), all + 1));
            format!("Each host has too few points to say which of them moved: of {} {rose} rose.", hosts_of(all))
        }
        (0, _) => format!("No host moved by itself beyond chance{}.", but(too_few)),
        (_, 0) => {
            format!("All {} moved together ({}){}.", hosts_of(moved), range_of(of(HostMove::Moved)), but(too_few))
        }
        (1, _) => format!(
            "Only host {} moved ({}); the others by {}{}.",
            names(of(HostMove::Moved).map(|host| host.name.as_str()), 1),
            range_of(of(HostMove::Moved)),
            range_of(of(HostMove::Stayed)),
            but(too_few)
        ),
        _ => format!(
            "{moved} of {} moved ({}): {}; the others by {}{}.",
            hosts_of(moved + stayed),
            range_of(of(HostMove::Moved)),
            names(of(HostMove::Moved).map(|host| host.name.as_str()), moved),
            range_of(of(HostMove::Stayed)),
            but(too_few)
        ),
    })
}

fn hosts_of(n: usize) -> String {
    figure::counted(n as u64, "host")
}

/// The first names of `n`.
fn names<'a>(all: impl Iterator<Item = &'a str>, n: usize) -> String {
    let named: Vec<&str> = all.take(NAMED).map(|name| if name.is_empty() { "without a name" } else { name }).collect();
    let rest = if n > named.len() { format!(" and {} more", n - named.len()) } else { String::new() };
    format!("{}{rest}", named.join(", "))
}

/// By how much hosts moved: `+140%`, `-2.0% to +3.1%`.
fn range_of<'a>(hosts: impl Iterator<Item = &'a HostAtChange>) -> String {
    let mut ratios: Vec<f64> = hosts.filter_map(HostAtChange::ratio).collect();
    ratios.sort_by(f64::total_cmp);
    match &ratios[..] {
        [] => "an unknown amount".to_owned(),
        [one] => more(*one),
        [least, .., most] => format!("{} to {}", more(*least), more(*most)),
    }
}

/// The host that differs from the others at the same time.
pub fn host(trend: &Trend) -> Option<String> {
    let differing = || trend.hosts.iter().filter(|host| host.differs());
    let times = |host: &HostLevel| host.highest.max(host.lowest);
    let Some(most) = differing().max_by(|a, b| factor(a.ratio).total_cmp(&factor(b.ratio))) else {
        return not_differing(trend);
    };
    let what = if most.highest >= most.lowest { "highest" } else { "lowest" };
    let others = differing().count() - 1;
    let others = if others == 0 { String::new() } else { format!("; {} more below", hosts_of(others)) };
    Some(format!(
        "Host {} differs: the {what} {} of all hosts in {} of {}, {:.2} times the others' median ({}){others}.",
        names([most.name.as_str()].into_iter(), 1),
        trend.figure,
        times(most),
        figure::counted(most.compared, stretch(trend)),
        most.ratio,
        chance(most.p_value.unwrap_or(1.0)),
    ))
}

/// What hosts are compared in.
fn stretch(trend: &Trend) -> &'static str {
    trend.hosts_by.name()
}

fn not_differing(trend: &Trend) -> Option<String> {
    if trend.host_count < 2 {
        return None;
    }
    let what = stretch(trend);
    Some(match trend.hosts.iter().map(|host| host.compared).max() {
        None => format!("Hosts cannot be compared: no two of them have enough executions in one {what} with a date."),
        Some(_) if trend.hosts.iter().any(|host| host.p_value.is_some()) => {
            format!("No host differs from the others of its {what} beyond chance.")
        }
        Some(n) => {
            format!("Too few {what}s to say whether a host differs from the others: {}.", figure::counted(n, what))
        }
    })
}

/// The least and the largest figure of the points.
fn extremes(trend: &Trend) -> Option<[(Ns, &TrendPoint); 2]> {
    let figures = || trend.points.iter().filter_map(|point| Some((point.figure_ns?, point)));
    let least = figures().min_by_key(|(figure, _)| *figure)?;
    Some([least, figures().max_by_key(|(figure, _)| *figure)?])
}

/// Hosts beside each other, which have no order.
fn beside_each_other(trend: &Trend) -> String {
    let (figure, task) = (trend.figure, &trend.task);
    let Some([(least, low), (most, high)]) = extremes(trend) else {
        let fewest = figure.fewest_executions();
        return format!("Too few executions for {figure} of {task}: no host has {fewest} or more.");
    };
    let name = |point: &TrendPoint| names([point.name.as_str()].into_iter(), 1);
    if low.id == high.id {
        let low = name(low);
        return format!("{figure} of {task} is {} on host {low}; no other host has enough executions.", time(least));
    }
    let (low, high) = (name(low), name(high));
    format!("{figure} of {task} is from {} (host {low}) to {} (host {high}).", time(least), time(most))
}

fn steady(trend: &Trend) -> String {
    let figures: Vec<Ns> = trend.points.iter().filter_map(|point| point.figure_ns).collect();
    let n = points(trend, figures.len());
    let (least, most) = (figures.iter().min().copied().unwrap_or(0), figures.iter().max().copied().unwrap_or(0));
    let median = median(figures);
    format!(
        "{} of {} did not change beyond chance over {n}: median {}, from {} to {}.",
        trend.figure,
        trend.task,
        time(median),
        time(least),
        time(most)
    )
}

fn too_few(trend: &Trend, n: usize) -> Vec<String> {
    let fewest = trend.figure.fewest_executions();
    let of = |n: usize| points(trend, n);
    let mut all = vec![format!(
        "Too few points to say whether {} of {} changed: {} with {fewest} executions or more, and {FEWEST_POINTS} are \
         needed.",
        trend.figure,
        trend.task,
        of(n)
    )];
    let figures: Vec<(Ns, &TrendPoint)> =
        trend.points.iter().filter_map(|point| Some((point.figure_ns?, point))).collect();
    let ratio = |pair: &[(Ns, &TrendPoint)]| pair[1].0 as f64 / pair[0].0.max(1) as f64;
    let step = |pair: &[(Ns, &TrendPoint)]| factor(ratio(pair));
    if let Some(pair) = figures.windows(2).max_by(|a, b| step(a).total_cmp(&step(b))) {
        let ratio = ratio(pair);
        let (before, after) = (time(pair[0].0), time(pair[1].0));
        all.push(format!(
            "The largest step is from {before} to {after} ({}) at {}; `whyslow diff` compares two sides.",
            more(ratio),
            place(trend, pair[1].1)
        ));
    }
    all
}
