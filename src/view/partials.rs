//! The comparison of a fleet from partial results: text for people.
//!
//! In: a comparison, with the contexts and names. Out: the groups, the causes, the contexts that differ most and the
//! hosts. Cost: a sort of the contexts.

use super::page::Page;
use crate::base::{clean, figure};
use crate::compare::frame_text;
use crate::compare::partials::{ComparedHost, PartialCause, PartialComparison, PartialGroup};
use crate::model::Model;
use std::fmt::Write;

/// Contexts listed, and hosts.
const LISTED: usize = 20;

/// Columns before a context.
const MARGIN: usize = 35;

/// As many of the innermost frames, which come first, as have room, and at least one.
fn innermost(frames: impl Iterator<Item = String>, width: usize) -> String {
    let mut path = String::new();
    for frame in frames {
        if path.is_empty() {
            path = frame;
        } else if path.chars().count() + frame.chars().count() + 1 + LEFT_OUT.len() <= width {
            path = format!("{frame};{path}");
        } else {
            return format!("{LEFT_OUT}{path}");
        }
    }
    path
}

/// In the place of the outer frames.
const LEFT_OUT: &str = "...;";

/// The groups of a fleet, as users type them: slow, fast.
pub type FleetFilters<'a> = [&'a [String]; 2];

/// The answer of `diff`.
pub fn diff(model: &Model, filters: FleetFilters<'_>, c: &PartialComparison, page: Page) -> String {
    let mut out = String::new();
    let task = model.tasks.get(model.task).map_or("", String::as_str);
    let (hosts, executions) = (c.hosts.len() as u64, figure::counted(c.executions, "execution"));
    let hosts = figure::counted(hosts, "host");
    page.wrap(&mut out, 0, &format!("Task {}: {executions} on {hosts}, from partial results", clean::line(task)));
    if !c.kept.are_all() {
        page.wrap(&mut out, 0, &c.kept.words());
    }
    for (name, (group, filters)) in ["slow", "fast"].into_iter().zip(c.groups.iter().zip(filters)) {
        page.wrap(&mut out, 0, &of_group(name, group, filters));
    }
    if c.unsure > 0 {
        let unsure = figure::counted(c.unsure, "execution");
        page.wrap(&mut out, 0, &format!("During {unsure} events were lost, or a wait has no cause"));
    }
    let extra = figure::time(c.extra_ns as f64);
    out.push('\n');
    page.wrap(&mut out, 0, &format!("The slow group takes {extra} more on average:"));
    for cause in &c.causes {
        page.wrap(&mut out, 2, &of_cause(cause));
    }
    out.push_str("\n      slow       fast difference   context\n");
    let mut nodes: Vec<_> = c.tree.nodes.iter().collect();
    nodes.sort_by(|a, b| b.self_delta_ns.abs().total_cmp(&a.self_delta_ns.abs()));
    for node in nodes.into_iter().take(LISTED).filter(|node| node.self_delta_ns != 0.0) {
        let path = model.contexts.path(node.context);
        let frames = path.into_iter().rev().map(|context| clean::line(&frame_text(model, context)));
        let path = innermost(frames, page.width().saturating_sub(MARGIN));
        let (slow, fast) = (figure::time(node.slow_mean_ns), figure::time(node.fast_mean_ns));
        let delta = figure::extra(node.delta_ns);
        let _ = writeln!(out, "{slow:>10} {fast:>10} {delta:>10}   {path}");
    }
    if c.tree.nodes.len() > LISTED {
        let rest = figure::count((c.tree.nodes.len() - LISTED) as u64);
        page.wrap(&mut out, 0, &format!("{rest} more contexts: --json"));
    }
    hosts_of(c, &mut out);
    out
}

fn of_group(name: &str, group: &PartialGroup, filters: &[String]) -> String {
    let PartialGroup { count, mean_ns, spread } = group;
    let filters: Vec<_> = filters.iter().map(|filter| clean::line(filter)).collect();
    let [mean, p50, p95] = [*mean_ns, spread.p50_ns, spread.p95_ns].map(|ns| figure::time(ns as f64));
    let executions = figure::counted(*count, "execution");
    format!("{name}: {executions} of {}; mean {mean}, p50 {p50}, p95 {p95} (within 1 %)", filters.join(", "))
}

fn of_cause(PartialCause { rank, extra_ns, share, phrase, .. }: &PartialCause) -> String {
    let rank = rank.map_or_else(|| "-".to_owned(), |rank| format!("{rank}."));
    let (extra, share) = (figure::extra(*extra_ns as f64), figure::share(*share));
    format!("{rank} {}: {extra} ({share})", clean::line(phrase))
}

/// The hosts with most slow executions in proportion.
fn hosts_of(c: &PartialComparison, out: &mut String) {
    let share = |host: &ComparedHost| host.groups[0].0 as f64 / host.executions.max(1) as f64;
    let mut hosts: Vec<&ComparedHost> = c.hosts.iter().collect();
    hosts.sort_by(|a, b| share(b).total_cmp(&share(a)).then_with(|| a.name.cmp(&b.name)));
    out.push_str("\nexecutions       slow  mean slow  mean fast   host\n");
    for host in hosts.iter().take(LISTED) {
        let mean = |(count, mean): (u64, i64)| if count == 0 { "-".to_owned() } else { figure::time(mean as f64) };
        let [slow, fast] = host.groups.map(mean);
        let (all, share) = (figure::count(host.executions), figure::share(share(host)));
        let _ = writeln!(out, "{all:>10} {share:>10} {slow:>10} {fast:>10}   {}", clean::line(&host.name));
    }
    if hosts.len() > LISTED {
        let _ = writeln!(out, "{} more hosts: --json", figure::count((hosts.len() - LISTED) as u64));
    }
}
