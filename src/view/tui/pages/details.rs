//! The details page: of a cause or a call path, or of a range of a metric.

use crate::base::figure;
use crate::base::time::Timestamp;
use crate::compare::{Comparison, Group, part};
use crate::model::metric::Unit;
use crate::view::tui::app::App;
use crate::view::tui::counts::HistogramRow;
use crate::view::tui::details::{Details, SampleExecution, StackRow};
use crate::view::tui::theme::{StyleScope, Theme};
use crate::view::tui::widget::page::{StyledLine, paragraph, plain};
use crate::view::words;
use std::ops::Range;

/// Its lines in this width.
pub fn lines(app: &App, details: &Details, columns: usize) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    match details {
        Details::Context { cause, path, threads, samples } => {
            if let Some(cause) = cause {
                let title = cause.rank.map_or("All small causes together".to_owned(), |r| format!("Cause {r}"));
                lines.push(plain(StyleScope::Strong, title));
                lines.extend(paragraph(StyleScope::Text, &cause.sentence, columns, 0));
                let kind = cause.kind.map_or("several kinds", words::kind);
                let comparison = app.comparison.as_ref();
                let share = comparison.map_or_else(String::new, |c| c.share(cause.share));
                let share = if share.is_empty() { share } else { format!(", {share} of the difference") };
                let members = |group: fn(&Comparison) -> &Group| comparison.map_or(0, |c| group(c).members.len());
                let text = format!(
                    "{kind}: {} per execution{share}; affects {} of the slow and {} of the fast executions",
                    figure::extra(cause.extra_ns as f64),
                    part(cause.slow_affected, members(|c| &c.slow)),
                    part(cause.fast_affected, members(|c| &c.fast))
                );
                lines.extend(paragraph(StyleScope::Dim, &text, columns, 0));
                lines.push(StyledLine::new());
            }
            stack(path, columns, &mut lines);
            if !threads.is_empty() {
                lines.push(StyledLine::new());
                lines.push(plain(StyleScope::Strong, "Threads involved"));
                for behind in threads {
                    lines.push(vec![
                        (StyleScope::Text, format!("{:>9}  ", figure::time(behind.ns as f64))),
                        (StyleScope::Text, behind.who.clone()),
                    ]);
                }
            }
            executions(app, samples, "here", |v| figure::time(v as f64), &mut lines);
        }
        Details::Range { row, bins, samples } => {
            range(row, bins, &mut lines);
            let unit = row.metric.unit();
            let name = |v: i64| row.bins.of(v).and_then(|bin| row.names.get(bin)).cloned();
            let text = |v: i64| name(v).unwrap_or_else(|| unit.rounded(v));
            executions(app, samples, &words::metric(&row.metric), text, &mut lines);
        }
    }
    lines
}

fn stack(path: &[StackRow], columns: usize, lines: &mut Vec<StyledLine>) {
    lines.push(vec![(StyleScope::Strong, "Full stack".to_owned())]);
    let figures = columns >= 60;
    if figures {
        let head = format!("{:>10} {:>9} {:>9} {:>7} {:>9}", "extra", "slow", "fast", "dev", "% of slow");
        lines.push(plain(StyleScope::Dim, head));
    }
    for (depth, step) in path.iter().enumerate() {
        let mut line = StyledLine::new();
        if let (true, Some(n)) = (figures, &step.node) {
            let scope = Theme::of_deviations(n.deviations);
            line.push((scope, format!("{:>10} ", figure::extra(n.delta_ns))));
            line.push((StyleScope::Text, format!("{:>9} ", figure::time(n.slow_mean_ns))));
            line.push((StyleScope::Dim, format!("{:>9} ", figure::time(n.fast_mean_ns))));
            line.push((scope, format!("{:>7} ", figure::deviations(n.deviations))));
            line.push((StyleScope::Dim, format!("{:>9} ", figure::share(n.slow_affected))));
        }
        line.push((StyleScope::Text, format!(" {}{}", " ".repeat(depth.min(columns / 3)), step.frame)));
        lines.push(line);
    }
    if let Some(n) = path.last().and_then(|s| s.node.as_ref()) {
        let p = n.p_value.map_or("not tested".to_owned(), |p| format!("{p:.1e}"));
        let text = format!(
            "self time: {}; p-value {p}; {} of the fast executions are affected",
            figure::extra(n.self_delta_ns),
            figure::share(n.fast_affected)
        );
        lines.extend(paragraph(StyleScope::Dim, &text, columns, 0));
    }
}

