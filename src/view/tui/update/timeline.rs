//! The time-line of an execution: opening it, and its keys.

use crate::compare::Comparison;
use crate::compare::members::typical;
use crate::model::Model;
use crate::model::concurrent::{ConcurrentQuestion, ConcurrentUse};
use crate::model::execution::ExecutionId;
use crate::view::tui::actions::Action;
use crate::view::tui::app::App;
use crate::view::tui::details::{self, Details, SampleExecution, SampleSearch};
use crate::view::tui::job::{Job, JobError};
use crate::view::tui::layers::prompt::{Prompt, PromptPurpose};
use crate::view::tui::message::UiEffect;
use crate::view::tui::overlay::Overlay;
use crate::view::tui::pane::Pane;
use crate::view::tui::panes::tree::state::Cursor;
use crate::view::tui::search::MatchStep;
use crate::view::tui::timeline::{
    ConcurrentAnswer, GroupLabel, LoadedTimelines, TimelineContent, TimelineExecution, TimelineView,
};
use std::sync::Arc;

/// Open the time-line of an example of the item under the cursor: the one with most time there.
pub(super) fn open_example(app: &mut App) -> Vec<UiEffect> {
    match example(app) {
        Some(sample) => open(app, ExecutionId::from_raw(sample.number), sample.group),
        None => {
            let why = match (&app.model, app.pane.is_of_patterns()) {
                (None, true) => "no executions here; 4 draws the path of this delay",
                (None, false) => "nothing to show yet",
                (Some(_), _) => "no execution to show here",
            };
            app.say(why);
            Vec::new()
        }
    }
}

fn example(app: &App) -> Option<SampleExecution> {
    let (model, comparison) = app.compared_executions()?;
    if app.pane.is_of_patterns() {
        let found = app.patterns.found.as_ref()?;
        let path = app.patterns.path;
        let at = match app.pane {
            Pane::Path => found.step(path.path, path.step)?.anomaly,
            _ => app.patterns.list.anomaly(found)?,
        };
        let span = found.get(at)?.span;
        return details::samples_of_moment(&model, span).into_iter().next();
    }
    let shown = match (app.pane, app.tree.cursor) {
        (Pane::Tree, Cursor::Cause(i)) => {
            details::of_cause(&model, &comparison, comparison.causes.get(i)?, SampleSearch::Done)
        }
        (Pane::Tree, Cursor::Row(_)) => super::overlays::node_details(app, &model, &comparison, SampleSearch::Done)?,
        _ => super::overlays::range_details(app, &model, &comparison)?,
    };
    match shown {
        Details::Context { samples, .. } | Details::Range { samples, .. } => samples.into_iter().next(),
    }
}

/// Open the time-line of an execution beside a typical fast one.
pub(super) fn open(app: &mut App, id: ExecutionId, group: GroupLabel) -> Vec<UiEffect> {
    let Some((model, comparison)) = app.compared_executions() else { return Vec::new() };
    let group = if group.is_empty() { group_of(&comparison, id) } else { group };
    let other = typical(&model, &comparison.fast.members, id).map(|id| TimelineExecution {
        id,
        group: "fast",
        is_typical: true,
    });
    read(app, [TimelineExecution { id, group, is_typical: false }].into_iter().chain(other).collect())
}

/// Open the time-lines of two executions.
pub(super) fn open_both(app: &mut App, first: ExecutionId, second: ExecutionId) -> Vec<UiEffect> {
    let Some((_, comparison)) = app.compared_executions() else { return Vec::new() };
    let executions =
        [first, second].map(|id| TimelineExecution { id, group: group_of(&comparison, id), is_typical: false });
    read(app, executions.to_vec())
}

/// The group that has an execution; empty where none has.
fn group_of(comparison: &Comparison, id: ExecutionId) -> GroupLabel {
    match id {
        _ if comparison.slow.members.binary_search(&id).is_ok() => "slow",
        _ if comparison.fast.members.binary_search(&id).is_ok() => "fast",
        _ => "",
    }
}

/// Read the time-lines of executions.
fn read(app: &mut App, executions: Vec<TimelineExecution>) -> Vec<UiEffect> {
    if app.busy.is_some() {
        app.say("the analysis still runs; try again when it is done");
        return Vec::new();
    }
    let ids = executions.iter().map(|execution| execution.id).collect();
    let view = TimelineView { executions, content: TimelineContent::Loading, asks_who_else: false };
    app.open(Overlay::Timeline(Box::new(view)));
    app.begin(Job::Timelines { executions: ids })
}

/// The time-line that is open, perhaps below a prompt.
pub(super) fn view(app: &mut App) -> Option<&mut TimelineView> {
    app.layers_of::<Overlay>().find_map(|overlay| match overlay {
        Overlay::Timeline(view) => Some(view.as_mut()),
        _ => None,
    })
}

fn loaded(app: &mut App) -> Option<&mut LoadedTimelines> {
    match &mut view(app)?.content {
        TimelineContent::Loaded(loaded) => Some(loaded),
        TimelineContent::Loading | TimelineContent::Failed(_) => None,
    }
}

