//! The timeline of an execution, beside that of a typical one: opening it, its keys, and its lines.

mod chart;
mod draw;
mod lines;
pub mod state;
mod text;
mod trees;

use crate::compare::Comparison;
use crate::compare::arranged::KernelFrames;
use crate::compare::members::typical;
use crate::model::Model;
use crate::model::concurrent::{ConcurrentQuestion, ConcurrentUse};
use crate::model::execution::ExecutionId;
use crate::model::execution_timeline::ExecutionTimeline;
use crate::tui::actions::{Action, ActionScope};
use crate::tui::app::{App, EMPTY, Layer, LayerResponse};
use crate::tui::canvas::{Canvas, width};
use crate::tui::concurrent::ConcurrentAnswer;
use crate::tui::job::{Job, JobError, ReadTimelines};
use crate::tui::key::KeyPress;
use crate::tui::layers::prompt::{Prompt, PromptPurpose};
use crate::tui::search::MatchStep;
use crate::view::lanes::thread_name;
use lines::{DrawnLines, DrawnParts, TimelineLines};
use ratatui::layout::{Position, Rect};
use state::{GroupLabel, LoadedTimelines, TimelineContent, TimelineExecution, TimelineView};

/// Open the timeline of an execution beside a typical fast one.
pub fn open(app: &mut App, id: ExecutionId, group: GroupLabel) {
    let Some((model, comparison)) = app.compared_executions() else { return };
    let group = if group.is_empty() { group_of(&comparison, id) } else { group };
    let other = typical(&model, &comparison.fast.members, id).map(|id| TimelineExecution {
        id,
        group: "fast",
        is_typical: true,
    });
    read(app, [TimelineExecution { id, group, is_typical: false }].into_iter().chain(other).collect())
}

/// Open the timelines of two executions.
pub fn open_both(app: &mut App, first: ExecutionId, second: ExecutionId) {
    let Some((_, comparison)) = app.compared_executions() else { return };
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

/// Read the timelines of executions.
fn read(app: &mut App, executions: Vec<TimelineExecution>) {
    if app.busy.is_some() {
        app.say("the analysis still runs; try again when it is done");
        return;
    }
    let ids = executions.iter().map(|execution| execution.id).collect();
    let kernel = app.tree.arrangement.kernel;
    let lines = TimelineLines::default();
    let view = TimelineView { executions, content: TimelineContent::Loading, asks_who_else: false, lines, kernel };
    app.open(view);
    app.begin(Job::Timelines { executions: ids, kernel })
}

fn loaded(app: &mut App) -> Option<&mut LoadedTimelines> {
    app.layers_of::<TimelineView>().next()?.loaded()
}

/// The timelines are read, or not.
pub fn on_timelines(app: &mut App, asked: &[ExecutionId], result: Result<ReadTimelines, JobError>) {
    let start = |model: &Model, id: ExecutionId| model.executions.start.get(id.index());
    let same = |new: &Model| {
        let old = app.model.as_ref();
        old.is_some_and(|old| asked.iter().all(|id| start(old, *id).is_some() && start(old, *id) == start(new, *id)))
    };
    let content = match result {
        Err(error) => TimelineContent::Failed(error.to_string()),
        Ok(read) if !same(&read.model) => {
            TimelineContent::Failed("the recording has changed since it was analysed: open it again".to_owned())
        }
        Ok(read) => match LoadedTimelines::new(read, asked.to_vec()) {
            Some(loaded) => TimelineContent::Loaded(Box::new(loaded)),
            None => TimelineContent::Failed(why_none(app).to_owned()),
        },
    };
    let (is_busy, is_known) = (app.busy.is_some(), app.overview.whole.is_some());
    let Some(view) = app.layers_of::<TimelineView>().next() else { return };
    if view.executions.iter().map(|e| e.id).eq(asked.iter().copied()) {
        let old = std::mem::replace(&mut view.content, content);
        if let (TimelineContent::Loaded(old), Some(loaded)) = (old, view.loaded()) {
            loaded.keep_place(&old);
        }
    }
    let asks = view.asks_who_else || is_known && view.waits_for_others();
    let job = if asks { view.ask_who_else(is_busy) } else { None };
    if let Some(job) = job {
        app.begin(job);
    }
}

/// Why there is nothing to draw of an execution.
fn why_none(app: &App) -> &'static str {
    match app.model.as_ref().is_some_and(|model| model.profile.is_some()) {
        true => "a profile has samples, which have no duration; t shows when each thread was sampled",
        false => "this execution has no recorded path",
    }
}

