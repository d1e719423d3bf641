//! `info` and `dump` of an OTF2 archive.
//!
//! In: an [`Archive`], and what was mined. Out: the same schema as for other traces (`whyslow.info/1`), without the fields that
//! an archive does not have (packets, losses), and events as lines in time order.

use super::anomalies::{ClockJson, clocks};
use super::clean;
use super::dump::DumpError;
use super::info::{self, Measured, TaskFacts};
use crate::analysis::patterns::Mined;
use crate::base::ctx::Cancel;
use crate::base::notice::Notices;
use crate::explain::iterations;
use crate::explain::iterations::ITERATION;
use crate::input::otf2::{
    Archive, Envelope, EventReader, EventRecord, Location, LocationFiles, LocationId, LocationKind, ParameterValue,
    TimedRecord, class_name,
};
use crate::model::anomalies::Anomalies;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::fmt::Write as _;
use std::io::Write;

fn warnings(notices: &Notices) -> Vec<String> {
    notices.sentences().iter().map(|s| clean::line(s)).collect()
}

fn cleaned(text: &str) -> String {
    clean::text(text).into_owned()
}

/// `whyslow.info/1`
#[derive(Clone, Debug, Serialize)]
pub struct Facts {
    schema: &'static str,
    traces: Vec<TraceFacts>,
    lost: Lost,
    tasks: Vec<TaskFacts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clocks: Option<Vec<ClockJson>>,
    warnings: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
struct TraceFacts {
    path: String,
    format: String,
    begin_ns: Option<i64>,
    end_ns: Option<i64>,
    streams: usize,
    packets: Option<u64>,
    host: Option<String>,
    clock: Option<String>,
    event_types: Option<usize>,
    creator: String,
    nodes: BTreeSet<String>,
    ranks: usize,
    threads: usize,
    accelerator_streams: usize,
    communicators: usize,
    properties: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Serialize)]
struct Lost {
    events: u64,
    packets: u64,
    streams: u64,
}

impl Facts {
    /// From anchor and definitions alone; with `mined` also clocks and the iterations as tasks.
    pub fn new(archive: &Archive, mined: Option<(&Mined, &Anomalies)>, notices: &Notices) -> Facts {
        let (anchor, definitions) = (&archive.anchor, &archive.definitions);
        let begin = archive.ns(i128::from(definitions.global_offset));
        let end = archive.ns(i128::from(definitions.global_offset) + i128::from(definitions.trace_length));
        let (major, minor, bugfix) = anchor.version;
        let locations = || definitions.locations.iter();
        let trace = TraceFacts {
            path: cleaned(&archive.path.display().to_string()),
            format: format!("OTF2 {major}.{minor}.{bugfix}"),
            begin_ns: begin,
            end_ns: end,
            streams: definitions.locations.len(),
            packets: None,
            host: (!anchor.machine.is_empty()).then(|| cleaned(&anchor.machine)),
            clock: Some(format!("{} Hz", definitions.ticks_per_second)),
            event_types: None,
            creator: cleaned(&anchor.creator),
            nodes: locations().filter(|l| !l.node.is_empty()).map(|l| cleaned(&l.node)).collect(),
            ranks: locations().filter_map(|l| l.rank).collect::<BTreeSet<u32>>().len(),
            threads: locations().filter(|l| l.kind == LocationKind::Thread).count(),
            accelerator_streams: locations().filter(|l| l.kind == LocationKind::Stream).count(),
            communicators: definitions.communicators(),
            properties: anchor.properties.iter().map(|(k, v)| (cleaned(k), cleaned(v))).collect(),
        };
        Facts {
            schema: "whyslow.info/1",
            traces: vec![trace],
            lost: Lost { events: 0, packets: 0, streams: 0 },
            tasks: mined.map_or_else(Vec::new, |(mined, _)| tasks(mined)),
            clocks: mined.map(|(_, found)| clocks(&found.streams)),
            warnings: warnings(notices),
        }
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        for t in &self.traces {
            writeln!(out, "{}  {}", t.path, t.format)?;
            let host = t.host.as_deref().unwrap_or("unknown host");
            writeln!(out, "    {host}, clock of {}, {} locations", t.clock.as_deref().unwrap_or(""), t.streams)?;
            let by = if t.creator.is_empty() { "an unknown tracer" } else { &t.creator };
            write!(out, "    by {by}: {} ranks, {} threads, ", t.ranks, t.threads)?;
            writeln!(out, "{} accelerator streams, {} communicators", t.accelerator_streams, t.communicators)?;
            if !t.nodes.is_empty() {
                writeln!(out, "    nodes: {}", t.nodes.iter().take(NODES).cloned().collect::<Vec<_>>().join(", "))?;
            }
            if let Some(length) = t.begin_ns.zip(t.end_ns).map(|(b, e)| (e - b) as f64 / 1e9) {
                writeln!(out, "    {length:.3} s, as declared by the archive")?;
            }
        }
        info::write_tasks(&self.tasks, out)?;
        for clock in self.clocks.iter().flatten() {
            writeln!(out, "{clock}")?;
        }
        for warning in &self.warnings {
            writeln!(out, "note: {warning}")?;
        }
        Ok(())
    }
}

