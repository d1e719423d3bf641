//! The tour goes on when its step is done, or skipped.

use crate::tui::app::App;
use crate::tui::layers::details::DetailsPage;
use crate::tui::layers::functions::FunctionName;
use crate::tui::layers::help::HelpPage;
use crate::tui::layers::menu::Menu;
use crate::tui::layers::page::{PageContent, PageLayer};
use crate::tui::layers::quality::QualityPage;
use crate::tui::pane::Pane;
use crate::tui::panes::tree::state::Cursor;

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
        1 => is_page::<DetailsPage>(app),
        2 => app.layers.is_empty(),
        3 => app.pane == Pane::Histograms,
        4 => !app.groups.now().slow.is_empty(),
        5 => app.groups.now().slow.is_empty(),
        6 => app.top::<Menu<FunctionName>>().is_some(),
        7 => is_page::<QualityPage>(app),
        _ => is_page::<HelpPage>(app),
    }
}

fn is_page<P: PageContent>(app: &App) -> bool {
    app.top::<PageLayer>().is_some_and(|layer| layer.content::<P>().is_some())
}
