//! The kernel pass: traces in, a sealed recording out.
//!
//! An [`Analysis`] whose partial is a batch of typed events (read, bound, sorted and merged over the streams by the
//! workers) and whose merge steps the machine through it. Decoding dominates, so the serial part hides behind it on a
//! few cores. Memory: the batches in flight and the recording.

use super::handlers::Handlers;
use super::machine::{Machine, Origin};
use super::prev_state::Generation;
use crate::base::notice::{Notice, Notices};
use crate::base::time::Span;
use crate::base::work::{Cancel, Cancelled, Work};
use crate::event::batch::{Batch, straighten};
use crate::event::bind::{Binder, Binding};
use crate::event::kind::{Event, Kind, WhoId};
use crate::event::task::TaskDefinition;
use crate::input::ctf::{Plan, Stream, Trace};
use crate::state::engine::{self, Analysis, Chunk, ChunkTarget};
use crate::state::recording::{HostId, Recording};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// How the pass is run; the result does not depend on `chunks`.
#[derive(Clone, Debug)]
pub struct Options {
    /// Size of chunks.
    pub chunks: ChunkTarget,
    /// What interrupt handlers' names mean.
    pub handlers: Handlers,
    /// Labels that the user gave the traces, by position (missing: none): under different labels, equal hosts are two.
    pub labels: Vec<Option<String>>,
}

impl Default for Options {
    fn default() -> Self {
        Options { chunks: ChunkTarget::default(), handlers: Handlers::built_in(), labels: Vec::new() }
    }
}

/// One trace, ready to be read.
struct Source {
    binding: Binding,
    plan: Plan,
    /// By stream: where its CPU lost events of which the machine must forget what it knows.
    losses: Vec<Vec<Span>>,
}

struct KernelPass<'w> {
    sources: Vec<Source>,
    events: &'w AtomicU64,
}

impl Analysis for KernelPass<'_> {
    type Partial = (Batch, Notices);
    type Whole = (Machine, Notices);

    fn chunk(&self, traces: &[&Trace], chunk: &Chunk, cancel: &Cancel) -> Self::Partial {
        let mut batch = Batch::default();
        let mut notices = Notices::default();
        let mut streams = Vec::with_capacity(chunk.pieces.len());
        for piece in &chunk.pieces {
            let source = &self.sources[piece.trace];
            let mut binder = Binder::new(&source.binding, piece.trace as u16);
            let mut events: Vec<Event> = Vec::new();
            let trace = traces[piece.trace];
            piece.read(trace, &source.plan, chunk, cancel, &mut notices, |record| {
                binder.read(record, &mut batch, &mut events);
            });
            let here = |span: &&Span| chunk.from <= span.start && span.start < chunk.until;
            let lost: Vec<&Span> = source.losses[piece.stream.index()].iter().filter(here).collect();
            if !lost.is_empty() {
                let cpu = trace.streams()[piece.stream.index()].cpu.and_then(|cpu| u16::try_from(cpu).ok());
                let (trace, cpu) = (piece.trace as u16, cpu.unwrap_or(u16::MAX));
                let event = |s: &&Span| Event { time: s.start, who: WhoId::NOBODY, trace, cpu, kind: Kind::Lost };
                // Behind what was recorded at the same time.
                events.extend(lost.iter().map(event));
            }
            straighten(&mut events);
            streams.push(events);
        }
        batch.merge(&streams);
        self.events.fetch_add(batch.events.len() as u64, Ordering::Relaxed);
        (batch, notices)
    }

    fn merge(&self, (machine, notices): &mut Self::Whole, (batch, theirs): Self::Partial) {
        machine.absorb(&batch);
        notices.merge(&theirs);
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

/// Run the kernel pass over some traces on one time line, with marks for `tasks`.
///
/// At most 65,536 traces are read. Ids in the result are given in the order of events: nothing depends on the number
/// of workers or the size of chunks.
pub fn record(
    traces: &[&Trace],
    tasks: &[TaskDefinition],
    options: &Options,
    work: &Work,
) -> Result<(Recording, Notices), Cancelled> {
    let (traces, left_out) = traces.split_at(traces.len().min(1 << 16));
    let (hosts, host_of) = hosts(traces, &options.labels);
    let mut notices = Notices::default();
    notices.add(Notice::MemoryLimit, left_out.len() as u64, || "traces after the first 65,536".to_owned());
    let mut lossy = Vec::new();
    let mut covered: BTreeMap<(HostId, Option<u32>), Span> = BTreeMap::new();
    let mut origins = Vec::new();
    let mut sources = Vec::new();
    for (trace, host) in traces.iter().zip(host_of) {
        let binding = Binding::new(trace, tasks);
        let release = hosts.get(host.index()).and_then(|(_, release)| release.as_deref());
        origins.push(Origin { host, kernel: binding.kernel, generation: Generation::of(release) });
        let mut losses = Vec::new();
        for stream in trace.streams() {
            let spans: Vec<Span> = stream.losses.iter().map(|(from, to, _)| Span::new(*from, *to)).collect();
            lossy.extend_from_slice(&spans);
            let switches = binding.switches.contains(&stream.stream_class);
            if let Some(span) = span(stream).filter(|_| switches) {
                // Chunks of one session continue each other.
                let whole = covered.entry((host, stream.cpu)).or_insert(span);
                *whole = Span::new(whole.start.min(span.start), whole.end.max(span.end));
            }
            losses.push(if switches { spans } else { Vec::new() });
        }
        sources.push(Source { plan: trace.compile(&binding.projection), binding, losses });
    }
    let mut machine = Machine::new(hosts, origins, options.handlers.clone());
    if sources.iter().any(|s| s.binding.page_faults) {
        machine.expect_page_faults();
    }
    let chunks = engine::cut(traces, options.chunks, work.threads);
    let pass = KernelPass { sources, events: &work.progress.events };
    let (machine, read) = engine::run(&pass, (machine, notices), traces, &chunks, work)?;
    let (mut recording, found) = machine.close(union(lossy));
    recording.covered = by_all(&covered);
    let mut notices = read;
    notices.merge(&found);
    Ok((recording, notices))
}

/// From the begin of a stream's first packet to the end of its last, where both are recorded.
fn span(stream: &Stream) -> Option<Span> {
    Some(Span::new(stream.packets.first()?.begin?, stream.packets.last()?.end?))
}

/// Per host the time that all of its CPUs cover.
fn by_all(cpus: &BTreeMap<(HostId, Option<u32>), Span>) -> Vec<(HostId, Span)> {
    let mut hosts: BTreeMap<HostId, Span> = BTreeMap::new();
    for ((host, _), span) in cpus {
        hosts.entry(*host).and_modify(|all| *all = all.clip(*span)).or_insert(*span);
    }
    hosts.into_iter().collect()
}

/// Sorted spans that do not touch.
fn union(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    let mut joined: Vec<Span> = Vec::new();
    for span in spans {
        match joined.last_mut() {
            Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
            _ => joined.push(span),
        }
    }
    joined
}
