//! The details page: of a cause or a call path, or of a range of a metric.

use super::page::PageContent;
use crate::base::figure;
use crate::base::time::Timestamp;
use crate::compare::arranged::TreeDirection;
use crate::compare::{Cause, Comparison, Group, share_of_group};
use crate::model::metric::Unit;
use crate::tui::actions::Action;
use crate::tui::app::App;
use crate::tui::counts::HistogramRow;
use crate::tui::details::{Details, SampleExecution, StackRow};
use crate::tui::theme::{StyleScope, Theme};
use crate::tui::widget::page::{MARK, StyledLine, paragraph, plain};
use crate::view::words;
use std::ops::Range;

/// The page.
#[derive(Debug)]
pub struct DetailsPage(pub Details);

impl PageContent for DetailsPage {
    fn title(&self) -> &'static str {
        "Details"
    }

    fn action(&self) -> Action {
        Action::Details
    }

    fn lines(&self, app: &App, columns: usize, example: usize) -> Vec<StyledLine> {
        lines(app, &self.0, example, columns)
    }

    fn samples(&self, _: &App) -> Option<Vec<SampleExecution>> {
        Some(self.0.samples().to_vec())
    }
}

/// Its lines in this width; the sampled execution at position `example` is marked.
fn lines(app: &App, details: &Details, example: usize, columns: usize) -> Vec<StyledLine> {
    let mut lines = about(app, details, columns);
    match details {
        Details::Context { samples, .. } => {
            executions(app, Samples { samples, example }, "here", |v| figure::time(v as f64), &mut lines);
        }
        Details::Range { row, samples, .. } => {
            let unit = row.metric.unit();
            let name = |v: i64| row.bins.of(v).and_then(|bin| row.names.get(bin)).cloned();
            let text = |v: i64| name(v).unwrap_or_else(|| unit.rounded(v));
            executions(app, Samples { samples, example }, &words::metric(&row.metric), text, &mut lines);
        }
        Details::Cells { samples, .. } => {
            executions(app, Samples { samples, example }, "duration", |v| figure::time(v as f64), &mut lines);
        }
    }
    lines
}

/// What the details say beside the sampled executions.
pub fn about(app: &App, details: &Details, columns: usize) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    match details {
        Details::Context { cause, direction, path, threads, .. } => {
            if let Some(cause) = cause {
                let title = cause.rank.map_or("All small causes together".to_owned(), |r| format!("Cause {r}"));
                lines.push(plain(StyleScope::Strong, title));
                lines.extend(paragraph(StyleScope::Text, &cause.sentence, columns, 0));
                let kind = cause.kind.map_or("several kinds", words::kind);
                let comparison = app.comparison.as_ref();
                let share = comparison.map_or_else(String::new, |c| c.share(cause.share));
                let share = if share.is_empty() { share } else { format!(", {share} of the difference") };
                let members = |group: fn(&Comparison) -> &Group| comparison.map_or(0, |c| group(c).count);
                let text = format!(
                    "{kind}: {} per execution{share}; affects {} of the slow and {} of the fast executions",
                    figure::extra(cause.extra_ns as f64),
                    share_of_group(cause.slow_affected, members(|c| &c.slow)),
                    share_of_group(cause.fast_affected, members(|c| &c.fast))
                );
                lines.extend(paragraph(StyleScope::Dim, &text, columns, 0));
                lines.extend(places(app, cause, columns));
                lines.push(StyledLine::new());
            }
            stack(app, path, *direction, columns, &mut lines);
            if !threads.is_empty() {
                lines.push(StyledLine::new());
                lines.push(plain(StyleScope::Strong, "Threads involved, in all executions"));
                for behind in threads {
                    lines.push(vec![
                        (StyleScope::Text, format!("{:>9}  ", figure::time(behind.ns as f64))),
                        (StyleScope::Text, behind.who.clone()),
                    ]);
                }
            }
        }
        Details::Range { row, bins, .. } => range(row, bins, &mut lines),
        Details::Cells { words, sum, .. } => {
            lines.push(plain(StyleScope::Strong, words.clone()));
            let counts = format!(
                "{}, {} of the slow group and {} of the fast group",
                figure::counted(sum.all.into(), "execution"),
                figure::count(sum.slow.into()),
                figure::count(sum.fast.into())
            );
            lines.push(plain(StyleScope::Text, counts));
        }
    }
    lines
}

/// The places that a cause sums up, where there are several.
fn places(app: &App, cause: &Cause, columns: usize) -> Vec<StyledLine> {
    const NAMED: usize = 8;
    let (Some(model), 2..) = (&app.model, cause.places.len()) else { return Vec::new() };
    let named = cause.places.iter().take(NAMED).map(|place| words::frame(model, *place));
    let more = cause.places.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(", {more} more") } else { String::new() };
    let text = format!(
        "The sum of {} places, marked in the tree, the largest first: {}{more}.",
        cause.places.len(),
        named.collect::<Vec<_>>().join(", ")
    );
    paragraph(StyleScope::Dim, &text, columns, 0)
}

