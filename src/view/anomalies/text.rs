//! Anomalies as text: the verdict, the table of root causes, and their paths step by step.

use super::paths;
use super::verdict::verdict;
use super::words::{examined, of_source};
use crate::base::notice::Notices;
use crate::base::{clean, figure};
use crate::model::anomalies::Anomalies;
use crate::model::root_cause::RootCause;
use crate::model::settings::ThresholdRule;
use crate::view::compared_causes::ComparedCauses;
use crate::view::waiting;
use std::fmt::Write;

/// How much of each list is shown as text; the JSON has all.
#[derive(Clone, Copy, Debug)]
pub struct ListBounds {
    /// Root causes, and single delays below them.
    pub sources: usize,
    /// Steps of a path, and lines for its other victims.
    pub victims: usize,
    /// Rows of waits without a known cause.
    pub waits: usize,
    pub patterns: usize,
    /// Rows of strips; 0: without them.
    pub rows: usize,
}

impl ListBounds {
    /// As much as one reads at a glance.
    pub const FIRST: ListBounds = ListBounds { sources: 10, victims: 8, waits: 5, patterns: 30, rows: 8 };
    /// Everything.
    pub const ALL: ListBounds = ListBounds {
        sources: usize::MAX,
        victims: usize::MAX,
        waits: usize::MAX,
        patterns: usize::MAX,
        rows: usize::MAX,
    };
}

/// The text for people; `compared` is the result of comparing the same executions.
pub fn text(found: &Anomalies, notices: &Notices, compared: Option<&ComparedCauses>, shown: ListBounds) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write(found, notices, compared, shown, &mut out);
    out
}

fn write(
    found: &Anomalies,
    notices: &Notices,
    compared: Option<&ComparedCauses>,
    shown: ListBounds,
    out: &mut String,
) -> std::fmt::Result {
    writeln!(out, "{}", verdict(found))?;
    if let Some(compared) = compared {
        writeln!(out, "Comparison: {}", compared.sentence)?;
    }
    if found.sources.iter().all(|s| s.idle) {
        writeln!(out, "{}", examined(found, notices))?;
    }
    write_sources(found, compared, shown, out)?;
    paths::write_unexplained(found, shown, out)?;
    paths::write(found, shown, out)?;
    if let Some(w) = &found.waiting {
        waiting::write(w, shown.rows, out)?;
        if let Some(sentence) = w.sentence() {
            writeln!(out, "{}", clean::line(&sentence))?;
        }
    }
    let s = &found.summary;
    let step = if found.examined.executions.is_some() { "hop" } else { "message" };
    writeln!(
        out,
        "\n{} patterns, {} selected ({}): {} anomalies, {}, {}, longest path {}",
        s.patterns,
        s.selected,
        rule(found.limit, found.q, found.s),
        s.anomalies,
        figure::plural(found.sources.len() as u64, "root cause"),
        figure::plural(found.times(), "time"),
        figure::plural(s.longest_path, step)
    )?;
    writeln!(out, "{:>9} {:>11} {:>11} {:>11}  pattern", "times", "reference", "limit", "longest")?;
    for p in found.patterns.iter().take(shown.patterns) {
        let [reference, limit, longest] = [p.max_ref_ns, p.limit_ns, p.longest_ns].map(figure::duration);
        let (name, reason) = (clean::text(&p.name), p.verdict.reason());
        writeln!(out, "{:>9} {reference:>11} {limit:>11} {longest:>11}  {name} ({reason})", p.occurrences)?;
    }
    if let Some(more) = found.patterns.len().checked_sub(shown.patterns).filter(|more| *more > 0) {
        writeln!(out, "{:>9} more with --all", format!("{more}"))?;
    }
    for warning in notices.sentences() {
        writeln!(out, "note: {}", clean::line(&warning))?;
    }
    Ok(())
}

/// The rule after the limits: `q 0.75, s 2`.
pub fn rule(limit: ThresholdRule, q: f64, s: f64) -> String {
    match limit {
        ThresholdRule::Quotient => format!("q {q}, s {s}"),
        ThresholdRule::Robust => format!("robust limit, s {s}"),
    }
}

/// The table of root causes, those that caused most delay first.
fn write_sources(
    found: &Anomalies,
    compared: Option<&ComparedCauses>,
    bound: ListBounds,
    out: &mut String,
) -> std::fmt::Result {
    let shown: Vec<&RootCause> = found.sources.iter().take(bound.sources).collect();
    if shown.is_empty() {
        return Ok(());
    }
    let of_executions = found.examined.executions.is_some();
    let executions = if of_executions { " executions" } else { "" };
    let cause = if compared.is_some() { " cause" } else { "" };
    writeln!(out, "\n{:>11} {:>7}{executions} {:>11} {:>11}{cause}  root cause", "delay", "times", "first", "last")?;
    let mut before = None;
    for (at, source) in shown.into_iter().enumerate() {
        let part = (source.idle, of_executions && !source.in_executions);
        if part != before.unwrap_or((false, false)) {
            let title = if source.idle {
                "idle, waiting for work (neither root cause nor victim)"
            } else {
                "outside executions"
            };
            writeln!(out, "{:>11} {title}:", "")?;
        }
        before = Some(part);
        let span = source.span();
        let [first, last] = [span.start, span.end].map(|t| figure::stamp(t - found.origin));
        let delay = if source.affected_ns > 0 { source.affected_ns } else { source.excess_ns };
        let executions = if of_executions { format!(" {:>10}", source.executions) } else { String::new() };
        let (delay, times, words) = (figure::duration(delay), source.occurrences.len(), of_source(source));
        let rank = |compared: &ComparedCauses| compared.of(at).map_or("-".to_owned(), |rank| rank.to_string());
        let cause = compared.map_or_else(String::new, |compared| format!(" {:>5}", rank(compared)));
        writeln!(out, "{delay:>11} {times:>7}{executions} {first:>11} {last:>11}{cause}  {words}")?;
    }
    if let Some(more) = found.sources.len().checked_sub(bound.sources).filter(|more| *more > 0) {
        writeln!(out, "{:>11} {more} more root causes with --all", "")?;
    }
    Ok(())
}
