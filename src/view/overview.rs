//! `query --overview`: the recording at a glance, as JSON (`whyslow.overview/1`) and as text. The interface draws the
//! same averages.

use crate::base::notice::Notices;
use crate::base::time::Timestamp;
use crate::base::{clean, figure};
use crate::model::overview::RecordingOverview;
use serde::Serialize;
use std::fmt::Write;

/// The document.
#[derive(Clone, Debug, Serialize)]
pub struct OverviewAnswer {
    schema: &'static str,
    /// CPUs with a recorded scheduler.
    cpus: u32,
    cells: Vec<CellJson>,
    warnings: Vec<String>,
}

/// Averages over a part of the recording.
#[derive(Clone, Debug, Serialize)]
struct CellJson {
    start_ns: Timestamp,
    end_ns: Timestamp,
    /// The part of all CPUs that was in use, 0 to 1.
    cpu_use: f64,
    /// Threads ready to run and not on a CPU.
    runnable: f64,
    /// Threads that waited for a disk.
    on_disk: f64,
    /// Threads that waited for the network.
    on_network: f64,
    /// Disk requests in flight; null where none was recorded.
    disk_requests: Option<f64>,
    /// Events were lost in it.
    lossy: bool,
}

impl OverviewAnswer {
    /// The cells, and the notices about the recording.
    pub fn new(overview: &RecordingOverview, notices: &Notices) -> OverviewAnswer {
        let cell = |at| {
            let span = overview.grid.span(at);
            let mean = overview.mean(span);
            CellJson {
                start_ns: span.start,
                end_ns: span.end,
                cpu_use: mean.cpu_use,
                runnable: mean.runnable,
                on_disk: mean.on_disk,
                on_network: mean.on_network,
                disk_requests: mean.disk_requests,
                lossy: overview.is_lossy(span),
            }
        };
        OverviewAnswer {
            schema: "whyslow.overview/1",
            cpus: overview.cpus,
            cells: (0..overview.cells.len()).map(cell).collect(),
            warnings: notices.sentences().iter().map(|s| clean::line(s)).collect(),
        }
    }

    /// A line for each cell: seconds since the first event, and the averages.
    pub fn text(&self, origin: Timestamp) -> String {
        let (from, cpu) = ("from", "CPU use");
        let mut out =
            format!("{from:>14} {cpu:>8} {:>9} {:>8} {:>8} {:>9}\n", "runnable", "disk", "network", "requests");
        for cell in &self.cells {
            let requests = cell.disk_requests.map_or_else(|| "-".to_owned(), |requests| format!("{requests:.2}"));
            let lossy = if cell.lossy { "  ! events were lost" } else { "" };
            let _ = writeln!(
                out,
                "{:>14} {:>8} {:>9.2} {:>8.2} {:>8.2} {requests:>9}{lossy}",
                figure::stamp(cell.start_ns.since(origin)),
                figure::percent(cell.cpu_use, 0),
                cell.runnable,
                cell.on_disk,
                cell.on_network,
            );
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::column_grid::ColumnGrid;
    use crate::base::time::Span;
    use crate::model::overview::{OverviewCell, RequestRecord};

    #[test]
    fn text_has_the_averages_of_each_cell() {
        let busy = OverviewCell { running_ns: 100, runnable_ns: 150, disk_ns: 25, network_ns: 0, requests_ns: 70 };
        let overview = RecordingOverview {
            grid: ColumnGrid::of(Span::of_ns(0, 200), 2),
            cpus: 2,
            cells: vec![busy, OverviewCell::default()],
            lossy: vec![Span::of_ns(150, 160)],
            requests: RequestRecord::Recorded,
        };
        let text = OverviewAnswer::new(&overview, &Notices::default()).text(Timestamp::ZERO);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1][lines[1].len() - 5..], ["50%", "1.50", "0.25", "0.00", "0.70"]);
        assert!(text.lines().nth(2).unwrap().ends_with("! events were lost"), "{text}");
    }
}
