//! The groups: selections on histograms, filters typed in the prompt, undo.

use crate::compare::ComparisonRequest;
use crate::compare::filter::{Filter, Operand, Test};
use crate::model::metric::Metric;
use crate::tui::app::App;
use crate::tui::groups::{BinSelection, GroupHistory, GroupSide};
use crate::tui::job::Job;
use crate::tui::pane::Pane;
use crate::view::words;

/// The filters in force, those proposed included.
pub fn effective(app: &App) -> ComparisonRequest {
    let now = app.groups.now().clone();
    match &app.comparison {
        Some(c) if now.slow.is_empty() && now.fast.is_empty() => ComparisonRequest { by_trace: false, ..c.request() },
        _ => now,
    }
}

/// Groups cannot change while another model is on its way.
pub fn can_regroup(app: &mut App) -> bool {
    let analysing = app.busy.as_ref().is_some_and(|b| b.what == "analysing");
    if analysing || app.model.is_none() {
        app.say("the analysis is still running");
        return false;
    }
    true
}

pub fn regroup(app: &mut App, request: ComparisonRequest, status: &str) {
    if !can_regroup(app) {
        return;
    }
    push(app, request);
    app.say(status);
    compare(app)
}

/// Make a request the one in force; the selection stays with the one before.
fn push(app: &mut App, request: ComparisonRequest) {
    app.histograms.dragging = false;
    app.groups.keep(app.histograms.selections());
    app.groups.push(request);
}

/// Make executions, by number, the slow group; the fast group has these filters, or where there are none is the rest.
pub fn make_slow(app: &mut App, numbers: &[u32], fast: Vec<Filter>, status: &str) {
    let numbers = numbers.iter().map(|number| i64::from(*number)).collect();
    let slow = vec![Filter::any_of(Metric::Execution, numbers)];
    let request = ComparisonRequest { slow, fast, by_trace: false, ..app.groups.now().clone() };
    regroup(app, request, status)
}

pub fn compare(app: &mut App) {
    let Some(model) = app.model.clone() else { return };
    let request = app.groups.now().clone();
    let (arrangement, direction) = (app.tree.arrangement.clone(), app.tree.direction());
    app.begin(Job::Compare { model, request, arrangement, direction })
}

/// Change the selection on the metric under the cursor, or begin one at the cursor.
pub fn select(app: &mut App, change: impl FnOnce(&mut BinSelection, usize)) {
    let (Some(grid), Some(row)) = (app.bin_grid(), app.histogram_row()) else { return };
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
    drag(app)
}

/// Move both ends outwards.
pub fn widen(selection: &mut BinSelection, by: usize) {
    let (low, high) = selection.ends();
    (selection.anchor, selection.head) = (low.saturating_sub(by), high + by);
}

/// Move both ends inwards, down to one column.
pub fn narrow(selection: &mut BinSelection, by: usize) {
    let (low, high) = selection.ends();
    (selection.anchor, selection.head) = if low + by < high { (low + by, high - by) } else { (low, low) };
}

