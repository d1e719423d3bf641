//! Many threads over time as a JSON document: the time in each state of every cell.

use crate::base::clean;
use crate::base::notice::Notices;
use crate::base::time::Timestamp;
use crate::model::thread_lanes::{CellTimes, LaneOwner, LaneThread, ThreadLane, ThreadLanes};
use crate::model::wait_kind::SegmentKind;
use serde::Serialize;
use std::collections::BTreeMap;

/// The document.
#[derive(Clone, Debug, Serialize)]
pub struct LanesDocument {
    schema: &'static str,
    start_ns: Timestamp,
    end_ns: Timestamp,
    /// Where each column begins.
    columns_ns: Vec<Timestamp>,
    lanes: Vec<LaneJson>,
    warnings: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
struct LaneJson {
    /// `thread`, `process`, `cpu`, `others`.
    kind: &'static str,
    host: Option<String>,
    process: Option<String>,
    pid: Option<i32>,
    thread: Option<String>,
    tid: Option<i32>,
    cpu: Option<u32>,
    /// How many threads it sums up.
    threads: usize,
    /// Time in activity.
    active_ns: u64,
    /// By column; null where nothing is known of any thread.
    cells: Vec<Option<CellJson>>,
}

#[derive(Clone, Debug, Serialize)]
struct CellJson {
    /// What the drawing shows.
    state: &'static str,
    /// Nanoseconds by state.
    times_ns: BTreeMap<&'static str, u64>,
}

impl LanesDocument {
    /// The lanes, and the notices about the recording.
    pub fn new(lanes: &ThreadLanes, notices: &Notices) -> LanesDocument {
        let span = lanes.grid.whole();
        LanesDocument {
            schema: "whyslow.timeline/1",
            start_ns: span.start,
            end_ns: span.end,
            columns_ns: (0..lanes.grid.columns()).map(|column| lanes.grid.span(column).start).collect(),
            lanes: lanes.lanes.iter().map(|lane| LaneJson::new(lane, lanes)).collect(),
            warnings: notices.sentences().iter().map(|s| clean::line(s)).collect(),
        }
    }
}

impl LaneJson {
    fn new(lane: &ThreadLane, all: &ThreadLanes) -> LaneJson {
        let cell = |(column, times): (usize, &CellTimes)| {
            let shown = all.shown(lane, column)?;
            let known = SegmentKind::ALL.into_iter().zip(times).filter(|(_, ns)| **ns > 0);
            let times_ns = known.map(|(kind, ns)| (name(kind), *ns)).collect();
            Some(CellJson { state: name(shown.kind), times_ns })
        };
        let (kind, of, cpu, threads) = match &lane.owner {
            LaneOwner::Thread(thread) => ("thread", Some(thread), None, 1),
            LaneOwner::Process { first, threads } => ("process", Some(first), None, *threads),
            LaneOwner::Others { threads } => ("others", None, None, *threads),
            LaneOwner::Cpu { cpu, .. } => ("cpu", None, Some(*cpu), 0),
        };
        let host = match &lane.owner {
            LaneOwner::Cpu { host, .. } => Some(host),
            _ => of.map(|of| &of.names.host),
        };
        let process = of.filter(|_| !all.of_ranks);
        let thread = of.filter(|_| kind == "thread");
        let text = |text: &String| clean::owned(text);
        let named = |of: Option<&LaneThread>, name: fn(&LaneThread) -> &String| of.map(|of| text(name(of)));
        LaneJson {
            kind,
            host: host.map(text),
            process: named(process, |of| &of.names.process),
            pid: process.map(|of| of.names.pid),
            thread: named(thread, |of| &of.names.name),
            tid: thread.filter(|_| !all.of_ranks).map(|of| of.names.tid),
            cpu,
            threads,
            active_ns: lane.cells.iter().map(|times| all.active_ns(times)).sum(),
            cells: lane.cells.iter().enumerate().map(cell).collect(),
        }
    }
}

/// A state as `query` names it.
fn name(kind: SegmentKind) -> &'static str {
    SegmentKind::NAMES.get(kind as usize).copied().unwrap_or("unknown")
}
