//! Counts along a critical path: system calls, page faults and bytes of its threads, and the pauses of their machines.
//!
//! In: a path. Out: counts. A call counts in the segment in which it begins; its bytes are its return value. Cost: a
//! search per segment, short where a thread's segments are near each other, and the calls inside it. ALGORITHMS.md
//! section 6.2.

use super::frequencies::Frequencies;
use super::path::PathSegment;
use super::pauses::{Pauses, pauses};
use crate::base::names::NameId;
use crate::base::packed::packed;
use crate::base::time::Ns;
use crate::event::transfer::{Transfer, transfer};
use crate::model::metric::Metric;
use crate::timeline::reader::{RowCursor, RowReader};
use crate::timeline::{Call, PageFault, SegmentKind, ThreadId, Timeline};
use std::collections::BTreeMap;

/// Counts along a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCounts {
    /// System calls begun; `None` where the recording has none at all.
    pub syscalls: Option<i64>,
    /// Page faults; `None` where they were not recorded.
    pub page_faults: Option<i64>,
    /// Bytes that reads returned; `None` where the recording has no system calls.
    pub read: Option<i64>,
    /// Bytes that writes returned, likewise.
    pub written: Option<i64>,
    /// Threads on the path.
    pub threads: i64,
    /// Nanoseconds in which the whole machine paused, or the CPU may have been given to others; `None` where no machine
    /// ever did.
    pub paused: Option<i64>,
    /// Mean running time of the executions that alternated with it on its CPU (`interleaved`).
    pub interleaved: Option<i64>,
    /// Mean frequency of the CPUs while its threads ran, in kHz; `None` where it was not recorded.
    pub cpu_khz: Option<i64>,
}

packed! { PathCounts { syscalls, page_faults, read, written, threads, paused, interleaved, cpu_khz } }

impl PathCounts {
    /// The value of a metric that counts along paths; `None` where it is unknown, and for other metrics.
    pub fn value(&self, metric: &Metric) -> Option<i64> {
        match metric {
            Metric::Syscalls => self.syscalls,
            Metric::PageFaults => self.page_faults,
            Metric::BytesRead => self.read,
            Metric::BytesWritten => self.written,
            Metric::Threads => Some(self.threads),
            Metric::Paused => self.paused,
            Metric::Interleaved => self.interleaved,
            Metric::CpuKhz => self.cpu_khz,
            _ => None,
        }
    }
}

/// Places among the rows of a thread.
struct ThreadCursors<'r> {
    calls: RowCursor<'r, Call>,
    faults: RowCursor<'r, PageFault>,
}

/// Counts along the paths of one timeline. It is made once for all tasks, at the cost of a look at each name and each
/// thread.
#[derive(Debug)]
pub struct PathCounter {
    /// By name of a system call, where it moves bytes.
    moves: Vec<Option<Transfer>>,
    calls_recorded: bool,
    /// By host.
    pauses: Vec<Pauses>,
    /// A host was paused, or may have been.
    any_pauses: bool,
    frequencies: Frequencies,
}

impl PathCounter {
    /// A counter for a timeline.
    pub fn new(timeline: &Timeline) -> Self {
        let moves = (0..timeline.names().len()).map(|name| transfer(timeline.names().get(NameId::at(name)))).collect();
        let calls_recorded = timeline.has_calls();
        let frequencies = Frequencies::of(timeline);
        let pauses = pauses(timeline);
        let any_pauses = pauses.iter().any(Pauses::has_any);
        PathCounter { moves, calls_recorded, pauses, any_pauses, frequencies }
    }

    /// The pauses of each host.
    pub fn pauses(&self) -> &[Pauses] {
        &self.pauses
    }

    /// Count what the threads on a path did while they were on it.
    pub fn count(&self, reader: &RowReader<'_>, path: &[PathSegment]) -> PathCounts {
        let timeline = reader.timeline();
        let (mut syscalls, mut read, mut written, mut page_faults) = (0, 0i64, 0i64, 0);
        // The segments of one thread follow each other in time: so do the questions to its cursors.
        let mut threads: BTreeMap<ThreadId, ThreadCursors<'_>> = BTreeMap::new();
        for segment in path.iter().filter(|s| !s.span.is_empty()) {
            let cursors = threads.entry(segment.thread).or_insert_with(|| ThreadCursors {
                calls: reader.calls(segment.thread),
                faults: reader.faults(segment.thread),
            });
            for call in cursors.calls.begun_in(segment.span) {
                syscalls += 1;
                let moved = call.ret.unwrap_or(0).max(0);
                match self.moves.get(call.name.index()).copied().flatten() {
                    Some(Transfer::Read) => read = read.saturating_add(moved),
                    Some(Transfer::Write) => written = written.saturating_add(moved),
                    None => {}
                }
            }
            page_faults += cursors.faults.begun_in(segment.span).count() as i64;
        }
        let of_calls = |n: i64| self.calls_recorded.then_some(n);
        PathCounts {
            syscalls: of_calls(syscalls),
            page_faults: timeline.has_page_faults().then_some(page_faults),
            read: of_calls(read),
            written: of_calls(written),
            threads: threads.len() as i64,
            interleaved: None,
            cpu_khz: self.frequencies.mean(timeline, path),
            paused: self.any_pauses.then(|| path.iter().map(|s| self.paused(timeline, s)).sum()),
        }
    }

    fn paused(&self, timeline: &Timeline, segment: &PathSegment) -> Ns {
        let host = timeline.thread(segment.thread).map(|t| t.host.index());
        let Some(of_host) = host.and_then(|host| self.pauses.get(host)) else { return 0 };
        let first = of_host.machine.partition_point(|p| p.end <= segment.span.start);
        let meets = of_host.machine[first..].iter().take_while(|p| p.start < segment.span.end);
        let paused: Ns = meets.map(|p| p.clip(segment.span).len()).sum();
        match segment.kind {
            SegmentKind::Running => paused.max(of_host.stolen_at_most(segment.cpu, segment.span)),
            _ => paused,
        }
    }
}
