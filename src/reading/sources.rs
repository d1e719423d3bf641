//! Traces, ready to be read as typed events.
//!
//! In: traces on one time line. Out: for each a binding, a compiled plan, its host, and where it lost events; and, chunk by
//! chunk, a [`Batch`] of typed events in their total order. Shared by all passes over the events of a recording; what
//! a pass wants to be decoded it says by the [`Binding`]s it makes. Cost: that of decoding.

use crate::base::ctx::{Cancel, Cancelled, Ctx};
use crate::base::notice::Notices;
use crate::base::parallel::in_order;
use crate::base::time::{Span, Timestamp};
use crate::event::host::{HostId, TraceOrigin};
use crate::event::kind::{Event, Kind, LossSource, WhoId};
use crate::event::prev_state::Generation;
use crate::input::record::{ClassId, Record};
use crate::input::stream::Stream;
use crate::input::trace::{Plan, Trace};
use crate::reading::batch::{Batch, straighten};
use crate::reading::bind::{Binder, Binding, is_kernel};
use crate::reading::dialect::RELEASES;
use crate::reading::engine::{Chunk, Piece};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

/// One trace, ready to be read.
pub struct Source {
    /// What its classes mean.
    pub binding: Binding,
    plan: Plan,
    /// By stream: where its CPU lost events of which a machine must forget what it knows.
    losses: Vec<Vec<Loss>>,
}

/// Events of a CPU that the tracer lost.
#[derive(Clone, Copy, Debug)]
struct Loss {
    /// Over which events may be missing.
    span: Span,
    /// When the next packet of the stream begins, at the latest the end of `span`. Tracers discard events while no packet
    /// is free, so nothing was recorded up to here; the counter of that next packet is read at its end, which is where `span` ends.
    resumes: Timestamp,
}

impl Loss {
    fn new(stream: &Stream, start: Timestamp, end: Timestamp) -> Loss {
        let next = stream.packets.iter().filter_map(|packet| packet.begin).find(|begin| *begin >= start);
        Loss { span: Span::new(start, end), resumes: next.map_or(end, |begin| begin.min(end)) }
    }
}

/// An event that a trace recorded: the trace's position, the stream class and the class.
type Copied = (usize, u32, ClassId);

/// A kind of event of a process, where traces tell of one each: host, the process's id, name of the event.
type ProcessKind<'t> = (HostId, Option<&'t str>, String);

/// All traces of a recording.
pub struct Sources {
    /// Name and kernel release of each host.
    pub hosts: Vec<(String, Option<String>)>,
    /// By trace.
    pub origins: Vec<TraceOrigin>,
    /// By trace.
    pub all: Vec<Source>,
    /// Buffers that were used: fresh memory costs more than decoding into it.
    spare: Mutex<Vec<Vec<Event>>>,
}

impl Sources {
    /// Bind and compile `traces`, each on a worker; under different labels, equal hosts are two.
    pub fn new(
        traces: &[&Trace],
        labels: &[Option<String>],
        bind: impl Fn(&Trace) -> Binding + Sync,
        ctx: &Ctx,
    ) -> Result<Sources, Cancelled> {
        let (hosts, host_of) = hosts(traces, labels);
        let mut sources = Sources { hosts, origins: Vec::new(), all: Vec::new(), spare: Mutex::default() };
        let source = |i: usize| {
            let trace = traces[i];
            let binding = bind(trace);
            let losses = trace.streams().iter().map(|stream| {
                let losses = stream.losses.iter().map(|loss| Loss::new(stream, loss.from, loss.to));
                losses.filter(|_| binding.switches.contains(&stream.stream_class)).collect()
            });
            let losses = losses.collect();
            Source { plan: trace.compile(&binding.projection), binding, losses }
        };
        in_order(ctx, traces.len(), source, |i, source| {
            let host = host_of[i];
            let release = sources.hosts.get(host.index()).and_then(|(_, release)| release.as_deref());
            let generation = Generation::of(release);
            sources.origins.push(TraceOrigin { host, kernel: source.binding.kernel, generation });
            sources.all.push(source);
        })?;
        sources.part_copies(traces);
        Ok(sources)
    }

