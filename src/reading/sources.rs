//! Traces, ready to be read as typed events.
//!
//! In: traces on one time line. Out: for each a binding, a compiled plan, its host, and where it lost events; and,
//! chunk by chunk, a [`Batch`] of typed events in their total order. All passes over the events of a recording share
//! it; the [`Binding`]s that a pass makes choose what is decoded. Cost: that of decoding.

use crate::base::ctx::{Cancel, Cancelled, Ctx};
use crate::base::heap::{MemoryPart, block};
use crate::base::notice::Notices;
use crate::base::parallel::in_order;
use crate::base::time::{Span, Timestamp};
use crate::event::host::{HostId, TraceOrigin};
use crate::event::kind::{Event, Kind, LossSource, ThreadContextId};
use crate::event::prev_state::Generation;
use crate::input::record::Record;
use crate::input::stream::{Loss, Stream};
use crate::input::trace::{Plan, Trace};
use crate::reading::batch::{Batch, sort_by_time};
use crate::reading::bind::{Binder, Binding, is_kernel};
use crate::reading::chunks::{Chunk, ChunkSide, PacketRange, StreamSource};
use crate::reading::density::EventDensity;
use crate::reading::dialect::RELEASES;
use crate::reading::packet_times::PacketTimes;
use crate::reading::places::StreamPlaces;
use foldhash::HashMap;
use get_size2::GetSize;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// One trace, ready to be read.
#[derive(GetSize)]
pub struct BoundTrace {
    /// The meaning of its classes; traces of one schema share it.
    pub binding: Arc<Binding>,
    /// Shared like the binding, whatever becomes of that.
    plan: Arc<Plan>,
    /// By stream, where its switches are followed: the losses of its CPU.
    #[get_size(ignore)]
    pub(super) losses: Vec<Vec<CpuLoss>>,
    /// By stream: where chunks left its packets.
    #[get_size(ignore)]
    places: Vec<StreamPlaces>,
}

/// Streams of which none has more than an eighth of a chunk's events, as a rule.
const MANY_STREAMS: usize = 16;

/// Events of a CPU that the tracer lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct CpuLoss {
    /// The time over which events may be missing.
    pub span: Span,
    /// The begin of the stream's next packet, at the latest the end of `span`. Tracers discard events while no packet
    /// is free, so they recorded nothing up to here; they read the counter of that next packet at its end, where `span`
    /// ends.
    resumes: Timestamp,
}

impl CpuLoss {
    fn all(stream: &Stream) -> Vec<CpuLoss> {
        let loss = |loss: &Loss| {
            let next = stream.packets.iter().filter_map(|packet| packet.begin).find(|begin| *begin >= loss.from);
            CpuLoss { span: Span::new(loss.from, loss.to), resumes: next.map_or(loss.to, |begin| begin.min(loss.to)) }
        };
        stream.losses.iter().map(loss).collect()
    }
}

/// A loss of events of a CPU that the tracer reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReportedLoss {
    pub start: Timestamp,
    /// When the CPU's next packet began.
    pub resumes: Timestamp,
    pub host: HostId,
    pub cpu: u16,
}

/// All traces of a recording, ready to be read.
pub struct BoundTraces {
    /// Hosts, by id.
    pub hosts: Vec<HostName>,
    /// Host and tracer of each trace.
    pub origins: Vec<TraceOrigin>,
    /// Each trace, bound.
    pub all: Vec<BoundTrace>,
    /// Buffers of chunks to use again: fresh memory costs more than decoding into it.
    spare: Mutex<Vec<Vec<Event>>>,
    /// How dense events are, where it was measured.
    pub(super) density: Option<EventDensity>,
    /// The events that the largest chunk should have by that.
    pub(super) most_events: Option<usize>,
    /// When the events of crowded packets are.
    pub(super) times: PacketTimes,
}

