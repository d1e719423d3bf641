//! Files that the user names: the answer in the format of the ending, and the picture of the screen.

use crate::base::figure;
use crate::base::file::Existing;
use crate::view::report::{ENDINGS, ReportFormat};
use crate::view::tui::app::App;
use crate::view::tui::copied;
use crate::view::tui::input::TextInput;
use crate::view::tui::job::{Exported, Job, SelectedPath, WriteOutcome};
use crate::view::tui::message::UiEffect;
use crate::view::tui::overlay::{Overlay, PromptPurpose};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The ending of an execution database.
const DATABASE: &str = ".why";

/// The ending of the JSON document.
const JSON: &str = ".json";

/// Ask for the file of the answer.
pub(super) fn ask_export(app: &mut App) {
    let is_missing = of_front(app).is_none() || app.busy.is_some();
    let name = subject(app);
    ask(app, PromptPurpose::Export, is_missing, (&name, JSON));
}

/// Ask for the file of a database.
pub(super) fn ask_database(app: &mut App) {
    let is_missing = app.model.is_none() || app.busy.is_some();
    let name = app.task().unwrap_or("executions").to_owned();
    ask(app, PromptPurpose::Export, is_missing, (&name, DATABASE));
}

/// Ask for the file of the picture of the screen.
pub(super) fn ask_picture(app: &mut App) {
    let name = subject(app);
    ask(app, PromptPurpose::Picture, false, (&name, ".svg"));
}

/// What the pane in front is about.
fn subject(app: &App) -> String {
    if app.pane.is_of_patterns() { "anomalies".to_owned() } else { app.task().unwrap_or("screen").to_owned() }
}

/// Ask for a file; its name is proposed.
fn ask(app: &mut App, purpose: PromptPurpose, is_missing: bool, (name, ending): (&str, &str)) {
    if is_missing {
        return app.say("nothing to save yet");
    }
    let name: String = name.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
    let input = TextInput::new(format!("whyslow-{name}{ending}"));
    app.open(Overlay::prompt(purpose, input));
}

/// Write the file that was named.
pub(super) fn write(app: &mut App, purpose: PromptPurpose, path: PathBuf, existing: Existing) -> Vec<UiEffect> {
    if path.as_os_str().is_empty() {
        app.say("no file name given; nothing written");
        return Vec::new();
    }
    if purpose == PromptPurpose::Picture {
        return vec![UiEffect::SavePicture { path, existing }];
    }
    match exported(app, &path) {
        Ok(what) => app.begin(Job::Export { what, path, existing }),
        Err(why) => {
            app.report_failure(why);
            Vec::new()
        }
    }
}

/// What a file of this name holds, by its ending; else why it cannot be written.
fn exported(app: &App, path: &Path) -> Result<Exported, String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    if let Some(format) = ReportFormat::of(path) {
        let (model, comparison) =
            app.compared_executions().ok_or("nothing to report yet: no executions are compared")?;
        return Ok(Exported::Report { model, comparison, command: copied::comparing_command(app), format });
    }
    if name.ends_with(DATABASE) {
        return Ok(Exported::Database);
    }
    if name.ends_with(JSON) {
        return of_front(app).ok_or_else(|| "nothing to save yet".to_owned());
    }
    let mut endings: Vec<&str> =
        [JSON, DATABASE].into_iter().chain(ENDINGS.iter().map(|(ending, _)| *ending)).collect();
    // The line is cut at the screen's edge.
    endings.sort_by_key(|ending| ending.len());
    Err(format!("nothing written: {name} has an unknown ending; use one of {}", endings.join(" ")))
}

/// The JSON document of the pane in front, with the selected path.
fn of_front(app: &App) -> Option<Exported> {
    let selected = app.patterns.selected();
    if app.pane.is_of_patterns() {
        let found = app.patterns.found.clone()?;
        return Some(Exported::Anomalies { found, path: selected.map(|(_, at)| at), compared: app.compared.clone() });
    }
    let (model, comparison) = app.compared_executions()?;
    Some(Exported::Comparison {
        model,
        comparison,
        path: selected.map(|(found, at)| SelectedPath { found: Arc::clone(found), at }),
        bookmarks: app.bookmarks.clone(),
    })
}

/// The file was written, or not.
pub(super) fn on_outcome(app: &mut App, purpose: PromptPurpose, path: PathBuf, outcome: WriteOutcome) {
    match outcome {
        WriteOutcome::Written(bytes) => {
            app.say(format!("{} written, {}", path.display(), figure::bytes(bytes as f64)));
        }
        WriteOutcome::Exists => app.open(Overlay::Replace { purpose, path }),
        WriteOutcome::Failed(what) => app.report_failure(format!("writing failed: {what}")),
    }
}