    /// Sessions that ran at once on one host recorded the same events: each is followed in one of them, over the time that it
    /// covers. One that lost nothing goes first, then the one that recorded most kinds of events.
    fn part_copies(&mut self, traces: &[&Trace]) {
        let kernels: Vec<usize> = (0..self.all.len()).filter(|i| self.origins[*i].kernel).collect();
        let mut copies: BTreeMap<(HostId, String), Vec<Copied>> = BTreeMap::new();
        let mut kinds = vec![0; self.all.len()];
        for i in kernels.into_iter().filter(|_| self.origins.iter().filter(|o| o.kernel).count() > 1) {
            for (name, stream_class, class) in self.all[i].binding.followed(traces[i]) {
                kinds[i] += 1;
                copies.entry((self.origins[i].host, name)).or_default().push((i, stream_class, class));
            }
        }
        for same in copies.into_values().filter(|same| same.len() > 1) {
            let streams = |(i, class, _): &Copied| {
                let class = *class;
                traces[*i].streams().iter().filter(move |s| s.stream_class == class)
            };
            let lossless = |copy: &&Copied| streams(copy).all(|s| s.losses.is_empty());
            let best = same.iter().max_by_key(|copy| (lossless(copy), kinds[copy.0], std::cmp::Reverse(copy.0)));
            let Some(best) = best else { continue };
            let packets = || streams(best).flat_map(|s| &s.packets);
            let bounds = packets().filter_map(|p| p.begin).min().zip(packets().filter_map(|p| p.end).max());
            let Some((begin, end)) = bounds else { continue };
            let span = Span::new(begin, end.saturating_add(1));
            for (i, stream_class, class) in same.iter().filter(|copy| copy.0 != best.0) {
                let source = &mut self.all[*i];
                source.binding.leave_to_another(*class, span);
                if source.binding.is_switch(*class) {
                    let streams = traces[*i].streams().iter().zip(&mut source.losses);
                    let own = streams.filter(|(stream, _)| stream.stream_class == *stream_class);
                    own.for_each(|(_, losses)| losses.retain(|loss| !span.contains(loss.span.start)));
                }
            }
        }
    }