impl BoundTraces {
    /// Bind and compile `traces`, each schema once and on a worker; `bind` may depend on the schema alone. Under
    /// different labels, equal hosts are two.
    pub fn new(
        traces: &[&Trace],
        labels: &[Option<String>],
        bind: impl Fn(&Trace) -> Binding + Sync,
        ctx: &Ctx,
    ) -> Result<BoundTraces, Cancelled> {
        let (hosts, host_of) = hosts(traces, labels);
        let (spare, times, density, most_events) = (Mutex::default(), PacketTimes::default(), None, None);
        let (origins, all) = (Vec::new(), Vec::new());
        let mut bound = BoundTraces { hosts, origins, all, spare, density, most_events, times };
        let schemas = Schemas::of(traces);
        let compile = |schema: usize| {
            let trace = traces[schemas.first[schema]];
            let binding = bind(trace);
            (Arc::new(trace.compile(&binding.projection)), Arc::new(binding))
        };
        let mut compiled = Vec::with_capacity(schemas.first.len());
        in_order(ctx, schemas.first.len(), compile, |_, one| compiled.push(one))?;
        for ((trace, host), schema) in traces.iter().zip(host_of).zip(schemas.of) {
            let (plan, binding) = compiled[schema].clone();
            let release = bound.hosts.get(host.index()).and_then(|host| host.kernel_release.as_deref());
            let generation = Generation::of(release);
            bound.origins.push(TraceOrigin { host, kernel: binding.kernel, generation });
            let losses = |stream: &Stream| {
                if binding.switches.contains(&stream.stream_class) { CpuLoss::all(stream) } else { Vec::new() }
            };
            let losses = trace.streams().iter().map(losses).collect();
            let places = trace.streams().iter().map(|_| StreamPlaces::default()).collect();
            bound.all.push(BoundTrace { plan, binding, losses, places });
        }
        bound.follow_each_event_once(traces);
        ctx.progress.parts.hold(MemoryPart::OpenedTraces, Trace::bytes_of(traces.iter().copied()) + bound.plan_bytes());
        Ok(bound)
    }

    /// Bytes on the heap of the bindings and plans, each once.
    fn plan_bytes(&self) -> usize {
        self.all.get_heap_size()
    }

