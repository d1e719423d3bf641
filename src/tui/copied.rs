//! Text for `y`: the item under the cursor, ready to be pasted into a message.

use super::app::App;
use super::panes;
use crate::base::clean;
use crate::compare::Comparison;
use crate::view::anomalies::{self, ListBounds};
use crate::view::report::{Invocation, Report};
use std::borrow::Cow;

/// The text of the dialog on top, or of the item under the cursor; empty where there is nothing.
pub fn text(app: &App) -> String {
    let of_layer = app.layers.last().and_then(|top| top.copied(app));
    let text = of_layer.or_else(|| panes::view(app.pane).copied(app)).unwrap_or_default();
    text.lines().map(clean::owned).collect::<Vec<_>>().join("\n")
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
            let comparison = &*reported(app, comparison);
            Report { model, comparison, command: &command, timelines: None, threads: None }.markdown()
        }
        _ => String::new(),
    }
}

/// A comparison as reports have it: in one MPI run the verdict also says who delayed others most in all of it, as far
/// as that is known here.
pub fn reported<'a>(app: &App, comparison: &'a Comparison) -> Cow<'a, Comparison> {
    let run = app.patterns.found.as_ref().filter(|found| found.anomalies.examined.is_mpi);
    let Some(found) = run else { return Cow::Borrowed(comparison) };
    let mut said = comparison.clone();
    said.verdict.delays = Some(anomalies::beside_comparison(&found.anomalies, comparison));
    Cow::Owned(said)
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
    app.patterns.found.is_some() && (app.comparison.is_none() || app.pane.is_of_patterns())
}
