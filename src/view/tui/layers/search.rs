//! Searches in a pane and the filter of its list, which run while they are typed.

use super::prompt::{Prompt, PromptPurpose};
use crate::view::tui::app::App;
use crate::view::tui::search::MatchStep;
use crate::view::tui::update::patterns::filter;
use crate::view::tui::update::tree::{search, step_match};

static SEARCH: PromptPurpose = PromptPurpose {
    label: |_| "search ",
    typed: Some(search),
    entered: |app, text| {
        search(app, text);
        if !text.is_empty() {
            step_match(app, MatchStep::Here);
        }
    },
};

static FILTER: PromptPurpose = PromptPurpose { label: |_| "filter by words ", typed: Some(filter), entered: filter };

/// Ask for the text of a search.
pub fn open(app: &mut App) {
    app.open(Prompt::new(&SEARCH, ""));
}

/// Ask for the words that root causes must have.
pub fn open_filter(app: &mut App) {
    app.open(Prompt::new(&FILTER, app.patterns.list.filter.clone()));
}
