//! The recording at a glance, over the whole screen: CPU use, run queues, disks, network, losses, executions.
//!
//! The first time the recording is read by a job, and so is each window. The position is in [`OverviewView`].

use super::filters;
use crate::base::figure;
use crate::base::time::{Span, Timestamp};
use crate::model::overview::{RecordingOverview, RequestRecord};
use crate::tui::actions::{Action, ActionScope};
use crate::tui::app::{App, EMPTY, Layer, LayerResponse};
use crate::tui::canvas::{Canvas, wrap};
use crate::tui::groups::GroupSide;
use crate::tui::job::{Job, JobError, JobLane};
use crate::tui::key::KeyPress;
use crate::tui::overview::{LABELS, OverviewColumn, OverviewView, columns, strip_lines};
use crate::tui::theme::StyleScope;
use crate::tui::time_window::TimeWindow;
use crate::tui::widget::{progress, strip, time_axis};
use crate::view::words;
use ratatui::layout::Position;
use std::sync::Arc;

/// Open the dialog; the first time the recording is read.
pub fn open(app: &mut App) {
    let whole = app.overview.whole.as_ref().map_or(Span::default(), |whole| whole.grid.whole());
    app.open(OverviewView::new(whole));
    read_whole(app)
}

/// Read the recording for the header, where the screen shows it there.
pub fn read_for_header(app: &mut App) {
    if strip_lines(app.size) > 0 && app.overview.failure.is_none() {
        read_whole(app)
    }
}

fn read_whole(app: &mut App) {
    let needed = app.overview.whole.is_none() && app.busy(JobLane::Overview).is_none();
    if needed {
        app.begin(Job::Overview { span: None })
    }
}

/// A part of the recording is read, or not.
pub fn on_overview(app: &mut App, asked: Option<Span>, result: Result<Arc<RecordingOverview>, JobError>) {
    app.overview.busy = None;
    let open = app.layers_of::<OverviewView>().next();
    match (result, asked) {
        (Ok(whole), None) => {
            if let Some(view) = open.filter(|view| view.time.window.is_empty()) {
                *view = OverviewView::new(whole.grid.whole());
            }
            app.overview.whole = Some(whole);
        }
        (Ok(part), Some(span)) => {
            if let Some(view) = open.filter(|view| view.time.window == span) {
                view.detail = Some(part);
            }
        }
        (Err(error), None) => app.overview.failure = Some(error.to_string()),
        (Err(error), Some(_)) => app.report_failure(error.to_string()),
    }
}

impl OverviewView {
    /// The cursor goes to a column of the screen, the fixed end of the selection to `anchor`.
    fn point_to(&mut self, x: u16, anchor: Option<Timestamp>) -> LayerResponse {
        let column = usize::from(x).checked_sub(LABELS + 1).filter(|column| *column < self.columns);
        if let Some(column) = column {
            self.time.anchor = anchor;
            self.time.cursor = self.time.column_start(self.columns, column);
        }
        LayerResponse::TAKEN
    }

    /// Do an action of its own keys.
    fn act(&mut self, action: Action, app: &App) -> LayerResponse {
        let Some(whole) = app.overview.whole.as_ref().map(|whole| whole.grid.whole()) else {
            return LayerResponse::TAKEN;
        };
        let (count, before) = (self.columns, self.time.window);
        // One lane: pages are of time.
        let action = match action {
            Action::PageUp => Action::PanLeft,
            Action::PageDown => Action::PanRight,
            other => other,
        };
        match action {
            Action::MakeSlow | Action::MakeFast if app.comparison.is_none() => {
                return LayerResponse::say("there are no groups yet");
            }
            Action::MakeSlow | Action::MakeFast => {
                let text = words::filter(&self.time.filter(count, app.origin()));
                let side = if action == Action::MakeSlow { GroupSide::Slow } else { GroupSide::Fast };
                return LayerResponse::change(move |app| filters::open_with(app, side, text, None)).closing();
            }
            action => {
                self.time.act(action, count, whole);
            }
        }
        if self.time.window == before {
            return LayerResponse::TAKEN;
        }
        self.detail = None;
        if self.time.window == whole {
            return LayerResponse::TAKEN;
        }
        let span = Some(self.time.window);
        LayerResponse::change(move |app| app.begin(Job::Overview { span }))
    }
}

