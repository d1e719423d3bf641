//! Events that several traces of a host recorded: sessions that ran at once.
//!
//! In: bound traces. Out: bindings that follow each event of a kernel in one trace, and the user-space traces that may
//! hold the same events twice. Cost: a look at each record class.

use super::bind::FollowedEvent;
use super::sources::BoundTraces;
use crate::base::time::{Span, Timestamp};
use crate::event::host::HostId;
use crate::input::record::ClassId;
use crate::input::stream::Stream;
use crate::input::trace::Trace;
use std::collections::{BTreeMap, BTreeSet};

/// A record class in which an event is recorded.
#[derive(Clone, Copy, Debug)]
struct Copy {
    /// Position of the trace.
    trace: usize,
    stream_class: u32,
    class: ClassId,
}

impl Copy {
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

/// From the first to the last packet of some streams that name their times.
fn covered<'t>(streams: impl Iterator<Item = &'t Stream> + Clone) -> Option<Span> {
    let begin = streams.clone().flat_map(|s| &s.packets).filter_map(|p| p.begin).min()?;
    let end = streams.flat_map(|s| &s.packets).filter_map(|p| p.end).max()?;
    Some(Span::new(begin, end.saturating_add(1)))
}

impl BoundTraces {
    /// Follow each event of a kernel in only one of the traces that recorded it, over the time that this trace covers.
    /// A trace without losses is preferred, then the one that recorded most kinds of events.
    pub(super) fn follow_each_event_once(&mut self, traces: &[&Trace]) {
        let kernels: Vec<usize> = (0..self.all.len()).filter(|i| self.origins[*i].kernel).collect();
        if kernels.len() < 2 {
            return;
        }
        let mut copies: BTreeMap<(HostId, String), Vec<Copy>> = BTreeMap::new();
        let mut kinds = vec![0; self.all.len()];
        for trace in kernels {
            for FollowedEvent { name, stream_class, class } in self.all[trace].binding.followed(traces[trace]) {
                kinds[trace] += 1;
                let host = self.origins[trace].host;
                copies.entry((host, name)).or_default().push(Copy { trace, stream_class, class });
            }
        }
        for same in copies.into_values().filter(|same| same.len() > 1) {
            let rank = |copy: &&Copy| {
                let is_lossless = copy.streams(traces).all(|s| s.losses.is_empty());
                (is_lossless, kinds[copy.trace], std::cmp::Reverse(copy.trace))
            };
            let Some(best) = same.iter().max_by_key(rank) else { continue };
            let streams: Vec<&Stream> = best.streams(traces).collect();
            let Some(span) = covered(streams.into_iter()) else { continue };
            for copy in same.iter().filter(|copy| copy.trace != best.trace) {
                self.follow_elsewhere(*copy, span, traces);
            }
        }
    }

    /// Follow an event in another trace over `span`; where it is the context switch, the losses of its streams with it.
    fn follow_elsewhere(&mut self, copy: Copy, span: Span, traces: &[&Trace]) {
        let bound = &mut self.all[copy.trace];
        bound.binding.follow_elsewhere(copy.class, span);
        if bound.binding.is_switch(copy.class) {
            let streams = traces[copy.trace].streams().iter().zip(&mut bound.losses);
            let own = streams.filter(|(stream, _)| stream.stream_class == copy.stream_class);
            own.for_each(|(_, losses)| losses.retain(|loss| !span.contains(loss.span.start)));
        }
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
