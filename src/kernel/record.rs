//! The kernel pass: traces in, a timeline out, which steps may complete before it is sealed.
//!
//! An [`Analysis`] whose partial is a batch of typed events (read, bound, sorted and merged over the streams by the
//! workers; many workers step through what their chunks decide, `prepare`) and whose merge steps the machine through
//! it. What is left after that, making leaves of settled rows, needs no order: the worker does it while another one
//! steps through the next chunk. A chunk that runs again is stepped through event by event. Memory: the batches in
//! flight and the timeline.

use super::handlers::Handlers;
use super::machine::Machine;
use super::prepare::{PrepareOptions, prepare};
use super::prepared::Prepared;
use super::sealed_rows::{NumberedSlabs, SEAL_EVERY};
use super::worker_rows::WorkerRows;
use crate::base::allocator::return_free_memory;
use crate::base::ctx::{Cancel, Cancelled, Ctx};
use crate::base::heap::MemoryPart;
use crate::base::notice::{Notice, Notices};
use crate::base::time::Span;
use crate::event::host::HostId;
use crate::event::task::TaskDefinition;
use crate::input::Trace;
use crate::input::stream::Stream;
use crate::reading::batch::Batch;
use crate::reading::bind::Binding;
use crate::reading::chunks::Chunk;
use crate::reading::engine::{self, Analysis, ChunkStart, EngineOptions};
use crate::reading::packet_times::PacketTimes;
use crate::reading::sources::BoundTraces;
use crate::timeline::store::pool::LeafPool;
use crate::timeline::store::row_builders::{OpenSlabs, SealedSlabs};
use crate::timeline::{HostCoverage, RecordedTimeline};
use get_size2::GetSize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Options of the kernel pass; the result does not depend on `engine`.
#[derive(Clone, Debug)]
pub struct Options {
    /// Options of the engine.
    pub engine: EngineOptions,
    /// The tables that classify interrupt handlers.
    pub handlers: Handlers,
    /// Pairs of events that count as entries and exits of functions.
    pub pairs: Vec<TaskDefinition>,
    /// Labels that the user gave the traces, by position (missing: none): under different labels, equal hosts are two.
    pub labels: Vec<Option<String>>,
    /// Rows move to the store every so many events on average; no answer depends on it.
    pub seal_every: usize,
    /// Who steps through the events that a chunk decides by itself; the result does not depend on it.
    pub rows_by: RowsBy,
}

/// Who steps through the events that a chunk decides by itself, and makes rows of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowsBy {
    /// Workers where there are so many that the machine would be their limit, else the machine.
    #[default]
    WhoIsFree,
    Workers,
    /// The machine, which steps through all events: for tests and benchmarks alone.
    #[cfg_attr(program, allow(dead_code))]
    Machine,
}

/// From this many workers on the machine is their limit: its steps are a quarter of the work.
const MANY_WORKERS: usize = 4;

impl Default for Options {
    fn default() -> Self {
        Options {
            engine: EngineOptions::default(),
            handlers: Handlers::built_in(),
            pairs: Vec::new(),
            labels: Vec::new(),
            seal_every: SEAL_EVERY,
            rows_by: RowsBy::default(),
        }
    }
}

struct KernelPass<'w> {
    sources: BoundTraces,
    events: &'w AtomicU64,
    options: &'w Options,
    /// `None` where the machine steps through all events.
    prepare: Option<PrepareOptions>,
    slabs: Mutex<PassSlabs>,
}

/// The slabs of rows that were made leaves, in any order, and those that are empty again.
#[derive(Default)]
struct PassSlabs {
    sealed: Vec<NumberedSlabs<SealedSlabs>>,
    empty: Vec<OpenSlabs>,
    /// Memory for what workers prepare, without rows.
    prepared: Vec<Prepared>,
    /// The rows that workers have made; slabs that are not sealed yet read some of them.
    rows: Vec<Arc<WorkerRows>>,
}

/// What is left of a chunk that the machine has joined.
struct Joined {
    slabs: Vec<NumberedSlabs<OpenSlabs>>,
    batch: Batch,
    /// What a worker has prepared of it, without its rows, and these.
    prepared: Option<(Prepared, Arc<WorkerRows>)>,
}

impl PassSlabs {
    /// Memory for what a worker prepares.
    fn spare(&mut self) -> Prepared {
        let unused = self.rows.iter().position(|rows| Arc::strong_count(rows) == 1);
        let rows = unused.and_then(|at| Arc::into_inner(self.rows.swap_remove(at)));
        let rows = rows.map(|unused| unused.rows.emptied()).unwrap_or_default();
        Prepared { rows, ..self.prepared.pop().unwrap_or_default() }
    }
}

