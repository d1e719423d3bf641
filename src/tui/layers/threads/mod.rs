//! All threads over time: opening it, its keys, and the questions that it asks.
//!
//! Each key changes the view at once and asks for what is not known yet; the lanes before stay on the screen until the
//! new ones come. The newest question has all that is still unanswered, so that none is lost.

mod draw;
pub mod state;

use super::filters;
use super::prompt::{Prompt, PromptPurpose};
use super::timeline::state::{TimelineContent, TimelineView};
use crate::base::time::{Span, Timestamp};
use crate::model::concurrent::{ConcurrentQuestion, ConcurrentUse};
use crate::model::execution::ExecutionId;
use crate::model::thread_lanes::{LaneOwner, ThreadsAnswer, ThreadsQuestion};
use crate::model::wait_kind::SegmentKind;
use crate::tui::actions::{Action, ActionScope};
use crate::tui::app::{App, EMPTY, Layer, LayerResponse};
use crate::tui::canvas::Canvas;
use crate::tui::concurrent::ConcurrentAnswer;
use crate::tui::groups::GroupSide;
use crate::tui::job::{Job, JobError};
use crate::tui::key::KeyPress;
use crate::tui::layers::timeline;
use crate::tui::overview::OverviewView;
use crate::tui::time_window::TimeWindow;
use crate::view::thread_lanes::no_waker;
use crate::view::words;
use ratatui::layout::Position;
use state::{ThreadsLines, ThreadsView, label_columns};

/// Open the dialog: from the recording at a glance with its window, from an execution's timeline at the moment of its
/// cursor, else over the whole recording. Threads that causes name come first.
pub fn open(app: &mut App) {
    let mut causes: Vec<(String, i32)> = Vec::new();
    let mut time = None;
    if let Some(view) = app.top::<TimelineView>()
        && let TimelineContent::Loaded(loaded) = &view.content
        && let Some((timeline, segment)) = loaded.here()
    {
        let thread = timeline.threads.get(segment.thread as usize);
        causes.extend(thread.map(|thread| (thread.host.clone(), thread.tid)));
        causes.extend(timeline.threads.iter().map(|thread| (thread.host.clone(), thread.tid)));
        let start = timeline.start.saturating_add(segment.start_ns);
        let around = segment.ns.max(1).saturating_mul(2);
        let end = start.saturating_add(segment.ns).saturating_add(around);
        let window = Span::new(start.saturating_add(-around), end);
        time = Some(TimeWindow { window, cursor: start, anchor: None });
    } else if let Some(view) = app.top::<OverviewView>() {
        time = Some(view.time.clone()).filter(|time| !time.window.is_empty());
    }
    let named = app.causes().iter().filter_map(|cause| cause.by.host.clone().zip(cause.by.tid));
    causes.extend(named);
    let mut seen: Vec<(String, i32)> = Vec::new();
    causes.retain(|cause| {
        !seen.contains(cause) && {
            seen.push(cause.clone());
            true
        }
    });
    app.open(ThreadsView::new(time, causes));
    ask(app);
}

/// Ask for what the dialog does not know.
fn ask(app: &mut App) {
    let width = usize::from(app.size.0);
    let question = app.layers_of::<ThreadsView>().next().and_then(|view| view.question(width));
    if let Some(question) = question {
        app.begin(Job::Threads { question: Box::new(question) });
    }
}

/// The screen has another size: other columns are asked for.
pub fn on_resize(app: &mut App) {
    ask(app);
}

/// An answer, or the reason why there is none.
pub fn on_threads(app: &mut App, question: &ThreadsQuestion, result: Result<Box<ThreadsAnswer>, JobError>) {
    let Some(view) = app.layers_of::<ThreadsView>().next() else { return };
    match result {
        Ok(answer) => {
            view.take(question, *answer);
            ask(app)
        }
        Err(error) => {
            (view.failure, view.is_waiting) = (Some(error.to_string()), false);
        }
    }
}

/// The others are found, or not.
pub fn on_concurrent(app: &mut App, asked: &ConcurrentQuestion, result: &Result<ConcurrentUse, JobError>) {
    let view = app.layers_of::<ThreadsView>().next();
    if let Some(concurrent) = view.and_then(|view| view.concurrent.as_mut())
        && concurrent.question == *asked
    {
        concurrent.answer = Some(result.clone());
    }
}

