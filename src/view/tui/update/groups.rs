//! The groups: selections on histograms, filters typed in the prompt, undo.

use crate::compare::ComparisonRequest;
use crate::compare::filter::{Filter, Operand, Test};
use crate::model::metric::Metric;
use crate::view::tui::app::App;
use crate::view::tui::completion::Vocabulary;
use crate::view::tui::filter_prompt::FilterPrompt;
use crate::view::tui::groups::{BinSelection, GroupHistory, GroupSide, TypedFilters};
use crate::view::tui::input::TextInput;
use crate::view::tui::job::Job;
use crate::view::tui::message::UiEffect;
use crate::view::tui::overlay::{Overlay, PromptPurpose};
use crate::view::tui::pane::Pane;
use crate::view::words;
use std::sync::Arc;

/// The filters in force, those proposed included.
pub(super) fn effective(app: &App) -> ComparisonRequest {
    let now = app.groups.now().clone();
    match &app.comparison {
        Some(c) if now.slow.is_empty() && now.fast.is_empty() => ComparisonRequest { by_trace: false, ..c.request() },
        _ => now,
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
    push(app, request);
    app.say(status);
    compare(app)
}

/// Make a request the one in force; the selection stays with the one before.
fn push(app: &mut App, request: ComparisonRequest) {
    app.histograms.dragging = false;
    app.groups.keep(app.histograms.selection.clone());
    app.groups.push(request);
}

/// Ask for the recording or label that is to be the fast side.
pub(super) fn ask_baseline(app: &mut App) {
    if can_regroup(app) {
        let input = TextInput::new(app.baseline.clone().unwrap_or_default());
        app.open(Overlay::prompt(PromptPurpose::Baseline, input));
    }
}

/// Compare with a recording or label as the fast side; with none where the text is empty.
pub(super) fn set_baseline(app: &mut App, text: &str) -> Vec<UiEffect> {
    let baseline = (!text.is_empty()).then(|| text.to_owned());
    if baseline == app.baseline {
        return Vec::new();
    }
    let task = app.task().map(str::to_owned);
    app.begin(Job::SetBaseline { baseline, task })
}

/// Make executions, by number, the slow group; the fast group has these filters, or where there are none is the rest.
pub(super) fn make_slow(app: &mut App, numbers: &[u32], fast: Vec<Filter>, status: &str) -> Vec<UiEffect> {
    let numbers = numbers.iter().map(|number| i64::from(*number)).collect();
    let slow = vec![Filter::any_of(Metric::Execution, numbers)];
    let request = ComparisonRequest { slow, fast, by_trace: false, ..app.groups.now().clone() };
    regroup(app, request, status)
}

pub(super) fn compare(app: &mut App) -> Vec<UiEffect> {
    let Some(model) = app.model.clone() else { return Vec::new() };
    let request = app.groups.now().clone();
    let direction = app.tree.direction();
    app.begin(Job::Compare { model, request, direction })
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
    drag(app)
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

/// Dragging the mouse: the selection begins at the bin that was clicked and ends at this one.
pub(super) fn drag_to(app: &mut App, bin: usize) -> Vec<UiEffect> {
    let begun = app.histograms.selection.as_ref().map(|s| &s.metric);
    if begun.is_none() || begun != app.histogram_row().map(|row| &row.metric) {
        // The first movement selects the bin under the cursor.
        let effects = select(app, |_, _| {});
        if !effects.is_empty() {
            return effects;
        }
    }
    select(app, |selection, _| selection.head = bin)
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
    app.groups.keep(app.histograms.selection.clone());
    if !step(&mut app.groups) {
        app.say(none);
        return Vec::new();
    }
    app.histograms.dragging = false;
    app.histograms.selection = app.groups.selection();
    match app.groups.task() {
        Some(task) if Some(task) != app.task() => {
            let task = Some(task.to_owned());
            app.begin(Job::Analyse { task })
        }
        _ => compare(app),
    }
}

/// A selection that is a group's filter takes the filter with it.
fn drag(app: &mut App) -> Vec<UiEffect> {
    let Some(selection) = app.histograms.selection.clone() else { return Vec::new() };
    let Some(side) = selection.attached else { return Vec::new() };
    if !can_regroup(app) {
        return Vec::new();
    }
    let Some(filter) = filter_of(app, &selection) else { return Vec::new() };
    let mut request = effective(app);
    let filters = side.of(&mut request);
    filters.retain(|f| f.metric != filter.metric);
    filters.push(filter);
    if app.histograms.dragging {
        app.groups.amend(request);
    } else {
        push(app, request);
        app.histograms.dragging = true;
    }
    compare(app)
}

/// Ask for the filters of a group. The selection under the cursor is the first text, together with the group's filters
/// on other metrics; else the group's filters, if they were given.
pub(super) fn ask(app: &mut App, side: GroupSide) {
    if !can_regroup(app) {
        return;
    }
    let mut request = app.groups.now().clone();
    let filters = side.of(&mut request);
    if let Some(selection) = selection(app) {
        let Some(filter) = filter_of(app, selection) else {
            return app.report_failure("the selection covers all values, or several names: narrow it with < and >");
        };
        filters.retain(|f| f.metric != filter.metric);
        filters.push(filter);
    }
    let text = text_of(filters);
    prompt(app, side, text, None);
}

/// The selection on the metric under the cursor, if the histograms are in front.
fn selection(app: &App) -> Option<&BinSelection> {
    let row = app.histogram_row().filter(|_| app.pane == Pane::Histograms)?;
    app.histograms.selection.as_ref().filter(|s| s.metric == row.metric)
}

/// The filter of a selection on the metric under the cursor; none if it covers all values, or several names.
fn filter_of(app: &App, selection: &BinSelection) -> Option<Filter> {
    selection.filter(app.histogram_row()?, app.bin_grid()?.step)
}

/// The filter of the selection under the cursor, where there is one.
pub(super) fn selected(app: &App) -> Option<Filter> {
    selection(app).and_then(|selection| filter_of(app, selection))
}

/// Filters as one would type them.
fn text_of(filters: &[Filter]) -> String {
    filters.iter().map(words::filter).collect::<Vec<_>>().join(", ")
}

/// Show the prompt with a text, and with the reason why it was refused.
pub(super) fn prompt(app: &mut App, side: GroupSide, text: String, error: Option<String>) {
    let Some(model) = &app.model else { return };
    let vocabulary = Arc::new(Vocabulary::new(model, app.counts.as_deref()));
    let prompt = FilterPrompt::new(side, text, vocabulary, &app.typed_filters);
    let prompt = match error {
        Some(error) => prompt.refused(error),
        None => prompt,
    };
    app.open(Overlay::Filters(Box::new(prompt)));
}

/// Give a group the filters that were typed as a text; none removes the group's filters.
pub(super) fn apply(app: &mut App, side: GroupSide, text: String, filters: Vec<Filter>) -> Vec<UiEffect> {
    let mut request = ComparisonRequest { by_trace: false, ..app.groups.now().clone() };
    *side.of(&mut request) = filters;
    if request.slow.is_empty() && request.fast.is_empty() {
        return regroup(app, app.groups.proposal(), "no filters: groups proposed again");
    }
    if !text.trim().is_empty() {
        app.typed_filters.retain(|t| *t != text);
        app.typed_filters.push(text.clone());
    }
    let given = text_of(side.of(&mut request));
    let status = match given.as_str() {
        "" => format!("{} group: all others", side.name()),
        given => format!("{} group: {given}", side.name()),
    };
    // A selection that has become a filter takes it along when it moves.
    let is_selection = selected(app).is_some_and(|filter| side.of(&mut request).contains(&filter));
    let selection = app.histograms.selection.clone();
    let effects = regroup(app, request, &status);
    if effects.is_empty() {
        return effects;
    }
    app.typed = Some(TypedFilters { side, text });
    if is_selection {
        app.histograms.selection = selection.map(|s| BinSelection { attached: Some(side), ..s });
        app.histograms.dragging = true;
    }
    effects
}

/// The groups swapped; a group that was the rest of the other one stays that.
pub(super) fn swapped(request: ComparisonRequest) -> ComparisonRequest {
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
    let none_left = request.slow.is_empty() && request.fast.is_empty();
    let proposed = if none_left { "; the groups are proposed again" } else { "" };
    if none_left {
        request = app.groups.proposal();
    }
    regroup(app, request, &format!("filter on {} removed{proposed}", words::metric(&metric)))
}
