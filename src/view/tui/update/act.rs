//! The actions of the table, each by the function of its subject.

use super::details;
use super::groups::{self, effective, move_selection, narrow, regroup, select, widen};
use super::inverted;
use super::moving::{move_bin, page, vertical};
use super::patterns::{self, next_path, show, tune};
use super::themes::next_theme;
use super::tour;
use super::tree::{back, fold, open, reorder, step_match, unfold};
use crate::view::tui::actions::Action;
use crate::view::tui::app::App;
use crate::view::tui::copied;
use crate::view::tui::groups::GroupSide;
use crate::view::tui::layers::anomaly::PatternsPage;
use crate::view::tui::layers::help::HelpPage;
use crate::view::tui::layers::page::PageLayer;
use crate::view::tui::layers::quality::QualityPage;
use crate::view::tui::layers::ranks::RanksPage;
use crate::view::tui::layers::{
    baseline, bookmarks, executions, files, filters, functions, kinds, overview, palette, search, tasks,
};
use crate::view::tui::message::UiEffect;
use crate::view::tui::pane::Pane;
use crate::view::tui::search::{MatchStep, TextSearch};

/// Terminals drop longer texts.
const COPY_LIMIT: usize = 74_000;

/// For the actions of the time-line outside of it.
const ONLY_THERE: &str = "works in the time-line of an execution; v opens it";

/// Beyond the first or last line or bin.
const FAR: isize = isize::MAX / 2;

/// Do an action in the pane in front.
pub(super) fn act(app: &mut App, action: Action) {
    use Action as A;
    let of_patterns = app.pane.is_of_patterns();
    match action {
        A::Up => vertical(app, -1),
        A::Down => vertical(app, 1),
        A::PageUp => vertical(app, -page(app)),
        A::PageDown => vertical(app, page(app)),
        A::Home => along(app, -FAR),
        A::End => along(app, FAR),
        A::Left => sideways(app, -1),
        A::Right => sideways(app, 1),
        A::NextPane => show(app, neighbour(app.pane, 1)),
        A::PreviousPane => show(app, neighbour(app.pane, Pane::ALL.len() - 1)),
        A::Pane(number) => Pane::numbered(number).into_iter().for_each(|pane| show(app, pane)),
        A::Zoom => app.zoom = !app.zoom,
        A::QuotientDown | A::QuotientUp | A::ThresholdDown | A::ThresholdUp | A::Robust => tune(app, action),
        A::Moment => patterns::moment(app),
        A::GrowLeft => select(app, |s, by| s.head = s.head.saturating_sub(by)),
        A::GrowRight => select(app, |s, by| s.head += by),
        A::MoveLeft => move_selection(app, -1),
        A::MoveRight => move_selection(app, 1),
        A::Widen => select(app, widen),
        A::Narrow => select(app, narrow),
        A::Clear if app.pane == Pane::Histograms => groups::clear(app),
        A::Clear => clear_marks(app),
        A::MakeSlow | A::MakeFast | A::Baseline | A::Swap | A::Propose | A::Undo | A::Redo => {
            return regroup_by(app, action);
        }
        A::Open if of_patterns => patterns::open(app),
        A::Open => open(app),
        A::Back => back(app),
        A::Search => search::open(app),
        A::Filter => search::open_filter(app),
        A::NextMatch => step_match(app, MatchStep::Next),
        A::PreviousMatch => step_match(app, MatchStep::Previous),
        A::Order if of_patterns => patterns::reorder(app),
        A::Order => reorder(app),
        A::Invert => inverted::toggle(app),
        A::ShowPatterns => app.open(PageLayer::new(PatternsPage)),
        A::ShowRanks => app.open(PageLayer::new(RanksPage)),
        A::Quality => app.open(PageLayer::new(QualityPage)),
        A::Help => app.open(PageLayer::new(HelpPage)),
        A::Details => details::open(app),
        A::Palette => palette::open(app),
        A::ChooseTask => tasks::open(app),
        A::Theme => next_theme(app),
        A::ShowFunctions => functions::open(app),
        A::ShowExecutions => executions::open(app),
        A::ShowKinds => kinds::open(app),
        A::GoToTime => executions::ask_time(app),
        A::ShowOverview => overview::open(app),
        A::ShowTimeline => details::open_example(app),
        A::ZoomIn | A::ZoomOut | A::PanLeft | A::PanRight | A::OtherExecution => app.say(ONLY_THERE),
        A::Align | A::ShowEvents | A::Concurrent => app.say(ONLY_THERE),
        A::Export => files::ask_export(app),
        A::SaveDatabase => files::ask_database(app),
        A::SaveScreen => files::ask_picture(app),
        A::Copy => copy(app, copied::text(app)),
        A::Bookmark => bookmarks::ask(app),
        A::ShowBookmarks => bookmarks::list(app),
        A::SkipStep => tour::skip(app),
        A::CopySummary => copy(app, copied::summary(app)),
        A::CopyCommand => copy(app, copied::command(app)),
        A::Close => clear_marks(app),
        A::Redraw => app.effects.push(UiEffect::Redraw),
        A::Suspend => app.effects.push(UiEffect::Suspend),
        A::Quit => app.effects.push(UiEffect::Quit),
    }
}

/// Change the groups.
fn regroup_by(app: &mut App, action: Action) {
    match action {
        Action::MakeSlow => filters::open(app, GroupSide::Slow),
        Action::MakeFast => filters::open(app, GroupSide::Fast),
        Action::Baseline => baseline::open(app),
        Action::Swap => {
            let swapped = groups::swapped(effective(app));
            return regroup(app, swapped, "groups swapped");
        }
        Action::Propose => regroup(app, app.groups.proposal(), "groups proposed again"),
        Action::Undo => groups::undo(app),
        Action::Redo => groups::redo(app),
        _ => {}
    }
}

/// To the first or the last: of the bins in the histograms, of the lines elsewhere.
fn along(app: &mut App, by: isize) {
    match app.pane {
        Pane::Histograms => move_bin(app, by),
        Pane::Tree | Pane::Anomalies | Pane::Path => vertical(app, by),
    }
}

/// Left (-1) or right (1): bins, folding and unfolding, paths.
fn sideways(app: &mut App, by: isize) {
    match app.pane {
        Pane::Histograms => move_bin(app, by),
        Pane::Tree if by < 0 => fold(app),
        Pane::Tree => unfold(app),
        Pane::Anomalies => patterns::unfold(app, by > 0),
        Pane::Path => next_path(app, by),
    }
}

fn neighbour(pane: Pane, step: usize) -> Pane {
    let at = Pane::ALL.iter().position(|p| *p == pane).unwrap_or(0);
    Pane::ALL[(at + step) % Pane::ALL.len()]
}

fn copy(app: &mut App, text: String) {
    if text.is_empty() {
        app.say("nothing to copy here");
    } else if text.len() > COPY_LIMIT {
        app.report_failure("too long for the terminal's clipboard; e exports to a file");
    } else {
        app.say("copied (needs OSC 52 enabled in your terminal)");
        return app.effects.push(UiEffect::Copy(text));
    }
}

/// Clear the search and the filter of the list, or the search and the selection.
fn clear_marks(app: &mut App) {
    if app.pane.is_of_patterns() {
        app.patterns.list.search = TextSearch::default();
        patterns::filter(app, "");
    } else {
        app.histograms.selection = None;
        app.tree.search = TextSearch::default();
    }
}
