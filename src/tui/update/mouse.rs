//! The mouse: a click does what the keys of the clicked thing do.
//!
//! Titles show their pane, words of the key bar are their keys, the warnings open the data quality page, a triangle
//! unfolds, a line takes the cursor and, when it has it, is opened; dragging in a histogram selects a range. Clicks on
//! dialogs are those of `layers`.

use super::act::act;
use super::layers;
use super::patterns::show;
use crate::tui::actions::Action;
use crate::tui::app::App;
use crate::tui::header::length;
use crate::tui::key_bar;
use crate::tui::panes::{self, PaneCell};
use crate::tui::tabs::tabs;

/// The button went down on a cell.
pub(super) fn click(app: &mut App, x: u16, y: u16) {
    if !app.layers.is_empty() {
        return layers::click(app, x, y);
    }
    if app.frame.footer.contains((x, y).into()) {
        let bar = key_bar::words(app, usize::from(app.size.0));
        let word = bar.iter().find(|word| word.columns().contains(&usize::from(x)));
        if let Some(word) = word.filter(|_| app.status.is_none()) {
            act(app, word.action);
        }
        return;
    }
    let corner = app.frame.header_lines.first().map_or(0, |line| length(&line.right));
    if y == 0 && !app.warnings().is_empty() && usize::from(x) + corner >= usize::from(app.size.0) {
        return act(app, Action::Quality);
    }
    if let Some(tab) = tabs(&app.frame, app.pane).iter().find(|tab| tab.area.contains((x, y).into())) {
        return show(app, tab.pane);
    }
    let Some(pane) = app.frame.panes.iter().find(|p| p.area.contains((x, y).into())).map(|p| p.pane) else {
        return;
    };
    let was_in_front = app.pane == pane;
    app.pane = pane;
    let inside = app.frame.inside(pane);
    let (Some(line), Some(column)) = (y.checked_sub(inside.y), x.checked_sub(inside.x)) else { return };
    let (line, column) = (usize::from(line), usize::from(column));
    if panes::view(pane).click(app, PaneCell { line, column, was_in_front }) {
        act(app, Action::Open);
    }
}

/// The mouse moved with the button down.
pub(super) fn drag(app: &mut App, x: u16, y: u16) {
    if !app.layers.is_empty() {
        return layers::drag(app, x);
    }
    let inside = app.frame.inside(app.pane);
    let shown = app.frame.panes.iter().any(|p| p.pane == app.pane);
    if shown && inside.contains((x, y).into()) {
        let (line, column) = (usize::from(y - inside.y), usize::from(x - inside.x));
        panes::view(app.pane).drag(app, PaneCell { line, column, was_in_front: true });
    }
}
