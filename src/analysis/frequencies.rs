//! The frequencies of the CPUs, and the mean one at which the threads of a path ran.
//!
//! In: the remarks of a timeline, of which each says the frequency of a CPU from then on. Out: for a path the mean over
//! its running time, in kHz; `None` where a CPU on which it ran has none for half of that time, because no event came
//! before. What CPUs do while they wait says nothing of the program and does not count. Cost: linear in the remarks
//! once, then a binary search for each running segment. ALGORITHMS.md 6.2.

use super::path::PathSegment;
use crate::base::time::{Ns, Span, Timestamp};
use crate::event::host::HostId;
use crate::event::remark::RemarkKind;
use crate::timeline::{SegmentKind, Timeline};
use foldhash::HashMap;

/// The frequencies of all CPUs that changed theirs.
#[derive(Debug, Default)]
pub struct Frequencies {
    /// By host and CPU, in order of time.
    by_cpu: HashMap<(HostId, u32), Vec<FrequencyChange>>,
}

/// A CPU has a frequency from a time on.
#[derive(Clone, Copy, Debug)]
struct FrequencyChange {
    time: Timestamp,
    khz: u32,
}

/// Running time at known frequencies.
#[derive(Clone, Copy, Debug, Default)]
struct RunningTime {
    known: Ns,
    /// The sum of nanoseconds times kHz.
    weighted: i128,
}

impl Frequencies {
    /// Those of a timeline.
    pub fn of(timeline: &Timeline) -> Frequencies {
        let mut all = Frequencies::default();
        for remark in timeline.remarks() {
            if let RemarkKind::Frequency { cpu, khz } = remark.kind {
                let change = FrequencyChange { time: remark.time, khz };
                all.by_cpu.entry((remark.host, u32::from(cpu))).or_default().push(change);
            }
        }
        all
    }

    /// The mean frequency at which the threads of a path ran, in kHz.
    pub fn mean(&self, timeline: &Timeline, path: &[PathSegment]) -> Option<i64> {
        if self.by_cpu.is_empty() {
            return None;
        }
        let (mut running, mut known) = (0, RunningTime::default());
        for segment in path.iter().filter(|segment| segment.kind == SegmentKind::Running) {
            running += segment.span.len();
            let host = timeline.thread(segment.thread).map(|thread| thread.host);
            let changes = host.and_then(|host| self.by_cpu.get(&(host, segment.cpu)));
            changes.into_iter().for_each(|changes| known.add(changes, segment.span));
        }
        let mean = known.weighted.checked_div(i128::from(known.known))?;
        (known.known >= running - known.known).then_some(mean as i64)
    }
}

impl RunningTime {
    /// Add a span on a CPU with these changes.
    fn add(&mut self, changes: &[FrequencyChange], span: Span) {
        let mut at = changes.partition_point(|change| change.time <= span.start).saturating_sub(1);
        while let Some(FrequencyChange { time, khz }) = changes.get(at).copied().filter(|c| c.time < span.end) {
            let until = changes.get(at + 1).map_or(span.end, |next| next.time.min(span.end));
            let ns = until.since(time.max(span.start)).max(0);
            self.known += ns;
            self.weighted += i128::from(ns) * i128::from(khz);
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_time_counts_with_the_frequency_that_held() {
        let change = |time, khz| FrequencyChange { time: Timestamp::new(time), khz };
        let changes = [change(100, 1_000), change(200, 3_000)];
        let of = |from, to| {
            let mut time = RunningTime::default();
            time.add(&changes, Span::new(Timestamp::new(from), Timestamp::new(to)));
            (time.known, time.weighted)
        };
        assert_eq!(of(0, 50), (0, 0), "before the first event nothing is known");
        assert_eq!(of(50, 150), (50, 50_000));
        assert_eq!(of(150, 250), (100, 50 * 1_000 + 50 * 3_000));
        assert_eq!(of(200, 300), (100, 300_000));
        assert_eq!(of(900, 1_000), (100, 300_000));
    }
}
