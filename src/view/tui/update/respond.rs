//! The responses of the dialog on top: it closes, scrolls, or its text or entry is used.

use super::act::act;
use super::groups;
use super::moving::scroll_page;
use super::overlays::{take_theme, write_file};
use super::patterns;
use super::tree::{search, step_match};
use crate::base::file::Existing;
use crate::view::tui::app::App;
use crate::view::tui::job::Job;
use crate::view::tui::message::UiEffect;
use crate::view::tui::overlay::{MenuCommand, Overlay, OverlayResponse, PromptPurpose};
use crate::view::tui::search::MatchStep;
use std::path::PathBuf;

/// Do what the dialog on top responded to a key or a paste.
pub(super) fn respond(app: &mut App, response: OverlayResponse) -> Vec<UiEffect> {
    match response {
        OverlayResponse::Taken => {}
        OverlayResponse::Close => drop(app.overlays.pop()),
        OverlayResponse::Scroll(scroll) => scroll_page(app, scroll),
        OverlayResponse::Run(command) => {
            app.overlays.pop();
            match command {
                MenuCommand::Act(action) => return act(app, action),
                MenuCommand::Task(task) => return app.begin(Job::Analyse { task: Some(task) }),
                MenuCommand::Theme(at) => take_theme(app, at),
            }
        }
        OverlayResponse::Typed(purpose) => typed(app, purpose),
        OverlayResponse::Group { side, text, filters } => {
            app.overlays.pop();
            return groups::apply(app, side, text, filters);
        }
        OverlayResponse::Text(purpose, text) => {
            app.overlays.pop();
            match purpose {
                PromptPurpose::Search => {
                    search(app, &text);
                    if !text.is_empty() {
                        step_match(app, MatchStep::Here);
                    }
                }
                PromptPurpose::Filter => patterns::filter(app, &text),
                PromptPurpose::Export | PromptPurpose::Picture => {
                    return write_file(app, purpose, PathBuf::from(text), Existing::Keep);
                }
            }
        }
        OverlayResponse::Replace(purpose, path) => {
            app.overlays.pop();
            return write_file(app, purpose, path, Existing::Replace);
        }
        OverlayResponse::Act(action) => return act(app, action),
    }
    Vec::new()
}

/// Searches and filters run while they are typed: matches show at once.
fn typed(app: &mut App, purpose: PromptPurpose) {
    let Some(Overlay::Prompt { input, .. }) = app.overlays.last() else { return };
    let text = input.text().to_owned();
    match purpose {
        PromptPurpose::Search => search(app, &text),
        PromptPurpose::Filter => patterns::filter(app, &text),
        PromptPurpose::Export | PromptPurpose::Picture => {}
    }
}