/// Nodes named in the text.
const NODES: usize = 16;

/// Iterations by pattern, over all streams.
fn tasks(mined: &Mined) -> Vec<TaskFacts> {
    let mut by_task: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for one in mined.iterations() {
        let durations = || one.spans.iter().map(|s| s.len());
        by_task.entry(ITERATION.to_owned()).or_default().extend(durations());
        let name = mined.table.name(one.pattern, &mined.operations.names);
        by_task.entry(name).or_default().extend(durations());
    }
    let task = |name: String| {
        let mut durations = by_task.remove(&name)?;
        durations.sort_unstable();
        Some(TaskFacts { name: cleaned(&name), measured: Some(Measured::new(&durations)), unknown_waits: None })
    };
    iterations::tasks(mined).into_iter().filter_map(task).collect()
}

/// Collective operations by OTF2's number.
const COLLECTIVES: [&str; 17] = [
    "Barrier",
    "Bcast",
    "Gather",
    "Gatherv",
    "Scatter",
    "Scatterv",
    "Allgather",
    "Allgatherv",
    "Alltoall",
    "Alltoallv",
    "Alltoallw",
    "Allreduce",
    "Reduce",
    "Reduce_scatter",
    "Scan",
    "Exscan",
    "Reduce_scatter_block",
];

/// Bytes that are collected before they are written.
const BUFFER: usize = 256 << 10;

/// Write every event of an archive as a line, in time order by the archive's own clocks: time in ns, location, record
/// type, fields. Returns the notices.
pub fn dump(archive: &Archive, cancel: &Cancel, out: &mut impl Write) -> Result<Notices, DumpError> {
    let locations = 0..archive.definitions.locations.len();
    let files: Vec<LocationFiles> = locations.map(|i| archive.open_location(LocationId::at(i))).collect();
    let mut readers: Vec<EventReader<'_>> = files.iter().map(LocationFiles::reader).collect();
    let mut heads: Vec<Option<TimedRecord>> = readers.iter_mut().map(EventReader::next).collect();
    let ticks = |stream: usize, record: &TimedRecord| files.get(stream).map_or(0, |f| f.clock().correct(record.ticks));
    let mut heap: BinaryHeap<Reverse<(i128, usize)>> = BinaryHeap::new();
    for (stream, head) in heads.iter().enumerate() {
        heap.extend(head.map(|record| Reverse((ticks(stream, &record), stream))));
    }
    let mut text = String::with_capacity(BUFFER + 1024);
    while let Some(Reverse((at, stream))) = heap.pop() {
        let (Some(head), Some(reader)) = (heads.get_mut(stream), readers.get_mut(stream)) else { break };
        if let (Some(record), Some(files)) = (&head, files.get(stream)) {
            line(archive, files, (stream, at), record, reader.values(), &mut text);
        }
        if text.len() >= BUFFER {
            cancel.check()?;
            out.write_all(text.as_bytes())?;
            text.clear();
        }
        *head = reader.next();
        heap.extend(head.map(|record| Reverse((ticks(stream, &record), stream))));
    }
    out.write_all(text.as_bytes())?;
    let mut notices = archive.notices.clone();
    files.iter().for_each(|f| notices.merge(&f.notices()));
    readers.iter().for_each(|r| notices.merge(r.notices()));
    Ok(notices)
}

