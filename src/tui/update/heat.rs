//! The heat map: its cells, its cursor and its box.
//!
//! A background job counts the cells, once for executions, groups, size and axis; what arrives for an older question is
//! dropped. A box whose filters are a group's takes them along when it moves, as a selection on a histogram does.

use super::groups::take_along;
use crate::compare::heat_map::{HeatCorner, HeatMap, axes};
use crate::model::execution::ExecutionId;
use crate::model::metric::Metric;
use crate::tui::app::App;
use crate::tui::groups::BoxSelection;
use crate::tui::heat_cells::{CountedMap, HeatQuestion};
use crate::tui::job::{Job, JobError};
use crate::tui::pane::Pane;
use crate::tui::panes::histograms::state::has_heat;
use crate::view::words;

/// Ask for the cells again where they are not those of the screen; until they are counted the old ones stay.
pub(super) fn refresh(app: &mut App) {
    let cells = app.frame.heat;
    let Some((model, comparison)) = app.compared_executions() else {
        (app.histograms.heat.counted, app.histograms.heat.asked) = (None, None);
        return;
    };
    let heat = &mut app.histograms.heat;
    heat.counted = heat.counted.take().filter(|counted| counted.of.is_of(&model));
    if cells.rows == 0 || !app.frame.panes.iter().any(|shown| shown.pane == Pane::Histograms) {
        return;
    }
    let question = HeatQuestion { across: heat.across(&model), model, comparison, size: cells.size() };
    if heat.asked.as_ref().is_some_and(|asked| asked.is_same(&question)) {
        return;
    }
    heat.asked = Some(question.clone());
    app.begin(Job::CountCells { question });
}

/// Take the cells of a question, if it is the latest one.
pub(super) fn on_cells(app: &mut App, question: &HeatQuestion, cells: Result<Option<CountedMap>, JobError>) {
    let heat = &mut app.histograms.heat;
    if !heat.asked.as_ref().is_some_and(|asked| asked.is_same(question)) {
        return;
    }
    heat.busy = None;
    let before = heat.counted.take();
    match cells {
        Ok(counted) => heat.counted = counted,
        Err(error) => heat.failure = Some(error.to_string()),
    }
    let Some(CountedMap { map, slowest, .. }) = &heat.counted else { return };
    // The cursor keeps its place in the values of the same map; on another it begins at the slowest execution.
    let (column, row) = heat.cursor;
    let same = before.filter(|before| before.map.across == map.across);
    heat.cursor = match same.and_then(|before| before.map.corner(column, row)) {
        Some(corner) => {
            let found = map.box_of(&[corner.clone(), corner]);
            (found.columns.start, found.rows.start)
        }
        None => *slowest,
    };
}

/// The cell so many columns and rows away, inside the map.
fn beside(map: &HeatMap, (column, row): (usize, usize), columns: isize, rows: isize) -> (usize, usize) {
    let column = column.saturating_add_signed(columns).min(map.columns.len().saturating_sub(1));
    (column, row.saturating_add_signed(rows).min(map.rows().saturating_sub(1)))
}

/// Move the cursor, or the corner of the box while arrows stretch it.
pub fn move_cursor(app: &mut App, columns: isize, rows: isize) {
    if app.histograms.heat.stretches {
        return stretch(app, columns, rows);
    }
    let heat = &mut app.histograms.heat;
    if let Some(counted) = &heat.counted {
        heat.cursor = beside(&counted.map, heat.cursor, columns, rows);
    }
}

/// Move the cursor by lines, negative is up: below the lowest row, or by a page, to the histograms.
pub fn vertical(app: &mut App, by: isize) {
    let row = app.histograms.heat.cursor.1;
    let leaves = by > 1 || (by == 1 && row == 0);
    if leaves && !app.histograms.heat.stretches {
        app.histograms.go_to_row(0);
        return;
    }
    move_cursor(app, 0, by.saturating_neg());
}

