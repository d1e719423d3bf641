//! Dialogs: details, the palette, tasks, themes, and prompts for files.

use super::moving::bin_grid;
use super::tree::both;
use super::{UiEffect, begin, complain, say};
use crate::base::figure;
use crate::view::tui::actions;
use crate::view::tui::app::{App, Cursor, Pane};
use crate::view::tui::details;
use crate::view::tui::input::TextInput;
use crate::view::tui::jobs::{Job, Outcome};
use crate::view::tui::overlay::{MenuCommand, MenuItem, Overlay, OverlayPage, PromptPurpose};
use crate::view::tui::setup::Exported;
use crate::view::tui::theme::Theme;
use std::path::PathBuf;
use std::sync::Arc;

pub(super) fn open_details(app: &mut App) {
    if app.pane.is_of_patterns() {
        return open_anomaly(app);
    }
    let Some((model, comparison)) = both(app) else { return say(app, "nothing to show yet") };
    let details = match (app.pane, app.tree.cursor) {
        (Pane::Tree, Cursor::Cause(i)) => comparison.causes.get(i).map(|c| details::of_cause(&model, &comparison, c)),
        (Pane::Tree, Cursor::Row(_)) => app.node().map(|(at, _)| details::of_context(&model, &comparison, at)),
        _ => bin_grid(app).zip(app.histogram_row()).map(|(grid, row)| {
            let selected = app.histograms.selection.as_ref().filter(|s| s.metric == row.metric);
            let bin = app.histograms.bin;
            let bins = selected.map_or(bin..bin + grid.step, |s| s.bins(grid.step));
            details::of_range(&model, &comparison, row, bins.start..bins.end.min(row.bins.len()))
        }),
    };
    match details {
        Some(details) => app.overlays.push(Overlay::page(OverlayPage::Details(Box::new(details)))),
        None => say(app, "nothing to show here"),
    }
}

fn open_anomaly(app: &mut App) {
    let patterns = &app.patterns;
    let place = patterns.path;
    let shown = patterns.found.clone().and_then(|found| {
        let at = match app.pane {
            Pane::Path => found.step(place.path, place.step)?.anomaly,
            _ => patterns.list.anomaly(&found)?,
        };
        Some(OverlayPage::Anomaly(found, at))
    });
    match shown {
        Some(page) => app.overlays.push(Overlay::page(page)),
        None => say(app, "nothing to show here"),
    }
}

pub(super) fn palette(app: &App) -> Overlay {
    let mut choices: Vec<MenuItem> = actions::all(app.pane.place())
        .map(|e| MenuItem {
            name: e.name.into(),
            help: format!("{}  {}", e.help, e.keys),
            does: MenuCommand::Act(e.action),
        })
        .collect();
    let themes = app.themes.iter().enumerate();
    choices.extend(themes.map(|(i, t)| MenuItem {
        name: format!("theme {}", t.name),
        help: "use this theme".into(),
        does: MenuCommand::Theme(i),
    }));
    choices.extend(task_choices(app, "task "));
    Overlay::list("Any action", choices)
}

pub(super) fn task_choices(app: &App, prefix: &str) -> Vec<MenuItem> {
    let Some(model) = &app.model else { return Vec::new() };
    let choice = |(i, task): (usize, &String)| MenuItem {
        name: format!("{prefix}{task}"),
        help: if i == model.task { "current task".into() } else { String::new() },
        does: MenuCommand::Task(task.clone()),
    };
    model.tasks.iter().enumerate().map(choice).collect()
}

pub(super) fn tasks(app: &App) -> Option<Overlay> {
    let choices = task_choices(app, "");
    (!choices.is_empty()).then(|| Overlay::list("Task", choices))
}

/// The built-in theme for a light or a dark ground, unless the user has chosen one.
pub(super) fn suit_ground(app: &mut App, light: bool) {
    let suits = if light { "light" } else { "dark" };
    let chosen = app.looks.theme.is_some() || app.theme.name != app.looks.suits;
    let source = app.themes.iter().find(|t| t.name == suits);
    if let Some(Ok(theme)) = source.filter(|_| !chosen).map(|source| Theme::compile(source, app.looks.depth)) {
        app.looks.suits = suits;
        app.theme = theme;
    }
}

pub(super) fn take_theme(app: &mut App, at: usize) {
    let Some(source) = app.themes.get(at) else { return };
    match Theme::compile(source, app.looks.depth) {
        Ok(theme) => {
            say(app, &format!("theme {theme}"));
            app.theme = theme;
        }
        Err(error) => complain(app, &error.to_string()),
    }
}

pub(super) fn ask_file(app: &mut App, asked: PromptPurpose) {
    if asked == PromptPurpose::Export && (exported(app).is_none() || app.busy.is_some()) {
        return say(app, "nothing to export yet");
    }
    let name = if app.pane.is_of_patterns() { "anomalies" } else { app.task().unwrap_or("screen") };
    let task: String = name.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
    let ending = if asked == PromptPurpose::Export { "json" } else { "svg" };
    let input = TextInput::new(format!("whyslow-{task}.{ending}"));
    app.overlays.push(Overlay::Prompt { asked, input });
}

pub(super) fn write_file(app: &mut App, asked: PromptPurpose, path: PathBuf, overwrite: bool) -> Vec<UiEffect> {
    if path.as_os_str().is_empty() {
        say(app, "no file name given; nothing written");
        return Vec::new();
    }
    match (asked, exported(app)) {
        (PromptPurpose::Picture, _) => vec![UiEffect::SavePicture { path, overwrite }],
        (PromptPurpose::Export, Some(what)) => begin(app, Job::Export { what, path, overwrite }),
        _ => Vec::new(),
    }
}

/// The results of the pane in front, with the selected path.
fn exported(app: &App) -> Option<Exported> {
    let selected = app.patterns.selected();
    if app.pane.is_of_patterns() {
        let found = app.patterns.found.clone()?;
        return Some(Exported::Anomalies { found, path: selected.map(|(_, at)| at), compared: app.compared.clone() });
    }
    let (model, comparison) = both(app)?;
    Some(Exported::Comparison { model, comparison, path: selected.map(|(found, at)| (Arc::clone(found), at)) })
}

pub(super) fn on_outcome(app: &mut App, asked: PromptPurpose, path: PathBuf, outcome: Outcome) {
    match outcome {
        Outcome::Written(bytes) => {
            say(app, &format!("{} written, {}", path.display(), figure::bytes(bytes as f64)));
        }
        Outcome::Exists => app.overlays.push(Overlay::Replace { asked, path }),
        Outcome::Failed(what) => complain(app, &format!("writing failed: {what}")),
    }
}
