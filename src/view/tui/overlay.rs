//! Dialogs on top of the panes: pages, lists to choose from, prompts, a question.
//!
//! A stack; its top sees each key first. An overlay does not act: it returns what should happen, and `update` does it.

use super::actions::{Action, ActionScope};
use super::details::Details;
use super::key::KeyPress;
use super::key_map::KeyMap;
use super::menu::{Menu, MenuCommand, MenuItem, MenuResponse};
use super::overview::OverviewView;
use super::report::AnomalyReport;
use super::timeline::{TimelineContent, TimelineView};
use crate::compare::functions::Sandwich;
use crossterm::event::KeyCode;
use std::sync::Arc;

/// The content of a page.
#[derive(Clone, Debug)]
pub enum OverlayPage {
    /// Keys and how to read the screen.
    Help,
    /// Data quality: losses, unknowns, caveats.
    Quality,
    /// The item under the cursor.
    Details {
        /// Its facts.
        details: Box<Details>,
        /// The sampled execution that Enter opens, by position.
        example: usize,
    },
    Anomaly {
        report: Arc<AnomalyReport>,
        /// Its position.
        at: u32,
        /// The sampled execution that Enter opens, by position.
        example: usize,
    },
    /// A function with its callers and callees.
    Function(Box<Sandwich>),
    /// All patterns, selected and rejected.
    Patterns,
    /// Ranks over time: around the root cause under the cursor, and all.
    Ranks,
}

/// One thing on the stack.
#[derive(Clone, Debug)]
pub enum Overlay {
    /// Text to scroll.
    Page {
        /// Which.
        page: OverlayPage,
        /// First line shown.
        offset: usize,
    },
    /// A list narrowed by typing.
    List(Menu),
    /// The time-line of an execution.
    Timeline(Box<TimelineView>),
    /// The recording at a glance.
    Overview(Box<OverviewView>),
}

/// The answer of a dialog to a key.
#[derive(Clone, Debug, PartialEq)]
pub enum OverlayResponse {
    /// Nothing more: the key is used up.
    Taken,
    /// Take the overlay away.
    Close,
    /// Scroll the page by lines (pages: by its height).
    Scroll(Scroll),
    /// Take it away and run this.
    Run(MenuCommand),
    /// Take it away and make these executions the slow group.
    MakeSlow(Vec<u32>),
    /// Not for the overlay: do the action, leave the overlay.
    Act(Action),
    /// An action of the time-line.
    Timeline(Action),
    /// An action of the recording at a glance.
    Overview(Action),
    /// Mark the next (1) or previous (-1) sampled execution of the page.
    MarkExample(isize),
    /// Open the time-line of the marked execution.
    OpenExample,
}

/// How far to scroll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scroll {
    /// Lines; negative is up.
    Lines(isize),
    Pages(isize),
    /// To the first.
    Home,
    /// To the last.
    End,
}

/// The keys of a dialog that has nothing to show yet.
pub const EMPTY: &[(&str, &str)] = &[("Esc", "close"), ("?", "help")];

impl Overlay {
    /// A page from its first line.
    pub fn page(page: OverlayPage) -> Overlay {
        Overlay::Page { page, offset: 0 }
    }

    /// A list with nothing typed yet.
    pub fn list(title: &'static str, choices: Vec<MenuItem>) -> Overlay {
        Overlay::List(Menu::new(title, choices))
    }

    /// Its keys, for the footer.
    pub fn words(&self) -> &'static [(&'static str, &'static str)] {
        match self {
            Overlay::Page { page: OverlayPage::Details { .. } | OverlayPage::Anomaly { .. }, .. } => &[
                ("Esc", "close"),
                ("Enter", "time-line"),
                ("Tab", "next example"),
                ("Up Down", "scroll"),
                ("y", "copy"),
            ],
            Overlay::Page { .. } => &[("Esc", "close"), ("Up Down PgUp PgDn", "scroll"), ("y", "copy")],
            Overlay::Overview(_) => &[
                ("Esc", "close"),
                ("Left Right", "move"),
                ("+ -", "zoom"),
                ("< >", "select"),
                ("s", "slow"),
                ("f", "fast"),
                ("?", "help"),
            ],
            Overlay::Timeline(view) if !matches!(view.content, TimelineContent::Loaded(_)) => EMPTY,
            Overlay::Timeline(_) => &[
                ("Esc", "close"),
                ("Left Right", "step"),
                ("+ -", "zoom"),
                ("a", "align"),
                ("p", "events"),
                ("o", "who else"),
                ("/", "search"),
                ("?", "help"),
            ],
            Overlay::List(menu) => menu.keys(),
        }
    }

    /// Take a key.
    pub fn answer(&mut self, key: KeyPress, keys: &KeyMap) -> OverlayResponse {
        match self {
            Overlay::Page { page, .. } => page_key(page, key, keys),
            Overlay::List(menu) => match menu.key(key) {
                MenuResponse::Taken => OverlayResponse::Taken,
                MenuResponse::Close => OverlayResponse::Close,
                MenuResponse::Run(command) => OverlayResponse::Run(command),
                MenuResponse::MakeSlow(executions) => OverlayResponse::MakeSlow(executions),
            },
            Overlay::Timeline(_) => timeline_key(key, keys),
            Overlay::Overview(_) => overview_key(key, keys),
        }
    }

    /// Take pasted text; only lines of text do.
    pub fn insert(&mut self, text: &str) -> OverlayResponse {
        match self {
            Overlay::List(menu) => {
                menu.paste(text);
                OverlayResponse::Taken
            }
            Overlay::Page { .. } | Overlay::Timeline(_) | Overlay::Overview(_) => OverlayResponse::Taken,
        }
    }
}

