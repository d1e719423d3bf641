//! The mouse in dialogs: a click chooses an entry, points to a segment of a time-line or to a time of the recording;
//! outside of a page or list it closes that. The wheel scrolls pages and lists and zooms drawings.

use super::respond::respond;
use super::{overview, timeline};
use crate::view::tui::actions::Action;
use crate::view::tui::app::App;
use crate::view::tui::key::KeyPress;
use crate::view::tui::message::UiEffect;
use crate::view::tui::overlay::{Overlay, OverlayResponse, Scroll};
use crossterm::event::KeyCode;
use std::sync::Arc;

/// The dialog on top, as far as the mouse distinguishes.
enum Kind {
    Page,
    List,
    Timeline,
    Overview,
}

fn kind(app: &App) -> Option<Kind> {
    Some(match app.top::<Overlay>()? {
        Overlay::Page { .. } => Kind::Page,
        Overlay::List(_) => Kind::List,
        Overlay::Timeline(_) => Kind::Timeline,
        Overlay::Overview(_) => Kind::Overview,
    })
}

/// The button went down on a cell.
pub(super) fn click(app: &mut App, x: u16, y: u16) -> Vec<UiEffect> {
    let area = app.frame.overlay;
    let is_inside = area.contains((x, y).into());
    match kind(app) {
        None => Vec::new(),
        Some(Kind::Page | Kind::List) if !is_inside => respond(app, OverlayResponse::Close),
        Some(Kind::Page) => Vec::new(),
        Some(Kind::List) => choose(app, usize::from(y - area.y)),
        Some(Kind::Timeline) => {
            timeline::click(app, usize::from(x), usize::from(y));
            Vec::new()
        }
        Some(Kind::Overview) => {
            overview::point_to(app, x, overview::Pointing::Click);
            Vec::new()
        }
    }
}

/// The entry of a line of the list gets the cursor; the one that has it is chosen.
fn choose(app: &mut App, line: usize) -> Vec<UiEffect> {
    let shown = usize::from(app.frame.overlay.height).saturating_sub(2);
    let Some(Overlay::List(menu)) = app.top_mut::<Overlay>() else { return Vec::new() };
    let fitting = menu.fitting().count();
    let offset = (menu.at + 1).saturating_sub(shown);
    let Some(entry) = line.checked_sub(2).map(|line| offset + line).filter(|entry| *entry < fitting) else {
        return Vec::new();
    };
    let is_again = std::mem::replace(&mut menu.at, entry) == entry;
    if is_again { press(app, KeyCode::Enter) } else { Vec::new() }
}

/// The mouse moved with the button down.
pub(super) fn drag(app: &mut App, x: u16) -> Vec<UiEffect> {
    if let Some(Kind::Overview) = kind(app) {
        overview::point_to(app, x, overview::Pointing::Drag);
    }
    Vec::new()
}

/// Lines of the wheel, upwards below zero.
pub(super) fn wheel(app: &mut App, by: isize) -> Vec<UiEffect> {
    let zoom = if by < 0 { Action::ZoomIn } else { Action::ZoomOut };
    match kind(app) {
        Some(Kind::Page) => respond(app, OverlayResponse::Scroll(Scroll::Lines(by))),
        Some(Kind::List) => {
            let key = if by < 0 { KeyCode::Up } else { KeyCode::Down };
            (0..by.unsigned_abs()).flat_map(|_| press(app, key)).collect()
        }
        Some(Kind::Timeline) => timeline::act(app, zoom),
        Some(Kind::Overview) => overview::act(app, zoom),
        None => Vec::new(),
    }
}

/// What a key does on the dialog.
fn press(app: &mut App, code: KeyCode) -> Vec<UiEffect> {
    let keys = Arc::clone(&app.options.keys);
    let response = app.top_mut::<Overlay>().map(|top| top.answer(KeyPress::of(code), &keys));
    response.map_or(Vec::new(), |response| respond(app, response))
}
