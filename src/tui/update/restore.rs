//! What was open the last time is opened again: the task and the groups before the first comparison, the place after.
//!
//! The groups of the command line take precedence. What no longer fits is given up, with the reason: the interface then
//! begins as with a new recording.

use super::groups::compare;
use super::patterns::show;
use crate::compare::ComparisonRequest;
use crate::compare::filter::Filters;
use crate::compare::heat_map::axes;
use crate::tui::app::App;
use crate::tui::job::Job;
use crate::tui::pane::Pane;
use crate::tui::panes::histograms::state::has_heat;
use crate::tui::panes::tree::state::Cursor;
use crate::tui::saved::SavedView;
use crate::tui::tree::find_path;
use crate::view::words;

/// Take what was kept, before the first job. Returns the task to begin with.
pub(super) fn begin(app: &mut App, first_is_patterns: bool) -> Option<String> {
    let view = app.restoring.as_mut()?;
    app.bookmarks = std::mem::take(&mut view.bookmarks);
    let given = app.groups.now();
    if app.command_line.task.is_some() || *given != ComparisonRequest::default() {
        **view = SavedView { task: None, slow: String::new(), fast: String::new(), ..view.as_ref().clone() };
    }
    let view = view.as_ref().clone();
    let filters = |text: &str| text.parse::<Filters>().map(|filters| filters.0);
    let of_group = |text: &str| if text.is_empty() { Ok(Vec::new()) } else { filters(text) };
    if view.has_groups() && !first_is_patterns {
        match (of_group(&view.slow), of_group(&view.fast)) {
            (Ok(slow), Ok(fast)) => {
                app.groups.push(ComparisonRequest { slow, fast, ..ComparisonRequest::default() });
            }
            _ => {
                app.restoring = None;
                return None;
            }
        }
    }
    app.remembered = view.unfolded;
    (!first_is_patterns).then_some(view.task).flatten()
}

/// Put the cursors and the pane where they were, after the first comparison.
pub(super) fn place(app: &mut App) {
    let (Some(view), Some((model, comparison))) = (app.restoring.take(), app.callers_first()) else {
        return;
    };
    if let Some(order) = view.order() {
        app.tree.rows.set_order(order, &model, &comparison.tree);
    }
    let node = view.node.as_ref().and_then(|path| find_path(&model, &comparison.tree, path));
    if !view.unfolded.is_empty() || node.is_some() {
        app.tree.touched = true;
    }
    if let Some(node) = node {
        app.tree.cursor = Cursor::Row(app.tree.rows.reveal(node, &model, &comparison.tree));
    }
    app.restored_metric = view.metric.clone();
    if let Some(name) = &view.heat_axis {
        let axes = app.model.as_deref().filter(|model| has_heat(model)).map_or_else(Vec::new, axes);
        app.histograms.heat.across = axes.into_iter().find(|metric| words::metric(metric) == *name);
    }
    if view.has_groups() {
        app.say("restored your last groups; g proposes groups, whyslow --fresh starts anew");
    } else if view.node.is_some() {
        app.say("restored your last place; whyslow --fresh starts anew");
    }
    match view.pane() {
        Some(pane) if pane != Pane::Tree => show(app, pane),
        _ => {}
    }
}

/// The histograms were counted for the first time: the cursor goes to the metric where it was.
pub(super) fn metric(app: &mut App) {
    let Some(metric) = app.restored_metric.take() else { return };
    let rows = app.counts.as_ref().map_or(&[][..], |c| &c.rows);
    if let Some(row) = rows.iter().position(|row| words::metric(&row.metric) == metric) {
        app.histograms.go_to_row(row);
    }
}

/// The kept groups cannot be compared, or the kept task cannot be analysed: begin without them. False if none were
/// kept.
pub(super) fn give_up(app: &mut App, why: &str) -> bool {
    let Some(view) = app.restoring.take().filter(|view| view.has_groups()) else { return false };
    app.groups.undo();
    app.remembered.clear();
    match app.model {
        Some(_) if view.task.is_none() => compare(app),
        _ => app.begin(Job::Analyse { task: None }),
    }
    app.report_failure(format!("the groups kept from the last time do not fit: {why}"));
    true
}
