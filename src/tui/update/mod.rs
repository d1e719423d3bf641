//! The only place that changes the state: a message goes in, effects come out.
//!
//! In: keys, pasted text, sizes, results of jobs. Out: [`UiEffect`]s for the loop. Pure: the same state and message
//! give the same state and effects, so that tests play keystrokes without a terminal. After each message the cursors
//! are on existing items, [`App::frame`] is the layout of the new state, and the lines of the cursors are visible in
//! it. A message is read in the frame before it: a click, or a page up, means the screen that the user sees.

mod act;
pub(super) mod groups;
pub(super) mod heat;
mod layers;
mod mouse;
pub(super) mod patterns;
mod restore;
mod results;
pub(super) mod themes;
mod tour;

use super::actions::Action;
use super::app::App;
use super::job::{Busy, Job};
use super::key::KeyPress;
use super::layers::files::{self, FileContent};
use super::layers::threads;
use super::layout;
use super::message::{UiEffect, UiMessage};
use super::pane::Pane;
use super::panes;
use super::setup::FirstQuestion;
use std::sync::Arc;

/// The first job of the program.
pub fn start(app: &mut App, first: FirstQuestion) -> Vec<UiEffect> {
    app.first = first;
    let task = restore::begin(app, first == FirstQuestion::Patterns);
    match first {
        FirstQuestion::Executions => app.begin(Job::Analyse { task }),
        FirstQuestion::Patterns => patterns::show(app, Pane::Anomalies),
    };
    app.frame = layout::frame(app);
    std::mem::take(&mut app.effects)
}

/// Take a message.
pub fn update(app: &mut App, message: UiMessage) -> Vec<UiEffect> {
    take(app, message);
    Pane::ALL.into_iter().for_each(|pane| panes::view(pane).settle(app));
    tour::advance(app);
    app.frame = layout::frame(app);
    heat::refresh(app);
    Pane::ALL.into_iter().for_each(|pane| panes::view(pane).scroll(app));
    layers::lay_out(app);
    std::mem::take(&mut app.effects)
}

fn take(app: &mut App, message: UiMessage) {
    match message {
        UiMessage::Key(key) => {
            app.status = None;
            on_key(app, key)
        }
        UiMessage::Paste(text) => layers::ask(app, |top, _| top.paste(&text)),
        UiMessage::Resize(columns, lines) => {
            app.size = (columns, lines);
            threads::on_resize(app)
        }
        UiMessage::Wheel(lines) if !app.layers.is_empty() => layers::ask(app, |top, app| top.wheel(lines, app)),
        UiMessage::Wheel(lines) => {
            let action = if lines < 0 { Action::Up } else { Action::Down };
            (0..lines.unsigned_abs()).for_each(|_| act::act(app, action));
        }
        UiMessage::Click(x, y) => mouse::click(app, x, y),
        UiMessage::Drag(x, y) => mouse::drag(app, x, y),
        UiMessage::Done(done) => results::on_done(app, done),
        UiMessage::Background(background) => themes::suit_background(app, background),
        UiMessage::Progress(lane, progress) => {
            if let Some(now) = app.busy_mut(lane) {
                *now = Busy { what: now.what, ..progress };
            }
        }
        UiMessage::Saved(path, outcome) => files::on_outcome(app, FileContent::Picture, path, outcome),
    }
}

fn on_key(app: &mut App, key: KeyPress) {
    let keys = Arc::clone(&app.options.keys);
    if !app.layers.is_empty() {
        return layers::ask(app, |top, app| top.key(key, app));
    }
    match keys.bound(key, app.pane.scope()) {
        Some(action) => act::act(app, action),
        None => {
            app.say(format!("{key} is not bound here; ?: show the keys"));
        }
    }
}