impl KernelPass<'_> {
    /// The events of a chunk.
    fn read(&self, traces: &[&Trace], chunk: &Chunk, cancel: &Cancel, notices: &mut Notices) -> Batch {
        let batch = self.sources.read(traces, chunk, cancel, notices, |_, _| {}, None);
        self.events.fetch_add(batch.events.len() as u64, Ordering::Relaxed);
        batch
    }

    /// Give the machine the slabs that have been made leaves, and their memory.
    fn hand_over_slabs(&self, machine: &mut Machine) {
        let (sealed, empty) = {
            let mut slabs = self.slabs();
            (std::mem::take(&mut slabs.sealed), std::mem::take(&mut slabs.empty))
        };
        machine.give_back(empty);
        machine.add_slabs(sealed);
    }

    fn slabs(&self) -> MutexGuard<'_, PassSlabs> {
        self.slabs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Analysis for KernelPass<'_> {
    type Partial = (Batch, Option<Prepared>, Notices);
    type Whole = (Machine, Notices);
    type Rest = Joined;

    fn chunk(&self, traces: &[&Trace], chunk: &Chunk, _start: ChunkStart, cancel: &Cancel) -> Self::Partial {
        let mut notices = Notices::default();
        let mut batch = self.read(traces, chunk, cancel, &mut notices);
        let prepared = self.prepare.map(|options| {
            let spare = self.slabs().spare();
            let mut machine = new_machine(traces, &self.sources, self.options);
            if let Some(first) = batch.events.first() {
                let losses = self.sources.losses_over(traces, first.time).into_iter();
                losses.for_each(|of| machine.losses.begin(of.host, u32::from(of.cpu), of.start, of.resumes));
            }
            prepare(&mut batch, machine, options, spare)
        });
        (batch, prepared, notices)
    }

    fn fits(&self, (machine, _): &Self::Whole, (_, prepared, _): &Self::Partial) -> bool {
        prepared.as_ref().is_none_or(|prepared| machine.fits(prepared))
    }

    fn merge(&self, (machine, notices): &mut Self::Whole, (batch, prepared, theirs): Self::Partial) -> Self::Rest {
        self.hand_over_slabs(machine);
        let prepared = match prepared {
            Some(mut prepared) => {
                let rows = machine.absorb_prepared(&batch, &mut prepared);
                Some((prepared, rows))
            }
            None => {
                machine.absorb(&batch);
                None
            }
        };
        notices.merge(&theirs);
        Joined { slabs: machine.slabs.take(), batch, prepared }
    }

    fn packet_times(&self) -> Option<&PacketTimes> {
        Some(self.sources.packet_times())
    }

    fn run_again(&self, whole: &mut Self::Whole, traces: &[&Trace], chunk: &Chunk, cancel: &Cancel) -> Self::Rest {
        let mut notices = Notices::default();
        let batch = self.read(traces, chunk, cancel, &mut notices);
        self.merge(whole, (batch, None, notices))
    }

    fn finish(&self, Joined { slabs: filled, batch, prepared }: Joined) {
        self.sources.recycle(batch);
        if let Some((prepared, rows)) = prepared {
            let prepared = prepared.emptied();
            let mut slabs = self.slabs();
            slabs.rows.push(rows);
            slabs.prepared.push(prepared);
        }
        for NumberedSlabs { number, mut slabs } in filled {
            let sealed = NumberedSlabs { number, slabs: slabs.seal() };
            let mut all = self.slabs();
            all.sealed.push(sealed);
            all.empty.push(slabs);
        }
    }
}