/// The others are found, or not.
pub fn on_concurrent(app: &mut App, asked: &ConcurrentQuestion, result: Result<ConcurrentUse, JobError>) {
    if let Some(concurrent) = loaded(app).and_then(|loaded| loaded.concurrent.as_mut())
        && concurrent.question == *asked
    {
        concurrent.answer = Some(result);
    }
}

static SEARCH: PromptPurpose = PromptPurpose {
    label: |_| "search ",
    typed: Some(search),
    next: None,
    entered: |app, text| {
        search(app, text);
        if !text.is_empty() {
            go_to_match(app, MatchStep::Here);
        }
    },
};

/// Search while it is typed.
fn search(app: &mut App, text: &str) {
    if let Some(loaded) = loaded(app) {
        loaded.find(text);
    }
}

/// Go to a match of the search.
fn go_to_match(app: &mut App, step: MatchStep) {
    let Some(view) = app.layers_of::<TimelineView>().next() else { return };
    let columns = view.lines.columns;
    if let Some(text) = view.loaded().map(|loaded| loaded.step_match(step, columns)) {
        app.say(text);
    }
}

impl TimelineView {
    fn loaded(&mut self) -> Option<&mut LoadedTimelines> {
        match &mut self.content {
            TimelineContent::Loaded(loaded) => Some(loaded),
            TimelineContent::Loading | TimelineContent::Failed(_) => None,
        }
    }

    /// The segment under the cursor waits for a CPU or a disk: who had it is the question, which is answered without
    /// being asked where the state history was built already.
    fn waits_for_others(&mut self) -> bool {
        self.loaded().is_some_and(|loaded| loaded.waits_for_others())
    }

    /// Ask who else used the things of the segment under the cursor, unless another job runs.
    fn ask_who_else(&mut self, is_busy: bool) -> Option<Job> {
        let loaded = self.loaded().filter(|_| !is_busy)?;
        let question = loaded.question()?;
        loaded.concurrent = Some(ConcurrentAnswer { question: question.clone(), answer: None });
        Some(Job::Concurrent { question })
    }

    /// Do an action of its own keys.
    fn act(&mut self, action: Action, app: &App) -> LayerResponse {
        if action == Action::Search {
            return LayerResponse::change(|app| {
                app.open(Prompt::new(&SEARCH, ""));
            });
        }
        if matches!(self.content, TimelineContent::Loading) {
            self.asks_who_else |= action == Action::Concurrent;
        }
        if action == Action::ShowKernel {
            return self.read_again(app);
        }
        let (columns, is_busy, page) = (self.lines.columns, app.busy.is_some(), self.lines.trees);
        let Some(loaded) = self.loaded() else { return LayerResponse::TAKEN };
        let before = (loaded.front, loaded.cursor);
        let said = act_on(loaded, action, columns, page);
        let has_moved = (loaded.front, loaded.cursor) != before;
        if has_moved {
            // The answer was about another segment.
            loaded.concurrent = None;
        }
        let asks = has_moved && app.overview.whole.is_some() && self.waits_for_others();
        let job = if asks || action == Action::Concurrent { self.ask_who_else(is_busy) } else { None };
        LayerResponse::change(|app| {
            if let Some(said) = said {
                app.say(said);
            }
            if let Some(job) = job {
                app.begin(job);
            }
        })
    }

    /// Read the calls again with the kernel's functions, or without them.
    fn read_again(&mut self, app: &App) -> LayerResponse {
        if app.busy.is_some() {
            return LayerResponse::change(|app| app.say("the analysis still runs; try again when it is done"));
        }
        self.kernel = match self.kernel {
            KernelFrames::Hidden => KernelFrames::Shown,
            KernelFrames::Shown => KernelFrames::Hidden,
        };
        let executions = self.executions.iter().map(|execution| execution.id).collect();
        let job = Job::Timelines { executions, kernel: self.kernel };
        let said = match self.kernel {
            KernelFrames::Hidden => "the kernel's functions below calls are hidden",
            KernelFrames::Shown => "the kernel's functions are shown; H hides them",
        };
        LayerResponse::change(move |app| {
            app.begin(job);
            app.say(said);
        })
    }

    /// The executions as texts name them.
    fn names(&self) -> [String; 2] {
        [0, 1].map(|at| {
            self.executions.get(at).map_or_else(String::new, |execution| {
                let group = if execution.group.is_empty() { "execution" } else { execution.group };
                format!("{group} {}", execution.id.raw())
            })
        })
    }
}

