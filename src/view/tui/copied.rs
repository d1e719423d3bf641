//! Text for `y`: the item under the cursor, ready to be pasted into a message.

use super::app::App;
use super::groups::BinSelection;
use super::pane::Pane;
use super::panes::tree::state::Cursor;
use super::sources::RootCauseRow;
use super::tree::path_text;
use crate::base::{clean, figure};
use crate::compare::share_of_group;
use crate::model::carrier::Carrier;
use crate::model::propagation::PropagationStep;
use crate::view::anomalies::{self, ListBounds, of_source};
use crate::view::report::{Invocation, Report};
use crate::view::words;

/// The text; empty where there is nothing.
pub fn text(app: &App) -> String {
    let text = app.layers.last().and_then(|top| top.copied(app)).unwrap_or_else(|| match (app.pane, app.tree.cursor) {
        (Pane::Histograms, _) => range(app).unwrap_or_default(),
        (Pane::Tree, Cursor::Cause(i)) => app.causes().get(i).map_or(String::new(), |c| c.sentence.clone()),
        (Pane::Tree, Cursor::Row(_)) => node(app).unwrap_or_default(),
        (Pane::Anomalies, _) => anomaly(app).unwrap_or_default(),
        (Pane::Path, _) => path(app).unwrap_or_default(),
    });
    text.lines().map(|line| clean::text(line).into_owned()).collect::<Vec<_>>().join("\n")
}

/// A summary in Markdown: of the comparison, or of the anomalies in front where they are what one looks at.
pub fn summary(app: &App) -> String {
    let command = command(app);
    match (&app.model, &app.comparison, &app.patterns.found) {
        (_, _, Some(found)) if is_about_anomalies(app) => {
            let text = anomalies::text(&found.anomalies, &found.notices, None, ListBounds::FIRST);
            let fenced = text.lines().map(|line| format!("    {}\n", clean::text(line))).collect::<String>();
            format!("{fenced}\n### Reproduce\n\n    {command}\n")
        }
        (Some(model), Some(comparison), _) => {
            Report { model, comparison, command: &command, timelines: None }.markdown()
        }
        _ => String::new(),
    }
}

/// The command line that prints the answer in front.
pub fn command(app: &App) -> String {
    if is_about_anomalies(app) { invocation(app).anomalies() } else { comparing_command(app) }
}

/// The command line that prints the comparison.
pub fn comparing_command(app: &App) -> String {
    invocation(app).explain(app.groups.now())
}

/// The command line with the task in force.
fn invocation(app: &App) -> Invocation {
    let task = app.groups.chosen_task().map(str::to_owned);
    Invocation { task: task.or_else(|| app.command_line.task.clone()), ..app.command_line.clone() }
}

/// The patterns are in front, or there is no comparison.
fn is_about_anomalies(app: &App) -> bool {
    app.patterns.found.is_some() && (app.comparison.is_none() || matches!(app.pane, Pane::Anomalies | Pane::Path))
}

fn node(app: &App) -> Option<String> {
    let (_, node) = app.node()?;
    let slow = app.comparison.as_ref()?.slow.members.len();
    let (model, _) = app.shown_tree()?;
    let between = if app.tree.inverted.is_some() { " < " } else { " > " };
    let path = path_text(&model, node.context).join(between);
    Some(format!(
        "{path}: {} (slow {}, fast {}, {} standard deviations, in {} of the slow executions)",
        figure::extra(node.delta_ns),
        figure::time(node.slow_mean_ns),
        figure::time(node.fast_mean_ns),
        figure::deviations(node.deviations),
        share_of_group(node.slow_affected, slow)
    ))
}

fn anomaly(app: &App) -> Option<String> {
    let found = app.patterns.found.as_ref()?;
    let here = app.patterns.list.here()?;
    let words = of_source(here.source(found)?);
    Some(match here {
        RootCauseRow::Source(_) => {
            let source = here.source(found)?;
            let delay = figure::time(source.affected_ns as f64);
            format!("{words}: caused {delay} of delay, {} times", source.occurrences.len())
        }
        RootCauseRow::Occurrence(..) => {
            let o = here.occurrence(found)?;
            let (delay, extra) = (figure::time(o.affected_ns as f64), figure::extra(o.excess_ns as f64));
            format!("{words} at {}: {extra}, caused {delay} of delay", figure::stamp(o.span.start - app.origin()))
        }
    })
}

/// The whole path, a line per step.
fn path(app: &App) -> Option<String> {
    let (found, at) = app.patterns.selected()?;
    let step = |s: &PropagationStep| {
        let carrier = s.carrier.map_or("root cause", Carrier::name);
        let (extra, start) = (figure::extra(s.excess_ns as f64), figure::stamp(s.span.start - app.origin()));
        format!("{carrier} {} at {start}: {} {extra}", found.place(s.stream), s.what)
    };
    Some(found.anomalies.paths.get(at)?.steps.iter().map(step).collect::<Vec<_>>().join("\n"))
}

/// The selection as a filter, ready for `--slow` or `--fast`.
fn range(app: &App) -> Option<String> {
    let row = app.histogram_row()?;
    let grid = app.bin_grid()?;
    let (metric, bin) = (row.metric.clone(), app.histograms.bin);
    let selected = app.histograms.selection.clone().filter(|s| s.metric == metric);
    let selection = selected.unwrap_or(BinSelection { metric, anchor: bin, head: bin, attached: None });
    Some(words::filter(&selection.filter(row, grid.step)?))
}
