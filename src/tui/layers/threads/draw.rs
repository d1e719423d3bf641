//! Many threads over time: executions above, a line for each lane, the axis, and the cursor in words.
//!
//! A run of cells of one state begins with its letter; the height of the others is the part of the column in which its
//! threads were active. Waits are dotted; a bar among them is running, or begins with the letter of its state.

use super::state::{ThreadsView, label_columns};
use crate::base::figure;
use crate::base::time::{Span, Timestamp};
use crate::model::thread_lanes::{LaneOwner, ThreadLane, ThreadLanes};
use crate::model::wait_kind::{SegmentKind, WaitKind};
use crate::tui::app::App;
use crate::tui::canvas::{Canvas, clip_name, wrap};
use crate::tui::overview::begun;
use crate::tui::theme::StyleScope;
use crate::tui::time_window::TimeWindow;
use crate::tui::widget::lanes::scope;
use crate::tui::widget::page::{StyledLine, paragraph};
use crate::tui::widget::{progress, strip, time_axis};
use crate::view::thread_lanes::{lane_label, moment, state_name};

/// Draw it over the whole screen but for the footer.
pub fn draw(canvas: &mut Canvas<'_>, app: &App, view: &ThreadsView) {
    canvas.clear();
    canvas.fill(0, 0, canvas.width(), '─', StyleScope::Rule);
    let end = canvas.text(2, 0, " All threads over time ", StyleScope::Title);
    let Some(lanes) = &view.lanes else {
        match (&view.failure, app.threads_busy.as_ref()) {
            (Some(why), _) => {
                for (line, text) in wrap(why, canvas.width().saturating_sub(4)).iter().enumerate() {
                    canvas.text(2, 2 + line, text, StyleScope::Error);
                }
            }
            (None, Some(busy)) => progress::draw(canvas, 2, canvas.height() / 3, busy),
            (None, None) => {}
        }
        return;
    };
    let window = lanes.grid.whole();
    let words = if view.wanted.only.is_empty() { String::new() } else { format!("{}; ", view.wanted.only.join(" ")) };
    let waits = if view.is_waiting { "reading …" } else { "" };
    let right =
        format!(" {waits} {words}{} of {} ", figure::duration(window.len()), figure::duration(lanes.recorded.len()));
    if end + right.len() + 2 < canvas.width() {
        canvas.right(canvas.width() - 2, 0, &right, StyleScope::Dim);
    }
    let (left, count) = (label_columns(canvas.width()) + 2, lanes.grid.columns());
    if let Some((model, comparison)) =
        app.model.as_deref().zip(app.comparison.as_deref()).filter(|_| view.lines.strips > 0)
    {
        let counts: Vec<(usize, usize)> = (0..count).map(|at| begun(model, comparison, lanes.grid.span(at))).collect();
        let slow = counts.iter().map(|(slow, _)| *slow as f64).collect();
        let fast = counts.iter().map(|(_, fast)| *fast as f64).collect();
        let marks: [(&str, StyleScope, Vec<f64>); 2] =
            [("slow", StyleScope::SlowBar, slow), ("fast", StyleScope::FastBar, fast)];
        for (line, (name, scope, values)) in marks.into_iter().enumerate() {
            canvas.text_in(1, 1 + line, left - 2, name, scope);
            let most = values.iter().copied().fold(0.0, f64::max);
            strip::draw(canvas, left, 1 + line, 1, &values, most, scope);
        }
    }
    let top = 1 + view.lines.strips;
    let time = TimeWindow { window, ..view.time.clone() };
    let cursor = time.column(count);
    for (line, (row, lane)) in lanes.lanes.iter().enumerate().skip(view.first).take(view.lines.lanes).enumerate() {
        let (y, is_here) = (top + line, row == view.row);
        let label = lane_label(&lane.owner, lanes);
        let style = if is_here { StyleScope::Strong } else { StyleScope::Text };
        canvas.text_in(1, y, left - 2, &clip_name(&label, left - 2), style);
        draw_cells(canvas, left, y, lane, lanes);
        if is_here {
            canvas.text(0, y, "▌", StyleScope::Selection);
            canvas.shade(left + cursor, y, 1, StyleScope::Match);
        }
    }
    let y = top + view.lines.lanes;
    time_axis::draw(canvas, left, y, &time, count, origin(app, lanes));
    for (line, pieces) in view.lines.details.iter().enumerate() {
        let end = canvas.width();
        canvas.pieces(1, y + 2 + line, end, pieces);
    }
}