/// Do an action that is about the timelines alone; what is to be said of it.
fn act_on(loaded: &mut LoadedTimelines, action: Action, columns: usize, page: usize) -> Option<String> {
    if loaded.trees.is_some() {
        match action {
            Action::Open => trees::jump(loaded, columns),
            Action::AlignCalls => loaded.trees = None,
            _ if trees::act(loaded, action, page.saturating_sub(2)) => {}
            _ => return act_over_time(loaded, action, columns),
        }
        return None;
    }
    act_over_time(loaded, action, columns)
}

/// Do an action of the drawings over time.
fn act_over_time(loaded: &mut LoadedTimelines, action: Action, columns: usize) -> Option<String> {
    let is_at_call = loaded.line.is_some();
    match action {
        Action::Left if is_at_call => loaded.step_call(-1, columns),
        Action::Right if is_at_call => loaded.step_call(1, columns),
        Action::Left => loaded.step(-1, columns),
        Action::Right => loaded.step(1, columns),
        Action::Up => loaded.step_line(-1, columns),
        Action::Down => loaded.step_line(1, columns),
        Action::Home => loaded.go_to(0, columns),
        Action::End => loaded.go_to(usize::MAX, columns),
        Action::PageUp => loaded.pan(-7, columns),
        Action::PageDown => loaded.pan(7, columns),
        Action::PanLeft => loaded.pan(-2, columns),
        Action::PanRight => loaded.pan(2, columns),
        Action::ZoomIn => loaded.zoom(1, columns),
        Action::ZoomOut => loaded.zoom(-1, columns),
        Action::Zoom => loaded.show_whole(),
        Action::Open if loaded.show_call(columns) => {}
        Action::Open => loaded.show_segment(columns),
        Action::OtherExecution => loaded.switch(columns),
        Action::Align if !loaded.next_alignment(columns) => {
            return Some("there is only one execution".to_owned());
        }
        Action::AlignCalls => loaded.show_trees(),
        Action::ShowEvents => loaded.events = !loaded.events,
        Action::NextEvent | Action::PreviousEvent => {
            let by = if action == Action::NextEvent { 1 } else { -1 };
            if !loaded.step_event(by, columns) {
                return Some("no further event of this execution".to_owned());
            }
        }
        Action::NextMatch => return Some(loaded.step_match(MatchStep::Next, columns)),
        Action::PreviousMatch => return Some(loaded.step_match(MatchStep::Previous, columns)),
        _ => {}
    }
    None
}

impl Layer for TimelineView {
    fn key(&mut self, key: KeyPress, app: &App) -> LayerResponse {
        let shows_trees = self.loaded().is_some_and(|loaded| loaded.trees.is_some());
        match app.options.keys.bound(key, ActionScope::Timeline) {
            None => LayerResponse::TAKEN,
            Some(Action::Close) if shows_trees => self.act(Action::AlignCalls, app),
            Some(Action::Close | Action::Quit | Action::Back | Action::ShowTimeline) => LayerResponse::CLOSE,
            Some(
                action @ (Action::Help
                | Action::Copy
                | Action::Redraw
                | Action::Suspend
                | Action::Theme
                | Action::ShowThreads),
            ) => LayerResponse::act(action),
            Some(action) => self.act(action, app),
        }
    }

    /// The segment there, or the nearest one of its thread, gets the cursor.
    fn click(&mut self, at: Position, _: &App) -> LayerResponse {
        let (x, y, lines) = (usize::from(at.x), usize::from(at.y), self.lines.clone());
        let column = x.checked_sub(lines.label_columns + 2).filter(|column| *column < lines.columns);
        let (Some(loaded), Some(column)) = (self.loaded(), column) else { return LayerResponse::TAKEN };
        let before = (loaded.front, loaded.cursor);
        for (at, rows) in lines.rows.iter().enumerate() {
            let (lanes, chart) = (lines.lanes_at(at), lines.chart_at(at));
            if let Some(line) = y.checked_sub(chart).filter(|line| lines.chart.get(at).is_some_and(|n| line < n)) {
                loaded.point_to_call(at, line, column, lines.columns);
            }
            if let Some(line) = y.checked_sub(lanes).filter(|line| line < rows) {
                let thread = lines.first.get(at).copied().unwrap_or(0) + line / lines.per_lane.max(1);
                loaded.point_to(at, thread, column, lines.columns);
            }
        }
        if (loaded.front, loaded.cursor) != before {
            loaded.concurrent = None;
        }
        LayerResponse::TAKEN
    }

