//! The recording at a glance, over the whole screen: CPU use, run queues, disks, network, losses, executions.

use crate::base::figure;
use crate::base::time::{Span, Timestamp};
use crate::model::overview::RequestRecord;
use crate::view::tui::app::App;
use crate::view::tui::canvas::{Canvas, wrap};
use crate::view::tui::overview::{LABELS, OverviewColumn, OverviewView, columns};
use crate::view::tui::theme::StyleScope;
use crate::view::tui::widget::{progress, strip};

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

pub fn draw(canvas: &mut Canvas<'_>, app: &App, view: &OverviewView) {
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
    let count = app.frame.overview_columns;
    let window = if view.window.is_empty() { whole.span } else { view.window };
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
    axis(canvas, app, y, window, count);
    mark_selection(canvas, y, view, count);
    if let Some(column) = drawn.get(view.column(count)) {
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

/// A line, and below it the times at both ends of the window.
fn axis(canvas: &mut Canvas<'_>, app: &App, y: usize, window: Span, count: usize) {
    canvas.fill(LABELS + 1, y, count, '─', StyleScope::Rule);
    let stamp = |t: Timestamp| figure::stamp(t.since(app.origin()));
    let x = canvas.text(LABELS + 1, y + 1, &stamp(window.start), StyleScope::Dim);
    let end = stamp(window.end);
    let last = LABELS + 1 + count;
    if x + end.len() + 2 < last {
        canvas.right(last, y + 1, &end, StyleScope::Dim);
    }
    let origin = window.start.since(app.origin());
    for (column, text) in ticks(origin, window.len(), count) {
        let at = LABELS + 1 + column;
        canvas.text_in(at, y, 1, "┴", StyleScope::Rule);
        if at > x + 1 && at + text.len() + 2 < last.saturating_sub(end.len()) {
            canvas.text(at, y + 1, &text, StyleScope::Dim);
        }
    }
}

/// Columns between two ticks, at least.
const BETWEEN_TICKS: usize = 16;

/// Round times within a window, with their columns: the finest step of 1, 2 or 5 that leaves room for its texts.
fn ticks(start: i64, length: i64, count: usize) -> Vec<(usize, String)> {
    let (length, columns) = (length.max(1), count.max(1) as i128);
    let least = i128::from(length) * BETWEEN_TICKS as i128 / columns;
    let steps = (0..18).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_i64.pow(power)));
    let Some(step) = steps.into_iter().find(|step| i128::from(*step) >= least) else { return Vec::new() };
    let first = start.div_euclid(step).saturating_add(1).saturating_mul(step);
    let times = (0..).map_while(|n| first.checked_add(step.checked_mul(n)?)).take_while(|at| at - start < length);
    let place = |at: i64| (i128::from(at - start) * columns / i128::from(length)) as usize;
    times.take(count).map(|at| (place(at), figure::duration(at))).collect()
}

/// The cursor and the selection on the axis.
fn mark_selection(canvas: &mut Canvas<'_>, y: usize, view: &OverviewView, count: usize) {
    let cursor = view.column(count);
    if let Some(anchor) = view.anchor {
        let at = OverviewView { cursor: anchor, ..view.clone() }.column(count);
        let (first, last) = (at.min(cursor), at.max(cursor));
        canvas.fill(LABELS + 1 + first, y, last + 1 - first, '═', StyleScope::Selection);
    }
    canvas.text_in(LABELS + 1 + cursor, y, 1, "▲", StyleScope::Selection);
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
    let first = format!(
        "{}: {} of {}; threads: {:.1} runnable, {:.1} on disk{requests}, {:.1} on network{lost}{executions}",
        stamp(column.span.start),
        figure::percent(mean.cpu_use, 0),
        figure::plural(cpus.into(), "CPU"),
        mean.runnable,
        mean.on_disk,
        mean.on_network,
    );
    let selected = view.selected(count);
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
