//! The groups: selections on histograms, the filters that they become, undo.

use super::moving::bin_grid;
use super::{UiEffect, begin, complain, say};
use crate::compare::ComparisonRequest;
use crate::view::tui::app::App;
use crate::view::tui::groups::{BinSelection, GroupSide};
use crate::view::tui::jobs::Job;
use crate::view::tui::layout::BinGrid;
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
        say(app, "the analysis is still running");
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
    say(app, status);
    compare(app)
}

pub(super) fn compare(app: &mut App) -> Vec<UiEffect> {
    let Some(model) = app.model.clone() else { return Vec::new() };
    let request = app.groups.now().clone();
    begin(app, Job::Compare { model, request })
}

/// Change the selection on the metric under the cursor, or begin one at the cursor.
pub(super) fn select(app: &mut App, change: impl FnOnce(&mut BinSelection, usize)) -> Vec<UiEffect> {
    let (Some(grid), Some(row)) = (bin_grid(app), app.histogram_row()) else { return Vec::new() };
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

pub(super) fn widen(selection: &mut BinSelection, by: usize, outwards: bool) {
    let (low, high) = (selection.anchor.min(selection.head), selection.anchor.max(selection.head));
    let (low, high) = if outwards {
        (low.saturating_sub(by), high + by)
    } else if low + by < high {
        (low + by, high - by)
    } else {
        (low, low)
    };
    selection.anchor = low;
    selection.head = high;
}

pub(super) fn move_selection(app: &mut App, right: bool) -> Vec<UiEffect> {
    let Some(grid) = bin_grid(app) else { return Vec::new() };
    let last = grid.count.saturating_sub(1) * grid.step;
    let slide = move |s: &mut BinSelection, by: usize| {
        let (low, high) = (s.anchor.min(s.head), s.anchor.max(s.head));
        // At a border the whole selection stops: it keeps its width.
        if right && high + by <= last {
            s.anchor += by;
            s.head += by;
        } else if !right && low >= by {
            s.anchor -= by;
            s.head -= by;
        }
    };
    select(app, slide)
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
    let (Some(grid), Some(row)) = (bin_grid(app), app.histogram_row()) else { return Vec::new() };
    let selected = app.histograms.selection.clone().filter(|s| s.metric == row.metric);
    let bin = app.histograms.bin;
    let mut selection =
        selected.unwrap_or(BinSelection { metric: row.metric.clone(), anchor: bin, head: bin, attached: None });
    let Some(filter) = selection.filter(row, grid.step) else {
        complain(app, "the selection covers all values, or several names: narrow it with < and >");
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
        say(app, "no selection and no filter on this metric");
        return Vec::new();
    }
    let none_left = request == ComparisonRequest::default();
    let proposed = if none_left { "; the groups are proposed again" } else { "" };
    regroup(app, request, &format!("filter on {} removed{proposed}", words::metric(&metric)))
}
