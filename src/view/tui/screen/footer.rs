//! The footer: the keys of the dialog on top, else of the pane, from the table of actions; or a message.

use crate::view::tui::actions::{Action, ActionScope, TABLE};
use crate::view::tui::app::App;
use crate::view::tui::canvas::{Canvas, width};
use crate::view::tui::pages::ranks;
use crate::view::tui::theme::StyleScope;

/// Draw it.
pub fn draw(canvas: &mut Canvas<'_>, app: &App) {
    if let Some(status) = &app.status {
        let scope = if status.failed { StyleScope::Error } else { StyleScope::Strong };
        canvas.text(0, 0, &status.text, scope);
        return;
    }
    if let Some(top) = app.overlays.last() {
        let mut at = 0;
        for (key, word) in top.keys() {
            at = canvas.text(at, 0, key, StyleScope::Key) + 1;
            at = canvas.text(at, 0, word, StyleScope::Dim) + 2;
        }
        return;
    }
    let scope = app.pane.scope();
    let own = TABLE.iter().filter(|e| e.scope == scope);
    let entries = own.chain(TABLE.iter().filter(|e| e.scope == ActionScope::Any));
    let mut words: Vec<(String, &str)> = Vec::new();
    let has_ranks = ranks::are_known(app);
    for entry in entries.filter(|e| has_ranks || e.action != Action::ShowRanks) {
        let Some(word) = entry.footer else { continue };
        // `<` represents the pair.
        let key = entry.keys.split(' ').next().unwrap_or_default();
        words.push((if key == "<" { "< >".to_owned() } else { key.to_owned() }, word));
    }
    // Help and quit come last and stay longest.
    let length = |words: &[(String, &str)]| words.iter().map(|(k, w)| width(k) + width(w) + 3).sum::<usize>();
    while words.len() > 2 && length(&words) > canvas.width() + 2 {
        words.remove(words.len() - 3);
    }
    let mut at = 0;
    for (key, word) in &words {
        at = canvas.text(at, 0, key, StyleScope::Key) + 1;
        at = canvas.text(at, 0, word, StyleScope::Dim) + 2;
    }
}
