//! The summary of a comparison in Markdown, for a ticket: verdict, groups, causes, examples, data quality, caveats,
//! command.

use super::document::Report;
use super::examples::examples;
use crate::advice::questions::questions;
use crate::base::demangle::abbreviated;
use crate::base::figure;
use crate::compare::{Cause, Group, share_of_group};
use crate::view::markup::{Plain, code};
use crate::view::words;
use std::borrow::Cow;
use std::fmt::{self, Write};

/// Causes that are listed.
const CAUSES: usize = 5;

/// Slow executions that are listed.
const SLOWEST: usize = 3;

pub(super) fn summary(report: &Report<'_>) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write(report, &mut out);
    out
}

fn write(report: &Report<'_>, out: &mut String) -> fmt::Result {
    let (model, c) = (report.model, report.comparison);
    writeln!(out, "## {}\n", Plain(&c.verdict.sentence))?;
    if !c.verdict.confident {
        writeln!(out, "*Not confident: see the caveats.*\n")?;
    }
    if let Some(delays) = &c.verdict.delays {
        writeln!(out, "{}\n", Plain(delays))?;
    }
    let executions = figure::plural(model.executions.count(), "execution");
    writeln!(out, "Task {}, {executions}.\n", code(report.task()))?;
    writeln!(out, "| group | executions | mean | p50 | p95 | p99 | max | filters |")?;
    writeln!(out, "|---|---:|---:|---:|---:|---:|---:|---|")?;
    for (name, members) in report.groups() {
        group(out, name, members, model.executions.count())?;
    }
    writeln!(out, "\n### {}\n", report.causes_title())?;
    writeln!(out, "| | extra | share | in slow executions | cause |\n|---:|---:|---:|---:|---|")?;
    for cause in c.causes.iter().take(CAUSES) {
        let rank = cause.rank.map_or_else(String::new, |rank| rank.to_string());
        let (extra, share) = (figure::extra(cause.extra_ns as f64), c.share(cause.share));
        let affected = affected(cause, c.slow.count);
        writeln!(out, "| {rank} | {extra} | {share} | {affected} | {} |", Plain(&cause.sentence))?;
    }
    if let Some(path) = c.causes.first().map(path_of).filter(|path| !path.is_empty()) {
        writeln!(out, "\nFirst cause: {}", code(&path))?;
    }
    let differences = report.differences();
    if !differences.is_empty() {
        writeln!(out, "\n### Also different\n")?;
        for sentence in &differences {
            writeln!(out, "- {}", Plain(sentence))?;
        }
    }
    let examples = examples(model, c, SLOWEST);
    if !examples.is_empty() {
        writeln!(
            out,
            "\n### Examples\n\n| group | execution | starts at | duration | thread |\n|---|---:|---|---:|---|"
        )?;
    }
    for e in examples {
        let start = e.time_of_day.map_or_else(|| e.start.clone(), |time| format!("{} ({time} UTC)", e.start));
        writeln!(out, "| {} | {} | {start} | {} | {} |", e.group, e.number, e.duration, Plain(&e.thread))?;
    }
    writeln!(out, "\n### Data quality\n")?;
    for answered in questions(model) {
        if let Some(share) = answered.share() {
            writeln!(out, "- {}: known for {} of the time", answered.question, figure::share(share))?;
        }
    }
    if !c.warnings.is_empty() {
        writeln!(out, "\n### Caveats\n")?;
        for warning in &c.warnings {
            writeln!(out, "- {}", Plain(warning))?;
        }
    }
    writeln!(out, "\n### Reproduce\n\n    {}", crate::base::clean::line(report.command))
}

fn group(out: &mut String, name: &str, group: &Group, of: u64) -> fmt::Result {
    let filters: Vec<String> = group.filters.iter().map(words::filter_in_short).collect();
    let filters = if filters.is_empty() { String::new() } else { code(&filters.join(", ")).replace('|', "\\|") };
    let spread = group.spread.map_or_else(Default::default, |spread| words::spread_parts(spread).map(|(_, ns)| ns));
    let (count, mean) = (group.count, figure::time(group.mean_ns as f64));
    writeln!(out, "| {name} | {count} of {of} | {mean} | {} | {filters} |", spread.join(" | "))
}

/// The part of the slow executions that have a cause; nothing for the sum of the small ones.
pub(super) fn affected(cause: &Cause, slow: u64) -> String {
    cause.rank.map_or_else(String::new, |_| share_of_group(cause.slow_affected, slow))
}

/// The calling context of a cause in one line.
pub(super) fn path_of(cause: &Cause) -> String {
    let path: Vec<Cow<'_, str>> = cause.path.iter().map(|frame| abbreviated(words::frame_of_path(frame))).collect();
    path.join(" > ")
}