static WORDS: PromptPurpose = PromptPurpose {
    label: |_| "only threads with ",
    typed: None,
    next: None,
    entered: |app, text| {
        if let Some(view) = app.layers_of::<ThreadsView>().next() {
            view.wanted.only = text.split_whitespace().map(str::to_owned).collect();
        }
        ask(app)
    },
};

impl ThreadsView {
    /// Do an action of its own keys; what is said about it.
    fn act(&mut self, action: Action, app: &App) -> LayerResponse {
        let Some(lanes) = self.lanes.clone() else { return LayerResponse::TAKEN };
        let last = lanes.lanes.len().saturating_sub(1);
        let page = self.lines.lanes.max(2) - 1;
        match action {
            Action::Up => self.row = self.row.saturating_sub(1),
            Action::Down => self.row = (self.row + 1).min(last),
            Action::PageUp => self.row = self.row.saturating_sub(page),
            Action::PageDown => self.row = (self.row + page).min(last),
            Action::Open if !self.follow() => return self.say_no_waker(),
            Action::Unfold if !self.unfold() => {
                return LayerResponse::say("the threads of this process have lanes of their own already");
            }
            Action::ShowCpus => self.wanted.cpus = !self.wanted.cpus,
            Action::Clear if self.time.anchor.is_none() => self.wanted.only.clear(),
            Action::Filter => {
                let words = self.wanted.only.join(" ");
                return LayerResponse::change(|app| app.open(Prompt::new(&WORDS, words)));
            }
            Action::Concurrent => return self.ask_who_else(app),
            Action::ShowTimeline => return self.show_execution(app),
            Action::MakeSlow | Action::MakeFast if app.comparison.is_none() => {
                return LayerResponse::say("there are no groups yet");
            }
            Action::MakeSlow | Action::MakeFast => {
                let text = words::filter(&self.time.filter(lanes.grid.columns(), app.origin()));
                let side = if action == Action::MakeSlow { GroupSide::Slow } else { GroupSide::Fast };
                return LayerResponse::change(move |app| filters::open_with(app, side, text, None)).closing();
            }
            action => {
                let before = self.time.window;
                self.time.act(action, lanes.grid.columns(), lanes.recorded);
                if self.time.window != before {
                    self.keep_here();
                }
            }
        }
        LayerResponse::change(ask)
    }

    fn say_no_waker(&self) -> LayerResponse {
        LayerResponse::say(match self.lane().map(|lane| &lane.owner) {
            Some(LaneOwner::Process { .. }) => "several threads; Space shows each",
            Some(LaneOwner::Thread(_)) => no_waker(self.moment.as_ref().map_or(SegmentKind::Unknown, |of| of.kind)),
            _ => "no thread here",
        })
    }

    fn ask_who_else(&mut self, app: &App) -> LayerResponse {
        if app.busy.is_some() {
            return LayerResponse::say("the analysis still runs; try again when it is done");
        }
        let Some(question) = self.concurrent_question() else { return LayerResponse::say("no thread here") };
        self.concurrent = Some(ConcurrentAnswer { question: question.clone(), answer: None });
        LayerResponse::change(|app| app.begin(Job::Concurrent { question }))
    }

    /// The timeline of the execution that runs at the cursor, one of the thread there first.
    fn show_execution(&self, app: &App) -> LayerResponse {
        let Some(model) = &app.model else { return LayerResponse::say("no executions are known") };
        let thread = match self.lane().map(|lane| &lane.owner) {
            Some(LaneOwner::Thread(thread)) => Some((thread.names.host.as_str(), thread.names.tid)),
            _ => None,
        };
        let at = self.time.cursor;
        let runs = |id: &usize| {
            let start = model.executions.start.get(*id);
            start.is_some_and(|start| start <= at && at < start.saturating_add(model.executions.duration(*id)))
        };
        let is_of_thread = |id: &usize| {
            let who = model.executions.who.get(*id).and_then(|who| model.who.get(who.index()));
            who.map(|who| (model.names.get(who.host), who.tid)) == thread
        };
        let running: Vec<usize> = (0..model.executions.len()).filter(runs).collect();
        let found = running.iter().copied().find(is_of_thread).or(running.first().copied());
        match found {
            Some(id) => {
                let id = ExecutionId::from_raw(id as u32);
                LayerResponse::change(move |app| timeline::open(app, id, ""))
            }
            None => LayerResponse::say("no execution runs at this moment"),
        }
    }