fn line(
    archive: &Archive,
    files: &LocationFiles,
    (stream, ticks): (usize, i128),
    record: &TimedRecord,
    values: &[i64],
    out: &mut String,
) {
    let definitions = &archive.definitions;
    let location = definitions.locations.get(stream).map_or_else(String::new, Location::label);
    let class = class_name(record.class).map_or_else(|| format!("type {}", record.class), str::to_owned);
    match archive.ns(ticks) {
        Some(ns) => _ = write!(out, "{ns}"),
        None => out.push_str("overflow"),
    }
    _ = write!(out, "\t{}\t{class}\t", clean::text(&location));
    let region = |id| definitions.region(id).map_or("(undefined region)", |r| definitions.names.get(r.name));
    let peer = |e: &Envelope| match definitions.peer(e.communicator, e.peer) {
        Some(id) => definitions.locations.get(id.index()).map_or_else(String::new, |l| cleaned(&l.label())),
        None => "an unknown rank".to_owned(),
    };
    let communicator = |id: u32| match definitions.communicator_name(id) {
        "" => format!("communicator {id}"),
        name => cleaned(name),
    };
    let envelope = |e: &Envelope| format!("{}, tag {}, {} bytes", communicator(e.communicator), e.tag, e.bytes);
    let request = |r: &Option<u64>| r.map_or_else(String::new, |r| format!(", request {r:#x}"));
    let named = &definitions.named;
    let file = |id: u32| match named.handle(id) {
        "" => String::new(),
        name => format!(", {}", clean::text(name)),
    };
    let window = |id: u32| match named.window(id) {
        Some((name, _)) if !name.is_empty() => cleaned(name),
        _ => format!("window {id}"),
    };
    let target = |id: u32, remote: u32| {
        let communicator = named.window(id).map_or(u32::MAX, |(_, communicator)| communicator);
        let location = definitions.peer(communicator, remote).and_then(|l| definitions.locations.get(l.index()));
        location.map_or_else(|| format!("rank {remote}"), |l| cleaned(&l.label()))
    };
    let context = |id: u32| definitions.calling_context(id).map_or("(undefined context)", |(id, _)| region(id));
    _ = match &record.event {
        EventRecord::Enter(id) | EventRecord::Leave(id) => write!(out, "{}", clean::text(region(*id))),
        EventRecord::Context(id) | EventRecord::ContextLeave(id) => write!(out, "{}", clean::text(context(*id))),
        EventRecord::Send { to, request: r } => write!(out, "to {}, {}{}", peer(to), envelope(to), request(r)),
        EventRecord::Receive { from, request: r } => {
            write!(out, "from {}, {}{}", peer(from), envelope(from), request(r))
        }
        EventRecord::SendComplete(r) | EventRecord::ReceiveRequest(r) | EventRecord::RequestCancelled(r) => {
            write!(out, "request {r:#x}")
        }
        EventRecord::CollectiveEnd { operation, communicator: c, root }
        | EventRecord::CollectiveComplete { operation, communicator: c, root } => {
            let name = COLLECTIVES.get(usize::from(*operation)).copied().unwrap_or("collective");
            write!(out, "{name}, {}", communicator(*c))
                .and_then(|()| if *root == u32::MAX { Ok(()) } else { write!(out, ", root {root}") })
        }
        EventRecord::TeamBegin(team) | EventRecord::TeamEnd(team) => write!(out, "team {}", communicator(*team)),
        EventRecord::Acquire { lock, order } | EventRecord::Release { lock, order } => {
            write!(out, "lock {lock}, time {order}")
        }
        EventRecord::Flush { until } => match archive.ns(files.clock().correct(*until)) {
            Some(ns) => write!(out, "until {ns}"),
            None => write!(out, "until (overflow)"),
        },
        EventRecord::IoBegin { mode, matching, handle } => {
            let what = ["read", "write"].get(usize::from(*mode)).copied().unwrap_or("operation");
            write!(out, "{what} {matching}{}", file(*handle))
        }
        EventRecord::IoComplete { bytes, matching, handle } => {
            write!(out, "operation {matching}, {bytes} bytes{}", file(*handle))
        }
        EventRecord::Metric(metric) => {
            let members = named.metric(*metric).iter().filter_map(|m| named.members.get(*m as usize));
            let values: Vec<String> =
                members.zip(values).map(|(m, v)| format!("{} {v}", clean::text(&m.name))).collect();
            write!(out, "{}", values.join(", "))
        }
        EventRecord::Parameter { parameter, value } => write!(out, "{}=", clean::text(named.parameter(*parameter)))
            .and_then(|()| match value {
                ParameterValue::Text(id) => write!(out, "{}", clean::text(named.text(*id))),
                ParameterValue::Number(n) => write!(out, "{n}"),
            }),
        EventRecord::RmaWindow(id) => write!(out, "{}", window(*id)),
        EventRecord::RmaCollectiveEnd { operation, window: id } => {
            let name = COLLECTIVES.get(usize::from(*operation)).copied().unwrap_or("collective");
            write!(out, "{name}, {}", window(*id))
        }
        EventRecord::RmaGroupSync { window: id, group } => {
            let of = definitions.group(*group).iter().flatten();
            let ranks: Vec<String> =
                of.filter_map(|l| definitions.locations.get(l.index())).map(|l| cleaned(&l.label())).collect();
            write!(out, "{}, with {}", window(*id), ranks.join(", "))
        }
        EventRecord::RmaLock { window: id, remote, .. } => write!(out, "{} of {}", window(*id), target(*id, *remote)),
        EventRecord::RmaTransfer { window: id, remote, bytes } => {
            write!(out, "{bytes} bytes, {} of {}", window(*id), target(*id, *remote))
        }
        EventRecord::TaskCreate(t) | EventRecord::TaskSwitch(t) | EventRecord::TaskComplete(t) => {
            write!(out, "task {} of thread {}, {}", t.number, t.creator, communicator(t.team))
        }
        EventRecord::ThreadWait(t) | EventRecord::ThreadEnd(t) => {
            write!(out, "thread {}, {}", t.sequence, communicator(t.contingent))
        }
        EventRecord::CollectiveBegin | EventRecord::Fork | EventRecord::Join | EventRecord::Other => Ok(()),
    };
    out.push('\n');
}
