//! The propagation pane: how one delay spread, as a space-time diagram and, below it, step by step.

use super::anomalies::{self, AnomaliesView};
use super::pane_view::{PaneCell, PaneView};
use crate::base::figure;
use crate::base::time::{Span, Timestamp};
use crate::model::carrier::Carrier;
use crate::model::propagation::{PropagationPath, PropagationStep};
use crate::tui::app::App;
use crate::tui::bookmarks::BookmarkPlace;
use crate::tui::canvas::{self, Canvas};
use crate::tui::details::SampleExecution;
use crate::tui::frame::{PathLines, ScreenFrame, first_shown};
use crate::tui::layers::page::PageLayer;
use crate::tui::pane::{JumpOrigin, Pane};
use crate::tui::patterns::PathPane;
use crate::tui::report::{AnomalyReport, OccurrencePosition, streams};
use crate::tui::theme::StyleScope;
use crate::tui::widget::spacetime::{Arrow, Bar, SpaceTime};
use crate::tui::widget::table::{TableColumn, TableLayout};
use crate::view::anomalies::doing;
use ratatui::layout::Rect;

/// The pane.
pub struct PathView;

impl PaneView for PathView {
    fn draw(&self, canvas: &mut Canvas<'_>, app: &App) {
        draw(canvas, app);
    }

    fn lay_out(&self, app: &App, frame: &mut ScreenFrame) {
        let path = app.patterns.selected().and_then(|(report, at)| report.anomalies.paths.get(at));
        let (streams, steps) = (path.map_or(0, |p| streams(p).len()), path.map_or(0, |p| p.steps.len()));
        frame.path = PathLines::new(frame.inside(Pane::Path).height, streams, steps);
    }

    /// The list follows the path.
    fn settle(&self, app: &mut App) {
        if app.pane == Pane::Path {
            app.patterns.follow_path();
        }
        app.patterns.path.step = app.patterns.path.step.min(steps(app).saturating_sub(1));
    }

    fn scroll(&self, app: &mut App) {
        let PathPane { offset, step, .. } = app.patterns.path;
        app.patterns.path.offset = first_shown(offset, step, app.frame.path.steps, steps(app));
    }

    fn shown(&self, app: &App) -> usize {
        app.frame.path.steps
    }

    fn vertical(&self, app: &mut App, by: isize) {
        app.patterns.path.step = app.patterns.path.step.saturating_add_signed(by);
    }

    /// The previous or the next path, in the order of the delays that they cause.
    fn sideways(&self, app: &mut App, by: isize) {
        let paths = app.patterns.found.as_ref().map_or(0, |f| f.anomalies.paths.len());
        let now = app.patterns.path.path;
        let path = now.saturating_add_signed(by).min(paths.saturating_sub(1));
        if path != now {
            app.patterns.path = PathPane { path, ..PathPane::default() };
        }
    }

    /// To the next step.
    fn open(&self, app: &mut App) {
        let Some(found) = &app.patterns.found else { return };
        let PathPane { path, step, .. } = app.patterns.path;
        if found.step(path, step + 1).is_none() {
            return app.say("end of the path; -: go back");
        }
        app.trail.push(JumpOrigin::Step(app.patterns.path));
        self.vertical(app, 1);
    }

    fn click(&self, app: &mut App, at: PaneCell) -> bool {
        let lines = app.frame.path;
        if let Some(line) = at.line.checked_sub(lines.head + lines.drawing + lines.step_head) {
            app.patterns.path.step = app.patterns.path.offset + line;
        }
        false
    }

    fn details(&self, app: &App) -> Option<PageLayer> {
        anomalies::page(app, self.anomaly(app)?)
    }

    fn example(&self, app: &App) -> Option<SampleExecution> {
        anomalies::example_of(app, self.anomaly(app)?)
    }

    /// The whole path, a line per step.
    fn copied(&self, app: &App) -> Option<String> {
        let (found, at) = app.patterns.selected()?;
        let step = |s: &PropagationStep| {
            let carrier = s.carrier.map_or("root cause", Carrier::name);
            let (extra, start) = (figure::extra(s.excess_ns as f64), figure::stamp(s.span.start - app.origin()));
            format!("{carrier} {} at {start}: {} {extra}", found.place(s.stream), s.what)
        };
        Some(found.anomalies.paths.get(at)?.steps.iter().map(step).collect::<Vec<_>>().join("\n"))
    }

    fn place(&self, app: &App) -> Option<BookmarkPlace> {
        AnomaliesView.place(app)
    }
}

