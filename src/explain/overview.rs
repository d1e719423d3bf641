//! A recording at a glance, from the state history.
//!
//! In: a history and a span. Out: a [`RecordingOverview`]: the time of all threads in each state, by cells. Of rows in
//! a store those of the span are added up, thread by thread; a thread that has no state in the span costs one look-up.
//! Disk requests in flight are added up from their spans.

use crate::base::ctx::{Cancelled, Ctx};
use crate::base::parallel::in_order;
use crate::base::time::{Span, Timestamp};
use crate::model::overview::{OverviewCell, RecordingOverview, RequestRecord, cut};
use crate::state::attributes::AttributeId;
use crate::state::history::StateHistory;
use crate::state::questions::Asker;
use crate::state::timeline::Timeline;

/// Threads that a worker takes at a time.
const GROUP: usize = 64;

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
    history: &dyn StateHistory,
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
    let (threads, cpus) = (find("threads/*/state"), find("cpus/*/thread").len());
    let kinds = StateCodes::of(history);
    let groups: Vec<&[AttributeId]> = threads.chunks(GROUP).collect();
    let borders: Vec<Span> = (0..cells).map(|at| Span::new(cut(span, cells, at), cut(span, cells, at + 1))).collect();
    let mut all = vec![OverviewCell::default(); cells];
    let add_up = |group: usize| {
        let mut sums = vec![OverviewCell::default(); cells];
        for attribute in groups[group] {
            if ctx.cancel.is_cancelled() {
                break;
            }
            for (sum, times) in sums.iter_mut().zip(history.times(*attribute, &borders)) {
                times.into_iter().for_each(|(code, ns)| kinds.add(sum, code, ns));
            }
        }
        sums
    };
    ctx.progress.enter("overview", groups.len() as u64);
    in_order(ctx, groups.len(), add_up, |_, sums| {
        for (all, sum) in all.iter_mut().zip(sums) {
            all.running_ns += sum.running_ns;
            all.runnable_ns += sum.runnable_ns;
            all.disk_ns += sum.disk_ns;
            all.network_ns += sum.network_ns;
        }
        ctx.progress.step(1);
    })?;
    let mut found =
        RecordingOverview { span, cpus: cpus as u32, cells: all, lossy: beside.lossy.to_vec(), ..Default::default() };
    add_requests(&mut found, beside.requests);
    Ok(found)
}

/// The time of disk requests in each cell.
fn add_requests(overview: &mut RecordingOverview, requests: &[Span]) {
    if requests.is_empty() {
        return;
    }
    overview.requests = RequestRecord::Recorded;
    let (span, count) = (overview.span, overview.cells.len());
    let cell_of = |t: Timestamp| {
        let part = i128::from(t.since(span.start)) * count as i128 / i128::from(span.len().max(1));
        usize::try_from(part).unwrap_or(0)
    };
    for request in requests.iter().map(|request| request.clip(span)).filter(|request| !request.is_empty()) {
        // Borders are rounded: the cell before may have a part.
        let first = cell_of(request.start).saturating_sub(1);
        for at in first..(cell_of(request.end) + 2).min(count) {
            let inside = overview.cell_span(at).clip(request).len().max(0);
            overview.cells[at].requests_ns += inside as u64;
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
    fn of(history: &dyn StateHistory) -> StateCodes {
        let code = |name: &str| history.code_of(name);
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
    use crate::state::history::builder::HistoryBuilder;
    use crate::state::history::interval::{Run, StateValue};
    use crate::state::history::recorded::STATES;
    use crate::state::history::tree::Shape;

    #[test]
    fn overview_adds_up_the_states_of_all_threads() {
        let mut builder = HistoryBuilder::new(STATES);
        let code = |name: &str| StateValue::Code(STATES.iter().position(|s| *s == name).unwrap() as u16);
        for (path, start, end, value) in [
            ("threads/7/state", 0, 60, code("running")),
            ("threads/7/state", 60, 100, code("disk")),
            ("threads/8/state", 20, 60, code("preempted")),
            ("threads/8/state", 60, 80, code("interrupted")),
            ("cpus/0/thread", 0, 100, StateValue::Int(7)),
            ("cpus/1/thread", 0, 100, StateValue::Int(0)),
        ] {
            let mut run = Run::default();
            run.push(builder.attributes.path(path), Span::of_ns(start, end), value);
            builder.push(run);
        }
        let history = builder.seal(Span::of_ns(0, 100), Shape::default(), &Ctx::new(1)).unwrap();
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