impl Layer for OverviewView {
    fn key(&mut self, key: KeyPress, app: &App) -> LayerResponse {
        match app.options.keys.bound(key, ActionScope::Overview) {
            None => LayerResponse::TAKEN,
            Some(Action::Close | Action::Quit | Action::Back | Action::ShowOverview) => LayerResponse::CLOSE,
            Some(action @ (Action::Help | Action::Redraw | Action::Suspend | Action::Theme | Action::ShowThreads)) => {
                LayerResponse::act(action)
            }
            Some(action) => self.act(action, app),
        }
    }

    fn click(&mut self, at: Position, _: &App) -> LayerResponse {
        self.point_to(at.x, None)
    }

    /// It selects from where the button went down.
    fn drag(&mut self, column: u16, _: &App) -> LayerResponse {
        self.point_to(column, Some(self.time.anchor.unwrap_or(self.time.cursor)))
    }

    fn wheel(&mut self, lines: isize, app: &App) -> LayerResponse {
        self.act(if lines < 0 { Action::ZoomIn } else { Action::ZoomOut }, app)
    }

    fn lay_out(&mut self, app: &App) {
        self.columns = usize::from(app.size.0).saturating_sub(LABELS + 2).max(1);
    }

    fn draw(&self, canvas: &mut Canvas<'_>, app: &App) {
        draw(&mut canvas.part(app.frame.full), app, self);
    }

    fn keys(&self, app: &App) -> &'static [(&'static str, &'static str)] {
        if app.overview.whole.is_none() {
            return EMPTY;
        }
        &[
            ("Esc", "close"),
            ("Left Right", "move"),
            ("+ -", "zoom"),
            ("< >", "select"),
            ("s", "slow"),
            ("f", "fast"),
            ("?", "help"),
        ]
    }

    fn scope(&self) -> Option<ActionScope> {
        Some(ActionScope::Overview)
    }
}

/// Disk requests in flight, which a recording without them does not draw.
const REQUESTS: &str = "requests";

/// A line of bars.
struct Measure {
    name: &'static str,
    scope: StyleScope,
    value: fn(&OverviewColumn) -> f64,
}

const MEASURES: [Measure; 5] = [
    Measure { name: "CPU use", scope: StyleScope::StateRunning, value: |c| c.mean.cpu_use },
    Measure { name: "runnable", scope: StyleScope::StateRunnable, value: |c| c.mean.runnable },
    Measure { name: "disk", scope: StyleScope::StateDisk, value: |c| c.mean.on_disk },
    Measure { name: REQUESTS, scope: StyleScope::StateDisk, value: |c| c.mean.disk_requests.unwrap_or(0.0) },
    Measure { name: "network", scope: StyleScope::StateNetwork, value: |c| c.mean.on_network },
];