fn range(row: &HistogramRow, bins: &Range<usize>, lines: &mut Vec<StyledLine>) {
    lines.push(vec![
        (StyleScope::Strong, words::metric(&row.metric)),
        (StyleScope::Text, format!("  {}", range_text(row, bins))),
    ]);
    let sum = |counts: &[u32]| counts.get(bins.clone()).unwrap_or(&[]).iter().map(|n| u64::from(*n)).sum::<u64>();
    let text = format!(
        "{} executions pass the slow group's other filters, {} the fast group's",
        figure::count(sum(&row.slow)),
        figure::count(sum(&row.fast))
    );
    lines.push(plain(StyleScope::Dim, text));
}

/// A range of bins in words: `from 12.0 ms to 14.2 ms`, or names.
pub fn range_text(row: &HistogramRow, bins: &Range<usize>) -> String {
    if row.metric.unit() == Unit::Name {
        return row.names.get(bins.clone()).unwrap_or(&[]).join(", ");
    }
    let (unit, edges) = (row.metric.unit(), &row.bins.edges);
    let text = |at: usize| edges.get(at.min(row.bins.len())).map_or(String::new(), |v| unit.rounded(*v));
    let single = unit == Unit::Count
        && edges.get(bins.start).zip(edges.get(bins.end)).is_some_and(|(low, high)| high.saturating_sub(*low) == 1);
    if single { text(bins.start) } else { format!("{} to {}", text(bins.start), text(bins.end)) }
}

/// Executions that ran at a moment.
pub fn moment(app: &App, samples: &[SampleExecution], lines: &mut Vec<StyledLine>) {
    lines.push(plain(StyleScope::Strong, "Executions at this moment, longest first"));
    if samples.is_empty() {
        lines.push(plain(StyleScope::Dim, "none"));
    }
    for s in samples {
        lines.push(vec![
            (StyleScope::Text, format!("{:>7} {:>14} ", s.number, figure::stamp(s.clock_ns - app.origin()))),
            (StyleScope::Strong, format!("{:>9} ", figure::time(s.duration_ns as f64))),
            (StyleScope::Text, format!("{} {}, {} {}", s.thread, s.tid, s.process, s.pid)),
        ]);
    }
}

fn executions(
    app: &App,
    samples: &[SampleExecution],
    here: &str,
    text: impl Fn(i64) -> String,
    lines: &mut Vec<StyledLine>,
) {
    lines.push(StyledLine::new());
    lines.push(plain(StyleScope::Strong, "Sample executions, largest first"));
    if samples.is_empty() {
        lines.push(plain(StyleScope::Dim, "none in either group"));
        return;
    }
    let here = if here.len() > 12 { "value" } else { here };
    lines.push(plain(
        StyleScope::Dim,
        format!("{:<5}{:>7} {:>14} {:>9} {here:>12}  thread, process", "", "number", "start", "duration"),
    ));
    for s in samples {
        let scope = if s.group == "slow" { StyleScope::Slow } else { StyleScope::Fast };
        lines.push(vec![
            (scope, format!("{:<5}", s.group)),
            (StyleScope::Text, format!("{:>7} {:>14} ", s.number, figure::stamp(s.start_ns))),
            (StyleScope::Strong, format!("{:>9} ", figure::time(s.duration_ns as f64))),
            (StyleScope::Text, format!("{:>12}  ", text(s.here))),
            (StyleScope::Text, format!("{} {}, {} {}", s.thread, s.tid, s.process, s.pid)),
        ]);
        lines.push(plain(StyleScope::Dim, format!("{:13}at {} ns in {}", "", s.clock_ns, s.trace)));
    }
    let origin = app.model.as_ref().map_or(Timestamp::ZERO, |m| m.origin);
    lines.push(plain(StyleScope::Dim, format!("start times count from the first event, at {origin} ns")));
}
