//! A whole recording, or a part of it, in cells of equal length: how busy CPUs, run queues, disks and network were.

use crate::base::column_grid::ColumnGrid;
use crate::base::time::Span;

/// A cell: the time of all threads in some states during it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OverviewCell {
    /// On a CPU, interrupts included.
    pub running_ns: u64,
    /// Ready to run, not on a CPU.
    pub runnable_ns: u64,
    /// Waiting for a disk.
    pub disk_ns: u64,
    /// Waiting for the network.
    pub network_ns: u64,
    /// Time of all disk requests in flight: from the queue to the completion.
    pub requests_ns: u64,
}

/// A span in cells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordingOverview {
    /// The cells, over the span that they divide.
    pub grid: ColumnGrid,
    /// CPUs with a recorded scheduler.
    pub cpus: u32,
    /// In order of time, one for each column of the grid.
    pub cells: Vec<OverviewCell>,
    /// Spans in which events were lost.
    pub lossy: Vec<Span>,
    /// What is known of disk requests.
    pub requests: RequestRecord,
}

/// Whether disk requests were recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestRecord {
    /// None was: their number is unknown.
    #[default]
    Absent,
    Recorded,
}

/// Averages over a span.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OverviewMean {
    /// The part of all CPUs that was in use, from 0 to 1.
    pub cpu_use: f64,
    /// Threads ready to run and not on a CPU.
    pub runnable: f64,
    /// Threads that waited for a disk.
    pub on_disk: f64,
    /// Threads that waited for the network.
    pub on_network: f64,
    /// Disk requests in flight; `None` where none was recorded.
    pub disk_requests: Option<f64>,
}

impl RecordingOverview {
    /// The averages over a span: those of the cells that meet it, by the part of each inside.
    pub fn mean(&self, span: Span) -> OverviewMean {
        let mut mean = OverviewMean::default();
        let (mut total, mut requests) = (0.0, 0.0);
        for (at, inside) in self.grid.parts(span.start.ns()..span.end.ns()).filter(|(_, inside)| *inside > 0) {
            let Some(cell) = self.cells.get(at) else { break };
            let inside = inside as f64;
            let part = inside / self.grid.span(at).len().max(1) as f64;
            total += inside;
            mean.cpu_use += cell.running_ns as f64 * part;
            mean.runnable += cell.runnable_ns as f64 * part;
            mean.on_disk += cell.disk_ns as f64 * part;
            mean.on_network += cell.network_ns as f64 * part;
            requests += cell.requests_ns as f64 * part;
        }
        if total <= 0.0 {
            return OverviewMean::default();
        }
        OverviewMean {
            cpu_use: (mean.cpu_use / total / f64::from(self.cpus.max(1))).min(1.0),
            runnable: mean.runnable / total,
            on_disk: mean.on_disk / total,
            on_network: mean.on_network / total,
            disk_requests: (self.requests == RequestRecord::Recorded).then(|| requests / total),
        }
    }

    /// True if events were lost in a span.
    pub fn is_lossy(&self, span: Span) -> bool {
        self.lossy.iter().any(|lost| lost.start < span.end && span.start < lost.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_weighs_cells_by_their_part_of_the_span() {
        let cell = |running_ns, runnable_ns| OverviewCell { running_ns, runnable_ns, ..OverviewCell::default() };
        let overview = RecordingOverview {
            grid: ColumnGrid::of(Span::of_ns(100, 300), 4),
            cpus: 2,
            cells: vec![cell(100, 0), cell(0, 100), cell(50, 300), cell(0, 0)],
            lossy: vec![Span::of_ns(160, 170)],
            requests: RequestRecord::Absent,
        };
        assert_eq!(overview.grid.span(2), Span::of_ns(200, 250));
        let mean = overview.mean(Span::of_ns(125, 175));
        assert_eq!((mean.cpu_use, mean.runnable, mean.disk_requests), (0.5, 1.0, None));
        let whole = overview.mean(overview.grid.whole());
        assert_eq!((whole.cpu_use, whole.runnable), (150.0 / 200.0 / 2.0, 2.0));
        assert_eq!(overview.mean(Span::of_ns(0, 50)), OverviewMean::default());
        assert!(overview.is_lossy(Span::of_ns(165, 200)) && !overview.is_lossy(Span::of_ns(170, 200)));
    }
}
