//! Files of spans, opened beside the recordings of the kernel that were named with them.
//!
//! In: opened traces, and files of spans at their places among them. Out: all of them as traces. A file of spans
//! belongs to the recordings of the kernel under its label, of whichever host its threads and times agree with
//! ([`SpanFile::beside`]); where there is no recording of the kernel it is opened by itself. Cost: one reading of the
//! context switches of those recordings, on all workers; kept are those of the threads with spans.

use super::record::{ClassId, FieldPath, Projection, Scope, StreamId};
use super::trace::Plan;
use super::translated::{CpuSwitch, KernelOfSpans, SpanFile, ThreadRuns};
use super::{OpenError, Source, Trace};
use crate::base::ctx::{Cancel, Ctx};
use crate::base::parallel::in_order;
use crate::base::time::{Span, Timestamp};
use foldhash::HashSet;
use std::collections::BTreeMap;

/// A file of spans, and its place among the sources.
pub(super) struct PendingSpans {
    /// The sources before it, files of spans not counted.
    pub position: usize,
    pub label: String,
    pub labelled: bool,
    pub file: SpanFile,
}

/// Fields that name the threads of a switch, in the words of each recorder.
const NEXT: [&str; 3] = ["next_tid", "next_pid", "_next_tid"];
const PREV: [&str; 3] = ["prev_tid", "prev_pid", "_prev_tid"];

/// Add the files of spans to the sources.
pub(super) fn open(sources: &mut Vec<Source>, pending: Vec<PendingSpans>, ctx: &Ctx) -> Result<(), OpenError> {
    let mut opened = Vec::with_capacity(pending.len());
    for PendingSpans { position, label, labelled, file } in pending {
        let same = |source: &&Source| source.labelled == labelled && (!labelled || source.label == label);
        let kernels = kernels(sources.iter().filter(same), &file.threads(), ctx)?;
        let trace = if kernels.is_empty() { file.alone() } else { file.beside(&kernels)? };
        let trace = Trace::new(trace);
        opened.push((position, Source { label, labelled, name: String::new(), trace, environment: None }));
    }
    for (before, (position, source)) in opened.into_iter().enumerate() {
        sources.insert((before + position).min(sources.len()), source);
    }
    Ok(())
}

/// The recordings of the kernel among some sources, those of a host together, with the runs of some threads.
fn kernels<'s>(
    sources: impl Iterator<Item = &'s Source>,
    threads: &HashSet<i32>,
    ctx: &Ctx,
) -> Result<Vec<KernelOfSpans>, OpenError> {
    let mut hosts: BTreeMap<Option<&str>, Vec<&Trace>> = BTreeMap::new();
    for source in sources.filter(|source| switches(&source.trace).is_some()) {
        hosts.entry(source.trace.host()).or_default().push(&source.trace);
    }
    let mut found = Vec::with_capacity(hosts.len());
    for (host, traces) in hosts {
        let Some(first) = traces.first() else { continue };
        let mut runs = ThreadRuns::default();
        for trace in &traces {
            let Some(plan) = switch_plan(trace) else { continue };
            let read = |stream: usize| stream_switches(trace, &plan, StreamId::at(stream), threads, &ctx.cancel);
            in_order(ctx, trace.streams().len(), read, |_, switches: Vec<CpuSwitch>| {
                switches.into_iter().for_each(|switch| runs.switched(switch));
            })?;
        }
        runs.seal();
        runs.retain(|tid| threads.contains(&tid));
        let packets = || traces.iter().flat_map(|trace| trace.streams()).flat_map(|stream| &stream.packets);
        let begin = packets().filter_map(|packet| packet.begin).min().unwrap_or(Timestamp::MIN);
        let end = packets().filter_map(|packet| packet.end).max().unwrap_or(Timestamp::MAX);
        found.push(KernelOfSpans {
            host: host.map(str::to_owned),
            clock_name: first.clock_name().unwrap_or_default().to_owned(),
            clock_uuid: first.clock_uuid().map(str::to_owned),
            base: first.exact_time(StreamId::at(0), 0, 0).unwrap_or_default().ns().into(),
            recorded: Span::new(begin, end.max(begin)),
            runs,
        });
    }
    Ok(found)
}

/// The class of context switches.
fn switches(trace: &Trace) -> Option<ClassId> {
    let is_switch = |name: &str| name.rsplit(':').next() == Some("sched_switch");
    trace.classes().iter().position(|class| is_switch(class.known())).map(ClassId::at)
}

/// The plan that reads the threads of switches: the one that leaves, and the next one.
fn switch_plan(trace: &Trace) -> Option<Plan> {
    let class = switches(trace)?;
    let field = |names: [&'static str; 3]| names.into_iter().find(|name| trace.has_field(class, Scope::Payload, name));
    let fields = [field(PREV)?, field(NEXT)?].map(|name| FieldPath::new(Scope::Payload, name)).to_vec();
    let known = trace.classes().get(class.index())?.known();
    let wanted = trace.classes().iter().map(|other| (other.known() == known).then(|| fields.clone()));
    Some(trace.compile(&Projection { wanted: wanted.collect() }))
}

/// The switches of a stream to and from some threads.
fn stream_switches(
    trace: &Trace,
    plan: &Plan,
    stream: StreamId,
    threads: &HashSet<i32>,
    cancel: &Cancel,
) -> Vec<CpuSwitch> {
    let packets = trace.streams().get(stream.index()).map_or(0, |stream| stream.packets.len());
    let mut reader = trace.reader(plan, stream, 0..packets);
    let mut found = Vec::new();
    while let Some(record) = reader.next().filter(|_| !cancel.is_cancelled()) {
        let tid = |at: usize| i32::try_from(record.values.get(at)?.as_i64()?).ok();
        let (prev, Some(next)) = (tid(0), tid(1)) else { continue };
        if threads.contains(&next) || prev.is_some_and(|prev| threads.contains(&prev)) {
            found.push(CpuSwitch { time: record.time, cpu: record.cpu, prev, next });
        }
    }
    found
}
