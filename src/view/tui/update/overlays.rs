//! Dialogs: details, the palette, tasks, themes, and prompts for files.

use crate::base::figure;
use crate::compare::Comparison;
use crate::model::Model;
use crate::model::choice::{ProgramTask, TaskChoice};
use crate::view::tui::app::App;
use crate::view::tui::background::Background;
use crate::view::tui::details::{self, SampleSearch};
use crate::view::tui::job::{Job, TaskSummary};
use crate::view::tui::menu::{MenuCommand, MenuItem};
use crate::view::tui::message::UiEffect;
use crate::view::tui::overlay::{Overlay, OverlayPage};
use crate::view::tui::pane::Pane;
use crate::view::tui::panes::tree::state::Cursor;
use crate::view::tui::theme::Theme;
use crate::view::tui::widget::strip;
use std::cmp::Reverse;
use std::sync::Arc;

pub(super) fn open_details(app: &mut App) {
    if app.pane.is_of_patterns() {
        return open_anomaly(app);
    }
    let Some((model, comparison)) = app.compared_executions() else { return app.say("nothing to show yet") };
    let details = match (app.pane, app.tree.cursor) {
        (Pane::Tree, Cursor::Cause(i)) => {
            comparison.causes.get(i).map(|c| details::of_cause(&model, &comparison, c, SampleSearch::Done))
        }
        (Pane::Tree, Cursor::Row(_)) => node_details(app, &model, &comparison, SampleSearch::Done),
        _ => range_details(app, &model, &comparison),
    };
    match details {
        Some(details) => {
            app.open(Overlay::page(OverlayPage::Details { details: Box::new(details), example: 0 }));
        }
        None => app.say("nothing to show here"),
    }
}

/// Details of the node under the cursor of the tree that is shown.
pub(super) fn node_details(
    app: &App,
    model: &Model,
    comparison: &Comparison,
    search: SampleSearch,
) -> Option<details::Details> {
    let (node, _) = app.node()?;
    Some(match &app.tree.inverted {
        Some(inverted) => details::of_inverted(model, comparison, &inverted.tree, node, search),
        None => details::of_context(model, comparison, node, search),
    })
}

/// Details of the selected range of the metric under the cursor.
pub(super) fn range_details(app: &App, model: &Model, comparison: &Comparison) -> Option<details::Details> {
    let (grid, row) = app.bin_grid().zip(app.histogram_row())?;
    let selected = app.histograms.selection.as_ref().filter(|s| s.metric == row.metric);
    let bin = app.histograms.bin;
    let bins = selected.map_or(bin..bin + grid.step, |s| s.bins(grid.step));
    Some(details::of_range(model, comparison, row, bins.start..bins.end.min(row.bins.len())))
}

fn open_anomaly(app: &mut App) {
    let patterns = &app.patterns;
    let place = patterns.path;
    let shown = patterns.found.clone().and_then(|found| {
        let at = match app.pane {
            Pane::Path => found.step(place.path, place.step)?.anomaly,
            _ => patterns.list.anomaly(&found)?,
        };
        Some(OverlayPage::Anomaly { report: found, at, example: 0 })
    });
    match shown {
        Some(page) => app.open(Overlay::page(page)),
        None => app.say("nothing to show here"),
    }
}

pub(super) fn palette(app: &App) -> Overlay {
    let mut choices: Vec<MenuItem> = app
        .options
        .keys
        .all(app.pane.scope())
        .map(|e| MenuItem {
            name: e.name.into(),
            help: format!("{}  {}", e.help, e.keys),
            command: MenuCommand::Act(e.action),
        })
        .collect();
    let themes = app.themes.iter().enumerate();
    choices.extend(themes.map(|(i, t)| MenuItem {
        name: format!("theme {}", t.name),
        help: "use this theme".into(),
        command: MenuCommand::Theme(i),
    }));
    choices.extend(task_choices(app, "task "));
    Overlay::list("Any action", choices)
}

/// Title of the list of tasks.
const TASKS: &str = "Task";
/// Title of the list of programs where the task was guessed.
const WHICH: &str = "Which program was meant? The recording does not say; the first is explained";

/// The programs that could be asked about are known: ask which is meant if the answer is a guess among several.
pub(super) fn take_programs(app: &mut App, choice: TaskChoice) {
    let is_open = choice.is_open();
    app.programs = choice.programs;
    if is_open && app.layers.is_empty() {
        let choices = program_choices(app, "");
        app.open(Overlay::list(WHICH, choices));
    }
}

