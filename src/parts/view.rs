//! What the tests, benchmarks and fuzz targets use of `view`, under its own paths.

pub mod anomalies {
    pub use crate::view::anomalies::{ListBounds, json, text, verdict, with_path};
}
pub mod archive {
    pub use crate::view::archive::ArchiveDocument;
}
pub mod diff_parts {
    pub use crate::view::diff_parts::DiffParts;
}
pub mod execution_text {
    pub use crate::view::execution_text::executions;
}
pub mod executions {
    pub use crate::view::executions::line;
}
pub mod function_text {
    pub use crate::view::function_text::text;
}
pub mod info {
    pub use crate::view::info::InfoDocument;
}
pub mod json {
    pub use crate::view::json::{diff, explain};
}
pub mod lanes {
    pub use crate::view::lanes::thread_name;
}
pub mod overview {
    pub use crate::view::overview::OverviewAnswer;
}
pub mod report {
    pub use crate::view::report::{Invocation, ReportFormat};
}
pub mod stats {
    pub use crate::view::stats::StatsTable;
}
pub mod strips {
    pub use crate::view::strips::{StripContent, json, lines};
}
pub mod svg {
    pub use crate::view::svg::{Ground, picture};
}
pub mod text {
    pub use crate::view::text::{Glyphs, Page, explain};
}
pub mod tui {
    pub use crate::view::tui::{Backend, Exported, FirstQuestion, UiOptions};
    pub mod actions {
        pub use crate::view::tui::actions::KeyBinding;
    }
    pub mod app {
        pub use crate::view::tui::app::App;
        pub use crate::view::tui::panes::tree::state::Cursor;
    }
    pub mod bookmarks {
        pub use crate::view::tui::bookmarks::{Bookmark, BookmarkPlace, with_bookmarks};
    }
    pub mod counts {
        pub use crate::view::tui::counts::HistogramCounter;
    }
    pub mod details {
        pub use crate::view::tui::details::Details;
    }
    pub mod job {
        pub use crate::view::tui::job::{
            BaselineInput, Busy, ComparedGroups, Done, Exported, Job, JobError, JobLane, SelectedPath, TaskSummary,
            WriteOutcome,
        };
    }
    pub mod keeping {
        pub use crate::view::tui::keeping::view;
    }
    pub mod key {
        pub use crate::view::tui::key::KeyPress;
    }
    pub mod key_bar {
        pub use crate::view::tui::key_bar::words;
    }
    pub mod key_bindings {
        pub use crate::view::tui::key_bindings::{TABLE, markdown};
    }
    pub mod keyboard {
        pub use crate::view::tui::keyboard::{InputDecoder, TerminalEvent};
    }
    pub mod message {
        pub use crate::view::tui::message::{UiEffect, UiMessage};
    }
    pub mod layers {
        pub use crate::view::tui::layers::details::DetailsPage;
        pub use crate::view::tui::layers::page::{PageLayer, page_height};
        pub use crate::view::tui::layers::timeline::state::{LoadedTimelines, TimelineContent, TimelineView};
        pub use crate::view::tui::overview::OverviewView;
    }
    pub mod paint {
        pub use crate::view::tui::paint::Painter;
    }
    pub mod pane {
        pub use crate::view::tui::pane::Pane;
    }
    pub mod report {
        pub use crate::view::tui::report::AnomalyReport;
    }
    pub mod runner {
        pub use crate::view::tui::runner::Runner;
    }
    pub mod saved {
        pub use crate::view::tui::saved::SavedView;
    }
    pub mod screen {
        pub use crate::view::tui::screen::draw;
    }
    pub mod setup {
        pub use crate::view::tui::setup::FirstQuestion;
    }
    pub mod sources {
        pub use crate::view::tui::sources::{RootCauseOrder, RootCauseRow};
    }
    pub mod theme {
        pub use crate::view::tui::theme::{ColourDepth, StyleScope, Theme, ThemeSource, built_in};
    }
    pub mod tour {
        pub use crate::view::tui::tour::TourProgress;
    }
    pub mod tree {
        pub use crate::view::tui::tree::{TreeItem, path_text};
    }
    pub mod update {
        pub use crate::view::tui::update::{start, update};
    }
}