/// Run the kernel pass over some traces on one time line, with marks for `tasks`.
///
/// At most 65,536 traces are read. Ids in the result are given in the order of events: nothing depends on the number
/// of workers or the size of chunks.
pub fn record(
    traces: &[&Trace],
    tasks: &[TaskDefinition],
    options: &Options,
    ctx: &Ctx,
) -> Result<(RecordedTimeline, Notices), Cancelled> {
    let (traces, left_out) = traces.split_at(traces.len().min(1 << 16));
    let mut notices = Notices::default();
    notices.add(Notice::MemoryLimit, left_out.len() as u64, || "traces after the first 65,536".to_owned());
    let all: Vec<TaskDefinition> = tasks.iter().chain(&options.pairs).cloned().collect();
    let mut sources = BoundTraces::new(traces, &options.labels, |trace| Binding::new(trace, &all), ctx)?;
    let mut lossy = Vec::new();
    let mut covered: BTreeMap<(HostId, Option<u32>), Span> = BTreeMap::new();
    for ((trace, origin), source) in traces.iter().zip(&sources.origins).zip(&sources.all) {
        for stream in trace.streams() {
            lossy.extend(stream.losses.iter().map(|loss| Span::new(loss.from, loss.to)));
            let switches = source.binding.switches.contains(&stream.stream_class);
            if let Some(span) = span(stream).filter(|_| switches) {
                // Chunks of one session continue each other.
                let whole = covered.entry((origin.host, stream.cpu)).or_insert(span);
                *whole = Span::new(whole.start.min(span.start), whole.end.max(span.end));
            }
        }
    }
    let mut machine = new_machine(traces, &sources, options);
    machine.set_seal_every(options.seal_every);
    let by_workers = match options.rows_by {
        RowsBy::WhoIsFree => ctx.threads >= MANY_WORKERS,
        by => by == RowsBy::Workers,
    };
    // Rows that workers make take up to three times the memory of the events.
    let (engine, buffers) = sources.fit_buffers(traces, &options.engine, 3 * u64::from(by_workers), ctx);
    let pool = LeafPool::within(ctx, buffers)?;
    machine.keep_leaves_in(pool.clone());
    machine.bound_open_rows(ctx.progress.parts.given(MemoryPart::OpenRows));
    if sources.all.iter().any(|s| s.binding.page_faults) {
        machine.expect_page_faults();
    }
    for (trace, source) in traces.iter().zip(&sources.all) {
        let like = source.binding.look_like_switches(trace);
        notices.add(Notice::UnknownScheduler, like.len() as u64, || like.join(", "));
    }
    machine.expect_pairs(tasks.len(), options.pairs.iter().map(|pair| pair.name.as_str()));
    sources.may_hold_copies(traces).into_iter().for_each(|trace| machine.expect_copies(trace));
    let prepare = PrepareOptions { has_pairs: !options.pairs.is_empty(), seal_moments: machine.seal_moments };
    let prepare = by_workers.then_some(prepare);
    let pass = KernelPass { sources, options, events: &ctx.progress.events, prepare, slabs: Mutex::default() };
    let (mut machine, mut notices) = engine::run(&pass, (machine, notices), traces, &engine, ctx)?;
    let rows: usize = pass.slabs().rows.iter().map(|rows| rows.rows.get_heap_size()).sum();
    let prepared: usize = pass.slabs().prepared.iter().map(GetSize::get_heap_size).sum();
    ctx.progress.parts.hold(MemoryPart::EventBuffers, pass.sources.spare_bytes() + rows + prepared);
    pass.hand_over_slabs(&mut machine);
    ctx.progress.parts.hold(MemoryPart::OpenRows, machine.most_open_bytes());
    drop(pass);
    // That of the buffers, which are of no use to leaves and results.
    return_free_memory();
    let (mut timeline, found) = machine.close(lossy, coverage(&covered));
    timeline.count_questions(ctx.questions.clone());
    timeline.leave_room_for_results(pool.as_ref(), ctx);
    timeline.hold(&ctx.progress.parts);
    notices.merge(&found);
    Ok((timeline, notices))
}

/// A machine that has seen no event.
fn new_machine(traces: &[&Trace], sources: &BoundTraces, options: &Options) -> Machine {
    let mut machine = Machine::new(sources.hosts.clone(), sources.origins.clone(), options.handlers.clone());
    for ((trace, origin), source) in traces.iter().zip(&sources.origins).zip(&sources.all) {
        for stream in trace.streams().iter().filter(|s| source.binding.switches.contains(&s.stream_class)) {
            if let Some(cpu) = stream.cpu {
                machine.expect_cpu(origin.host, cpu);
            }
        }
    }
    machine
}

/// From the begin of a stream's first packet to the end of its last, where both were recorded.
fn span(stream: &Stream) -> Option<Span> {
    Some(Span::new(stream.packets.first()?.begin?, stream.packets.last()?.end?))
}

/// For each host the time over which all of its CPUs were recorded.
fn coverage(cpus: &BTreeMap<(HostId, Option<u32>), Span>) -> Vec<HostCoverage> {
    let mut hosts: BTreeMap<HostId, Span> = BTreeMap::new();
    for ((host, _), span) in cpus {
        hosts.entry(*host).and_modify(|all| *all = all.clip(*span)).or_insert(*span);
    }
    hosts.into_iter().map(|(host, span)| HostCoverage { host, span }).collect()
}
