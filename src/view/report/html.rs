//! The report as one HTML page: verdict, groups, causes, examples, flame graphs, metrics, data quality, caveats,
//! command.

use super::document::Report;
use super::examples::{drawn, examples};
use super::flame::{self, Widths};
use super::heat;
use super::histograms;
use super::markdown::{affected, path_of};
use super::timelines::{self, DrawnExecution};
use crate::advice::questions::questions;
use crate::base::figure;
use crate::base::time::Timestamp;
use crate::model::Model;
use crate::model::metric::Metric;
use crate::view::markup::Escaped;
use crate::view::thread_lanes::picture;
use crate::view::words;
use std::fmt::{self, Write};

/// Slow executions that are listed.
const SLOWEST: usize = 15;
const STYLE: &str = include_str!("report.css");

pub(super) fn page(report: &Report<'_>) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write(report, &mut out);
    out
}

fn write(report: &Report<'_>, out: &mut String) -> fmt::Result {
    let (model, c) = (report.model, report.comparison);
    let verdict = Escaped(&c.verdict.sentence);
    let version = env!("CARGO_PKG_VERSION");
    writeln!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"whyslow {version}\">\n\
         <title>{verdict}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{verdict}</h1>"
    )?;
    if !c.verdict.confident {
        writeln!(out, "<p class=\"unsure\">Not confident: see the caveats.</p>")?;
    }
    if let Some(delays) = &c.verdict.delays {
        writeln!(out, "<p>{}</p>", Escaped(delays))?;
    }
    let executions = figure::plural(model.executions.count(), "execution");
    writeln!(out, "<p>Task <code>{}</code>, {executions}.{}</p>", Escaped(report.task()), Escaped(&recorded(model)))?;
    writeln!(out, "<pre>{}</pre>", Escaped(report.command))?;
    groups(report, out)?;
    causes(report, out)?;
    heat_map(report, out)?;
    differences(report, out)?;
    example_table(report, out)?;
    timelines(report, out)?;
    threads(report, out)?;
    writeln!(out, "<h2>Where the time goes</h2>\n<div class=\"wide\">{}</div>", flame::element(report, Widths::Slow))?;
    if !c.fast.members.is_empty() {
        writeln!(out, "<div class=\"wide\">{}</div>", flame::element(report, Widths::Fast))?;
    }
    writeln!(
        out,
        "<h2>Metrics</h2>\n<p><span class=\"slow\">slow</span> executions above, <span class=\"fast\">fast</span> ones \
         below, each scaled to its largest bar</p>\n<div class=\"metrics\">{}</div>",
        histograms::elements(report)
    )?;
    quality(report, out)?;
    writeln!(out, "<p class=\"dim\">whyslow {version}</p>")?;
    writeln!(out, "<script>\n{}</script>\n</body>\n</html>", flame::SCRIPT)
}

/// When the recording began, how long it is, and on which hosts it was made:
/// ` Recorded 2026-11-20 09:45:55 UTC, 12.1 s, on db1.`
fn recorded(model: &Model) -> String {
    // Several recordings have no time in common.
    if model.executions.column(&Metric::Elapsed).is_some() {
        return String::new();
    }
    let span = model.span();
    let clock = figure::time_of_day(span.start.since(Timestamp::ZERO));
    let clock = clock.as_deref().map_or_else(String::new, |clock| {
        let seconds = clock.split('.').next().unwrap_or(clock);
        format!(" {seconds} UTC,")
    });
    let hosts: Vec<&str> = model.hosts().into_iter().collect();
    let on = if hosts.is_empty() { String::new() } else { format!(", on {}", hosts.join(", ")) };
    format!(" Recorded{clock} {}{on}.", figure::duration(span.len()))
}

fn groups(report: &Report<'_>, out: &mut String) -> fmt::Result {
    let spread = ["mean", "p50", "p95", "p99", "max"].map(|name| format!("<th class=\"n\">{name}")).concat();
    writeln!(out, "<table class=\"list\">\n<tr><th>group<th class=\"n\">executions{spread}<th>filters</tr>")?;
    for (name, group) in report.groups() {
        let filters: Vec<String> = group.filters.iter().map(words::filter_in_short).collect();
        let spread = group.spread.map_or_else(Default::default, |spread| words::spread_parts(spread).map(|(_, ns)| ns));
        let times = std::iter::once(figure::time(group.mean_ns as f64)).chain(spread);
        let times: Vec<String> = times.map(|time| format!("<td class=\"n\">{time}")).collect();
        writeln!(
            out,
            "<tr><td class=\"{name}\">{name}<td class=\"n\">{} of {}{}<td><code>{}</code></tr>",
            group.count,
            report.model.executions.count(),
            times.concat(),
            Escaped(&filters.join(", "))
        )?;
    }
    writeln!(out, "</table>")
}