/// The programs to choose from, by the task that is asked about first.
fn program_choices(app: &App, prefix: &str) -> Vec<MenuItem> {
    let current = app.task();
    let item = |one: &ProgramTask| {
        let time = |ns: i64| figure::time(ns as f64);
        let what = format!("{:>7} {:<15}", figure::count(one.executions as u64), one.kind.words());
        let figures =
            format!("extra {:>7}  p50 {:>7}  p99 {:>7}", time(one.tail_ns), time(one.p50_ns), time(one.p99_ns));
        let most = one.over_time.iter().copied().max().unwrap_or(0).max(1) as f64;
        let over_time = strip::line(&one.over_time.map(|ns| ns as f64), most);
        let recorded = if one.is_recorded { "  recorded" } else { "" };
        let here = if Some(one.task.as_str()) == current { "  current task" } else { "" };
        MenuItem {
            name: format!("{prefix}{}", one.program),
            help: format!("{what} {figures}  {over_time}{recorded}{here}"),
            command: MenuCommand::Task(one.task.clone()),
        }
    };
    app.programs.iter().map(item).collect()
}

/// Executions that are too few to be compared: their tasks come last.
const FEW: u64 = 12;

/// The tasks to choose from: once they are counted, those that have executions, by the extra time of the slowest.
fn task_choices(app: &App, prefix: &str) -> Vec<MenuItem> {
    let Some(model) = &app.model else { return Vec::new() };
    let current = app.task();
    let item = |name: &str, help: String| MenuItem {
        name: format!("{prefix}{name}"),
        help: if Some(name) == current { format!("{help}  current task") } else { help },
        command: MenuCommand::Task(name.to_owned()),
    };
    let mut choices = program_choices(app, prefix);
    let is_new = |name: &&str| app.programs.iter().all(|one| one.task != **name);
    choices.extend(match &app.surveyed {
        Some(tasks) if !tasks.is_empty() => {
            let figures = |t: &TaskSummary| {
                let (p50, p99) = (figure::time(t.p50_ns as f64), figure::time(t.p99_ns as f64));
                let unit = if t.executions == 1 { "execution" } else { "executions" };
                format!("{:>8} {unit:<10}  p50 {p50:>8}  p99 {p99:>8}", figure::count(t.executions))
            };
            let mut new: Vec<&TaskSummary> = tasks.iter().filter(|t| is_new(&t.name.as_str())).collect();
            new.sort_by_key(|t| (t.executions < FEW, Reverse(t.tail_ns()), t.name.as_str()));
            new.into_iter().map(|t| item(&t.name, figures(t))).collect::<Vec<_>>()
        }
        _ => {
            let new = model.tasks.iter().filter(|name| is_new(&name.as_str()));
            new.map(|name| item(name, String::new())).collect()
        }
    });
    choices
}

/// Show the list of tasks; the first time their executions are counted.
pub(super) fn choose_task(app: &mut App) -> Vec<UiEffect> {
    let choices = task_choices(app, "");
    if choices.is_empty() {
        app.say("tasks are not known yet");
        return Vec::new();
    }
    app.open(Overlay::list(TASKS, choices));
    if app.surveyed.is_none() && app.busy.is_none() { app.begin(Job::Survey) } else { Vec::new() }
}

/// The tasks are counted: the list shows it.
pub(super) fn on_survey(app: &mut App, tasks: Arc<[TaskSummary]>) {
    app.surveyed = Some(tasks);
    let new = task_choices(app, "");
    if let Some(Overlay::List(menu)) =
        app.top_mut::<Overlay>().filter(|top| matches!(top, Overlay::List(menu) if menu.title == TASKS))
    {
        menu.replace(new);
    }
}

/// The built-in theme for a light or a dark background, unless the user has chosen one.
pub(super) fn suit_background(app: &mut App, background: Background) {
    let suits = match background {
        Background::Light => "light",
        Background::Dark => "dark",
    };
    let chosen = app.options.theme.is_some() || app.theme.name != app.options.suits;
    let source = app.themes.iter().find(|t| t.name == suits);
    if let Some(Ok(theme)) = source.filter(|_| !chosen).map(|source| Theme::compile(source, app.options.depth)) {
        app.options.suits = suits;
        app.theme = theme;
    }
}

/// The theme after the one in force.
pub(super) fn next_theme(app: &mut App) {
    let at = app.themes.iter().position(|t| t.name == app.theme.name).unwrap_or(0);
    take_theme(app, (at + 1) % app.themes.len().max(1));
}

/// Draw with the theme at this position.
pub(super) fn take_theme(app: &mut App, at: usize) {
    let Some(source) = app.themes.get(at) else { return };
    match Theme::compile(source, app.options.depth) {
        Ok(theme) => {
            app.say(format!("theme {theme}"));
            app.theme = theme;
        }
        Err(error) => app.report_failure(error.to_string()),
    }
}
