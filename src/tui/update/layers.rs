//! Dialogs: the one on top answers keys and the mouse, and what it answers is done.

use super::act::act;
use crate::tui::app::{App, Consequence, Layer, LayerResponse};

/// Let the layer on top answer, which is off the stack meanwhile, and do what it answers.
pub(super) fn ask(app: &mut App, ask: impl FnOnce(&mut dyn Layer, &App) -> LayerResponse) {
    let Some(mut top) = app.layers.pop() else { return };
    let LayerResponse { closes, then } = ask(top.as_mut(), app);
    if !closes {
        app.layers.push(top);
    }
    match then {
        None => {}
        Some(Consequence::Act(action)) => act(app, action),
        Some(Consequence::Change(change)) => change(app),
    }
}

/// The button went down on a cell.
pub(super) fn click(app: &mut App, x: u16, y: u16) {
    let is_footer = app.frame.footer.contains((x, y).into());
    // The first word of the key bar is `Esc close`.
    let is_close = is_footer && x < 10 && app.status.is_none();
    ask(app, |top, app| match () {
        () if top.is_line() => LayerResponse::TAKEN,
        () if is_close => LayerResponse::CLOSE,
        () if is_footer => LayerResponse::TAKEN,
        () => top.click((x, y).into(), app),
    })
}

/// The mouse moved with the button down.
pub(super) fn drag(app: &mut App, x: u16) {
    ask(app, |top, app| top.drag(x, app))
}

/// Lay out the layers, each above those below it.
pub(super) fn lay_out(app: &mut App) {
    for mut layer in std::mem::take(&mut app.layers) {
        layer.lay_out(app);
        app.layers.push(layer);
    }
}
