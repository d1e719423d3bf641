//! The item under the cursor: its details on a page, and an example of it as a time-line.

use crate::model::execution::ExecutionId;
use crate::view::tui::app::App;
use crate::view::tui::details::{self, Details, SampleExecution, SampleSearch};
use crate::view::tui::layers::anomaly::AnomalyPage;
use crate::view::tui::layers::details::{DetailsPage, node_details, range_details};
use crate::view::tui::layers::page::PageLayer;
use crate::view::tui::layers::timeline;
use crate::view::tui::pane::Pane;
use crate::view::tui::panes::tree::state::Cursor;
use crate::view::tui::report::AnomalyReport;
use std::sync::Arc;

/// Open the page.
pub(super) fn open(app: &mut App) {
    if app.pane.is_of_patterns() {
        match anomaly(app) {
            Some((report, at)) => app.open(PageLayer::new(AnomalyPage { report, at })),
            None => app.say("nothing to show here"),
        }
    } else if app.compared_executions().is_none() {
        app.say("nothing to show yet");
    } else {
        match under_cursor(app) {
            Some(details) => app.open(PageLayer::new(DetailsPage(details))),
            None => app.say("nothing to show here"),
        }
    }
}

/// The anomaly under the cursor of a pane of patterns.
fn anomaly(app: &App) -> Option<(Arc<AnomalyReport>, u32)> {
    let found = app.patterns.found.clone()?;
    let place = app.patterns.path;
    let at = match app.pane {
        Pane::Path => found.step(place.path, place.step)?.anomaly,
        _ => app.patterns.list.anomaly(&found)?,
    };
    Some((found, at))
}

/// Details of the cause, node or range under the cursor of a pane of executions.
fn under_cursor(app: &App) -> Option<Details> {
    let (model, comparison) = app.compared_executions()?;
    match (app.pane, app.tree.cursor) {
        (Pane::Tree, Cursor::Cause(i)) => {
            comparison.causes.get(i).map(|c| details::of_cause(&model, &comparison, c, SampleSearch::Done))
        }
        (Pane::Tree, Cursor::Row(_)) => node_details(app, &model, &comparison, SampleSearch::Done),
        _ => range_details(app, &model, &comparison),
    }
}

/// Open the time-line of an example of the item under the cursor: the one with most time there.
pub(super) fn open_example(app: &mut App) {
    match example(app) {
        Some(sample) => timeline::open(app, ExecutionId::from_raw(sample.number), sample.group),
        None => {
            let why = match (&app.model, app.pane.is_of_patterns()) {
                (None, true) => "no executions here; 4 draws the path of this delay",
                (None, false) => "nothing to show yet",
                (Some(_), _) => "no execution to show here",
            };
            app.say(why);
        }
    }
}

fn example(app: &App) -> Option<SampleExecution> {
    if app.pane.is_of_patterns() {
        let (model, _) = app.compared_executions()?;
        let (found, at) = anomaly(app)?;
        return details::samples_of_moment(&model, found.get(at)?.span).into_iter().next();
    }
    under_cursor(app)?.samples().first().cloned()
}
