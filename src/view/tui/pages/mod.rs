//! The text of the pages over the panes, in styled lines: what a page shows, wrapped to a width. One file per page.

pub mod anomaly;
pub mod details;
pub mod help;
pub mod quality;
pub mod ranks;

use super::app::App;
use super::overlay::OverlayPage;
use super::widget::page::StyledLine;

/// The title of a page.
pub fn title(page: &OverlayPage) -> &'static str {
    match page {
        OverlayPage::Help => "Help",
        OverlayPage::Quality => "Data quality: losses, unknowns, caveats",
        OverlayPage::Details(_) => "Details",
        OverlayPage::Anomaly(..) => "Anomaly",
        OverlayPage::Patterns => "Patterns: selected and rejected",
        OverlayPage::Ranks => "Ranks over time",
    }
}

/// The lines of a page, at most so many columns wide where words can be broken.
pub fn lines(app: &App, page: &OverlayPage, columns: usize) -> Vec<StyledLine> {
    match page {
        OverlayPage::Help => help::lines(columns, app.pane.scope()),
        OverlayPage::Quality => quality::lines(app, columns),
        OverlayPage::Details(details) => details::lines(app, details, columns),
        OverlayPage::Anomaly(report, at) => anomaly::lines(app, report, *at, columns),
        OverlayPage::Patterns => {
            app.patterns.found.as_ref().map_or(Vec::new(), |report| anomaly::patterns(report, columns))
        }
        OverlayPage::Ranks => ranks::lines(app, columns),
    }
}
