//! Bookmarks: asking for a note, keeping it, and going to a place.

use super::menu::{Choice, Menu, MenuItem};
use super::prompt::{Prompt, PromptPurpose};
use crate::base::time::Timestamp;
use crate::model::root_cause::CausedDelay;
use crate::tui::app::{App, LayerResponse};
use crate::tui::bookmarks::{Bookmark, BookmarkPlace};
use crate::tui::message::UiEffect;
use crate::tui::pane::Pane;
use crate::tui::panes;
use crate::tui::panes::tree::{go_to, remember_node};
use crate::tui::sources::RootCauseRow;
use crate::tui::tree::find_path;
use crate::tui::update::patterns::show;

use crate::view::words;

/// A bookmark, by its position.
#[derive(Clone, Debug)]
struct BookmarkPosition(usize);

impl Choice for BookmarkPosition {
    fn chosen(self) -> LayerResponse {
        LayerResponse::change(move |app| go(app, self.0)).closing()
    }
}

/// Ask for the note on the item under the cursor; one that exists is the first text.
pub fn ask(app: &mut App) {
    let Some(place) = panes::view(app.pane).place(app) else {
        let is_inverted = app.pane == Pane::Tree && app.tree.inverted.is_some();
        return app.say(if is_inverted {
            "bookmarks lead to the tree with callers first; I: show it"
        } else {
            "no item here to bookmark"
        });
    };
    let text = note_on(app, &place).unwrap_or_default().to_owned();
    app.open(Prompt::new(&NOTE, text));
}

static NOTE: PromptPurpose = PromptPurpose {
    label: |_| "note (empty: no bookmark) ",
    typed: None,
    next: None,
    entered: |app, text| keep(app, text),
};

/// Keep the note that was typed; an empty one removes the bookmark.
fn keep(app: &mut App, note: &str) {
    let Some(place) = panes::view(app.pane).place(app) else { return };
    let task = app.task().map(str::to_owned);
    let before = app.bookmarks.len();
    app.bookmarks.retain(|b| b.task != task || b.place != place);
    let note = note.trim();
    if note.is_empty() {
        let removed = app.bookmarks.len() < before;
        app.say(if removed { "bookmark removed" } else { "no note, no bookmark" });
    } else {
        app.say(format!("bookmarked {}; B lists all", place.title()));
        app.bookmarks.push(Bookmark { task, place, note: note.to_owned() });
    }
    app.effects.push(UiEffect::KeepState)
}

/// List all bookmarks.
pub fn list(app: &mut App) {
    if app.bookmarks.is_empty() {
        return app.say("no bookmarks yet; b makes one of the item under the cursor");
    }
    let item = |(at, b): (usize, &Bookmark)| MenuItem {
        name: b.place.title(),
        help: b.note.clone(),
        choice: BookmarkPosition(at),
    };
    let choices = app.bookmarks.iter().enumerate().map(item).collect();
    app.open(Menu::new("Bookmarks", choices));
}

/// Go to the place of a bookmark.
fn go(app: &mut App, at: usize) {
    let Some(bookmark) = app.bookmarks.get(at).cloned() else { return };
    if bookmark.task.as_deref() != app.task() {
        let task = bookmark.task.as_deref().unwrap_or("no task");
        return app.say(format!("a bookmark of {task}: press T to choose that task first"));
    }
    match bookmark.place {
        BookmarkPlace::Context { path } => {
            let Some((model, comparison)) = app.compared_executions() else { return };
            let Some(node) = find_path(&model, &comparison.tree, &path) else {
                app.report_failure("none of the compared executions was there; g proposes other groups");
                return;
            };
            remember_node(app);
            app.tree.touched = true;
            if let Some(node) = comparison.tree.nodes.get(node as usize) {
                go_to(app, node.context);
            }
        }
        BookmarkPlace::Metric { metric } => {
            let rows = app.counts.as_ref().map(|c| &c.rows);
            match rows.and_then(|rows| rows.iter().position(|row| words::metric(&row.metric) == metric)) {
                Some(row) => {
                    app.histograms.go_to_row(row);
                    show(app, Pane::Histograms)
                }
                None => app.report_failure(format!("no executions here have {metric}")),
            }
        }
        BookmarkPlace::Anomaly { start_ns, .. } => {
            if !go_to_anomaly(app, start_ns) {
                show(app, Pane::Anomalies);
                app.say(match app.effects.is_empty() {
                    true => "no anomaly begins then under these limits",
                    false => "patterns are being mined; go there again when they are done",
                });
            }
        }
    }
}

/// Put the cursor on the root cause whose occurrence begins then.
fn go_to_anomaly(app: &mut App, start_ns: i64) -> bool {
    let Some(found) = app.patterns.found.clone() else { return false };
    let begins = |o: &CausedDelay| o.span.start.since(Timestamp::ZERO) == start_ns;
    let mut rows = (0_u32..).zip(&found.anomalies.sources).flat_map(|(source, s)| {
        let occurrences = (0_u32..).zip(&s.occurrences);
        occurrences.filter(|(_, o)| begins(o)).map(move |(occurrence, _)| (source, occurrence))
    });
    let Some((source, occurrence)) = rows.next() else { return false };
    app.pane = Pane::Anomalies;
    app.patterns.list.go_to(RootCauseRow::Occurrence(source, occurrence))
        || app.patterns.list.go_to(RootCauseRow::Source(source))
}

/// The note on a place of the current task.
fn note_on<'a>(app: &'a App, place: &BookmarkPlace) -> Option<&'a str> {
    let task = app.task();
    app.bookmarks.iter().find(|b| b.task.as_deref() == task && b.place == *place).map(|b| b.note.as_str())
}
