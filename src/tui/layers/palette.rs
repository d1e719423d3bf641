//! The palette: any action, theme or task by its name.

use super::menu::{Choice, Menu, MenuItem};
use super::tasks::{TaskName, task_choices};
use crate::tui::actions::Action;
use crate::tui::app::{App, LayerResponse};
use crate::tui::update::themes::take_theme;

#[derive(Clone, Debug)]
enum PaletteChoice {
    Act(Action),
    Task(TaskName),
    /// A theme, by position.
    Theme(usize),
}

impl Choice for PaletteChoice {
    fn chosen(self) -> LayerResponse {
        match self {
            PaletteChoice::Act(action) => LayerResponse::act(action).closing(),
            PaletteChoice::Task(task) => task.chosen(),
            PaletteChoice::Theme(at) => LayerResponse::change(move |app| take_theme(app, at)).closing(),
        }
    }
}

/// Show the list.
pub fn open(app: &mut App) {
    let mut choices: Vec<MenuItem<PaletteChoice>> = app
        .options
        .keys
        .all(app.pane.scope())
        .map(|e| MenuItem {
            name: e.name.into(),
            help: format!("{}  {}", e.help, e.keys),
            choice: PaletteChoice::Act(e.action),
        })
        .collect();
    let themes = app.themes.iter().enumerate();
    choices.extend(themes.map(|(i, t)| MenuItem {
        name: format!("theme {}", t.name),
        help: "use this theme".into(),
        choice: PaletteChoice::Theme(i),
    }));
    let tasks = task_choices(app, "task ").into_iter();
    choices.extend(tasks.map(|MenuItem { name, help, choice }| MenuItem {
        name,
        help,
        choice: PaletteChoice::Task(choice),
    }));
    app.open(Menu::new("Any action", choices));
}
