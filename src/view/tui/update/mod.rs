//! The only place that changes the state: a message goes in, effects come out.
//!
//! In: keys, pasted text, sizes, results of jobs. Out: [`UiEffect`]s for the loop. Pure: the same state and message give
//! the same state and effects, so that tests play keystrokes without a terminal. After each message the cursors are
//! on existing items, and their lines are visible.

mod groups;
mod moving;
mod overlays;
mod patterns;
mod results;
mod tree;

use super::actions::{self, Action};
use super::app::{App, Busy, Pane, Status, TextSearch};
use super::copied;
use super::groups::GroupSide;
use super::jobs::{Done, Job, JobLane, Outcome};
use super::key::KeyPress;
use super::overlay::{MenuCommand, Overlay, OverlayPage, OverlayResponse, PromptPurpose, Scroll};
use super::setup::FirstQuestion;
use crate::compare::ComparisonRequest;
use groups::{can_regroup, clear, compare, effective, make_filter, move_selection, regroup, select, widen};
use moving::{click, move_bin, page, scroll_page, settle, vertical};
use overlays::{ask_file, on_outcome, open_details, palette, suit_ground, take_theme, tasks, write_file};
use patterns::{moment, next_path, show, tune};
use results::on_done;
use std::path::PathBuf;
use tree::{back, fold, open, reorder, search, step_match, unfold};

pub use tree::path_under_cursor;

/// Input of the update.
#[derive(Debug)]
pub enum UiMessage {
    /// A key.
    Key(KeyPress),
    /// Pasted text.
    Paste(String),
    /// The screen has this size now.
    Resize(u16, u16),
    /// The wheel, by lines; negative is up.
    Wheel(isize),
    /// A click on a cell.
    Click(u16, u16),
    /// A job has a result.
    Done(Done),
    /// The running job of a lane is so far.
    Progress(JobLane, Busy),
    /// The picture is saved, or not.
    Saved(PathBuf, Outcome),
    /// The terminal says that its ground is light (else dark).
    Ground(bool),
}

/// Work for the loop.
#[derive(Debug)]
pub enum UiEffect {
    /// Run a job.
    Start(Job),
    /// Send a text to the terminal's clipboard.
    Copy(String),
    /// Draw the screen into a file.
    SavePicture {
        /// The file.
        path: PathBuf,
        /// Replace a file that exists.
        overwrite: bool,
    },
    /// Draw everything anew.
    Redraw,
    /// Stop until `fg`.
    Suspend,
    /// End.
    Quit,
}

/// Terminals drop longer texts.
const COPY_LIMIT: usize = 74_000;

/// The first job of the program.
pub fn start(app: &mut App, first: FirstQuestion) -> Vec<UiEffect> {
    match first {
        FirstQuestion::Executions => begin(app, Job::Analyse { task: None }),
        FirstQuestion::Patterns => show(app, Pane::Anomalies),
    }
}

/// Take a message.
pub fn update(app: &mut App, message: UiMessage) -> Vec<UiEffect> {
    let effects = match message {
        UiMessage::Key(key) => {
            app.status = None;
            on_key(app, key)
        }
        UiMessage::Paste(text) => match app.overlays.last_mut().map(|o| o.paste(&text)) {
            Some(answer) => on_answer(app, answer),
            None => Vec::new(),
        },
        UiMessage::Resize(columns, lines) => {
            app.size = (columns, lines);
            Vec::new()
        }
        UiMessage::Wheel(lines) => {
            let action = if lines < 0 { Action::Up } else { Action::Down };
            (0..lines.unsigned_abs()).flat_map(|_| route(app, action)).collect()
        }
        UiMessage::Click(x, y) => {
            click(app, x, y);
            Vec::new()
        }
        UiMessage::Done(done) => on_done(app, done),
        UiMessage::Ground(light) => {
            suit_ground(app, light);
            Vec::new()
        }
        UiMessage::Progress(lane, busy) => {
            let now = match lane {
                JobLane::Executions => &mut app.busy,
                JobLane::Patterns => &mut app.patterns.busy,
            };
            if let Some(now) = now {
                *now = Busy { what: now.what, ..busy };
            }
            Vec::new()
        }
        UiMessage::Saved(path, outcome) => {
            on_outcome(app, PromptPurpose::Picture, path, outcome);
            Vec::new()
        }
    };
    settle(app);
    effects
}

