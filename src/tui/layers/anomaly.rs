//! Pages about patterns: the details of one anomaly, and the list of all patterns.

use super::details::moment;
use super::page::PageContent;
use crate::base::figure;
use crate::model::settings::PatternVerdict;
use crate::tui::actions::{Action, ActionScope};
use crate::tui::app::App;
use crate::tui::canvas::{width, wrap};
use crate::tui::details::{SampleExecution, samples_of_moment};
use crate::tui::report::AnomalyReport;
use crate::tui::theme::StyleScope;
use crate::tui::widget::page::{StyledLine, paragraph, plain};
use crate::view::anomalies::routed;
use std::cmp::Reverse;
use std::sync::Arc;

/// One anomaly.
#[derive(Debug)]
pub struct AnomalyPage {
    pub report: Arc<AnomalyReport>,
    pub at: u32,
}

impl PageContent for AnomalyPage {
    fn title(&self) -> &'static str {
        "Anomaly"
    }

    fn action(&self) -> Action {
        Action::Details
    }

    fn lines(&self, app: &App, columns: usize, example: usize) -> Vec<StyledLine> {
        lines(app, &self.report, self.at, example, columns)
    }

    fn samples(&self, app: &App) -> Option<Vec<SampleExecution>> {
        let samples = app.model.as_ref().zip(self.report.get(self.at));
        Some(samples.map_or(Vec::new(), |(model, anomaly)| samples_of_moment(model, anomaly.span)))
    }
}

/// All patterns.
#[derive(Debug)]
pub struct PatternsPage;

impl PageContent for PatternsPage {
    fn title(&self) -> &'static str {
        "Patterns: selected and rejected"
    }

    fn action(&self) -> Action {
        Action::ShowPatterns
    }

    fn lines(&self, app: &App, columns: usize, _: usize) -> Vec<StyledLine> {
        app.patterns.found.as_ref().map_or(Vec::new(), |report| patterns(report, columns))
    }

    fn scope(&self) -> ActionScope {
        ActionScope::Anomalies
    }
}

/// About an anomaly.
fn lines(app: &App, found: &AnomalyReport, at: u32, example: usize, columns: usize) -> Vec<StyledLine> {
    let Some(anomaly) = found.get(at) else { return Vec::new() };
    let mut lines = vec![vec![
        (StyleScope::Strong, found.place(anomaly.stream)),
        (StyleScope::Text, format!("  {}", found.role(at))),
        (StyleScope::Dim, format!("  at {}", figure::stamp(anomaly.span.start - app.origin()))),
    ]];
    let time = |ns: i64| figure::time(ns as f64);
    if let Some(pattern) = anomaly.pattern.and_then(|p| found.anomalies.patterns.get(p as usize)) {
        let cost = match anomaly.excess_ns {
            saved @ ..0 => format!("its call sequence saved {}", time(-saved)),
            excess if anomaly.only_differs() => format!("its call sequence cost {}", time(excess)),
            excess => format!("{} longer than usual", time(excess)),
        };
        // A factor says nothing where the reference takes almost no time.
        let times =
            if pattern.max_ref_ns < 1_000 { String::new() } else { format!("{:.1} times as long, ", anomaly.factor) };
        let text = format!(
            "took {}; the reference occurrences (the fastest of {}) took at most {}: {times}{cost}",
            time(anomaly.span.len()),
            figure::count(pattern.occurrences),
            time(pattern.max_ref_ns),
        );
        lines.extend(paragraph(StyleScope::Text, &text, columns, 0));
        lines.push(StyledLine::new());
        lines.push(plain(StyleScope::Strong, "Pattern"));
        lines.extend(paragraph(StyleScope::Text, &pattern.name, columns, 2));
    }
    lines.push(StyledLine::new());
    let blame = match () {
        () if anomaly.diffuse => "No single event explains it; the longest was",
        () if anomaly.only_differs() => "Where its calls differ from the other occurrences",
        () => "Events that took longer than usual",
    };
    lines.push(plain(StyleScope::Strong, blame));
    lines.push(plain(StyleScope::Dim, format!("{:>10} {:>9} {:>9}  event", "extra", "took", "usually")));
    for r in &anomaly.responsible {
        lines.push(vec![
            (StyleScope::Slow3, format!("{:>10} ", figure::extra(r.excess_ns as f64))),
            (StyleScope::Text, format!("{:>9} ", time(r.local.len()))),
            (StyleScope::Dim, format!("{:>9}  ", time(r.reference_ns))),
            (StyleScope::Text, routed(&r.what, r.kind, r.route)),
        ]);
        lines.push(plain(StyleScope::Dim, format!("{:32}at {} ns (stream clock)", "", r.local.start)));
    }
    if let Some(model) = &app.model {
        lines.push(StyledLine::new());
        moment(app, &samples_of_moment(model, anomaly.span), example, &mut lines);
    }
    lines
}

/// All patterns: those with the longest occurrence first, selected before rejected.
fn patterns(found: &AnomalyReport, columns: usize) -> Vec<StyledLine> {
    let mut all: Vec<_> = found.anomalies.patterns.iter().collect();
    all.sort_by_key(|p| (p.verdict != PatternVerdict::Selected, Reverse(p.longest_ns)));
    let mut lines = vec![plain(
        StyleScope::Dim,
        format!("{:>8} {:>9} {:>9} {:>9}  verdict: pattern", "times", "reference", "limit", "longest"),
    )];
    for p in all {
        let time = |ns: i64| figure::time(ns as f64);
        let selected = p.verdict == PatternVerdict::Selected;
        let scope = if selected { StyleScope::Text } else { StyleScope::Dim };
        let figures = format!(
            "{:>8} {:>9} {:>9} {:>9}  ",
            figure::count(p.occurrences),
            time(p.max_ref_ns),
            time(p.limit_ns),
            time(p.longest_ns)
        );
        let text = format!("{}: {}", p.verdict.reason(), p.name);
        // On narrow screens the pattern goes below its figures.
        let beside = columns >= 80;
        let indent = if beside { width(&figures) } else { 2 };
        let mut texts = wrap(&text, columns.saturating_sub(indent).max(1)).into_iter();
        lines.push(vec![
            (scope, figures),
            (scope, if beside { texts.next().unwrap_or_default() } else { String::new() }),
        ]);
        lines.extend(texts.map(|text| plain(scope, format!("{}{text}", " ".repeat(indent)))));
    }
    lines
}
