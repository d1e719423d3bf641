//! The actions of the table, each by the function of its subject.

use super::groups::{self, effective, move_selection, narrow, regroup, select, widen};
use super::heat;
use super::patterns::{self, show, tune};
use super::themes::next_theme;
use super::tour;
use crate::compare::arranged::TransformKind;
use crate::model::execution::ExecutionId;
use crate::tui::actions::Action;
use crate::tui::app::App;
use crate::tui::copied;
use crate::tui::groups::GroupSide;
use crate::tui::layers::anomaly::PatternsPage;
use crate::tui::layers::help::HelpPage;
use crate::tui::layers::page::PageLayer;
use crate::tui::layers::prompt::{Prompt, PromptPurpose};
use crate::tui::layers::quality::QualityPage;
use crate::tui::layers::ranks::RanksPage;
use crate::tui::layers::{
    baseline, bookmarks, executions, files, filters, functions, kinds, overview, palette, tasks, threads, timeline,
};
use crate::tui::message::UiEffect;
use crate::tui::pane::{JumpOrigin, Pane};
use crate::tui::panes::tree::arranged::{self, search_tree};
use crate::tui::panes::tree::icicle;
use crate::tui::panes::tree::state::Cursor;
use crate::tui::panes::{self, anomalies, tree};
use crate::tui::search::{MatchStep, TextSearch};

/// Terminals drop longer texts.
const COPY_LIMIT: usize = 74_000;

/// For the actions of the timeline outside of it.
const ONLY_THERE: &str = "works in the timeline of an execution; v opens it";

/// Beyond the first or last line or bin.
const FAR: isize = isize::MAX / 2;

