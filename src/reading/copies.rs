//! Events that several traces of a host recorded: sessions that ran at once.
//!
//! In: bound traces. Out: bindings that follow each event of a kernel in one trace, and the user-space traces that may
//! hold the same events twice. Cost: a look at each record class, and a sample of the records that several traces have.

use super::bind::FollowedEvent;
use super::coverage::{Coverage, covered};
use super::recorded::RecordEstimates;
use super::sources::BoundTraces;
use crate::base::time::{Span, Timestamp};
use crate::event::host::HostId;
use crate::input::record::ClassId;
use crate::input::stream::Stream;
use crate::input::trace::Trace;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A record class in which an event is recorded.
#[derive(Clone, Copy, Debug)]
struct RecordedCopy {
    /// Position of the trace.
    trace: usize,
    stream_class: u32,
    class: ClassId,
}

impl RecordedCopy {
    fn streams<'t>(self, traces: &[&'t Trace]) -> impl Iterator<Item = &'t Stream> {
        traces[self.trace].streams().iter().filter(move |s| s.stream_class == self.stream_class)
    }
}

/// A kind of event that user-space traces record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct UserEvent<'t> {
    host: HostId,
    /// Id of the process, where each trace is of one.
    process: Option<&'t str>,
    name: String,
}

impl BoundTraces {
    /// Follow each event of a kernel in only one of the traces that recorded its CPU at its time. A trace that recorded
    /// at least half as many of them as another is preferred, then one without losses, then the one that recorded most
    /// kinds of events.
    pub(super) fn follow_each_event_once(&mut self, traces: &[&Trace]) {
        let kernels: Vec<usize> = (0..self.all.len()).filter(|i| self.origins[*i].kernel).collect();
        if kernels.len() < 2 {
            return;
        }
        let mut copies: BTreeMap<(HostId, String), Vec<RecordedCopy>> = BTreeMap::new();
        let mut kinds = vec![0; self.all.len()];
        for trace in kernels {
            for FollowedEvent { name, stream_class, class } in self.all[trace].binding.followed(traces[trace]) {
                kinds[trace] += 1;
                let host = self.origins[trace].host;
                copies.entry((host, name)).or_default().push(RecordedCopy { trace, stream_class, class });
            }
        }
        copies.retain(|_, same| same.len() > 1);
        let channels: BTreeMap<(usize, u32), RecordedCopy> =
            copies.values().flatten().map(|copy| ((copy.trace, copy.stream_class), *copy)).collect();
        let coverage: BTreeMap<(usize, u32), Coverage> =
            channels.iter().map(|(channel, copy)| (*channel, Coverage::of(copy.streams(traces)))).collect();
        let sample =
            |(at, trace): (usize, &&Trace)| RecordEstimates::sample(trace, |c| channels.contains_key(&(at, c)));
        let recorded: Vec<RecordEstimates> = traces.iter().enumerate().map(sample).collect();
        for same in copies.into_values() {
            // A trace may have several classes of one event, as the native and the compatible form of a system call.
            let mut by_trace: BTreeMap<usize, Vec<RecordedCopy>> = BTreeMap::new();
            same.iter().for_each(|copy| by_trace.entry(copy.trace).or_default().push(*copy));
            let records = |copy: &RecordedCopy| recorded[copy.trace].of(copy.class);
            let sum = |all: &[RecordedCopy]| all.iter().map(|copy| records(copy).records).sum::<f64>();
            let is_reliable = same.iter().any(|copy| records(copy).is_reliable);
            let most = by_trace.values().map(|all| sum(all)).fold(0.0, f64::max);
            let mut by_trace: Vec<(usize, Vec<RecordedCopy>)> = by_trace.into_iter().collect();
            by_trace.sort_by_cached_key(|(trace, all)| {
                let is_part = is_reliable && sum(all) * 2.0 < most;
                let is_lossy = all.iter().any(|copy| copy.streams(traces).any(|s| !s.losses.is_empty()));
                (is_part, is_lossy, std::cmp::Reverse(kinds[*trace]), *trace)
            });
            let mut covered = Coverage::default();
            for (trace, all) in by_trace {
                let mut own = Coverage::default();
                let spans = all.iter().filter_map(|copy| coverage.get(&(trace, copy.stream_class)));
                spans.for_each(|spans| own.add(spans));
                let elsewhere = covered.meeting(&own);
                if !elsewhere.is_empty() {
                    all.iter().for_each(|copy| self.follow_elsewhere(*copy, elsewhere.clone(), traces));
                }
                covered.add(&own);
            }
        }
    }

    /// Follow an event in another trace where that covers it; where it is the context switch, the losses of its streams
    /// with it.
    fn follow_elsewhere(&mut self, copy: RecordedCopy, covered: Coverage, traces: &[&Trace]) {
        let bound = &mut self.all[copy.trace];
        if bound.binding.is_switch(copy.class) {
            for (stream, losses) in traces[copy.trace].streams().iter().zip(&mut bound.losses) {
                if stream.stream_class == copy.stream_class {
                    let cpu = stream.cpu.and_then(|cpu| u16::try_from(cpu).ok()).unwrap_or(u16::MAX);
                    losses.retain(|loss| !covered.holds(cpu, loss.span.start));
                }
            }
        }
        Arc::make_mut(&mut bound.binding).follow_elsewhere(copy.class, covered);
    }

    /// User-space traces of one host that overlap in time and have kinds of events in common: sessions that ran at once
    /// may have recorded the same events of the same processes. Traces of one process each may do so only where the
    /// process is the same.
    pub fn may_hold_copies(&self, traces: &[&Trace]) -> Vec<usize> {
        let users: Vec<usize> = (0..self.all.len()).filter(|i| !self.origins[*i].kernel).collect();
        if users.len() < 2 {
            return Vec::new();
        }
        let process = |i: usize| traces[i].environment("vpid");
        let shared: BTreeSet<HostId> =
            users.iter().filter(|i| process(**i).is_none()).map(|i| self.origins[*i].host).collect();
        let mut recorded: BTreeMap<UserEvent<'_>, Vec<(Span, usize)>> = BTreeMap::new();
        for i in users {
            let Some(span) = covered(traces[i].streams().iter()) else { continue };
            let host = self.origins[i].host;
            let process = process(i).filter(|_| !shared.contains(&host));
            for FollowedEvent { name, .. } in self.all[i].binding.followed(traces[i]) {
                // State dumps are each session's own.
                if !name.contains("statedump") {
                    recorded.entry(UserEvent { host, process, name }).or_default().push((span, i));
                }
            }
        }
        let mut found = BTreeSet::new();
        for mut same in recorded.into_values() {
            same.sort_unstable();
            let mut latest: Option<(Timestamp, usize)> = None;
            for (span, i) in same {
                if let Some((_, other)) = latest.filter(|(end, _)| span.start < *end) {
                    found.extend([i, other]);
                }
                latest = latest.max(Some((span.end, i)));
            }
        }
        found.into_iter().collect()
    }
}