/// The time-lines are read, or not.
pub(super) fn on_timelines(
    app: &mut App,
    asked: &[ExecutionId],
    result: Result<Arc<Model>, JobError>,
) -> Vec<UiEffect> {
    let start = |model: &Model, id: ExecutionId| model.executions.start.get(id.index()).copied();
    let same = |new: &Model| {
        let old = app.model.as_ref();
        old.is_some_and(|old| asked.iter().all(|id| start(old, *id).is_some() && start(old, *id) == start(new, *id)))
    };
    let content = match result {
        Err(error) => TimelineContent::Failed(error.to_string()),
        Ok(model) if !same(&model) => {
            TimelineContent::Failed("the recording has changed since it was analysed: open it again".to_owned())
        }
        Ok(model) => match LoadedTimelines::new(model, asked.to_vec()) {
            Some(loaded) => TimelineContent::Loaded(Box::new(loaded)),
            None => TimelineContent::Failed("this execution has no recorded path".to_owned()),
        },
    };
    if let Some(view) = view(app).filter(|view| view.executions.iter().map(|e| e.id).eq(asked.iter().copied())) {
        view.content = content;
    }
    match view(app).is_some_and(|view| view.asks_who_else) {
        true => ask_who_else(app),
        false => show_who_else(app),
    }
}

/// Where the segment under the cursor waits for a CPU or a disk, who had it is the question: answer it by itself, if
/// the state history was built already.
fn show_who_else(app: &mut App) -> Vec<UiEffect> {
    let is_known = app.overview.whole.is_some();
    match is_known && loaded(app).is_some_and(|loaded| loaded.waits_for_others()) {
        true => ask_who_else(app),
        false => Vec::new(),
    }
}

/// Ask who else used the things of the segment under the cursor.
fn ask_who_else(app: &mut App) -> Vec<UiEffect> {
    if app.busy.is_some() {
        return Vec::new();
    }
    let Some(loaded) = loaded(app) else { return Vec::new() };
    let Some(question) = loaded.question() else { return Vec::new() };
    loaded.concurrent = Some(ConcurrentAnswer { question: question.clone(), answer: None });
    app.begin(Job::Concurrent { question })
}

/// The others are found, or not.
pub(super) fn on_concurrent(app: &mut App, asked: &ConcurrentQuestion, result: Result<ConcurrentUse, JobError>) {
    if let Some(concurrent) = loaded(app).and_then(|loaded| loaded.concurrent.as_mut())
        && concurrent.question == *asked
    {
        concurrent.answer = Some(result);
    }
}

static SEARCH: PromptPurpose = PromptPurpose {
    label: |_| "search ",
    typed: Some(search),
    entered: |app, text| {
        search(app, text);
        if !text.is_empty() {
            step_match(app, MatchStep::Here);
        }
        Vec::new()
    },
};

/// Search while it is typed.
fn search(app: &mut App, text: &str) {
    if let Some(loaded) = loaded(app) {
        loaded.find(text);
    }
}

/// Go to a match of the search.
fn step_match(app: &mut App, step: MatchStep) {
    let columns = app.frame.timeline.columns;
    if let Some(text) = loaded(app).map(|loaded| loaded.step_match(step, columns)) {
        app.say(text);
    }
}

/// A click on a cell of the screen: the segment there, or the nearest one of its thread, gets the cursor.
pub(super) fn click(app: &mut App, x: usize, y: usize) {
    let lines = app.frame.timeline.clone();
    let Some(loaded) = loaded(app) else { return };
    let Some(column) = x.checked_sub(lines.label_columns + 2).filter(|column| *column < lines.columns) else { return };
    // The title, and above each drawing a head.
    let mut top = 1;
    for (at, rows) in lines.rows.iter().enumerate() {
        if let Some(line) = y.checked_sub(top + 1).filter(|line| line < rows) {
            let thread = lines.first.get(at).copied().unwrap_or(0) + line / lines.per_lane.max(1);
            let before = (loaded.front, loaded.cursor);
            loaded.point_to(at, thread, column, lines.columns);
            if (loaded.front, loaded.cursor) != before {
                loaded.concurrent = None;
            }
        }
        top += 1 + rows;
    }
}

/// Do an action of the time-line's own keys.
pub(super) fn act(app: &mut App, action: Action) -> Vec<UiEffect> {
    let columns = app.frame.timeline.columns;
    if action == Action::Search {
        app.open(Prompt::new(&SEARCH, ""));
        return Vec::new();
    }
    if action == Action::Concurrent
        && let Some(TimelineView { content: TimelineContent::Loading, asks_who_else, .. }) = view(app)
    {
        *asks_who_else = true;
        return Vec::new();
    }
    let Some(loaded) = loaded(app) else { return Vec::new() };
    let before = (loaded.front, loaded.cursor);
    match action {
        Action::Left => loaded.step(-1, columns),
        Action::Right => loaded.step(1, columns),
        Action::Up => loaded.step_thread(-1, columns),
        Action::Down => loaded.step_thread(1, columns),
        Action::Home => loaded.go_to(0, columns),
        Action::End => loaded.go_to(usize::MAX, columns),
        Action::PageUp => loaded.pan(-7, columns),
        Action::PageDown => loaded.pan(7, columns),
        Action::PanLeft => loaded.pan(-2, columns),
        Action::PanRight => loaded.pan(2, columns),
        Action::ZoomIn => loaded.zoom(1, columns),
        Action::ZoomOut => loaded.zoom(-1, columns),
        Action::Zoom => loaded.show_whole(),
        Action::Open => loaded.show_segment(columns),
        Action::OtherExecution => loaded.switch(columns),
        Action::Align if loaded.divergence.is_some() => loaded.toggle_alignment(columns),
        Action::Align => app.say("the two do not diverge, or there is only one"),
        Action::ShowEvents => loaded.events = !loaded.events,
        Action::NextMatch => step_match(app, MatchStep::Next),
        Action::PreviousMatch => step_match(app, MatchStep::Previous),
        Action::Concurrent => return ask_who_else(app),
        _ => {}
    }
    // The answer was about another segment.
    match self::loaded(app).filter(|loaded| (loaded.front, loaded.cursor) != before) {
        Some(loaded) => {
            loaded.concurrent = None;
            show_who_else(app)
        }
        None => Vec::new(),
    }
}