    /// The cursor goes to a cell of the screen, the fixed end of the selection to `anchor`.
    fn point_to(&mut self, at: Position, width: usize, anchor: Option<Timestamp>) -> LayerResponse {
        let Some(lanes) = self.lanes.clone() else { return LayerResponse::TAKEN };
        let column = usize::from(at.x).checked_sub(label_columns(width) + 2);
        if let Some(column) = column.filter(|column| *column < lanes.grid.columns()) {
            self.time.anchor = anchor;
            self.time.cursor = lanes.grid.span(column).start;
        }
        let line = usize::from(at.y).checked_sub(1 + self.lines.strips).filter(|line| *line < self.lines.lanes);
        if let Some(row) = line.map(|line| self.first + line).filter(|row| *row < lanes.lanes.len()) {
            self.row = row;
        }
        LayerResponse::change(ask)
    }
}

impl Layer for ThreadsView {
    fn key(&mut self, key: KeyPress, app: &App) -> LayerResponse {
        match app.options.keys.bound(key, ActionScope::Threads) {
            None => LayerResponse::TAKEN,
            Some(Action::Close | Action::Quit | Action::Back | Action::ShowThreads) => LayerResponse::CLOSE,
            Some(action @ (Action::Help | Action::Redraw | Action::Suspend | Action::Theme)) => {
                LayerResponse::act(action)
            }
            Some(action) => self.act(action, app),
        }
    }

    fn click(&mut self, at: Position, app: &App) -> LayerResponse {
        self.point_to(at, usize::from(app.size.0), None)
    }

    /// It selects from where the button went down.
    fn drag(&mut self, column: u16, app: &App) -> LayerResponse {
        let anchor = Some(self.time.anchor.unwrap_or(self.time.cursor));
        self.point_to(Position { x: column, y: u16::MAX }, usize::from(app.size.0), anchor)
    }

    fn wheel(&mut self, lines: isize, app: &App) -> LayerResponse {
        self.act(if lines < 0 { Action::ZoomIn } else { Action::ZoomOut }, app)
    }

    fn lay_out(&mut self, app: &App) {
        let (width, height) = (usize::from(app.frame.full.width), usize::from(app.frame.full.height));
        let strips = if app.comparison.is_some() && height >= 14 { 2 } else { 0 };
        let details = draw::details(app, self, width.saturating_sub(2), (height / 4).clamp(2, 8));
        // Title, axis and its labels.
        let room = height.saturating_sub(3 + strips + details.len());
        let count = self.lanes.as_ref().map_or(0, |lanes| lanes.lanes.len());
        let lanes = room.min(count);
        self.lines = ThreadsLines { strips, lanes, details };
        self.first =
            self.first.min(self.row).max((self.row + 1).saturating_sub(lanes)).min(count.saturating_sub(lanes));
    }

    fn draw(&self, canvas: &mut Canvas<'_>, app: &App) {
        draw::draw(&mut canvas.part(app.frame.full), app, self);
    }

    fn keys(&self, _: &App) -> &'static [(&'static str, &'static str)] {
        if self.lanes.is_none() {
            return EMPTY;
        }
        &[
            ("Esc", "close"),
            ("+ -", "zoom"),
            ("Enter", "waker"),
            ("Space", "unfold"),
            ("o", "who else"),
            ("&", "words"),
            ("?", "help"),
            ("v", "execution"),
            ("< >", "select"),
            ("s", "slow"),
            ("f", "fast"),
            ("c", "CPUs"),
        ]
    }

    fn scope(&self) -> Option<ActionScope> {
        Some(ActionScope::Threads)
    }

    /// The cursor in words.
    fn copied(&self, _: &App) -> Option<String> {
        let line = |line: &Vec<_>| line.iter().map(|(_, text): &(_, String)| text.as_str()).collect::<String>();
        Some(self.lines.details.iter().map(line).collect::<Vec<_>>().join("\n"))
    }
}