fn draw(canvas: &mut Canvas<'_>, app: &App, view: &OverviewView) {
    canvas.clear();
    canvas.fill(0, 0, canvas.width(), '─', StyleScope::Rule);
    canvas.text(2, 0, " The recording at a glance: CPU use, average threads and requests ", StyleScope::Title);
    let Some(whole) = &app.overview.whole else {
        let y = canvas.height() / 3;
        match (&app.overview.failure, &app.overview.busy) {
            (Some(why), _) => {
                for (line, text) in wrap(why, canvas.width().saturating_sub(4)).iter().enumerate() {
                    canvas.text(2, 2 + line, text, StyleScope::Error);
                }
            }
            (None, Some(busy)) => progress::draw(canvas, 2, y, busy),
            (None, None) => {}
        }
        return;
    };
    let count = view.columns;
    let window = if view.time.window.is_empty() { whole.grid.whole() } else { view.time.window };
    let cells = view.detail.as_ref().unwrap_or(whole);
    let executions = app.model.as_deref().zip(app.comparison.as_deref());
    let drawn = columns(cells, window, count, executions);
    // Title, losses, two lines of executions, axis and its labels, four lines of text.
    let is_drawn = |measure: &&Measure| measure.name != REQUESTS || cells.requests == RequestRecord::Recorded;
    let measures: Vec<&Measure> = MEASURES.iter().filter(is_drawn).collect();
    let lines = (canvas.height().saturating_sub(10) / measures.len().max(1)).clamp(1, 10);
    let mut y = 1;
    for measure in measures {
        y = draw_measure(canvas, y, lines, measure, &drawn);
    }
    canvas.text_in(1, y, LABELS, "losses", StyleScope::Dim);
    let lost: String = drawn.iter().map(|c| if c.lossy { '!' } else { ' ' }).collect();
    canvas.text_in(LABELS + 1, y, count, &lost, StyleScope::Warning);
    let slow: Vec<f64> = drawn.iter().map(|c| c.slow as f64).collect();
    let fast: Vec<f64> = drawn.iter().map(|c| c.fast as f64).collect();
    let marks = [("slow", StyleScope::SlowBar, slow), ("fast", StyleScope::FastBar, fast)];
    for (line, (name, scope, values)) in marks.into_iter().enumerate() {
        canvas.text_in(1, y + 1 + line, LABELS, name, scope);
        let most = values.iter().copied().fold(0.0, f64::max);
        strip::draw(canvas, LABELS + 1, y + 1 + line, 1, &values, most, scope);
    }
    y += 3;
    let time = TimeWindow { window, ..view.time.clone() };
    time_axis::draw(canvas, LABELS + 1, y, &time, count, app.origin());
    if let Some(column) = drawn.get(time.column(count)) {
        let texts = details(app, view, column, cells.cpus, count);
        let wrapped = |(text, scope): &(String, StyleScope)| {
            let scope = *scope;
            wrap(text, canvas.width().saturating_sub(2)).into_iter().map(move |line| (line, scope)).collect::<Vec<_>>()
        };
        let text: Vec<(String, StyleScope)> = texts.iter().flat_map(wrapped).collect();
        for (line, (text, scope)) in text.iter().enumerate() {
            canvas.text(1, y + 2 + line, text, *scope);
        }
    }
}

/// The bars of a measure with its largest value; returns the line below.
fn draw_measure(canvas: &mut Canvas<'_>, y: usize, lines: usize, measure: &Measure, drawn: &[OverviewColumn]) -> usize {
    let values: Vec<f64> = drawn.iter().map(measure.value).collect();
    let of_cpus = measure.name == "CPU use";
    let most = if of_cpus { 1.0 } else { values.iter().copied().fold(0.0, f64::max) };
    canvas.text_in(1, y, LABELS, measure.name, StyleScope::Text);
    if lines > 1 {
        let scale = if of_cpus { "to 100%".to_owned() } else { format!("to {most:.1}") };
        canvas.text_in(1, y + 1, LABELS, &scale, StyleScope::Dim);
    }
    strip::draw(canvas, LABELS + 1, y, lines, &values, most, measure.scope);
    y + lines
}

/// The column under the cursor in words.
fn details(
    app: &App,
    view: &OverviewView,
    column: &OverviewColumn,
    cpus: u32,
    count: usize,
) -> [(String, StyleScope); 2] {
    let stamp = |t: Timestamp| figure::stamp(t.since(app.origin()));
    let mean = column.mean;
    let lost = if column.lossy { ", events lost" } else { "" };
    let executions = match app.comparison.is_some() {
        true => format!("; {} slow and {} fast start here", column.slow, column.fast),
        false => String::new(),
    };
    let requests = mean.disk_requests.map_or_else(String::new, |requests| format!(" (queue {requests:.1})"));
    // Without a scheduler's events the CPUs are unknown: the use is that of one.
    let of = if cpus == 0 { "a CPU".to_owned() } else { figure::plural(cpus.into(), "CPU") };
    let first = format!(
        "{}: {} of {of}; threads: {:.1} runnable, {:.1} on disk{requests}, {:.1} on network{lost}{executions}",
        stamp(column.span.start),
        figure::percent(mean.cpu_use, 0),
        mean.runnable,
        mean.on_disk,
        mean.on_network,
    );
    let selected = view.time.selected(count);
    let second = match selected {
        Some(span) => {
            let (length, start) = (figure::duration(span.len()), stamp(span.start));
            format!("selected: {length} from {start}; s or f: the executions that begin there as a group")
        }
        None => {
            let clock = figure::time_of_day(column.span.start.since(Timestamp::ZERO));
            let time = clock.as_deref().and_then(|clock| clock.split(' ').next_back());
            let time = time.map_or_else(String::new, |time| format!("{time} UTC; "));
            format!("{time}< > select; s, f: use the executions that start here")
        }
    };
    [(first, StyleScope::Text), (second, StyleScope::Dim)]
}
