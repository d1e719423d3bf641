//! The timeline of an execution, above that of a typical one on the same scale, and the segment under the cursor.

use super::lines::TimelineLines;
use super::state::{LoadedTimelines, PairAlignment, TimelineContent, TimelineExecution, TimelineView};
use super::{chart, trees};
use crate::base::column_grid::ColumnGrid;
use crate::base::figure;
use crate::base::time::{Ns, Timestamp};
use crate::model::execution_timeline::{ExecutionTimeline, TimelineEvent};
use crate::tui::app::App;
use crate::tui::canvas::{Canvas, width, wrap};
use crate::tui::job::Busy;
use crate::tui::theme::StyleScope;
use crate::tui::widget::lanes::{LaneArrow, Lanes};
use crate::tui::widget::progress;
use crate::view::lanes::{cells, event_marks, used};
use ratatui::layout::Rect;
use std::ops::Range;

/// Draw it over the whole screen but for the footer.
pub fn draw(canvas: &mut Canvas<'_>, app: &App, view: &TimelineView) {
    canvas.clear();
    canvas.fill(0, 0, canvas.width(), '─', StyleScope::Rule);
    let end = canvas.text(2, 0, " Timeline of an execution ", StyleScope::Title);
    match &view.content {
        TimelineContent::Loading => {
            let busy = app.busy.clone().unwrap_or(Busy { what: "reading", ..Busy::default() });
            let y = canvas.height() / 3;
            progress::draw(canvas, 2, y, &busy);
        }
        TimelineContent::Failed(why) => {
            for (y, line) in wrap(why, canvas.width().saturating_sub(4)).iter().enumerate() {
                canvas.text(2, 2 + y, line, StyleScope::Error);
            }
        }
        TimelineContent::Loaded(loaded) => {
            let range = window_text(loaded);
            if end + width(&range) + 4 < canvas.width() {
                canvas.right(canvas.width() - 2, 0, &format!(" {range} "), StyleScope::Dim);
            }
            draw_loaded(canvas, app, view, loaded);
        }
    }
}

/// The range of times that is shown.
fn window_text(loaded: &LoadedTimelines) -> String {
    let Range { start, end } = loaded.window;
    let place = match loaded.alignment {
        PairAlignment::Begins => "",
        PairAlignment::Divergence => ", aligned where they diverge",
        PairAlignment::Cursor => ", aligned at the cursor",
    };
    format!("{} to {}{place}", figure::time(start as f64), figure::time(end as f64))
}

fn draw_loaded(canvas: &mut Canvas<'_>, app: &App, view: &TimelineView, loaded: &LoadedTimelines) {
    let lines = &view.lines;
    let area = |canvas: &Canvas<'_>, y: usize, rows: usize| {
        Rect { y: canvas.area.y + y as u16, height: rows as u16, ..canvas.area }.intersection(canvas.area)
    };
    let names = view.names();
    for (at, execution) in view.executions.iter().enumerate() {
        let Some(timeline) = loaded.timeline(at) else { continue };
        let part = |lines: &[usize]| lines.get(at).copied().unwrap_or(0);
        let (y, rows) = (lines.lanes_at(at), part(&lines.rows));
        head(canvas, app, y - 1, loaded, at, *execution, timeline);
        let below = area(canvas, y, rows);
        lanes(&mut canvas.part(below), loaded, at, timeline, lines);
        if part(&lines.marks) > 0 {
            marks_line(canvas, y + rows, loaded, at, timeline, lines);
        }
        let below = area(canvas, lines.chart_at(at), part(&lines.chart));
        let name = if view.executions.len() > 1 { names[at.min(1)].as_str() } else { "calls" };
        chart::draw(&mut canvas.part(below), loaded, at, name, lines);
    }
    if view.executions.len() < 2 {
        let y = lines.chart_at(0).saturating_sub(1);
        canvas.text(1, y, "no fast execution of this type to compare with", StyleScope::Dim);
    }
    let mut y = lines.chart_at(lines.chart.len());
    axis(canvas, y, loaded, lines);
    if let Some(trees) = loaded.trees.as_ref().filter(|_| lines.trees > 0) {
        let below = Rect { y: canvas.area.y + y as u16 + 1, height: lines.trees as u16, ..canvas.area };
        let below = below.intersection(canvas.area);
        trees::draw(&mut canvas.part(below), loaded, trees, &names);
        y += lines.trees;
    }
    for (line, pieces) in lines.details.iter().enumerate() {
        let end = canvas.width();
        canvas.pieces(1, y + 1 + line, end, pieces);
    }
}

