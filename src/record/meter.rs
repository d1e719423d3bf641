//! Measures a recording while it grows.
//!
//! In: the files of the recorder, and the counters of the kernel's ring buffers. Out: bytes, events and losses so far.
//! perf is asked to write what its buffers hold before each look. Cost: a read of what was written since the last one.

use super::folder::RecordingFolder;
use super::growth::{self, PerfData, RecordingSize, RingCounts};
use super::plan::RecordingPlan;
use super::{Recorder, RecordingRequest, tracefs};
use std::fs::File;
use std::io::Write;
use std::ops::Add;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A write to a full pipe fails instead of waiting.
const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;

/// Time between two measurements of the recording's size.
const MEASURE_INTERVAL: Duration = Duration::from_millis(500);

/// Measures the size of the recording every [`MEASURE_INTERVAL`].
pub(super) struct Meter<'a> {
    plan: &'a RecordingPlan,
    folder: &'a RecordingFolder,
    perf: Option<PerfData>,
    control: Option<File>,
    measured: Instant,
    /// What the instances of tracefs have counted: they are gone when the recording has ended.
    counts: Option<RingCounts>,
    /// True for a flight recorder, which writes its buffer at the end.
    writes_at_end: bool,
}

impl Meter<'_> {
    pub fn new<'a>(plan: &'a RecordingPlan, request: &RecordingRequest, folder: &'a RecordingFolder) -> Meter<'a> {
        let trace = plan.trace.file_name().unwrap_or_default();
        let perf = (plan.recorder == Recorder::Perf).then(|| PerfData::new(folder.join(trace)));
        // Opened for both directions, a named pipe opens without its reader.
        let open =
            |name: &PathBuf| File::options().read(true).write(true).custom_flags(NONBLOCK).open(folder.join(name)).ok();
        let control = plan.control.as_ref().and_then(open);
        let writes_at_end = request.overwrite.is_some();
        Meter { plan, folder, perf, control, measured: Instant::now(), counts: None, writes_at_end }
    }

    /// The size, if the last measurement is [`MEASURE_INTERVAL`] ago.
    pub fn measure_if_due(&mut self) -> Option<RecordingSize> {
        if self.measured.elapsed() < MEASURE_INTERVAL {
            return None;
        }
        self.measured = Instant::now();
        if let Some(control) = &mut self.control {
            // A perf that is too busy to read it is asked again.
            let _ = control.write_all(b"ping\n");
        }
        Some(if self.writes_at_end { RecordingSize::default() } else { self.measure() })
    }

    /// The size of the recording so far.
    pub fn measure(&mut self) -> RecordingSize {
        let counts = self.plan.ring_buffers.instances.iter().filter_map(|instance| growth::ring_counts(instance));
        self.counts = counts.reduce(RingCounts::add).or(self.counts);
        match (&mut self.perf, self.plan.recorder) {
            (Some(perf), _) => {
                let RecordingSize { bytes, events, lost } = perf.measure();
                let beside = if self.plan.ring_buffers.instances.is_empty() { 0 } else { self.bytes_beside_perf() };
                let counts = self.counts.unwrap_or_default();
                RecordingSize {
                    bytes: bytes.saturating_add(beside),
                    events: events.map(|events| events.saturating_add(counts.events)),
                    lost: lost.map(|lost| lost.saturating_add(counts.lost)),
                }
            }
            (None, Recorder::Tracefs) => {
                let bytes = growth::bytes_below(&self.folder.join(""));
                let counts = self.counts;
                RecordingSize { bytes, events: counts.map(|of| of.events), lost: counts.map(|of| of.lost) }
            }
            (None, Recorder::TraceCmd) => {
                let lost = growth::ring_counts(Path::new("/sys/kernel/tracing")).map(|counts| counts.lost);
                RecordingSize { bytes: growth::bytes_below(&self.folder.join("")), events: None, lost }
            }
            (None, _) => {
                RecordingSize { bytes: growth::bytes_below(&self.folder.join("")), ..RecordingSize::default() }
            }
        }
    }

    /// Bytes of the trace.dat beside perf's recording.
    fn bytes_beside_perf(&self) -> u64 {
        let trace = self.folder.join(tracefs::TRACE);
        std::fs::metadata(trace).map_or(0, |about| about.len())
    }
}
