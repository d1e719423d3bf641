//! The tasks to choose from; at the begin of a session the programs, where the recording does not say which is meant.

use super::menu::{Choice, Menu, MenuItem};
use crate::base::figure;
use crate::model::choice::{ProgramTask, TaskChoice};
use crate::tui::app::{App, LayerResponse};
use crate::tui::job::{Job, TaskSummary};
use crate::tui::widget::strip;
use std::cmp::Reverse;
use std::sync::Arc;

/// A task, by its name.
#[derive(Clone, Debug)]
pub struct TaskName(String);

impl Choice for TaskName {
    fn chosen(self) -> LayerResponse {
        LayerResponse::change(|app| match app.task() == Some(&self.0) {
            true => {}
            false => app.begin(Job::Analyse { task: Some(self.0) }),
        })
        .closing()
    }
}

/// Title of the list of tasks.
const TASKS: &str = "Task";
/// Title of the list of programs where the task was guessed.
const WHICH: &str = "Which program was meant? The recording does not say; the first is explained";

/// The programs that could be asked about are known: ask which is meant if the answer is a guess among several.
pub fn take_programs(app: &mut App, choice: TaskChoice) {
    let is_open = choice.is_open();
    app.programs = choice.programs;
    if is_open && app.layers.is_empty() {
        let choices = program_choices(app, "");
        app.open(Menu::new(WHICH, choices));
    }
}

/// The programs to choose from, by the task that is asked about first.
fn program_choices(app: &App, prefix: &str) -> Vec<MenuItem<TaskName>> {
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
            choice: TaskName(one.task.clone()),
        }
    };
    app.programs.iter().map(item).collect()
}

/// Executions that are too few to be compared: their tasks come last.
const FEW: u64 = 12;

/// The tasks to choose from: once they are counted, those that have executions, by the extra time of the slowest.
pub fn task_choices(app: &App, prefix: &str) -> Vec<MenuItem<TaskName>> {
    let Some(model) = &app.model else { return Vec::new() };
    let current = app.task();
    let item = |name: &str, help: String| MenuItem {
        name: format!("{prefix}{name}"),
        help: if Some(name) == current { format!("{help}  current task") } else { help },
        choice: TaskName(name.to_owned()),
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
pub fn open(app: &mut App) {
    let choices = task_choices(app, "");
    if choices.is_empty() {
        return app.say("tasks are not known yet");
    }
    app.open(Menu::new(TASKS, choices));
    if app.surveyed.is_none() && app.busy.is_none() {
        app.begin(Job::Survey)
    }
}

/// The tasks are counted: the list shows it.
pub fn on_survey(app: &mut App, tasks: Arc<[TaskSummary]>) {
    app.surveyed = Some(tasks);
    let new = task_choices(app, "");
    if let Some(menu) = app.top_mut::<Menu<TaskName>>().filter(|menu| menu.title == TASKS) {
        menu.replace(new);
    }
}
