//! Many threads over time as a picture in SVG: one file, which loads nothing, or a part of a page.
//!
//! A column of a lane is as high as the part of it in which a thread is active (of several threads: the mean number, up
//! to one), in the colour of the state of activity with most time; below it, or where there is none, the wait with most
//! time is a thin line. Neighbours that look the same are one rectangle with a tooltip. Cost: linear in the cells.

use super::{lane_label, order, shown_states, state_name, window};
use crate::base::figure;
use crate::base::time::Timestamp;
use crate::model::thread_lanes::{CellTimes, ThreadLane, ThreadLanes};
use crate::model::wait_kind::SegmentKind;
use crate::view::markup::Escaped;
use crate::view::ticks::ticks;
use std::fmt::{self, Write};

/// Columns where their number is not given: a pixel each.
pub const COLUMNS: usize = 980;
/// Width of the lanes in pixels.
const WIDTH: usize = 980;
/// Where the lanes begin; names stand before them.
const LEFT: usize = 250;
/// Height of a lane, and of what is drawn in it.
const ROW: usize = 18;
const HEIGHT: usize = 14;
/// Height of the line of a wait.
const LINE: usize = 3;
/// Height of the title.
const HEAD: usize = 30;
/// Width of a character of a tick or a legend.
const CHARACTER: usize = 7;

/// How a column of a lane looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Column {
    /// The state of activity with most time, and how high it is.
    active: Option<(SegmentKind, usize)>,
    /// The other state with most time.
    other: Option<SegmentKind>,
}

/// The picture as a file, on white; times count from `origin`.
pub fn picture(lanes: &ThreadLanes, origin: Timestamp) -> String {
    drawn(lanes, origin, "\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>")
}

/// The picture as a part of a page, in the colours of its text and ground; times count from `origin`.
pub fn element(lanes: &ThreadLanes, origin: Timestamp) -> String {
    drawn(lanes, origin, "")
}

fn drawn(lanes: &ThreadLanes, origin: Timestamp, ground: &str) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write(lanes, origin, ground, &mut out);
    out
}

fn write(lanes: &ThreadLanes, origin: Timestamp, ground: &str, out: &mut String) -> fmt::Result {
    let bottom = HEAD + lanes.lanes.len() * ROW;
    let (width, height) = (LEFT + WIDTH + 10, bottom + 3 * ROW);
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"ui-monospace, monospace\" font-size=\"12\" \
         fill=\"currentColor\">"
    )?;
    let title = window(lanes, origin);
    writeln!(out, "<title>{}</title>{ground}", Escaped(&title))?;
    writeln!(out, "<text x=\"2\" y=\"14\">{}</text>", Escaped(&format!("{title}; {}", order(lanes))))?;
    for (at, lane) in lanes.lanes.iter().enumerate() {
        write_lane(lanes, lane, HEAD + at * ROW, origin, out)?;
    }
    let span = lanes.grid.whole();
    for (column, text) in ticks(span.start.since(origin), span.len(), WIDTH / CHARACTER) {
        let x = LEFT + column * CHARACTER;
        writeln!(out, "<line x1=\"{x}\" y1=\"{HEAD}\" x2=\"{x}\" y2=\"{}\" stroke=\"#88888866\"/>", bottom + 4)?;
        writeln!(out, "<text x=\"{x}\" y=\"{}\">{text}</text>", bottom + ROW)?;
    }
    let mut x = LEFT;
    for kind in shown_states(lanes).0 {
        let (name, y) = (state_name(kind, lanes.of_ranks), bottom + 2 * ROW);
        let colour = kind.wait_kind().row().colour;
        writeln!(out, "<rect x=\"{x}\" y=\"{y}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>")?;
        writeln!(out, "<text x=\"{}\" y=\"{}\">{name}</text>", x + 16, y + 11)?;
        x += 30 + name.len() * CHARACTER;
    }
    writeln!(out, "</svg>")
}

fn write_lane(all: &ThreadLanes, lane: &ThreadLane, y: usize, origin: Timestamp, out: &mut String) -> fmt::Result {
    let (name, count) = (lane_label(&lane.owner, all), all.grid.columns().max(1));
    writeln!(
        out,
        "<svg x=\"0\" y=\"{y}\" width=\"{}\" height=\"{ROW}\"><text x=\"2\" y=\"12\">{}</text></svg>",
        LEFT - 6,
        Escaped(&name)
    )?;
    let looks: Vec<Column> = lane.cells.iter().enumerate().map(|(at, times)| look(all, at, times)).collect();
    let mut first = 0;
    for run in looks.chunk_by(|a, b| a == b) {
        let (from, to) = (first, first + run.len());
        first = to;
        let Some(Column { active, other }) = run.first().copied() else { continue };
        let (x, end) = (LEFT + from * WIDTH / count, LEFT + to * WIDTH / count);
        let (start, until) = (all.grid.span(from).start, all.grid.span(to).start);
        let drawn = [other.map(|kind| (kind, LINE)), active];
        for (kind, height) in drawn.into_iter().flatten() {
            let state = state_name(kind, all.of_ranks);
            let (stamp, length) = (figure::stamp(start.since(origin)), figure::time(until.since(start) as f64));
            writeln!(
                out,
                "<rect x=\"{x}\" y=\"{}\" width=\"{}\" height=\"{height}\" fill=\"{}\"><title>{}</title></rect>",
                y + HEIGHT - height,
                (end - x).max(1),
                kind.wait_kind().row().colour,
                Escaped(&format!("{name}: {state}\nfrom {stamp} on, {length}"))
            )?;
        }
    }
    Ok(())
}

fn look(all: &ThreadLanes, column: usize, times: &CellTimes) -> Column {
    let length = all.grid.span(column).len().max(1) as f64;
    let part = (all.active_ns(times) as f64 / length).min(1.0);
    let height = ((part * HEIGHT as f64).round() as usize).max(1);
    Column { active: all.most(times, true).map(|kind| (kind, height)), other: all.most(times, false) }
}