fn stack(app: &App, path: &[StackRow], direction: TreeDirection, columns: usize, lines: &mut Vec<StyledLine>) {
    let members = |group: fn(&Comparison) -> &Group| app.comparison.as_ref().map_or(0, |c| group(c).count);
    let (slow, fast) = (members(|c| &c.slow), members(|c| &c.fast));
    let title = match direction {
        TreeDirection::CallersFirst => "Full stack",
        TreeDirection::CalleesFirst => "Its own time, and the part of it below each caller",
    };
    lines.push(plain(StyleScope::Strong, title));
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
            line.push((StyleScope::Dim, format!("{:>9} ", share_of_group(n.slow_affected, slow))));
        }
        line.push((StyleScope::Text, format!(" {}{}", " ".repeat(depth.min(columns / 3)), step.frame)));
        lines.push(line);
    }
    if let Some(n) = path.last().and_then(|s| s.node.as_ref()) {
        let p = n.p_value.map_or("not tested".to_owned(), |p| format!("{p:.1e}"));
        let own = match direction {
            TreeDirection::CallersFirst => format!("self time: {}; ", figure::extra(n.self_delta_ns)),
            TreeDirection::CalleesFirst => String::new(),
        };
        let affected = share_of_group(n.fast_affected, fast);
        let text = format!("{own}p-value {p}; {affected} of the fast executions are affected");
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
        "{} in all: {} in the slow group, {} in the fast group",
        figure::plural(sum(&row.all), "execution"),
        figure::count(sum(&row.slow.members)),
        figure::count(sum(&row.fast.members))
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
pub fn moment(app: &App, samples: &[SampleExecution], example: usize, lines: &mut Vec<StyledLine>) {
    lines.push(plain(StyleScope::Strong, "Executions at this moment, longest first"));
    if samples.is_empty() {
        lines.push(plain(StyleScope::Dim, "none"));
    }
    for (at, s) in samples.iter().enumerate() {
        lines.push(vec![
            mark(at == example),
            (StyleScope::Text, format!("{:>7} {:>14} ", s.number, figure::stamp(s.clock_ns - app.origin()))),
            (StyleScope::Strong, format!("{:>9} ", figure::time(s.duration_ns as f64))),
            (StyleScope::Text, thread_text(s)),
        ]);
    }
}

/// Thread and process with their ids, each once: `worker 312, ledgerd 311`; `rank 5` where the name says the id.
fn thread_text(s: &SampleExecution) -> String {
    let named = |name: &str, id: i32| {
        let id = id.to_string();
        if name.split(' ').any(|word| word == id) { name.to_owned() } else { format!("{name} {id}") }
    };
    let (thread, process) = (named(&s.thread, s.tid), named(&s.process, s.pid));
    if thread == process { thread } else { format!("{thread}, {process}") }
}

/// Sampled executions, one of them marked.
struct Samples<'a> {
    samples: &'a [SampleExecution],
    example: usize,
}

fn mark(is_marked: bool) -> (StyleScope, String) {
    (StyleScope::Selection, if is_marked { MARK } else { " " }.to_owned())
}

fn executions(
    app: &App,
    Samples { samples, example }: Samples<'_>,
    here: &str,
    text: impl Fn(i64) -> String,
    lines: &mut Vec<StyledLine>,
) {
    lines.push(StyledLine::new());
    lines.push(plain(StyleScope::Strong, "Sample executions, largest first (Enter: timeline, Tab: next)"));
    if samples.is_empty() {
        lines.push(plain(StyleScope::Dim, "none in either group"));
        return;
    }
    let here = if here.len() > 12 { "value" } else { here };
    lines.push(plain(
        StyleScope::Dim,
        format!(" {:<5}{:>7} {:>14} {:>9} {here:>12}  thread, process", "", "number", "start", "duration"),
    ));
    for (at, s) in samples.iter().enumerate() {
        let scope = if s.group == "slow" { StyleScope::Slow } else { StyleScope::Fast };
        lines.push(vec![
            mark(at == example),
            (scope, format!("{:<5}", s.group)),
            (StyleScope::Text, format!("{:>7} {:>14} ", s.number, figure::stamp(s.start_ns))),
            (StyleScope::Strong, format!("{:>9} ", figure::time(s.duration_ns as f64))),
            (StyleScope::Text, format!("{:>12}  ", text(s.here))),
            (StyleScope::Text, thread_text(s)),
        ]);
        let clock = match figure::time_of_day(s.clock_ns.since(Timestamp::ZERO)) {
            Some(time) => format!("{:14}at {time} UTC ({} ns) in {}", "", s.clock_ns, s.trace),
            None => format!("{:14}at {} ns in {}", "", s.clock_ns, s.trace),
        };
        lines.push(plain(StyleScope::Dim, clock));
    }
    let origin = app.model.as_ref().map_or(Timestamp::ZERO, |m| m.origin);
    lines.push(plain(StyleScope::Dim, format!("start times count from the first event, at {origin} ns")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_text_names_each_id_once() {
        let sample = |thread: &str, tid, process: &str, pid| SampleExecution {
            number: 0,
            group: "slow",
            trace: String::new(),
            start_ns: 0,
            clock_ns: Timestamp::ZERO,
            duration_ns: 0,
            here: 0,
            thread: thread.into(),
            tid,
            process: process.into(),
            pid,
        };
        assert_eq!(thread_text(&sample("rank 5", 5, "rank 5", 5)), "rank 5");
        assert_eq!(thread_text(&sample("ctl_task", 186, "ctl_task", 186)), "ctl_task 186");
        assert_eq!(thread_text(&sample("worker", 312, "ledgerd", 311)), "worker 312, ledgerd 311");
    }
}
