//! Dialogs that are not layers of their own yet.

use super::dialogs;
use super::respond::respond;
use crate::view::tui::app::{App, Layer, LayerResponse};
use crate::view::tui::canvas::Canvas;
use crate::view::tui::key::KeyPress;
use crate::view::tui::overlay::{EMPTY, Overlay};
use crate::view::tui::screen::draw_overlay;
use ratatui::layout::Position;

impl Layer for Overlay {
    fn key(&mut self, key: KeyPress, app: &App) -> LayerResponse {
        let response = self.answer(key, &app.options.keys);
        LayerResponse::change(|app| respond(app, response))
    }

    fn paste(&mut self, text: &str) -> LayerResponse {
        let response = self.insert(text);
        LayerResponse::change(|app| respond(app, response))
    }

    fn click(&mut self, at: Position, _: &App) -> LayerResponse {
        LayerResponse::change(move |app| dialogs::click(app, at.x, at.y))
    }

    fn drag(&mut self, column: u16, _: &App) -> LayerResponse {
        LayerResponse::change(move |app| dialogs::drag(app, column))
    }

    fn wheel(&mut self, lines: isize, _: &App) -> LayerResponse {
        LayerResponse::change(move |app| dialogs::wheel(app, lines))
    }

    fn draw(&self, canvas: &mut Canvas<'_>, app: &App) {
        draw_overlay(canvas, app, self);
    }

    fn keys(&self, app: &App) -> &'static [(&'static str, &'static str)] {
        let is_empty = matches!(self, Overlay::Overview(_)) && app.overview.whole.is_none();
        if is_empty { EMPTY } else { self.words() }
    }
}