fn head(
    canvas: &mut Canvas<'_>,
    app: &App,
    y: usize,
    loaded: &LoadedTimelines,
    at: usize,
    execution: TimelineExecution,
    timeline: &ExecutionTimeline,
) {
    let group = if execution.group == "fast" { StyleScope::Fast } else { StyleScope::Slow };
    if loaded.front == at {
        canvas.text(0, y, "▌", StyleScope::Selection);
    }
    let name = if execution.group.is_empty() { "execution" } else { execution.group };
    let x = canvas.text(1, y, &format!("{name} {}", execution.id.raw()), group);
    let x = canvas.text(x + 2, y, &figure::time(timeline.ns as f64), StyleScope::Strong);
    let since = timeline.start.since(app.origin());
    let typical = if execution.is_typical { ", of typical length" } else { "" };
    let threads = figure::plural(timeline.threads.len() as u64, "thread");
    let text = format!("begins at {}, {threads}{typical}", figure::stamp(since));
    let x = canvas.text(x + 2, y, &text, StyleScope::Dim);
    // The time of day for the logs: with its date, where that fits.
    let clock = figure::time_of_day(timeline.start.since(Timestamp::ZERO)).unwrap_or_default();
    let time = clock.split(' ').next_back().unwrap_or_default();
    let fits = |text: &&str| !text.is_empty() && x + text.len() + ", UTC".len() < canvas.width();
    if let Some(clock) = [clock.as_str(), time].into_iter().find(fits) {
        canvas.text(x, y, &format!(", {clock} UTC"), StyleScope::Dim);
    }
}

/// Columns of a range of times, at least one where it is visible.
fn columns_of(grid: &ColumnGrid, window: &Range<Ns>, range: Range<Ns>) -> Option<Range<usize>> {
    let (start, end) = (range.start.max(window.start), range.end.min(window.end));
    let first = grid.column(start)?;
    let last = grid.column((end - 1).max(start))?;
    (start < window.end && end >= window.start).then_some(first..last + 1)
}

fn lanes(
    canvas: &mut Canvas<'_>,
    loaded: &LoadedTimelines,
    at: usize,
    timeline: &ExecutionTimeline,
    lines: &TimelineLines,
) {
    let window = loaded.window_of(at);
    let grid = ColumnGrid::new(&window, lines.columns);
    let others = loaded.others(at);
    let mut cells = cells(timeline, &window, lines.columns);
    cells.extend(others.iter().map(|other| used(&other.spans, other.state, &window, lines.columns)));
    let here = loaded.here().filter(|_| loaded.front == at).map(|(_, segment)| segment);
    let column_of = |range: Range<Ns>| columns_of(&grid, &window, range);
    let cursor = here.and_then(|s| Some((s.thread as usize, column_of(s.start_ns..s.end_ns())?)));
    let matches = loaded.search.matches.iter().filter(|_| loaded.front == at);
    // The corresponding moment of the other execution is marked like a match.
    let linked = loaded.cursor.get(at).filter(|_| loaded.front != at).map(|at| *at as u32);
    let found = matches.copied().chain(linked).filter_map(|at| {
        let segment = timeline.segments.get(at as usize)?;
        Some((segment.thread as usize, column_of(segment.start_ns..segment.end_ns())?))
    });
    let arrows = timeline.waits.iter().filter_map(|wait| {
        // A wait of one column has no room for an arrow of its own.
        let columns = column_of(wait.start_ns..wait.end_ns)?;
        let column = grid.column(wait.end_ns).or_else(|| grid.column(wait.end_ns - 1))?;
        let (from, to) = (wait.waits_for as usize, wait.waiter as usize);
        (columns.len() > 1).then_some(LaneArrow { from, to, column })
    });
    let mut labels: Vec<String> = timeline.threads.iter().map(crate::view::lanes::thread_name).collect();
    labels.extend(others.into_iter().map(|other| other.label));
    let drawing = Lanes {
        labels: &labels,
        cells: &cells,
        events: if loaded.events { events(timeline, &grid) } else { Vec::new() },
        arrows: arrows.collect(),
        found: found.collect(),
        cursor,
        per_lane: lines.per_lane,
        first: lines.first.get(at).copied().unwrap_or(0),
        label_columns: lines.label_columns,
    };
    drawing.draw(canvas);
}