/// Move the whole selection a column to the left (-1) or to the right (1). It keeps its width: at a border it stops.
pub fn move_selection(app: &mut App, direction: isize) {
    let Some(grid) = app.bin_grid() else { return };
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

/// Dragging the mouse: the selection begins at the bin that was clicked and ends at this one.
pub fn drag_to(app: &mut App, bin: usize) {
    let begun = app.histograms.selection.as_ref().map(|s| &s.metric);
    if begun.is_none() || begun != app.histogram_row().map(|row| &row.metric) {
        // The first movement selects the bin under the cursor.
        select(app, |_, _| {});
        if !app.effects.is_empty() {
            return;
        }
    }
    select(app, |selection, _| selection.head = bin)
}

/// Undo the last change of the groups.
pub fn undo(app: &mut App) {
    step_history(app, GroupHistory::undo, "nothing to undo")
}

/// Redo the change that was undone last.
pub fn redo(app: &mut App) {
    step_history(app, GroupHistory::redo, "nothing to redo")
}

fn step_history(app: &mut App, step: fn(&mut GroupHistory) -> bool, none: &str) {
    if !can_regroup(app) {
        return;
    }
    app.groups.keep(app.histograms.selections());
    if !step(&mut app.groups) {
        return app.say(none);
    }
    app.histograms.dragging = false;
    app.histograms.select_again(app.groups.selections());
    match app.groups.task() {
        Some(task) if Some(task) != app.task() => {
            let task = Some(task.to_owned());
            app.begin(Job::Analyse { task })
        }
        _ => compare(app),
    }
}

/// A selection that is a group's filter takes the filter with it.
fn drag(app: &mut App) {
    let Some(selection) = app.histograms.selection.clone() else { return };
    let Some(side) = selection.attached else { return };
    if let Some(filter) = filter_of(app, &selection) {
        take_along(app, side, vec![filter], &[selection.metric]);
    }
}

/// Give a group the filters of a selection that moved, in the place of those on the same metrics.
pub fn take_along(app: &mut App, side: GroupSide, moved: Vec<Filter>, metrics: &[Metric]) {
    if !can_regroup(app) {
        return;
    }
    let mut request = effective(app);
    let filters = side.of(&mut request);
    filters.retain(|f| !metrics.contains(&f.metric));
    filters.extend(moved);
    if app.histograms.dragging {
        app.groups.amend(request);
    } else {
        push(app, request);
        app.histograms.dragging = true;
    }
    compare(app)
}

/// The selection on the metric under the cursor.
fn selection(app: &App) -> Option<&BinSelection> {
    let row = app.histogram_row()?;
    app.histograms.selection.as_ref().filter(|s| s.metric == row.metric)
}

/// True where something is selected at the cursor: a box on the heat map, or a range on the metric.
pub fn has_selection(app: &App) -> bool {
    let has_box = app.histograms.heat.boxed().is_some();
    let is_on_heat = app.histograms.is_on_heat(app.frame.heat);
    app.pane == Pane::Histograms && if is_on_heat { has_box } else { selection(app).is_some() }
}

/// The filter of a selection on the metric under the cursor; none if it covers all values, or several names.
fn filter_of(app: &App, selection: &BinSelection) -> Option<Filter> {
    selection.filter(app.histogram_row()?, app.bin_grid()?.step)
}

/// The filters of what is selected at the cursor; none where nothing is, or all, or several names.
pub fn selected(app: &App) -> Vec<Filter> {
    if !has_selection(app) {
        return Vec::new();
    }
    if app.histograms.is_on_heat(app.frame.heat) {
        let heat = &app.histograms.heat;
        return heat.boxed().and_then(|boxed| heat.map()?.filters(&boxed)).unwrap_or_default();
    }
    selection(app).and_then(|selection| filter_of(app, selection)).into_iter().collect()
}

/// Filters as one would type them.
pub fn text_of(filters: &[Filter]) -> String {
    filters.iter().map(words::filter).collect::<Vec<_>>().join(", ")
}

/// The groups swapped; a group that was the rest of the other one stays that.
pub fn swapped(request: ComparisonRequest) -> ComparisonRequest {
    let other = |filter: Filter| match &filter.test {
        Test::Compare(op, Operand::Name(name)) if filter.metric == Metric::Group => {
            let name = if name == "slow" { "fast" } else { "slow" };
            Filter::named(Metric::Group, *op, name)
        }
        _ => filter,
    };
    let ComparisonRequest { slow, fast, within, per, .. } = request;
    let all = |filters: Vec<Filter>| filters.into_iter().map(other).collect();
    ComparisonRequest { slow: all(fast), fast: all(slow), within, by_trace: false, per }
}

/// Clear what is selected at the cursor; where it is a group's filter already, or nothing is, the filters on the
/// metric.
pub fn clear(app: &mut App) {
    let on_heat = app.histograms.is_on_heat(app.frame.heat);
    let of_map = || app.histograms.heat.map().map(|map| vec![map.across.clone(), Metric::Duration]);
    let of_row = || app.histogram_row().map(|row| vec![row.metric.clone()]);
    let Some(metrics) = (if on_heat { of_map() } else { of_row() }) else { return };
    app.histograms.heat.stretches = false;
    let attached = if on_heat {
        app.histograms.heat.selection.take().map(|selection| selection.attached)
    } else {
        app.histograms.selection.take_if(|s| metrics.contains(&s.metric)).map(|selection| selection.attached)
    };
    if attached == Some(None) {
        return;
    }
    let mut request = effective(app);
    let before = request.clone();
    for side in [GroupSide::Slow, GroupSide::Fast] {
        side.of(&mut request).retain(|f| !metrics.contains(&f.metric));
    }
    let names = metrics.iter().map(words::metric).collect::<Vec<_>>().join(" and ");
    if request == before {
        return app.say(format!("no selection and no filter on {names}"));
    }
    let none_left = request.slow.is_empty() && request.fast.is_empty();
    let proposed = if none_left { "; the groups are proposed again" } else { "" };
    if none_left {
        request = app.groups.proposal();
    }
    regroup(app, request, &format!("filter on {names} removed{proposed}"))
}
