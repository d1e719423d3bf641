//! The list of executions: the slowest first, narrowed by typing; one of them as a timeline, or two side by side.
//!
//! Beside the heat map both follow each other: the cell of the execution under the cursor has the cursor of the map,
//! and a cell that is clicked, or the nearest column with executions, puts the cursor of the list on one of its
//! executions.

use super::menu::{Choice, Menu, MenuItem};
use super::prompt::{Prompt, PromptPurpose};
use super::timeline;
use crate::base::figure;
use crate::base::op::Op;
use crate::compare::Comparison;
use crate::compare::filter::Filter;
use crate::compare::members::{members, why_empty};
use crate::model::execution::ExecutionId;
use crate::model::metric::Metric;
use crate::tui::app::{App, LayerResponse};
use crate::tui::groups::{BinSelection, GroupSide};
use crate::tui::pane::Pane;
use crate::tui::update::{groups, heat};
use crate::tui::widget::heat_map::nearest;
use crate::view::executions::{ExecutionLine, line};
use ratatui::layout::{Position, Rect};
use std::cmp::Reverse;

/// Executions of a list, at most: each has a line of text, and typing reads all of them.
const MOST: usize = 5_000;

/// Columns of a time of day: `09:45:55.951`.
const CLOCK: usize = 12;

/// The number of an execution.
#[derive(Clone, Debug)]
struct ExecutionNumber(u32);

impl Choice for ExecutionNumber {
    fn chosen(self) -> LayerResponse {
        LayerResponse::change(move |app| show(app, self.0))
    }

    fn execution(&self) -> Option<u32> {
        Some(self.0)
    }

    fn reached(&self) -> LayerResponse {
        let number = self.0;
        LayerResponse::change(move |app| follow(app, number))
    }

    fn beside(&self, by: isize) -> LayerResponse {
        let number = self.0;
        LayerResponse::change(move |app| sideways(app, number, by))
    }

    fn outside(at: Position) -> LayerResponse {
        LayerResponse::change(move |app| click_outside(app, at))
    }

    fn taken(numbers: Vec<u32>) -> LayerResponse {
        LayerResponse::change(move |app| make_slow(app, &numbers)).closing()
    }
}

/// Show the list: those of the box or the range that is selected, where one is, else all, with the cursor on the
/// slowest of the cell of the heat map that has the cursor.
pub fn open(app: &mut App) {
    if app.pane != Pane::Histograms || !app.histograms.is_on_heat(app.frame.heat) {
        let selected = groups::selected(app);
        return list(app, &selected);
    }
    if app.histograms.heat.boxed().is_some() {
        return list_here(app);
    }
    let in_cell = in_cells(app);
    list(app, &[]);
    let Some(model) = app.model.clone() else { return };
    let slowest = in_cell.iter().min_by_key(|id| (Reverse(model.executions.duration(id.index())), **id));
    if let (Some(slowest), Some(menu)) = (slowest, app.top_mut::<Menu<ExecutionNumber>>()) {
        menu.go_to(slowest.raw());
    }
}

/// Show the list of those of the cell or the box of the heat map, or of the range or the bin of the histogram.
pub fn list_here(app: &mut App) {
    if !app.histograms.is_on_heat(app.frame.heat) {
        let mut selected = groups::selected(app);
        if let (true, Some(row), Some(grid)) = (selected.is_empty(), app.histogram_row(), app.bin_grid()) {
            let (metric, bin) = (row.metric.clone(), app.histograms.bin);
            let range = BinSelection { metric, anchor: bin, head: bin, attached: None };
            selected.extend(range.filter(row, grid.step));
        }
        return list(app, &selected);
    }
    let found = in_cells(app);
    if found.is_empty() {
        return app.say("no execution in this cell of the heat map");
    }
    show_list(app, found);
}

/// The executions of the box, or of the cell under the cursor.
fn in_cells(app: &App) -> Vec<ExecutionId> {
    let heat = &app.histograms.heat;
    let found = app.model.as_ref().zip(heat.map());
    found.map_or_else(Vec::new, |(model, map)| map.members(model, &heat.here()))
}

/// The heat map follows the list, where it is beside it.
fn follow(app: &mut App, number: u32) {
    if app.pane == Pane::Histograms {
        heat::go_to_execution(app, number);
    }
}

/// The list goes to the nearest column of the heat map that has some of its executions, at the left or at the right of
/// one: to the one that took about as long.
fn sideways(app: &mut App, number: u32, by: isize) {
    let (Some(model), Some(map)) = (app.model.clone(), app.histograms.heat.map()) else { return };
    let Some(menu) = app.top::<Menu<ExecutionNumber>>().filter(|_| app.pane == Pane::Histograms) else { return };
    let place = |number: u32| map.place(&model, ExecutionId::from_raw(number));
    let duration = |number: u32| model.executions.duration(ExecutionId::from_raw(number).index());
    let Some((column, _)) = place(number) else { return };
    let listed = menu.fitting().filter_map(|item| item.choice.execution());
    let beside = listed.filter_map(|other| {
        let distance = (place(other)?.0 as isize - column as isize) * by;
        let differs = duration(other).abs_diff(duration(number));
        (distance > 0).then_some((distance, differs, other))
    });
    let Some((_, _, found)) = beside.min() else { return };
    go_to(app, found)
}