/// Do an action in the pane in front.
pub(super) fn act(app: &mut App, action: Action) {
    use Action as A;
    let (pane, of_patterns) = (panes::view(app.pane), app.pane.is_of_patterns());
    let page = pane.shown(app).max(2) as isize - 1;
    match action {
        A::Up => pane.vertical(app, -1),
        A::Down => pane.vertical(app, 1),
        A::PageUp => pane.vertical(app, -page),
        A::PageDown => pane.vertical(app, page),
        A::Home => pane.along(app, -FAR),
        A::End => pane.along(app, FAR),
        A::Left => pane.sideways(app, -1),
        A::Right => pane.sideways(app, 1),
        A::NextPane => show(app, neighbour(app.pane, 1)),
        A::PreviousPane => show(app, neighbour(app.pane, Pane::ALL.len() - 1)),
        A::Pane(number) => Pane::numbered(number).into_iter().for_each(|pane| show(app, pane)),
        A::Zoom => app.zoom = !app.zoom,
        A::QuotientDown | A::QuotientUp | A::ThresholdDown | A::ThresholdUp | A::Robust => tune(app, action),
        A::Moment => patterns::moment(app),
        A::GrowLeft | A::GrowRight | A::MoveLeft | A::MoveRight | A::Widen | A::Narrow => change_selection(app, action),
        A::DrawBox => heat::begin_or_end(app),
        A::NextAxis => heat::next_axis(app),
        A::Clear if app.pane == Pane::Histograms => groups::clear(app),
        A::Clear => {
            clear_marks(app);
            if app.pane == Pane::Tree {
                arranged::show_whole(app);
            }
        }
        A::MakeSlow | A::MakeFast | A::Baseline | A::Swap | A::Propose | A::Undo | A::Redo => regroup_by(app, action),
        A::Open => pane.open(app),
        A::Back => back(app),
        A::Search => app.open(Prompt::new(&SEARCH, "")),
        A::Filter => app.open(Prompt::new(&FILTER, app.patterns.list.filter.clone())),
        A::NextMatch => step_match(app, MatchStep::Next),
        A::PreviousMatch => step_match(app, MatchStep::Previous),
        A::Order if of_patterns => anomalies::reorder(app),
        A::Order => tree::reorder(app),
        A::Invert | A::ShowKernel | A::Icicle | A::Focus | A::Drop | A::Collapse => arrange_by(app, action),
        A::ZoomIn if app.pane == Pane::Tree => arranged::zoom_in(app),
        A::ZoomOut if app.pane == Pane::Tree => arranged::zoom_out(app),
        A::ShowPatterns => app.open(PageLayer::new(PatternsPage)),
        A::ShowRanks => app.open(PageLayer::new(RanksPage)),
        A::Quality => app.open(PageLayer::new(QualityPage)),
        A::Help => app.open(PageLayer::new(HelpPage)),
        A::Details => open_details(app),
        A::Palette => palette::open(app),
        A::ChooseTask => tasks::open(app),
        A::Theme => next_theme(app),
        A::ShowFunctions => functions::open(app),
        A::ShowExecutions => executions::open(app),
        A::ShowKinds => kinds::open(app),
        A::GoToTime => executions::ask_time(app),
        A::ShowOverview => overview::open(app),
        A::ShowThreads => threads::open(app),
        A::ShowTimeline => open_example(app),
        A::ZoomIn | A::ZoomOut | A::PanLeft | A::PanRight | A::OtherExecution => app.say(ONLY_THERE),
        A::Align | A::AlignCalls | A::ShowEvents | A::NextEvent | A::PreviousEvent | A::Concurrent => {
            app.say(ONLY_THERE);
        }
        A::Unfold | A::ShowCpus => app.say("works in the view of all threads; t opens it"),
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

/// Change the arrangement or the drawing of the tree.
fn arrange_by(app: &mut App, action: Action) {
    match action {
        Action::Invert => arranged::toggle_direction(app),
        Action::ShowKernel => arranged::toggle_kernel(app),
        Action::Icicle => icicle::toggle(app),
        Action::Focus => arranged::transform(app, TransformKind::Focus),
        Action::Drop => arranged::transform(app, TransformKind::Drop),
        Action::Collapse => arranged::transform(app, TransformKind::Collapse),
        _ => {}
    }
}

/// Stretch the box of the heat map, or change the range of the metric under the cursor.
fn change_selection(app: &mut App, action: Action) {
    let on_heat = app.histograms.is_on_heat(app.frame.heat);
    match action {
        Action::GrowLeft | Action::MoveLeft if on_heat => heat::stretch(app, -1, 0),
        Action::GrowRight | Action::MoveRight if on_heat => heat::stretch(app, 1, 0),
        Action::Widen if on_heat => heat::stretch(app, 0, 1),
        Action::Narrow if on_heat => heat::stretch(app, 0, -1),
        Action::GrowLeft => select(app, |s, by| s.head = s.head.saturating_sub(by)),
        Action::GrowRight => select(app, |s, by| s.head += by),
        Action::MoveLeft => move_selection(app, -1),
        Action::MoveRight => move_selection(app, 1),
        Action::Widen => select(app, widen),
        Action::Narrow => select(app, narrow),
        _ => {}
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
            regroup(app, swapped, "groups swapped")
        }
        Action::Propose => regroup(app, app.groups.proposal(), "groups proposed again"),
        Action::Undo => groups::undo(app),
        Action::Redo => groups::redo(app),
        _ => {}
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
        app.effects.push(UiEffect::Copy(text))
    }
}

/// Clear the search and the filter of the list, or the search and the selection.
fn clear_marks(app: &mut App) {
    if app.pane.is_of_patterns() {
        app.patterns.list.search = TextSearch::default();
        anomalies::filter(app, "");
    } else {
        app.histograms.selection = None;
        (app.histograms.heat.selection, app.histograms.heat.stretches) = (None, false);
        app.tree.search = TextSearch::default();
    }
}

static SEARCH: PromptPurpose = PromptPurpose {
    label: |_| "search ",
    typed: Some(search),
    next: None,
    entered: |app, text| {
        search(app, text);
        if !text.is_empty() {
            step_match(app, MatchStep::Here);
        }
    },
};

static FILTER: PromptPurpose = PromptPurpose {
    label: |_| "filter by words ",
    typed: Some(anomalies::filter),
    next: None,
    entered: anomalies::filter,
};

/// Search in the list of root causes, or in the tree.
fn search(app: &mut App, text: &str) {
    if app.pane.is_of_patterns() { anomalies::search(app, text) } else { search_tree(app, text) }
}

/// Go to a match of the last search.
fn step_match(app: &mut App, step: MatchStep) {
    if app.pane.is_of_patterns() { anomalies::step_match(app, step) } else { tree::step_match(app, step) }
}

/// Open the page about the item under the cursor.
fn open_details(app: &mut App) {
    if !app.pane.is_of_patterns() && app.compared_executions().is_none() {
        return app.say("nothing to show yet");
    }
    match panes::view(app.pane).details(app) {
        Some(page) => app.open(page),
        None => app.say("nothing to show here"),
    }
}

/// Open the timeline of an example of the item under the cursor.
fn open_example(app: &mut App) {
    match panes::view(app.pane).example(app) {
        Some(sample) => timeline::open(app, ExecutionId::from_raw(sample.number), sample.group),
        None => app.say(match (&app.model, app.pane.is_of_patterns()) {
            (None, true) => "no executions here; 4 draws the path of this delay",
            (None, false) => "nothing to show yet",
            (Some(_), _) => "no execution to show here",
        }),
    }
}

/// Back to the origin of the last jump.
fn back(app: &mut App) {
    match app.trail.pop() {
        Some(JumpOrigin::Cause(i)) => {
            app.tree.cursor = Cursor::Cause(i);
            app.pane = Pane::Tree;
        }
        Some(JumpOrigin::Anomaly(row)) => {
            app.patterns.list.row = row;
            app.pane = Pane::Anomalies;
        }
        Some(JumpOrigin::Step(place)) => {
            app.patterns.path = place;
            app.pane = Pane::Path;
        }
        Some(JumpOrigin::Context(context)) => tree::go_to(app, context),
        None => app.say("nothing to go back to"),
    }
}