fn on_key(app: &mut App, key: KeyPress) -> Vec<UiEffect> {
    if let Some(top) = app.overlays.last_mut() {
        let answer = top.key(key);
        return on_answer(app, answer);
    }
    match actions::bound(key, app.pane.place()) {
        Some(action) => act(app, action),
        None => {
            say(app, &format!("{key} is not bound here; ?: show the keys"));
            Vec::new()
        }
    }
}

/// An action that does not come from a key: to the page on top, if there is one.
fn route(app: &mut App, action: Action) -> Vec<UiEffect> {
    match (app.overlays.last(), action) {
        (Some(_), Action::Up) => on_answer(app, OverlayResponse::Scroll(Scroll::Lines(-1))),
        (Some(_), Action::Down) => on_answer(app, OverlayResponse::Scroll(Scroll::Lines(1))),
        (Some(_), _) => Vec::new(),
        (None, action) => act(app, action),
    }
}

fn on_answer(app: &mut App, answer: OverlayResponse) -> Vec<UiEffect> {
    match answer {
        OverlayResponse::Taken => Vec::new(),
        OverlayResponse::Close => {
            app.overlays.pop();
            Vec::new()
        }
        OverlayResponse::Scroll(scroll) => {
            scroll_page(app, scroll);
            Vec::new()
        }
        OverlayResponse::Do(does) => {
            app.overlays.pop();
            match does {
                MenuCommand::Act(action) => act(app, action),
                MenuCommand::Task(task) => begin(app, Job::Analyse { task: Some(task) }),
                MenuCommand::Theme(at) => {
                    take_theme(app, at);
                    Vec::new()
                }
            }
        }
        OverlayResponse::Typed(asked @ (PromptPurpose::Search | PromptPurpose::Filter)) => {
            // Both run while they are typed: what is found shows at once.
            if let Some(Overlay::Prompt { input, .. }) = app.overlays.last() {
                let text = input.text().to_owned();
                if asked == PromptPurpose::Search { search(app, &text) } else { patterns::filter(app, &text) }
            }
            Vec::new()
        }
        OverlayResponse::Typed(_) => Vec::new(),
        OverlayResponse::Text(asked, text) => {
            app.overlays.pop();
            match asked {
                PromptPurpose::Search => {
                    search(app, &text);
                    if !text.is_empty() {
                        step_match(app, true, true);
                    }
                    Vec::new()
                }
                PromptPurpose::Filter => {
                    patterns::filter(app, &text);
                    Vec::new()
                }
                asked => write_file(app, asked, PathBuf::from(text), false),
            }
        }
        OverlayResponse::Replace(asked, path) => {
            app.overlays.pop();
            write_file(app, asked, path, true)
        }
        OverlayResponse::Act(action) => act(app, action),
    }
}

fn say(app: &mut App, text: &str) {
    app.status = Some(Status { text: text.to_owned(), failed: false });
}

fn complain(app: &mut App, text: &str) {
    app.status = Some(Status { text: text.to_owned(), failed: true });
}

fn begin(app: &mut App, job: Job) -> Vec<UiEffect> {
    let busy = Some(Busy { what: job.name(), ..Busy::default() });
    match job.lane() {
        JobLane::Executions => {
            app.busy = busy;
            app.failure = None;
        }
        JobLane::Patterns => {
            app.patterns.busy = busy;
            app.patterns.failure = None;
        }
    }
    vec![UiEffect::Start(job)]
}

