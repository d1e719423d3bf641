//! The footer: the keys of the dialog on top, else of the pane, from the table of actions; or a message.

use crate::tui::app::App;
use crate::tui::canvas::Canvas;
use crate::tui::key_bar;
use crate::tui::theme::StyleScope;

pub fn draw(canvas: &mut Canvas<'_>, app: &App) {
    if let Some(status) = &app.status {
        let scope = if status.failed { StyleScope::Error } else { StyleScope::Strong };
        canvas.text(0, 0, &status.text, scope);
        return;
    }
    if let Some(top) = app.layers.last() {
        let mut at = 0;
        for (key, word) in top.keys(app) {
            at = canvas.text(at, 0, key, StyleScope::Key) + 1;
            at = canvas.text(at, 0, word, StyleScope::Dim) + 2;
        }
        return;
    }
    for word in key_bar::words(app, canvas.width()) {
        let at = canvas.text(word.x, 0, &word.key, StyleScope::Key) + 1;
        canvas.text(at, 0, word.word, StyleScope::Dim);
    }
}
