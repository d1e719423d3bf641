//! The slowest execution and a typical fast one as timelines in SVG, on one scale: a lane per thread of the critical
//! path, coloured by state, and an arrow for each wake-up that ends a long wait.
//!
//! In: a model with the timelines of both. Out: one `svg` element. The colour of a pixel is that of the state with
//! most time in it (as on the screen and in text: [`lanes`]); neighbours of one state are one rectangle with a tooltip.
//! Cost: linear in the segments and in the pixels.

use crate::base::column_grid::ColumnGrid;
use crate::base::figure;
use crate::base::time::Ns;
use crate::model::Model;
use crate::model::execution_timeline::ExecutionTimeline;
use crate::model::wait_kind::WaitKind;
use crate::view::lanes::{self, LaneCell};
use crate::view::markup::Escaped;
use crate::view::words;
use std::collections::BTreeSet;
use std::fmt::{self, Write};

/// Width of the lanes in pixels, one cell each.
const COLUMNS: usize = 980;
/// Where the lanes begin; the names of threads stand before them.
const LEFT: usize = 210;
/// Height of a lane.
const ROW: usize = 20;
/// Lanes of an execution, at most.
const MOST_LANES: usize = 30;
/// Pixels of the shortest wait whose wake-up has an arrow.
const ARROW_FROM: Ns = 12;

/// An execution to draw.
#[derive(Clone, Copy, Debug)]
pub(super) struct DrawnExecution<'a> {
    /// `slow` or `fast`.
    pub group: &'static str,
    pub number: u32,
    pub timeline: &'a ExecutionTimeline,
}