/// Move the free corner of the box, which begins at the cursor.
pub fn stretch(app: &mut App, columns: isize, rows: isize) {
    let heat = &app.histograms.heat;
    let Some(map) = heat.map() else { return };
    let of_map = heat.selection.as_ref().filter(|selection| selection.across == map.across);
    let from = match of_map {
        Some(selection) => {
            let [_, head] = &selection.corners;
            let found = map.box_of(&[head.clone(), head.clone()]);
            (found.columns.start, found.rows.start)
        }
        None => heat.cursor,
    };
    let to = beside(map, from, columns, rows);
    let Some([anchor, head]) = map.corner(heat.cursor.0, heat.cursor.1).zip(map.corner(to.0, to.1)).map(<[_; 2]>::from)
    else {
        return;
    };
    let anchor = of_map.map_or(anchor, |selection| selection.corners[0].clone());
    select(app, [anchor, head], to)
}

/// Select a box, which has become the filters of a group or not yet; the cursor goes to its free corner.
fn select(app: &mut App, corners: [HeatCorner; 2], cursor: (usize, usize)) {
    let heat = &mut app.histograms.heat;
    let Some(across) = heat.map().map(|map| map.across.clone()) else { return };
    let before = heat.selection.take().filter(|selection| selection.across == across);
    heat.cursor = cursor;
    let attached = before.and_then(|selection| selection.attached);
    heat.selection = Some(BoxSelection { across: across.clone(), corners, attached });
    let Some(side) = attached else { return };
    let filters = heat.boxed().and_then(|boxed| heat.map()?.filters(&boxed));
    if let Some(filters) = filters.filter(|filters| !filters.is_empty()) {
        take_along(app, side, filters, &[across, Metric::Duration]);
    }
}

/// Begin a box at the cursor, which arrows then stretch; or end it.
pub(super) fn begin_or_end(app: &mut App) {
    if !app.histograms.is_on_heat(app.frame.heat) {
        return app.say("a box is drawn on the heat map, above the histograms");
    }
    let stretches = !app.histograms.heat.stretches;
    app.histograms.heat.stretches = stretches;
    if stretches {
        app.histograms.heat.selection = None;
        stretch(app, 0, 0);
        app.say("arrows stretch the box; Space ends it, s and f make it a group");
    }
}

/// A cell was clicked: the box goes away, and one that is dragged begins there.
pub fn click(app: &mut App, place: Option<(usize, usize)>) {
    let heat = &mut app.histograms.heat;
    heat.stretches = false;
    heat.selection = None;
    heat.cursor = place.unwrap_or(heat.cursor);
}

/// Dragging the mouse: the box goes from the cell that was clicked to this one.
pub fn drag_to(app: &mut App, place: Option<(usize, usize)>) {
    let heat = &app.histograms.heat;
    let (Some(map), Some(to)) = (heat.map(), place) else { return };
    let Some(head) = map.corner(to.0, to.1) else { return };
    let begun = heat.selection.as_ref().map(|selection| selection.corners[0].clone());
    let Some(anchor) = begun.or_else(|| map.corner(heat.cursor.0, heat.cursor.1)) else { return };
    select(app, [anchor, head], to)
}

/// The columns are of the next property: the time, then each that is a name.
pub(super) fn next_axis(app: &mut App) {
    let Some(model) = app.model.clone() else { return app.say("nothing to show yet") };
    if !has_heat(&model) {
        return app.say("no heat map: samples have no durations, and a single execution is no picture");
    }
    let all = axes(&model);
    let now = app.histograms.heat.across(&model);
    let at = all.iter().position(|metric| *metric == now).map_or(0, |at| (at + 1) % all.len());
    if all.len() < 2 {
        return app.say("no property of these executions has several values");
    }
    let heat = &mut app.histograms.heat;
    heat.across = all.get(at).cloned();
    (heat.selection, heat.stretches) = (None, false);
    app.histograms.below_heat = false;
    let names: Vec<String> = all.iter().map(words::metric).collect();
    let now = names.get(at).cloned().unwrap_or_default();
    app.say(format!("{now} × duration; {} of {}: {}", at + 1, all.len(), names.join(", ")));
}

/// Put the cursor on the cell of an execution.
pub fn go_to_execution(app: &mut App, number: u32) {
    let Some(model) = app.model.clone() else { return };
    let heat = &mut app.histograms.heat;
    let place = heat.map().and_then(|map| map.place(&model, ExecutionId::from_raw(number)));
    if let Some(place) = place {
        heat.cursor = place;
        app.histograms.below_heat = false;
    }
}
