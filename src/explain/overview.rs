//! A recording at a glance, from the state history.
//!
//! In: a history and a span. Out: a [`RecordingOverview`]: the time of all threads in each state, by cells. The
//! nodes of the store have the sums of the leaves inside a cell; those on its borders are read.
//! Disk requests in flight are added up from their spans.

use crate::base::column_grid::ColumnGrid;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::time::Span;
use crate::model::overview::{OverviewCell, RecordingOverview, RequestRecord};
use crate::timeline::Timeline;
use crate::timeline::history::{STATES, StateHistory};
use crate::timeline::questions::Asker;

/// Facts about a recording that its state history does not have.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beside<'a> {
    /// Spans in which events were lost.
    pub lossy: &'a [Span],
    /// Disk requests from their insertion into the queue to their completion, by start.
    pub requests: &'a [Span],
}

/// The disk requests of a recording.
pub fn disk_requests(timeline: &Timeline) -> Vec<Span> {
    timeline.reader(Asker::History).requests().all().map(|request| request.span).collect()
}

/// The cells of a span of a history.
pub fn overview(
    history: &StateHistory,
    span: Span,
    cells: usize,
    beside: Beside<'_>,
    ctx: &Ctx,
) -> Result<RecordingOverview, Cancelled> {
    let span = span.clip(history.window());
    let find = |pattern: &str| {
        let own = history.attributes().matching(pattern);
        if own.is_empty() { history.attributes().matching(&format!("hosts/*/{pattern}")) } else { own }
    };
    // No CPU of a run is known: each rank or thread, which may compute all the time, counts as one.
    let cpus = match history.timeline().is_of_ranks() {
        true => history.timeline().lines_with_segments(),
        false => find("cpus/*/thread").len(),
    };
    let kinds = StateCodes::new();
    let mut all = vec![OverviewCell::default(); cells];
    let grid = ColumnGrid::of(span, cells);
    for (cell, times) in all.iter_mut().zip(history.times_of_all(&grid, ctx)?) {
        times.into_iter().for_each(|(code, ns)| kinds.add(cell, code, ns));
    }
    let mut found =
        RecordingOverview { grid, cpus: cpus as u32, cells: all, lossy: beside.lossy.to_vec(), ..Default::default() };
    add_requests(&mut found, beside.requests);
    Ok(found)
}

/// The time of disk requests in each cell.
fn add_requests(overview: &mut RecordingOverview, requests: &[Span]) {
    if requests.is_empty() {
        return;
    }
    overview.requests = RequestRecord::Recorded;
    for request in requests {
        for (at, ns) in overview.grid.parts(request.start.ns()..request.end.ns()) {
            overview.cells[at].requests_ns += ns;
        }
    }
}

/// The codes of the states that are added up.
struct StateCodes {
    running: [Option<u16>; 2],
    runnable: Option<u16>,
    disk: Option<u16>,
    network: Option<u16>,
}

impl StateCodes {
    fn new() -> StateCodes {
        let code = |name: &str| STATES.iter().position(|state| *state == name).and_then(|at| u16::try_from(at).ok());
        StateCodes {
            running: [code("running"), code("interrupted")],
            runnable: code("preempted"),
            disk: code("disk"),
            network: code("network"),
        }
    }

    fn add(&self, cell: &mut OverviewCell, code: u16, ns: u64) {
        let code = Some(code);
        if self.running.contains(&code) {
            cell.running_ns += ns;
        } else if code == self.runnable {
            cell.runnable_ns += ns;
        } else if code == self.disk {
            cell.disk_ns += ns;
        } else if code == self.network {
            cell.network_ns += ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::timeline_builder::TimelineBuilder;
    use crate::timeline::{CpuTimeline, SegmentKind};

    #[test]
    fn overview_adds_up_the_states_of_all_threads() {
        let mut builder = TimelineBuilder::new(2);
        builder.0.tables.span = Span::of_ns(0, 100);
        builder.runs(&[(0, 100, 1)]).segment(1, 0, 60, SegmentKind::Running, 0);
        builder.segment(1, 60, 100, SegmentKind::Disk, 0).segment(2, 20, 60, SegmentKind::Preempted, 0);
        builder.segment(2, 60, 80, SegmentKind::Interrupted, 0);
        let idle = CpuTimeline { cpu: 1, runs: Vec::new(), ..builder.0.cpus[0].clone() };
        builder.0.cpus.push(idle);
        let history = StateHistory::new(builder.sealed(), None);
        let requests = [Span::of_ns(-5, 10), Span::of_ns(40, 70), Span::of_ns(45, 55), Span::of_ns(99, 200)];
        let beside = Beside { lossy: &[], requests: &requests };
        for workers in [1, 3] {
            let found = overview(&history, Span::of_ns(0, 100), 2, beside, &Ctx::new(workers)).unwrap();
            let cell = |running_ns, runnable_ns, disk_ns, requests_ns| OverviewCell {
                running_ns,
                runnable_ns,
                disk_ns,
                requests_ns,
                ..OverviewCell::default()
            };
            assert_eq!((found.cpus, &found.cells), (2, &vec![cell(50, 30, 0, 25), cell(30, 10, 40, 26)]));
            assert_eq!(found.mean(Span::of_ns(0, 100)).disk_requests, Some(0.51));
        }
    }
}