/// Letters of the events of each thread; `+` where a column has several kinds.
fn events(timeline: &ExecutionTimeline, grid: &ColumnGrid) -> Vec<Vec<(usize, char)>> {
    let mut of_threads: Vec<Vec<&TimelineEvent>> = vec![Vec::new(); timeline.threads.len()];
    for event in &timeline.events {
        of_threads.get_mut(event.thread as usize).into_iter().for_each(|events| events.push(event));
    }
    let line = |events: Vec<&TimelineEvent>| {
        let marks = event_marks(events.into_iter(), grid).into_iter().enumerate();
        marks.filter(|(_, mark)| *mark != ' ').collect()
    };
    of_threads.into_iter().map(line).collect()
}

/// The events of all threads in one line.
fn marks_line(
    canvas: &mut Canvas<'_>,
    y: usize,
    loaded: &LoadedTimelines,
    at: usize,
    timeline: &ExecutionTimeline,
    lines: &TimelineLines,
) {
    let grid = ColumnGrid::new(&loaded.window_of(at), lines.columns);
    canvas.text_in(1, y, lines.label_columns, "events", StyleScope::Dim);
    let marks: String = event_marks(timeline.events.iter(), &grid).into_iter().collect();
    let left = lines.label_columns + 2;
    canvas.text_in(left, y, lines.columns, marks.trim_end(), StyleScope::Key);
    let here = loaded.event_here().filter(|_| loaded.front == at);
    if let Some(column) = here.and_then(|(_, event)| grid.column(event.at_ns.max(0))) {
        canvas.shade(left + column, y, 1, StyleScope::Match);
    }
}

/// Round times at their columns, and the place of the cursor.
fn axis(canvas: &mut Canvas<'_>, y: usize, loaded: &LoadedTimelines, lines: &TimelineLines) {
    let left = lines.label_columns + 2;
    let grid = ColumnGrid::new(&loaded.window, lines.columns);
    canvas.fill(left, y, lines.columns, '─', StyleScope::Rule);
    for (column, text) in ticks(&loaded.window, &grid, lines.columns) {
        canvas.text(left + column, y, &format!("┴{text}"), StyleScope::Dim);
    }
    let here = loaded.here().map(|(_, s)| s.start_ns + loaded.shift(loaded.front));
    if let Some(column) = here.map(|at| at.max(loaded.window.start)).and_then(|at| grid.column(at)) {
        canvas.text_in(left + column, y, 1, "▲", StyleScope::Selection);
    }
}

/// Multiples of the finest round step whose labels fit.
fn ticks(window: &Range<Ns>, grid: &ColumnGrid, columns: usize) -> Vec<(usize, String)> {
    const BETWEEN: i128 = 14;
    let length = i128::from(window.end - window.start);
    let steps = (0..19).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_i128.pow(power)));
    let fits = |step: &i128| step * columns as i128 / length.max(1) >= BETWEEN;
    let Some(step) = steps.into_iter().find(fits) else { return Vec::new() };
    let first = i128::from(window.start).div_euclid(step) * step;
    let values = (0..).map(|i| first + i * step).take_while(|value| *value < i128::from(window.end));
    let label = |value: i128| {
        let at = Ns::try_from(value).ok()?;
        let text = if at == 0 { "0".to_owned() } else { figure::time(at as f64) };
        let column = grid.column(at)?;
        (column + width(&text) < columns).then_some((column, text))
    };
    values.filter_map(label).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_apart() {
        for (window, columns, expected) in [
            (0..170_000_000, 60, vec!["0", "50.0 ms", "100 ms", "150 ms"]),
            (0..1_000, 40, vec!["0", "500 ns"]),
            (-3_000_000..9_000_000, 50, vec!["0", "5.00 ms"]),
        ] {
            let grid = ColumnGrid::new(&window, columns);
            let found = ticks(&window, &grid, columns);
            let texts: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
            assert_eq!(texts, expected, "{window:?}");
            assert!(found.windows(2).all(|pair| pair[0].0 + pair[0].1.len() < pair[1].0));
        }
    }
}