fn draw_cells(canvas: &mut Canvas<'_>, left: usize, y: usize, lane: &ThreadLane, lanes: &ThreadLanes) {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let (mut before, mut in_part_before) = (None, None);
    for (column, times) in lane.cells.iter().enumerate() {
        let shown = lanes.shown(lane, column);
        let is_first = shown != std::mem::replace(&mut before, shown);
        let active = lanes.most(times, true);
        let in_part = active.filter(|_| shown.is_some_and(|cell| cell.is_active_in_part));
        let begins_part = in_part != std::mem::replace(&mut in_part_before, in_part);
        let Some(cell) = shown else { continue };
        let length = lanes.grid.span(column).len().max(1) as f64;
        let part = lanes.active_ns(times) as f64 / length;
        let level = LEVELS[((part * 8.0).ceil() as usize).clamp(1, 8) - 1];
        let (symbol, kind) = match (in_part, active) {
            // A wait in which it was active for a part: running, unless a letter says otherwise.
            (Some(kind), _) if begins_part && kind.wait_kind() != WaitKind::Cpu => {
                (kind.wait_kind().row().letter, kind)
            }
            (Some(kind), _) => (level, kind),
            _ if is_first => (cell.kind.wait_kind().row().letter, cell.kind),
            (_, Some(_)) => (level, cell.kind),
            (_, None) => ('┄', cell.kind),
        };
        canvas.text_in(left + column, y, 1, symbol.encode_utf8(&mut [0; 4]), scope(kind.wait_kind()));
    }
}

/// The text below the lanes in this width, at most so many lines.
pub fn details(app: &App, view: &ThreadsView, columns: usize, most: usize) -> Vec<StyledLine> {
    let Some(lanes) = view.lanes.as_deref() else { return Vec::new() };
    let mut lines = paragraph(StyleScope::Text, &sentence(app, view, lanes), columns, 2);
    if let Some(why) = &view.failure {
        lines.extend(paragraph(StyleScope::Error, why, columns, 2));
    }
    lines.extend(view.concurrent.iter().flat_map(|concurrent| concurrent.lines(columns)));
    let hint = match view.time.selected(lanes.grid.columns()) {
        Some(span) => {
            let (length, start) = (figure::duration(span.len()), figure::stamp(span.start.since(origin(app, lanes))));
            format!("selected: {length} from {start}; s or f: the executions that begin there as a group")
        }
        None => legend(&view.states, lanes.of_ranks),
    };
    let hints = paragraph(StyleScope::Dim, &hint, columns, 2);
    lines.truncate(most.saturating_sub(1));
    let room = most.saturating_sub(lines.len());
    lines.extend(hints.into_iter().take(room));
    lines
}

fn legend(kinds: &[SegmentKind], of_ranks: bool) -> String {
    let states: Vec<String> =
        kinds.iter().map(|kind| format!("{} {}", kind.wait_kind().row().letter, state_name(*kind, of_ranks))).collect();
    format!("{}; bars: part of the time active, running unless a letter begins them", states.join(", "))
}

/// The cursor in words.
fn sentence(app: &App, view: &ThreadsView, lanes: &ThreadLanes) -> String {
    let Some(lane) = view.lane() else { return "no thread lives in this time, or has these words".to_owned() };
    let time = TimeWindow { window: lanes.grid.whole(), ..view.time.clone() };
    let column = time.column(lanes.grid.columns());
    let span = lanes.grid.span(column);
    let origin = origin(app, lanes);
    let at = clock(span, origin);
    let label = lane_label(&lane.owner, lanes);
    let times = lane.cells.get(column).copied().unwrap_or_default();
    match (&lane.owner, &view.moment) {
        (LaneOwner::Thread(_), Some(known)) => format!("{at}: {}", moment(known, origin, lanes.of_ranks)),
        (LaneOwner::Thread(_), None) => {
            let life = if lanes.shown(lane, column).is_none() { " does not live then" } else { "" };
            format!("{at}: {label}{life}")
        }
        (LaneOwner::Cpu { .. }, _) => {
            let part = lanes.active_ns(&times) as f64 / span.len().max(1) as f64;
            format!("{at}: {label} in use for {} of {}", figure::share(part), figure::duration(span.len()))
        }
        (LaneOwner::Process { .. } | LaneOwner::Others { .. }, _) => {
            let mean = lanes.active_ns(&times) as f64 / span.len().max(1) as f64;
            let space = if matches!(lane.owner, LaneOwner::Process { .. }) { "; Space: each by itself" } else { "" };
            format!("{at}: {label}, {mean:.1} of them active on average{space}")
        }
    }
}

/// From which times are shown.
fn origin(app: &App, lanes: &ThreadLanes) -> Timestamp {
    if app.model.is_some() { app.origin() } else { lanes.recorded.start }
}

/// A moment since the first event, and the time of day.
fn clock(span: Span, origin: Timestamp) -> String {
    let since = figure::stamp(span.start.since(origin));
    let clock = figure::time_of_day(span.start.since(Timestamp::ZERO));
    match clock.as_deref().and_then(|clock| clock.split(' ').next_back()) {
        Some(clock) => format!("{since} ({clock} UTC)"),
        None => since,
    }
}