impl PathView {
    /// The anomaly of the step under the cursor.
    fn anomaly(&self, app: &App) -> Option<u32> {
        let place = app.patterns.path;
        Some(app.patterns.found.as_ref()?.step(place.path, place.step)?.anomaly)
    }
}

/// Steps of the path that is shown.
fn steps(app: &App) -> usize {
    let paths = app.patterns.found.as_ref().map_or(&[][..], |report| &report.anomalies.paths);
    paths.get(app.patterns.path.path).map_or(0, |p| p.steps.len())
}

fn draw(canvas: &mut Canvas<'_>, app: &App) {
    let Some(found) = &app.patterns.found else { return };
    let place = app.patterns.path;
    let Some(path) = found.anomalies.paths.get(place.path) else {
        let is_idle = app.patterns.list.here().and_then(|row| row.source(found)).is_some_and(|s| s.idle);
        let text = if is_idle { "waiting for work: not a delay, so there is no path" } else { "no path" };
        canvas.text(2, 1, text, StyleScope::Dim);
        return;
    };
    let lines = app.frame.path;
    if lines.head > 0 {
        head(canvas, found, path, place.path);
    }
    let area = Rect { y: canvas.area.y + lines.head as u16, height: lines.drawing as u16, ..canvas.area };
    if lines.drawing > 0 {
        drawing(&mut canvas.part(area), app, found, path, &lines);
    }
    let table = step_table(canvas.width(), found, path);
    let top = lines.head + lines.drawing;
    if lines.step_head > 0 {
        table.ruled_head(canvas, top);
    }
    let top = top + lines.step_head;
    for (line, (at, step)) in path.steps.iter().enumerate().skip(place.offset).take(lines.steps).enumerate() {
        let here = app.pane == Pane::Path && at == place.step;
        StepRow { app, report: found, step, here }.draw(canvas, &table, top + line);
    }
    legend(canvas, path, &lines);
}

fn head(canvas: &mut Canvas<'_>, found: &AnomalyReport, path: &PropagationPath, at: usize) {
    let (excess, affected) = (figure::time(path.excess_ns as f64), figure::time(path.affected_ns as f64));
    let number = match canvas.width() {
        ..NUMBERED => format!("path {} of {}", at + 1, found.anomalies.paths.len()),
        _ => number(found, at),
    };
    let x = canvas.text(1, 0, &number, StyleScope::Strong);
    let text = match (path.affected_ns, path.messages) {
        (_, 0) if path.excess_ns < 0 => {
            format!("  a different call sequence, which saved {}", figure::time(-path.excess_ns as f64))
        }
        (0, 0) if path.steps.iter().any(|s| s.route.is_some()) => {
            format!("  a different call sequence, which took {excess}")
        }
        (_, 0) if path.execution.is_some() => format!("  delayed its own execution by {excess}"),
        (_, n) if path.execution.is_some() => {
            let others = if path.affected_ns > path.excess_ns {
                format!(" and all executions by {affected} in total")
            } else {
                String::new()
            };
            format!("  delayed this execution by {}{others}; {}", own(path), figure::plural(n, "hop"))
        }
        (0, _) => format!("  {excess} longer than usual; no thread is known to have waited for it"),
        (_, n) => {
            let messages = figure::plural(n, "message");
            format!("  a {excess} delay cost others {affected} in total; {messages}")
        }
    };
    canvas.text(x, 0, &text, StyleScope::Dim);
}

/// Columns from which a path has its number among those of its root cause.
const NUMBERED: usize = 90;

/// The number of a path, and that among those of its root cause.
fn number(found: &AnomalyReport, at: usize) -> String {
    let root_cause = |path: &Option<OccurrencePosition>| path.map(|beginning| beginning.root_cause);
    let all = format!("path {} of {}", at + 1, found.anomalies.paths.len());
    let Some(of) = found.beginnings.get(at).and_then(root_cause) else { return all };
    let count = |paths: &[Option<OccurrencePosition>]| paths.iter().filter(|path| root_cause(path) == Some(of)).count();
    let before = count(found.beginnings.get(..at).unwrap_or(&[]));
    format!("{all} ({} of {} of its root cause)", before + 1, count(&found.beginnings))
}

/// What the symbols of the drawing mean.
const LEGEND: [(&str, StyleScope, &str); 3] = [
    ("█", StyleScope::SlowBar, " busy  "),
    ("▒", StyleScope::Slow1, " waits  "),
    ("┄", StyleScope::Dim, " on its way"),
];

/// The legend of the drawing on the last line, where the steps leave it empty.
fn legend(canvas: &mut Canvas<'_>, path: &PropagationPath, lines: &PathLines) {
    if lines.drawing == 0 || path.steps.len() >= lines.steps || canvas.height() == 0 {
        return;
    }
    let (mut x, y) = (2, canvas.height() - 1);
    for (symbol, scope, meaning) in LEGEND {
        x = canvas.text(x, y, symbol, scope);
        x = canvas.text(x, y, meaning, StyleScope::Dim);
    }
}