    /// Bytes of the buffers that are not in use: of all of them once no chunk is left.
    pub fn spare_bytes(&self) -> usize {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).iter().map(block).sum()
    }

    /// The typed events of a chunk. `seen` is called with every record, stream by stream; records of classes that the
    /// binding does not decode have only a time. `before` is called with the last switch before the chunk in each
    /// packet that overlaps it.
    pub fn read(
        &self,
        traces: &[&Trace],
        chunk: &Chunk,
        cancel: &Cancel,
        notices: &mut Notices,
        mut seen: impl FnMut(&PacketRange, &Record<'_, '_>),
        mut before: Option<&mut dyn FnMut(&Event)>,
    ) -> Batch {
        let mut batch = Batch::default();
        batch.events = self.buffer();
        // The events of all streams, one after the other: one buffer of the size of the merged one, not many that each
        // grow to the largest stream.
        let mut events = self.buffer();
        // What is reserved at once is not copied as it grows, and no more than is needed.
        let expected = self.density.map_or(0, |density| density.events(chunk.bytes));
        events.reserve_exact(expected);
        // Of many streams it grows by an eighth where that is not enough, not by as much again.
        let step = if chunk.ranges.len() >= MANY_STREAMS { expected / 8 } else { 0 };
        let mut streams: Vec<Range<usize>> = Vec::with_capacity(chunk.ranges.len());
        let mut earlier = Vec::new();
        let seeks_switch = before.is_some();
        for range in &chunk.ranges {
            let (Some(bound), Some(trace)) = (self.all.get(range.trace), traces.get(range.trace)) else { continue };
            let Some(places) = bound.places.get(range.stream.index()) else { continue };
            let source = StreamSource { trace, plan: &bound.plan, places };
            let mut binder = Binder::new(&bound.binding, range.trace as u16);
            let start = events.len();
            if events.capacity() - start < step {
                events.reserve_exact(step);
            }
            let checkpoint = |class| seeks_switch && bound.binding.is_switch(class);
            let outcome = range.read(source, chunk, cancel, checkpoint, |record, side| {
                if side == ChunkSide::Inside {
                    seen(range, record);
                    binder.read(record, &mut batch, &mut events);
                } else if let Some(before) = &mut before {
                    binder.read(record, &mut batch, &mut earlier);
                    earlier.drain(..).for_each(|event| before(&event));
                }
            });
            notices.merge(&outcome.notices);
            bound.add_losses(range, trace, chunk, &outcome.damaged, &mut events);
            sort_by_time(&mut events[start..]);
            streams.push(start..events.len());
        }
        let streams: Vec<&[Event]> = streams.into_iter().map(|stream| &events[stream]).collect();
        batch.merge(&streams);
        self.give_back(events);
        batch
    }

    /// The reported losses that began before `t` and ended later, by their start.
    pub fn losses_over(&self, traces: &[&Trace], t: Timestamp) -> Vec<ReportedLoss> {
        let mut all = Vec::new();
        for ((trace, bound), origin) in traces.iter().zip(&self.all).zip(&self.origins) {
            for (stream, losses) in trace.streams().iter().zip(&bound.losses) {
                let (host, cpu) = (origin.host, number_of(stream));
                let over = losses.iter().filter(|loss| loss.span.start < t && loss.resumes > t);
                all.extend(over.map(|loss| ReportedLoss { start: loss.span.start, resumes: loss.resumes, host, cpu }));
            }
        }
        all.sort_unstable();
        all
    }

    /// When the events of crowded packets are: chunks are cut by it.
    pub fn packet_times(&self) -> &PacketTimes {
        &self.times
    }

    fn buffer(&self) -> Vec<Event> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    fn give_back(&self, mut events: Vec<Event>) {
        events.clear();
        // After a chunk that had more events than was reckoned.
        if let Some(most) = self.most_events {
            events.shrink_to(most);
        }
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(events);
    }

    /// Keep the buffer of a batch that is no longer needed for the next one.
    pub fn recycle(&self, batch: Batch) {
        self.give_back(batch.events);
    }
}

/// Which traces share a schema.
struct Schemas {
    /// By schema: the position of its first trace.
    first: Vec<usize>,
    /// By trace: its schema.
    of: Vec<usize>,
}

impl Schemas {
    fn of(traces: &[&Trace]) -> Schemas {
        let mut schemas = Schemas { first: Vec::new(), of: Vec::with_capacity(traces.len()) };
        let mut known: HashMap<usize, usize> = HashMap::default();
        for (i, trace) in traces.iter().enumerate() {
            let next = schemas.first.len();
            let schema = trace.schema_key().map_or(next, |key| *known.entry(key).or_insert(next));
            if schema == next {
                schemas.first.push(i);
            }
            schemas.of.push(schema);
        }
        schemas
    }
}

impl BoundTrace {
    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Add an event for each loss that begins in the chunk, after the other events of the same time.
    fn add_losses(&self, range: &PacketRange, trace: &Trace, chunk: &Chunk, damaged: &[Span], events: &mut Vec<Event>) {
        let Some(stream) = trace.streams().get(range.stream.index()) else { return };
        let cpu = number_of(stream);
        let lost = |source, span: Span, resumes| Event {
            time: span.start,
            who: ThreadContextId::ABSENT,
            trace: range.trace as u16,
            cpu,
            kind: Kind::Lost { source, until: span.end, resumes },
        };
        let reported = self.losses.get(range.stream.index()).into_iter().flatten();
        let reported = reported.filter(|loss| chunk.holds(loss.span.start));
        events.extend(reported.map(|loss| lost(LossSource::Reported, loss.span, loss.resumes)));
        if self.binding.switches.contains(&stream.stream_class) {
            events.extend(damaged.iter().map(|span| lost(LossSource::Damaged, *span, span.end)));
        }
    }
}

