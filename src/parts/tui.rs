//! What the tests, benchmarks and fuzz targets use of `tui`, under its own paths.

pub use crate::tui::{Backend, Exported, FirstQuestion, UiOptions};
pub mod actions {
    pub use crate::tui::actions::KeyBinding;
}
pub mod app {
    pub use crate::tui::app::App;
    pub use crate::tui::panes::tree::state::Cursor;
}
pub mod bookmarks {
    pub use crate::tui::bookmarks::{Bookmark, BookmarkPlace, with_bookmarks};
}
pub mod counts {
    pub use crate::tui::counts::HistogramCounter;
}
pub mod details {
    pub use crate::tui::details::Details;
}
pub mod heat_cells {
    pub use crate::tui::heat_cells::HeatQuestion;
}
pub mod job {
    pub use crate::base::time_left::TimeLeft;
    pub use crate::tui::job::{
        ArrangedTrees, BaselineInput, Busy, ComparedGroups, Done, Exported, Job, JobError, JobLane, ReadTimelines,
        SelectedPath, TaskSummary, WriteOutcome,
    };
}
pub mod keeping {
    pub use crate::tui::keeping::view;
}
pub mod key {
    pub use crate::tui::key::KeyPress;
}
pub mod key_bar {
    pub use crate::tui::key_bar::words;
}
pub mod key_bindings {
    pub use crate::tui::key_bindings::{TABLE, markdown};
}
pub mod keyboard {
    pub use crate::tui::keyboard::{InputDecoder, TerminalEvent};
}
pub mod layers {
    pub use crate::tui::layers::details::DetailsPage;
    pub use crate::tui::layers::page::{PageLayer, page_height};
    pub use crate::tui::layers::threads::state::ThreadsView;
    pub use crate::tui::layers::timeline::state::{LoadedTimelines, PairAlignment, TimelineContent, TimelineView};
    pub use crate::tui::overview::OverviewView;
}
pub mod message {
    pub use crate::tui::message::{UiEffect, UiMessage};
}
pub mod paint {
    pub use crate::tui::paint::Painter;
}
pub mod pane {
    pub use crate::tui::pane::Pane;
}
pub mod report {
    pub use crate::tui::report::AnomalyReport;
}
pub mod runner {
    pub use crate::tui::runner::Runner;
}
pub mod saved {
    pub use crate::tui::saved::SavedView;
}
pub mod screen {
    pub use crate::tui::screen::draw;
}
pub mod setup {
    pub use crate::tui::setup::FirstQuestion;
}
pub mod sources {
    pub use crate::tui::sources::{RootCauseOrder, RootCauseRow};
}
pub mod svg {
    pub use crate::tui::svg::{Ground, picture};
}
pub mod theme {
    pub use crate::tui::theme::{ColourDepth, StyleScope, Theme, ThemeSource, built_in};
}
pub mod tour {
    pub use crate::tui::tour::TourProgress;
}
pub mod tree {
    pub use crate::tui::tree::{TreeItem, path_text};
}
pub mod update {
    pub use crate::tui::update::{start, update};
}