/// The drawing; empty without executions.
pub(super) fn element(model: &Model, executions: &[DrawnExecution<'_>]) -> String {
    let mut out = String::new();
    if !executions.is_empty() {
        // Writing to a string does not fail.
        let _ = write(model, executions, &mut out);
    }
    out
}

fn write(model: &Model, executions: &[DrawnExecution<'_>], out: &mut String) -> fmt::Result {
    let longest = executions.iter().map(|e| e.timeline.ns).max().unwrap_or(0).max(1);
    let lanes = |e: &DrawnExecution<'_>| e.timeline.threads.len().min(MOST_LANES);
    let rows: usize = executions.iter().map(|e| lanes(e) + 2).sum();
    let (width, height) = (LEFT + COLUMNS + 10, (rows + 1) * ROW);
    writeln!(
        out,
        "<svg class=\"lanes\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-size=\"12\">\n<defs><marker id=\"arrow\" viewBox=\"0 0 6 6\" refX=\"5\" refY=\"3\" markerWidth=\"6\" \
         markerHeight=\"6\" orient=\"auto\"><path d=\"M0 0 L6 3 L0 6 z\"/></marker></defs>"
    )?;
    let mut states = BTreeSet::new();
    let mut top = 0;
    for e in executions {
        write_execution(model, e, longest, top, &mut states, out)?;
        top += (lanes(e) + 2) * ROW;
    }
    let mut x = LEFT;
    for state in WaitKind::ALL.into_iter().filter(|state| states.contains(&(*state as usize))) {
        let name = lanes::state_name(state);
        let y = height - ROW + 4;
        writeln!(out, "<rect x=\"{x}\" y=\"{y}\" width=\"12\" height=\"12\" fill=\"{}\"/>", state.row().colour)?;
        writeln!(out, "<text x=\"{}\" y=\"{}\">{name}</text>", x + 16, y + 11)?;
        x += 34 + name.len() * 7;
    }
    writeln!(out, "</svg>")
}

fn write_execution(
    model: &Model,
    e: &DrawnExecution<'_>,
    longest: Ns,
    top: usize,
    states: &mut BTreeSet<usize>,
    out: &mut String,
) -> fmt::Result {
    let timeline = e.timeline;
    let left_out = timeline.threads.len().saturating_sub(MOST_LANES);
    let more = match left_out {
        0 => String::new(),
        n => format!(", {} not drawn", figure::plural(n as u64, "more thread")),
    };
    let duration = figure::time(timeline.ns as f64);
    writeln!(
        out,
        "<text x=\"0\" y=\"{}\" font-weight=\"bold\">{} execution {}: {duration}{more}</text>",
        top + ROW - 5,
        e.group,
        e.number
    )?;
    let grid = ColumnGrid::new(&(0..longest), COLUMNS);
    let y = |thread: usize| top + (thread + 1) * ROW;
    for (thread, cells) in lanes::cells(timeline, &(0..longest), COLUMNS).iter().enumerate().take(MOST_LANES) {
        let name = lanes::thread_name(&timeline.threads[thread]);
        writeln!(
            out,
            "<svg x=\"0\" y=\"{}\" width=\"{}\" height=\"{ROW}\"><text x=\"0\" y=\"14\">{}</text></svg>",
            y(thread),
            LEFT - 6,
            Escaped(&name)
        )?;
        let mut column = 0;
        for run in cells.chunk_by(|a, b| a == b) {
            let (from, to) = (grid.start(column), grid.start(column + run.len()));
            let fill = match run[0] {
                LaneCell::Empty => None,
                LaneCell::Waits => Some("#eeeeee"),
                LaneCell::State(state) => {
                    states.insert(state as usize);
                    Some(state.row().colour)
                }
            };
            if let Some(fill) = fill {
                let text = tooltip(model, timeline, run[0], &name, from..to);
                writeln!(
                    out,
                    "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{fill}\"><title>{}</title></rect>",
                    LEFT + column,
                    y(thread) + 2,
                    run.len(),
                    ROW - 4,
                    Escaped(&text)
                )?;
            }
            column += run.len();
        }
    }
    let pixel = (longest / COLUMNS as Ns).max(1);
    for wait in timeline.waits.iter().filter(|wait| wait.end_ns - wait.start_ns >= ARROW_FROM * pixel) {
        let (from, to) = (wait.waits_for as usize, wait.waiter as usize);
        let Some(column) = grid.column(wait.end_ns).or_else(|| grid.column(wait.end_ns - 1)) else { continue };
        if from.max(to) >= MOST_LANES {
            continue;
        }
        let (x, middle) = (LEFT + column, ROW / 2);
        let (from, to) = (y(from) + middle, y(to) + middle);
        writeln!(
            out,
            "<line x1=\"{x}\" y1=\"{from}\" x2=\"{x}\" y2=\"{to}\" stroke=\"#000000\" marker-end=\"url(#arrow)\"/>"
        )?;
    }
    Ok(())
}

fn tooltip(
    model: &Model,
    timeline: &ExecutionTimeline,
    cell: LaneCell,
    thread: &str,
    range: std::ops::Range<Ns>,
) -> String {
    let (at, length) = (figure::time(range.start as f64), figure::time((range.end - range.start) as f64));
    let what = match cell {
        LaneCell::State(state) => {
            let middle = range.start + (range.end - range.start) / 2;
            let segment = timeline.segment_at(middle).and_then(|segment| timeline.segments.get(segment));
            let place = segment.map(|segment| words::frame(model, segment.context));
            place.map_or_else(|| lanes::state_name(state).into(), |p| format!("{}, in {p}", lanes::state_name(state)))
        }
        LaneCell::Waits | LaneCell::Empty => "waits for another thread shown here".to_owned(),
    };
    format!("{thread}: {what}\nfrom {at} on, {length}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::carrier::Carrier;
    use crate::model::context::{Frame, FrameKind};
    use crate::model::execution_timeline::{TimelineSegment, TimelineThread, TimelineWait};

    #[test]
    fn element_draws_a_lane_per_thread_and_an_arrow_per_wakeup() {
        let mut model = Model::default();
        let name = model.names.intern("<commit>");
        let context = model.contexts.child(None, Frame { kind: FrameKind::Function, name });
        let thread =
            |name: &str, tid| TimelineThread { host: "h".into(), process: "p".into(), name: name.into(), pid: 1, tid };
        let segment = |thread, state, start_ns, ns| TimelineSegment { start_ns, ns, thread, state, cpu: None, context };
        let timeline = ExecutionTimeline {
            ns: 1000,
            threads: vec![thread("worker", 7), thread("<journal>", 8)],
            segments: vec![
                segment(0, WaitKind::Cpu, 0, 200),
                segment(1, WaitKind::Disk, 200, 600),
                segment(0, WaitKind::Cpu, 800, 200),
            ],
            waits: vec![TimelineWait { start_ns: 200, end_ns: 800, waiter: 0, waits_for: 1, carrier: Carrier::Lock }],
            ..ExecutionTimeline::default()
        };
        let svg = element(&model, &[DrawnExecution { group: "slow", number: 3, timeline: &timeline }]);
        assert!(svg.contains("slow execution 3: 1.00 us"), "{svg}");
        // Two lanes: running, waiting, running; and the disk. Then two states of the legend.
        assert_eq!(svg.matches("<rect").count(), 4 + 2, "{svg}");
        assert_eq!(svg.matches("<line").count(), 1);
        assert!(
            svg.contains("disk, in &lt;commit&gt;") && svg.contains("&lt;journal&gt; 8") && !svg.contains("<commit>")
        );
        assert_eq!(element(&model, &[]), "");
    }
}