fn causes(report: &Report<'_>, out: &mut String) -> fmt::Result {
    let c = report.comparison;
    let title = report.causes_title();
    writeln!(
        out,
        "<h2>{title}</h2>\n<table>\n<tr><th><th class=\"n\">extra<th class=\"n\">share<th class=\"bar\">\
         <th class=\"n\">in slow<th>cause</tr>"
    )?;
    let most = c.causes.iter().map(|cause| cause.share.abs()).fold(0.0, f64::max);
    for cause in &c.causes {
        let width = if most > 0.0 { 100.0 * cause.share.abs() / most } else { 0.0 };
        writeln!(
            out,
            "<tr><td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"bar\"><svg width=\"100\" \
             height=\"12\"><rect class=\"{}\" width=\"{width:.0}\" height=\"12\"/></svg><td class=\"n\">{}<td>{}<br>\
             <code class=\"dim\">{}</code></tr>",
            cause.rank.map_or_else(String::new, |rank| rank.to_string()),
            figure::extra(cause.extra_ns as f64),
            c.share(cause.share),
            if cause.extra_ns >= 0 { "slow" } else { "fast" },
            affected(cause, c.slow.count),
            Escaped(&cause.sentence),
            Escaped(&path_of(cause))
        )?;
    }
    writeln!(out, "</table>")
}

fn heat_map(report: &Report<'_>, out: &mut String) -> fmt::Result {
    let drawing = heat::element(report);
    if drawing.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "<h2>When, and how long</h2>\n<p>Start and duration of all executions: <span class=\"slow\">slow</span>, \
         <span class=\"fast\">fast</span>, others grey</p>\n<div class=\"wide\">{drawing}</div>"
    )
}

fn differences(report: &Report<'_>, out: &mut String) -> fmt::Result {
    let sentences = report.differences();
    if sentences.is_empty() {
        return Ok(());
    }
    writeln!(out, "<h2>Also different</h2>\n<ul>")?;
    for sentence in &sentences {
        writeln!(out, "<li>{}</li>", Escaped(sentence))?;
    }
    writeln!(out, "</ul>")
}

fn example_table(report: &Report<'_>, out: &mut String) -> fmt::Result {
    let examples = examples(report.model, report.comparison, SLOWEST);
    if examples.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "<h2>The slowest executions, and a typical fast one</h2>\n<div class=\"wide\">\n\
         <table class=\"list\">\n<tr><th>group\
         <th class=\"n\">execution<th>type<th class=\"n\">starts at<th>time of day (UTC)<th class=\"n\">duration\
         <th>waited for most<th>thread</tr>"
    )?;
    for e in examples {
        writeln!(
            out,
            "<tr><td class=\"{}\">{}<td class=\"n\">{}<td>{}<td class=\"n\">{}<td>{}<td class=\"n\">{}<td>{}<td>{}\
             </tr>",
            e.group,
            e.group,
            e.number,
            Escaped(&e.kind),
            e.start,
            e.time_of_day.as_deref().unwrap_or("unknown"),
            e.duration,
            Escaped(&e.longest_wait),
            Escaped(&e.thread)
        )?;
    }
    writeln!(out, "</table></div>")
}

fn threads(report: &Report<'_>, out: &mut String) -> fmt::Result {
    let Some(lanes) = report.threads.filter(|lanes| !lanes.lanes.is_empty()) else { return Ok(()) };
    let who = if lanes.of_ranks { "ranks" } else { "threads" };
    writeln!(
        out,
        "<h2>All {who} during the slowest execution</h2>\n<div class=\"wide\">{}</div>",
        picture::element(lanes, report.model.origin)
    )
}

fn timelines(report: &Report<'_>, out: &mut String) -> fmt::Result {
    let Some(model) = report.timelines else { return Ok(()) };
    let executions: Vec<DrawnExecution<'_>> = drawn(report.model, report.comparison)
        .into_iter()
        .filter_map(|(group, id)| Some(DrawnExecution { group, number: id.raw(), timeline: model.timelines.get(&id)? }))
        .collect();
    if executions.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "<h2>The slowest execution and a typical fast one</h2>\n<div class=\"wide\">{}</div>",
        timelines::element(model, &executions)
    )
}

fn quality(report: &Report<'_>, out: &mut String) -> fmt::Result {
    writeln!(out, "<h2>Data quality</h2>\n<table>\n<tr><th>question<th class=\"n\">known<th>to know more</tr>")?;
    for answered in questions(report.model) {
        let Some(share) = answered.share() else { continue };
        let remedy = if share < 1.0 { &*answered.remedy } else { "" };
        let share = figure::share(share);
        writeln!(out, "<tr><td>{}<td class=\"n\">{share}<td>{}</tr>", answered.question, Escaped(remedy))?;
    }
    writeln!(out, "</table>")?;
    if report.comparison.warnings.is_empty() {
        return Ok(());
    }
    writeln!(out, "<h2>Caveats</h2>\n<ul>")?;
    for warning in &report.comparison.warnings {
        writeln!(out, "<li>{}</li>", Escaped(warning))?;
    }
    writeln!(out, "</ul>")
}