fn act(app: &mut App, action: Action) -> Vec<UiEffect> {
    use Action as A;
    let in_bins = app.pane == Pane::Histograms;
    let of_patterns = app.pane.is_of_patterns();
    match action {
        A::Up => vertical(app, -1),
        A::Down => vertical(app, 1),
        A::PageUp => vertical(app, -page(app)),
        A::PageDown => vertical(app, page(app)),
        A::Home if in_bins => move_bin(app, isize::MIN / 2),
        A::End if in_bins => move_bin(app, isize::MAX / 2),
        A::Left if in_bins => move_bin(app, -1),
        A::Right if in_bins => move_bin(app, 1),
        A::Home => vertical(app, isize::MIN / 2),
        A::End => vertical(app, isize::MAX / 2),
        A::Left if app.pane == Pane::Anomalies => patterns::unfold(app, false),
        A::Right if app.pane == Pane::Anomalies => patterns::unfold(app, true),
        A::Left if of_patterns => next_path(app, -1),
        A::Right if of_patterns => next_path(app, 1),
        A::Left => fold(app),
        A::Right => unfold(app),
        A::NextPane | A::PreviousPane => {
            let at = Pane::ALL.iter().position(|p| *p == app.pane).unwrap_or(0);
            let step = if action == A::NextPane { 1 } else { Pane::ALL.len() - 1 };
            return show(app, Pane::ALL[(at + step) % Pane::ALL.len()]);
        }
        A::Pane(number) => {
            if let Some(pane) = Pane::ALL.get(usize::from(number).wrapping_sub(1)) {
                return show(app, *pane);
            }
        }
        A::QuotientDown | A::QuotientUp | A::ThresholdDown | A::ThresholdUp | A::Robust => return tune(app, action),
        A::Moment => return moment(app),
        A::Filter => {
            let input = super::input::TextInput::new(app.patterns.list.filter.clone());
            app.overlays.push(Overlay::Prompt { asked: PromptPurpose::Filter, input });
        }
        A::ShowPatterns => app.overlays.push(Overlay::page(OverlayPage::Patterns)),
        A::ShowRanks => app.overlays.push(Overlay::page(OverlayPage::Ranks)),
        A::Zoom => app.zoom = !app.zoom,
        A::GrowLeft => return select(app, |s, by| s.head = s.head.saturating_sub(by)),
        A::GrowRight => return select(app, |s, by| s.head += by),
        A::MoveLeft => return move_selection(app, false),
        A::MoveRight => return move_selection(app, true),
        A::Widen => return select(app, |s, by| widen(s, by, true)),
        A::Narrow => return select(app, |s, by| widen(s, by, false)),
        A::MakeSlow => return make_filter(app, GroupSide::Slow),
        A::MakeFast => return make_filter(app, GroupSide::Fast),
        A::Clear => return clear(app),
        A::Swap => {
            let mut now = effective(app);
            std::mem::swap(&mut now.slow, &mut now.fast);
            return regroup(app, now, "groups swapped");
        }
        A::Propose => return regroup(app, ComparisonRequest::default(), "groups proposed again"),
        A::Undo | A::Redo => {
            if !can_regroup(app) {
                return Vec::new();
            }
            let (moved, none) = match action {
                A::Undo => (app.groups.undo(), "nothing to undo"),
                _ => (app.groups.redo(), "nothing to redo"),
            };
            if moved {
                app.histograms.dragging = false;
                app.histograms.selection = None;
                return compare(app);
            }
            say(app, none);
        }
        A::Open if of_patterns => patterns::open(app),
        A::Open => open(app),
        A::Back => back(app),
        A::Search => app.overlays.push(Overlay::Prompt { asked: PromptPurpose::Search, input: Default::default() }),
        A::NextMatch => step_match(app, true, false),
        A::PreviousMatch => step_match(app, false, false),
        A::Order if of_patterns => patterns::reorder(app),
        A::Order => reorder(app),
        A::Trust => app.overlays.push(Overlay::page(OverlayPage::Trust)),
        A::Help => app.overlays.push(Overlay::page(OverlayPage::Help)),
        A::Details => open_details(app),
        A::Palette => app.overlays.push(palette(app)),
        A::ChooseTask => match tasks(app) {
            Some(list) => app.overlays.push(list),
            None => say(app, "tasks are not known yet"),
        },
        A::Theme => {
            let at = app.themes.iter().position(|t| t.name == app.theme.name).unwrap_or(0);
            take_theme(app, (at + 1) % app.themes.len().max(1));
        }
        A::Export => ask_file(app, PromptPurpose::Export),
        A::SaveScreen => ask_file(app, PromptPurpose::Picture),
        A::Copy => {
            let text = copied::text(app);
            if text.is_empty() {
                say(app, "nothing to copy here");
            } else if text.len() > COPY_LIMIT {
                complain(app, "too long for the terminal's clipboard; e exports to a file");
            } else {
                say(app, "copied (needs OSC 52 enabled in your terminal)");
                return vec![UiEffect::Copy(text)];
            }
        }
        A::Close if of_patterns => {
            app.patterns.list.search = TextSearch::default();
            patterns::filter(app, "");
        }
        A::Close => {
            app.histograms.selection = None;
            app.tree.search = TextSearch::default();
        }
        A::Redraw => return vec![UiEffect::Redraw],
        A::Suspend => return vec![UiEffect::Suspend],
        A::Quit => return vec![UiEffect::Quit],
    }
    Vec::new()
}
