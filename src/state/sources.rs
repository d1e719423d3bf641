//! Traces, ready to be read as typed events.
//!
//! In: traces on one time line. Out: for each a binding, a compiled plan, its host, and where it lost events; and, chunk by
//! chunk, a [`Batch`] of typed events in their total order. Shared by all passes over the events of a recording; what
//! a pass wants to be decoded it says by the [`Binding`]s it makes. Cost: that of decoding.

use crate::base::notice::Notices;
use crate::base::time::Span;
use crate::base::work::{Cancel, Cancelled, Work, in_order};
use crate::event::batch::{Batch, straighten};
use crate::event::bind::{Binder, Binding};
use crate::event::kind::{Event, Kind, WhoId};
use crate::input::record::Record;
use crate::input::trace::{Plan, Trace};
use crate::state::engine::{Chunk, Piece};
use crate::state::kernel::{Generation, Origin};
use crate::state::recording::HostId;
use std::sync::{Mutex, PoisonError};

/// One trace, ready to be read.
pub struct Source {
    /// What its classes mean.
    pub binding: Binding,
    plan: Plan,
    /// By stream: where its CPU lost events of which a machine must forget what it knows.
    pub losses: Vec<Vec<Span>>,
}

/// All traces of a recording.
pub struct Sources {
    /// Name and kernel release of each host.
    pub hosts: Vec<(String, Option<String>)>,
    /// By trace.
    pub origins: Vec<Origin>,
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
        work: &Work,
    ) -> Result<Sources, Cancelled> {
        let (hosts, host_of) = hosts(traces, labels);
        let mut sources = Sources { hosts, origins: Vec::new(), all: Vec::new(), spare: Mutex::default() };
        let source = |i: usize| {
            let trace = traces[i];
            let binding = bind(trace);
            let losses = trace.streams().iter().map(|stream| {
                let spans = stream.losses.iter().map(|(from, to, _)| Span::new(*from, *to));
                spans.filter(|_| binding.switches.contains(&stream.stream_class)).collect()
            });
            let losses = losses.collect();
            Source { plan: trace.compile(&binding.projection), binding, losses }
        };
        in_order(work, traces.len(), source, |i, source| {
            let host = host_of[i];
            let release = sources.hosts.get(host.index()).and_then(|(_, release)| release.as_deref());
            let generation = Generation::of(release);
            sources.origins.push(Origin { host, kernel: source.binding.kernel, generation });
            sources.all.push(source);
        })?;
        Ok(sources)
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
            let wrong = piece.read(trace, &source.plan, chunk, cancel, landmark, |record, inside| {
                if inside {
                    seen(piece, record);
                    binder.read(record, &mut batch, &mut events);
                } else if let Some(before) = &mut before {
                    binder.read(record, &mut batch, &mut earlier);
                    earlier.drain(..).for_each(|event| before(&event));
                }
            });
            notices.merge(&wrong);
            let here = |span: &&Span| chunk.holds(span.start);
            let cpu = trace.streams().get(piece.stream.index()).and_then(|stream| stream.cpu);
            let cpu = cpu.and_then(|cpu| u16::try_from(cpu).ok()).unwrap_or(u16::MAX);
            let (trace, kind) = (piece.trace as u16, Kind::Lost);
            let event = |span: &Span| Event { time: span.start, who: WhoId::NOBODY, trace, cpu, kind };
            // Behind what was recorded at the same time.
            events.extend(source.losses.get(piece.stream.index()).into_iter().flatten().filter(here).map(event));
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

/// The host of each trace: equal label, name and clock uuid are one kernel.
fn hosts(traces: &[&Trace], labels: &[Option<String>]) -> (Vec<(String, Option<String>)>, Vec<HostId>) {
    let mut keys: Vec<(Option<&str>, &str, Option<&str>)> = Vec::new();
    let mut hosts: Vec<(String, Option<String>)> = Vec::new();
    let mut of = Vec::new();
    for (i, trace) in traces.iter().enumerate() {
        let name = trace.environment("hostname").unwrap_or("");
        let label = labels.get(i).and_then(|l| l.as_deref());
        let key = (label, name, trace.clock_uuid());
        let at = keys.iter().position(|k| *k == key).unwrap_or_else(|| {
            keys.push(key);
            hosts.push((name.to_owned(), None));
            keys.len() - 1
        });
        if let Some(release) = trace.environment("kernel_release") {
            hosts[at].1 = Some(release.to_owned());
        }
        of.push(HostId::at(at));
    }
    (hosts, of)
}
