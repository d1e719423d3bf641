//! The groups: selections on histograms, the filters that they become, undo.

use crate::compare::ComparisonRequest;
use crate::view::tui::app::App;
use crate::view::tui::frame::BinGrid;
use crate::view::tui::groups::{BinSelection, GroupHistory, GroupSide};
use crate::view::tui::job::Job;
use crate::view::tui::message::UiEffect;
use crate::view::words;

/// The filters in force, those proposed included.
pub(super) fn effective(app: &App) -> ComparisonRequest {
    match (&app.comparison, app.groups.now()) {
        (Some(c), now) if *now == ComparisonRequest::default() => c.request(),
        (_, now) => now.clone(),
    }
}

/// Groups cannot change while another model is on its way.
pub(super) fn can_regroup(app: &mut App) -> bool {
    let analysing = app.busy.as_ref().is_some_and(|b| b.what == "analysing");
    if analysing || app.model.is_none() {
        app.say("the analysis is still running");
        return false;
    }
    true
}

pub(super) fn regroup(app: &mut App, request: ComparisonRequest, status: &str) -> Vec<UiEffect> {
    if !can_regroup(app) {
        return Vec::new();
    }
    app.histograms.dragging = false;
    app.groups.push(request);
    app.say(status);
    compare(app)
}

pub(super) fn compare(app: &mut App) -> Vec<UiEffect> {
    let Some(model) = app.model.clone() else { return Vec::new() };
    let request = app.groups.now().clone();
    app.begin(Job::Compare { model, request })
}

/// Change the selection on the metric under the cursor, or begin one at the cursor.
pub(super) fn select(app: &mut App, change: impl FnOnce(&mut BinSelection, usize)) -> Vec<UiEffect> {
    let (Some(grid), Some(row)) = (app.bin_grid(), app.histogram_row()) else { return Vec::new() };
    let metric = row.metric.clone();
    let last = grid.count.saturating_sub(1) * grid.step;
    let aligned = |bin: usize| (bin / grid.step * grid.step).min(last);
    match app.histograms.selection.as_mut().filter(|s| s.metric == metric) {
        Some(selection) => {
            change(selection, grid.step);
            selection.anchor = aligned(selection.anchor);
            selection.head = aligned(selection.head);
            app.histograms.bin = selection.head;
        }
        None => {
            let bin = aligned(app.histograms.bin);
            app.histograms.selection = Some(BinSelection { metric, anchor: bin, head: bin, attached: None });
            app.histograms.dragging = false;
        }
    }
    drag(app, grid)
}

/// Move both ends outwards.
pub(super) fn widen(selection: &mut BinSelection, by: usize) {
    let (low, high) = selection.ends();
    (selection.anchor, selection.head) = (low.saturating_sub(by), high + by);
}

/// Move both ends inwards, down to one column.
pub(super) fn narrow(selection: &mut BinSelection, by: usize) {
    let (low, high) = selection.ends();
    (selection.anchor, selection.head) = if low + by < high { (low + by, high - by) } else { (low, low) };
}

/// Move the whole selection a column to the left (-1) or to the right (1). It keeps its width: at a border it stops.
pub(super) fn move_selection(app: &mut App, direction: isize) -> Vec<UiEffect> {
    let Some(grid) = app.bin_grid() else { return Vec::new() };
    let last = grid.count.saturating_sub(1) * grid.step;
    select(app, |selection, by| {
        let (low, high) = selection.ends();
        if direction > 0 && high + by <= last {
            selection.anchor += by;
            selection.head += by;
        } else if direction < 0 && low >= by {
            selection.anchor -= by;
            selection.head -= by;
        }
    })
}

/// Undo the last change of the groups.
pub(super) fn undo(app: &mut App) -> Vec<UiEffect> {
    step_history(app, GroupHistory::undo, "nothing to undo")
}

/// Redo the change that was undone last.
pub(super) fn redo(app: &mut App) -> Vec<UiEffect> {
    step_history(app, GroupHistory::redo, "nothing to redo")
}

fn step_history(app: &mut App, step: fn(&mut GroupHistory) -> bool, none: &str) -> Vec<UiEffect> {
    if !can_regroup(app) {
        return Vec::new();
    }
    if !step(&mut app.groups) {
        app.say(none);
        return Vec::new();
    }
    app.histograms.dragging = false;
    app.histograms.selection = None;
    compare(app)
}

/// A selection that is a group's filter takes the filter with it.
pub(super) fn drag(app: &mut App, grid: BinGrid) -> Vec<UiEffect> {
    let Some(selection) = app.histograms.selection.clone() else { return Vec::new() };
    let Some(side) = selection.attached else { return Vec::new() };
    if !can_regroup(app) {
        return Vec::new();
    }
    let Some(filter) = app.histogram_row().and_then(|row| selection.filter(row, grid.step)) else {
        return Vec::new();
    };
    let mut request = effective(app);
    let filters = side.of(&mut request);
    filters.retain(|f| f.metric != filter.metric);
    filters.push(filter);
    if app.histograms.dragging {
        app.groups.amend(request);
    } else {
        app.groups.push(request);
        app.histograms.dragging = true;
    }
    compare(app)
}

pub(super) fn make_filter(app: &mut App, side: GroupSide) -> Vec<UiEffect> {
    if !can_regroup(app) {
        return Vec::new();
    }
    let (Some(grid), Some(row)) = (app.bin_grid(), app.histogram_row()) else { return Vec::new() };
    let selected = app.histograms.selection.clone().filter(|s| s.metric == row.metric);
    let bin = app.histograms.bin;
    let mut selection =
        selected.unwrap_or(BinSelection { metric: row.metric.clone(), anchor: bin, head: bin, attached: None });
    let Some(filter) = selection.filter(row, grid.step) else {
        app.report_failure("the selection covers all values, or several names: narrow it with < and >");
        return Vec::new();
    };
    let status = format!("{} group: {}", side.name(), words::filter(&filter));
    selection.attached = Some(side);
    let mut request = effective(app);
    let filters = side.of(&mut request);
    filters.retain(|f| f.metric != filter.metric);
    filters.push(filter);
    let effects = regroup(app, request, &status);
    app.histograms.selection = Some(selection);
    app.histograms.dragging = true;
    effects
}

pub(super) fn clear(app: &mut App) -> Vec<UiEffect> {
    let Some(metric) = app.histogram_row().map(|r| r.metric.clone()) else { return Vec::new() };
    let selection = app.histograms.selection.take_if(|s| s.metric == metric);
    if selection.is_some_and(|s| s.attached.is_none()) {
        return Vec::new();
    }
    let mut request = effective(app);
    let before = request.clone();
    for side in [GroupSide::Slow, GroupSide::Fast] {
        side.of(&mut request).retain(|f| f.metric != metric);
    }
    if request == before {
        app.say("no selection and no filter on this metric");
        return Vec::new();
    }
    let none_left = request == ComparisonRequest::default();
    let proposed = if none_left { "; the groups are proposed again" } else { "" };
    regroup(app, request, &format!("filter on {} removed{proposed}", words::metric(&metric)))
}