    /// User-space traces of one host that overlap in time and have kinds of events in common: sessions at once may have recorded the
    /// same events of the same processes. Traces of one process each can do so where it is the same one.
    pub fn may_hold_copies(&self, traces: &[&Trace]) -> Vec<usize> {
        let users: Vec<usize> = (0..self.all.len()).filter(|i| !self.origins[*i].kernel).collect();
        if users.len() < 2 {
            return Vec::new();
        }
        let process = |i: usize| traces[i].environment("vpid");
        let shared: BTreeSet<HostId> =
            users.iter().filter(|i| process(**i).is_none()).map(|i| self.origins[*i].host).collect();
        let mut like: BTreeMap<ProcessKind<'_>, Vec<(Span, usize)>> = BTreeMap::new();
        for i in users {
            let packets = || traces[i].streams().iter().flat_map(|s| &s.packets);
            let bounds = packets().filter_map(|p| p.begin).min().zip(packets().filter_map(|p| p.end).max());
            let Some((begin, end)) = bounds else { continue };
            let host = self.origins[i].host;
            let process = process(i).filter(|_| !shared.contains(&host));
            for (kind, ..) in self.all[i].binding.followed(traces[i]) {
                // Enumerations are each session's own.
                if !kind.contains("statedump") {
                    like.entry((host, process, kind)).or_default().push((Span::new(begin, end.saturating_add(1)), i));
                }
            }
        }
        let mut found = BTreeSet::new();
        for mut same in like.into_values() {
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

    /// The typed events of a chunk. `seen` is called with every record, stream by stream: of classes that the binding does
    /// not decode, only the time is known. `before` is called with the last switch before the chunk in each packet that reaches into it.
    pub fn read(
        &self,
        traces: &[&Trace],
        chunk: &Chunk,
        cancel: &Cancel,
        notices: &mut Notices,
        mut seen: impl FnMut(&Piece, &Record<'_, '_>),
        mut before: Option<&mut dyn FnMut(&Event)>,
    ) -> Batch {
        let mut batch = Batch::default();
        batch.events = self.buffer();
        let mut streams = Vec::with_capacity(chunk.pieces.len());
        let mut earlier = Vec::new();
        let seeds = before.is_some();
        for piece in &chunk.pieces {
            let (Some(source), Some(trace)) = (self.all.get(piece.trace), traces.get(piece.trace)) else { continue };
            let mut binder = Binder::new(&source.binding, piece.trace as u16);
            let mut events = self.buffer();
            let landmark = |class| seeds && source.binding.is_switch(class);
            let (wrong, damaged) = piece.read(trace, &source.plan, chunk, cancel, landmark, |record, inside| {
                if inside {
                    seen(piece, record);
                    binder.read(record, &mut batch, &mut events);
                } else if let Some(before) = &mut before {
                    binder.read(record, &mut batch, &mut earlier);
                    earlier.drain(..).for_each(|event| before(&event));
                }
            });
            notices.merge(&wrong);
            let stream = trace.streams().get(piece.stream.index());
            let followed = stream.is_some_and(|stream| source.binding.switches.contains(&stream.stream_class));
            let cpu = stream.and_then(|stream| stream.cpu);
            let cpu = cpu.and_then(|cpu| u16::try_from(cpu).ok()).unwrap_or(u16::MAX);
            let lost = |source, time, until, resumes| Event {
                time,
                who: WhoId::NOBODY,
                trace: piece.trace as u16,
                cpu,
                kind: Kind::Lost { source, until, resumes },
            };
            // Behind what was recorded at the same time.
            let reported = source.losses.get(piece.stream.index()).into_iter().flatten();
            let reported = reported.filter(|loss| chunk.holds(loss.span.start));
            events.extend(
                reported.map(|Loss { span, resumes }| lost(LossSource::Reported, span.start, span.end, *resumes)),
            );
            let damaged = damaged.iter().filter(|_| followed);
            events.extend(damaged.map(|span| lost(LossSource::Damaged, span.start, span.end, span.end)));
            straighten(&mut events);
            streams.push(events);
        }
        batch.merge(&streams);
        streams.into_iter().for_each(|events| self.give_back(events));
        batch
    }

    fn buffer(&self) -> Vec<Event> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    fn give_back(&self, mut events: Vec<Event>) {
        events.clear();
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(events);
    }

    /// A batch is not needed any more.
    pub fn recycle(&self, batch: Batch) {
        self.give_back(batch.events);
    }
}

/// What tells hosts apart: label, name, clock uuid.
type HostKey<'t> = (Option<&'t str>, &'t str, Option<&'t str>);

/// The host of each trace: equal label, name and clock uuid are one kernel. A user-space trace belongs to the only kernel
/// trace of its host name, by whatever clock it was recorded.
fn hosts(traces: &[&Trace], labels: &[Option<String>]) -> (Vec<(String, Option<String>)>, Vec<HostId>) {
    let label = |i: usize| labels.get(i).and_then(|l| l.as_deref());
    let own: Vec<HostKey<'_>> =
        (0..traces.len()).map(|i| (label(i), traces[i].host().unwrap_or(""), traces[i].clock_uuid())).collect();
    let mut kernels: Vec<HostKey<'_>> =
        traces.iter().zip(&own).filter(|(trace, _)| is_kernel(trace)).map(|(_, key)| *key).collect();
    kernels.sort_unstable();
    kernels.dedup();
    let mut keys: Vec<HostKey<'_>> = Vec::new();
    let mut hosts: Vec<(String, Option<String>)> = Vec::new();
    let mut of = Vec::new();
    for (trace, own) in traces.iter().zip(own) {
        let mut namesakes =
            kernels.iter().filter(|(label, name, _)| (*label, *name) == (own.0, own.1) && !name.is_empty());
        let only = namesakes.next().filter(|_| namesakes.next().is_none());
        let key = if kernels.contains(&own) { own } else { only.copied().unwrap_or(own) };
        let at = keys.iter().position(|k| *k == key).unwrap_or_else(|| {
            keys.push(key);
            hosts.push((key.1.to_owned(), None));
            keys.len() - 1
        });
        if let Some(release) = RELEASES.iter().find_map(|entry| trace.environment(entry)) {
            hosts[at].1 = Some(release.to_owned());
        }
        of.push(HostId::at(at));
    }
    (hosts, of)
}