/// The delay of this path's own execution.
fn own(path: &PropagationPath) -> String {
    figure::time(path.steps.last().map_or(0, |s| s.excess_ns) as f64)
}

/// The window of time that a path covers.
fn window(path: &PropagationPath) -> Span {
    let start = path.steps.iter().map(|s| s.span.start).min().unwrap_or_default();
    let end = path.steps.iter().map(|s| s.span.end).max().unwrap_or(start);
    Span::new(start, end.max(start.saturating_add(1)))
}

fn drawing(canvas: &mut Canvas<'_>, app: &App, found: &AnomalyReport, path: &PropagationPath, lines: &PathLines) {
    let all = streams(path);
    let window = window(path);
    let part = |t: Timestamp| t.since(window.start) as f64 / window.len() as f64;
    let here = path.steps.get(app.patterns.path.step);
    let line_of = |stream: u32| all.iter().position(|s| *s == stream).unwrap_or(0);
    let bar = |step: &PropagationStep| Bar {
        line: line_of(step.stream),
        from: part(step.span.start),
        to: part(step.span.end),
        waits: step.kind.waits(),
        here: here == Some(step),
    };
    let arrow = |pair: &[PropagationStep]| match pair {
        [cause, effect] => Some(Arrow {
            from: line_of(cause.stream),
            to: line_of(effect.stream),
            left: part(cause.span.end),
            arrived: part(effect.span.end),
        }),
        _ => None,
    };
    let drawn = SpaceTime {
        labels: all.iter().map(|s| found.place(*s)).collect(),
        bars: path.steps.iter().map(bar).collect(),
        arrows: path.steps.windows(2).filter_map(arrow).collect(),
        per_line: lines.per_stream,
        here: here.map_or(0, |s| line_of(s.stream)),
        begin: figure::stamp(window.start.since(app.origin())),
        length: figure::extra(window.len() as f64),
    };
    drawn.draw(canvas);
}

/// Positions of the columns of the steps.
const CARRIER: usize = 0;
const PLACE: usize = 1;
const ACTIVITY: usize = 2;
const FIGURES: usize = 4;

fn step_table(width: usize, report: &AnomalyReport, path: &PropagationPath) -> TableLayout {
    let widest = streams(path).into_iter().map(|s| canvas::width(&report.place(s))).max().unwrap_or(0);
    let place = widest.clamp(5, if width >= 100 { 28 } else { 14 });
    let columns = [
        TableColumn::left("carrier").from(60, 11),
        TableColumn::left("place").gap(1).fixed(place),
        TableColumn::left("activity").gap(1),
        // A blank between the activity and the figures.
        TableColumn::left("").fixed(1),
        TableColumn::right("at").from(88, 14),
        TableColumn::right("took").from(40, 10),
        TableColumn::right("usually").from(60, 10),
        // A step may be longer than the delay of one execution by it.
        TableColumn::right(if path.execution.is_some() { "delayed it" } else { "extra" }).fixed(11),
    ];
    TableLayout::new(width, 2, 2, &columns)
}

/// A step of the path.
struct StepRow<'a> {
    app: &'a App,
    report: &'a AnomalyReport,
    step: &'a PropagationStep,
    here: bool,
}

impl StepRow<'_> {
    fn draw(&self, canvas: &mut Canvas<'_>, table: &TableLayout, y: usize) {
        let step = self.step;
        let first = if step.noise.is_some() { "noise" } else { "root cause" };
        let scope = if step.carrier.is_none() { StyleScope::Slow3 } else { StyleScope::Dim };
        table.cell(canvas, y, CARRIER, step.carrier.map_or(first, Carrier::name), scope);
        let text = if self.here { StyleScope::Strong } else { StyleScope::Text };
        let place = self.report.place(step.stream);
        table.cell(canvas, y, PLACE, &canvas::clip_name(&place, table.column(PLACE).width), text);
        table.cell(canvas, y, ACTIVITY, &doing(step), text);
        let figures = [
            (figure::stamp(step.span.start - self.app.origin()), StyleScope::Dim),
            (figure::time(step.span.len() as f64), StyleScope::Text),
            (figure::time(step.reference_ns as f64), StyleScope::Dim),
            (figure::extra(step.excess_ns as f64), StyleScope::Slow3),
        ];
        table.cells(canvas, y, FIGURES, &figures);
        if self.here {
            canvas.mark_line(y);
        }
    }
}
