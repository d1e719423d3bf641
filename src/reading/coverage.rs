//! When which CPUs of a host were recorded.
//!
//! In: the streams of a channel. Out: spans of time by CPU. Invariant: the spans of a CPU are in order and do not
//! overlap, so that a look-up is a binary search.

use crate::base::time::{Span, Timestamp};
use crate::input::stream::Stream;
use foldhash::HashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// From the first to the last packet of some streams that name their times.
pub fn covered<'t>(streams: impl Iterator<Item = &'t Stream> + Clone) -> Option<Span> {
    let begin = streams.clone().flat_map(|s| &s.packets).filter_map(|p| p.begin).min()?;
    let end = streams.flat_map(|s| &s.packets).filter_map(|p| p.end).max()?;
    Some(Span::new(begin, end.saturating_add(1)))
}

/// When the CPUs of a host were recorded. A session may have begun on one CPU before another, as one does that keeps
/// the last buffers of each CPU, and the files of some CPUs may be missing.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    /// By CPU, `None` where packets do not name theirs: spans in order that do not overlap.
    cpus: HashMap<Option<u16>, Vec<Span>>,
}

impl Coverage {
    /// Of some streams, by the packets that name their times.
    pub fn of<'t>(streams: impl Iterator<Item = &'t Stream>) -> Coverage {
        let mut by_cpu: BTreeMap<Option<u16>, Vec<&Stream>> = BTreeMap::new();
        let cpu = |stream: &Stream| stream.cpu.and_then(|cpu| u16::try_from(cpu).ok());
        streams.for_each(|stream| by_cpu.entry(cpu(stream)).or_default().push(stream));
        let spans = |streams: Vec<&Stream>| covered(streams.into_iter()).into_iter().collect();
        Coverage { cpus: by_cpu.into_iter().map(|(cpu, streams)| (cpu, spans(streams))).collect() }
    }

    /// True for an event of a CPU and a time that were recorded.
    pub fn holds(&self, cpu: u16, time: Timestamp) -> bool {
        let inside = |spans: &Vec<Span>| {
            let after = spans.partition_point(|span| span.start <= time);
            after.checked_sub(1).and_then(|at| spans.get(at)).is_some_and(|span| span.contains(time))
        };
        [Some(cpu), None].iter().any(|cpu| self.cpus.get(cpu).is_some_and(inside))
    }

    /// Add what another one covers.
    pub fn add(&mut self, other: &Coverage) {
        for (cpu, spans) in &other.cpus {
            let own = self.cpus.entry(*cpu).or_default();
            for span in spans {
                let range = overlapping(own, *span);
                let met = own.get(range.clone()).unwrap_or_default();
                let start = met.iter().map(|met| met.start).fold(span.start, Timestamp::min);
                let end = met.iter().map(|met| met.end).fold(span.end, Timestamp::max);
                own.splice(range, [Span::new(start, end)]);
            }
        }
    }

    /// The part of it that meets `own`.
    pub fn meeting(&self, own: &Coverage) -> Coverage {
        if own.cpus.contains_key(&None) || self.cpus.contains_key(&None) {
            return self.clone();
        }
        let meeting = |(cpu, spans): (&Option<u16>, &Vec<Span>)| {
            let all = self.cpus.get(cpu)?;
            let met: BTreeSet<usize> = spans.iter().flat_map(|span| overlapping(all, *span)).collect();
            (!met.is_empty()).then(|| (*cpu, met.into_iter().filter_map(|at| all.get(at)).copied().collect()))
        };
        Coverage { cpus: own.cpus.iter().filter_map(meeting).collect() }
    }

    /// True for nothing.
    pub fn is_empty(&self) -> bool {
        self.cpus.values().all(Vec::is_empty)
    }
}

/// Positions of the spans that overlap or touch one; all are in order and do not overlap each other.
fn overlapping(spans: &[Span], one: Span) -> Range<usize> {
    spans.partition_point(|span| span.end < one.start)..spans.partition_point(|span| span.start <= one.end)
}