/// The CPU of a stream as its events name it.
fn number_of(stream: &Stream) -> u16 {
    stream.cpu.and_then(|cpu| u16::try_from(cpu).ok()).unwrap_or(u16::MAX)
}

/// A host, as its traces name it.
#[derive(Clone, Debug)]
pub struct HostName {
    pub name: String,
    /// Release of its kernel, where recorded.
    pub kernel_release: Option<String>,
}

/// Label, name and clock uuid: traces with all three in common are of one host.
type HostKey<'t> = (Option<&'t str>, &'t str, Option<&'t str>);

/// The host of each trace: equal label, name and clock uuid are one kernel. A user-space trace belongs to the only
/// kernel trace of its host name, by whatever clock it was recorded.
fn hosts(traces: &[&Trace], labels: &[Option<String>]) -> (Vec<HostName>, Vec<HostId>) {
    let label = |i: usize| labels.get(i).and_then(|l| l.as_deref());
    let own: Vec<HostKey<'_>> =
        (0..traces.len()).map(|i| (label(i), traces[i].host().unwrap_or(""), traces[i].clock_uuid())).collect();
    let mut kernels: Vec<HostKey<'_>> =
        traces.iter().zip(&own).filter(|(trace, _)| is_kernel(trace)).map(|(_, key)| *key).collect();
    kernels.sort_unstable();
    kernels.dedup();
    let mut known: HashMap<HostKey<'_>, usize> = HashMap::default();
    let mut hosts: Vec<HostName> = Vec::new();
    let mut of = Vec::new();
    for (trace, own) in traces.iter().zip(own) {
        let name = (own.0, own.1);
        let first = kernels.partition_point(|kernel| (kernel.0, kernel.1) < name);
        let mut namesakes =
            kernels[first..].iter().take_while(|kernel| (kernel.0, kernel.1) == name && !name.1.is_empty());
        let only = namesakes.next().filter(|_| namesakes.next().is_none());
        let key = if kernels.binary_search(&own).is_ok() { own } else { only.copied().unwrap_or(own) };
        let at = *known.entry(key).or_insert(hosts.len());
        if at == hosts.len() {
            hosts.push(HostName { name: key.1.to_owned(), kernel_release: None });
        }
        if let Some(release) = RELEASES.iter().find_map(|entry| trace.environment(entry)) {
            hosts[at].kernel_release = Some(release.to_owned());
        }
        of.push(HostId::at(at));
    }
    (hosts, of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::{self, Argument, Opened, Source};

    #[test]
    fn bound_traces_compile_equal_metadata_once() {
        let ctx = Ctx::new(2);
        let folder = |name: &str| format!("fixtures/traces/{name}");
        let arguments = ["lock-contention", "lost-events", "lock-contention"].map(folder);
        let arguments: Vec<Argument> =
            (0..3).zip(arguments).map(|(i, f)| Argument::parse(format!("{i}={f}"))).collect();
        let Ok(Opened::Traces(sources)) = input::open(&arguments, &ctx) else { panic!("the fixtures are traces") };
        let traces: Vec<&Trace> = sources.iter().map(|source| &source.trace).collect();
        let labels: Vec<Option<String>> = sources.iter().map(|source| Some(source.label.clone())).collect();
        let bound = BoundTraces::new(&traces, &labels, |trace| Binding::new(trace, &[]), &ctx).unwrap();
        let labelled = |label: &str| -> Vec<Arc<Binding>> {
            let own = |(source, _): &(&Source, &BoundTrace)| source.label == label;
            sources.iter().zip(&bound.all).filter(own).map(|(_, bound)| Arc::clone(&bound.binding)).collect()
        };
        let (first, other, again) = (labelled("0"), labelled("1"), labelled("2"));
        assert!(!first.is_empty() && first.len() == again.len());
        assert!(first.iter().zip(&again).all(|(a, b)| Arc::ptr_eq(a, b)));
        assert!(other.iter().all(|a| !first.iter().any(|b| Arc::ptr_eq(a, b))));
    }
}
