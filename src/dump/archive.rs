//! Every event of an OTF2 archive as a line of text, in time order by the archive's own clocks.

use super::DumpError;
use crate::base::clean;
use crate::base::ctx::Cancel;
use crate::base::demangle::demangle;
use crate::base::names::NameId;
use crate::base::notice::Notices;
use crate::input::otf2::{
    Archive, AttributeValue, Definitions, Envelope, EventAttribute, EventReader, EventRecord, Location, LocationFiles,
    LocationId, MetricValue, ParameterValue, TimedRecord, class_name,
};
use foldhash::HashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::{self, Write as _};
use std::io::Write;

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
    let demangled = demangled(&archive.definitions);
    while let Some(Reverse((at, stream))) = heap.pop() {
        let (Some(head), Some(reader)) = (heads.get_mut(stream), readers.get_mut(stream)) else { break };
        if let (Some(record), Some(files)) = (&head, files.get(stream)) {
            let (values, attributes) = (reader.values(), reader.attributes().collect());
            let line = Line { archive, demangled: &demangled, files, values, attributes };
            // Writing to a String cannot fail.
            _ = line.write(stream, at, record, &mut text);
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

/// The names of regions as their authors wrote them, where they are recorded as linkers know them.
fn demangled(definitions: &Definitions) -> HashMap<NameId, String> {
    let names = definitions.regions().map(|(_, region)| (region.name, definitions.names.get(region.name)));
    let mangled = names.filter(|(_, name)| name.starts_with("_Z") || name.starts_with("_R"));
    mangled.map(|(id, name)| (id, demangle(name))).collect()
}

/// One event of a location, and the definitions that name what it refers to.
struct Line<'a> {
    archive: &'a Archive,
    demangled: &'a HashMap<NameId, String>,
    files: &'a LocationFiles,
    /// Values of a metric event.
    values: &'a [MetricValue],
    attributes: Vec<EventAttribute>,
}

impl Line<'_> {
    /// Write the whole line: time, location, record type, fields.
    fn write(&self, stream: usize, ticks: i128, record: &TimedRecord, out: &mut String) -> fmt::Result {
        let location = self.definitions().locations.get(stream).map_or_else(String::new, Location::label);
        let class = class_name(record.class).map_or_else(|| format!("type {}", record.class), str::to_owned);
        match self.archive.ns(ticks) {
            Some(ns) => write!(out, "{ns}")?,
            None => out.push_str("overflow"),
        }
        write!(out, "\t{}\t{class}\t", clean::text(&location))?;
        self.fields(&record.event, out)?;
        for attribute in &self.attributes {
            if !out.ends_with('\t') {
                out.push_str(", ");
            }
            self.attribute(attribute, out)?;
        }
        out.push('\n');
        Ok(())
    }

    fn fields(&self, event: &EventRecord, out: &mut String) -> fmt::Result {
        match event {
            EventRecord::Enter(id) | EventRecord::Leave(id) => write!(out, "{}", clean::text(self.region(*id))),
            EventRecord::Context { context: id, .. } | EventRecord::ContextLeave(id) => {
                write!(out, "{}", clean::text(self.context(*id)))
            }
            EventRecord::Send { to, request } => {
                write!(out, "to {}, {}{}", self.peer(to), self.envelope(to), request_text(*request))
            }
            EventRecord::Receive { from, request } => {
                write!(out, "from {}, {}{}", self.peer(from), self.envelope(from), request_text(*request))
            }
            EventRecord::SendComplete(r) | EventRecord::ReceiveRequest(r) | EventRecord::RequestCancelled(r) => {
                write!(out, "request {r:#x}")
            }
            EventRecord::CollectiveEnd { operation, communicator, root }
            | EventRecord::CollectiveComplete { operation, communicator, root } => {
                write!(out, "{}, {}", collective(*operation), self.communicator(*communicator))?;
                if *root == u32::MAX { Ok(()) } else { write!(out, ", root {root}") }
            }
            EventRecord::TeamBegin(team) | EventRecord::TeamEnd(team) => {
                write!(out, "team {}", self.communicator(*team))
            }
            EventRecord::Acquire { lock, order } | EventRecord::Release { lock, order } => {
                write!(out, "lock {lock}, time {order}")
            }
            EventRecord::Flush { until } => match self.archive.ns(self.files.clock().correct(*until)) {
                Some(ns) => write!(out, "until {ns}"),
                None => write!(out, "until (overflow)"),
            },
            EventRecord::TaskCreate(t) | EventRecord::TaskSwitch(t) | EventRecord::TaskComplete(t) => {
                write!(out, "task {} of thread {}, {}", t.number, t.creator, self.communicator(t.team))
            }
            EventRecord::ThreadWait(t) | EventRecord::ThreadEnd(t) => {
                write!(out, "thread {}, {}", t.sequence, self.communicator(t.contingent))
            }
            EventRecord::RmaWindow(id) => write!(out, "{}", self.window(*id)),
            EventRecord::RmaCollectiveEnd { .. }
            | EventRecord::RmaGroupSync { .. }
            | EventRecord::RmaLock { .. }
            | EventRecord::RmaTransfer { .. } => self.remote_memory(event, out),
            EventRecord::IoBegin { .. }
            | EventRecord::IoComplete { .. }
            | EventRecord::Metric(_)
            | EventRecord::Parameter { .. } => self.measurement(event, out),
            EventRecord::CollectiveBegin | EventRecord::Fork | EventRecord::Join | EventRecord::Other => Ok(()),
        }
    }

    /// Accesses to other ranks' memory.
    fn remote_memory(&self, event: &EventRecord, out: &mut String) -> fmt::Result {
        match event {
            EventRecord::RmaCollectiveEnd { operation, window } => {
                write!(out, "{}, {}", collective(*operation), self.window(*window))
            }
            EventRecord::RmaGroupSync { window, group } => {
                let locations = &self.definitions().locations;
                let members = self.definitions().group(*group).iter().flatten();
                let ranks: Vec<String> =
                    members.filter_map(|l| locations.get(l.index())).map(|l| clean::owned(&l.label())).collect();
                write!(out, "{}, with {}", self.window(*window), ranks.join(", "))
            }
            EventRecord::RmaLock { window, remote, .. } => {
                write!(out, "{} of {}", self.window(*window), self.target(*window, *remote))
            }
            EventRecord::RmaTransfer { window, remote, bytes } => {
                write!(out, "{bytes} bytes, {} of {}", self.window(*window), self.target(*window, *remote))
            }
            _ => Ok(()),
        }
    }

    fn attribute(&self, attribute: &EventAttribute, out: &mut String) -> fmt::Result {
        let named = &self.definitions().named;
        write!(out, "{}=", clean::text(named.attribute(attribute.id)))?;
        match attribute.value {
            AttributeValue::Number(number) => write!(out, "{number}"),
            AttributeValue::Double(number) => write!(out, "{number}"),
            AttributeValue::Text(id) => write!(out, "{}", clean::text(named.text(id))),
            AttributeValue::Reference(id) => write!(out, "definition {id}"),
        }
    }

    /// Files, metrics and parameters.
    fn measurement(&self, event: &EventRecord, out: &mut String) -> fmt::Result {
        let named = &self.definitions().named;
        match event {
            EventRecord::IoBegin { mode, matching, handle } => {
                let what = ["read", "write"].get(usize::from(*mode)).copied().unwrap_or("operation");
                write!(out, "{what} {matching}{}", self.file(*handle))
            }
            EventRecord::IoComplete { bytes, matching, handle } => {
                write!(out, "operation {matching}, {bytes} bytes{}", self.file(*handle))
            }
            EventRecord::Metric(metric) => {
                let members = named.metric(*metric).iter().filter_map(|m| named.members.get(*m as usize));
                let values: Vec<String> = members.zip(self.values).map(|(m, v)| clean::owned(&m.shown(*v))).collect();
                write!(out, "{}", values.join(", "))
            }
            EventRecord::Parameter { parameter, value } => {
                write!(out, "{}=", clean::text(named.parameter(*parameter)))?;
                match value {
                    ParameterValue::Text(id) => write!(out, "{}", clean::text(named.text(*id))),
                    ParameterValue::Number(n) => write!(out, "{n}"),
                }
            }
            _ => Ok(()),
        }
    }

    fn definitions(&self) -> &Definitions {
        &self.archive.definitions
    }

    fn region(&self, id: u32) -> &str {
        let definitions = self.definitions();
        let name = |id: NameId| self.demangled.get(&id).map_or_else(|| definitions.names.get(id), String::as_str);
        definitions.region(id).map_or("(undefined region)", |r| name(r.name))
    }

    fn context(&self, id: u32) -> &str {
        self.definitions().calling_context(id).map_or("(undefined context)", |context| self.region(context.region))
    }

    fn peer(&self, envelope: &Envelope) -> String {
        match self.definitions().peer(envelope.communicator, envelope.peer) {
            Some(id) => {
                self.definitions().locations.get(id.index()).map_or_else(String::new, |l| clean::owned(&l.label()))
            }
            None => "an unknown rank".to_owned(),
        }
    }

    fn communicator(&self, id: u32) -> String {
        match self.definitions().communicator_name(id) {
            "" => format!("communicator {id}"),
            name => clean::owned(name),
        }
    }

    fn envelope(&self, envelope: &Envelope) -> String {
        let Envelope { communicator, tag, bytes, .. } = envelope;
        format!("{}, tag {tag}, {bytes} bytes", self.communicator(*communicator))
    }

    fn file(&self, id: u32) -> String {
        match self.definitions().named.handle(id) {
            "" => String::new(),
            name => format!(", {}", clean::text(name)),
        }
    }

    fn window(&self, id: u32) -> String {
        match self.definitions().named.window(id) {
            Some(window) if !window.name.is_empty() => clean::owned(&window.name),
            _ => format!("window {id}"),
        }
    }

    /// The rank whose part of a window is accessed.
    fn target(&self, window: u32, remote: u32) -> String {
        let definitions = self.definitions();
        let communicator = definitions.named.window(window).map_or(u32::MAX, |window| window.communicator);
        let location = definitions.peer(communicator, remote).and_then(|l| definitions.locations.get(l.index()));
        location.map_or_else(|| format!("rank {remote}"), |l| clean::owned(&l.label()))
    }
}

fn collective(operation: u8) -> &'static str {
    COLLECTIVES.get(usize::from(operation)).copied().unwrap_or("collective")
}

fn request_text(request: Option<u64>) -> String {
    request.map_or_else(String::new, |r| format!(", request {r:#x}"))
}