/// Put the cursors of the list and of the heat map on an execution.
fn go_to(app: &mut App, number: u32) {
    if let Some(menu) = app.top_mut::<Menu<ExecutionNumber>>() {
        menu.go_to(number);
    }
    follow(app, number)
}

/// A cell of the heat map beside the list was clicked: its slowest execution that is listed; elsewhere the list closes.
fn click_outside(app: &mut App, at: Position) {
    let (inside, cells) = (app.frame.inside(Pane::Histograms), app.frame.heat);
    let lines = Rect { height: (cells.lines() as u16).min(inside.height), ..inside };
    let is_linked = app.pane == Pane::Histograms && app.frame.beside_heat().is_some() && lines.contains(at);
    let (Some(model), true) = (app.model.clone(), is_linked) else {
        app.layers.pop();
        return;
    };
    let (line, column) = (usize::from(at.y - inside.y), usize::from(at.x - inside.x));
    let Some(map) = app.histograms.heat.map() else { return };
    let clicked = nearest(map, cells, line, column);
    let Some(menu) = app.top::<Menu<ExecutionNumber>>() else { return };
    let listed = menu.fitting().filter_map(|item| item.choice.execution());
    let is_inside = |number: &u32| map.place(&model, ExecutionId::from_raw(*number)) == Some(clicked);
    let slowest = |number: &u32| (Reverse(model.executions.duration(ExecutionId::from_raw(*number).index())), *number);
    match listed.filter(is_inside).min_by_key(slowest) {
        Some(number) => go_to(app, number),
        None => app.say("no execution of the list is there"),
    }
}

static TIME: PromptPurpose = PromptPurpose {
    label: |_| "go to time (12.5s, 09:45:56) ",
    typed: None,
    next: None,
    entered: |app, text| at_time(app, text.trim()),
};

/// Ask for a time, whose executions are listed.
pub fn ask_time(app: &mut App) {
    app.open(Prompt::new(&TIME, ""));
}

/// Show the list of those that ran at a time, as it was typed.
fn at_time(app: &mut App, text: &str) {
    if text.is_empty() {
        return;
    }
    match Filter::at_time(text) {
        Ok(filters) => list(app, &filters),
        Err(error) => app.report_failure(format!("{text}: {}", error.fault())),
    }
}

fn list(app: &mut App, filters: &[Filter]) {
    let Some((model, _)) = app.compared_executions() else { return app.say("nothing to show yet") };
    match members(&model, filters, &[]) {
        Ok(ids) if ids.is_empty() => app.report_failure(why_empty(&model, filters, &[])),
        Ok(ids) => show_list(app, ids),
        Err(error) => app.report_failure(error.to_string()),
    }
}

/// Show a list of these.
fn show_list(app: &mut App, ids: Vec<ExecutionId>) {
    let Some(model) = app.model.clone() else { return };
    // A duration is unpacked once: looking at a million of them in each comparison would hold up the screen.
    let mut ids: Vec<_> = ids.into_iter().map(|id| (Reverse(model.executions.duration(id.index())), id)).collect();
    let left_out = ids.len().saturating_sub(MOST);
    if left_out > 0 {
        ids.select_nth_unstable(MOST);
        ids.truncate(MOST);
        app.say(format!("the {MOST} slowest; {} faster ones are not listed", figure::count(left_out as u64)));
    }
    ids.sort_unstable();
    let ids: Vec<ExecutionId> = ids.into_iter().map(|(_, id)| id).collect();
    let digits = ids.iter().max().map_or(1, |last| last.raw().to_string().len());
    let item = |id: &ExecutionId| {
        let ExecutionLine { number, start, duration, what } = line(&model, *id);
        // Without the date, which is that of the recording; thousandths find the line of a log.
        let clock = start.split_once(' ').map(|(_, clock)| clock).filter(|clock| clock.contains(':'));
        let clock = clock.map_or(start.as_str(), |clock| clock.get(..CLOCK).unwrap_or(clock));
        let name = format!("{number:>digits$}  {duration:>8}  {clock}");
        MenuItem { name, help: what, choice: ExecutionNumber(number) }
    };
    let choices = ids.iter().map(item).collect();
    app.open(Menu::new("Executions", choices));
}

/// Show an execution as a timeline: beside the one that is marked, else beside a typical fast one. The list stays
/// below.
fn show(app: &mut App, number: u32) {
    let list = app.layers_of::<Menu<ExecutionNumber>>().next();
    let marked = list.and_then(|list| list.marked.iter().copied().find(|marked| *marked != number));
    let id = ExecutionId::from_raw(number);
    match marked {
        Some(other) => timeline::open_both(app, id, ExecutionId::from_raw(other)),
        None => timeline::open(app, id, ""),
    }
}

/// Make executions of the list the slow group. The fast group keeps its filters; an execution that passes them as well
/// is slow alone.
fn make_slow(app: &mut App, numbers: &[u32]) {
    let count = figure::counted(numbers.len() as u64, "execution");
    let mut fast = groups::effective(app).fast;
    let is_fast = |c: &Comparison| {
        numbers.iter().any(|number| c.fast.members.binary_search(&ExecutionId::from_raw(*number)).is_ok())
    };
    if app.comparison.as_deref().is_some_and(is_fast) {
        let others = Filter::named(Metric::Group, Op::NotEqual, GroupSide::Slow.name());
        fast.retain(|filter| *filter != others);
        fast.push(others);
    }
    groups::make_slow(app, numbers, fast, &format!("slow group: {count} of the list; u goes back"))
}
