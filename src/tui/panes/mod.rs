//! The panes: what the screen shows below the header. Each file has one: its keys and the mouse, its lines in the
//! frame, its drawing, and what is known of the item under its cursor.
//!
//! The state that dialogs and jobs read or change, too, is in [`App`]. [`view`] is the list of all panes.

pub mod anomalies;
pub mod histograms;
pub mod pane_view;
pub mod path;
pub mod tree;

pub use pane_view::{PaneCell, PaneView};

use super::pane::Pane;

/// What each pane does.
pub fn view(pane: Pane) -> &'static dyn PaneView {
    match pane {
        Pane::Histograms => &histograms::HistogramsView,
        Pane::Tree => &tree::TreeView,
        Pane::Anomalies => &anomalies::AnomaliesView,
        Pane::Path => &path::PathView,
    }
}
