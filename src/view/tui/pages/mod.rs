//! The text of the pages over the panes, in styled lines: what a page shows, wrapped to a width. One file per page.

pub mod anomaly;
pub mod details;
pub mod function;
pub mod help;
pub mod quality;
pub mod ranks;
pub mod timeline;

use super::actions::ActionScope;
use super::app::App;
use super::overlay::{Overlay, OverlayPage};
use super::widget::page::StyledLine;

/// The title of a page.
pub fn title(page: &OverlayPage) -> &'static str {
    match page {
        OverlayPage::Help => "Help",
        OverlayPage::Quality => "Data quality: losses, unknowns, caveats",
        OverlayPage::Details { .. } => "Details",
        OverlayPage::Anomaly { .. } => "Anomaly",
        OverlayPage::Function(_) => "Function: callers and callees",
        OverlayPage::Patterns => "Patterns: selected and rejected",
        OverlayPage::Ranks => "Ranks over time",
    }
}

/// The lines of a page, at most so many columns wide where words can be broken.
pub fn lines(app: &App, page: &OverlayPage, columns: usize) -> Vec<StyledLine> {
    match page {
        OverlayPage::Help => help::lines(columns, front(app), &app.options.keys),
        OverlayPage::Quality => quality::lines(app, columns),
        OverlayPage::Details { details, example } => details::lines(app, details, *example, columns),
        OverlayPage::Anomaly { report, at, example } => anomaly::lines(app, report, *at, *example, columns),
        OverlayPage::Function(sandwich) => function::lines(sandwich, columns),
        OverlayPage::Patterns => {
            app.patterns.found.as_ref().map_or(Vec::new(), |report| anomaly::patterns(report, columns))
        }
        OverlayPage::Ranks => ranks::lines(app, columns),
    }
}

/// The scope whose keys come first on the help page: that of the dialog below it, else the pane's.
fn front(app: &App) -> ActionScope {
    let of_dialog = app
        .layers
        .iter()
        .rev()
        .filter_map(|layer| (layer.as_ref() as &dyn std::any::Any).downcast_ref::<Overlay>())
        .find_map(|overlay| match overlay {
            Overlay::Timeline(_) => Some(ActionScope::Timeline),
            Overlay::Overview(_) => Some(ActionScope::Overview),
            _ => None,
        });
    of_dialog.unwrap_or(app.pane.scope())
}
