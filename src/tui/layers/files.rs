//! Files that the user names: the answer in the format of the ending, and the picture of the screen.

use super::prompt::{Prompt, PromptPurpose, last_lines};
use crate::base::figure;
use crate::base::file::Existing;
use crate::tui::app::{App, Layer, LayerResponse};
use crate::tui::canvas::Canvas;
use crate::tui::copied;
use crate::tui::job::{Exported, Job, SelectedPath, WriteOutcome};
use crate::tui::key::KeyPress;
use crate::tui::message::UiEffect;
use crate::tui::theme::StyleScope;
use crate::view::report::{ENDINGS, ReportFormat};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The ending of an execution database.
const DATABASE: &str = ".why";

/// The ending of the JSON document.
const JSON: &str = ".json";

/// Columns from which the prompt for a file names formats.
const ROOM_FOR_ENDINGS: u16 = 72;

/// What is written to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileContent {
    /// The answer, in the format of the ending.
    Answer,
    /// The picture of the screen.
    Picture,
}

static ANSWER: PromptPurpose = PromptPurpose {
    label: |app| {
        if app.size.0 >= ROOM_FOR_ENDINGS { "export (Tab: .html .md .svg .why ...) to " } else { "export to " }
    },
    typed: None,
    next: Some(next_ending),
    entered: |app, text| write(app, FileContent::Answer, text.into(), Existing::Keep),
};

static PICTURE: PromptPurpose = PromptPurpose {
    label: |_| "save SVG to ",
    typed: None,
    next: None,
    entered: |app, text| write(app, FileContent::Picture, text.into(), Existing::Keep),
};

/// The name with the next ending that an answer can have: first the page, then the other reports, the database, and the
/// document again.
fn next_ending(name: &str) -> String {
    let reports = [".html", ".md", ".svg", ".folded", ".pb.gz", ".speedscope.json"];
    let all: Vec<&str> = reports.into_iter().chain([DATABASE, JSON]).collect();
    // `.speedscope.json` ends like the document.
    let now = all.iter().position(|ending| name.ends_with(ending));
    let stem = now.and_then(|at| name.strip_suffix(all[at])).unwrap_or(name);
    let next = now.map_or(0, |at| (at + 1) % all.len());
    format!("{stem}{}", all[next])
}

/// The question whether a file may be replaced.
#[derive(Clone, Debug)]
struct Replace {
    content: FileContent,
    path: PathBuf,
}

impl Layer for Replace {
    fn key(&mut self, key: KeyPress, _: &App) -> LayerResponse {
        match key.typed() {
            Some('y' | 'Y') => {
                let Replace { content, path } = self.clone();
                LayerResponse::change(move |app| write(app, content, path, Existing::Replace)).closing()
            }
            _ => LayerResponse::CLOSE,
        }
    }

    fn draw(&self, canvas: &mut Canvas<'_>, app: &App) {
        let mut line = canvas.part(last_lines(app, 1));
        line.clear();
        let path = self.path.display();
        let question = format!("The file exists. Overwrite it? y: yes, any other key: no ({path})");
        line.text(0, 0, &question, StyleScope::Warning);
    }

    fn is_line(&self) -> bool {
        true
    }
}

/// Ask for the file of the answer.
pub fn ask_export(app: &mut App) {
    if is_asked_early(app) {
        return;
    }
    let is_missing = of_front(app).is_none();
    let name = subject(app);
    ask(app, &ANSWER, is_missing, (&name, JSON));
}

/// Ask for the file of a database.
pub fn ask_database(app: &mut App) {
    if is_asked_early(app) {
        return;
    }
    let is_missing = app.model.is_none();
    let name = app.task().unwrap_or("executions").to_owned();
    ask(app, &ANSWER, is_missing, (&name, DATABASE));
}

/// True where a job is running whose result the file would have, or that writes the file before; the screen says so.
fn is_asked_early(app: &mut App) -> bool {
    let Some(what) = app.busy.as_ref().map(|busy| busy.what) else { return false };
    app.say(format!("still {what}; save once that is done"));
    true
}

/// Ask for the file of the picture of the screen.
pub fn ask_picture(app: &mut App) {
    let name = subject(app);
    ask(app, &PICTURE, false, (&name, ".svg"));
}

/// What the pane in front is about.
fn subject(app: &App) -> String {
    if app.pane.is_of_patterns() { "anomalies".to_owned() } else { app.task().unwrap_or("screen").to_owned() }
}

/// Ask for a file; its name is proposed.
fn ask(app: &mut App, purpose: &'static PromptPurpose, is_missing: bool, (name, ending): (&str, &str)) {
    if is_missing {
        return app.say("nothing to save yet");
    }
    let name: String = name.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
    app.open(Prompt::new(purpose, format!("whyslow-{name}{ending}")));
}

/// Write the file that was named.
fn write(app: &mut App, content: FileContent, path: PathBuf, existing: Existing) {
    if path.as_os_str().is_empty() {
        app.say("no file name given; nothing written");
        return;
    }
    if content == FileContent::Picture {
        return app.effects.push(UiEffect::SavePicture { path, existing });
    }
    match exported(app, &path) {
        Ok(what) => app.begin(Job::Export { what, path, existing }),
        Err(why) => {
            app.report_failure(why);
        }
    }
}

/// What a file of this name holds, by its ending; else why it cannot be written.
fn exported(app: &App, path: &Path) -> Result<Exported, String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    if let Some(format) = ReportFormat::of(path) {
        let (model, comparison) =
            app.compared_executions().ok_or("nothing to report yet: no executions are compared")?;
        let comparison = match copied::reported(app, &comparison) {
            Cow::Owned(said) => Arc::new(said),
            Cow::Borrowed(_) => comparison,
        };
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
pub fn on_outcome(app: &mut App, content: FileContent, path: PathBuf, outcome: WriteOutcome) {
    match outcome {
        WriteOutcome::Written(bytes) => {
            app.say(format!("{} written, {}", path.display(), figure::bytes(bytes as f64)));
        }
        WriteOutcome::Exists => app.open(Replace { content, path }),
        WriteOutcome::Failed(what) => app.report_failure(format!("writing failed: {what}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_ending_leads_through_all_formats_and_back() {
        let names: Vec<String> =
            std::iter::successors(Some("a.b.json".to_owned()), |name| Some(next_ending(name))).take(9).collect();
        assert_eq!((names[1].as_str(), names[8].as_str()), ("a.b.html", "a.b.json"));
        for (ending, format) in ENDINGS {
            let has = names.iter().any(|name| ReportFormat::of(Path::new(name)) == Some(format));
            assert!(has, "{ending}: {names:?}");
        }
        assert!(names.contains(&format!("a.b{DATABASE}")), "{names:?}");
        assert_eq!(next_ending("answer"), "answer.html");
    }
}