    fn wheel(&mut self, lines: isize, app: &App) -> LayerResponse {
        self.act(if lines < 0 { Action::ZoomIn } else { Action::ZoomOut }, app)
    }

    fn lay_out(&mut self, app: &App) {
        let lines = match &self.content {
            TimelineContent::Loaded(loaded) => laid_out(self, loaded, app.frame.full),
            TimelineContent::Loading | TimelineContent::Failed(_) => TimelineLines::default(),
        };
        if let Some(loaded) = self.loaded() {
            loaded.scroll_chart(lines.chart.get(loaded.front).copied().unwrap_or(0));
            loaded.trees.iter_mut().for_each(|trees| trees.scroll(lines.trees.saturating_sub(1)));
        }
        self.lines = lines;
    }

    fn draw(&self, canvas: &mut Canvas<'_>, app: &App) {
        draw::draw(&mut canvas.part(app.frame.full), app, self);
    }

    fn keys(&self, _: &App) -> &'static [(&'static str, &'static str)] {
        match &self.content {
            TimelineContent::Loading | TimelineContent::Failed(_) => EMPTY,
            TimelineContent::Loaded(loaded) if loaded.trees.is_some() => &[
                ("c", "over time"),
                ("Left Right", "fold"),
                ("Enter", "show in time"),
                ("Tab", "other"),
                ("+ -", "zoom"),
                ("/", "search"),
                ("?", "help"),
            ],
            TimelineContent::Loaded(_) => &[
                ("Esc", "close"),
                ("Left Right", "step"),
                ("c", "aligned calls"),
                ("+ -", "zoom"),
                ("a", "align"),
                ("p", "events"),
                ("o", "who else"),
                ("/", "search"),
                ("t", "threads"),
                ("?", "help"),
            ],
        }
    }

    fn scope(&self) -> Option<ActionScope> {
        Some(ActionScope::Timeline)
    }

    /// The segment under the cursor, and the command that prints both executions.
    fn copied(&self, _: &App) -> Option<String> {
        let TimelineContent::Loaded(loaded) = &self.content else { return None };
        let numbers: Vec<String> = self.executions.iter().map(|e| e.id.raw().to_string()).collect();
        let lines = text::lines(loaded, &self.names(), 100).into_iter();
        let text = lines.map(|line| line.into_iter().map(|(_, text)| text).collect::<String>());
        let command = format!("whyslow diff --executions {}", numbers.join(","));
        Some(text.chain((numbers.len() > 1).then_some(command)).collect::<Vec<_>>().join("\n"))
    }
}

/// The lines of timelines in a rectangle.
fn laid_out(view: &TimelineView, loaded: &LoadedTimelines, area: Rect) -> TimelineLines {
    let timelines: Vec<_> = (0..view.executions.len()).filter_map(|at| loaded.timeline(at)).collect();
    let others: Vec<_> = (0..timelines.len()).map(|at| loaded.others(at)).collect();
    let names = timelines.iter().flat_map(|timeline| &timeline.threads).map(|thread| width(&thread_name(thread)));
    let labels = names.chain(others.iter().flatten().map(|other| width(&other.label)));
    let labels = labels.chain(["▼ 10 below".chars().count()]).max().unwrap_or(0);
    let thread_here = |(at, timeline): (usize, &&ExecutionTimeline)| {
        let segment = loaded.cursor.get(at).and_then(|segment| timeline.segments.get(*segment));
        segment.map_or(0, |segment| segment.thread as usize)
    };
    let drawn = |(at, timeline): (usize, &&ExecutionTimeline)| DrawnLines {
        threads: timeline.threads.len() + others.get(at).map_or(0, Vec::len),
        cursor: thread_here((at, timeline)),
        calls: loaded.tree(at).lines().len(),
    };
    let executions: Vec<DrawnLines> = timelines.iter().enumerate().map(drawn).collect();
    let parts = DrawnParts { front: loaded.front, has_marks: loaded.events, has_trees: loaded.trees.is_some() };
    let mut lines = TimelineLines::new(area, &executions, parts, labels);
    let columns = usize::from(area.width).saturating_sub(2);
    let available = lines.text_lines(area);
    let mut details = text::lines(loaded, &view.names(), columns);
    let legends = text::legends(loaded, columns);
    // The letters of events are said wherever events are marked.
    details.truncate(available.saturating_sub(usize::from(loaded.events)));
    let left = available - details.len();
    details.extend(legends.into_iter().take(left));
    lines.details = details;
    lines
}