fn overview_key(key: KeyPress, keys: &KeyMap) -> OverlayResponse {
    match keys.bound(key, ActionScope::Overview) {
        None => OverlayResponse::Taken,
        Some(Action::Close | Action::Quit | Action::Back | Action::ShowOverview) => OverlayResponse::Close,
        Some(action @ (Action::Help | Action::Redraw | Action::Suspend | Action::Theme)) => {
            OverlayResponse::Act(action)
        }
        Some(action) => OverlayResponse::Overview(action),
    }
}

fn timeline_key(key: KeyPress, keys: &KeyMap) -> OverlayResponse {
    match keys.bound(key, ActionScope::Timeline) {
        None => OverlayResponse::Taken,
        Some(Action::Close | Action::Quit | Action::Back | Action::ShowTimeline) => OverlayResponse::Close,
        Some(action @ (Action::Help | Action::Copy | Action::Redraw | Action::Suspend | Action::Theme)) => {
            OverlayResponse::Act(action)
        }
        Some(action) => OverlayResponse::Timeline(action),
    }
}

fn page_key(page: &OverlayPage, key: KeyPress, keys: &KeyMap) -> OverlayResponse {
    let has_examples = matches!(page, OverlayPage::Details { .. } | OverlayPage::Anomaly { .. });
    if has_examples && let Some(response) = example_key(key, keys) {
        return response;
    }
    let scope = if matches!(page, OverlayPage::Patterns | OverlayPage::Ranks) {
        ActionScope::Anomalies
    } else {
        ActionScope::Any
    };
    let Some(action) = keys.bound(key, scope) else { return OverlayResponse::Taken };
    let own = match page {
        OverlayPage::Help => Action::Help,
        OverlayPage::Quality => Action::Quality,
        OverlayPage::Details { .. } | OverlayPage::Anomaly { .. } => Action::Details,
        OverlayPage::Function(_) => Action::ShowFunctions,
        OverlayPage::Patterns => Action::ShowPatterns,
        OverlayPage::Ranks => Action::ShowRanks,
    };
    match action {
        Action::Up => OverlayResponse::Scroll(Scroll::Lines(-1)),
        Action::Down => OverlayResponse::Scroll(Scroll::Lines(1)),
        Action::PageUp => OverlayResponse::Scroll(Scroll::Pages(-1)),
        Action::PageDown => OverlayResponse::Scroll(Scroll::Pages(1)),
        Action::Home => OverlayResponse::Scroll(Scroll::Home),
        Action::End => OverlayResponse::Scroll(Scroll::End),
        Action::Close | Action::Quit | Action::Back => OverlayResponse::Close,
        same if same == own => OverlayResponse::Close,
        Action::Help | Action::Copy | Action::Redraw | Action::Suspend | Action::Theme => OverlayResponse::Act(action),
        _ => OverlayResponse::Taken,
    }
}

/// Keys on pages that list sampled executions.
fn example_key(key: KeyPress, keys: &KeyMap) -> Option<OverlayResponse> {
    match keys.bound(key, ActionScope::Any) {
        Some(Action::NextPane) => Some(OverlayResponse::MarkExample(1)),
        Some(Action::PreviousPane) => Some(OverlayResponse::MarkExample(-1)),
        Some(Action::ShowTimeline) => Some(OverlayResponse::OpenExample),
        _ => (key.plain() == Some(KeyCode::Enter)).then_some(OverlayResponse::OpenExample),
    }
}
