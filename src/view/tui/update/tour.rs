//! The tour goes on when its step is done, or skipped.

use crate::view::tui::app::App;
use crate::view::tui::overlay::{Overlay, OverlayPage};
use crate::view::tui::pane::Pane;
use crate::view::tui::panes::tree::state::Cursor;

/// Go on to the next step, done or not.
pub(super) fn skip(app: &mut App) {
    let Some(tour) = app.tour else { return app.say("no tour is running; whyslow --tour begins one") };
    app.tour = tour.next();
    if app.tour.is_none() {
        app.say("end of the tour; `whyslow TRACE` opens your own recording");
    }
}

/// Go on if the current step is done.
pub(super) fn advance(app: &mut App) {
    // Before the first answer there is nothing to do yet.
    let Some(tour) = app.tour.filter(|_| app.comparison.is_some()) else { return };
    if is_done(app, tour.step()) {
        skip(app);
    }
}

/// True if the state is the one that a step leads to.
fn is_done(app: &App, step: usize) -> bool {
    match step {
        0 => matches!(app.tree.cursor, Cursor::Row(_)),
        1 => is_page(app, |page| matches!(page, OverlayPage::Details { .. })),
        2 => app.layers.is_empty(),
        3 => app.pane == Pane::Histograms,
        4 => !app.groups.now().slow.is_empty(),
        5 => app.groups.now().slow.is_empty(),
        6 => matches!(app.top::<Overlay>(), Some(Overlay::List(menu)) if menu.title.contains("by function")),
        7 => is_page(app, |page| matches!(page, OverlayPage::Quality)),
        _ => is_page(app, |page| matches!(page, OverlayPage::Help)),
    }
}

fn is_page(app: &App, is: fn(&OverlayPage) -> bool) -> bool {
    matches!(app.top::<Overlay>(), Some(Overlay::Page { page, .. }) if is(page))
}
